# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which CPUs to add to a container's set, and which to take from it: near what it has. Pure.

A unit is what is added or taken at a time: a CPU, or with whole cores the threads of a core.
"""

from __future__ import annotations

from typing import Iterable, Mapping, NamedTuple

from ..cpuset import count_bits, iterate_bits
from ..topology.kubelet_view import CPUTopology


class Near(NamedTuple):
    """What is near what on a machine.

    distances: {NUMA node: {NUMA node: distance}}, may be empty. whole_cores: a unit is a core.
    """

    topology: CPUTopology
    distances: Mapping[int, Mapping[int, int]]
    whole_cores: bool

    def unit_to_add(self, held: int, free: int, most: int) -> int:
        """The mask of the next unit, of at most so many of the free CPUs; 0 where there is none.

        1. In the NUMA nodes that the set is in; in others only if these have none, the nearest first.
        2. A thread of a core that it has a part of, then a core that is free as a whole, then any.
        3. In an L3 cache that it is in.
        4. The lowest id.
        """
        if not free or most < 1:
            return 0
        nodes = self.topology.numa_nodes
        own = groups_of(nodes, held)
        unit = self._unit_in(self._nodes(own), held, free, most)
        if unit:
            return unit
        for node in sorted((node for node in nodes if not own >> node & 1), key=lambda node: self._way(own, node)):
            unit = self._unit_in((node,), held, free, most)
            if unit:
                return unit
        return 0

    def unit_to_take(self, admitted: int, given: int) -> int:
        """The mask of the next unit of the CPUs that were added to a first set; 0 where there is none.

        1. In the NUMA node that is farthest from the first set.
        2. Of a core that has no CPU of the first set, and as few others as possible.
        3. The highest id.
        """
        if not given:
            return 0
        nodes, home = self.topology.numa_nodes, groups_of(self.topology.numa_nodes, admitted)
        found = [node for node, mask in nodes.items() if mask & given]
        found.sort(key=lambda node: (not home >> node & 1, self._way(home, node)))
        here = nodes[found[-1]]
        cores = [
            (not mask & admitted, -count_bits(mask & given), number, mask & given & here)
            for number, mask in self.topology.inside("numa_nodes", "cores")[found[-1]]
            if mask & given & here and not (self.whole_cores and mask & ~given)
        ]
        if not cores:
            return 0
        unit = max(cores)[3]
        return unit if self.whole_cores else 1 << unit.bit_length() - 1

    def _nodes(self, numbers: int) -> list[int]:
        return [node for node in self.topology.numa_nodes if numbers >> node & 1]

    def _way(self, own: int, node: int) -> tuple[int, bool, int]:
        """How far a NUMA node is from others."""
        topology = self.topology
        rows = [self.distances.get(number, {}).get(node, 0) for number in self._nodes(own)]
        sockets = groups_of(topology.sockets, mask_of(topology.numa_nodes, own))
        shares_socket = bool(groups_of(topology.sockets, topology.numa_nodes[node]) & sockets)
        return min(rows, default=0), not shares_socket, node

    def _unit_in(self, nodes: Iterable[int], held: int, free: int, most: int) -> int:
        topology, best = self.topology, None
        caches = mask_of(topology.uncore_caches, groups_of(topology.uncore_caches, held))
        for node in nodes:
            here = free & topology.numa_nodes[node]
            if not here:
                continue
            for number, core in topology.inside("numa_nodes", "cores")[node]:
                usable = core & here
                if not usable or (self.whole_cores and (usable != core or count_bits(core) > most)):
                    continue
                rank = 0 if core & held else 1 if usable == core else 2
                order = (rank, not core & caches, number, usable)
                if best is None or order < best:
                    best = order
        if best is None:
            return 0
        return best[3] if self.whole_cores else best[3] & -best[3]


def groups_of(groups: Mapping[int, int], mask: int) -> int:
    """Which groups of CPUs, such as NUMA nodes, a mask touches: a mask of their ids."""
    return sum(1 << number for number, cpus in groups.items() if cpus & mask)


def mask_of(groups: Mapping[int, int], numbers: int) -> int:
    """The CPUs of the groups whose ids are the bits of `numbers`."""
    mask = 0
    for number in iterate_bits(numbers):
        mask |= groups[number]
    return mask
