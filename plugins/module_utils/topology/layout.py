# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A topology as nested boxes, for pictures: sockets hold NUMA nodes, these hold L3 caches, these hold cores."""

from __future__ import annotations

from typing import Any, Iterable

from ..cpuset import CPUSet
from .model import Group, Topology

# From the outside in.
LEVELS = ("socket", "numa_node", "l3_cache")


def layout(topology: Topology) -> list[dict[str, Any]]:
    """Boxes {"kind", "id", "cpus", "members"}; the innermost members are cores, as lists of CPU ids.

    CPUs that a level leaves out are in a box of that level whose id is None.
    """
    kinds = (topology.sockets, topology.numa_nodes, topology.caches)
    return _boxes(topology, topology.online, list(zip(LEVELS, kinds)))


def _boxes(topology: Topology, cpus: CPUSet, levels: list[tuple[str, tuple[Group, ...]]]) -> list[Any]:
    if not levels:
        return [list(core.cpus & cpus) for core in topology.cores if core.cpus & cpus]
    (kind, groups), inner = levels[0], levels[1:]
    boxes = []
    for number, part in _parts(groups, cpus):
        members = _boxes(topology, part, inner)
        boxes.append({"kind": kind, "id": number, "cpus": str(part), "members": members})
    return boxes


def _parts(groups: Iterable[Group], cpus: CPUSet) -> Iterable[tuple[int | None, CPUSet]]:
    left = cpus
    for group in groups:
        if left & group.cpus:
            yield group.id, left & group.cpus
            left = left - group.cpus
    if left:
        yield None, left
