# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_node/allocation.py: pods with resources of their own, by the gates of a kubelet."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._containers.pods import pod_from_manifest
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.configuration import Configuration
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.allocation import (
    plan_allocations,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.hints import OtherManagers
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.formats import Format3
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import write_checkpoint
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.impact.admission import Kubelet, has_exclusive
from ansible_collections.kubenode.cpu_manager.tests.unit.plugins.module_utils._node.test_allocation_running import (
    EMPTY,
    MEMORY,
    NODES,
    Left,
    asked,
    has,
    pod,
)

LEVEL, MANAGERS = "PodLevelResources", "PodLevelResourceManagers"
# In 1.36, another gate that is on needs it.
OFF = {LEVEL: False, "InPlacePodLevelResourcesVerticalScaling": False}
SHARED, OWN = ("shared", None, None), ("1", None, None)


def whole(cpu: str = "2", memory: str = "256Mi", **containers: Any) -> dict[str, Any]:
    """Return a pod with resources of its own, and these limits of its containers."""
    rows = [{"name": name, "resources": {"limits": limits}} for name, limits in containers.items()]
    limits = {"cpu": cpu, "memory": memory}
    return {"metadata": {"name": "whole"}, "spec": {"resources": {"limits": limits}, "containers": rows}}


ONE = {"cpu": "1", "memory": "128Mi"}
ALONE, MIXED = whole(a=ONE), whole(a=ONE, b={})


def ask(manifests: Any, minor: int, gates: dict[str, bool], left: Left = EMPTY, **wanted: Any) -> Any:
    question = asked(manifests, left, minor, **wanted)
    values = {**question.configuration.values, "featureGates": gates}
    return plan_allocations(question._replace(configuration=Configuration(values, question.configuration.source)))


@pytest.mark.parametrize(
    ("manifest", "minor", "gates", "own"),
    [
        # The gate is on from 1.34 on, and then the static policy leaves such pods alone.
        (ALONE, 33, {}, True),
        (ALONE, 34, {}, False),
        (ALONE, 36, {}, False),
        (ALONE, 34, {LEVEL: False}, True),
        (ALONE, 35, {LEVEL: False}, True),
        # Since 1.36 that gate is not asked.
        (ALONE, 36, OFF, False),
        (ALONE, 34, {"AllBeta": False}, True),
        # In 1.33 it decides on the QoS class, and the policy does not look at it.
        (MIXED, 33, {}, False),
        (MIXED, 33, {LEVEL: True}, True),
        (ALONE, 33, {LEVEL: True}, True),
        (MIXED, 34, {LEVEL: False}, False),
        # With the managers' gate, a container that is Guaranteed by itself has its own.
        (ALONE, 36, {MANAGERS: True}, True),
        (MIXED, 36, {MANAGERS: True}, True),
        (whole(a={"cpu": "1"}), 36, {MANAGERS: True}, False),
        (whole(a={"cpu": "500m", "memory": "128Mi"}), 36, {MANAGERS: True}, False),
    ],
)
@pytest.mark.parametrize("policy", ["none", "restricted"])
def test_gates_decide_whether_a_container_of_a_pod_with_resources_has_cpus_of_its_own(
    manifest: Any, minor: int, gates: dict[str, bool], own: bool, policy: str
) -> None:
    plan = ask([manifest], minor, gates, topology_manager_policy=policy)
    exclusive = {row["container"] for row in plan["containers"] if row["exclusive"]}
    assert (exclusive, plan["refused"], plan["exact"]) == ({"a"} if own else set(), [], True)


TWO: dict[str, str] = {"cpu": "2", "memory": "1Gi"}
WHOLE: dict[str, Any] = {"topology_manager_policy": "restricted", "topology_manager_scope": "pod"}
MISFIT = "Pod Scope pod with pod-level resources failed admission under pod-scope topology manager"


def planned(manifest: Any, minor: int = 36, left: Left = EMPTY, **wanted: Any) -> Any:
    return ask([manifest], minor, {MANAGERS: True}, left, **{**WHOLE, **wanted})


@pytest.mark.parametrize(
    ("manifest", "wanted", "expected"),
    [
        (whole("4", "8Gi", a={}, b={}), {}, {"a": ("pod", "1-2,9-10"), "b": ("pod", "1-2,9-10")}),
        (whole("4", "8Gi", a=TWO, b={}), {}, {"a": ("container", "1,9"), "b": ("pod", "2,10")}),
        # Nobody has what is left.
        (whole("6", "8Gi", a=TWO, b=TWO), {}, {"a": ("container", "1,9"), "b": ("container", "2,10")}),
        (whole("2500m", "8Gi", a=TWO, b={}), {}, {"a": ("host", "0-15"), "b": ("host", "0-15")}),
        (
            whole("4", "8Gi", a=TWO, b={}),
            {"topology_manager_scope": "container"},
            {"a": ("container", "1,9"), "b": ("host", "0,2-8,10-15")},
        ),
        (
            whole("4", "8Gi", a=TWO, b={}),
            {"topology_manager_policy": "none"},
            {"a": ("container", "1,9"), "b": ("host", "0,2-8,10-15")},
        ),
    ],
)
@pytest.mark.parametrize("minor", [36, 37])
def test_a_plan_divides_the_cpus_of_a_pod(manifest: Any, wanted: Any, expected: Any, minor: int) -> None:
    plan = planned(manifest, minor, **wanted)
    assert {row["container"]: (row["isolation"], row["cpus"]) for row in plan["containers"]} == expected
    # Answers of 1.37 were not replayed.
    assert (plan["exact"], plan["refused"]) == (minor == 36, [])


@pytest.mark.parametrize(
    ("manifest", "expected"),
    [
        (whole("4", "8Gi", a={}, b={}), ("1-2,9-10", "1-2,9-10", "")),
        (whole("4", "8Gi", a=TWO, b={}), ("1-2,9-10", "2,10", "")),
        (whole("6", "8Gi", a=TWO, b=TWO), ("1-3,9-11", "", "3,11")),
        (whole("2500m", "8Gi", a=TWO, b={}), None),
    ],
)
def test_a_plan_says_what_a_pod_has_as_a_whole_and_what_nobody_uses(manifest: Any, expected: Any) -> None:
    (*rows,) = planned(manifest)["pods"]
    assert rows == (
        [] if expected is None else [dict(zip(("pod", "uid", "cpus", "shared", "unused"), ("whole",) * 2 + expected))]
    )


def test_with_memory_as_well_the_plan_is_exact() -> None:
    plan = planned(whole("4", "8Gi", a=TWO, b={}), left=Left(others=OtherManagers(NODES)), **MEMORY)
    rows = {row["container"]: (row["size"], row["numa_nodes"]) for row in plan["memory"]["containers"]}
    assert rows == {"a": (1 << 30, [0]), "b": (7 << 30, [0])}
    assert plan["exact"] is True


def test_an_empty_pool_is_told_behind_a_topology_affinity_error() -> None:
    """Under restricted and single-numa-node, nothing that the kubelet says names it."""
    full = whole("4", "8Gi", a=TWO, b=TWO, x={})
    why = (
        "pod rejected, sum of exclusive container cpu requests equals pod budget, leaving no cpus for shared"
        " containers: of the pod's 4 CPUs, a (2) and b (2) take all, and nothing is left for x, which share the rest;"
        " give the pod more CPUs, or these containers fewer"
    )
    for policy, reason, message in (
        ("restricted", "TopologyAffinityError", MISFIT),
        ("single-numa-node", "TopologyAffinityError", MISFIT),
        ("best-effort", "EmptyPodSharedPoolError", why.partition(":")[0]),
    ):
        (row,) = planned(full, topology_manager_policy=policy)["refused"]
        assert row == {"pod": "whole", "reason": reason, "message": message, "why": why}
    (row,) = planned(whole("10", "8Gi", a={}), topology_manager_policy="single-numa-node")["refused"]
    assert row["why"] == "the pod wants 10 CPUs of 1 NUMA node, and free are 6 of node 0, 8 of node 1"


def test_a_mixed_pod_is_throttled_as_a_whole() -> None:
    limits = {"b": {"cpu": "1"}}
    plan = planned(whole("4", "8Gi", a=TWO, **limits))
    (note,) = plan["notes"]
    assert note.startswith("pod whole is throttled as a whole, by its limit of 4 CPUs: what the containers that share")
    assert {row["container"]: row["limit"] for row in plan["throttling"]} == {"b": "1000m"}
    # A container without a limit has that of its pod.
    assert planned(whole("4", "8Gi", a=TWO, b={}))["throttling"][0]["limit"] == "4000m"
    assert planned(whole("4", "8Gi", a=TWO, b=TWO))["notes"] == []
    assert planned(whole("4", "8Gi", a=TWO, b={}), cpu_cfs_quota=False)["notes"] == []


def test_pods_that_run_keep_what_they_have_as_a_whole() -> None:
    running = {**whole("4", "8Gi", a=TWO, b={}), "metadata": {"name": "whole", "uid": "uid-a"}}
    state = State(
        CPUSet.parse("0-5,7-13,15"),
        {"uid-a": {"a": CPUSet([6]), "b": CPUSet([14])}},
        {"uid-a": CPUSet([6, 14]), "uid-gone": CPUSet()},
    )
    held = {**state.pod_assignments, "uid-x": CPUSet([13])}
    gone = state._replace(default_cpu_set=CPUSet.parse("0-5,7-12,15"), pod_assignments=held)
    note = "CPUs of pods as a whole are nobody's, as no container of these pods has any: uid-x (13)"
    for found, notes in ((state, []), (gone, [note])):
        plan = planned(running, left=Left(write_checkpoint("static", found, Format3)))
        assert {row["container"]: row["cpus"] for row in plan["containers"]} == {"a": "6", "b": "14"}
        assert [text.partition(";")[0] for text in plan["notes"] if "nobody" in text] == notes


def test_the_room_of_a_pod_is_counted_as_the_gate_says() -> None:
    """14 CPUs are for pods."""
    listed = [whole("14", a=ONE), pod("next", "1")]
    assert has(ask(listed, 34, {})) == {"whole": SHARED, "next": "OutOfcpu"}
    assert has(ask(listed, 34, {LEVEL: False})) == {"whole": OWN, "next": ("9", None, None)}


def test_whether_live_pods_have_cpus_of_their_own_goes_by_the_gates() -> None:
    for gates, own in (({}, False), ({LEVEL: False}, False), ({MANAGERS: True}, True)):
        settings, beside = {"cpu_manager_policy": "static"}, {"configuration": {"featureGates": gates}}
        kubelet = Kubelet("", json.dumps(settings), 36, json.dumps(beside))
        assert has_exclusive(kubelet, pod_from_manifest(ALONE)) is own
    beside = {"configuration": {"featureGates": {MANAGERS: True}}}
    for wanted, own in (({}, False), (WHOLE, True)):
        kubelet = Kubelet("", json.dumps({"cpu_manager_policy": "static", **wanted}), 36, json.dumps(beside))
        assert has_exclusive(kubelet, pod_from_manifest(whole(a={}, b={}))) is own
