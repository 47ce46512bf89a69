# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/policy/static.py."""

from __future__ import annotations

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._containers.pods import pod_from_manifest
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.hints import (
    BEST_EFFORT,
    CONTAINER,
    NONE,
    POD,
    RESTRICTED,
    SINGLE_NUMA_NODE,
    TopologyManager,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.manager import CPUManager
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.static import NonePolicy
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State

POD_OF_TWO_CPUS = pod_from_manifest(
    {
        "metadata": {"name": "web", "uid": "u1"},
        "spec": {"containers": [{"name": "app", "resources": {"limits": {"cpu": 2, "memory": "1Gi"}}}]},
    }
)
FILE = b'{"policyName":"none","defaultCpuSet":"","checksum":1353318690}'


@pytest.mark.parametrize("policy", [NONE, BEST_EFFORT, RESTRICTED, SINGLE_NUMA_NODE])
@pytest.mark.parametrize("scope", [CONTAINER, POD])
def test_every_pod_is_admitted_and_has_nothing_for_itself(policy: str, scope: str) -> None:
    manager = CPUManager(NonePolicy(), TopologyManager(policy, scope, [0, 1]))
    before = manager.checkpoint()
    admission = manager.add(POD_OF_TWO_CPUS)
    assert admission.admitted
    assert all(hints == [None] for _container, hints in admission.hints)
    assert manager.cpus_of("u1", "app") == CPUSet()
    assert manager.state.assignments == {}
    manager.remove("u1", "app")
    manager.delete("u1")
    manager.remove_stale()
    assert manager.checkpoint() == before == FILE


def test_summary() -> None:
    policy = NonePolicy()
    assert policy.name == "none"
    assert policy.summary.reserved == policy.summary.reserved_physical == policy.summary.allocatable == CPUSet()


def test_it_looks_at_no_state() -> None:
    strange = State(CPUSet.parse("0-99"), {"u9": {"a": CPUSet.parse("50-200")}})
    manager = CPUManager(NonePolicy(), TopologyManager(NONE, CONTAINER, [0]), strange)
    assert manager.state.snapshot() == strange
    manager.remove_stale()  # and takes nothing back
    assert manager.state.snapshot() == strange
    assert not manager.state.stored
