# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How far a look at many nodes is, as the processes that look count it together in one file."""

from __future__ import annotations

import os
import struct
from contextlib import suppress
from hashlib import sha256

_RECORD = struct.Struct("<d")
# A line at most so often, in seconds.
_SECONDS = 10.0


def run_of(process: int) -> str:
    """The name of the run of a process: another machine, or a container, may have a process of the same number."""
    return sha256(("%s %d" % (os.uname().nodename, process)).encode("utf-8", "surrogateescape")).hexdigest()[:16]


class Progress:
    """Counts the nodes of one run. Each process adds a record, the time, to a file: the system keeps these apart."""

    def __init__(self, directory: str, run: str, total: int) -> None:
        self._path = os.path.join(directory, ".progress-%s" % run)
        self._total = total

    def advance(self, now: float) -> str:
        """Count one more node. Returns a line for people, empty where it is not yet time for one."""
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
            descriptor = os.open(self._path, flags, 0o600)
            try:
                os.write(descriptor, _RECORD.pack(now))
                size = os.fstat(descriptor).st_size
                first = os.pread(descriptor, _RECORD.size, 0)
                before = os.pread(descriptor, _RECORD.size, max(size - 2 * _RECORD.size, 0))
            finally:
                os.close(descriptor)
        except OSError:
            return ""  # it is only for information
        done = size // _RECORD.size
        if done >= self._total:
            self.end()
            return ""
        (start,), (last,) = _RECORD.unpack(first), _RECORD.unpack(before)
        # A clock may be set back, and the file may have been that of another program.
        if not 0 <= start <= now or (now - start) // _SECONDS <= (last - start) // _SECONDS:
            return ""
        left = (now - start) / done * (self._total - done)
        return "%d of %d nodes (%d %%), about %s left" % (done, self._total, 100 * done // self._total, _spoken(left))

    def end(self) -> None:
        """Forget the run, also where nodes were not counted."""
        with suppress(OSError):
            os.unlink(self._path)


def _spoken(seconds: float) -> str:
    if seconds < 90:
        return "%d seconds" % max(seconds, 2)
    return "%d minutes" % round(seconds / 60)
