# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.kubelet.gate_check import check_gates
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.kubelet.gates import Gates

CFS = "CustomCPUCFSQuotaPeriod"


@pytest.mark.parametrize(
    ("name", "value", "minor", "text"),
    [
        ("CPUManager", True, 33, "unrecognized feature gate: CPUManager"),
        ("CPUManager", True, 32, ""),
        ("CPUManager", False, 32, "cannot set feature gate CPUManager to false, feature is locked to true"),
        ("CPUManager", False, 25, ""),
        ("TopologyManager", True, 29, "unrecognized feature gate: TopologyManager"),
        ("MemoryManager", True, 35, ""),
        ("MemoryManager", False, 35, "cannot set feature gate MemoryManager to false, feature is locked to true"),
        ("MemoryManager", True, 36, "unrecognized feature gate: MemoryManager"),
        ("CPUManagerPolicyOptions", True, 36, ""),
        (
            "CPUManagerPolicyOptions",
            False,
            33,
            "cannot set feature gate CPUManagerPolicyOptions to false, feature is locked to true",
        ),
        ("TopologyManagerPolicyOptions", False, 36, ""),
        ("PodLevelResourceManagers", True, 35, "unrecognized feature gate: PodLevelResourceManagers"),
        ("PodLevelResourceManagers", True, 36, ""),
        ("DisableCPUQuotaWithExclusiveCPUs", False, 32, "unrecognized feature gate: DisableCPUQuotaWithExclusiveCPUs"),
        ("DisableCPUQuotaWithExclusiveCPUs", False, 36, ""),
        (CFS, False, 36, ""),
        # Not all gates are known here.
        ("SomeGateOfAnotherKind", True, 36, ""),
        ("AllAlpha", True, 36, ""),
        # One letter off a known one.
        ("CPUManagerPolicyAlphaOption", True, 36, "unrecognized feature gate: CPUManagerPolicyAlphaOption"),
        ("CpuManagerPolicyAlphaOptions", True, 36, "unrecognized feature gate: CpuManagerPolicyAlphaOptions"),
        ("CPUManagerPolicyBetaOptoins", True, 36, ""),  # two are not sure enough
        ("allAlpha", True, 36, "unrecognized feature gate: allAlpha"),
        ("NodeSwop", True, 36, "unrecognized feature gate: NodeSwop"),
        ("NodeSwaps", True, 36, "unrecognized feature gate: NodeSwaps"),
        ("NodeSwapss", True, 36, ""),
        ("NodeSwa", True, 36, "unrecognized feature gate: NodeSwa"),
        ("NodeSw", True, 36, ""),
        ("odeSwap", True, 36, "unrecognized feature gate: odeSwap"),
        ("deSwap", True, 36, ""),
        ("TheNodeSwap", True, 36, ""),
        ("NodeXSwap", True, 36, "unrecognized feature gate: NodeXSwap"),
        ("NodeXXSwap", True, 36, ""),
        ("NodeSxxp", True, 36, ""),
    ],
)
def test_findings(name: str, value: bool, minor: int, text: str) -> None:
    findings = check_gates(Gates({name: value}, minor))
    assert [finding.text for finding in findings] == ([text] if text else [])
    assert all(one.fatal and one.cause and one.remedy and one.where == "featureGates." + name for one in findings)


def test_all_of_them_are_told() -> None:
    found = check_gates(Gates({"MemoryManager": True, "CPUManager": True, "NodeSwap": False}, 36))
    assert [finding.where for finding in found] == [
        "featureGates.CPUManager",
        "featureGates.MemoryManager",
        "featureGates.NodeSwap",
    ]
