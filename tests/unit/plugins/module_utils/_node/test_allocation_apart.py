# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_node/allocation.py: CPUs of one NUMA node, and memory or devices of another."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.configuration import Configuration
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.allocation import (
    plan_allocations,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.hints import OtherManagers
from ansible_collections.kubenode.cpu_manager.tests.machines.device_checkpoint import GPU
from ansible_collections.kubenode.cpu_manager.tests.unit.plugins.module_utils._node.test_allocation_running import (
    DEVICES,
    MEMORY,
    NODES,
    Left,
    asked,
    has,
    pod,
)

BEGINNING = "memory or devices are of other NUMA nodes than the CPUs: "
DISTRIBUTED: dict[str, Any] = {"cpu_manager_policy_options": {"distribute-cpus-across-numa": "true"}}


def ask(*manifests: Any, **wanted: Any) -> Any:
    """Plan allocations where node 0 has 8 GiB and 6 CPUs for pods, and node 1 has 9 GiB and 8 CPUs; each has two
    devices."""
    question = asked(manifests, Left(others=OtherManagers(NODES, devices=DEVICES)), **{**MEMORY, **wanted})
    values = {**question.configuration.values, "featureGates": {"CPUManagerPolicyAlphaOptions": True}}
    return plan_allocations(question._replace(configuration=Configuration(values, question.configuration.source)))


def apart(plan: Any) -> list[str]:
    """Return which containers are named."""
    return [
        note[len(BEGINNING) : note.index("; the static policy")] for note in plan["notes"] if note.startswith(BEGINNING)
    ]


@pytest.mark.parametrize(
    ("manifests", "wanted", "expected"),
    [
        # Half of the CPUs of each node, as the option says, and nothing looks at the memory.
        ([pod("vnf", "10")], DISTRIBUTED, ["vnf/c (CPUs of nodes 0 and 1, memory of node 0)"]),
        # What is left of CPUs is on node 1, and the first node with memory is 0.
        ([pod("a", "6"), pod("b", "4")], {}, ["b/c (CPUs of node 1, memory of node 0)"]),
        # best-effort takes what it can have where it cannot have both.
        (
            [pod("a", "2", "7Gi"), pod("b", "4", "5Gi"), pod("c", "5", "2Gi")],
            {"topology_manager_policy": "best-effort"},
            ["c/c (CPUs of nodes 0 and 1, memory of node 1)"],
        ),
        # Memory of both, CPUs of one.
        ([pod("a", "2", "10Gi")], {}, ["a/c (CPUs of node 0, memory of nodes 0 and 1)"]),
        # Who has no CPUs of its own runs on all nodes, also where nobody has.
        ([pod("a", "500m")], {}, ["a/c (shared CPUs of nodes 0 and 1, memory of node 0)"]),
        (
            [pod("a", "2")],
            {"cpu_manager_policy": "none", "reserved_system_cpus": ""},
            ["a/c (shared CPUs of nodes 0 and 1, memory of node 0)"],
        ),
        # Without the memory manager, devices: the third is on node 1.
        (
            [pod("a", "1", gpu=2), pod("b", "1", gpu=1)],
            {"memory_manager_policy": "None", "reserved_memory": []},
            ["b/c (CPUs of node 0, %s of node 1)" % GPU],
        ),
    ],
)
def test_cpus_of_one_numa_node_and_memory_or_devices_of_another_are_named(
    manifests: list[Any], wanted: dict[str, Any], expected: list[str]
) -> None:
    plan = ask(*manifests, **wanted)
    assert (apart(plan), plan["refused"], plan["exact"]) == (expected, [], True)


def test_what_is_aligned_is_not_named() -> None:
    for policy in ("restricted", "single-numa-node"):
        plan = ask(pod("a", "6", "6Gi", gpu=2), pod("b", "4", gpu=1), topology_manager_policy=policy)
        assert (apart(plan), plan["refused"]) == ([], [])
    # An init container ends soon.
    manifest = pod("a", "6")
    manifest["spec"]["initContainers"] = [{"name": "init", "resources": {"limits": {"cpu": "500m", "memory": "1Gi"}}}]
    assert apart(ask(manifest)) == []


def test_many_containers_are_one_note() -> None:
    plan = ask(pod("a", "6"), pod("b", "4"), *(pod("s%d" % number, "100m", "64Mi") for number in range(12)))
    (named,) = apart(plan)
    assert named.startswith("b/c (CPUs of node 1, memory of node 0), s0/c (shared CPUs of ")
    assert named.endswith(", and 3 containers more")
    assert len(has(plan)) == 14
