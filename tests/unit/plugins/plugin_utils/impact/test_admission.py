# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/plugin_utils/impact/admission.py: memory and devices of a node, which decide as CPUs do."""

from __future__ import annotations

from typing import Any, Mapping

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.impact.admission import Replays
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.impact.fleet import Cluster, impact_of
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.impact.gate import impact_text, with_waivers
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.impact.workloads import Kinds
from ansible_collections.kubenode.cpu_manager.tests.machines.impacts import NONE, node_of, plan_of, pod_of

GIB = 1 << 30
GPU = "nvidia.com/gpu"
# Two NUMA nodes of 8 CPUs, of which 0 and 8 are threads of the first core.
MACHINE = "2 sockets x 4 cores x 2 threads"
ALIGNED = {
    "cpu_manager_policy": "static",
    "reserved_system_cpus": "0,8",
    "topology_manager_policy": "single-numa-node",
}
STATIC_MEMORY = {
    **ALIGNED,
    "memory_manager_policy": "Static",
    "system_reserved_memory": "924Mi",
    "reserved_memory": [{"numaNode": 0, "limits": {"memory": "1Gi"}}],
}
FOUND = {**NONE, "reserved_system_cpus": "0,8"}
MEMORY = {
    "memory": 32 * GIB,
    "numa_memory": [{"numa_node": node, "amounts": {"memory": 16 * GIB}} for node in (0, 1)],
}
GPUS = {"devices": [{"resource": GPU, "count": 1, "numa_nodes": [node]} for node in (0, 1)]}


def asking(name: str, cpu: str, memory: str = "1Gi", gpus: int = 0, day: int = 1) -> dict[str, Any]:
    pod = pod_of(name, "a", cpu, created="2026-11-%02dT00:00:00Z" % day)
    limits = pod["spec"]["containers"][0]["resources"]["limits"]
    limits.update({"memory": memory, **({GPU: str(gpus)} if gpus else {})})
    return pod


def impact(
    *pods: Any, wanted: Mapping[str, Any] | None = None, beside: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    plan = plan_of(ALIGNED if wanted is None else wanted, FOUND, MACHINE, beside=beside)
    return with_waivers(impact_of([Cluster({"host-a": ("a", plan)}, [node_of("a")], pods)]), (), "2026-12-01")


def rows(found: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    return {row["workload"][len("Pod shop/") :]: row for row in found["workloads"]}


def test_memory_of_a_numa_node_decides() -> None:
    """Node 0 keeps 1 GiB of 16 GiB for the system; no node has 20 GiB."""
    pods = [asking("half", "2", "10Gi"), asking("whole", "2", "20Gi", day=2), asking("third", "2", "10Gi", day=3)]
    found = impact(*pods, wanted=STATIC_MEMORY, beside=MEMORY)
    told = rows(found)
    assert {name: row["fate"] for name, row in told.items()} == {"half": "gains", "whole": "homeless", "third": "gains"}
    assert (told["whole"]["reason"], told["whole"]["exact"], told["whole"]["inexact"]) == (
        "UnexpectedAdmissionError",
        True,
        "",
    )
    assert told["whole"]["why"] == (
        "memory: container app wants 20Gi of memory of 1 NUMA node, and free are 5Gi of node 0, 16Gi of node 1"
    )
    assert told["whole"]["cure"].endswith("; or set memoryManagerPolicy: None")
    assert found["nodes"][0]["exact"] is True


def test_the_memory_of_the_node_is_counted() -> None:
    found = impact(asking("small", "2"), asking("large", "2", "40Gi", day=2), beside=MEMORY)
    told = rows(found)["large"]
    assert (told["fate"], told["reason"]) == ("homeless", "OutOfmemory")


def test_what_eviction_keeps_from_pods_is_what_the_configuration_says() -> None:
    """The memory manager of a kubelet starts only where what is reserved adds up."""
    reserved = {**STATIC_MEMORY, "system_reserved_memory": "512Mi"}
    more = {**MEMORY, "configuration": {"evictionHard": {"memory.available": "512Mi"}}}
    assert rows(impact(asking("half", "2"), wanted=reserved, beside=more))["half"]["fate"] == "gains"
    found = impact(asking("half", "2"), wanted=reserved, beside=MEMORY)
    assert (found["workloads"], found["nodes"][0]["exact"]) == ([], False)
    assert "reserved" in found["notes"][0]


def test_devices_of_a_numa_node_decide() -> None:
    pods = [asking("two", "2", gpus=2), asking("first", "2", gpus=1, day=2), asking("second", "6", gpus=1, day=3)]
    told = rows(impact(*pods, beside=GPUS))
    assert {name: row["fate"] for name, row in told.items()} == {"two": "homeless", "first": "gains", "second": "gains"}
    assert told["two"]["why"].startswith(GPU + ": container app wants 2 of %s of 1 NUMA node" % GPU)
    assert all(row["exact"] for row in told.values())


def test_from_the_first_pod_on_that_asks_for_what_is_not_known_it_is_not_exact() -> None:
    found = impact(asking("plain", "2"), asking("gpu", "2", gpus=1, day=2), asking("odd", "20", day=3))
    told = rows(found)
    assert {name: row["exact"] for name, row in told.items()} == {"plain": True, "gpu": False, "odd": False}
    assert told["gpu"]["inexact"].startswith("the topology manager (single-numa-node) also goes by the NUMA nodes of")
    assert found["nodes"][0]["exact"] is False
    assert GPU in found["nodes"][0]["inexact"]
    text = " ".join(impact_text(found).split())
    assert "not exact: " + told["odd"]["inexact"] in text


def test_memory_by_numa_node_that_is_not_known_is_named() -> None:
    told = rows(impact(asking("half", "2"), wanted=STATIC_MEMORY))["half"]
    assert (told["fate"], told["exact"]) == ("gains", False)
    assert "memory (memory manager Static)" in told["inexact"]


def test_a_pod_is_named_by_its_place() -> None:
    wanted = {**ALIGNED, "topology_manager_policy": "best-effort"}
    devices = {"devices": [{"resource": GPU, "count": 2, "numa_nodes": [node]} for node in (0, 1)]}
    told = rows(impact(asking("plain", "2"), asking("three", "2", gpus=3, day=2), wanted=wanted, beside=devices))
    assert told["plain"]["exact"] is True
    assert "container app of pod #2 gets some of several devices" in told["three"]["inexact"]


@pytest.mark.parametrize(
    "beside",
    [
        {"numa_memory": [{"numa_node": 7, "amounts": {"memory": GIB}}]},
        {"numa_memory": [{"numa_node": 0, "amounts": {"memory": "much"}}]},
        {"numa_memory": 7},
        {"devices": [{"resource": GPU}]},
        {"devices": [{"resource": GPU, "count": 1, "numa_nodes": [9]}]},
        {"devices": [{"resource": GPU, "count": -1, "numa_nodes": []}]},
        {"devices": "many"},
        {"configuration": {"evictionHard": 7}},
        {"configuration": 7},
        {"memory": "much"},
    ],
)
def test_a_node_that_says_what_cannot_be(beside: Any) -> None:
    found = impact(asking("half", "2"), wanted=STATIC_MEMORY, beside={**MEMORY, **beside})
    assert found["workloads"] == []
    assert found["notes"][0].startswith("what becomes of the pods of these is not known: host-a (")


@pytest.mark.parametrize("plan", [{}, {"beside_cpus": 7}, {"beside_cpus": {"memory": 1}}])
def test_a_plan_that_does_not_say_what_decides_beside_cpus(plan: Any) -> None:
    whole = plan_of(ALIGNED, FOUND, MACHINE)
    del whole["beside_cpus"]
    found = impact_of([Cluster({"host-a": ("a", {**whole, **plan})}, [node_of("a")], [asking("half", "2")])])
    assert found["notes"][0].startswith("what becomes of the pods of these is not known: host-a (its answer cannot be")


def test_nodes_with_the_same_memory_are_computed_once() -> None:
    replays = Replays(Kinds())
    plans = {name: plan_of(STATIC_MEMORY, FOUND, MACHINE, beside=MEMORY) for name in "ab"}
    plans["c"] = plan_of(STATIC_MEMORY, FOUND, MACHINE, beside={**MEMORY, "memory": 33 * GIB})
    pods = [pod_of("pod-" + name, name, "2") for name in plans]
    hosts = {name: (name, plan) for name, plan in plans.items()}
    impact_of([Cluster(hosts, list(map(node_of, plans)), pods)], replays=replays)
    assert replays.computed == 2


MANAGERS = {"configuration": {"featureGates": {"PodLevelResourceManagers": True}}}
WHOLE = {**ALIGNED, "topology_manager_policy": "restricted", "topology_manager_scope": "pod"}
FULL = {**WHOLE, "cpu_manager_policy_options": {"full-pcpus-only": "true"}}
IN_SHARED_POOL = "set the limits above the requests, so that it runs in the shared pool"


def whole(name: str, cpu: str, init: Mapping[str, str] | None = None, **containers: str) -> dict[str, Any]:
    """Return a pod with so many CPUs as a whole, and those of its containers; "" for one that shares the rest."""

    def resources(own: str) -> dict[str, Any]:
        return {"limits": {"cpu": own, "memory": "64Mi"}} if own else {}

    pod = pod_of(name, "a")
    rows = [{"name": container, "resources": resources(own)} for container, own in containers.items()]
    pod["spec"].update(resources={"limits": {"cpu": cpu, "memory": "1Gi"}}, containers=rows)
    pod["spec"]["initContainers"] = [{"name": row, "resources": resources(own)} for row, own in (init or {}).items()]
    return pod


@pytest.mark.parametrize(
    ("pod", "wanted", "cure"),
    [
        # Nothing is left for x: the pod has more, or the containers less.
        (whole("p", "4", a="2", b="2", x=""), WHOLE, "ask for 5 CPUs instead of 4 for the pod as a whole"),
        (whole("p", "4", a="2", b="2", x=""), FULL, "ask for 6 CPUs instead of 4 for the pod as a whole"),
        (
            whole("p", "14", a="8", b="6", x=""),
            WHOLE,
            "ask for 7 CPUs instead of 8 for container a",
        ),
        (whole("p", "3", a="1", x=""), FULL, "ask for 4 CPUs instead of 3 for the pod as a whole"),
        # Its containers fit what it has then.
        (
            whole("p", "10", a="8", x=""),
            {**WHOLE, "topology_manager_policy": "single-numa-node"},
            "ask for 8 CPUs instead of 10 for the pod as a whole, 7 CPUs instead of 8 for container a",
        ),
        (
            whole("p", "10", {"warm": "9"}, a="2", x=""),
            {**WHOLE, "topology_manager_policy": "single-numa-node"},
            "ask for 8 CPUs instead of 10 for the pod as a whole, 8 CPUs instead of 9 for container warm",
        ),
        # By containers, the pod has room for them.
        (
            whole("p", "3", a="3", x=""),
            {**FULL, "topology_manager_scope": "container"},
            "ask for 4 CPUs instead of 3 for the pod as a whole, 4 CPUs instead of 3 for container a",
        ),
    ],
)
def test_a_cure_reaches_into_the_resources_of_a_pod_as_a_whole(pod: Any, wanted: Any, cure: str) -> None:
    plan = plan_of(wanted, FOUND, MACHINE, "1.36.3", beside=MANAGERS)
    (row,) = impact_of([Cluster({"host-a": ("a", plan)}, [node_of("a")], [pod])])["workloads"]
    assert row["fate"] == "homeless"
    assert row["cure"].partition("; or ")[0] == cure


def test_a_pod_as_a_whole_that_nothing_smaller_cures_shares_by_its_own_limits() -> None:
    """Its containers' limits are left alone: they may not be above those of the pod."""
    full = {**FULL, "topology_manager_policy": "none", "reserved_system_cpus": "0"}
    plan = plan_of(full, FOUND, "1 socket x 1 core x 2 threads", "1.36.3", beside=MANAGERS)
    (row,) = impact_of([Cluster({"host-a": ("a", plan)}, [node_of("a")], [whole("p", "1", a="1", x="")])])["workloads"]
    assert row["cure"].startswith(IN_SHARED_POOL)


def test_which_pods_as_a_whole_would_have_cpus_with_limits_equal_to_requests() -> None:
    pod = whole("p", "4", a="2", x="")
    pod["spec"]["resources"] = {"requests": {"cpu": "4", "memory": "1Gi"}, "limits": {"cpu": "5", "memory": "1Gi"}}
    for beside, could in ((MANAGERS, True), ({}, False)):
        plan = plan_of(WHOLE, FOUND, MACHINE, "1.36.3", beside=beside)
        (row,) = impact_of([Cluster({"host-a": ("a", plan)}, [node_of("a")], [pod])])["workloads"]
        assert (row["fate"], row["could_gain"]) == ("stays", could)


@pytest.mark.parametrize(
    ("version", "inexact"),
    [
        ("1.34.1", ""),
        ("1.29.4", "the rules for a kubelet 1.29 are not tested against one"),
        ("1.37.0", "the rules for a kubelet 1.37 are not tested against one"),
        ("1.22.0", "the rules are not tested against a kubelet 1.22"),
        (None, "the version of the kubelet is not known"),
    ],
)
def test_what_a_kubelet_does_of_which_no_answers_were_replayed_is_not_exact(version: str | None, inexact: str) -> None:
    plan = {**plan_of(ALIGNED, FOUND, MACHINE), "kubelet": {"version": version}}
    found = impact_of([Cluster({"host-a": ("a", plan)}, [node_of("a")], [asking("plain", "2")])])
    for row in (found["nodes"][0], found["workloads"][0]):
        assert row["exact"] is not bool(inexact)
        assert row["inexact"].startswith(inexact)
