# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Take CPUs distributed: evenly over as few NUMA nodes as hold them.

Source: pkg/kubelet/cm/cpumanager/cpu_assignment.go (takeByTopologyNUMADistributed).
"""

from __future__ import annotations

import math
from contextlib import suppress
from itertools import combinations, dropwhile, islice
from typing import Iterator, Mapping, Sequence

from ..cpuset import count_bits
from ..topology.kubelet_view import CPUTopology
from .packed import EXACT, Element, EndlessDistributionError, Take, TakeError, require, take_packed_mask


def take_distributed_mask(
    topology: CPUTopology, available: int, count: int, group_size: int, strategy: str, exact: bool = EXACT
) -> int:
    # 1. What cannot be given in groups is taken packed.
    if count % group_size:
        return take_packed_mask(topology, available, count, strategy, exact=exact)
    if count < 1:
        return 0
    require(topology, available, count)
    take = Take(topology, available & topology.cpus, count, exact)
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
    return take_packed_mask(topology, available, count, strategy, exact=exact)


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

    def take(self, take: Take, strategy: str) -> int:
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
    def _take_in(take: Take, node: Element, count: int, strategy: str) -> None:
        with suppress(TakeError):  # the kubelet looks at the sum only
            take.take(take_packed_mask(take.topology, take.free & node[2], count, strategy, exact=take.exact))


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
