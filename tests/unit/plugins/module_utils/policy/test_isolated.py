# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/policy/isolated.py."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._containers.pods import Pod, pod_from_manifest
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.hints import (
    BEST_EFFORT,
    CONTAINER,
    NONE,
    POD,
    RESTRICTED,
    TopologyManager,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.isolated import (
    IsolatedPolicy,
    static_with_isolated,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.manager import CPUManager
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.options import StaticOptions
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.acceptance import StateError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.description import describe_machine
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.kubelet_view import kubelet_view

TOPOLOGY = kubelet_view(describe_machine("2 sockets x 8 cores x 2 threads"))
ISOLATED = CPUSet.parse("4-15,20-31")
REST = CPUSet.parse("0-3,16-19")
PLAIN = StaticOptions()


def policy(options: StaticOptions = PLAIN, isolated: CPUSet = ISOLATED) -> IsolatedPolicy:
    return IsolatedPolicy(TOPOLOGY, options, CPUSet.parse("0,16"), isolated, 36)


def manager(policy_of_manager: str = NONE, scope: str = CONTAINER, **options: bool) -> CPUManager:
    return CPUManager(policy(StaticOptions(**options)), TopologyManager(policy_of_manager, scope, [0, 1]))


def pod(uid: str, *cpus: int) -> Pod:
    containers = [
        {"name": "c%d" % number, "resources": {"limits": {"cpu": count, "memory": "1Gi"}}}
        for number, count in enumerate(cpus)
    ]
    return pod_from_manifest({"metadata": {"name": uid, "uid": uid}, "spec": {"containers": containers}})


def test_exclusive_cpus_are_isolated_and_the_pool_is_the_rest() -> None:
    node = manager()
    assert node.state.snapshot() == State(REST, {})
    assert node.add(pod("a", 4)).admitted
    assert str(node.cpus_of("a", "c0")) == "4-5,20-21"
    assert node.state.snapshot().default_cpu_set == REST
    assert node.cpus_of("b", "c0") == REST
    node.delete("a")
    node.remove_stale()
    assert node.state.snapshot() == State(REST, {})


def test_no_more_than_what_is_isolated() -> None:
    node = manager()
    assert node.add(pod("a", 24)).admitted
    assert node.cpus_of("a", "c0") == ISOLATED
    refused = node.add(pod("b", 1))
    assert not refused.admitted
    assert "not enough cpus available" in refused.message


def test_whole_cores() -> None:
    node = manager(full_pcpus_only=True)
    assert not node.add(pod("a", 3)).admitted
    assert node.add(pod("b", 4)).admitted
    assert not node.add(pod("c", 22)).admitted


@pytest.mark.parametrize("scope", [CONTAINER, POD])
def test_hints_are_of_isolated_cpus(scope: str) -> None:
    """Four cores of node 0 are isolated, and eight of node 1."""
    node = manager(RESTRICTED, scope)
    assert node.add(pod("a", 16)).admitted
    assert str(node.cpus_of("a", "c0")) == "8-15,24-31"
    assert node.add(pod("b", 8)).admitted
    assert not node.add(pod("c", 1)).admitted


@given(st.integers(0, 2**32))
def test_lives(seed: int) -> None:
    """Whoever comes and goes: the pool stays, all exclusive CPUs are isolated, and nobody shares them."""
    choose = random.Random(seed)
    node, uids = manager(choose.choice((NONE, BEST_EFFORT))), []
    for number in range(20):
        uid = "u%d" % number
        if node.add(pod(uid, *(choose.randint(1, 5) for _container in range(choose.randint(1, 3))))).admitted:
            uids.append(uid)
        if uids and choose.random() < 0.4:
            node.delete(uids.pop(choose.randrange(len(uids))))
            node.remove_stale()
        state = node.state.snapshot()
        assert state.default_cpu_set == REST
        seen = CPUSet()
        for _uid, _name, cpus in state.owners():
            assert cpus <= ISOLATED
            assert cpus.isdisjoint(seen)
            seen |= cpus
    # A restart accepts what there is.
    CPUManager(policy(), TopologyManager(NONE, CONTAINER, [0, 1]), node.state.snapshot())


@pytest.mark.parametrize(
    ("shared", "assignments"),
    [
        ("0-3,16-20", {}),  # an isolated CPU is shared
        ("0-2,16-19", {}),
        ("0-3,16-19", {"a": {"c": CPUSet.parse("3-4")}}),
        ("0-3,16-19", {"a": {"c": CPUSet.parse("4-5")}, "b": {"c": CPUSet.parse("5-6")}}),
        ("", {"a": {"c": CPUSet.parse("4-5")}}),
    ],
)
def test_a_state_of_other_cpus_is_refused(shared: str, assignments: dict[str, dict[str, CPUSet]]) -> None:
    with pytest.raises(StateError):
        CPUManager(policy(), TopologyManager(NONE, CONTAINER, [0, 1]), State(CPUSet.parse(shared), assignments))


@pytest.mark.parametrize(
    ("isolated", "text"),
    [("", "isolates no CPU"), ("32-40", "isolates no CPU"), ("0-31", "isolates all CPUs"), ("0-15", "CPUs 0 are")],
)
def test_what_cannot_be_is_refused(isolated: str, text: str) -> None:
    with pytest.raises(InputError, match=text):
        policy(isolated=CPUSet.parse(isolated))


def test_summary() -> None:
    assert policy().name == "isolated"
    assert policy().summary.allocatable == ISOLATED


@pytest.mark.parametrize(
    ("reserved", "isolated", "strict", "answer"),
    [
        # The right reservation: what is isolated is shared until a container has it to itself.
        ("0-3,16-19", "4-15,20-31", False, ("4-15,20-31", "", "", "0-3,16-19", False)),
        # Too few are reserved: a container may get CPUs that are not isolated.
        ("0,16", "4-15,20-31", False, ("4-15,20-31", "", "1-3,17-19", "0-3,16-19", False)),
        # Too many: isolated CPUs that no container ever gets.
        ("0-4,16-19", "4-15,20-31", False, ("4-15,20-31", "4", "", "0-3,16-19", False)),
        # Strict: the pool has isolated CPUs alone.
        ("0-3,16-19", "4-15,20-31", True, ("4-15,20-31", "", "", "0-3,16-19", True)),
        ("0", "4-15,20-31", True, ("4-15,20-31", "", "1-3,16-19", "0-3,16-19", False)),
        # Nothing is isolated.
        ("0", "", False, ("", "", "", "", False)),
    ],
)
def test_what_the_static_policy_makes_of_isolated_cpus(
    reserved: str, isolated: str, strict: bool, answer: tuple[str, str, str, str, bool]
) -> None:
    found = static_with_isolated(TOPOLOGY, CPUSet.parse(reserved), CPUSet.parse(isolated), strict)
    data = found.to_dict()
    assert tuple(data.values()) == answer
    assert list(data) == ["shared", "reserved", "not_isolated", "reserve", "strict"]
    assert found.is_harmless() is not bool(answer[1] or answer[2] or answer[4])


@given(st.integers(1, 2**32 - 2), st.integers(1, 2**32 - 1))
def test_the_reservation_that_is_named_is_harmless(isolated: int, reserved: int) -> None:
    found = static_with_isolated(TOPOLOGY, CPUSet.from_mask(reserved), CPUSet.from_mask(isolated))
    assert static_with_isolated(TOPOLOGY, found.reserve, CPUSet.from_mask(isolated)).is_harmless()
