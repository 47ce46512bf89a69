# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The law of remedies: who does what a refusal says has a kubelet that starts, and does not meet the next refusal."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.predict import Prediction
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.start_check import predict_start
from ansible_collections.kubenode.cpu_manager.tests.machines.troubles import CHECKPOINT, SOUND, write_saved

LIST = "cpuManagerPolicy: static\nreservedSystemCPUs: 0,4\n"
COUNT = "cpuManagerPolicy: static\nkubeReserved: {cpu: '2'}\n"
SYSTEM, KUBE = "systemReservedCgroup: /system.slice\n", "kubeReservedCgroup: /system.slice\n"


def enforce(*names: str) -> str:
    return "enforceNodeAllocatable: [%s]\n" % ", ".join(names)


def prediction_of(fields: str, root: Path) -> Prediction:
    write_saved(SOUND.configured(fields).having({CHECKPOINT: None}), root)
    return predict_start(Node(Tree(str(root)), minor=36))


@pytest.mark.parametrize(
    ("refused", "remedy", "followed"),
    [
        (LIST + SYSTEM, "remove systemReservedCgroup, or", LIST),
        (
            LIST + SYSTEM + enforce("pods", "system-reserved-compressible"),
            "remove systemReservedCgroup, and system-reserved-compressible from enforceNodeAllocatable",
            LIST + enforce("pods"),
        ),
        (
            LIST + SYSTEM + KUBE + enforce("pods", "system-reserved", "kube-reserved-compressible"),
            "and system-reserved and kube-reserved-compressible from enforceNodeAllocatable at the same time",
            LIST + enforce("pods"),
        ),
        (
            LIST + SYSTEM + enforce("pods", "system-reserved"),
            "or reserve with kubeReserved and systemReserved",
            COUNT + SYSTEM + "systemReserved: {cpu: 500m}\n" + enforce("pods"),
        ),
        (
            LIST + enforce("pods", "system-reserved-compressible"),
            "remove system-reserved-compressible from enforceNodeAllocatable",
            LIST + enforce("pods"),
        ),
        (
            COUNT + enforce("pods", "kube-reserved"),
            "set kubeReservedCgroup, or remove kube-reserved from enforceNodeAllocatable",
            COUNT + enforce("pods"),
        ),
        (COUNT + enforce("pods", "none"), "keep none alone, or remove it", COUNT + enforce("none")),
        (COUNT + enforce("pods", "pods"), "keep it once", COUNT + enforce("pods")),
        ("cpuManagerPolicy: static\n", "set reservedSystemCPUs", LIST),
        (
            LIST + "cgroupsPerQOS: false\n" + enforce("pods"),
            "enforceNodeAllocatable: [none]",
            LIST + "cgroupsPerQOS: true\n",
        ),
    ],
)
def test_who_follows_a_remedy_has_a_kubelet_that_starts(
    refused: str, remedy: str, followed: str, tmp_path: Path
) -> None:
    finding = prediction_of(refused, tmp_path / "refused").refusal
    assert finding is not None
    assert remedy in finding.remedy
    assert prediction_of(followed, tmp_path / "followed").refusal is None


def test_no_remedy_asks_for_a_cgroup_where_a_list_forbids_it(tmp_path: Path) -> None:
    finding = prediction_of(LIST + enforce("pods", "system-reserved"), tmp_path).refusal
    assert finding is not None
    assert "set systemReservedCgroup" not in finding.remedy
