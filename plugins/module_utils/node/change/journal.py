# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a change of a node began with, on the node itself, so that it can be taken back to the byte.

One file, replaced as a whole: a run that is killed leaves a journal of its last step, never half of one.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import stat
from typing import Any, Mapping, NamedTuple, Sequence

from ...errors import InputError, NodeError, RefusedError
from ...files import remedy_for, remove_file, replace_file
from ...tree import Tree
from .places import DIRECTORY, OPEN

# How far a change has come, and so what takes it back.
DRAINING = "draining"  # make the node schedulable again
STOPPING = "stopping"  # and start the kubelet
CHANGING = "changing"  # and before that put the files back
PHASES = (DRAINING, STOPPING, CHANGING)

_MODE = 0o600
_FORMAT = 1


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
    facts: Mapping[str, Any]
    run: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as modules return it; contents stay on the node."""
        return {"phase": self.phase, "files": sorted(self.files), "facts": dict(self.facts), "run": self.run}


def read_journal(tree: Tree, path: str = OPEN) -> Journal | None:
    """The journal at OPEN or LAST; None where there is none. Raises NodeError for a damaged one."""
    if not tree.exists(path, follow=False):
        return None
    try:
        data = json.loads(tree.read_bytes(path).decode("utf-8"))
        if data["format"] != _FORMAT or data["phase"] not in PHASES or not isinstance(data["facts"], dict):
            raise ValueError("it is of another format")
        files = {str(name): _saved(saved) for name, saved in data["files"].items()}
        return Journal(data["phase"], files, data["facts"], str(data.get("run", "")))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise NodeError(
            "cannot be read as the journal of a change: %s" % error,
            where=tree.path(path),
            remedy="look whether the node's kubelet works as it should, and remove the file",
        ) from error


def _saved(data: Any) -> SavedFile:
    if data is None:
        return SavedFile(None)
    try:
        content = base64.b64decode(data["content"], validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from error
    return SavedFile(content, int(data["mode"]), int(data["uid"]), int(data["gid"]))


def save_files(tree: Tree, paths: Sequence[str]) -> dict[str, SavedFile]:
    """The files as they are now, by path.

    Raises InputError for a path that is not absolute, NodeError for what is there and cannot be saved.
    """
    files = {}
    for path in paths:
        if not os.path.isabs(path):
            raise InputError("%r is not an absolute path on the node" % path, where="files", remedy="begin it with a /")
        files[path] = _save(tree, path) if tree.exists(path, follow=False) else SavedFile(None)
    return files


def _save(tree: Tree, path: str) -> SavedFile:
    here = tree.path(path)
    try:
        status = os.stat(here)
    except FileNotFoundError as error:
        raise NodeError(
            "is a link to nothing, %s, and cannot be saved; nothing was changed" % os.path.realpath(here),
            where=here,
            remedy="remove the link, or make the file that it leads to, and run again",
        ) from error
    except OSError as error:
        raise NodeError(
            "cannot be saved: %s; nothing was changed" % error.strerror, where=here, remedy=remedy_for(error)
        ) from error
    return SavedFile(tree.read_bytes(path), stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid)


def write_journal(tree: Tree, journal: Journal, path: str = OPEN) -> None:
    """Put the journal on the node. Raises NodeError."""
    directory = tree.path(DIRECTORY)
    try:
        os.makedirs(directory, 0o700, exist_ok=True)
    except OSError as error:
        raise NodeError(
            "cannot be made: %s; nothing was changed" % error.strerror, where=directory, remedy=remedy_for(error)
        ) from error
    before = tree.content(path)
    replace_file(tree.path(path), _text(journal).encode("utf-8"), _MODE, before, backup=False, keep_mode=False)


def _text(journal: Journal) -> str:
    files = {
        path: None
        if saved.content is None
        else {**saved._asdict(), "content": base64.b64encode(saved.content).decode("ascii")}
        for path, saved in journal.files.items()
    }
    data = {
        "format": _FORMAT,
        "phase": journal.phase,
        "facts": dict(journal.facts),
        "run": journal.run,
        "files": files,
    }
    return json.dumps(data, indent=1, sort_keys=True) + "\n"


def remove_journal(tree: Tree, path: str = OPEN) -> None:
    """Take the journal away. Raises NodeError."""
    if tree.exists(path, follow=False):
        remove_file(tree.path(path), tree.read_bytes(path), backup=False)


def changed_files(tree: Tree, journal: Journal) -> list[str]:
    """The paths of the files that are no longer as the journal has them, in its order."""
    return [path for path, saved in journal.files.items() if save_files(tree, [path])[path] != saved]


def restore(tree: Tree, journal: Journal) -> list[str]:
    """Put the files back, to the byte, with mode and owner; give the paths of those that were different.

    Raises NodeError or RefusedError; those that are back by then stay so, and it can be called again.
    """
    paths = changed_files(tree, journal)
    for path in paths:
        saved, here = journal.files[path], tree.path(path)
        before = tree.content(path)
        if saved.content is not None:
            if not os.path.isdir(os.path.dirname(here)):
                raise RefusedError("its directory is gone", where=here, remedy="make it again and run again")
            owner = saved.uid, saved.gid
            replace_file(here, saved.content, saved.mode, before, backup=False, keep_mode=False, owner=owner)
        elif before is not None:
            remove_file(here, before, backup=False)
    return paths
