# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How many CPUs containers use, by the counters of their cgroups.

Source: Linux's Documentation/admin-guide/cgroup-v1/cpuacct.rst, and usage_usec in cgroup-v2.rst.
"""

from __future__ import annotations

from typing import Callable, Container, Iterable, Mapping

from .._base.errors import NodeError
from .._base.tree import Tree, is_number
from .._cgroup.hierarchy import CPU, CPUACCT, Hierarchy
from ..policy.dynamic import SharedPeak
from ..policy.dynamic_state import Key, Use

_V1_FILE, _V2_FILE, _V2_MEMBER = "cpuacct.usage", "cpu.stat", "usage_usec "
_NANOSECONDS, _MICROSECONDS = 1e-9, 1e-6


def counting_hierarchy(tree: Tree) -> Hierarchy | None:
    """The hierarchy that counts the time of CPUs; None where none does."""
    for controller in (CPUACCT, CPU):
        try:
            hierarchy = Hierarchy(tree, controller)
        except NodeError:
            continue
        if controller == CPUACCT or hierarchy.version == 2:
            return hierarchy
    return None


class Meter:
    """Use between two passes.

    clock: seconds that do not jump. shortest: over less than so many seconds, the use is what it was before.
    """

    def __init__(self, clock: Callable[[], float], shortest: float) -> None:
        self._clock, self._shortest = clock, shortest
        # {cgroup: when it was read, seconds of CPU time, CPUs used}
        self._read: dict[str, tuple[float, float, float]] = {}
        self._peak = SharedPeak()

    def read(
        self,
        hierarchy: Hierarchy | None,
        roots: Iterable[str],
        containers: Mapping[str, Key],
        exclusive: Container[Key],
    ) -> Use:
        """What each of these containers has used on average since the last pass, and what the shared pool has at most
        in the last minute.

        roots: the cgroups of all pods. containers: {cgroup: container}, those that request exclusive CPUs. exclusive:
        those that have them.
        """
        if hierarchy is None:
            return Use()
        roots = tuple(roots)
        found = {path: read for path in (*roots, *containers) if (read := self._again(hierarchy, path)) is not None}
        self._read = found
        use: dict[Key, float] = {}
        for path, key in containers.items():
            if path in found:
                use[key] = use.get(key, 0.0) + found[path][2]
        everything = sum(found[path][2] for path in roots if path in found)
        shared = max(0.0, everything - sum(cpus for key, cpus in use.items() if key in exclusive))
        return Use(use, self._peak.add(self._clock(), shared))

    def _again(self, hierarchy: Hierarchy, path: str) -> tuple[float, float, float] | None:
        count, now = used(hierarchy, path), self._clock()
        if count is None:
            return None
        before = self._read.get(path)
        if before is None:
            return now, count, 0.0
        passed = now - before[0]
        return (now, count, max(0.0, count - before[1]) / passed) if passed >= self._shortest else before


def used(hierarchy: Hierarchy, path: str) -> float | None:
    """The seconds that a cgroup and all below it have used; None where it is not there."""
    if hierarchy.version == 1:
        text = hierarchy.quick_value(path, _V1_FILE) or ""
        return int(text) * _NANOSECONDS if is_number(text) else None
    for line in (hierarchy.quick_value(path, _V2_FILE) or "").splitlines():
        if line.startswith(_V2_MEMBER) and is_number(line[len(_V2_MEMBER) :]):
            return int(line[len(_V2_MEMBER) :]) * _MICROSECONDS
    return None
