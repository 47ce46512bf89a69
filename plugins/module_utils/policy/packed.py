# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Take CPUs packed: whole NUMA nodes and sockets first, then uncore caches, cores and single CPUs.

Source: pkg/kubelet/cm/cpumanager/cpu_assignment.go (takeByTopologyNUMAPacked).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Iterable, Iterator, NamedTuple, Tuple

from ..cpuset import count_bits, iterate_bits, lowest_bits
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
    """Take `count` of the `available` CPUs: their mask."""
    # 1. Nothing asked, or more than there is.
    if count < 1:
        return 0
    take = Take(topology, require(topology, available, count), count, exact)
    # 2. Whole NUMA nodes and sockets, the bigger of the two last.
    if count >= topology.smallest_group:
        take.whole_groups()
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


def require(topology: CPUTopology, available: int, count: int) -> int:
    """Those of the available CPUs that exist. Raises TakeError when these are too few."""
    free = available & topology.cpus
    if count > count_bits(free):
        raise TakeError(
            "not enough cpus available to satisfy request: requested=%d, available=%d" % (count, count_bits(available))
        )
    return free


class Numbering(NamedTuple):
    """How the CPUs of a machine are numbered where it is the same in all cores: all are `core` moved up.

    What is done to a core is then done to all of them at once: a bit of a mask stands for the core whose first thread
    it is, and the order of the bits is that of the cores' ids.
    """

    first_threads: int  # the mask of the lowest CPU of each core
    core: int  # the mask of a core that begins with CPU 0
    offsets: tuple[int, ...]  # the CPUs of that core

    def take(self, free: int, count: int) -> int:
        """Take `count` of the free CPUs, which are in one NUMA node and one socket: whole cores, then single CPUs."""
        taken = lowest_bits(self.fully_free(free), count // len(self.offsets)) * self.core
        need = count - count_bits(taken)
        return taken | self.single_cpus(self.first_threads, free & ~taken, need) if need else taken

    def fully_free(self, free: int) -> int:
        """The cores of which all CPUs are free, as the mask of their first threads."""
        cores = self.first_threads & free
        for offset in self.offsets[1:]:
            cores &= free >> offset
        return cores

    def single_cpus(self, cores: int, free: int, need: int) -> int:
        """So many of the free CPUs of these cores, or all; first of the cores that have the fewest of them."""
        taken = 0
        for number, alike in self.by_free_cpus(cores, free):
            used_up = lowest_bits(alike, need // number)
            if used_up:
                here = free & used_up * self.core
                taken |= here
                need -= count_bits(here)
            # Of the next core, a part.
            if need and (rest := alike ^ used_up):
                return taken | lowest_bits(free & (rest & -rest) * self.core, need)
            if not need:
                break
        return taken

    def by_free_cpus(self, cores: int, free: int) -> Iterator[tuple[int, int]]:
        """(number of free CPUs from 1 on, those of the cores that have so many); cores are masks of first threads."""
        if len(self.offsets) == 2:  # as mostly, and quicker
            first, second = cores & free, cores & free >> self.offsets[1]
            yield 1, first ^ second
            yield 2, first & second
            return
        at_least = [cores] + [0] * (len(self.offsets) + 1)
        for before, offset in enumerate(self.offsets):
            here = cores & free >> offset
            for number in range(before, -1, -1):
                at_least[number + 1] |= at_least[number] & here
        for number in range(1, len(self.offsets) + 1):
            yield number, at_least[number] & ~at_least[number + 1]


@lru_cache(maxsize=4)
def numbering_of(topology: CPUTopology) -> Numbering | None:
    """None where it is not the same in all cores, or a core is in more than one NUMA node or socket."""
    masks = topology.cores.values()
    cores = {mask // (mask & -mask) for mask in masks}
    if len(cores) != 1 or not topology.regular:
        return None
    core = cores.pop()
    return Numbering(sum([mask & -mask for mask in masks]), core, tuple(iterate_bits(core)))


class Take:
    """One take in progress.

    The order of all sorting is: fewer free CPUs first, then the lower id; elements without a free CPU
    are left out. Sockets are listed by NUMA node and cores by socket when there are at least as many
    sockets as NUMA nodes ("NUMA first"), otherwise NUMA nodes by socket and cores by NUMA node. An element
    that reaches into two outer ones is listed twice.
    """

    __slots__ = ("exact", "free", "need", "result", "topology")

    def __init__(self, topology: CPUTopology, free: int, need: int, exact: bool) -> None:
        self.topology = topology
        self.exact = exact
        self.free = free
        self.need = need
        self.result = 0

    @property
    def numa_first(self) -> bool:
        return self.topology.num_sockets >= self.topology.num_numa_nodes

    def sorted_numa_nodes(self) -> list[Element]:
        if self.numa_first:
            return self._sorted(self.topology.numa_nodes.items())
        inside = self.topology.inside("sockets", "numa_nodes")
        return [node for _free, socket, _mask in self.sorted_sockets() for node in self._sorted(inside[socket])]

    def freest_numa_node(self) -> Element:
        """The first of sorted_numa_nodes() that has the most free CPUs; mostly these need not be sorted for it."""
        free, masks = self.free, self.topology.numa_nodes
        free_cpus = [count_bits(free & mask) for mask in masks.values()]
        most = max(free_cpus)
        if free_cpus.count(most) == 1:
            return (most, *list(masks.items())[free_cpus.index(most)])
        # Of nodes with equally many the lowest id is the first, in the first socket that has one of them.
        if self.numa_first:
            return next(
                (most, number, mask) for number, mask in sorted(masks.items()) if count_bits(free & mask) == most
            )
        inside = self.topology.inside("sockets", "numa_nodes")
        return next(
            (most, number, mask)
            for _free, socket, _mask in self.sorted_sockets()
            for number, mask in inside[socket]
            if count_bits(free & mask) == most
        )

    def sorted_sockets(self) -> list[Element]:
        if not self.numa_first:
            return self._sorted(self.topology.sockets.items())
        inside = self.topology.inside("numa_nodes", "sockets")
        return [socket for _free, node, _mask in self.sorted_numa_nodes() for socket in self._sorted(inside[node])]

    def sorted_uncore_caches(self) -> list[Element]:
        inside = self.topology.inside("numa_nodes", "uncore_caches")
        return [cache for _free, node, _mask in self.sorted_numa_nodes() for cache in self._sorted(inside[node])]

    def _groups_of_cores(self) -> list[Element]:
        """The sockets or NUMA nodes by which cores are listed, in order."""
        return self.sorted_sockets() if self.numa_first else self.sorted_numa_nodes()

    def _sorted_cores(self) -> list[Element]:
        inside = self.topology.inside("sockets" if self.numa_first else "numa_nodes", "cores")
        return [core for _free, number, _mask in self._groups_of_cores() for core in self._sorted(inside[number])]

    def _of_each_group(self, cores: int) -> Iterable[int]:
        """Those of these cores that are in each group of cores, the groups in order."""
        return [cores & mask for _free, _number, mask in self._groups_of_cores()]

    def _sorted(self, masks: Iterable[tuple[int, int]]) -> list[Element]:
        free = self.free
        found = [(count_bits(here), number, mask) for number, mask in masks if (here := free & mask)]
        found.sort()
        return found

    def whole_groups(self) -> None:
        if self.numa_first:
            self._whole_numa_nodes()
            self._whole_sockets()
        else:
            self._whole_sockets()
            self._whole_numa_nodes()

    def _whole_numa_nodes(self) -> None:
        if self.need >= self.topology.smallest_numa_node:
            self._take_whole(self.sorted_numa_nodes())

    def _whole_sockets(self) -> None:
        if self.need >= self.topology.smallest_socket:
            self._take_whole(self.sorted_sockets(), self.topology.cpus_per_socket)

    def whole_cores(self) -> None:
        per_core = self.topology.cpus_per_core
        numbering = numbering_of(self.topology)
        if numbering is None:
            self._take_whole(self._sorted_cores(), per_core)
            return
        count = self.need // per_core
        if count < 1:
            return
        # Cores that are fully free have equally many free CPUs: sorted means by id, as the bits are.
        for fully_free in self._of_each_group(numbering.fully_free(self.free)):
            cores = lowest_bits(fully_free, count)
            count -= count_bits(cores)
            self.take(cores * numbering.core)
            if not count:
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
        if strategy == SPREAD:
            masks = [mask for _free, _number, mask in self.sorted_sockets()]
        else:
            numbering = numbering_of(self.topology)
            if numbering is not None:
                # Taking CPUs of one group does not change the order in another: what is not needed is not sorted.
                for cores in self._of_each_group(numbering.first_threads):
                    self.take(numbering.single_cpus(cores, self.free, self.need))
                    if not self.need:
                        return
                return
            masks = [mask for _free, _number, mask in self._sorted_cores()]
        for mask in masks:
            self.take(lowest_bits(self.free & mask, self.need))
            if not self.need:
                return

    def take(self, mask: int) -> None:
        self.result |= mask
        self.free &= ~mask
        self.need -= count_bits(mask)
