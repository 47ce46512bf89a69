# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which CPUs the static policy takes: the kubelet's own choice, to the last CPU.

Source: pkg/kubelet/cm/cpumanager/cpu_assignment.go, the same in Kubernetes 1.33 to 1.36. Its answers
are kept even where they harm, because this predicts them:
- "fully free" compares with averages, so on a machine with cores or sockets of unequal size a whole core
  or socket can be taken although some of its CPUs are busy;
- a kept combination of NUMA nodes can change after it was scored (see _combinations);
- a distribution can go on for ever; here that raises EndlessDistributionError.
"""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Iterator, Mapping

from ..cpuset import CPUSet, count_bits, iterate_bits
from ..topology.kubelet_view import CPUTopology

PACKED = "packed"
SPREAD = "spread"


class TakeError(Exception):
    """The kubelet cannot take these CPUs; the message is the kubelet's own."""


class EndlessDistributionError(Exception):
    """The kubelet would search for ever here, holding its lock: no container of the node could start any more."""


def take_packed(
    topology: CPUTopology,
    available: CPUSet,
    count: int,
    strategy: str = PACKED,
    prefer_uncore: bool = False,
) -> CPUSet:
    """Take `count` of the `available` CPUs, whole elements first. Raises TakeError."""
    return CPUSet.from_mask(_take_packed(topology, available.mask, count, strategy, prefer_uncore))


def take_distributed(
    topology: CPUTopology,
    available: CPUSet,
    count: int,
    group_size: int = 1,
    strategy: str = PACKED,
) -> CPUSet:
    """Take `count` of the `available` CPUs evenly over as few NUMA nodes as hold them (distribute-cpus-across-numa).

    CPUs are given in groups of `group_size`: the threads of a core with full-pcpus-only, else 1.
    Raises TakeError, and EndlessDistributionError where the kubelet would never answer.
    """
    return CPUSet.from_mask(_take_distributed(topology, available.mask, count, group_size, strategy))


# --- packed --------------------------------------------------------------------------------------


def _take_packed(topology: CPUTopology, available: int, count: int, strategy: str, prefer_uncore: bool) -> int:
    # 1. Nothing asked, or more than there is.
    if count < 1:
        return 0
    _require(topology, available, count)
    take = _Take(topology, available & topology.cpus, count)
    # 2. Whole NUMA nodes and sockets, the bigger of the two last.
    if take.numa_first:
        take.whole(take.sorted_numa_nodes(), topology.numa_nodes)
        take.whole(take.sorted_sockets(), topology.sockets, topology.cpus_per_socket)
    else:
        take.whole(take.sorted_sockets(), topology.sockets, topology.cpus_per_socket)
        take.whole(take.sorted_numa_nodes(), topology.numa_nodes)
    # 3. Uncore caches, as far as that works out.
    if prefer_uncore and take.need:
        take.uncore_caches()
    # 4. Whole cores.
    if strategy == PACKED and take.need:
        take.whole(take.sorted_cores(), topology.cores, topology.cpus_per_core)
    # 5. Single CPUs.
    if take.need:
        take.single_cpus(strategy)
    if take.need:
        raise TakeError("failed to allocate cpus")
    return take.result


def _require(topology: CPUTopology, available: int, count: int) -> None:
    if count > count_bits(available & topology.cpus):
        raise TakeError(
            "not enough cpus available to satisfy request: requested=%d, available=%d" % (count, count_bits(available))
        )


class _Take:
    """One take in progress.

    The order of all sorting is: fewer free CPUs first, then the lower id; elements without a free CPU
    are left out. Sockets are listed by NUMA node and cores by socket when there are at least as many
    sockets as NUMA nodes ("NUMA first"), otherwise NUMA nodes by socket and cores by NUMA node.
    """

    def __init__(self, topology: CPUTopology, free: int, need: int) -> None:
        self.topology = topology
        self.free = free
        self.need = need
        self.result = 0
        self.numa_first = topology.num_sockets >= topology.num_numa_nodes

    def sorted_numa_nodes(self) -> list[int]:
        if self.numa_first:
            return self._sorted(self.topology.numa_nodes)
        return self._sorted_inside(self.sorted_sockets(), self.topology.sockets, self.topology.numa_nodes)

    def sorted_sockets(self) -> list[int]:
        if not self.numa_first:
            return self._sorted(self.topology.sockets)
        return self._sorted_inside(self.sorted_numa_nodes(), self.topology.numa_nodes, self.topology.sockets)

    def sorted_cores(self) -> list[int]:
        if self.numa_first:
            return self._sorted_inside(self.sorted_sockets(), self.topology.sockets, self.topology.cores)
        return self._sorted_inside(self.sorted_numa_nodes(), self.topology.numa_nodes, self.topology.cores)

    def sorted_uncore_caches(self) -> list[int]:
        return self._sorted_inside(self.sorted_numa_nodes(), self.topology.numa_nodes, self.topology.uncore_caches)

    def _sorted(self, masks: Mapping[int, int], inside: int = -1) -> list[int]:
        free = self.free
        found = [(count_bits(free & mask), number) for number, mask in masks.items() if free & mask & inside]
        found.sort()
        return [number for _count, number in found]

    def _sorted_inside(self, outer: list[int], outer_masks: Mapping[int, int], masks: Mapping[int, int]) -> list[int]:
        # An element that reaches into two outer ones is listed twice, as in the kubelet.
        return [number for out in outer for number in self._sorted(masks, outer_masks[out])]

    def whole(self, order: list[int], masks: Mapping[int, int], full: int = 0) -> None:
        """Take fully free elements that fit; `full` is the free count that means so (0: the element's size)."""
        fully_free = [
            masks[number]
            for number in order
            if count_bits(self.free & masks[number]) == (full or count_bits(masks[number]))
        ]
        for mask in fully_free:
            if count_bits(mask) <= self.need:
                self.take(mask)

    def uncore_caches(self) -> None:
        topology = self.topology
        for number in self.sorted_uncore_caches():
            if self.need >= topology.cpus_per_uncore_cache:
                self.whole(self.sorted_uncore_caches(), topology.uncore_caches)
            if self.need:
                self._part_of_uncore_cache(topology.uncore_caches[number])
            if not self.need:
                return

    def _part_of_uncore_cache(self, cache: int) -> None:
        per_core = self.topology.cpus_per_core
        cores = sorted(number for number, mask in self.topology.cores.items() if self.free & mask & cache)
        candidates = 0
        for number in cores[: -(-self.need // per_core)]:
            candidates |= self.free & self.topology.cores[number]
        if self.need % 2 and per_core > 1 and count_bits(candidates) > self.need:
            candidates ^= 1 << candidates.bit_length() - 1
        if count_bits(candidates) == self.need:
            self.take(candidates)

    def single_cpus(self, strategy: str) -> None:
        if strategy == SPREAD:
            order, masks = self.sorted_sockets(), self.topology.sockets
        else:
            order, masks = self.sorted_cores(), self.topology.cores
        for cpu in [cpu for number in order for cpu in iterate_bits(self.free & masks[number])]:
            if not self.need:
                return
            self.take(1 << cpu)

    def take(self, mask: int) -> None:
        self.result |= mask
        self.free &= ~mask
        self.need -= count_bits(mask)


# --- distributed ---------------------------------------------------------------------------------


def _take_distributed(topology: CPUTopology, available: int, count: int, group_size: int, strategy: str) -> int:
    # 1. What cannot be given in groups is taken packed.
    if count % group_size:
        return _take_packed(topology, available, count, strategy, False)
    if count < 1:
        return 0
    _require(topology, available, count)
    take = _Take(topology, available & topology.cpus, count)
    # 2. The fewest NUMA nodes first.
    nodes = take.sorted_numa_nodes()
    free = {node: count_bits(take.free & topology.numa_nodes[node]) for node in nodes}
    groups_in_all = -(-topology.num_cpus // group_size)
    groups_per_node = -(-groups_in_all // topology.num_numa_nodes)
    groups = -(-count // group_size)
    for size in range(-(-groups // groups_per_node), min(groups, len(nodes)) + 1):
        choice = _best_combination(nodes, free, count, size, group_size)
        if choice is not None:
            return _take_from_nodes(take, count, group_size, strategy, *choice)
    # 3. No number of nodes worked out.
    return _take_packed(topology, available, count, strategy, False)


def _best_combination(
    nodes: list[int], free: Mapping[int, int], count: int, size: int, group_size: int
) -> tuple[list[int], list[int], int] | None:
    """The `size` nodes that leave all nodes most evenly filled: (nodes, givers of the remainder, CPUs of each)."""
    best_balance = math.inf
    best: tuple[_Slice, _Slice | None] | None = None
    share = count // size // group_size * group_size
    remainder = count - share * size
    for combination in _combinations(nodes, size):
        if best_balance == 0:
            break
        members = combination.items()
        if sum(free[node] for node in members) < count:
            continue
        if sum(free[node] // group_size * group_size for node in members) < count:
            continue
        if any(free[node] < share for node in members):
            continue
        after = dict(free)
        for node in members:
            after[node] -= share
        balance, givers = _deviation(after), None
        if remainder:
            balance, givers = _best_givers(after, members, remainder, group_size)
        if balance < best_balance:
            best_balance, best = balance, (combination, givers)
    if best is None:
        return None
    # Only now is it read what the kept slices hold: see _combinations().
    return best[0].items(), best[1].items() if best[1] is not None else [], share


def _best_givers(
    after: Mapping[int, int], members: list[int], remainder: int, group_size: int
) -> tuple[float, _Slice | None]:
    able = [node for node in members if after[node] >= group_size]
    best_balance: float = math.inf
    best = None
    for size in range(len(able), 0, -1):
        for subset in _combinations(able, size):
            givers = subset.items()
            if sum(after[node] for node in givers) < remainder:
                continue
            left = dict(after)
            for node in _round_robin(givers, left, remainder, group_size):
                left[node] -= group_size
            balance = _deviation(left)
            if balance < best_balance:
                best_balance, best = balance, subset
    return best_balance, best


def _take_from_nodes(
    take: _Take, count: int, group_size: int, strategy: str, nodes: list[int], givers: list[int], share: int
) -> int:
    topology = take.topology

    def take_in(node: int, number: int) -> None:
        with suppress(TakeError):  # the kubelet looks at the sum only, below
            take.take(_take_packed(topology, take.free & topology.numa_nodes[node], number, strategy, False))

    for node in nodes:
        take_in(node, share)
    if givers:
        remainder = count - share * len(nodes)
        left = {node: count_bits(take.free & topology.numa_nodes[node]) for node in givers}
        for node in _round_robin(givers, left, remainder, group_size):
            take_in(node, group_size)
            left[node] = count_bits(take.free & topology.numa_nodes[node])
    if take.need > 0:
        raise TakeError("accounting error, not enough CPUs allocated, remaining: %d" % take.need)
    if take.need < 0:
        raise TakeError("accounting error, too many CPUs allocated, remaining: %d" % take.need)
    return take.result


def _round_robin(nodes: list[int], left: Mapping[int, int], remainder: int, group_size: int) -> Iterator[int]:
    """The nodes in turn, those that have a group left; the caller takes the group from `left`."""
    while remainder > 0:
        before = remainder
        for node in nodes:
            if remainder > 0 and left[node] >= group_size:
                remainder -= group_size
                yield node
        if remainder == before:
            raise EndlessDistributionError(
                "the kubelet would never return from distributing CPUs over NUMA nodes %s: %d are still to be given"
                " in groups of %d, and no node has a whole group left" % (nodes, remainder, group_size)
            )


def _deviation(counts: Mapping[int, int]) -> float:
    """The population standard deviation, with mean and result rounded to three decimals as the kubelet does."""
    mean = _rounded(sum(counts.values()) / len(counts))
    return _rounded(math.sqrt(sum((count - mean) ** 2 for count in counts.values()) / len(counts)))


def _rounded(number: float) -> float:
    """Half away from zero, for what is not negative."""
    thousandths = number * 1000
    whole = math.floor(thousandths)
    return (whole + (thousandths - whole >= 0.5)) / 1000


class _Slice:
    """A Go slice: a length and an array that others may share and write to."""

    __slots__ = ("array", "length")

    def __init__(self, array: list[int], length: int) -> None:
        self.array = array
        self.length = length

    def items(self) -> list[int]:
        return self.array[: self.length]

    def append(self, item: int) -> _Slice:
        """Go's append(): in place while the array has room, else to a copy of double capacity."""
        array = self.array
        if self.length == len(array):
            array = array + [0] * max(1, len(array))
        array[self.length] = item
        return _Slice(array, self.length + 1)


def _combinations(items: list[int], size: int, start: int = 0, prefix: _Slice | None = None) -> Iterator[_Slice]:
    """All subsets of `size` items in lexicographic order of position, as slices that alias as the kubelet's do.

    Subsets with a common prefix share its array where that has room, so building one can overwrite the end
    of an earlier one that somebody kept: with sizes 4, 6, 7 and 8.
    """
    prefix = prefix or _Slice([], 0)
    if prefix.length == size:
        yield prefix
        return
    for index in range(start, len(items) - (size - prefix.length) + 1):
        yield from _combinations(items, size, index + 1, prefix.append(items[index]))
