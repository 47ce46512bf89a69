# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.kubelet.gates import GATES, Gates

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
    ],
)
def test_findings(name: str, value: bool, minor: int, text: str) -> None:
    findings = Gates({name: value}, minor).findings()
    assert [finding.text for finding in findings] == ([text] if text else [])
    assert all(one.fatal and one.cause and one.remedy and one.where == "featureGates." + name for one in findings)


def test_all_of_them_are_told() -> None:
    found = Gates({"MemoryManager": True, "CPUManager": True, "NodeSwap": False}, 36).findings()
    assert [finding.where for finding in found] == [
        "featureGates.CPUManager",
        "featureGates.MemoryManager",
        "featureGates.NodeSwap",
    ]


@pytest.mark.parametrize(
    ("values", "name", "minor", "on"),
    [
        ({}, CFS, 35, False),
        ({}, CFS, 36, True),
        ({CFS: True}, CFS, 20, True),
        ({CFS: False}, CFS, 36, False),
        ({"AllAlpha": True}, CFS, 35, True),
        ({"AllAlpha": True, CFS: False}, CFS, 35, False),
        ({"AllAlpha": False}, CFS, 36, True),  # no longer alpha
        ({"AllBeta": True}, CFS, 35, False),
        ({"AllBeta": False}, "CPUManagerPolicyBetaOptions", 36, False),
        ({"AllBeta": True}, "TopologyManagerPolicyBetaOptions", 27, True),
        ({}, "TopologyManagerPolicyBetaOptions", 27, False),
        ({}, "TopologyManagerPolicyBetaOptions", 28, True),
        ({"AllBeta": False}, "CPUManager", 25, False),
        ({"AllBeta": False}, "CPUManager", 26, True),
        ({"CPUManager": False}, "CPUManager", 36, True),  # gone, and always on
        ({}, "MemoryManager", 21, False),
        ({}, "CPUManagerPolicyOptions", 21, False),
        ({"PodLevelResourceManagers": True}, "PodLevelResourceManagers", 35, False),
    ],
)
def test_enabled(values: dict[str, bool], name: str, minor: int, on: bool) -> None:
    assert Gates(values, minor).enabled(name) is on


@pytest.mark.parametrize("name", GATES)
def test_a_gate_ages(name: str) -> None:
    gate = GATES[name]
    assert gate.alpha <= gate.beta
    assert gate.on <= gate.general <= gate.locked
    assert gate.locked <= gate.removed
