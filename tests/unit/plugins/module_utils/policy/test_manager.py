# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/policy/manager.py: pods that come and go, with an affinity, and over a restart.

What holds in any life of any node is in test_manager_laws.py.
"""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.assignment import EndlessDistributionError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.hints import (
    BEST_EFFORT,
    CONTAINER,
    NONE,
    POD,
    RESTRICTED,
    SCOPES,
    SINGLE_NUMA_NODE,
    Hint,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.manager import Admission, CPUManager
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.acceptance import StateError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.checkpoint import read_checkpoint
from ansible_collections.kubenode.cpu_manager.tests.machines.values import TWO

from .managed_node import MINOR, cpus, manager, pod, pool

# --- adding ---------------------------------------------------------------------------------------


def test_start() -> None:
    node = manager()
    assert pool(node) == "0-7"
    assert node.active == {}
    assert node.checkpoint() == b'{"policyName":"static","defaultCpuSet":"0-7","checksum":%d}' % (
        read_checkpoint(node.checkpoint(), MINOR).checksum
    )


def test_add() -> None:
    node = manager()
    assert node.add(pod("u1", 2, 1.5, 1)) == Admission(True)
    assert cpus(node, "u1") == {"a": "1,5", "c": "4"}
    assert pool(node) == "0,2-3,6-7"
    assert [str(node.cpus_of("u1", name)) for name in "abc"] == ["1,5", "0,2-3,6-7", "4"]
    assert list(node.active) == ["u1"]


def test_a_pod_comes_once() -> None:
    node = manager()
    node.add(pod("u1", 2))
    with pytest.raises(InputError, match="pod shop/u1: its UID u1 is on the node already"):
        node.add(pod("u1", 1))
    assert cpus(node, "u1") == {"a": "1,5"}
    node.delete("u1")
    assert node.add(pod("u1", 1)).admitted


@pytest.mark.parametrize(
    ("policy", "numbers"),
    [(NONE, "requested=8, available=7"), (BEST_EFFORT, "requested=1, available=0")],  # beside the affinity
)
def test_refused_by_the_policy(policy: str, numbers: str) -> None:
    node = manager(policy=policy)
    admission = node.add(pod("u1", 8))
    assert (admission.admitted, admission.reason, admission.message) == (
        False,
        "UnexpectedAdmissionError",
        "Allocate failed due to not enough cpus available to satisfy request: %s, which is unexpected" % numbers,
    )
    assert node.active == {}


def test_refused_for_split_cores() -> None:
    """The one reason that is told as it is."""
    admission = manager(full_pcpus_only=True).add(pod("u1", 3))
    assert (admission.admitted, admission.reason, admission.message) == (
        False,
        "SMTAlignmentError",
        "SMT Alignment Error: requested 3 cpus not multiple cpus per core = 2",
    )


def two_halves_left(policy: str, scope: str) -> CPUManager:
    """Return one CPU is free in each NUMA node: 3 and 7."""
    node = manager("2s1n4c", policy, scope)
    assert node.add(pod("u1", 2)).admitted
    assert node.add(pod("u2", 3)).admitted
    assert pool(node) == "0,3,7"
    return node


@pytest.mark.parametrize("policy", [RESTRICTED, SINGLE_NUMA_NODE])
@pytest.mark.parametrize("scope", SCOPES)
def test_refused_by_the_topology_manager(policy: str, scope: str) -> None:
    """One NUMA node would do for two CPUs, were it empty."""
    node = two_halves_left(policy, scope)
    admission = node.add(pod("u3", 2))
    assert (admission.admitted, admission.reason, admission.message) == (
        False,
        "TopologyAffinityError",
        "Resources cannot be allocated with Topology locality",
    )
    assert list(node.active) == ["u1", "u2"]
    assert node.add(pod("u3", 1)).admitted


@pytest.mark.parametrize("scope", SCOPES)
def test_best_effort_admits_what_does_not_fit_together(scope: str) -> None:
    node = two_halves_left(BEST_EFFORT, scope)
    admission = node.add(pod("u3", 2))
    assert admission.admitted
    assert admission.affinity == {"a": Hint(0b11, False)}
    assert cpus(node, "u3") == {"a": "3,7"}


def test_an_earlier_container_of_a_refused_pod_keeps_its_cpus_until_somebody_looks() -> None:
    node = manager()
    assert not node.add(pod("u1", 2, 6)).admitted
    assert cpus(node, "u1") == {"a": "1,5"}
    assert pool(node) == "0,2-4,6-7"
    # The next pod that comes finds the other gone.
    assert node.add(pod("u2", 7)).admitted
    assert cpus(node, "u1") == {}
    assert cpus(node, "u2") == {"a": "1-7"}


def test_endless_distribution() -> None:
    """Nothing is known of it but that it does not return."""
    node = manager("4s1n4c2t", reserved="0,4", full_pcpus_only=True, distribute_cpus_across_numa=True)
    assert node.add(pod("u1", 2)).admitted
    assert node.add(pod("u2", 2)).admitted
    with pytest.raises(EndlessDistributionError):
        node.add(pod("u3", 22))


# --- affinity -------------------------------------------------------------------------------------


def test_the_policy_none_asks_for_no_hints() -> None:
    admission = manager(TWO).add(pod("u1", 2))
    assert (admission.hints, admission.affinity) == ((), {})


def test_scope_container() -> None:
    """Each container is asked for and allocated before the next."""
    node = manager(TWO, SINGLE_NUMA_NODE)
    admission = node.add(pod("u1", 3, 1.5, 3))
    assert admission.admitted
    assert [container for container, _hints in admission.hints] == ["a", "b", "c"]
    assert [hints is None for _container, (hints,) in admission.hints] == [False, True, False]
    # The second finds the first's CPUs taken.
    assert {name: hint.mask for name, hint in admission.affinity.items()} == {"a": 0b01, "b": None, "c": 0b10}
    assert cpus(node, "u1") == {"a": "1,4-5", "c": "2-3,6"}


def test_scope_pod() -> None:
    """One answer for all containers."""
    node = manager(TWO, SINGLE_NUMA_NODE, POD)
    admission = node.add(pod("u1", 2, 1.5, 2))
    assert admission.admitted
    assert [container for container, _hints in admission.hints] == [""]
    assert {name: hint.mask for name, hint in admission.affinity.items()} == dict.fromkeys("abc", 0b10)
    assert cpus(node, "u1") == {"a": "2,6", "c": "3,7"}
    # A pod that does not fit one NUMA node is not begun.
    refused = manager(TWO, SINGLE_NUMA_NODE, POD)
    assert refused.add(pod("u1", 2, 3)).reason == "TopologyAffinityError"
    assert cpus(refused, "u1") == {}
    # With the other scope it is, and what it was given stays.
    refused = manager(TWO, SINGLE_NUMA_NODE, CONTAINER)
    assert refused.add(pod("u1", 4, 4)).reason == "TopologyAffinityError"
    assert cpus(refused, "u1") == {"a": "2-3,6-7"}


def test_best_effort_with_no_hint_at_all() -> None:
    admission = manager(TWO, BEST_EFFORT).add(pod("u1", 8))
    assert [hints for _container, (hints,) in admission.hints] == [{"cpu": []}]
    assert admission.affinity == {"a": Hint(0b11, False)}
    assert admission.reason == "UnexpectedAdmissionError"


# --- leaving --------------------------------------------------------------------------------------


def test_deleted_pods_keep_their_cpus_until_somebody_looks() -> None:
    node = manager()
    node.add(pod("u1", 2))
    node.delete("u1")
    assert cpus(node, "u1") == {"a": "1,5"}
    node.remove_stale()
    assert cpus(node, "u1") == {}
    assert pool(node) == "0-7"
    node.delete("u1")  # once more is no harm


@pytest.mark.parametrize("policy", [NONE, SINGLE_NUMA_NODE])
@pytest.mark.parametrize("scope", SCOPES)
def test_the_next_pod_finds_the_cpus_of_a_deleted_one(policy: str, scope: str) -> None:
    node = manager(TWO, policy, scope)
    assert node.add(pod("u1", 4)).admitted
    node.delete("u1")
    assert node.add(pod("u2", 4)).admitted
    assert (cpus(node, "u1"), cpus(node, "u2")) == ({}, {"a": "2-3,6-7"})


def test_a_container_that_its_pod_does_not_have_is_stale() -> None:
    restored = State(CPUSet.parse("0,4"), {"u1": {"a": CPUSet.parse("1,5"), "old": CPUSet.parse("2-3,6-7")}})
    node = manager(state=restored)
    node.active["u1"] = pod("u1", 2)
    node.remove_stale()
    assert cpus(node, "u1") == {"a": "1,5"}
    assert pool(node) == "0,2-4,6-7"


def test_remove_a_container() -> None:
    node = manager()
    node.add(pod("u1", 2, 2))
    node.remove("u1", "a")
    assert cpus(node, "u1") == {"b": "2,6"}
    assert str(node.cpus_of("u1", "a")) == pool(node) == "0-1,3-5,7"
    node.remove("u1", "a")
    node.remove("u9", "a")
    assert pool(node) == "0-1,3-5,7"


def test_nothing_is_looked_at_for_a_pod_of_no_containers_that_want_cpus() -> None:
    """Yet stale pods are."""
    node = manager()
    node.add(pod("u1", 2))
    node.delete("u1")
    assert node.add(pod("u2", 0.5)).admitted
    assert pool(node) == "0-7"


# --- a restart ------------------------------------------------------------------------------------


def restarted(node: CPUManager, **options: Any) -> CPUManager:
    again = manager(state=read_checkpoint(node.checkpoint(), MINOR).state(), **options)
    again.active = dict(node.active)
    return again


def test_restart() -> None:
    node = manager()
    node.add(pod("u1", 2, init=4))
    again = restarted(node)
    assert again.checkpoint() == node.checkpoint()
    assert not again.state.stored
    assert again.add(pod("u2", 2)).admitted
    assert cpus(again, "u1") == {"init": "1-2,5-6", "a": "1,5"}
    assert cpus(again, "u2") == {"a": "3,7"}


def test_pods_that_went_during_a_restart() -> None:
    node = manager()
    node.add(pod("u1", 2))
    node.add(pod("u2", 2))
    node.delete("u1")
    again = restarted(node)
    assert again.add(pod("u3", 3)).admitted
    assert (cpus(again, "u1"), cpus(again, "u3")) == ({}, {"a": "1,4-5"})


def test_a_restart_that_fails() -> None:
    node = manager()
    node.add(pod("u1", 7))
    with pytest.raises(StateError, match="some of strictly reserved cpus"):
        restarted(node, strict_cpu_reservation=True)
    strict = manager(strict_cpu_reservation=True)
    strict.add(pod("u1", 7))
    # It took all: what it wrote itself it would not read.
    with pytest.raises(StateError, match="default cpuset cannot be empty"):
        restarted(strict, strict_cpu_reservation=True)
