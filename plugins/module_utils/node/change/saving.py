# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Saves the files of a change in its journal, and puts them back."""

from __future__ import annotations

import base64
import os
import stat
from typing import Sequence

from ...errors import InputError, NodeError, RefusedError
from ...files import remedy_for, remove_file, replace_file
from ...tree import Tree
from ..places import OPEN
from .journal import Journal, SavedFile, journal_file


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
    files = {
        path: None
        if saved.content is None
        else {**saved._asdict(), "content": base64.b64encode(saved.content).decode("ascii")}
        for path, saved in journal.files.items()
    }
    data = {"phase": journal.phase, "facts": dict(journal.facts), "run": journal.run, "files": files}
    file = journal_file(path)
    file.replace(tree, file.text_of(data), tree.content(path))


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
