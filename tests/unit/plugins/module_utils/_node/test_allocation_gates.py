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
    OtherManagers,
    plan_allocations,
)
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
    """A pod with resources of its own, and these limits of its containers."""
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


def test_what_is_given_to_a_pod_as_a_whole_is_not_exact() -> None:
    """From that pod on, and only where managers give CPUs or memory to pods as a whole."""
    listed = [pod("first", "1"), MIXED, pod("last", "1")]
    gates = {MANAGERS: True}
    aligned: dict[str, Any] = {"topology_manager_policy": "restricted"}
    plan = ask(listed, 36, gates, **aligned, topology_manager_scope="pod")
    assert plan["exact"] is False
    (note,) = plan["notes"]
    assert note == (
        "not exact from pod whole on: pods with resources of their own, such as whole, are given CPUs as a whole, which"
        " their containers share (gate PodLevelResourceManagers)"
    )
    each: tuple[dict[str, Any], ...] = (aligned, {"topology_manager_scope": "pod"})
    for wanted in each:
        assert ask(listed, 36, gates, **wanted)["exact"] is True
    for more in ({}, OFF):
        assert ask(listed, 36, more, **aligned, topology_manager_scope="pod")["exact"] is True
    memory = ask(listed, 36, gates, Left(others=OtherManagers(NODES)), **MEMORY)
    assert "are given memory as a whole" in memory["notes"][-1]
    # Those that run have what they have.
    assert ask([pod("last", "1")], 36, gates, **aligned, topology_manager_scope="pod")["exact"] is True


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
