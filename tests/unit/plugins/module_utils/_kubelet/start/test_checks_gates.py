# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import time

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.gates import GATES
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.checks import gate_refusal
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.findings import Finding

CFS = "CustomCPUCFSQuotaPeriod"
UNKNOWN = "unrecognized feature gate: "


REMOVE = "remove it from featureGates"


def refusal(gates: dict[str, bool], minor: int = 36) -> Finding:
    found = gate_refusal(gates, minor, REMOVE)
    assert found is not None
    assert found.fatal
    return found


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
        ("TopologyManagerPolicyOptions", False, 35, ""),
        (
            "TopologyManagerPolicyOptions",
            False,
            36,
            "cannot set feature gate TopologyManagerPolicyOptions to false, feature is locked to true",
        ),
        ("PodLevelResourceManagers", True, 35, "unrecognized feature gate: PodLevelResourceManagers"),
        ("PodLevelResourceManagers", True, 36, ""),
        ("DisableCPUQuotaWithExclusiveCPUs", False, 32, "unrecognized feature gate: DisableCPUQuotaWithExclusiveCPUs"),
        ("DisableCPUQuotaWithExclusiveCPUs", False, 36, ""),
        (CFS, False, 36, ""),
        ("AllAlpha", False, 36, ""),
        ("AllBeta", True, 36, ""),
        # All gates of 1.29 to 1.36 are known.
        ("SomeGateOfAnotherKind", True, 36, UNKNOWN + "SomeGateOfAnotherKind"),
        ("SomeGateOfAnotherKind", True, 33, UNKNOWN + "SomeGateOfAnotherKind"),
        ("SomeGateOfAnotherKind", True, 29, UNKNOWN + "SomeGateOfAnotherKind"),
        ("allAlpha", True, 36, UNKNOWN + "allAlpha"),
        ("", True, 36, UNKNOWN),
        # Of other versions it is sure where the name is one letter off a known one.
        ("SomeGateOfAnotherKind", True, 37, ""),
        ("SomeGateOfAnotherKind", True, 28, ""),
        ("AllBeta", True, 37, ""),
        ("CPUManagerPolicyAlphaOption", True, 37, UNKNOWN + "CPUManagerPolicyAlphaOption"),
        ("CpuManagerPolicyAlphaOptions", True, 28, UNKNOWN + "CpuManagerPolicyAlphaOptions"),
        ("CPUManagerPolicyBetaOptoins", True, 37, ""),  # two are not sure enough
        ("allAlpha", True, 37, UNKNOWN + "allAlpha"),
        ("NodeSwop", True, 37, UNKNOWN + "NodeSwop"),
        ("NodeSwaps", True, 37, UNKNOWN + "NodeSwaps"),
        ("NodeSwapss", True, 37, ""),
        ("NodeSwa", True, 37, UNKNOWN + "NodeSwa"),
        ("NodeSw", True, 37, ""),
        ("odeSwap", True, 37, UNKNOWN + "odeSwap"),
        ("deSwap", True, 37, ""),
        ("TheNodeSwap", True, 37, ""),
        ("NodeXSwap", True, 37, UNKNOWN + "NodeXSwap"),
        ("NodeXXSwap", True, 37, ""),
        ("NodeSxxp", True, 37, ""),
        ("CPUManagers", True, 37, ""),  # that gate is gone, so it is not meant
    ],
)
def test_findings(name: str, value: bool, minor: int, text: str) -> None:
    found = gate_refusal({name: value}, minor, REMOVE)
    assert ("" if found is None else found.text) == text
    if found is not None:
        assert found.fatal
        assert found.cause
        assert found.remedy
        assert found.where == "featureGates." + name


@pytest.mark.parametrize(
    ("name", "value", "minor", "cause", "remedy"),
    [
        (
            "CPUManager",
            True,
            36,
            "Kubernetes 1.33 removed this gate; what it switched is always on",
            "remove it from featureGates",
        ),
        (
            "InTreePluginPortworxUnregister",
            True,
            36,
            "Kubernetes 1.36 removed this gate; what it switched is always off",
            "remove it from featureGates",
        ),
        (
            "PodLevelResourceManagers",
            True,
            35,
            "the gate exists from Kubernetes 1.36 on, and this is 1.35",
            "remove it from featureGates",
        ),
        (
            "Foo",
            True,
            36,
            "Kubernetes 1.36 has no such gate: it is misspelled, or was removed earlier, or is another's",
            "remove it from featureGates",
        ),
        ("NodeSwop", True, 36, "there is no such gate; NodeSwap is almost the same", "write NodeSwap"),
        (
            "KubeletPSI",
            False,
            36,
            "from Kubernetes 1.36 on it cannot be switched off",
            "remove it from featureGates",
        ),
        (
            "GitRepoVolumeDriver",
            True,
            36,
            "from Kubernetes 1.36 on it cannot be switched on",
            "remove it from featureGates",
        ),
    ],
)
def test_cause_and_remedy(name: str, value: bool, minor: int, cause: str, remedy: str) -> None:
    finding = refusal({name: value}, minor)
    assert (finding.cause, finding.remedy) == (cause, remedy)


@pytest.mark.parametrize(
    ("values", "cause", "remedy", "where"),
    [
        (
            {"PodLevelResources": False},
            "InPlacePodLevelResourcesVerticalScaling is on without being named, and needs PodLevelResources",
            "switch PodLevelResources on, or InPlacePodLevelResourcesVerticalScaling off",
            "featureGates.PodLevelResources",
        ),
        (
            {"ClusterTrustBundleProjection": True},
            "ClusterTrustBundleProjection is on, and needs ClusterTrustBundle",
            "switch ClusterTrustBundle on, or ClusterTrustBundleProjection off",
            "featureGates.ClusterTrustBundleProjection",
        ),
    ],
)
def test_a_gate_that_needs_another(values: dict[str, bool], cause: str, remedy: str, where: str) -> None:
    finding = refusal(values)
    assert (finding.cause, finding.remedy, finding.where) == (cause, remedy, where)


def test_all_gates_at_once() -> None:
    """What is told is where the one gate stands that switches all."""
    found = refusal({"AllAlpha": True, "AllBeta": False})
    assert (found.text.split()[0], found.where) == ("PodLevelResourceManagers", "featureGates.AllBeta")
    assert refusal({"AllAlpha": True, "PodLevelResources": False}).where == "featureGates.PodLevelResources"


@pytest.mark.parametrize("minor", range(20, 39))
def test_what_is_on_by_default_is_taken(minor: int) -> None:
    assert gate_refusal({}, minor, REMOVE) is None


LOCKED = "cannot set feature gate %s to false, feature is locked to true"

FAULTS: list[tuple[dict[str, bool], int, str]] = [
    ({}, 36, ""),
    ({"CPUManagerPolicyAlphaOptions": True, "AllBeta": True}, 36, ""),
    ({"CPUManager": True}, 33, "unrecognized feature gate: CPUManager"),
    ({"Foo": True}, 36, "unrecognized feature gate: Foo"),
    ({"Foo": True}, 33, "unrecognized feature gate: Foo"),
    ({"Foo": True}, 28, ""),  # not all gates of older versions are known
    ({"Foo": True}, 37, ""),  # nor all of newer ones
    ({"KubeletPSI": True}, 32, "unrecognized feature gate: KubeletPSI"),
    # It came to 1.34 in a patch release; perhaps to older versions, too.
    ({"StatefulSetSemanticRevisionComparison": True}, 28, ""),
    (
        {"StatefulSetSemanticRevisionComparison": True},
        33,
        "unrecognized feature gate: StatefulSetSemanticRevisionComparison",
    ),
    ({"SidecarContainers": True}, 37, "unrecognized feature gate: SidecarContainers"),
    ({"SidecarContainers": False}, 36, LOCKED % "SidecarContainers"),
    ({"SidecarContainers": True}, 36, ""),
    (
        {"GitRepoVolumeDriver": True},
        36,
        "cannot set feature gate GitRepoVolumeDriver to true, feature is locked to false",
    ),
    ({"GitRepoVolumeDriver": False}, 36, ""),
    # One that is unknown ends the reading, whatever else is wrong.
    ({"KubeletPSI": False, "Zzz": True}, 36, "unrecognized feature gate: Zzz"),
    ({"KubeletPSI": False, "CSIMigration": True, "Aaa": True}, 36, "unrecognized feature gate: Aaa"),
    ({"NodeSwap": False, "KubeletPSI": False}, 36, LOCKED % "KubeletPSI"),
    (
        {"PodLevelResources": False},
        36,
        (
            "InPlacePodLevelResourcesVerticalScaling is enabled, but depends on features that are disabled:"
            " [PodLevelResources]"
        ),
    ),
    ({"PodLevelResources": False}, 35, ""),  # what depends on it is off there
    ({"PodLevelResources": False, "InPlacePodLevelResourcesVerticalScaling": False}, 36, ""),
    (
        {"NodeDeclaredFeatures": False, "PodLevelResources": False, "ExtendWebSocketsToKubelet": False},
        36,
        (
            "InPlacePodLevelResourcesVerticalScaling is enabled, but depends on features that are disabled:"
            " [PodLevelResources NodeDeclaredFeatures]"
        ),
    ),
    # A gate that is locked is told first.
    ({"PodLevelResources": False, "KubeletPSI": False}, 36, LOCKED % "KubeletPSI"),
    (
        {"GracefulNodeShutdown": False},
        35,
        (
            "GracefulNodeShutdownBasedOnPodPriority is enabled, but depends on features that are disabled:"
            " [GracefulNodeShutdown]"
        ),
    ),
    ({"GracefulNodeShutdown": False}, 34, ""),
    (
        {"AllAlpha": True, "AllBeta": False},
        36,
        "PodLevelResourceManagers is enabled, but depends on features that are disabled: [PodLevelResources]",
    ),
]


@pytest.mark.parametrize(("given", "minor", "text"), FAULTS)
def test_the_first_fault(given: dict[str, bool], minor: int, text: str) -> None:
    found = gate_refusal(given, minor, REMOVE)
    assert ("" if found is None else found.text) == text


def test_gates_of_a_flag() -> None:
    found = gate_refusal({"CPUManager": True, "MemoryManager": True}, 36, "remove it from --feature-gates")
    assert found is not None
    assert (found.remedy, found.where) == ("remove it from --feature-gates", "featureGates.CPUManager")
    meant = gate_refusal({"NodeSwop": True}, 36, "remove it from --feature-gates")
    assert meant is not None
    assert meant.remedy == "write NodeSwap"


@pytest.mark.parametrize(
    ("given", "minor", "text"),
    [
        ({"AGateOfTheVendor": True}, 36, ""),
        ({"AGateOfTheVendor": True}, 31, ""),
        ({"CPUManager": False}, 33, ""),  # gone, and so not locked either
        ({"NodeSwop": True}, 36, ""),
        ({"AGateOfTheVendor": True, "CPUManagerPolicyOptions": False}, 33, LOCKED % "CPUManagerPolicyOptions"),
        (
            {"AllAlpha": True, "AllBeta": False, "AGateOfTheVendor": True},
            36,
            "PodLevelResourceManagers is enabled, but depends on features that are disabled: [PodLevelResources]",
        ),
    ],
)
def test_a_kubelet_that_only_warns_of_gates_that_it_does_not_have(
    given: dict[str, bool], minor: int, text: str
) -> None:
    found = gate_refusal(given, minor, REMOVE, warns=True)
    assert ("" if found is None else found.text) == text


def test_many_names_are_read_in_no_time() -> None:
    names = {"%s%d" % (gate, number): True for gate in GATES for number in range(30)}
    start = time.process_time()
    assert refusal(names).text == UNKNOWN + min(names)
    # Of these versions not all gates are known.
    for minor in (28, 37):
        assert gate_refusal({name: True for name in names if name[-2:].isdigit()}, minor, REMOVE) is None
    assert time.process_time() - start < 1


def test_of_many_names_of_which_nothing_is_known_a_few_are_looked_at() -> None:
    others = {"A%02d" % number: True for number in range(20)}
    assert gate_refusal({**others, "NodeSwop": True}, 37, REMOVE) is None
    del others["A19"]
    assert refusal({**others, "NodeSwop": True}, 37).text == UNKNOWN + "NodeSwop"
    assert refusal({**others, "NodeSwop": True}).remedy == "remove it from featureGates"  # of A00
