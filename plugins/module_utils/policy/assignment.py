# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which CPUs the static policy takes: the kubelet's own choice, to the last CPU.

Source: pkg/kubelet/cm/cpumanager/cpu_assignment.go, the same in Kubernetes 1.33 to 1.36. Its answers
are kept even where they harm, because this predicts them, unless the switch EXACT is set to SAFE:
- "fully free" compares with averages, so on a machine with cores or sockets of unequal size a whole core
  or socket can be taken although some of its CPUs are busy;
- a kept combination of NUMA nodes can change after it was scored (see _as_kept);
- a distribution can go on for ever; here that raises EndlessDistributionError.
"""

from __future__ import annotations

import math
from contextlib import suppress
from itertools import combinations, dropwhile, islice
from typing import Iterable, Iterator, Mapping, Sequence, Tuple

from ..cpuset import CPUSet, count_bits, lowest_bits
from ..topology.kubelet_view import CPUTopology
from .options import StaticOptions

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


def take(topology: CPUTopology, available: CPUSet, count: int, options: StaticOptions, exact: bool = EXACT) -> CPUSet:
    """The static policy's take with its options. Raises TakeError, and with EXACT EndlessDistributionError."""
    return CPUSet.from_mask(take_mask(topology, available.mask, count, options, exact))


def take_mask(topology: CPUTopology, available: int, count: int, options: StaticOptions, exact: bool = EXACT) -> int:
    """The same on masks."""
    strategy = SPREAD if options.distribute_cpus_across_cores else PACKED
    prefer_uncore = options.prefer_align_cpus_by_uncorecache
    if options.distribute_cpus_across_numa:
        group_size = topology.cpus_per_core if options.full_pcpus_only else 1
        try:
            return _take_distributed(topology, available, count, group_size, strategy, exact)
        except (EndlessDistributionError, TakeError):
            if exact or count > count_bits(available & topology.cpus):
                raise
    return _take_packed(topology, available, count, strategy, prefer_uncore, exact)


# --- packed --------------------------------------------------------------------------------------

# An element of the topology in a sorted list: (its free CPUs, its id, its mask).
Element = Tuple[int, int, int]


def _take_packed(
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
    _require(topology, available, count)
    take = _Take(topology, available & topology.cpus, count, exact)
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


def _require(topology: CPUTopology, available: int, count: int) -> None:
    if count > count_bits(available & topology.cpus):
        raise TakeError(
            "not enough cpus available to satisfy request: requested=%d, available=%d" % (count, count_bits(available))
        )


class _Take:
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


# --- distributed ---------------------------------------------------------------------------------


def _take_distributed(
    topology: CPUTopology, available: int, count: int, group_size: int, strategy: str, exact: bool = EXACT
) -> int:
    # 1. What cannot be given in groups is taken packed.
    if count % group_size:
        return _take_packed(topology, available, count, strategy, exact=exact)
    if count < 1:
        return 0
    _require(topology, available, count)
    take = _Take(topology, available & topology.cpus, count, exact)
    # 2. The fewest NUMA nodes first.
    nodes = take.sorted_numa_nodes()
    groups_in_all = -(-topology.num_cpus // group_size)
    groups_per_node = -(-groups_in_all // topology.num_numa_nodes)
    groups = -(-count // group_size)
    distribution = _Distribution(nodes, count, group_size)
    for size in range(-(-groups // groups_per_node), min(groups, len(nodes)) + 1):
        if distribution.choose(size):
            return distribution.take(take, strategy)
    # 3. No number of nodes worked out.
    return _take_packed(topology, available, count, strategy, exact=exact)


# The sum of the squares, and the deviation, of no choice.
_NONE = math.inf


class _Distribution:
    """`count` CPUs taken of some NUMA nodes so that all nodes are left most evenly filled.

    Each of the nodes gives the same share, in groups; some of them, the givers, give the remainder in turn.
    How even it is, is the standard deviation of the free CPUs, in thousandths, rounded as the kubelet rounds
    it. It grows with the sum of the squares, so most choices need no root.
    """

    def __init__(self, nodes: Sequence[Element], count: int, group_size: int) -> None:
        self.all_nodes = nodes
        self.count = count
        self.group_size = group_size
        # Whoever gives, as many are left: the mean is the same for all choices.
        free = [left for left, _number, _mask in nodes]
        mean = self.mean = _half_up((sum(free) - count) / len(nodes) * 1000)
        self.squares = sum([(1000 * left - mean) ** 2 for left in free])
        self.share = self.remainder = 0
        self.nodes: Sequence[Element] = ()
        self.givers: Sequence[Element] = ()

    def choose(self, size: int) -> bool:
        """Find the best nodes, `size` of them, and givers; False when no choice has the CPUs."""
        share = self.share = self.count // size // self.group_size * self.group_size
        self.remainder = self.count - share * size
        able = [node for node in self.all_nodes if node[0] >= share]
        if len(able) < size:
            return False
        gains = [self._gain(left, share) for left, _number, _mask in able]
        least = best = _NONE
        for nodes, gain in zip(combinations(able, size), map(sum, combinations(gains, size))):
            squares: float = self.squares + gain
            givers: Sequence[Element] = ()
            if self.remainder:
                squares, givers = self._best_givers(nodes, self.squares + gain)
            if squares < least:
                least, deviation = squares, self._deviation(squares)
                if deviation < best:
                    best, self.nodes, self.givers = deviation, nodes, givers
                    if not best:
                        break
        if best == _NONE:
            return False
        self.nodes = _as_kept(self.nodes, self.all_nodes, stopped=not best)
        return True

    def _best_givers(self, nodes: Sequence[Element], before: int) -> tuple[float, Sequence[Element]]:
        """The sum of the squares when the best of these nodes have given the remainder, and which these are."""
        group_size, groups = self.group_size, self.remainder // self.group_size
        left = {node: node[0] - self.share for node in nodes}
        able = [node for node in nodes if left[node] >= group_size]
        least = best = _NONE
        kept: Sequence[Element] = ()
        if sum([left[node] // group_size for node in able]) < groups:
            return least, kept
        gain_of_one = {node: self._gain(left[node], group_size) for node in able}
        for size in range(len(able), 0, -1):
            for givers in combinations(able, size):
                if size >= groups:
                    # The first of them give one group each.
                    squares = before + sum([gain_of_one[node] for node in givers[:groups]])
                elif sum([left[node] for node in givers]) >= self.remainder:
                    after = {node: left[node] for node in givers}
                    for node in _round_robin(givers, after, self.remainder, group_size):
                        after[node] -= group_size
                    squares = before + sum([self._gain(left[node], left[node] - after[node]) for node in givers])
                else:
                    continue
                if squares < least:
                    least, deviation = squares, self._deviation(squares)
                    if deviation < best:
                        best, kept = deviation, givers
        return least, _as_kept(kept, able)

    def _gain(self, left: int, given: int) -> int:
        """By how much the sum of the squares grows when a node with so many CPUs left gives some."""
        return 1000 * given * (1000 * (given - 2 * left) + 2 * self.mean)

    def _deviation(self, squares: float) -> int:
        return _half_up(math.sqrt(squares / len(self.all_nodes)))

    def take(self, take: _Take, strategy: str) -> int:
        """Take the CPUs as it was chosen. Raises TakeError, EndlessDistributionError."""
        for node in self.nodes:
            self._take_in(take, node, self.share, strategy)
        if self.givers:
            left = {node: count_bits(take.free & node[2]) for node in self.givers}
            for node in _round_robin(self.givers, left, self.remainder, self.group_size):
                self._take_in(take, node, self.group_size, strategy)
                left[node] = count_bits(take.free & node[2])
        if take.need > 0:
            raise TakeError("accounting error, not enough CPUs allocated, remaining: %d" % take.need)
        if take.need < 0:
            raise TakeError("accounting error, too many CPUs allocated, remaining: %d" % take.need)
        return take.result

    @staticmethod
    def _take_in(take: _Take, node: Element, count: int, strategy: str) -> None:
        with suppress(TakeError):  # the kubelet looks at the sum only
            take.take(_take_packed(take.topology, take.free & node[2], count, strategy, exact=take.exact))


def _round_robin(
    nodes: Sequence[Element], left: Mapping[Element, int], remainder: int, group_size: int
) -> Iterator[Element]:
    """The nodes in turn, those that have a group left; the caller takes the group from `left`."""
    while remainder > 0:
        before = remainder
        for node in nodes:
            if remainder > 0 and left[node] >= group_size:
                remainder -= group_size
                yield node
        if remainder == before:
            numbers = [number for _free, number, _mask in nodes]
            raise EndlessDistributionError(
                "the kubelet would never return from distributing CPUs over NUMA nodes %s: %d are still to be given"
                " in groups of %d, and no node has a whole group left" % (numbers, remainder, group_size)
            )


def _half_up(number: float) -> int:
    """The nearest whole number, half away from zero, for what is not negative."""
    whole = int(number)
    return whole + (number - whole >= 0.5)


def _as_kept(subset: Sequence[Element], items: Sequence[Element], stopped: bool = False) -> Sequence[Element]:
    """What a subset that the kubelet chose holds when it comes to use it.

    The kubelet makes all subsets of `items`, in lexicographic order of position, by appending to Go slices, and keeps
    the best without a copy. An array gets new room when it holds 0, 1, 2, 4, 8, ... items; subsets that are the same
    up to the one after share the rest of it. So the end of a subset is the last one's that was made with the same
    beginning; when the search was stopped, that is the next one's.
    """
    same = 1 + ((1 << (len(subset) - 1).bit_length()) >> 1)
    end = subset[same:]
    if not end:
        return subset
    rest = items[items.index(subset[same - 1]) + 1 :]
    if stopped:
        following = dropwhile(lambda other: other != end, combinations(rest, len(end)))
        end = next(islice(following, 1, None), end)
    else:
        end = rest[-len(end) :]
    return (*subset[:same], *end)
