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
    name of the run that is at it, empty where it gave none.

    written: {path: what the change has written there or was about to, None where it removed the file}, so that what
    others have written since is told from it. None where it is not known: of a change by hand, or an older version.
    """

    phase: str
    files: Mapping[str, SavedFile]
    facts: Mapping[str, object]
    run: str = ""
    written: Mapping[str, bytes | None] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as modules return it; contents stay on the node."""
        return {"phase": self.phase, "files": sorted(self.files), "facts": dict(self.facts), "run": self.run}


def read_journal(tree: Tree, path: str = OPEN) -> Journal | None:
    """The journal at OPEN or LAST; None where there is none. Raises NodeError for a damaged one."""
    return journal_file(path).read(tree, journal_of)


def journal_file(path: str) -> JournalFile:
    """The file of a change's journal, OPEN or LAST."""
    return JournalFile(
        path,
        1,
        "cannot be read as the journal of a change: %s",
        "look whether the node's kubelet works as it should, and remove the file",
    )


def journal_of(data: Any) -> Journal:
    """The journal that a file holds. Raises ValueError and what else reading malformed data raises."""
    if data["phase"] not in PHASES or not isinstance(data["facts"], dict):
        raise ValueError("it is of another format")
    files = {str(name): _saved(saved) for name, saved in data["files"].items()}
    written = data.get("written")
    if written is not None:
        written = {str(name): None if content is None else _decoded(content) for name, content in written.items()}
    return Journal(data["phase"], files, data["facts"], str(data.get("run", "")), written)


def _saved(data: Any) -> SavedFile:
    if data is None:
        return SavedFile(None)
    return SavedFile(_decoded(data["content"]), int(data["mode"]), int(data["uid"]), int(data["gid"]))


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from error
