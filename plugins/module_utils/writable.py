# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether files could be written, found out before anything is: a probe that changes nothing."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import sys
from contextlib import suppress
from typing import Iterable, Sequence

from .errors import CPUManagerError, NodeError
from .files import cannot_write, not_regular
from .tree import Tree

# Room for what a change adds to a file.
_GROWTH = 4096

# FS_IOC_GETFLAGS, and its bits, as on x86 and ARM of 64 bits. Source: include/uapi/linux/fs.h in Linux.
_GET_FLAGS = 0x80086601
_FLAGS = {0x10: ("immutable", "i"), 0x20: ("append-only", "a")}


def unwritable(tree: Tree, paths: Iterable[str]) -> list[CPUManagerError]:
    """Why files of a node cannot be replaced with a backup: one error for each of `paths` for which that is so."""
    reasons = (_why_not_on_node(tree, path) for path in paths)
    return [reason for reason in reasons if reason is not None]


def _why_not_on_node(tree: Tree, path: str) -> CPUManagerError | None:
    try:
        here = tree.path(path)
    except CPUManagerError as error:
        return error
    size = 0
    with suppress(OSError):
        size = os.stat(here).st_size
    return why_not_writable(here, (size, size + _GROWTH))


def why_not_writable(path: str, sizes: Sequence[int] = ()) -> CPUManagerError | None:
    """Why the file `path` cannot be made, replaced or removed; None where nothing is known that prevents it.

    sizes: of the files that are written on the way, in bytes: the new content and the backup. A missing directory is
    no obstacle, where it could be made.
    """
    path = os.path.realpath(path)
    try:
        return _why_not(path, sizes)
    except OSError as error:
        return cannot_write(path, error)


def _why_not(path: str, sizes: Sequence[int]) -> CPUManagerError | None:
    status = None
    with suppress(FileNotFoundError):
        status = os.lstat(path)
    if status is not None and not stat.S_ISREG(status.st_mode):
        return not_regular(path)
    directory = os.path.dirname(path)
    while not os.path.lexists(directory):
        directory = os.path.dirname(directory)
    if not os.path.isdir(directory):
        return _os_error(path, errno.ENOTDIR)
    space = os.statvfs(directory)
    if space.f_flag & os.ST_RDONLY:
        return _os_error(path, errno.EROFS)
    for place in (path, directory) if status is not None else (directory,):
        flag = _flag(place)
        if flag is not None:
            name, letter = flag
            return NodeError(
                "cannot be written: %s is %s; nothing was written" % (place, name),
                where=path,
                remedy="run chattr -%s %s" % (letter, place),
            )
    user = os.geteuid()
    # The owner of a file is kept, which takes root where it is another.
    if not os.access(directory, os.W_OK | os.X_OK) or (user and status is not None and status.st_uid != user):
        return _os_error(path, errno.EACCES)
    return None if _has_room(space, sizes) else _os_error(path, errno.ENOSPC)


def _has_room(space: os.statvfs_result, sizes: Sequence[int]) -> bool:
    """Some file systems count no blocks or no files, and say 0 in all."""
    blocks = sum(-(-size // space.f_frsize) for size in sizes)
    free, files = (space.f_bfree, space.f_ffree) if os.geteuid() == 0 else (space.f_bavail, space.f_favail)
    return (not space.f_blocks or blocks <= free) and (not space.f_files or len(sizes) <= files)


def _flag(path: str) -> tuple[str, str] | None:
    """The attribute that protects a file or directory even from root, with its letter; None where none is seen."""
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            flags = int.from_bytes(fcntl.ioctl(descriptor, _GET_FLAGS, bytes(8))[:4], sys.byteorder)
        finally:
            os.close(descriptor)
        return next((names for bit, names in _FLAGS.items() if flags & bit), None)
    return None


def _os_error(path: str, number: int) -> NodeError:
    return cannot_write(path, OSError(number, os.strerror(number)))
