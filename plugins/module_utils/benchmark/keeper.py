# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A process that ends all that a benchmark started, however the benchmark ends: also where it is killed."""

from __future__ import annotations

import ctypes
import fcntl
import os
import signal
from contextlib import suppress

from ..errors import NodeError, RefusedError
from .cgroups import BenchmarkCgroups

LOCK = "/run/kubenode-isolation-benchmark.lock"

_PR_SET_PDEATHSIG = 1
_IGNORED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE)


def die_with(parent: int) -> None:
    """Let the kernel kill this process when its parent ends. parent: the process that it is to have."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


class Keeper:
    """A context: one benchmark at a time on a node, and nothing of it is left behind.

    A process waits for the end of a pipe that this one holds open, then kills what is in the benchmark's cgroups and
    removes them. It is in none of these and in a session of its own, so that it outlives its parent.
    Raises RefusedError where another benchmark runs.
    """

    def __init__(self, cgroups: BenchmarkCgroups) -> None:
        self.cgroups = cgroups
        # Whether an earlier benchmark had left cgroups.
        self.found_leftovers = False
        self.pid = 0
        self._lock = self._pipe = -1

    def __enter__(self) -> Keeper:
        self._lock = _locked()
        try:
            self.found_leftovers = bool(self.cgroups.leftovers())
            self.cgroups.clear()
            self.cgroups.enable()
            waited, self._pipe = os.pipe()
            begun, begin = os.pipe()
            self.pid = os.fork()
            if not self.pid:
                self._keep(waited, begin)
            os.close(waited)
            os.close(begin)
            # Until it has a session of its own, what kills this process group would kill it, too.
            if not os.read(begun, 1):
                raise NodeError("the process that cleans up after the benchmark was ended from outside")
            os.close(begun)
        except BaseException:
            os.close(self._lock)
            raise
        return self

    def __exit__(self, *_error: object) -> None:
        self.leave()
        _pid, status = os.waitpid(self.pid, 0)
        if status:
            raise NodeError(
                "processes of the benchmark do not end", self.cgroups.leftovers()[0] if self.cgroups.leftovers() else ""
            )

    def leave(self) -> None:
        """Let go of what only this process is to hold; also in each process that is forked off it."""
        for descriptor in (self._pipe, self._lock):
            if descriptor >= 0:
                os.close(descriptor)
        self._pipe = self._lock = -1

    def _keep(self, waited: int, begin: int) -> None:
        """Never returns. The lock stays locked until this process ends, too. begin: where to write that it is ready."""
        status = 1
        try:
            os.close(self._pipe)
            os.setsid()
            for number in _IGNORED:
                signal.signal(number, signal.SIG_IGN)
            os.write(begin, b"x")
            os.close(begin)
            # Whoever reads what the benchmark prints must not wait for this process.
            nothing = os.open(os.devnull, os.O_RDWR)
            for descriptor in (0, 1, 2):
                os.dup2(nothing, descriptor)
            os.chdir("/")
            while os.read(waited, 1):
                pass
            self.cgroups.clear()
            self.cgroups.restore()
            with suppress(OSError):
                os.unlink(LOCK)
            status = 0
        finally:
            os._exit(status)


def _locked() -> int:
    """A descriptor of the lock file, which is removed once it is not needed."""
    while True:
        descriptor = os.open(LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(descriptor).st_ino == os.stat(LOCK).st_ino:
                return descriptor
        except BlockingIOError as error:
            os.close(descriptor)
            raise RefusedError("another benchmark runs on this node", LOCK, "wait until it has ended") from error
        except FileNotFoundError:
            pass  # its owner has just removed it
        os.close(descriptor)
