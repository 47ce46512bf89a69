# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Take CPUs distributed: evenly over as few NUMA nodes as hold them.

Source: pkg/kubelet/cm/cpumanager/cpu_assignment.go (takeByTopologyNUMADistributed).
"""

from __future__ import annotations

import math
from itertools import combinations, dropwhile, islice
from operator import itemgetter
from typing import Iterator, Mapping, Sequence

from ..cpuset import count_bits
from ..topology.kubelet_view import CPUTopology
from .packed import (
    EXACT,
    PACKED,
    Element,
    EndlessDistributionError,
    Take,
    TakeError,
    numbering_of,
    require,
    take_packed_mask,
)

# Combinations of so few elements are read as they were made: see _as_kept.
_NEVER_CHANGED = 3


def take_distributed_mask(
    topology: CPUTopology, available: int, count: int, group_size: int, strategy: str, exact: bool = EXACT
) -> int:
    # 1. What cannot be given in groups is taken packed.
    if count % group_size:
        return take_packed_mask(topology, available, count, strategy, exact=exact)
    if count < 1:
        return 0
    take = Take(topology, require(topology, available, count), count, exact)
    # 2. The fewest NUMA nodes first.
    groups_in_all = -(-topology.num_cpus // group_size)
    groups_per_node = -(-groups_in_all // topology.num_numa_nodes)
    groups = count // group_size
    fewest = -(-groups // groups_per_node)
    if fewest == 1:
        # One node: without making a list of all, in which a node is once for each of its sockets at most.
        freest = take.freest_numa_node()
        listed = topology.num_numa_nodes * topology.num_sockets
        if freest[0] >= count and not _same_rounded(listed, freest[0]):
            _take_in(take, freest, count, strategy)
            return _result(take)
    nodes = take.sorted_numa_nodes()
    distribution = _Distribution(nodes, count, group_size)
    for size in range(fewest, min(groups, len(nodes)) + 1):
        if distribution.choose(size):
            return distribution.take(take, strategy)
    # 3. No number of nodes worked out.
    return take_packed_mask(topology, available, count, strategy, exact=exact)


_free_cpus = itemgetter(0)  # of an Element


class _Distribution:
    """`count` CPUs taken of some NUMA nodes so that all nodes are left most evenly filled.

    Each of the nodes gives the same share, in groups; some of them, the givers, give the remainder in turn.
    How even it is, is the standard deviation of the free CPUs, in thousandths, rounded as the kubelet rounds
    it. It grows with the sum of the squares, so most choices need no root. The kubelet takes the first of the choices
    with the least rounded deviation.

    Where there is no remainder, that is the first of the choices of nodes with the most free CPUs in all, on machines
    of a usual size (_same_rounded() is False); so not all choices need to be made. Proof: when nodes with `free` CPUs
    give a share each, the sum of the squares of what is left changes by share**2 - 2 * share * free of each node: the
    more of them are free in all, the lower it gets, and two choices differ by 2 at least or not at all. Let there
    be n nodes with at most m free CPUs. In thousandths, what the root is taken of differs by 2,000,000 / n at least.
    Numbers from 0 to m deviate by at most m / 2, which is 500 m, and with the rounding of the mean by 500 m + 1/2. The
    difference of two roots is that of what they are taken of, divided by their sum: at least 2,000,000 /
    (n (1000 m + 1)). That is more than 1 when n (m + 1) <= 2000, and then the rounded ones differ too.

    Where there is a remainder, each of its groups would best come from the node that then has the most left. Givers
    can do that when each gives one group, or one gives all; then these nodes are the best choice, too: a node with
    fewer free CPUs that gives the same makes the sum greater. Otherwise all choices are compared.
    """

    def __init__(self, nodes: Sequence[Element], count: int, group_size: int) -> None:
        self.all_nodes = nodes
        self.count = count
        self.group_size = group_size
        self.freest = sorted(map(_free_cpus, nodes), reverse=True)
        # Otherwise nodes that have the remainder in all may not have it in groups, and the kubelet searches for ever.
        self.in_whole_groups = len({number for _free, number, _mask in nodes}) == len(nodes) and (
            group_size == 1 or not any(free % group_size for free in self.freest)
        )
        self.share = self.remainder = self.mean = 0
        self.nodes: Sequence[Element] = ()
        self.givers: Sequence[Element] = ()

    def choose(self, size: int) -> bool:
        """Find the best nodes, `size` of them, and givers; False when no choice has the CPUs."""
        share = self.share = self.count // size // self.group_size * self.group_size
        self.remainder = self.count - share * size
        if len(self.freest) < size or self.freest[size - 1] < share or sum(self.freest[:size]) < self.count:
            return False
        able = [node for node in self.all_nodes if node[0] >= share]
        return self._choose_freest(able, size) or self._search(able, size)

    def _choose_freest(self, able: Sequence[Element], size: int) -> bool:
        """Choose the nodes with the most free CPUs, and givers; False where another choice can be better."""
        if _same_rounded(len(self.all_nodes), self.freest[0]) or (self.remainder and not self.in_whole_groups):
            return False
        nodes = _with_most_free(able, size)
        givers: Sequence[Element] = ()
        # What is left in all nodes, beginning with these, from the most on.
        left = [free - self.share for free in self.freest[:size]] + self.freest[size:]
        if self.remainder:
            groups = self.remainder // self.group_size
            if self.group_size <= left[groups - 1] >= left[0] - self.group_size:
                # One group of each of those with the most left. The kubelet tries the longest lists of givers first,
                # and whoever comes after the last of these gives nothing.
                able = [node for node in nodes if node[0] - self.share >= self.group_size]
                first = _with_most_free(able, groups)
                givers = _as_kept((*first, *able[able.index(first[-1]) + 1 :]), able)
                left[:groups] = [cpus - self.group_size for cpus in left[:groups]]
            elif left[0] - self.remainder + self.group_size > left[1]:
                # All of one, which still has the most left before it gives the last group.
                givers = _with_most_free(nodes, 1)
                left[0] -= self.remainder
            else:
                return False
        self.nodes, self.givers = nodes, givers
        if size > _NEVER_CHANGED:
            self.nodes = _as_kept(nodes, self.all_nodes, stopped=left.count(left[0]) == len(left))
        return True

    def _search(self, able: Sequence[Element], size: int) -> bool:
        """Find the best nodes and givers of all combinations."""
        # Whoever gives, as many are left: the mean is the same for all choices.
        left_in_all = sum(map(_free_cpus, self.all_nodes)) - self.count
        self.mean = _half_up(left_in_all / len(self.all_nodes) * 1000)
        before = sum([(1000 * free - self.mean) ** 2 for free, _number, _mask in self.all_nodes])
        gains = [self._gain(free, self.share) for free, _number, _mask in able]
        least = best = math.inf
        seen = set()
        each_once = len({number for _free, number, _mask in able}) == len(able)
        for nodes, frees, gain in zip(
            combinations(able, size), combinations(map(_free_cpus, able), size), map(sum, combinations(gains, size))
        ):
            # The first of those that are alike is chosen.
            if frees in seen or sum(frees) < self.count:
                continue
            if each_once:
                seen.add(frees)
            squares: float = before + gain
            givers: Sequence[Element] = ()
            if self.remainder:
                squares, givers = self._best_givers(nodes, before + gain)
            if squares < least:
                least, deviation = squares, self._deviation(squares)
                if deviation < best:
                    best, self.nodes, self.givers = deviation, nodes, givers
                    if not deviation:
                        break
        if best == math.inf:
            return False
        self.nodes = _as_kept(self.nodes, self.all_nodes, stopped=not best)
        return True

    def _best_givers(self, nodes: Sequence[Element], before: int) -> tuple[float, Sequence[Element]]:
        """The sum of the squares when the best of these nodes have given the remainder, and which these are."""
        share, group_size, groups = self.share, self.group_size, self.remainder // self.group_size
        able = [node for node in nodes if node[0] - share >= group_size]
        left = [free - share for free, _number, _mask in able]
        least = best = math.inf
        kept: Sequence[Element] = ()
        if sum([cpus // group_size for cpus in left]) < groups:
            return least, kept
        gains_of_one = [self._gain(cpus, group_size) for cpus in left]
        for size in range(len(able), 0, -1):
            for givers, gains, has in zip(
                combinations(able, size), combinations(gains_of_one, size), combinations(left, size)
            ):
                if size >= groups:
                    # The first of them give one group each.
                    squares = before + sum(gains[:groups])
                elif sum(has) >= self.remainder:
                    squares = before + sum(map(self._gain, has, self._given(givers, has)))
                else:
                    continue
                if squares < least:
                    least, deviation = squares, self._deviation(squares)
                    if deviation < best:
                        best, kept = deviation, givers
        return least, _as_kept(kept, able)

    def _given(self, givers: Sequence[Element], left: Sequence[int]) -> list[int]:
        """How many CPUs of the remainder each of them gives, when they have so many left."""
        numbers = [number for _free, number, _mask in givers]
        after = dict(zip(numbers, left))
        for _free, number, _mask in _round_robin(givers, after, self.remainder, self.group_size):
            after[number] -= self.group_size
        return [before - after[number] for number, before in zip(numbers, left)]

    def _gain(self, left: int, given: int) -> int:
        """By how much the sum of the squares grows when a node with so many CPUs left gives some."""
        return 1000 * given * (1000 * (given - 2 * left) + 2 * self.mean)

    def _deviation(self, squares: float) -> int:
        return _half_up(math.sqrt(squares / len(self.all_nodes)))

    def take(self, take: Take, strategy: str) -> int:
        """Take the CPUs as it was chosen. Raises TakeError, EndlessDistributionError."""
        for node in self.nodes:
            _take_in(take, node, self.share, strategy)
        if self.givers:
            left = {number: count_bits(take.free & mask) for _free, number, mask in self.givers}
            for node in _round_robin(self.givers, left, self.remainder, self.group_size):
                _take_in(take, node, self.group_size, strategy)
                left[node[1]] = count_bits(take.free & node[2])
        return _result(take)


def _same_rounded(nodes: int, most: int) -> bool:
    """False where different choices of nodes without a remainder differ when rounded, too: see _Distribution.

    `nodes` is how many are listed at most, `most` how many CPUs are free in one at most.
    """
    return nodes * (most + 1) > 2000


def _result(take: Take) -> int:
    if take.need > 0:
        raise TakeError("accounting error, not enough CPUs allocated, remaining: %d" % take.need)
    if take.need < 0:
        raise TakeError("accounting error, too many CPUs allocated, remaining: %d" % take.need)
    return take.result


def _with_most_free(nodes: Sequence[Element], size: int) -> Sequence[Element]:
    """The first combination of `size` nodes of those with the most free CPUs in all."""
    least = sorted(map(_free_cpus, nodes))[-size]
    spare = size - sum([free > least for free, _number, _mask in nodes])
    chosen = []
    for node in nodes:
        if node[0] == least:
            spare -= 1
        if node[0] > least or (node[0] == least and spare >= 0):
            chosen.append(node)
    return tuple(chosen)


def _take_in(take: Take, node: Element, count: int, strategy: str) -> None:
    _free, number, mask = node
    topology, free = take.topology, take.free & mask
    if count > count_bits(free):
        return  # the kubelet looks at the sum only
    numbering = numbering_of(topology) if strategy == PACKED and count < topology.smallest_group else None
    if numbering is not None and number in topology.numa_nodes_in_one_socket:
        # All is in one group here: nothing is to be sorted.
        taken = numbering.take(free, count)
    else:
        try:
            taken = take_packed_mask(topology, free, count, strategy, exact=take.exact)
        except TakeError:
            return
    take.take(taken)


def _round_robin(
    nodes: Sequence[Element], left: Mapping[int, int], remainder: int, group_size: int
) -> Iterator[Element]:
    """The nodes in turn, those that have a group left; the caller takes the group from `left`, {node: CPUs}."""
    while remainder > 0:
        before = remainder
        for node in nodes:
            if remainder > 0 and left[node[1]] >= group_size:
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
        subsets = dropwhile(lambda subset_end: subset_end != end, combinations(rest, len(end)))
        end = next(islice(subsets, 1, None), end)
    else:
        end = rest[-len(end) :]
    return (*subset[:same], *end)
