# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the checks say together, in which order, and with what the managers start."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.gates import Gates
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.checks import check_decoded
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.acceptance import CPUManagerConfig
from ansible_collections.kubenode.cpu_manager.tests.unit.plugins.module_utils._kubelet.start.check_cases import (
    ALPHA,
    NO_QUOTA,
    OPTIONS,
    STATIC,
    check,
    host,
    managers,
    refusals,
)

FINE: list[tuple[dict[str, Any], str, int]] = [
    ({}, "1s4c2t", 36),
    ({}, "2s5n1c", 36),  # 10 NUMA nodes
    ({**STATIC, **NO_QUOTA}, "1s4c2t", 20),
    (STATIC, "1s4c2t", 36),
    ({**STATIC, **NO_QUOTA, "cpuManagerPolicyOptions": {"full-pcpus-only": "1"}}, "1s4c2t", 23),
    ({**STATIC, "cpuManagerPolicyOptions": {}}, "1s4c2t", 36),
    ({"cpuManagerPolicy": "", "topologyManagerPolicy": "", "reservedSystemCPUs": ""}, "1s4c2t", 36),
    ({"cpuManagerPolicy": None, "kubeReserved": None, "featureGates": None}, "1s4c2t", 36),
    ({"cpuManagerPolicy": "static", "kubeReserved": {"cpu": "1"}, "systemReserved": {"cpu": "1"}}, "1s4c2t", 36),
    ({"kubeReserved": {"cpu": "7", "memory": "1Gi", "pid": "100", "ephemeral-storage": "1Gi"}}, "1s4c2t", 36),
    ({"reservedSystemCPUs": "0-4"}, "1s4c2t", 36),
    (
        {**STATIC, "reservedSystemCPUs": "1,5", "cpuManagerPolicyOptions": {"full-pcpus-only": "true"}},
        "1s4c2t",
        36,
    ),
    ({"reservedSystemCPUs": ""}, "1s4c2t", 20),
    ({"kubeReserved": {"cpu": "8"}}, "1s4c2t", 36),
    # Before 1.23 options had no levels.
    (
        {
            **STATIC,
            **NO_QUOTA,
            "featureGates": {"CPUManagerPolicyOptions": True},
            "cpuManagerPolicyOptions": {"full-pcpus-only": "true"},
        },
        "1s4c2t",
        22,
    ),
    ({**STATIC, **ALPHA, "cpuManagerPolicyOptions": {"align-by-socket": "true"}}, "1s4c2t", 36),
    (
        {**STATIC, "featureGates": {"AllAlpha": True}, "cpuManagerPolicyOptions": {"align-by-socket": "true"}},
        "1s4c2t",
        36,
    ),
    (
        {
            **STATIC,
            **ALPHA,
            "cpuManagerPolicyOptions": {"full-pcpus-only": "false", "distribute-cpus-across-cores": "true"},
        },
        "1s4c2t",
        36,
    ),
    # A gate that is off leaves the manager away.
    ({"cpuManagerPolicy": "static", "featureGates": {"CPUManager": False}}, "1s4c2t", 25),
    ({"memoryManagerPolicy": "Static", "featureGates": {"MemoryManager": False}}, "1s4c2t", 31),
]


@pytest.mark.parametrize(("values", "machine", "minor"), FINE)
def test_nothing_is_said_of_what_is_right(values: dict[str, Any], machine: str, minor: int) -> None:
    assert check(values, machine, minor).findings == []


def test_from_the_validation_on_all_is_told_at_once() -> None:
    """Of each part of the kubelet something."""
    values = {
        "cpuCFSQuotaPeriod": "2s",
        "topologyManagerPolicy": "restricted",
        "cpuManagerPolicy": "static",
        "cpuManagerPolicyOptions": {"full-pcpus-only": "true"},
        "memoryManagerPolicy": "static",
    }
    assert refusals(check(values, "2s5n1c").findings) == [
        (
            "invalid configuration: cpuCFSQuotaPeriod (--cpu-cfs-quota-period) {2s} must be between 1ms and 1sec,"
            " inclusive"
        ),
        "unsupported on machines with more than 8 NUMA Nodes",
        "[cpumanager] unable to determine reserved CPU resources for static policy",
        'unknown policy: "static"',
    ]
    # Until then there is nothing behind the first refusal.
    gates = {**values, "unknown": 1, "featureGates": {"CPUManager": True}}
    undecoded = {**gates, "cpuManagerPolicyOptions": {"full-pcpus-only": True}}
    for stopped, text in (
        (gates, "unrecognized feature gate: CPUManager"),
        (
            undecoded,
            (
                "failed to decode: json: cannot unmarshal bool into Go struct field"
                " KubeletConfiguration.cpuManagerPolicyOptions of type string"
            ),
        ),
    ):
        prediction = check(stopped, "2s5n1c")
        assert [(finding.text, finding.fatal) for finding in prediction.findings] == [(text, True)]
        assert (prediction.starts, prediction.checked, prediction.ignored) == (False, None, ())


def test_what_the_kubelet_prints_before_the_text() -> None:
    findings = check({"kubeReserved": {"gpu": "1"}, "systemReserved": {"gpu": "1"}}).findings
    assert [finding.context for finding in findings] == [
        "--kube-reserved value failed to parse: ",
        "--system-reserved value failed to parse: ",
    ]
    findings = check({"kubeReserved": {"cpu": "9"}, "containerLogMaxSize": "x"}).findings
    assert [finding.context for finding in findings] == [
        "failed to create kubelet: ",
        "invalid Node Allocatable configuration. ",
    ]


def test_the_kubelet_reads_reservations_and_thresholds_before_it_makes_its_managers() -> None:
    values = {
        "protectKernelDefaults": True,
        "kubeReserved": {"memory": "x"},
        "systemReserved": {"memory": "x"},
        "evictionHard": {"memory.available": "x"},
        "qosReserved": {"memory": "x"},
        "cpuManagerPolicyOptions": {"full-pcpus-only": "true"},
        "topologyManagerPolicy": "restricted",
        "memorySwap": {"swapBehavior": "LimitedSwap"},
        "cgroupRoot": "/missing",
        "cpuManagerPolicy": "Static",
        "memoryManagerPolicy": "static",
        "containerLogMaxSize": "x",
        "systemCgroups": "/",
        "failCgroupV1": False,
    }
    machine = host("2s5n1c", cgroup_v1=True)._replace(
        has_systemd=True, lacks_cgroup=lambda _path: ["/sys/fs/cgroup"], kernel_flag=lambda _flag: 7
    )
    checked = check_decoded(values, Gates({}, 36), machine)
    assert [finding.where for finding in checked.before if finding.fatal] == [
        "kubeReserved.memory",
        "systemReserved.memory",
        "evictionHard.memory.available",
        "qosReserved.memory",
        "memorySwap.swapBehavior",
        "cgroupRoot",
        "topologyManagerPolicy",
        "cpuManagerPolicy",
        "memoryManagerPolicy",
        "containerLogMaxSize",
    ]
    # When the managers have read their states.
    assert [finding.where for finding in checked.after] == ["protectKernelDefaults"] * 6 + ["systemCgroups"]
    assert checked.findings == checked.before + checked.after
    assert checked.unknown == []


def test_hard_eviction_is_read() -> None:
    for threshold, text in (
        ("0", "eviction threshold memory.available must be positive: 0"),
        ("-1%", "eviction percentage threshold memory.available must be >= 0%: -1%"),
    ):
        (finding,) = check({"evictionHard": {"memory.available": threshold}}).findings
        assert (finding.where, finding.text) == ("evictionHard.memory.available", text)


def test_what_cannot_be_seen() -> None:
    values = {
        "kubeReserved": {"ephemeral-storage": "9Gi"},
        "protectKernelDefaults": True,
        "cgroupRoot": "/a",
        "enforceNodeAllocatable": ["pods", "kube-reserved"],
        "kubeReservedCgroup": "/b",
    }
    checked = check(values)
    assert checked.findings == []
    assert [unknown.where for unknown in checked.unknown] == [
        "cgroupRoot",
        "ephemeral-storage",
        "protectKernelDefaults",
        "kubeReservedCgroup",
    ]
    assert check({}).unknown == []


@pytest.mark.parametrize(
    ("field", "text"),
    [("cpuManagerPolicy", 'unknown policy: ""'), ("memoryManagerPolicy", 'unknown policy: ""')],
)
def test_a_flag_with_an_empty_value(field: str, text: str) -> None:
    """No default comes in its place."""
    emptied = check_decoded({field: ""}, Gates({}, 36), host(), frozenset((field,)))
    assert [(finding.where, finding.text) for finding in emptied.findings] == [(field, text)]
    assert check_decoded({field: ""}, Gates({}, 36), host()).findings == []


def test_what_depends_on_something_refused_is_left_out() -> None:
    """What the static policy would reserve is not known, so nothing is said of it."""
    for values in (
        {"reservedSystemCPUs": "0-"},
        {"reservedSystemCPUs": "64"},
        {"kubeReserved": {"cpu": "?"}},
        {"kubeReserved": {"cpu": "-1", "memory": "1Gi"}},
        {"reservedSystemCPUs": "0,4", "systemReserved": {"memory": "?"}},
    ):
        checked = managers({"cpuManagerPolicy": "static", **values})
        assert len(checked.findings) == 1
        assert checked.cpu_manager is None
        assert checked.cpu_manager_policy == "static"
    # A CPU that is online, of a number that this kubelet does not take.
    old = managers({**STATIC, **NO_QUOTA, "reservedSystemCPUs": "3,7"}, "1s4c2t+offline5", 20)
    assert len(old.findings) == 1
    assert old.cpu_manager is None


def test_options_that_go_together_are_checked_beside_those_that_do_not() -> None:
    excluded = {"full-pcpus-only": "true", "distribute-cpus-across-cores": "true"}
    values = {**STATIC, **ALPHA, "topologyManagerPolicy": "single-numa-node"}
    assert [finding.where for finding in check({**values, OPTIONS: excluded}).findings] == [OPTIONS]
    both = managers({**values, OPTIONS: {**excluded, "align-by-socket": "true"}})
    assert [finding.where for finding in both.findings] == [OPTIONS, OPTIONS + ".align-by-socket"]
    assert both.cpu_manager is None


def test_what_the_managers_start_with() -> None:
    checked = managers({**STATIC, "cpuManagerPolicyOptions": {"strict-cpu-reservation": "true"}}, minor=35)
    all_cpus, reserved = CPUSet.parse("0-7"), CPUSet.parse("0,4")
    assert checked.cpu_manager == CPUManagerConfig("static", all_cpus, reserved, strict_reservation=True, minor=35)
    assert checked.options.strict_cpu_reservation
    assert checked.cpu_manager_policy == "static"
    assert checked.memory_manager_policy == "None"
    assert managers({}).cpu_manager == CPUManagerConfig("none", all_cpus)
    for policy in ({}, STATIC):
        assert not managers(policy).pod_level
        pod_level = managers({**policy, "featureGates": {"PodLevelResourceManagers": True}})
        assert pod_level.pod_level
        assert pod_level.cpu_manager is not None
        assert pod_level.cpu_manager.pod_level
    # So little as no thousandth of a CPU is rounded up to the next CPU.
    rounded = managers({"cpuManagerPolicy": "static", "kubeReserved": {"cpu": "1000001u"}}).cpu_manager
    assert rounded is not None
    assert rounded.reserved == reserved
    off = managers({"featureGates": {"CPUManager": False}}, minor=20)
    assert off.cpu_manager_policy is None
    assert off.cpu_manager is None
    assert off.memory_manager_policy is None
