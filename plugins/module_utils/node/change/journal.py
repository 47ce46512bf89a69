# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a change of a node began with, on the node itself, so that it can be taken back to the byte.

One file, replaced as a whole: a run that is killed leaves a journal of its last step, never half of one.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any, Mapping, NamedTuple

from ...tree import Tree
from ..journal_file import JournalFile
from ..places import OPEN

# How far a change has come, and so what takes it back.
DRAINING = "draining"  # make the node schedulable again
STOPPING = "stopping"  # and start the kubelet
CHANGING = "changing"  # and before that put the files back
PHASES = (DRAINING, STOPPING, CHANGING)


class SavedFile(NamedTuple):
    """A file as it was; `content` None: there was none."""

    content: bytes | None
    mode: int = 0
    uid: int = 0
    gid: int = 0


class Journal(NamedTuple):
    """How far a change of the node has come, the files as it found them, what its caller wants to remember, and the
    name of the run that is at it, empty where it gave none."""

    phase: str
    files: Mapping[str, SavedFile]
    facts: Mapping[str, object]
    run: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as modules return it; contents stay on the node."""
        return {"phase": self.phase, "files": sorted(self.files), "facts": dict(self.facts), "run": self.run}


def read_journal(tree: Tree, path: str = OPEN) -> Journal | None:
    """The journal at OPEN or LAST; None where there is none. Raises NodeError for a damaged one."""
    return journal_file(path).read(tree, _journal)


def journal_file(path: str) -> JournalFile:
    """The file of a change's journal, OPEN or LAST."""
    return JournalFile(
        path,
        1,
        "cannot be read as the journal of a change: %s",
        "look whether the node's kubelet works as it should, and remove the file",
    )


def _journal(data: Any) -> Journal:
    if data["phase"] not in PHASES or not isinstance(data["facts"], dict):
        raise ValueError("it is of another format")
    files = {str(name): _saved(saved) for name, saved in data["files"].items()}
    return Journal(data["phase"], files, data["facts"], str(data.get("run", "")))


def _saved(data: Any) -> SavedFile:
    if data is None:
        return SavedFile(None)
    try:
        content = base64.b64decode(data["content"], validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from error
    return SavedFile(content, int(data["mode"]), int(data["uid"]), int(data["gid"]))
