# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The cgroups of a trial start: one of its own at the top of each hierarchy, with limits, which nothing outlives.

Source: Linux's Documentation/admin-guide/cgroup-v1 and cgroup-v2.rst.
"""

from __future__ import annotations

import os
import time
from contextlib import contextmanager, suppress
from typing import Iterator, Sequence

from .._base.own_lock import try_lock
from .trial_plan import MOST_MEMORY, CgroupMount, UntriedError

TOP = "kubenode-kubelet-trial"
# Whoever sees a cgroup can lock it, and nobody but root can open this.
LOCK = "/run/kubenode-kubelet-trial.lock"
# A kubelet and a containerd that start have 60 threads.
_PROCESSES = 768
# Half of what a cgroup has by default.
_SHARES, _WEIGHT = 512, 50
_MEMORY = ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.max")
_LIMITS = {
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

    What a trial that was killed has left is removed first. Every process of a trial but those that it starts holds the
    lock, so a trial that was killed has it until the last of them has ended. memory: the limit in bytes. Raises
    UntriedError where they cannot be had.
    """

    def __init__(self, hierarchies: Sequence[CgroupMount], memory: int = MOST_MEMORY) -> None:
        self.tops = [os.path.join(hierarchy.path, TOP) for hierarchy in hierarchies]
        self.memory = memory
        self._hierarchies = hierarchies
        self._lock = -1

    def __enter__(self) -> TrialCgroups:
        try:
            self._lock = _locked(time.monotonic() + _PATIENCE)
            self._remove()
            for top in self.tops:
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
                self._remove()
            with suppress(OSError):
                os.unlink(LOCK)
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
            for name, limit in {**dict.fromkeys(_MEMORY, self.memory), **_LIMITS}.items():
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

    def met_limit(self) -> str:
        """Return which limit the processes have met, and by which the kernel has kept them from going on; empty for
        none."""
        places = [place for top in self.tops for place in (*_below(top), top)]
        if _counted(places, "memory.oom_control", "oom_kill") or _counted(places, "memory.events", "oom_kill"):
            # Of version 1, what there was at most. Memory is counted in steps of less than this.
            is_full = _counted(self.tops, "memory.max_usage_in_bytes") > self.memory - _STEP
            if is_full or _counted(places, "memory.events", "oom"):
                return "the trial has reached its limit of memory, %d MiB" % (self.memory >> 20)
            return "the node has no memory left"
        return (
            "the trial has reached its limit of %d processes" % _PROCESSES
            if _counted(places, "pids.events", "max")
            else ""
        )

    def _remove(self) -> None:
        """Remove the cgroups with all below them. Raises OSError."""
        deadline = time.monotonic() + _PATIENCE
        for top in self.tops:
            for place in [*_below(top), top]:
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


_STEP = 1 << 20


def _counted(places: Sequence[str], name: str, word: str = "") -> int:
    """Return what such files of cgroups say behind this word, all together."""
    counted = 0
    for place in places:
        with suppress(OSError), open(os.path.join(place, name), encoding="ascii") as file:
            counted += sum(int(words[-1]) for words in map(str.split, file) if words[:-1] == ([word] if word else []))
    return counted


def _locked(deadline: float) -> int:
    """Return a descriptor of the lock file, which is removed once it is not needed. Raises UntriedError."""
    while True:
        try:
            descriptor = try_lock(LOCK)
        except OSError as error:
            raise UntriedError("%s: %s" % (LOCK, error.strerror)) from error
        if descriptor is not None:
            return descriptor
        if time.monotonic() > deadline:
            raise UntriedError("another trial has been going on for long on this node")
        time.sleep(0.02)


def _below(top: str) -> Iterator[str]:
    """Return all cgroups below one, the deepest first."""
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
