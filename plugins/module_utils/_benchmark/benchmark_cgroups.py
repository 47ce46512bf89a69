# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The cgroups of a benchmark: made below one of its own as the kubelet makes those of pods, emptied and removed.

With v1 that is a directory of the same name where cpuset and cpu are, with v2 one directory.
"""

from __future__ import annotations

import errno
import os
import signal
import time
from contextlib import suppress
from typing import Iterator

from .._base.errors import PERMISSION, NodeError
from .._base.tree import Tree
from .._cgroup.hierarchy import CPU, CPUS, CPUSET, MEMS, find_controller
from .._isolation.bandwidth import new_weight
from ..cpuset import CPUSet
from .benchmark_plan import PERIOD

TOP = "kubenode-isolation-benchmark"

_PROCESSES = "cgroup.procs"
_CONTROL = "cgroup.subtree_control"
_KILL = "cgroup.kill"
_SHARES, _QUOTA, _PERIOD = "cpu.shares", "cpu.cfs_quota_us", "cpu.cfs_period_us"
_WEIGHT, _MAX = "cpu.weight", "cpu.max"
_PATIENCE = 10.0
_NEEDED = (CPUSET, CPU)


class BenchmarkCgroups:
    """Where the cgroups are. Raises NodeError where a controller is missing or the two are not of one version.

    Attributes: version, 1 or 2; mounts: the directories, that of cpuset first, and that of cpu where it is another.
    """

    def __init__(self, tree: Tree) -> None:
        self.version, cpuset = find_controller(tree, CPUSET)
        version, cpu = find_controller(tree, CPU)
        if version != self.version:
            raise NodeError(
                "the controller cpuset is of cgroup v%d, and cpu of v%d" % (self.version, version),
                where=tree.path(cpuset),
                remedy="boot the node with all controllers in v2 (systemd.unified_cgroup_hierarchy=1)",
            )
        if version == 1 and not tree.exists("%s/%s" % (cpu, _QUOTA)):
            raise NodeError("the kernel has no CFS bandwidth", tree.path(cpu), "boot one with CONFIG_CFS_BANDWIDTH")
        self.mounts = [tree.path(mount) for mount in dict.fromkeys((cpuset, cpu))]
        self._enabled: list[str] = []

    # --- making ----------------------------------------------------------------------------------

    def make(self, path: str, cpus: CPUSet, shares: int, quota: int | None) -> None:
        """Make a cgroup below one that is there. quota: microseconds of each period, None for no limit."""
        for mount in self.mounts:
            if self.version == 2 and os.path.dirname(path):
                self._enable(mount, os.path.dirname(path))
            with _explained(os.path.join(mount, path)):
                os.mkdir(os.path.join(mount, path))
        mems = self._read(self.mounts[0], os.path.dirname(path), MEMS if self.version == 1 else MEMS + ".effective")
        # The kernel lets no process in before both are there.
        self._write(self.mounts[0], path, MEMS, mems)
        self._write(self.mounts[0], path, CPUS, str(cpus))
        if self.version == 1:
            self._write(self.mounts[-1], path, _SHARES, str(shares))
            self._write(self.mounts[-1], path, _PERIOD, str(PERIOD))
            self._write(self.mounts[-1], path, _QUOTA, str(-1 if quota is None else quota))
        else:
            self._write(self.mounts[0], path, _WEIGHT, str(new_weight(shares)))
            self._write(self.mounts[0], path, _MAX, "%s %d" % ("max" if quota is None else quota, PERIOD))

    def enable(self) -> None:
        """Let cgroups below the topmost have both controllers, on v2; restore() takes that back."""
        if self.version == 2:
            self._enabled = self._enable(self.mounts[0], "")

    def _enable(self, mount: str, path: str) -> list[str]:
        enabled = self._read(mount, path, _CONTROL).split()
        missing = [name for name in _NEEDED if name not in enabled]
        if missing:
            self._write(mount, path, _CONTROL, " ".join("+" + name for name in missing))
        return missing

    def enter(self, path: str) -> None:
        """Put this process into a cgroup, with all the cgroup's CPUs."""
        for mount in self.mounts:
            self._write(mount, path, _PROCESSES, str(os.getpid()))
        # The kernel also keeps a process to the affinity that it was started with, as below an sshd with CPUAffinity=.
        os.sched_setaffinity(0, CPUSet.parse(self._read(self.mounts[0], path, CPUS)))

    # --- ending ----------------------------------------------------------------------------------

    def leftovers(self) -> list[str]:
        """Return what an earlier benchmark that was killed has left."""
        return [place for place in (os.path.join(mount, TOP) for mount in self.mounts) if os.path.isdir(place)]

    def clear(self, path: str = TOP, after: float = _PATIENCE) -> None:
        """Kill what is in a cgroup and all below it, and remove them. Raises NodeError where that does not end."""
        deadline = time.monotonic() + after
        while sum(self._clear_once(os.path.join(mount, path)) for mount in self.mounts):
            if time.monotonic() > deadline:
                raise NodeError(
                    "its processes do not end, and it cannot be removed",
                    where=os.path.join(self.mounts[0], path),
                    remedy="look at what they wait for (state D in ps)",
                )
            time.sleep(0.002)

    def restore(self) -> None:
        """Take back what enable() has done."""
        if self._enabled:
            with suppress(NodeError):
                self._write(self.mounts[0], "", _CONTROL, " ".join("-" + name for name in self._enabled))
            self._enabled = []

    def _clear_once(self, top: str) -> bool:
        """Kill and remove what is there; whether something still is."""
        # All at once, also what forks meanwhile; kernels before 5.14 have no such file. It spares nobody.
        if self.version == 2 and not self._is_in(top):
            with suppress(NodeError):
                self._write(top, "", _KILL, "1")
        for place in _below(top):
            with suppress(OSError), open(os.path.join(place, _PROCESSES), encoding="ascii") as processes:
                for pid in processes.read().split():
                    if int(pid) not in (0, os.getpid()):
                        with suppress(ProcessLookupError):
                            os.kill(int(pid), signal.SIGKILL)
            with suppress(OSError):
                os.rmdir(place)
        return os.path.isdir(top)

    @staticmethod
    def _is_in(top: str) -> bool:
        """Return whether this process is in a cgroup or below it."""
        for place in _below(top):
            with suppress(OSError), open(os.path.join(place, _PROCESSES), encoding="ascii") as processes:
                if str(os.getpid()) in processes.read().split():
                    return True
        return False

    # --- files -----------------------------------------------------------------------------------

    def _read(self, mount: str, path: str, name: str) -> str:
        place = os.path.join(mount, path, name)
        with _explained(place), open(place, encoding="ascii") as file:
            return file.read().strip()

    def _write(self, mount: str, path: str, name: str, value: str) -> None:
        place = os.path.join(mount, path, name)
        with _explained(place, value):
            descriptor = os.open(place, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                os.write(descriptor, value.encode("ascii") + b"\n")
            finally:
                os.close(descriptor)


def _below(top: str) -> Iterator[str]:
    """Return a cgroup and all below it, the deepest first."""
    found = [top]
    for place in found:
        with suppress(OSError):
            found += [entry.path for entry in os.scandir(place) if entry.is_dir(follow_symlinks=False)]
    return reversed(found)


class _explained:  # noqa: N801 # it stands where a function would
    """A context in which an error of the system becomes a NodeError about a file."""

    def __init__(self, place: str, value: str = "") -> None:
        self.place, self.value = place, value

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: object, _trace: object) -> None:
        if isinstance(error, OSError):
            what = "the kernel refuses %s: " % self.value if self.value else ""
            if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
                remedy = "run it as root (become: true), where cgroups can be written"
                raise NodeError("%s%s" % (what, error.strerror), self.place, remedy, PERMISSION) from error
            raise NodeError("%s%s" % (what, error.strerror), self.place) from error
