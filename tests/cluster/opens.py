# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tells which files the processes of its own process ids open and write: opens.py PATH...

Whatever mount a process reaches them by, as whole file systems are marked: those of the given paths. It begins when it
has printed a line, and ends when its input does; then it prints what it has seen, each as DEVICE:INODE PATH, as JSON.
Source: fanotify(7).
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import struct
import sys
from contextlib import suppress

_CLOEXEC, _NONBLOCK, _UNLIMITED_QUEUE = 0x1, 0x2, 0x10
_MARK_ADD, _MARK_FILESYSTEM, _AT_FDCWD = 0x1, 0x100, -100
_MODIFY, _CLOSE_WRITE, _OPEN, _ONDIR, _OVERFLOW = 0x2, 0x8, 0x20, 0x40000000, 0x4000
_EVENT = struct.Struct("=IBBHQii")


def _checked(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def main() -> None:
    library = ctypes.CDLL(None, use_errno=True)
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
    queue = _checked(library.fanotify_init(_CLOEXEC | _NONBLOCK | _UNLIMITED_QUEUE, flags))
    mask = ctypes.c_uint64(_OPEN | _MODIFY | _CLOSE_WRITE | _ONDIR)
    for path in sys.argv[1:]:
        mark = library.fanotify_mark(queue, _MARK_ADD | _MARK_FILESYSTEM, mask, _AT_FDCWD, path.encode())
        _checked(mark)
    opened: set[str] = set()
    written: set[str] = set()
    print("begun", flush=True)
    goes_on = True
    while goes_on:
        ready = select.select([queue, 0], [], [])[0]
        # What was done before the input ended is still read.
        goes_on = 0 not in ready
        while _take(queue, opened, written):
            pass
    json.dump({"opened": sorted(opened), "written": sorted(written)}, sys.stdout)


def _take(queue: int, opened: set[str], written: set[str]) -> bool:
    """Add what has been done; whether there may be more."""
    try:
        events = os.read(queue, 1 << 16)
    except BlockingIOError:
        return False
    at = 0
    while at < len(events):
        length, _version, _reserved, _size, mask, descriptor, pid = _EVENT.unpack_from(events, at)
        at += length
        if mask & _OVERFLOW:
            raise OverflowError("events were lost")
        with suppress(OSError):
            # The kernel gives processes outside no id here.
            if pid and pid != os.getpid():
                status = os.fstat(descriptor)
                # Where its mount is gone meanwhile, the path begins at that.
                path = "%d:%d %s" % (status.st_dev, status.st_ino, os.readlink("/proc/self/fd/%d" % descriptor))
                (written if mask & (_MODIFY | _CLOSE_WRITE) else opened).add(path)
                if mask & _OPEN:
                    opened.add(path)
        os.close(descriptor)
    return True


if __name__ == "__main__":
    main()
