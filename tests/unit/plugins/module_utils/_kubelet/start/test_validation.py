# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.gates import Gates
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.decode import (
    KUBELET_CONFIGURATION,
    STRUCTS,
    decode_file,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.validation import validation_findings
from ansible_collections.kubenode.cpu_manager.tests.unit.plugins.module_utils._kubelet.start.check_cases import host

FIELDS = STRUCTS[KUBELET_CONFIGURATION]

ON = {"featureGates": {"CustomCPUCFSQuotaPeriod": True}}
ENFORCE = "invalid configuration: "
FLAG = "enforceNodeAllocatable (--enforce-node-allocatable)"
NO_QOS = " is not supported unless cgroupsPerQOS (--cgroups-per-qos) is set to true"


def texts(values: dict[str, Any], minor: int = 36, cgroup_v1: bool = False) -> list[str]:
    fields = decode_file(values, minor)
    gates = Gates(fields.get("featureGates", {}), minor)
    findings = validation_findings(fields, gates, host(minor=minor, cgroup_v1=cgroup_v1))
    assert all(
        finding.fatal and finding.cause and finding.remedy and finding.where.split(".")[0] in FIELDS
        for finding in findings
    )
    return [finding.text for finding in findings]


FINE: list[tuple[dict[str, Any], int]] = [
    ({}, 36),
    ({"cpuCFSQuotaPeriod": "100ms"}, 35),
    ({"cpuCFSQuotaPeriod": "0.1s"}, 35),
    ({"cpuCFSQuotaPeriod": "1ms"}, 36),
    ({**ON, "cpuCFSQuotaPeriod": "1s"}, 35),
    ({"featureGates": {"AllAlpha": True}, "cpuCFSQuotaPeriod": "5ms"}, 35),
    ({"topologyManagerPolicy": "single-numa-node", "topologyManagerScope": "pod"}, 36),
    ({"topologyManagerPolicy": "", "topologyManagerScope": ""}, 36),
    ({"enforceNodeAllocatable": []}, 36),
    ({"enforceNodeAllocatable": [], "cgroupsPerQOS": False}, 36),
    ({"enforceNodeAllocatable": ["none"], "cgroupsPerQOS": False}, 36),
    ({"enforceNodeAllocatable": ["pods", "system-reserved"], "systemReservedCgroup": "/system"}, 36),
    ({"enforceNodeAllocatable": ["kube-reserved-compressible"], "kubeReservedCgroup": "/runtime"}, 36),
    ({"enforceNodeAllocatable": ["pods", "pods"]}, 31),
    ({"enforceNodeAllocatable": [], "cgroupsPerQOS": False}, 30),
    ({"enforceNodeAllocatable": ["none"], "cgroupsPerQOS": False}, 33),
    ({"enforceNodeAllocatable": ["none"]}, 30),
]


@pytest.mark.parametrize(("values", "minor"), FINE)
def test_fine(values: dict[str, Any], minor: int) -> None:
    assert texts(values, minor) == []


@pytest.mark.parametrize("period", ["1us", "100us", "999us"])
def test_a_quota_period_that_an_old_kubelet_takes_and_the_kernel_refuses(period: str) -> None:
    """The kubelet starts, and no container does: from 1.26 on it is the kubelet that refuses."""
    values = {**ON, "cpuCFSQuotaPeriod": period}
    found = [
        validation_findings(decode_file(values, minor), Gates(ON["featureGates"], minor), host(minor=minor))
        for minor in (20, 25)
    ]
    for (finding,) in found:
        assert (finding.fatal, finding.where) == (False, "cpuCFSQuotaPeriod")
        assert "the kernel takes no period below 1ms" in finding.cause


REFUSED: list[tuple[dict[str, Any], int, list[str]]] = [
    (
        {"cpuCFSQuotaPeriod": "5ms"},
        35,
        ["cpuCFSQuotaPeriod (--cpu-cfs-quota-period) {5ms} requires feature gate CustomCPUCFSQuotaPeriod"],
    ),
    (
        {"cpuCFSQuotaPeriod": "0"},
        35,
        ["cpuCFSQuotaPeriod (--cpu-cfs-quota-period) {0s} requires feature gate CustomCPUCFSQuotaPeriod"],
    ),
    (
        {"cpuCFSQuotaPeriod": "100us"},
        36,
        ["cpuCFSQuotaPeriod (--cpu-cfs-quota-period) {100µs} must be between 1ms and 1sec, inclusive"],
    ),
    (
        {**ON, "cpuCFSQuotaPeriod": "100ns"},
        20,
        ["cpuCFSQuotaPeriod (--cpu-cfs-quota-period) {100ns} must be between 1usec and 1sec, inclusive"],
    ),
    (
        {**ON, "cpuCFSQuotaPeriod": "100us"},
        26,
        ["cpuCFSQuotaPeriod (--cpu-cfs-quota-period) {100µs} must be between 1ms and 1sec, inclusive"],
    ),
    (
        {"cpuCFSQuotaPeriod": "1000001us"},
        36,
        ["cpuCFSQuotaPeriod (--cpu-cfs-quota-period) {1.000001s} must be between 1ms and 1sec, inclusive"],
    ),
    (
        {**ON, "cpuCFSQuotaPeriod": "1m"},
        33,
        ["cpuCFSQuotaPeriod (--cpu-cfs-quota-period) {1m0s} must be between 1ms and 1sec, inclusive"],
    ),
    (
        {"topologyManagerPolicy": "strict"},
        36,
        [
            (
                'topologyManagerPolicy (--topology-manager-policy) "strict" must be one of: ["none" "best-effort"'
                ' "restricted" "single-numa-node"]'
            )
        ],
    ),
    (
        {"topologyManagerScope": "node"},
        36,
        ['topologyManagerScope (--topology-manager-scope) "node" must be one of: "container", or "pod"'],
    ),
    (
        {"enforceNodeAllocatable": ["pods", "system-reserved"]},
        36,
        [
            'systemReservedCgroup (--system-reserved-cgroup) must be specified when "system-reserved" or'
            ' "system-reserved-compressible" included in ' + FLAG
        ],
    ),
    (
        {"enforceNodeAllocatable": ["kube-reserved-compressible"]},
        32,
        [
            'kubeReservedCgroup (--kube-reserved-cgroup) must be specified when "kube-reserved" or'
            ' "kube-reserved-compressible" included in ' + FLAG
        ],
    ),
    (
        {"enforceNodeAllocatable": ["kube-reserved"]},
        31,
        ['kubeReservedCgroup (--kube-reserved-cgroup) must be specified when "kube-reserved" contained in ' + FLAG],
    ),
    (
        {
            "enforceNodeAllocatable": ["system-reserved", "system-reserved-compressible"],
            "systemReservedCgroup": "/system",
        },
        31,
        [
            'option "system-reserved-compressible" specified for ' + FLAG + '. Valid options are "pods",'
            ' "system-reserved", "kube-reserved" or "none"'
        ],
    ),
    (
        {
            "enforceNodeAllocatable": ["system-reserved", "system-reserved-compressible"],
            "systemReservedCgroup": "/system",
        },
        36,
        ['both "system-reserved" and "system-reserved-compressible" cannot be specified together in ' + FLAG],
    ),
    (
        {"enforceNodeAllocatable": ["none", "pods"]},
        36,
        [FLAG + ' may not contain additional enforcements when "none" is specified'],
    ),
    ({"enforceNodeAllocatable": ["pods", "pods"]}, 36, ['duplicated enforcements "pods" in ' + FLAG]),
    (
        {"enforceNodeAllocatable": ["pod"]},
        36,
        [
            'option "pod" specified for ' + FLAG + '. Valid options are "pods", "system-reserved",'
            ' "system-reserved-compressible", "kube-reserved", "kube-reserved-compressible" or "none"'
        ],
    ),
    (
        {"enforceNodeAllocatable": ["kube-reserved-compressible"]},
        31,
        [
            'option "kube-reserved-compressible" specified for ' + FLAG + '. Valid options are "pods",'
            ' "system-reserved", "kube-reserved" or "none"'
        ],
    ),
    (
        {"cgroupsPerQOS": False},
        36,
        ['cgroupsPerQOS (--cgroups-per-qos) must be set to true when "pods" contained in ' + FLAG],
    ),
    ({"cgroupsPerQOS": False}, 30, [FLAG + NO_QOS]),
    ({"cgroupsPerQOS": False, "enforceNodeAllocatable": ["none"]}, 31, [FLAG + NO_QOS]),
]


@pytest.mark.parametrize(("values", "minor", "found"), REFUSED)
def test_refused(values: dict[str, Any], minor: int, found: list[str]) -> None:
    assert texts(values, minor) == ["invalid configuration: " + text for text in found]


UNSUPPORTED = (
    "kubelet is configured to not run on a host using cgroup v1. cgroup v1 support is unsupported and will be removed"
    " in a future release"
)
MAINTENANCE = "kubelet is configured to not run on a host using cgroup v1. cgroup v1 support is in maintenance mode"
OOM_KILL = "invalid configuration: singleProcessOOMKill must not be explicitly set to false when using cgroup v1"


@pytest.mark.parametrize(
    ("values", "minor", "found"),
    [
        ({}, 36, [UNSUPPORTED]),
        ({}, 35, [UNSUPPORTED]),
        ({}, 34, []),
        ({"failCgroupV1": False}, 36, []),
        ({"failCgroupV1": True}, 34, [MAINTENANCE]),
        ({"failCgroupV1": True}, 31, [MAINTENANCE]),
        ({"failCgroupV1": True}, 30, []),
        ({"singleProcessOOMKill": False}, 32, [OOM_KILL]),
        ({"singleProcessOOMKill": False}, 31, []),
        ({"failCgroupV1": False, "singleProcessOOMKill": False}, 36, [OOM_KILL]),
        ({"failCgroupV1": False, "singleProcessOOMKill": True}, 36, []),
    ],
)
def test_a_host_with_cgroup_v1(values: dict[str, Any], minor: int, found: list[str]) -> None:
    assert texts(values, minor, cgroup_v1=True) == found
    assert texts(values, minor) == []


FACTOR = "memoryThrottlingFactor %s must be greater than 0 and less than or equal to 1.0"
TIERED = {"memoryReservationPolicy": "TieredReservation"}


def direct(values: dict[str, Any], minor: int = 36, emptied: frozenset[str] = frozenset()) -> list[str]:
    gates = Gates(values.get("featureGates", {}), minor)
    findings = validation_findings(values, gates, host(minor=minor), emptied)
    assert {finding.context for finding in findings} <= {
        "initialize logging: ",
        "failed to validate kubelet configuration, error: ",
    }
    return [finding.text for finding in findings]


@pytest.mark.parametrize(
    ("values", "minor", "found"),
    [
        ({"memoryThrottlingFactor": 1}, 36, []),
        ({"memoryThrottlingFactor": 0.5}, 36, []),
        ({"memoryThrottlingFactor": 0}, 36, [FACTOR % "0"]),
        ({"memoryThrottlingFactor": 1.5}, 33, [FACTOR % "1.5"]),
        ({"memoryReservationPolicy": ""}, 36, []),
        ({"memoryReservationPolicy": "None"}, 36, []),
        ({**TIERED, "featureGates": {"MemoryQoS": True}}, 36, []),
        (
            {**TIERED, "featureGates": {"MemoryQoS": False}},
            36,
            ['memoryReservationPolicy "TieredReservation" requires MemoryQoS feature gate to be enabled'],
        ),
        (
            {"memoryReservationPolicy": "Foo"},
            36,
            ['option "Foo" specified for memoryReservationPolicy. Valid options are "None" or "TieredReservation"'],
        ),
    ],
)
def test_control_of_memory(values: dict[str, Any], minor: int, found: list[str]) -> None:
    assert direct(values, minor) == [ENFORCE + text for text in found]


def test_what_a_flag_empties_has_no_default() -> None:
    values = {"topologyManagerPolicy": "", "topologyManagerScope": ""}
    assert direct(values) == []
    assert direct(values, emptied=frozenset(values)) == [
        ENFORCE + 'topologyManagerPolicy (--topology-manager-policy) "" must be one of: ["none" "best-effort"'
        ' "restricted" "single-numa-node"]',
        ENFORCE + 'topologyManagerScope (--topology-manager-scope) "" must be one of: "container", or "pod"',
    ]


def test_the_order() -> None:
    values = {
        "containerLogMaxFiles": 1,
        "memoryThrottlingFactor": 2,
        "showHiddenMetricsForVersion": "1.1",
        "imagePullCredentialsVerificationPolicy": "x",
        "hairpinMode": "x",
        "enforceNodeAllocatable": ["x"],
        "crashLoopBackOff": {"maxContainerRestartPeriod": 0},
        "memorySwap": {"swapBehavior": "x"},
        "shutdownGracePeriod": 1,
        "topologyManagerPolicy": "x",
        "registerWithTaints": [{}],
        "runOnce": True,
        "imageGCHighThresholdPercent": 101,
        "cpuCFSQuotaPeriod": 1,
        "nodeLeaseDurationSeconds": -1,
        "logging": {"format": "x"},
    }
    gates = Gates({}, 36)
    found = [finding.where.partition(".")[0] for finding in validation_findings(values, gates, host())]
    assert found == [name if name != "registerWithTaints" else "registerWithTaints[0]" for name in reversed(values)]
    # A kubelet older than these rules.
    older = validation_findings(values, Gates({}, 28), host(minor=28))
    assert [finding.where for finding in older] == [
        "cpuCFSQuotaPeriod",
        "topologyManagerPolicy",
        "enforceNodeAllocatable",
    ]


@pytest.mark.parametrize("minor", [31, 36])
def test_very_many_that_are_wrong(minor: int) -> None:
    assert len(direct({"enforceNodeAllocatable": ["x%d" % number for number in range(10000)]}, minor)) == 100


@pytest.mark.parametrize("value", [None, True, 5, 1.5, "x", [], ["x", 1, None, {}], {}, {"x": 1}])
def test_any_value_has_an_answer(value: Any) -> None:
    for name in FIELDS:
        validation_findings({name: value}, Gates({}, 36), host(cgroup_v1=True))
