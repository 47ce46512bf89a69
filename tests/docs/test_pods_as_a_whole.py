# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The examples on the page of pods as a whole are what a kubelet with these settings does with these manifests."""

from __future__ import annotations

from typing import Any

import yaml

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._containers.pods import pod_from_manifest
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.configuration import Configuration
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.findings import other_host
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.allocation import (
    Question,
    plan_allocations,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.readmission import Written, fates_of
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.formats import Format3
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import write_checkpoint
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import parse_name

from .pages import GUIDES, blocks

PAGE = blocks(GUIDES / "pods_as_a_whole.rst")
SETTINGS, *MANIFESTS = (yaml.safe_load(block.text) for block in PAGE if block.language == "yaml")
SHOWN = [block.text.strip() for block in PAGE if block.language == "text"]
TRADING, FULL, PRICING = MANIFESTS


def question(*manifests: Any, checkpoint: bytes | None = None) -> Question:
    topology = parse_name("2s1n4c2t").topology()
    configuration = Configuration(SETTINGS, "config.yaml")
    pods = [pod_from_manifest(manifest) for manifest in manifests]
    return Question(topology, other_host(topology, 36), configuration, {}, checkpoint, pods)


def shown(value: object) -> str:
    return yaml.safe_dump(value, sort_keys=False, width=110).strip()


def test_an_application_with_two_sidecars() -> None:
    plan = plan_allocations(question(TRADING))
    rows = [{name: row[name] for name in ("container", "cpus", "isolation")} for row in plan["containers"]]
    more = {name: plan[name] for name in ("pods", "notes", "exact")}
    assert shown({"containers": rows, **more}) == SHOWN[0]


def test_a_pool_that_is_empty() -> None:
    assert shown({"refused": plan_allocations(question(FULL))["refused"]}) == SHOWN[1]


def test_a_restart() -> None:
    """What the plan gives is what runs."""
    given = plan_allocations(question(TRADING, PRICING))
    own: dict[str, dict[str, CPUSet]] = {}
    for row in given["containers"]:
        own.setdefault(row["uid"], {})[row["container"]] = CPUSet.parse(row["cpus"])
    whole = {uid: CPUSet(cpu for cpus in rows.values() for cpu in cpus) for uid, rows in own.items()}
    checkpoint = write_checkpoint("static", State(CPUSet.parse(given["shared_pool"]), own, whole), Format3)
    fates = fates_of(question(TRADING, PRICING, checkpoint=checkpoint), Written(checkpoint, None))
    rows = [{name: value for name, value in fate.to_dict().items() if value and name != "uid"} for fate in fates]
    assert shown({"restart": rows}) == SHOWN[2]
