# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hold a lock that no other user can hold: flock(2) on a file that only its owner can open."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from contextlib import suppress


def try_lock(path: str) -> int | None:
    """Return a descriptor that holds the lock of a file until it is closed; None where a different process holds it.

    The file is made, in a directory where nobody can remove it but its owner and root. What another user has put there
    is removed. Who has the lock may remove the file before he closes it. Raises OSError.
    """
    above, name = os.path.split(path)
    directory = os.open(above, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        status = os.fstat(directory)
        if not _is_ours(status) or (
            status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not status.st_mode & stat.S_ISVTX
        ):
            raise PermissionError(errno.EPERM, "other users may replace what is there", above)
        while True:
            descriptor = _opened_alone(directory, name)
            is_held = False
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # Who held it may have removed it meanwhile.
                with suppress(FileNotFoundError):
                    there = os.stat(name, dir_fd=directory, follow_symlinks=False)
                    is_held = os.path.samestat(os.fstat(descriptor), there)
                if is_held:
                    return descriptor
            except BlockingIOError:
                return None
            finally:
                if not is_held:
                    os.close(descriptor)
    finally:
        os.close(directory)


def _opened_alone(directory: int, name: str) -> int:
    """Return a descriptor of a file that no other user can open. Raises OSError."""
    with suppress(FileNotFoundError):
        if not _is_alone(os.stat(name, dir_fd=directory, follow_symlinks=False)):
            os.unlink(name, dir_fd=directory)
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(name, flags, 0o600, dir_fd=directory)
    if not _is_alone(os.fstat(descriptor)):
        os.close(descriptor)
        raise PermissionError(errno.EPERM, "other users may open it", name)
    return descriptor


def _is_ours(status: os.stat_result) -> bool:
    return status.st_uid in (0, os.geteuid())


def _is_alone(status: os.stat_result) -> bool:
    return _is_ours(status) and stat.S_ISREG(status.st_mode) and not status.st_mode & (stat.S_IRWXG | stat.S_IRWXO)
