# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The impact of a change on a node's pods, in their real order: the kubelet's own refusals, and its own state."""

from __future__ import annotations

import json
from typing import Any, Mapping, Sequence

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._containers.pods import pod_from_manifest
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.settings import found_settings
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.allocation import default_configuration
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.kubelet_view import (
    CPUTopology,
    kubelet_view,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.model import Topology
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.impact.admission import Replays, kubelet_of
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.impact.workloads import Kinds
from ansible_collections.kubenode.cpu_manager.tests.machines.impacts import BESIDE

from .policy_case import manifest_of
from .read_vectors import rows
from .test_vectors import TOPOLOGIES

# {vectors: the version of the kubelet that they are replayed as}.
VERSIONS = {"policy-1.33": 33, "policy-1.34-1.36": 35}
KINDS = ("cores", "sockets", "numa_nodes", "l3_caches")


def topology_of(table: Sequence[Sequence[int]]) -> Topology:
    """Return the machine with this table of (CPU, core, socket, NUMA node, uncore cache)."""
    groups: dict[str, dict[int, set[int]]] = {kind: {} for kind in KINDS}
    for cpu, *ids in table:
        for kind, number in zip(KINDS, ids):
            groups[kind].setdefault(number, set()).add(cpu)
    lists = {kind: {str(number): str(CPUSet(cpus)) for number, cpus in found.items()} for kind, found in groups.items()}
    return Topology.from_dict(
        {**lists, "online": str(CPUSet(row[0] for row in table)), "cores": list(lists["cores"].values())}
    )


def is_seen_so(topology: Topology, table: CPUTopology) -> bool:
    """Return whether a kubelet makes of the machine what the case says."""
    seen = kubelet_view(topology)
    return all(
        getattr(seen, kind) == getattr(table, kind) for kind in ("cores", "sockets", "numa_nodes", "uncore_caches")
    )


def first_pods(case: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return those that come before anything else happens."""
    pods = []
    for operation in case["ops"]:
        if operation["op"] != "add":
            break
        pods.append(operation["pod"])
    return pods


@pytest.mark.parametrize("vectors", VERSIONS)
def test_the_order_of_a_node_gives_its_refusals_and_its_state(vectors: str) -> None:
    compared = refused = 0
    for row in rows(vectors):
        case, expected = row["case"], row["expect"]
        topology = topology_of(TOPOLOGIES[case["topology"]])
        pods = first_pods(case)
        if "state" in case or "error" in expected or not pods or not case.get("reserved_cpus"):
            continue
        if not is_seen_so(topology, CPUTopology(TOPOLOGIES[case["topology"]])):
            continue
        settings = {
            **found_settings(default_configuration()),
            "cpu_manager_policy": "static",
            "cpu_manager_policy_options": case["options"],
            "topology_manager_policy": case["topology_policy"],
            "topology_manager_scope": case["topology_scope"],
            "reserved_system_cpus": case["reserved_cpus"],
        }
        kinds = Kinds()
        order = [kinds.number(pod_from_manifest(manifest_of(pod), as_admitted=False)) for pod in pods]
        found = Replays(kinds).of(
            kubelet_of(json.dumps(topology.to_dict()), settings, VERSIONS[vectors], BESIDE), order
        )
        if any(reason.startswith("OutOf") for reason, _message, _why in found.refused.values()):
            continue  # the cases do not count what pods request
        answers = expected["ops"][: len(pods)]
        if any("error" in answer for answer in answers):
            continue
        said = {
            place: (answer["reason"], answer["message"]) for place, answer in enumerate(answers) if not answer["admit"]
        }
        assert {place: texts[:2] for place, texts in found.refused.items()} == said, case
        places = {pod["uid"]: str(place) for place, pod in enumerate(pods) if place not in said}
        state = State(
            CPUSet.parse(answers[-1]["default"]),
            {
                places[uid]: {name: CPUSet.parse(cpus) for name, cpus in own.items()}
                for uid, own in answers[-1]["assignments"].items()
                if uid in places
            },
        )
        if len(answers) - 1 not in said:
            assert found.state == state.to_text(), case
        compared += 1
        refused += bool(said)
    assert compared > 100
    assert refused > 10
