# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A small disk in memory, in a mount namespace of its own: nobody but the calling process sees it."""

from __future__ import annotations

import ctypes
import errno
import os
from functools import lru_cache
from typing import Any

from .child import Child

_NEWNS = 0x20000
_RDONLY, _REMOUNT, _REC, _PRIVATE = 0x1, 0x20, 0x4000, 0x40000


def own_namespace() -> None:
    """Give this process mounts of its own: from now on, no other process sees what this one mounts, nor keeps it.
    Raises OSError."""
    _check(_libc().unshare(_NEWNS))
    _mount("none", "/", None, _REC | _PRIVATE, None)


def mount_disk(directory: str, pages: int, files: int) -> None:
    """Mount a disk of so many pages for so many files. Raises OSError."""
    # The directory itself counts as a file.
    options = "size=%d,nr_inodes=%d,mode=755" % (pages * os.sysconf("SC_PAGESIZE"), files + 1)
    _mount("tmpfs", directory, "tmpfs", 0, options)


def make_read_only(directory: str) -> bool:
    """Make a mounted directory read-only; return false while somebody has a file open for writing there. Raises
    OSError."""
    try:
        _mount("none", directory, None, _REMOUNT | _RDONLY, None)
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
        return False
    return True


def unmount(directory: str) -> None:
    """Take the disk away. Raises OSError."""
    _check(_libc().umount(directory.encode()))


@lru_cache(maxsize=None)
def why_not() -> str:
    """Return why nothing can be mounted here; empty when it can."""

    def try_it() -> str:
        try:
            own_namespace()
            mount_disk("/tmp", 1, 1)
        except OSError as error:
            return "cannot mount a disk here: %s" % error.strerror
        return ""

    return str(Child(try_it).answer())


def _mount(source: str, target: str, kind: str | None, flags: int, options: str | None) -> None:
    texts = [None if text is None else text.encode() for text in (source, target, kind, options)]
    _check(_libc().mount(*texts[:3], ctypes.c_ulong(flags), texts[3]))


@lru_cache(maxsize=None)
def _libc() -> Any:
    return ctypes.CDLL(None, use_errno=True)


def _check(result: int) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
