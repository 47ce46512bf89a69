# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_node/providers.py: plans in which memory and devices have a say, and are known."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType
from typing import Any, Mapping

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError, RefusedError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._containers.pods import pods_from_manifests
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.findings import Host
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.allocation import (
    Question,
    default_configuration,
    plan_allocations,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.beside_cpus import (
    given_memory,
    memory_for_plan,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.hints import OtherManagers
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.memory import StaticMemory
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.memory_manager import (
    MemoryConfig,
    judge_memory,
    restore_memory,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.kubelet_view import kubelet_view
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.model import Topology
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.sysfs import read_sysfs
from ansible_collections.kubenode.cpu_manager.tests.machines.device_checkpoint import device_state
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import parse_name
from ansible_collections.kubenode.cpu_manager.tests.machines.tree import NODE_MEMORY, write_tree
from ansible_collections.kubenode.cpu_manager.tests.unit.plugins.module_utils.policy.test_memory import entries_of

GIB = 1 << 30
GPU = "nvidia.com/gpu"
PAGES = "hugepages-1Gi"
MACHINE = parse_name("2s1n8c2t").topology()
NODES = {node: {"memory": 16 * GIB, PAGES: 4 * GIB} for node in (0, 1)}
TWO_AND_ONE = [
    {"resource": GPU, "count": 2, "numa_nodes": [0]},
    {"resource": GPU, "count": 1, "numa_nodes": [1]},
]
MEMORY: dict[str, Any] = {
    "memory_manager_policy": "Static",
    "system_reserved_memory": "924Mi",
    "reserved_memory": [{"numaNode": 0, "limits": {"memory": "1Gi"}}],
}
RESERVED = {0: {"memory": GIB}}
NOTHING: Mapping[str, Any] = MappingProxyType({})


def pod(name: str, cpu: str = "2", memory: str = "1Gi", *, spec: Mapping[str, Any] = NOTHING, **limits: str) -> Any:
    """Return the manifest of a pod; gpu, nic and pages are short for the names of these resources."""
    named = {{"gpu": GPU, "pages": PAGES, "nic": "vendor.com/nic"}[key]: value for key, value in limits.items()}
    container = {"name": "c", "resources": {"limits": {"cpu": cpu, "memory": memory, **named}}}
    return {"metadata": {"name": name}, "spec": {"containers": [container], **spec}}


def ask(
    *manifests: Any,
    others: OtherManagers,
    memory: int | None = None,
    machine: Topology = MACHINE,
    **wanted: Any,
) -> Any:
    settings = {
        "cpu_manager_policy": "static",
        "reserved_system_cpus": "0",
        "topology_manager_policy": "single-numa-node",
        **wanted,
    }
    nodes = tuple(node.id for node in machine.numa_nodes)
    host = Host(kubelet_view(machine), 36, nodes, machine.numa_distances, memory=memory)
    pods = pods_from_manifests(manifests)
    return plan_allocations(Question(machine, host, default_configuration(), settings, None, pods, others=others))


def places(plan: Any) -> dict[str, list[int]]:
    return {row["pod"]: row["numa_nodes"] for row in plan["containers"]}


def refusals(plan: Any) -> dict[str, tuple[str, str]]:
    return {row["pod"]: (row["reason"], row["why"]) for row in plan["refused"]}


# --- memory -----------------------------------------------------------------------------------------


def test_cpus_come_from_the_node_of_the_memory() -> None:
    others = OtherManagers(memory=NODES)
    # Node 0 has 11 GiB for pods, node 1 has 12.
    plan = ask(pod("a", memory="10Gi"), pod("b", memory="10Gi"), pod("c", memory="3Gi"), others=others, **MEMORY)
    assert places(plan) == {"a": [0], "b": [1]}
    assert (plan["exact"], plan["notes"]) == (True, [])
    assert refusals(plan) == {
        "c": (
            "UnexpectedAdmissionError",
            "memory: container c wants 3Gi of memory of 1 NUMA node, and free are 1Gi of node 0, 2Gi of node 1",
        )
    }
    assert plan["memory"]["numa_nodes"][1] == {
        "node": 1,
        "group": [1],
        "allocatable": {"memory": 12 * GIB, PAGES: 4 * GIB},
        "free": {"memory": 2 * GIB, PAGES: 4 * GIB},
    }
    assert plan["memory"]["containers"][0] == {
        "pod": "a",
        "uid": "a",
        "container": "c",
        "type": "memory",
        "size": 10 * GIB,
        "numa_nodes": [0],
    }
    assert "pod a, container c: 10Gi of memory, NUMA nodes 0\n" in plan["after"]
    assert "memory" not in plan["before"]


def test_of_all_kinds_of_memory_it_is_said_what_is_free() -> None:
    plan = ask(
        pod("a", memory="20Gi", pages="2Gi"),
        others=OtherManagers(memory=NODES),
        **{**MEMORY, "topology_manager_policy": "restricted"},
    )
    assert refusals(plan)["a"][1] == (
        "cpu and memory: container c wants 2 CPUs of 1 NUMA node, and free are 15 of node 0, 16 of node 1; container c"
        " wants 20Gi of memory and 2Gi of hugepages-1Gi of 2 NUMA nodes, and free are 11Gi of memory and 4Gi of"
        " hugepages-1Gi of node 0, 12Gi of memory and 4Gi of hugepages-1Gi of node 1"
    )


def test_a_group_of_nodes_serves_nobody_else() -> None:
    plan = ask(
        pod("wide", cpu="20", memory="20Gi"),
        pod("small", memory="1Gi"),
        others=OtherManagers(memory=NODES),
        **{**MEMORY, "topology_manager_policy": "restricted"},
    )
    assert places(plan) == {"wide": [0, 1]}
    assert [row["group"] for row in plan["memory"]["numa_nodes"]] == [[0, 1], [0, 1]]
    (reason, why) = refusals(plan)["small"]
    assert reason == "TopologyAffinityError"
    assert why == (
        "memory: container c wants 1Gi of memory of 1 NUMA node, and free are 0 of node 0, 3Gi of node 1;"
        " nodes 0, 1 serve together"
    )


def test_without_the_policy_static_huge_pages_are_counted() -> None:
    pods = [pod("a", pages="6Gi"), pod("b", pages="3Gi")]
    plan = ask(*pods, others=OtherManagers(memory=NODES), topology_manager_policy="none")
    assert (plan["exact"], plan["memory"]) == (True, {})
    (refused,) = plan["refused"]
    assert (refused["pod"], refused["reason"]) == ("b", "OutOfhugepages-1Gi")
    assert refused["message"] == (
        "Node didn't have enough resource: hugepages-1Gi, requested: 3221225472, used: 6442450944, capacity: 8589934592"
    )


def memory_state(**owned: Any) -> bytes:
    """Return what a kubelet has written that gave containers of pods so many MiB of a node: pod=(MiB, node)."""
    config = MemoryConfig("Static", RESERVED, 36, machine=NODES)
    manager = StaticMemory(config)
    for uid, (size, node) in owned.items():
        manager.entries.update(entries_of({uid + "/c": [("memory", size, node)]}))
        manager._reserve([node], "memory", size << 20)
    assert judge_memory(manager.state(), config).verdict == "accepted"
    return manager.state()


def test_running_pods_keep_their_memory() -> None:
    """One is listed, one is not; the latter has no CPU for itself."""
    others = OtherManagers(memory=NODES, memory_state=memory_state(u1=(9 * 1024, 1), u2=(10 * 1024, 0)))
    listed = pod("a", memory="9Gi")
    listed["metadata"]["uid"] = "u1"
    plan = ask(listed, pod("b", memory="2Gi"), others=others, **MEMORY)
    # A kubelet that starts again gives it CPUs of the node of its memory.
    assert places(plan) == {"a": [1], "b": [1]}
    assert [(row["pod"], row["numa_nodes"]) for row in plan["memory"]["containers"]] == [
        ("b", [1]),
        ("a", [1]),
        ("u2", [0]),
    ]
    assert plan["before"].endswith(
        "pod u1, container c: 9Gi of memory, NUMA nodes 1\npod u2, container c: 10Gi of memory, NUMA nodes 0\n"
    )


def test_a_state_that_would_be_refused_is_named() -> None:
    others = OtherManagers(memory=NODES, memory_state=b'{"policyName":"None","machineState":{},"checksum":4236770233}')
    plan = ask(pod("a"), others=others, **MEMORY)
    (note,) = plan["notes"]
    assert note == (
        'the kubelet would refuse the memory manager\'s state ([memorymanager] configured policy "Static" differs from'
        ' state checkpoint policy "None"); in this plan no pod has memory at first'
    )


def test_what_is_planned_is_what_the_next_start_reads() -> None:
    """The blocks of a plan, as a state of the kubelet, are those that it restores."""
    plan = ask(
        pod("a", memory="5Gi", pages="2Gi"), pod("b", memory="9Gi"), others=OtherManagers(memory=NODES), **MEMORY
    )
    config = MemoryConfig("Static", RESERVED, 36, machine=NODES)
    manager = StaticMemory(config)
    for row in plan["memory"]["containers"]:
        block = {"numaAffinity": row["numa_nodes"], "type": row["type"], "size": row["size"]}
        manager.entries.setdefault(row["uid"], {}).setdefault(row["container"], []).append(block)
        manager._reserve(row["numa_nodes"], row["type"], row["size"])
    assert judge_memory(manager.state(), config).verdict == "accepted"
    again = restore_memory(manager.state(), config)
    free = {row["node"]: row["free"] for row in plan["memory"]["numa_nodes"]}
    assert {
        node: {kind: table["free"] for kind, table in place["memoryMap"].items()}
        for node, place in (again.machine or {}).items()
    } == free


# --- devices ----------------------------------------------------------------------------------------


def test_devices_that_are_given() -> None:
    others = OtherManagers(devices=TWO_AND_ONE)
    plan = ask(pod("a", gpu="1"), pod("b", gpu="2"), pod("c", gpu="1"), others=others)
    # The first could have had that of either node, and takes the lower.
    assert places(plan) == {"a": [0], "c": [0]}
    assert plan["exact"] is True
    ((name, (reason, why)),) = refusals(plan).items()
    assert (name, reason) == ("b", "TopologyAffinityError")
    assert why == (
        "nvidia.com/gpu: container c wants 2 of nvidia.com/gpu of 1 NUMA node, and free are 1 of node 0, 1 of node 1"
    )
    assert plan["devices"] == {
        "free": [{"resource": GPU, "count": 1, "numa_nodes": [1]}],
        "containers": [
            {"pod": name, "uid": name, "container": "c", "resource": GPU, "count": 1, "numa_nodes": [0]}
            for name in ("a", "c")
        ],
    }
    assert "pod a, container c: 1 of nvidia.com/gpu, NUMA nodes 0\n" in plan["after"]


def test_what_is_free_of_an_empty_node_can_be_given() -> None:
    plan = ask(pod("a"), others=OtherManagers(devices=TWO_AND_ONE))
    assert plan["devices"]["free"] == TWO_AND_ONE


def test_both_could_be_aligned_and_not_together() -> None:
    devices = [{"resource": GPU, "count": 1, "numa_nodes": [1]}]
    # One CPU of node 0 is reserved, so that 16 are of node 1.
    plan = ask(pod("a", cpu="16"), pod("b", cpu="14", gpu="1"), others=OtherManagers(devices=devices))
    (reason, why) = refusals(plan)["b"]
    assert reason == "TopologyAffinityError"
    assert why == (
        "cpu and nvidia.com/gpu: container c wants 14 CPUs of 1 NUMA node, and free are 15 of node 0, 0 of node 1;"
        " container c wants 1 of nvidia.com/gpu of 1 NUMA node, and free are 1 of node 1"
    )


def test_memory_and_devices_together() -> None:
    others = OtherManagers(memory=NODES, devices=TWO_AND_ONE)
    pods = [pod("a", memory="11Gi"), pod("b", memory="5Gi", gpu="1"), pod("c", memory="5Gi", gpu="1")]
    plan = ask(*pods, others=others, **MEMORY)
    # Node 0 has GPUs left, and no memory.
    assert places(plan) == {"a": [0], "b": [1]}
    (reason, why) = refusals(plan)["c"]
    assert reason == "TopologyAffinityError"
    assert why == (
        "nvidia.com/gpu and memory: container c wants 1 of nvidia.com/gpu of 1 NUMA node, and free are 2 of node 0, 0"
        " of node 1; container c wants 5Gi of memory of 1 NUMA node, and free are 0 of node 0, 7Gi of node 1"
    )


def test_a_choice_of_the_plugin_is_not_exact() -> None:
    plan = ask(
        pod("z"),
        pod("a", gpu="2"),
        others=OtherManagers(devices=[{"resource": GPU, "count": 1, "numa_nodes": [n]} for n in (0, 0, 1, 1)]),
        topology_manager_policy="best-effort",
    )
    assert plan["exact"] is True
    plan = ask(
        pod("z"),
        pod("a", gpu="3"),
        others=OtherManagers(devices=[{"resource": GPU, "count": 2, "numa_nodes": [n]} for n in (0, 1)]),
        topology_manager_policy="best-effort",
    )
    assert plan["exact"] is False
    assert plan["notes"][-1] == (
        "not exact from pod a on: container c of pod a gets some of several devices nvidia.com/gpu of different NUMA"
        " nodes, and their plugin or chance decides which"
    )


def test_of_two_resources_the_unknown_one_is_named() -> None:
    plan = ask(pod("a", gpu="1"), pod("b", nic="1"), others=OtherManagers(devices=TWO_AND_ONE))
    (note,) = plan["notes"]
    assert note.startswith("not exact from pod b on: ")
    assert "NUMA nodes of vendor.com/nic, which are not known" in note


def test_a_report_of_eight_devices_on_four_nodes() -> None:
    """kubernetes/kubernetes#139430: the affinity was all four nodes, and the CPUs were of three."""
    machine = parse_name("2s2n32c2t").topology()
    settings = {
        "cpu_manager_policy": "static",
        "cpu_manager_policy_options": {"distribute-cpus-across-numa": "true"},
        "reserved_system_cpus": "0,128",
        "topology_manager_policy": "best-effort",
        "topology_manager_policy_options": {"prefer-closest-numa-nodes": "true"},
    }
    devices = [{"resource": GPU, "count": 2, "numa_nodes": [node]} for node in range(4)]
    plan = plan_allocations(
        Question(
            machine,
            Host(kubelet_view(machine), 35, distances=machine.numa_distances),
            default_configuration(),
            settings,
            None,
            pods_from_manifests([pod("train", cpu="176", memory="100Gi", gpu="8")]),
            others=OtherManagers(devices=devices),
        )
    )
    assert (plan["exact"], plan["refused"]) == (True, [])
    assert plan["containers"][0]["cpus"] == "32-61,64-93,96-124,160-188,192-220,224-252"
    assert [row["numa_nodes"] for row in plan["devices"]["containers"]] == [[0], [1], [2], [3]]


# --- the checkpoint of devices ------------------------------------------------------------------------


def test_devices_in_use_are_where_the_checkpoint_says() -> None:
    content = device_state({GPU: ["x", "y"]}, ("u1", {"1": ["x"]}), ("u2", {"0": ["y"]}))
    others = OtherManagers(device_state=content)
    listed = pod("a", gpu="1")
    listed["metadata"]["uid"] = "u1"
    plan = ask(listed, pod("b", gpu="1"), others=others)
    # All are known, because containers have all; none is left.
    assert (plan["exact"], places(plan)) == (True, {"a": [1]})
    assert plan["devices"]["free"] == []
    assert [(row["pod"], row["numa_nodes"]) for row in plan["devices"]["containers"]] == [("a", [1]), ("u2", [0])]
    assert refusals(plan)["b"][0] == "TopologyAffinityError"


def test_a_device_that_nobody_has_is_not_known_by_the_checkpoint() -> None:
    content = device_state({GPU: ["x", "y"]}, ("u1", {"1": ["x"]}))
    plan = ask(pod("b", gpu="1"), others=OtherManagers(device_state=content))
    assert plan["exact"] is False
    # With those that are given it is.
    devices = [{"resource": GPU, "count": 1, "numa_nodes": [node]} for node in (0, 1)]
    plan = ask(pod("b", gpu="1"), others=OtherManagers(device_state=content, devices=devices))
    assert (plan["exact"], places(plan)) == (True, {"b": [0]})


def test_devices_without_a_node() -> None:
    content = device_state({GPU: ["x"]}, ("u1", {"-1": ["x"]}))
    devices = [{"resource": GPU, "count": 2, "numa_nodes": []}]
    plan = ask(pod("b", gpu="1"), others=OtherManagers(device_state=content, devices=devices))
    assert (plan["exact"], places(plan)) == (True, {"b": [0]})


def test_devices_of_nodes_that_the_machine_does_not_have_are_on_none() -> None:
    content = device_state({GPU: ["x", "y"]}, ("u1", {"-7": ["x"], "9223372036854775807": ["y"]}))
    plan = ask(pod("b", gpu="1"), others=OtherManagers(device_state=content))
    assert [row["numa_nodes"] for row in plan["devices"]["containers"]] == [[]]


def test_a_damaged_checkpoint_is_passed_over() -> None:
    plan = ask(pod("a", gpu="1"), others=OtherManagers(device_state=b"{", devices=TWO_AND_ONE))
    (note,) = plan["notes"]
    assert note == (
        "the kubelet passes over its checkpoint of devices (unexpected end of JSON input); in this plan no pod has one"
        " at first"
    )
    assert places(plan) == {"a": [0]}


# --- other policies, and bad input --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("what", "manager", "memory"),
    [
        ({"gpu": "1"}, "restricted", None),
        # Of a resource that nobody knows the kubelet asks all plugins.
        ({"nic": "1"}, "best-effort", None),
        ({}, "restricted", MEMORY),
        # Without the topology manager, the memory manager goes through the sets itself.
        ({}, "none", MEMORY),
    ],
)
def test_a_machine_with_the_memory_of_32_gpus_is_not_gone_through(what: Any, manager: str, memory: Any) -> None:
    """2^34 sets of NUMA nodes would take all memory and days."""
    machine = parse_name("2s1n4c+memory32").topology()
    others = OtherManagers(memory={node.id: {"memory": 16 * GIB} for node in machine.numa_nodes}, devices=TWO_AND_ONE)
    wanted = {
        "topology_manager_policy": manager,
        "topology_manager_policy_options": {} if manager == "none" else {"max-allowable-numa-nodes": "64"},
        **(memory or {}),
    }
    with pytest.raises(RefusedError, match=r" goes through all sets of the 34 NUMA nodes, 2\^34: "):
        ask(pod("a", **what), others=others, machine=machine, **wanted)
    # Devices without the topology manager need no hints.
    if memory is None:
        plan = ask(pod("a", gpu="1"), others=others, machine=machine, topology_manager_policy="none")
        assert plan["refused"] == []


def test_a_policy_of_ours_looks_at_cpus_alone() -> None:
    pods = pods_from_manifests([pod("a", gpu="1")])
    others = OtherManagers(devices=TWO_AND_ONE)
    settings = {"cpu_manager_policy": "none", "reserved_system_cpus": "0"}
    host = Host(kubelet_view(MACHINE), 36)
    question = Question(MACHINE, host, default_configuration(), settings, None, pods, policy="dynamic", others=others)
    plan = plan_allocations(question)
    assert (plan["exact"], plan["devices"]) == (False, {})


@pytest.mark.parametrize(
    ("others", "what"),
    [
        (
            OtherManagers(memory={0: {"memory": GIB}}),
            "numa_memory: there are the NUMA nodes 0, and the machine has 0, 1",
        ),
        (
            OtherManagers(devices=[{"resource": GPU, "count": -1, "numa_nodes": []}]),
            r"devices\[0\].count: -1 is no count from 0 to 10000",
        ),
        (
            OtherManagers(devices=[*TWO_AND_ONE, {"resource": GPU, "count": 1, "numa_nodes": [0, 7]}]),
            r"devices\[2\].numa_nodes: NUMA node 7 does not exist",
        ),
        (
            OtherManagers(
                devices=[{"resource": GPU, "count": 1, "numa_nodes": [0]}],
                device_state=device_state({GPU: ["x"]}, ("u1", {"1": ["x"]})),
            ),
            "devices: containers have 1 of nvidia.com/gpu of NUMA nodes 1, and 0 are given",
        ),
    ],
)
def test_bad_input(others: OtherManagers, what: str) -> None:
    with pytest.raises(InputError, match=what):
        ask(pod("a", gpu="1"), others=others)


def test_the_memory_of_a_node(tmp_path: Path) -> None:
    """A kernel without NUMA has sockets that count as nodes, and says of none what memory it has."""
    for name, with_numa in (("numa", True), ("plain", False)):
        write_tree(MACHINE, tmp_path / name, with_numa=with_numa)
        tree = Tree(str(tmp_path / name))
        memory = memory_for_plan(tree, read_sysfs(tree))
        assert memory == ({node: {"memory": NODE_MEMORY * 1024} for node in (0, 1)} if with_numa else None)


def test_given_memory() -> None:
    rows = [{"numa_node": 0, "amounts": {"memory": "2Gi", PAGES: "1Gi"}}, {"numa_node": 1, "amounts": {"memory": 5}}]
    assert given_memory(rows, "numa_memory") == {0: {"memory": 2 * GIB, PAGES: GIB}, 1: {"memory": 5}}


@pytest.mark.parametrize(
    ("rows", "what"),
    [
        ([{"numa_node": 0, "amounts": {}}] * 2, r"m\[1\]: NUMA node 0 is there twice"),
        ([{"numa_node": 0, "amounts": {"cpu": 1}}], r"m\[0\].amounts: cpu is no memory"),
        ([{"numa_node": 0, "amounts": {"hugepages-big": 1}}], r"m\[0\].amounts: hugepages-big is no memory"),
        ([{"numa_node": 0, "amounts": {"memory": "much"}}], r"m\[0\].amounts.memory: quantity 'much'"),
        ([{"numa_node": 0, "amounts": {"memory": -1}}], r"m\[0\].amounts: an amount is below 0, or more is huge pages"),
        ([{"numa_node": 0, "amounts": {"memory": 1, PAGES: 2}}], "an amount is below 0, or more is huge pages"),
    ],
)
def test_bad_memory(rows: Any, what: str) -> None:
    with pytest.raises(InputError, match=what):
        given_memory(rows, "m")
