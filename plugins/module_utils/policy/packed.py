# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Take CPUs packed: whole NUMA nodes and sockets first, then uncore caches, cores and single CPUs.

Source: pkg/kubelet/cm/cpumanager/cpu_assignment.go (takeByTopologyNUMAPacked).
"""

from __future__ import annotations

from typing import Iterable, Iterator, Tuple

from ..cpuset import count_bits, lowest_bits
from ..topology.kubelet_view import CPUTopology

PACKED = "packed"
SPREAD = "spread"

# The one switch between predicting the kubelet, its oddities included, and deciding ourselves: SAFE never takes a
# CPU that is not available, and gives an answer where the kubelet would search for ever.
EXACT = True
SAFE = False


class TakeError(Exception):
    """The kubelet cannot take these CPUs; the message is the kubelet's own."""


class EndlessDistributionError(Exception):
    """The kubelet would search for ever here, holding its lock: no container of the node could start any more."""


# An element of the topology in a sorted list: (its free CPUs, its id, its mask).
Element = Tuple[int, int, int]


def take_packed_mask(
    topology: CPUTopology,
    available: int,
    count: int,
    strategy: str,
    prefer_uncore: bool = False,
    exact: bool = EXACT,
) -> int:
    # 1. Nothing asked, or more than there is.
    if count < 1:
        return 0
    require(topology, available, count)
    take = Take(topology, available & topology.cpus, count, exact)
    # 2. Whole NUMA nodes and sockets, the bigger of the two last.
    if take.numa_first:
        take.whole_numa_nodes()
        take.whole_sockets()
    else:
        take.whole_sockets()
        take.whole_numa_nodes()
    # 3. Uncore caches, as far as that works out.
    if prefer_uncore and take.need:
        take.uncore_caches()
    # 4. Whole cores.
    if strategy == PACKED and take.need:
        take.whole_cores()
    # 5. Single CPUs.
    if take.need:
        take.single_cpus(strategy)
    if take.need:
        raise TakeError("failed to allocate cpus")
    return take.result


def require(topology: CPUTopology, available: int, count: int) -> None:
    if count > count_bits(available & topology.cpus):
        raise TakeError(
            "not enough cpus available to satisfy request: requested=%d, available=%d" % (count, count_bits(available))
        )


class Take:
    """One take in progress.

    The order of all sorting is: fewer free CPUs first, then the lower id; elements without a free CPU
    are left out. Sockets are listed by NUMA node and cores by socket when there are at least as many
    sockets as NUMA nodes ("NUMA first"), otherwise NUMA nodes by socket and cores by NUMA node. An element
    that reaches into two outer ones is listed twice.
    """

    __slots__ = ("exact", "free", "need", "numa_first", "result", "topology")

    def __init__(self, topology: CPUTopology, free: int, need: int, exact: bool) -> None:
        self.topology = topology
        self.exact = exact
        self.free = free
        self.need = need
        self.result = 0
        self.numa_first = topology.num_sockets >= topology.num_numa_nodes

    def sorted_numa_nodes(self) -> list[Element]:
        if self.numa_first:
            return self._sorted(self.topology.numa_nodes.items())
        inside = self.topology.inside("sockets", "numa_nodes")
        return [node for _free, socket, _mask in self.sorted_sockets() for node in self._sorted(inside[socket])]

    def sorted_sockets(self) -> list[Element]:
        if not self.numa_first:
            return self._sorted(self.topology.sockets.items())
        inside = self.topology.inside("numa_nodes", "sockets")
        return [socket for _free, node, _mask in self.sorted_numa_nodes() for socket in self._sorted(inside[node])]

    def sorted_uncore_caches(self) -> list[Element]:
        inside = self.topology.inside("numa_nodes", "uncore_caches")
        return [cache for _free, node, _mask in self.sorted_numa_nodes() for cache in self._sorted(inside[node])]

    def cores_in_order(self) -> Iterator[list[tuple[int, int]]]:
        """The (id, mask) of the cores of each socket or NUMA node, these in order, the cores by id."""
        if self.numa_first:
            inside, order = self.topology.inside("sockets", "cores"), self.sorted_sockets()
        else:
            inside, order = self.topology.inside("numa_nodes", "cores"), self.sorted_numa_nodes()
        return (inside[number] for _free, number, _mask in order)

    def _sorted(self, masks: Iterable[tuple[int, int]]) -> list[Element]:
        free = self.free
        found = [(count_bits(here), number, mask) for number, mask in masks if (here := free & mask)]
        found.sort()
        return found

    def whole_numa_nodes(self) -> None:
        if self.need >= self.topology.smallest_numa_node:
            self._take_whole(self.sorted_numa_nodes())

    def whole_sockets(self) -> None:
        if self.need >= self.topology.smallest_socket:
            self._take_whole(self.sorted_sockets(), self.topology.cpus_per_socket)

    def whole_cores(self) -> None:
        per_core = self.topology.cpus_per_core
        if not self.topology.regular:
            self._take_whole([core for cores in self.cores_in_order() for core in self._sorted(cores)], per_core)
            return
        # Cores that are fully free have equally many free CPUs: by id is sorted, and the rest need not be looked at.
        if self.need < per_core:
            return
        free = self.free
        for cores in self.cores_in_order():
            for _number, mask in cores:
                if free & mask == mask:
                    self.take(mask)
                    if self.need < per_core:
                        return

    def _take_whole(self, order: list[Element], full: int = 0) -> None:
        """Take fully free elements that fit; `full` is the free count that means so (0: the element's size).

        The kubelet's `full` is an average: an element with some CPUs in use can have as many free ones.
        """
        full = full if self.exact else 0
        for mask in [mask for free, _number, mask in order if free == (full or count_bits(mask))]:
            if count_bits(mask) <= self.need:
                self.take(mask)

    def uncore_caches(self) -> None:
        order = self.sorted_uncore_caches()
        if self.need >= self.topology.cpus_per_uncore_cache:
            # The kubelet does this before it looks at each cache; after the first time none is left.
            self._take_whole(order)
        for _free, number, mask in order:
            if not self.need:
                return
            self._take_part_of_uncore_cache(number, mask)

    def _take_part_of_uncore_cache(self, number: int, cache: int) -> None:
        """Take what is needed of the first cores of this cache, if their free CPUs are just so many."""
        per_core, free = self.topology.cpus_per_core, self.free
        wanted, candidates = -(-self.need // per_core), 0
        for _core, mask in self.topology.inside("uncore_caches", "cores")[number]:
            if free & mask & cache:
                candidates |= free & mask
                wanted -= 1
                if not wanted:
                    break
        if self.need % 2 and per_core > 1 and count_bits(candidates) > self.need:
            candidates ^= 1 << candidates.bit_length() - 1
        if count_bits(candidates) == self.need:
            self.take(candidates)

    def single_cpus(self, strategy: str) -> None:
        for mask in self._spread_masks() if strategy == SPREAD else self._packed_masks():
            self.take(lowest_bits(self.free & mask, self.need))
            if not self.need:
                return

    def _spread_masks(self) -> Iterable[int]:
        return [mask for _free, _number, mask in self.sorted_sockets()]

    def _packed_masks(self) -> Iterable[int]:
        if self.topology.regular:
            # Taking CPUs of one socket does not change the order in another: what is not needed is not sorted.
            return (mask for cores in self.cores_in_order() for _free, _number, mask in self._sorted(cores))
        return [mask for cores in self.cores_in_order() for _free, _number, mask in self._sorted(cores)]

    def take(self, mask: int) -> None:
        self.result |= mask
        self.free &= ~mask
        self.need -= count_bits(mask)
