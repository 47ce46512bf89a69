# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_rollout/upgrade.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import NodeError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._rollout.upgrade import upgrade_report
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import format_for, write_checkpoint
from ansible_collections.kubenode.cpu_manager.tests.machines.tree import write_machine

STATIC = (
    "apiVersion: kubelet.config.k8s.io/v1beta1\n"
    "kind: KubeletConfiguration\n"
    "cpuManagerPolicy: static\n"
    'reservedSystemCPUs: "0,4"\n'
)
CONFIG, CHECKPOINT = "var/lib/kubelet/config.yaml", "var/lib/kubelet/cpu_manager_state"
UNKNOWN_VERSION = (
    "the version of the kubelet is not known: 1.36 is assumed, the newest whose answers were replayed; give"
    " kubelet_version"
)
IS_NEWER = "the rules for a kubelet 1.37 are not tested against one"
WRITES_V4 = "the kubelet 1.37 reads this file, of format v2, and writes format v4 in its place"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write_machine(tmp_path, "1s4c2t")
    (tmp_path / CONFIG).parent.mkdir(parents=True)
    (tmp_path / CONFIG).write_text(STATIC, encoding="ascii")
    return tmp_path


def save(root: Path, state: State, minor: int, pod_level: bool = False) -> None:
    (root / CHECKPOINT).write_bytes(write_checkpoint("static", state, format_for(minor, pod_level)))


def ways(root: Path, today: int | None, target: int) -> dict[str, Any]:
    report = upgrade_report(Node(Tree(str(root)), minor=today), target)
    assert report["kubelet_version"] == "1.%d" % target
    assert report["back"]["kubelet_version"] == "1.%d" % (today or 36)
    return report


def test_there_and_back(root: Path) -> None:
    save(root, State(CPUSet.parse("0-2,4-6"), {"uid-app": {"app": CPUSet.parse("3,7")}}), 36)
    report = ways(root, 36, 37)
    assert (report["starts"], report["back"]["starts"]) == (True, True)
    assert [note.startswith((WRITES_V4, IS_NEWER)) for note in report["notes"]][:2] == [True, True]
    # Nothing of that for a version that writes the same.
    assert ways(root, 36, 35)["notes"] == []


def test_a_version_that_is_not_known(root: Path) -> None:
    assert UNKNOWN_VERSION in ways(root, None, 35)["notes"]
    assert ways(root, None, 35)["back"]["starts"] is True


def test_what_the_other_version_refuses(root: Path) -> None:
    (root / CONFIG).write_text(STATIC + "featureGates:\n  KubeletPSI: false\n", encoding="ascii")
    report = ways(root, 34, 36)
    assert report["starts"] is False
    assert [finding["text"] for finding in report["findings"] if finding["fatal"]] == [
        "cannot set feature gate KubeletPSI to false, feature is locked to true"
    ]
    assert report["back"]["starts"] is True


def test_the_cpus_of_whole_pods_are_lost(root: Path) -> None:
    gate = "featureGates:\n  PodLevelResourceManagers: true\n"
    (root / CONFIG).write_text(STATIC + gate, encoding="ascii")
    pods = State(CPUSet.parse("0-2,4-6"), {}, {"uid-pod": CPUSet.parse("3,7")})
    save(root, pods, 36, pod_level=True)
    report = ways(root, 36, 35)
    # There is no such gate before 1.36.
    assert report["starts"] is False
    (root / CONFIG).write_text(STATIC, encoding="ascii")
    lost = [note for note in ways(root, 37, 36)["notes"] if "uid-pod: CPUs 3,7" in note]
    assert lost


def test_a_node_without_a_kubelet(tmp_path: Path) -> None:
    write_machine(tmp_path, "1s4c2t")
    with pytest.raises(NodeError, match="no kubelet runs here"):
        upgrade_report(Node(Tree(str(tmp_path)), minor=36), 37)
