# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_kubelet/gates.py."""

from __future__ import annotations

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.gates import (
    ALPHA,
    BETA,
    GATES,
    NEVER,
    Gates,
)

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
        ({"TopologyManagerPolicyOptions": False}, "TopologyManagerPolicyOptions", 35, False),
        ({"TopologyManagerPolicyOptions": False}, "TopologyManagerPolicyOptions", 36, True),  # locked
        ({"GitRepoVolumeDriver": True}, "GitRepoVolumeDriver", 36, False),  # locked, off
        ({"AllBeta": False}, "DisableCPUQuotaWithExclusiveCPUs", 35, False),
        ({"AllBeta": False}, "DisableCPUQuotaWithExclusiveCPUs", 36, True),  # deprecated, no longer beta
        ({}, "InTreePluginPortworxUnregister", 36, False),  # gone, and was never on
        ({"WatchList": "yes"}, "WatchList", 36, False),
    ],
)
def test_enabled(values: dict[str, bool], name: str, minor: int, on: bool) -> None:
    assert Gates(values, minor).enabled(name) is on


def test_the_gates_of_a_configuration() -> None:
    assert Gates.of({"featureGates": {CFS: True}}, 35).enabled(CFS)
    assert not Gates.of({"featureGates": "x"}, 35).enabled(CFS)
    assert not Gates.of({}, 35).enabled(CFS)


def since(name: str, *without: str) -> int:
    """Return from which minor version on a gate is in none of these stages."""
    return next((phase.since for phase in GATES[name].life.phases if phase.stage not in without), NEVER)


@pytest.mark.parametrize("name", GATES)
def test_a_gate_ages(name: str) -> None:
    gate = GATES[name]
    assert since(name, ALPHA) <= since(name, ALPHA, BETA) <= gate.locked
    assert gate.alpha < gate.removed


# What is known of gates that decide on CPUs: (alpha, beta, on, general, locked, removed), 0 for never.
@pytest.mark.parametrize(
    ("name", "minors"),
    [
        ("CPUManager", (8, 10, 10, 26, 26, 33)),
        ("CPUManagerPolicyOptions", (22, 23, 23, 33, 33, 0)),
        ("CPUManagerPolicyAlphaOptions", (23, 0, 0, 0, 0, 0)),
        ("CPUManagerPolicyBetaOptions", (23, 23, 23, 0, 0, 0)),
        ("TopologyManager", (16, 18, 18, 27, 27, 29)),
        ("TopologyManagerPolicyOptions", (26, 28, 28, 32, 36, 0)),
        ("TopologyManagerPolicyBetaOptions", (26, 26, 28, 0, 0, 0)),
        ("MemoryManager", (21, 22, 22, 32, 32, 36)),
        (CFS, (12, 36, 36, 36, 0, 0)),
        ("KubeletPodResourcesListUseActivePods", (34, 0, 34, 0, 0, 0)),
    ],
)
def test_the_life_of_a_gate(name: str, minors: tuple[int, ...]) -> None:
    gate, beta, general = GATES[name], since(name, ALPHA), since(name, ALPHA, BETA)
    found = (gate.alpha, beta, gate.on, general, gate.locked, gate.removed)
    assert tuple(minor if minor < NEVER else 0 for minor in found) == minors
