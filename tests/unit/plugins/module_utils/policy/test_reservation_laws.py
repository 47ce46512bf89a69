# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What holds of a planned reservation on any machine: its count, its cores, and NUMA nodes that give alike."""

from __future__ import annotations

import re
from functools import lru_cache

from hypothesis import assume, example, given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.quantity import counted
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.options import StaticOptions
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.reservation import (
    PACKED,
    SPREAD,
    kubelet_reservation,
    plan_reservation,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.kubelet_view import kubelet_view
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.model import Topology
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import Shape, parse_name
from ansible_collections.kubenode.cpu_manager.tests.machines.strategies import shapes


def usable_cores(topology: Topology, smt: bool) -> list[CPUSet]:
    return [core.cpus if smt else core.cpus.take(1) for core in topology.cores]


def node_cores(topology: Topology, cores: list[CPUSet]) -> list[list[CPUSet]]:
    """Return the cores of each NUMA node that has CPUs."""
    nodes = [[core for core in cores if core.first() in node.cpus] for node in topology.numa_nodes]
    return [node for node in nodes if node]


def is_level(given_cores: tuple[int, ...], all_cores: tuple[int, ...]) -> bool:
    """Return whether each node gives as many cores as the one that gives most, or one less, unless it has no more."""
    return all(given == every or given >= max(given_cores) - 1 for given, every in zip(given_cores, all_cores))


@lru_cache(maxsize=None)
def feasible_counts(sizes: tuple[tuple[int, ...], ...], spread: bool) -> frozenset[int]:
    """Return, by trying everything, the CPU counts that whole cores of these nodes (their threads) can make up.

    Everything that each node can give, not the product of it: thirty nodes would take years.
    """
    if not spread:
        sizes = (tuple(size for node in sizes for size in node),)
    ways = []
    for node in sizes:
        sums: list[set[int]] = [{0}, *(set() for _core in node)]
        for size in node:
            for number in range(len(node), 0, -1):
                sums[number] |= {total + size for total in sums[number - 1]}
        ways.append(sums)
    found: set[int] = set()
    for most in range(1, max(map(len, sizes)) + 1):
        totals = {0}
        for node, sums in zip(sizes, ways):
            numbers = {min(most, len(node)), min(most - 1, len(node))}
            totals = {total + more for total in totals for number in numbers for more in sums[number]}
        found |= totals
    return frozenset(found)


strategies = st.sampled_from([PACKED, SPREAD])


@given(shapes(most_cpus=32), strategies, st.booleans(), st.booleans(), st.booleans(), st.data())
@example(parse_name("4s1n8c"), SPREAD, True, False, False, None)
@example(parse_name("32s1n1c"), SPREAD, True, False, False, None)
@example(parse_name("4s1n4c2t"), SPREAD, True, False, False, None)
@example(parse_name("2s1n2c2t1e"), SPREAD, True, True, False, None)
@example(parse_name("3s1n2c4t+offline6,11,23"), SPREAD, True, True, True, None)
def test_every_count_of_a_machine(
    shape: Shape, strategy: str, smt: bool, allow_split_core: bool, at_least: bool, data: st.DataObject | None
) -> None:
    topology = shape.topology()
    cores = usable_cores(topology, smt)
    nodes = node_cores(topology, cores)
    total = sum(map(len, cores))
    feasible = feasible_counts(tuple(tuple(map(len, node)) for node in nodes), strategy == SPREAD) - {0, total}
    near = data.draw(st.sampled_from([None, *(node.id for node in topology.numa_nodes)])) if data else None
    for count in range(1, total):
        lower = max((size for size in feasible if size <= count), default=None)
        higher = min((size for size in feasible if size >= count), default=None)
        try:
            plan = plan_reservation(topology, count, strategy, smt, allow_split_core, near, at_least)
        except InputError as error:
            failure = str(error)
        else:
            failure = ""
        if count not in feasible and not allow_split_core and not (at_least and higher):
            nearest = " and ".join(str(size) for size in (lower, higher) if size)
            why = "the nearest counts are %s;" % nearest if nearest else "the machine has one;"
            assert "cannot reserve %s without splitting a core; %s" % (counted(count, "CPU"), why) in failure
            continue
        assert not failure
        # Exactly as many as asked for, of online CPUs; the others are for the pods.
        expected = count if count in feasible else higher if at_least and higher else count
        assert len(plan.reserved) == expected
        usable = CPUSet(cpu for core in cores for cpu in core)
        assert plan.isolated == usable - plan.reserved
        assert plan.reserved < usable
        assert plan.switched_off == topology.online - usable
        # No core is split, unless that is allowed and needed; then one is.
        split = [core for core in cores if core & plan.reserved and not core <= plan.reserved]
        assert split == ([plan.split_core] if plan.split_core else [])
        assert bool(split) == (expected not in feasible)
        assert not split or allow_split_core
        # NUMA nodes give equally many cores.
        if strategy == SPREAD:
            given_cores = tuple(sum(bool(core & plan.reserved) for core in node) for node in nodes)
            if split:
                whole = tuple(sum(core <= plan.reserved for core in node) for node in nodes)
                assert is_level(whole, tuple(map(len, nodes)))
            else:
                assert is_level(given_cores, tuple(map(len, nodes)))


@given(shapes(), strategies, st.booleans())
def test_the_counts_that_an_error_names_are_planned(shape: Shape, strategy: str, smt: bool) -> None:
    topology = shape.topology()
    for count in range(1, len(topology.online)):
        try:
            plan_reservation(topology, count, strategy, smt)
        except InputError as error:
            match = re.search("the nearest counts are ([0-9 and]+);", str(error))
            for named in match.group(1).split(" and ") if match else []:
                assert len(plan_reservation(topology, int(named), strategy, smt).reserved) == int(named)


@given(shapes(hybrid=False), st.data())
def test_packed_fills_one_numa_node_after_the_other(shape: Shape, data: st.DataObject) -> None:
    """Those near the device first."""
    topology = shape._replace(offline=CPUSet()).topology()
    threads = topology.threads_per_core
    assume(len(topology.cores) > 1)
    count = threads * data.draw(st.integers(1, len(topology.cores) - 1))
    near = data.draw(st.sampled_from([None, *topology.numa_nodes]))
    plan = plan_reservation(topology, count, near_numa_node=near.id if near else None)
    nodes = [node for node in topology.numa_nodes if node.cpus]
    touched = [node for node in nodes if node.cpus & plan.reserved]
    assert sum(not node.cpus <= plan.reserved for node in touched) <= 1
    if near is None:
        assert touched == nodes[: len(touched)]
    elif near.cpus:
        assert near in touched
        assert near.cpus <= plan.reserved or touched == [near]
    else:
        distances = topology.numa_distances[near.id]
        farthest = max(distances[node.id] for node in touched)
        assert all(node in touched for node in nodes if distances[node.id] < farthest)


@given(shapes(), strategies, st.data())
def test_the_same_question_has_the_same_answer(shape: Shape, strategy: str, data: st.DataObject) -> None:
    assume(len(shape.topology().online) > 1)
    count = data.draw(st.integers(1, len(shape.topology().online) - 1))
    plans = [plan_reservation(shape.topology(), count, strategy, allow_split_core=True) for _time in range(2)]
    assert plans[0] == plans[1]


@given(shapes(), st.data())
def test_the_kubelet_accepts_what_is_planned(shape: Shape, data: st.DataObject) -> None:
    topology = shape.topology()
    assume(len(topology.online) > 1)
    count = data.draw(st.integers(1, len(topology.online) - 1))
    reserved = plan_reservation(topology, count, allow_split_core=True).reserved
    assert kubelet_reservation(kubelet_view(topology), 0, StaticOptions(), reserved) == reserved
