# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Change several files, all or none."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import NamedTuple, Sequence

from .errors import CPUManagerError, InputError, NodeError, option
from .files import make_directory, remove_directories, remove_file, remove_old_backups, replace_file
from .writable import why_not_writable


class FileChange(NamedTuple):
    """A file, by its path here, and its content before (None: there is none) and after (None: it is removed).

    mode: that of a new file, and where it is not kept, of any.
    """

    path: str
    before: bytes | None
    after: bytes | None
    mode: int
    keep_mode: bool = True


def check_changes(changes: Sequence[FileChange], backup: bool, keep: int) -> None:
    """What can be known before anything is written. Raises InputError; NodeError or RefusedError of the first file."""
    if keep < 0:
        raise InputError(
            "%d is not a number of files" % keep, where=option("backup_keep"), remedy="give 0 to keep all, or more"
        )
    for change in changes:
        contents = [change.before if backup else None, change.after]
        error = why_not_writable(change.path, [len(content) for content in contents if content is not None])
        if error is not None:
            raise error


def make_changes(changes: Sequence[FileChange], backup: bool, keep: int) -> dict[str, str]:
    """Make the changes that check_changes() has checked; give the paths of the backups by those of the files.

    Where one fails, those before it are put back, and their backups removed; directories are made where they are
    missing. Of each file's backups the newest `keep` stay, 0: all. Raises as replace_file() does.
    """
    done: list[_Done] = []
    made: list[str] = []
    try:
        for change in changes:
            made += make_directory(os.path.dirname(change.path))
            status = None
            with suppress(OSError):
                status = os.stat(change.path)
            done.append(_Done(change, status, _make(change, backup)))
    except CPUManagerError as error:
        lost = [str(failure) for step in reversed(done) for failure in _put_back(step)]
        remove_directories(made)
        if lost:
            both = NodeError(
                "; ".join([error.problem, *lost]), remedy="put back by hand what was changed, from its backup (*~)"
            )
            both.where = error.where
            raise both from error
        raise
    backups = {step.change.path: step.backup for step in done if step.backup is not None}
    for path in backups.values():
        remove_old_backups(path, keep)
    return backups


class _Done(NamedTuple):
    """A change that was made, the status of the file before it, and its backup."""

    change: FileChange
    status: os.stat_result | None
    backup: str | None


def _make(change: FileChange, backup: bool) -> str | None:
    if change.after is not None:
        return replace_file(change.path, change.after, change.mode, change.before, backup, change.keep_mode)
    return None if change.before is None else remove_file(change.path, change.before, backup)


def _put_back(done: _Done) -> list[CPUManagerError]:
    """Take one change back, and remove its backup; give what went wrong."""
    change, status, backup = done
    try:
        if change.before is not None and status is not None:
            replace_file(
                change.path,
                change.before,
                stat.S_IMODE(status.st_mode),
                change.after,
                backup=False,
                keep_mode=False,
                owner=(status.st_uid, status.st_gid),
            )
        elif change.after is not None:
            remove_file(os.path.realpath(change.path), change.after, backup=False)
        if backup is not None and change.before is not None:
            remove_file(backup, change.before, backup=False)
    except CPUManagerError as error:
        return [error]
    return []
