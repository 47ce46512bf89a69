# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where a plan is not what the kubelet does: pods ask for more than CPUs, and other managers have a say."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Mapping

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._containers.pods import pods_from_manifests
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.findings import Host
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.allocation import (
    Question,
    default_configuration,
    plan_allocations,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import write_checkpoint
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.kubelet_view import kubelet_view
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import parse_name
from ansible_collections.kubenode.cpu_manager.tests.machines.values import cpus

GPU = "nvidia.com/gpu"
# A report of four NUMA nodes and eight GPUs: their hints made the kubelet take CPUs of all four.
LARGE = "2s2n32c2t"
SPREAD: dict[str, Any] = {
    "cpu_manager_policy_options": {"distribute-cpus-across-numa": "true"},
    "reserved_system_cpus": "0,128",
}
BEST_EFFORT: dict[str, Any] = {
    "topology_manager_policy": "best-effort",
    "topology_manager_policy_options": {"prefer-closest-numa-nodes": "true"},
}
# One with the Static memory manager, two NUMA nodes of 73 GiB and 81 GiB for pods, and huge pages.
MEMORY: dict[str, Any] = {
    "topology_manager_policy": "restricted",
    "memory_manager_policy": "Static",
    "reserved_system_cpus": "0-1,40-41",
    "system_reserved_memory": "1Gi",
    "reserved_memory": [{"numaNode": 0, "limits": {"memory": "1124Mi"}}],
}


NOTHING: Mapping[str, Any] = MappingProxyType({})


def manifest(name: str, spec: Mapping[str, Any] = NOTHING, limits: Mapping[str, str] = NOTHING) -> Any:
    container = {"name": "c", "resources": {"limits": {"cpu": "2", "memory": "1Gi", **limits}}}
    return {"metadata": {"name": name}, "spec": {"containers": [container], **spec}}


def asking(name: str, resource: str, amount: str = "1", **limits: str) -> Any:
    return manifest(name, limits={resource: amount, **limits})


def ask(
    *manifests: Any, machine: str = "2s1n4c2t", checkpoint: bytes | None = None, minor: int = 36, **wanted: Any
) -> Any:
    topology = parse_name(machine).topology()
    settings = {"cpu_manager_policy": "static", "reserved_system_cpus": "0", **wanted}
    host = Host(kubelet_view(topology), minor, distances=topology.numa_distances)
    pods = pods_from_manifests(manifests)
    return plan_allocations(Question(topology, host, default_configuration(), settings, checkpoint, pods))


def limits(plan: Any) -> list[str]:
    """Return what the plan says of its limits; nothing where it is exact."""
    found = [note for note in plan["notes"] if note.startswith("not exact")]
    assert plan["exact"] is not bool(found)
    return found


def test_the_hints_of_devices_are_not_known() -> None:
    pod = asking("ai", GPU, "8", cpu="176", memory="100Gi")
    plan = ask(pod, manifest("b"), machine=LARGE, minor=35, **SPREAD, **BEST_EFFORT)
    (note,) = limits(plan)
    assert note == (
        "not exact from pod ai on: the topology manager (best-effort) also goes by the NUMA nodes of nvidia.com/gpu,"
        " which are not known here: a pod that asks for it, and those after it, can get other CPUs or be refused"
    )
    # Without the topology manager nobody asks for hints: these CPUs are sure, if there are eight GPUs.
    plan = ask(pod, machine=LARGE, minor=35, **SPREAD)
    assert plan["containers"][0]["cpus"] == "32-61,64-93,96-124,160-188,192-220,224-252"
    (note,) = limits(plan)
    assert note == (
        "not exact from pod ai on: nvidia.com/gpu is not counted: the kubelet refuses a pod that cannot have it, and"
        " then those after it can get other CPUs"
    )


def test_the_memory_manager_has_a_say() -> None:
    pod = asking("m", "hugepages-1Gi", "2Gi", memory="90Gi")
    (note,) = limits(ask(pod, machine="2s1n20c2t", minor=33, **MEMORY))
    assert note == (
        "not exact from pod m on: the topology manager (restricted) also goes by the NUMA nodes of hugepages-1Gi and"
        " memory (memory manager Static), which are not known here: a pod that asks for them, and those after it, can"
        " get other CPUs or be refused"
    )
    # It refuses without the topology manager, too, but gives CPUs no place.
    (note,) = limits(ask(pod, machine="2s1n20c2t", minor=33, **{**MEMORY, "topology_manager_policy": "none"}))
    assert note == (
        "not exact from pod m on: hugepages-1Gi and memory (memory manager Static) are not counted: the kubelet refuses"
        " a pod that cannot have them, and then those after it can get other CPUs"
    )
    # It looks at Guaranteed pods only, and from 1.34 on at none with resources of its own.
    shared = {"metadata": {"name": "s"}, "spec": {"containers": [{"name": "c"}]}}
    assert limits(ask(shared, machine="2s1n20c2t", **MEMORY)) == []
    whole = manifest("w", spec={"resources": {"limits": {"cpu": "2", "memory": "1Gi"}}})
    assert limits(ask(whole, machine="2s1n20c2t", minor=34, **MEMORY)) == []
    assert len(limits(ask(whole, machine="2s1n20c2t", minor=33, **MEMORY))) == 1


def test_cpus_and_memory_alone_are_exact() -> None:
    for policy in ("none", "best-effort", "restricted", "single-numa-node"):
        plan = ask(manifest("a"), asking("b", GPU, "0"), topology_manager_policy=policy)
        assert limits(plan) == []


@pytest.mark.parametrize(
    ("resource", "is_hint"),
    [
        ("intel.com/sriov_netdevice", True),
        ("devices.kubevirt.io/kvm", True),
        # No device plugin may register these.
        ("kubernetes.io/batch-cpu", False),
        ("hugepages-2Mi", False),
        ("ephemeral-storage", False),
    ],
)
def test_what_gives_hints(resource: str, is_hint: bool) -> None:
    (note,) = limits(ask(asking("a", resource), topology_manager_policy="single-numa-node"))
    assert resource in note
    assert ("goes by the NUMA nodes" in note) is is_hint


@pytest.mark.parametrize(
    ("machine", "wanted"),
    [
        ("1s4c2t", {"topology_manager_policy": "restricted"}),
        ("2s1n4c2t", {"topology_manager_policy": "restricted", "cpu_manager_policy": "none"}),
    ],
)
def test_with_one_numa_node_or_no_static_policy_hints_move_no_cpus(machine: str, wanted: dict[str, Any]) -> None:
    (note,) = limits(ask(asking("a", GPU), machine=machine, **wanted))
    assert "nvidia.com/gpu is not counted" in note


def test_it_is_exact_up_to_the_first_pod_with_more() -> None:
    pods = [manifest("a"), asking("b", "vendor.com/fpga"), asking("c", GPU), asking("d", "hugepages-2Mi", "2Mi")]
    (note,) = limits(ask(*pods, topology_manager_policy="restricted"))
    assert note.startswith("not exact from pod b on: ")
    assert "NUMA nodes of nvidia.com/gpu and vendor.com/fpga, " in note
    assert "; hugepages-2Mi is not counted: " in note


def test_init_containers_and_whole_pods_count() -> None:
    init = {"name": "i", "resources": {"limits": {GPU: "1"}}}
    assert len(limits(ask(manifest("a", spec={"initContainers": [init]})))) == 1
    whole = manifest("a", spec={"resources": {"limits": {"hugepages-2Mi": "2Mi"}}})
    assert len(limits(ask(whole))) == 1


def test_claims_are_the_drivers() -> None:
    """The DRA manager gives the topology manager no hints; a driver of CPUs gives them out itself."""
    claims = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
    pod = manifest("a", spec={"resourceClaims": claims})
    (note,) = limits(ask(pod, topology_manager_policy="restricted"))
    assert note == (
        "not exact from pod a on: resourceClaims are not looked at: their drivers choose devices, and CPUs where one"
        " manages them"
    )


def test_a_pod_that_has_its_cpus_keeps_them() -> None:
    state = State(cpus("0-9,11-15"), {"a": {"c": cpus("10")}})
    pod = asking("a", GPU, cpu="1")
    assert limits(ask(pod, checkpoint=write_checkpoint("static", state), topology_manager_policy="restricted")) == []


@pytest.mark.parametrize(("minor", "exact"), [(20, False), (32, False), (33, True), (36, True), (37, False)])
def test_a_plan_for_a_version_whose_answers_were_never_replayed_is_not_exact(minor: int, exact: bool) -> None:
    assert ask(manifest("a"), minor=minor)["exact"] is exact
