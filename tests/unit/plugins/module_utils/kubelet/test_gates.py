# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.kubelet.gates import GATES, Gates

CFS = "CustomCPUCFSQuotaPeriod"


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
