# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which CPUs the static policy takes: the kubelet's own choice, to the last CPU.

Source: pkg/kubelet/cm/cpumanager/cpu_assignment.go, the same in Kubernetes 1.33 to 1.36. Its answers
are kept even where they harm, because this predicts them, unless the switch EXACT is set to SAFE:
- "fully free" compares with averages, so on a machine with cores or sockets of unequal size a whole core
  or socket can be taken although some of its CPUs are busy;
- a kept combination of NUMA nodes can change after it was scored;
- a distribution can go on for ever; here that raises EndlessDistributionError.
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import combinations, dropwhile, islice
from operator import itemgetter
from typing import Iterable, Iterator, Mapping, NamedTuple, Sequence, Tuple

from ..cpuset import CPUSet, count_bits, iterate_bits, lowest_bits
from ..topology.kubelet_view import CPUTopology
from .options import StaticOptions

# Take CPUs packed: whole NUMA nodes and sockets first, then uncore caches, cores and single CPUs.
#
# Its source: pkg/kubelet/cm/cpumanager/cpu_assignment.go (takeByTopologyNUMAPacked).


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
    """Return those of the available CPUs that exist. Raises TakeError when these are too few."""
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
        """Return the cores of which all CPUs are free, as the mask of their first threads."""
        cores = self.first_threads & free
        for offset in self.offsets[1:]:
            cores &= free >> offset
        return cores

    def single_cpus(self, cores: int, free: int, need: int) -> int:
        """Return so many of the free CPUs of these cores, or all; first of the cores that have the fewest of them."""
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
        """Yield (number of free CPUs from 1 on, those of the cores that have so many); cores are masks of first
        threads."""
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
    """Return None where it is not the same in all cores, or a core is in more than one NUMA node or socket."""
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
        """Return the first of sorted_numa_nodes() that has the most free CPUs; mostly these need not be sorted for
        it."""
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
        """Return the sockets or NUMA nodes by which cores are listed, in order."""
        return self.sorted_sockets() if self.numa_first else self.sorted_numa_nodes()

    def _sorted_cores(self) -> list[Element]:
        inside = self.topology.inside("sockets" if self.numa_first else "numa_nodes", "cores")
        return [core for _free, number, _mask in self._groups_of_cores() for core in self._sorted(inside[number])]

    def _of_each_group(self, cores: int) -> Iterable[int]:
        """Return those of these cores that are in each group of cores, the groups in order."""
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


# Take CPUs distributed: evenly over as few NUMA nodes as hold them.
#
# Its source: pkg/kubelet/cm/cpumanager/cpu_assignment.go (takeByTopologyNUMADistributed).


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
        """Return the sum of the squares when the best of these nodes have given the remainder, and which these are."""
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
        """Return how many CPUs of the remainder each of them gives, when they have so many left."""
        numbers = [number for _free, number, _mask in givers]
        after = dict(zip(numbers, left))
        for _free, number, _mask in _round_robin(givers, after, self.remainder, self.group_size):
            after[number] -= self.group_size
        return [before - after[number] for number, before in zip(numbers, left)]

    def _gain(self, left: int, given: int) -> int:
        """Return by how much the sum of the squares grows when a node with so many CPUs left gives some."""
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
    """Return False where different choices of nodes without a remainder differ when rounded, too: see _Distribution.

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
    """Return the first combination of `size` nodes of those with the most free CPUs in all."""
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
    """Yield the nodes in turn, those that have a group left; the caller takes the group from `left`, {node: CPUs}."""
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
    """Return the nearest whole number, half away from zero, for what is not negative."""
    whole = int(number)
    return whole + (number - whole >= 0.5)


def _as_kept(subset: Sequence[Element], items: Sequence[Element], stopped: bool = False) -> Sequence[Element]:
    """Return what a subset that the kubelet chose holds when it comes to use it.

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


def take_packed(
    topology: CPUTopology,
    available: CPUSet,
    count: int,
    strategy: str = PACKED,
    prefer_uncore: bool = False,
) -> CPUSet:
    """Take `count` of the `available` CPUs, whole elements first. Raises TakeError."""
    return CPUSet.from_mask(take_packed_mask(topology, available.mask, count, strategy, prefer_uncore))


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
    return CPUSet.from_mask(take_distributed_mask(topology, available.mask, count, group_size, strategy))


def take(topology: CPUTopology, available: CPUSet, count: int, options: StaticOptions, exact: bool = EXACT) -> CPUSet:
    """Return the static policy's take with its options. Raises TakeError, and with EXACT EndlessDistributionError."""
    return CPUSet.from_mask(take_mask(topology, available.mask, count, options, exact))


def take_mask(topology: CPUTopology, available: int, count: int, options: StaticOptions, exact: bool = EXACT) -> int:
    """Do what take() does, with masks for sets of CPUs."""
    strategy = SPREAD if options.distribute_cpus_across_cores else PACKED
    prefer_uncore = options.prefer_align_cpus_by_uncorecache
    if options.distribute_cpus_across_numa:
        group_size = topology.cpus_per_core if options.full_pcpus_only else 1
        try:
            return take_distributed_mask(topology, available, count, group_size, strategy, exact)
        except (EndlessDistributionError, TakeError):
            if exact or count > count_bits(available & topology.cpus):
                raise
    return take_packed_mask(topology, available, count, strategy, prefer_uncore, exact)
