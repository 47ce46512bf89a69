# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What others have to be told of a node: with the settings go the feature gates that its kubelet needs for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Mapping

import pytest
import yaml

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.configuration import Configuration
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.distributions import (
    DISTRIBUTIONS,
    Distribution,
    marks_of,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.elsewhere import elsewhere
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.tests.machines.layered import write

WANTED: dict[str, Any] = {
    "cpu_manager_policy": "static",
    "cpu_manager_policy_options": {"distribute-cpus-across-cores": "true"},
    "cpu_cfs_quota_period": "50ms",
}
ALPHA, QUOTA = "CPUManagerPolicyAlphaOptions", "CustomCPUCFSQuotaPeriod"
# All systems for which there is something to paste.
SYSTEMS = {
    distribution.name: distribution
    for distribution in DISTRIBUTIONS
    if (answer := elsewhere(distribution, {"cpu_manager_policy": "static"})) is not None and answer["snippet"]
}


def snippet(
    root: Path, distribution: Distribution, minor: int, wanted: Mapping[str, Any], **found: Any
) -> tuple[str, dict[str, Any]]:
    """Return what is shown for a node, as text and as the fields that it gives."""
    for path in marks_of(distribution)[:1]:
        write(root, path[1:], b"")
    if distribution.os_id:
        write(root, "etc/os-release", b"ID=%s\n" % distribution.os_id.encode("utf-8"))
    node = Node(Tree(str(root)), minor=minor)
    answer = node.elsewhere(wanted, Configuration(found, "its file"))
    assert answer is not None
    assert answer["name"] == distribution.name
    text = answer["snippet"]
    return text, {} if distribution.name == "Bottlerocket" else yaml.safe_load(text)


def gates_in(given: Any) -> dict[str, bool]:
    """Return the feature gates, wherever the document of a system has them."""
    if not isinstance(given, dict):
        return {}
    if "kubelet_feature_gates" in given:
        pairs = (gate.partition("=") for gate in given["kubelet_feature_gates"])
        return {name: value == "true" for name, _equal, value in pairs}
    if "featureGates" in given:
        return {name: value in (True, "true") for name, value in given["featureGates"].items()}
    inner = [value[0] if isinstance(value, list) and value else value for value in given.values()]
    return {name: value for found in inner for name, value in gates_in(found).items()}


def test_they_are_these_systems() -> None:
    assert set(SYSTEMS) == {
        "OpenShift", "MicroShift", "Talos", "Bottlerocket", "kubespray", "EKS AL2023", "kOps", "Gardener", "k0s",
        "KubeEdge",
    }  # fmt: skip


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("found", [{}, {ALPHA: True, QUOTA: True}, {ALPHA: False, QUOTA: False}])
def test_gates_go_with_what_needs_them(tmp_path: Path, name: str, found: dict[str, bool]) -> None:
    """Whatever the node's file has of them by now: what is pasted is written over it."""
    text, given = snippet(tmp_path, SYSTEMS[name], 35, WANTED, featureGates=found)
    if name == "Bottlerocket":
        assert "cpuCFSQuotaPeriod, featureGates.%s, featureGates.%s.\n" % (ALPHA, QUOTA) in text
    else:
        assert gates_in(given) == {ALPHA: True, QUOTA: True}


@pytest.mark.parametrize("name", SYSTEMS)
def test_gates_that_nothing_needs_are_not_there(tmp_path: Path, name: str) -> None:
    """Neither those that are on by default, nor those of other settings."""
    text, given = snippet(tmp_path, SYSTEMS[name], 36, {**WANTED, "cpu_manager_policy_options": {}})
    assert gates_in(given) == {}
    assert "featureGates" not in text


def test_a_gate_that_the_file_switches_off_is_switched_on(tmp_path: Path) -> None:
    wanted = {"memory_manager_policy": "Static"}
    _text, given = snippet(tmp_path, SYSTEMS["Talos"], 31, wanted, featureGates={"MemoryManager": False})
    assert gates_in(given) == {"MemoryManager": True}


def test_what_kubespray_has_in_one_list_stays_there(tmp_path: Path) -> None:
    others = {"NodeSwap": False, "CPUManagerPolicyAlphaOptions": False}
    _text, given = snippet(tmp_path, SYSTEMS["kubespray"], 35, WANTED, featureGates=others)
    assert gates_in(given) == {"NodeSwap": False, ALPHA: True, QUOTA: True}


def test_cgroups_that_forbid_reserved_cpus_are_taken_away(tmp_path: Path) -> None:
    """nodeadm names them and enforces none."""
    cgroups = {"systemReservedCgroup": "/system", "kubeReservedCgroup": "/runtime"}
    _text, given = snippet(tmp_path, SYSTEMS["EKS AL2023"], 35, {"reserved_system_cpus": "0-1"}, **cgroups)
    expected = {"reservedSystemCPUs": "0-1", "systemReservedCgroup": "", "kubeReservedCgroup": ""}
    assert given["spec"]["kubelet"]["config"] == expected
