# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Wait for a lock that programs agree on: flock(2) on a directory."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from typing import Callable

from .errors import NodeError

# Whoever may open the directory may hold the lock.
PATIENCE = 10.0
# How a directory is opened, whose descriptor holds the lock until it is closed.
OPENED = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_PAUSE = 0.05

Sleep = Callable[[float], None]


def take_lock(directory: int, here: str, exclusive: bool, patience: float, sleep: Sleep = time.sleep) -> None:
    """Lock an open directory; here: its path, for messages. exclusive: for changes, otherwise for reading alone.

    Raises NodeError where a different process holds it for longer than `patience` seconds.
    """
    kind = fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH
    end = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(directory, kind | fcntl.LOCK_NB)
            return
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EINTR):
                raise NodeError("cannot be locked: %s" % error.strerror, here) from error
        if time.monotonic() >= end:
            raise NodeError(
                "a different process has held its lock (flock) for %g seconds" % patience,
                where=here,
                remedy="look for that process in /proc/locks, and run again",
                kind="locked",
            )
        sleep(_PAUSE)
