# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The cgroups of a trial start: one of its own at the top of each hierarchy, with limits, which nothing outlives.

Source: Linux's Documentation/admin-guide/cgroup-v1 and cgroup-v2.rst.
"""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import contextmanager, suppress
from typing import Iterator, Sequence

from .trial_plan import CgroupMount, UntriedError

TOP = "kubenode-kubelet-trial"
# A kubelet and a containerd that start take 150 MB, and both together 60 threads.
_MEMORY = 768 << 20
_PROCESSES = 768
# Half of what a cgroup has by default.
_SHARES, _WEIGHT = 512, 50
_LIMITS = {
    "memory.limit_in_bytes": _MEMORY,
    "memory.memsw.limit_in_bytes": _MEMORY,
    "memory.max": _MEMORY,
    "memory.swap.max": 0,
    "pids.max": _PROCESSES,
    "cpu.shares": _SHARES,
    "cpu.weight": _WEIGHT,
}
# Of each version: without one of these files a trial could take all that a node has.
_NEEDED = ({"memory.limit_in_bytes", "pids.max"}, {"memory.max", "pids.max"})
# Without these of v2 no kubelet starts; its own start gives them to the cgroups below the topmost.
_CONTROLLERS = {"cpu", "cpuset", "memory", "pids"}
_PROCS = "cgroup.procs"
# Seconds, for another trial on the node, and for processes that are ending.
_PATIENCE = 60.0


@contextmanager
def about(path: str) -> Iterator[None]:
    """Let what the system refuses here be about this path. The kernel names none where a write or a call fails."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from error


class TrialCgroups:
    """A context: these cgroups are there, and are this trial's alone. Afterwards they are gone.

    What a trial that was killed has left is removed first. Raises UntriedError where they cannot be had.
    """

    def __init__(self, hierarchies: Sequence[CgroupMount]) -> None:
        self.tops = [os.path.join(hierarchy.path, TOP) for hierarchy in hierarchies]
        self._hierarchies = hierarchies
        self._lock = -1

    def __enter__(self) -> TrialCgroups:
        try:
            self._lock = _locked(self.tops[0], time.monotonic() + _PATIENCE)
            self._remove(self.tops[1:], [self.tops[0]])
            for top in self.tops[1:]:
                os.mkdir(top)
            self._limit()
        except OSError as error:
            self.__exit__()
            raise UntriedError(
                "no cgroups of its own can be made: %s: %s" % (error.filename, error.strerror)
            ) from error
        except UntriedError:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_error: object) -> None:
        if self._lock >= 0:
            with suppress(OSError):
                # The lock goes last.
                self._remove([*self.tops[1:], self.tops[0]])
            os.close(self._lock)
            self._lock = -1

    def enter(self) -> None:
        """Put this process into them."""
        for top in self.tops:
            # The kernel takes 0 for who writes.
            _write(os.path.join(top, _PROCS), "0")

    def _limit(self) -> None:
        limited = set()
        for hierarchy, top in zip(self._hierarchies, self.tops):
            for name in ("cpuset.cpus", "cpuset.mems"):
                # With v1 no process may come in before both are there.
                if hierarchy.kind == "cgroup" and os.path.exists(os.path.join(top, name)):
                    with open(os.path.join(hierarchy.path, name), encoding="ascii") as file:
                        _write(os.path.join(top, name), file.read().strip())
            for name, limit in _LIMITS.items():
                if os.path.exists(os.path.join(top, name)):
                    _write(os.path.join(top, name), str(limit))
                    limited.add(name)
        if len(self.tops) == 1 and self._hierarchies[0].kind == "cgroup2":
            with open(os.path.join(self.tops[0], "cgroup.controllers"), encoding="ascii") as file:
                missing = sorted(_CONTROLLERS - set(file.read().split()))
            if missing:
                raise UntriedError("the topmost cgroup does not hand on %s, as it does since a kubelet ran" % missing)
        if not any(needed <= limited for needed in _NEEDED):
            raise UntriedError("there are no cgroups with limits of memory and processes")

    @staticmethod
    def _remove(tops: Sequence[str], emptied: Sequence[str] = ()) -> None:
        """Remove cgroups with all below them. emptied: those that stay themselves. Raises OSError."""
        deadline = time.monotonic() + _PATIENCE
        for top in (*tops, *emptied):
            for place in [*_below(top), *(() if top in emptied else (top,))]:
                # With v1 what is frozen cannot even be killed.
                with suppress(OSError):
                    _write(os.path.join(place, "freezer.state"), "THAWED")
                while os.path.isdir(place):
                    try:
                        os.rmdir(place)
                    except OSError:
                        # Who was in it is still ending.
                        if time.monotonic() > deadline:
                            raise
                        time.sleep(0.01)


def _locked(top: str, deadline: float) -> int:
    """A descriptor of a cgroup that nobody else holds now, which is made. Raises OSError, UntriedError.

    The lock is on the cgroup itself, so that no file is left. Every process of a trial but the kubelet's holds it.
    """
    while True:
        with suppress(FileExistsError):
            os.mkdir(top)
        descriptor = os.open(top, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
        with suppress(BlockingIOError, FileNotFoundError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Who held it may have removed it meanwhile.
            if os.path.samestat(os.fstat(descriptor), os.stat(top)):
                return descriptor
        os.close(descriptor)
        if time.monotonic() > deadline:
            raise UntriedError("another trial has been going on for long on this node")
        time.sleep(0.02)


def _below(top: str) -> Iterator[str]:
    """All cgroups below one, the deepest first."""
    found = [top]
    for place in found:
        with suppress(OSError):
            found += [entry.path for entry in os.scandir(place) if entry.is_dir(follow_symlinks=False)]
    return reversed(found[1:])


def _write(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        with about(path):
            os.write(descriptor, text.encode("ascii"))
    finally:
        os.close(descriptor)
