# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/policy/assignment.py: which CPUs are taken, as the kubelet does it, with its faults.

What holds on any machine is in test_assignment_laws.py.
"""

from __future__ import annotations

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.assignment import (
    PACKED,
    SPREAD,
    EndlessDistributionError,
    TakeError,
    take,
    take_distributed,
    take_mask,
    take_packed,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.options import StaticOptions
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.kubelet_view import CPUTopology
from ansible_collections.kubenode.cpu_manager.tests.machines.values import CACHES, FOUR, SMT, TWO

from .static_kubelet import machine


def but(name: str, busy: str) -> CPUSet:
    return machine(name).all_cpus() - CPUSet.parse(busy)


# machine, busy CPUs, how many, taken
PACKED_TAKES = [
    # nothing asked
    (SMT, "", 0, ""),
    (SMT, "", -1, ""),
    (SMT, "0-7", 0, ""),
    # cores
    (SMT, "", 1, "0"),
    (SMT, "", 2, "0,4"),  # a whole core
    (SMT, "", 3, "0-1,4"),  # a whole core, then a single CPU
    (SMT, "", 4, "0-1,4-5"),
    (SMT, "", 8, "0-7"),  # all
    (SMT, "0", 1, "4"),  # of the core that is already broken
    (SMT, "0", 2, "1,5"),  # a whole core before the broken one
    (SMT, "0", 3, "1,4-5"),  # ... which then gives the single CPU
    (SMT, "0,4-7", 2, "1-2"),  # no whole core is left
    (SMT, "2,4", 1, "0"),  # of two broken cores the lower
    (SMT, "0,5", 2, "2,6"),
    ("1s4c2t+adjacent", "", 2, "0-1"),
    ("1s4c2t+adjacent", "0", 3, "1-3"),
    ("1s8c", "3", 3, "0-2"),  # without SMT each CPU is a core
    ("1s2c4t", "", 3, "0,2,4"),  # less than a core
    ("1s2c4t", "", 4, "0,2,4,6"),
    ("1s2c4t", "0", 3, "2,4,6"),  # the rest of a broken core
    # NUMA nodes and sockets
    (TWO, "", 4, "0-1,4-5"),  # a whole one
    (TWO, "0", 4, "2-3,6-7"),  # the one that is fully free, although the other is broken already
    (TWO, "0", 1, "4"),  # of the fullest
    (TWO, "0", 2, "1,5"),
    (TWO, "0", 3, "1,4-5"),
    (TWO, "0", 5, "2-4,6-7"),
    (TWO, "0", 7, "1-7"),
    (TWO, "3,7", 2, "2,6"),  # fewer free CPUs there
    (TWO, "3,7", 1, "2"),
    (TWO, "", 5, "0-2,4-5"),
    (TWO, "", 6, "0-2,4-6"),
    (TWO, "1,3", 2, "0,4"),  # equally many: the lower
    # two sockets in a NUMA node
    ("1n2s2c2t", "", 4, "0-1,4-5"),
    ("1n2s2c2t", "0", 4, "2-3,6-7"),
    ("1n2s2c2t", "0", 1, "4"),
    # two NUMA nodes in a socket
    ("1s2n2c2t", "", 4, "0-1,4-5"),
    ("1s2n2c2t", "0", 4, "2-3,6-7"),
    ("1s2n2c2t", "", 8, "0-7"),
    (FOUR, "", 8, "0-3,8-11"),  # a socket
    (FOUR, "", 12, "0-5,8-13"),  # a socket and a NUMA node
    (FOUR, "0", 8, "4-7,12-15"),
    (FOUR, "0", 4, "2-3,10-11"),  # the free NUMA node of the fullest socket
    (FOUR, "0", 2, "1,9"),
    (FOUR, "0", 1, "8"),
    (FOUR, "0-3,8-11,4", 4, "6-7,14-15"),
    # ids in any order
    ("2s1n2c2t+interleaved+nodes3,8", "", 4, "0,2,4,6"),
    ("2s1n2c2t+interleaved+nodes3,8", "2", 1, "6"),
    # unequal cores: the average is 1 CPU, so a core with one free CPU counts as free and is taken whole
    ("1s4c2t+offline7", "0", 2, "0,4"),  # CPU 0 is busy
    ("1s4c2t+offline7", "", 1, "3"),
    ("1s2c2t2e", "0", 2, "0,4"),
    # unequal sockets: the same, with an average of 1 CPU
    ("1n2s2c+offline3", "", 1, "2"),
    ("1n2s2c+offline3", "0", 2, "0-1"),  # CPU 0 is busy
    ("1n2s2c2t+offline7", "2", 4, "0,2-3,6"),  # CPU 2 is busy; a socket with more than the average is not free
]


@pytest.mark.parametrize(("name", "busy", "count", "taken"), PACKED_TAKES)
def test_packed(name: str, busy: str, count: int, taken: str) -> None:
    assert str(take_packed(machine(name), but(name, busy), count)) == taken


SPREAD_TAKES = [
    (SMT, "", 2, "0-1"),  # one CPU of each core
    (SMT, "", 5, "0-4"),
    (SMT, "0", 2, "1-2"),  # the broken core is not preferred
    (SMT, "", 8, "0-7"),
    ("1s4c2t+adjacent", "", 2, "0-1"),  # one core: it goes by the number only
    (TWO, "", 3, "0-1,4"),  # of one socket
    (TWO, "", 4, "0-1,4-5"),  # whole sockets and NUMA nodes all the same
    (TWO, "0", 2, "1,4"),
    (TWO, "3,7", 1, "2"),
    (FOUR, "0", 5, "1-3,10-11"),
    (FOUR, "0", 3, "1-3"),  # else the NUMA nodes of the socket are not looked at
]


@pytest.mark.parametrize(("name", "busy", "count", "taken"), SPREAD_TAKES)
def test_spread(name: str, busy: str, count: int, taken: str) -> None:
    assert str(take_packed(machine(name), but(name, busy), count, SPREAD)) == taken


UNCORE_TAKES = [
    (CACHES, "", 0, ""),
    (CACHES, "", 1, "0"),
    (CACHES, "", 2, "0,4"),
    (CACHES, "", 3, "0-1,4"),  # two cores less the highest CPU
    (CACHES, "", 4, "0-1,4-5"),  # a whole cache
    (CACHES, "", 5, "0-2,4-5"),  # a whole cache, and of the next
    (CACHES, "", 6, "0-2,4-6"),
    (CACHES, "0", 4, "2-3,6-7"),  # the cache that is fully free
    (CACHES, "0", 1, "4"),
    (CACHES, "0", 2, "2,6"),  # of the first cache's first core only one CPU is free
    (CACHES, "0", 3, "1,4-5"),
    (CACHES, "0", 5, "2-4,6-7"),
    (CACHES, "0-1,3,5", 2, "2,6"),
    (CACHES, "1,3-7", 2, "0,2"),  # no cache has two: what packed takes
    (CACHES, "0,2", 4, "1,3,5,7"),  # three CPUs of a cache are not 4: whole cores
    ("1s2l2c", "", 1, "0"),  # without SMT
    ("1s2l2c", "0", 1, "1"),
    ("1s2l2c", "0", 2, "2-3"),
    ("1s2l3c", "0", 2, "1-2"),
    ("2s1n2l2c2t", "", 8, "0-3,8-11"),  # whole NUMA nodes come before
    ("2s1n2l2c2t", "0", 4, "2-3,10-11"),  # the free cache of the fullest NUMA node
    # one cache in the socket, so the socket counts as one
    (SMT, "1", 1, "0"),  # a core that is free and low, not the broken one
    (SMT, "1", 2, "0,4"),
    ("1s2c2t2e", "", 1, "2"),  # on the average a core has one CPU, so of the first core none is dropped
]


@pytest.mark.parametrize(("name", "busy", "count", "taken"), UNCORE_TAKES)
def test_uncore_caches_preferred(name: str, busy: str, count: int, taken: str) -> None:
    assert str(take_packed(machine(name), but(name, busy), count, prefer_uncore=True)) == taken


def test_as_many_sockets_as_numa_nodes() -> None:
    """Then NUMA nodes come first. They are the same sets, but for machines that nobody builds."""
    crossed = CPUTopology((cpu, cpu, cpu // 2, cpu % 2, 0) for cpu in range(4))
    assert str(take_packed(crossed, crossed.all_cpus(), 2)) == "0,2"


def test_without_the_preference_the_broken_core_comes_first() -> None:
    assert str(take_packed(machine(SMT), but(SMT, "1"), 1)) == "5"
    assert str(take_packed(machine(CACHES), but(CACHES, "0"), 2)) == "1,5"


# machine, busy CPUs, how many, group size, taken
DISTRIBUTED_TAKES = [
    (TWO, "", 0, 1, ""),
    (TWO, "", -2, 1, ""),
    (TWO, "", -2, 2, ""),
    # as few NUMA nodes as hold it
    (TWO, "", 1, 1, "0"),
    (TWO, "", 2, 1, "0,4"),
    (TWO, "", 4, 1, "0-1,4-5"),
    (TWO, "", 5, 1, "0-2,4,6"),  # two of each, then one of the first
    (TWO, "", 6, 1, "0-4,6"),  # three of each
    (TWO, "", 8, 1, "0-7"),
    (TWO, "0", 6, 1, "1-6"),
    (TWO, "0", 7, 1, "1-7"),
    (TWO, "0", 3, 1, "2-3,6"),  # which leaves 3 and 1, not 0 and 4
    (FOUR, "", 6, 1, "0-3,8,10"),
    (FOUR, "", 16, 1, "0-15"),
    ("4s1n4c", "10-11,14-15", 4, 1, "0-3"),  # one node, although two would leave them more even
    ("4s1n4c", "10-11,14-15", 6, 1, "0-2,4-6"),  # the nodes that stay the most even
    # groups
    (TWO, "", 6, 2, "0-2,4-6"),  # a core of each, then one of the first
    (TWO, "", 3, 2, "0-1,4"),  # no groups: packed
    (TWO, "0", 6, 2, "1-3,5-7"),  # the fullest has only one group
    (TWO, "0,2", 4, 2, "1,3,5,7"),
    (TWO, "0,2", 6, 2, "1,3-7"),  # not in groups, so packed
    ("3s2n5c", "1,8-10,16,19", 22, 2, "0,2-7,11-12,15,17-18,20-29"),  # five nodes: some four have too few groups
    # no number of nodes works out: packed
    ("2s1n4c", "3,5-7", 4, 1, "0-2,4"),
]


@pytest.mark.parametrize(("name", "busy", "count", "group_size", "taken"), DISTRIBUTED_TAKES)
def test_distributed(name: str, busy: str, count: int, group_size: int, taken: str) -> None:
    assert str(take_distributed(machine(name), but(name, busy), count, group_size)) == taken


@pytest.mark.parametrize(("name", "count", "taken"), [(TWO, 2, "0-1"), (TWO, 6, "0-4,6"), (TWO, 4, "0-1,4-5")])
def test_distributed_and_spread(name: str, count: int, taken: str) -> None:
    assert str(take_distributed(machine(name), but(name, ""), count, 1, SPREAD)) == taken


@pytest.mark.parametrize("strategy", [PACKED, SPREAD])
@pytest.mark.parametrize(
    ("available", "count", "message"),
    [
        ("0-2", 4, "requested=4, available=3"),
        ("", 1, "requested=1, available=0"),
        ("0-7", 9, "requested=9, available=8"),
        ("0-9", 9, "requested=9, available=10"),  # CPUs that do not exist are told, but do not count
        ("8-20", 1, "requested=1, available=13"),
    ],
)
def test_not_enough(available: str, count: int, message: str, strategy: str) -> None:
    with pytest.raises(TakeError) as caught:
        take_packed(machine(SMT), CPUSet.parse(available), count, strategy)
    assert str(caught.value) == "not enough cpus available to satisfy request: " + message
    with pytest.raises(TakeError) as caught:
        take_distributed(machine(SMT), CPUSet.parse(available), count, 1, strategy)
    assert str(caught.value) == "not enough cpus available to satisfy request: " + message


# --- combinations that change after they were chosen ----------------------------------------------

# sockets of one CPU each, how many CPUs, taken. All combinations are equally good, so the first one wins; but the
# kubelet reads it only after it made all others, some of which are written over its end.
CHANGED = [
    (3, 2, "0-1"),
    (4, 3, "0-2"),
    (5, 4, "0-2,4"),  # of four, the last element
    (6, 4, "0-2,5"),
    (6, 5, "0-4"),
    (8, 5, "0-4"),
    (7, 6, "0-4,6"),  # of six, the last
    (8, 6, "0-4,7"),
    (8, 7, "0-4,6-7"),  # of seven, the last two
    (9, 8, "0-4,6-8"),  # of eight, the last three
]


@pytest.mark.parametrize(("sockets", "count", "taken"), CHANGED)
def test_a_chosen_combination_holds_other_nodes_in_the_end(sockets: int, count: int, taken: str) -> None:
    name = "%ds1n1c" % sockets
    assert str(take_distributed(machine(name), but(name, ""), count)) == taken


def test_a_combination_that_changed_can_have_too_few_cpus() -> None:
    # Four NUMA nodes of the first socket have four CPUs, and all of the second have three. The combination of those
    # four is the only one, but in the end it holds the last node in place of its fourth.
    free = but("2s6n4c", "16-23,24,28,32,36,40,44")
    with pytest.raises(TakeError) as caught:
        take_distributed(machine("2s6n4c"), free, 16)
    assert str(caught.value) == "accounting error, not enough CPUs allocated, remaining: 4"


def test_the_search_for_a_combination_can_stop_early() -> None:
    """Four NUMA nodes give 4 CPUs each, and then all have equally many: nothing can be better.

    The kubelet notices that when it has already made the next combination, over the end of this one.
    """
    first = [(cpu, cpu, 0, cpu // 8, 0) for cpu in range(32)]  # nodes 0 to 3 of 8 CPUs
    others = [(cpu, cpu, 1, cpu // 4 - 4, 1) for cpu in range(32, 80)]  # nodes 4 to 15 of 4 CPUs
    topology = CPUTopology(first + others)
    assert str(take_distributed(topology, topology.all_cpus(), 16)) == "0-3,8-11,16-19,32-35"


# --- where the kubelet never returns --------------------------------------------------------------

FOUR_SOCKETS = "4s1n4c2t"  # 8 CPUs each


def test_endless_distribution() -> None:
    """The least: free CPUs 5, 5, 4 and 4, and 7 groups of 2."""
    topology = machine(FOUR_SOCKETS)
    free = CPUSet()
    for number, node in zip((5, 5, 4, 4), topology.numa_nodes.values()):
        free |= CPUSet.from_mask(node).take(number)
    with pytest.raises(EndlessDistributionError) as caught:
        take_distributed(topology, free, 14, 2)
    assert str(caught.value).startswith("the kubelet would never return from distributing CPUs over NUMA nodes ")
    assert str(caught.value).endswith(" in groups of 2, and no node has a whole group left")
    # One CPU fewer or more, and it returns.
    assert len(take_distributed(topology, free, 12, 2)) == 12
    assert len(take_distributed(topology, free, 16, 2)) == 16
    assert len(take_distributed(topology, free, 14, 1)) == 14


def test_endless_distribution_that_pods_can_reach() -> None:
    """Reserved CPUs 0,4 with full-pcpus-only and distribute-cpus-across-numa; pods of 2, 2 and 22 CPUs."""
    topology = machine(FOUR_SOCKETS)
    free = but(FOUR_SOCKETS, "0,4")
    for count in (2, 2):
        taken = take_distributed(topology, free, count, 2)
        assert len(taken) == count
        free -= taken
    with pytest.raises(EndlessDistributionError):
        take_distributed(topology, free, 22, 2)


# --- with the policy's options --------------------------------------------------------------------

OPTION_TAKES: list[tuple[str, dict[str, bool], int, str]] = [
    (TWO, {}, 2, "1,5"),
    (TWO, {"distribute_cpus_across_cores": True}, 2, "1,4"),
    (CACHES, {"prefer_align_cpus_by_uncorecache": True}, 2, "2,6"),
    (TWO, {"distribute_cpus_across_numa": True}, 3, "2-3,6"),
    (TWO, {"distribute_cpus_across_numa": True}, 6, "1-6"),
    (TWO, {"distribute_cpus_across_numa": True, "full_pcpus_only": True}, 6, "1-3,5-7"),  # in groups
    (TWO, {"full_pcpus_only": True, "align_by_socket": True, "strict_cpu_reservation": True}, 2, "1,5"),  # no matter
]


@pytest.mark.parametrize(("name", "options", "count", "taken"), OPTION_TAKES)
def test_take_with_options(name: str, options: dict[str, bool], count: int, taken: str) -> None:
    """With CPU 0 busy."""
    found = take(machine(name), but(name, "0"), count, StaticOptions(**options))
    assert str(found) == taken
    assert take_mask(machine(name), but(name, "0").mask, count, StaticOptions(**options)) == found.mask


def test_take_with_options_fails_as_the_policy_does() -> None:
    with pytest.raises(TakeError, match="requested=9, available=8"):
        take(machine(SMT), CPUSet(range(8)), 9, StaticOptions())
    free = CPUSet.parse("0-2,16-17,4-6,20-21,8-9,24-25,12-13,28-29")
    options = StaticOptions(full_pcpus_only=True, distribute_cpus_across_numa=True)
    with pytest.raises(EndlessDistributionError):
        take(machine(FOUR_SOCKETS), free, 14, options)
