# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any, Sequence

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.kubelet.gates.enabled import Gates
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.kubelet.start.checked import Checked
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.kubelet.start.checks.configuration import (
    check_decoded,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.kubelet.start.engine import predict_values
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.kubelet.start.finding import Finding, Host
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.kubelet.start.prediction import Prediction
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.config import CPUManagerConfig
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.kubelet_view import kubelet_view
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import parse_name

HEADER = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}
STATIC: dict[str, Any] = {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0,4"}
ALPHA = {"featureGates": {"CPUManagerPolicyAlphaOptions": True}}
NO_QUOTA = {"cpuCFSQuota": False}
GIB = 1 << 30


def host(machine: str = "1s4c2t", minor: int = 36, memory: int | None = 16 * GIB, cgroup_v1: bool = False) -> Host:
    topology = parse_name(machine).topology()
    nodes = tuple(node.id for node in topology.numa_nodes)
    return Host(kubelet_view(topology), minor, nodes, topology.numa_distances, memory, cgroup_v1)


def check(values: dict[str, Any], machine: str = "1s4c2t", minor: int = 36, **details: Any) -> Prediction:
    prediction = predict_values({**HEADER, **values}, host(machine, minor, **details))
    for finding in prediction.findings:
        assert finding.cause
        assert finding.remedy
        assert finding.where
    return prediction


def managers(values: dict[str, Any], machine: str = "1s4c2t", minor: int = 36) -> Checked:
    """What the managers start with."""
    checked = check(values, machine, minor).checked
    assert checked is not None
    return checked


def refusals(findings: Sequence[Finding]) -> list[str]:
    return [finding.text for finding in findings if finding.fatal]


def harms(findings: Sequence[Finding]) -> list[tuple[str, str]]:
    return [(finding.where, finding.text or finding.cause) for finding in findings if not finding.fatal]


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


REFUSED: list[tuple[dict[str, Any], str, int, list[str]]] = [
    # --- reservedSystemCPUs
    (
        {"reservedSystemCPUs": "0", "kubeReservedCgroup": "/runtime"},
        "1s4c2t",
        36,
        [
            (
                "invalid configuration: can't use reservedSystemCPUs (--reserved-cpus) with systemReservedCgroup"
                " (--system-reserved-cgroup) or kubeReservedCgroup (--kube-reserved-cgroup)"
            )
        ],
    ),
    (
        {"reservedSystemCPUs": "0-1, 4"},
        "1s4c2t",
        36,
        [
            (
                "invalid configuration: unable to parse reservedSystemCPUs (--reserved-cpus) 0-1, 4, error:"
                ' strconv.Atoi: parsing " 4": invalid syntax'
            )
        ],
    ),
    (
        {"reservedSystemCPUs": "3-1"},
        "1s4c2t",
        36,
        [
            (
                "invalid configuration: unable to parse reservedSystemCPUs (--reserved-cpus) 3-1, error:"
                ' invalid range "3-1" (3 > 1)'
            )
        ],
    ),
    (
        {"reservedSystemCPUs": "0,8"},
        "1s4c2t",
        36,
        ["reserved-cpus: 0,8 is not a subset of online-cpus: 0-7"],
    ),
    (
        {**STATIC, "reservedSystemCPUs": "5"},
        "1s4c2t+offline5",
        36,
        ["reserved-cpus: 5 is not a subset of online-cpus: 0-4,6-7"],
    ),
    # Once the kubelet compared the highest with the number of CPUs.
    (
        {**STATIC, **NO_QUOTA, "reservedSystemCPUs": "3,7"},
        "1s4c2t+offline5",
        20,
        ['Invalid cpuset "3,7" specified by --reserved-cpus'],
    ),
    ({"reservedSystemCPUs": "3,7"}, "1s4c2t+offline5", 21, []),
    # --- kubeReserved, systemReserved
    ({"kubeReserved": {"gpu": "1"}}, "1s4c2t", 36, ['cannot reserve "gpu" resource']),
    (
        {"kubeReserved": {"cpu": "-1"}},
        "1s4c2t",
        36,
        ['resource quantity for "cpu" cannot be negative: -1'],
    ),
    (
        {"systemReserved": {"cpu": "one"}, "kubeReserved": {"memory": "1Gb"}},
        "1s4c2t",
        36,
        [
            (
                'failed to parse quantity "one" for "cpu" resource: quantities must match the regular expression'
                " '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
            ),
            (
                'failed to parse quantity "1Gb" for "memory" resource: quantities must match the regular expression'
                " '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
            ),
        ],
    ),
    (
        {"kubeReserved": {"cpu": "7"}, "systemReserved": {"cpu": "1500m"}},
        "1s4c2t",
        36,
        [
            (
                'Resource "cpu" has a reservation of'
                " {{8500 -3} {<nil>}  DecimalSI}"
                " but capacity of {{8000 -3} {<nil>}  DecimalSI}. Expected capacity >= reservation."
            )
        ],
    ),
    (
        {"kubeReserved": {"memory": "16Gi"}},
        "1s4c2t",
        36,
        [
            (
                'Resource "memory" has a reservation of'
                " {{17284726784 0} {<nil>}  BinarySI} but capacity of {{17179869184 0} {<nil>}  BinarySI}."
                " Expected capacity >= reservation."
            )
        ],
    ),
    # Without a CPU manager its policy counts no CPUs.
    (
        {"cpuManagerPolicy": "static", "featureGates": {"CPUManager": False}, "kubeReserved": {"cpu": "9"}},
        "1s4c2t",
        25,
        [
            (
                'Resource "cpu" has a reservation of'
                " {{9 0} {<nil>}  DecimalSI}"
                " but capacity of {{8000 -3} {<nil>}  DecimalSI}. Expected capacity >= reservation."
            )
        ],
    ),
    # --- the static policy's reservation
    (
        {"cpuManagerPolicy": "static"},
        "1s4c2t",
        36,
        ["[cpumanager] unable to determine reserved CPU resources for static policy"],
    ),
    (
        {"cpuManagerPolicy": "static", "kubeReserved": {"cpu": "0"}},
        "1s4c2t",
        36,
        ["[cpumanager] unable to determine reserved CPU resources for static policy"],
    ),
    (
        {"cpuManagerPolicy": "static", "kubeReserved": {"cpu": "8500m"}},
        "1s4c2t",
        36,
        [
            (
                "new static policy error: [cpumanager] unable to reserve the required amount of CPUs (size of  did not"
                " equal 9)"
            )
        ],
    ),
    # --- policies and options
    ({"cpuManagerPolicy": "Static"}, "1s4c2t", 36, ['unknown policy: "Static"']),
    (
        {"cpuManagerPolicyOptions": {"full-pcpus-only": "true", "a": "b"}},
        "1s4c2t",
        36,
        ["new none policy error: None policy: received unsupported options=map[a:b full-pcpus-only:true]"],
    ),
    (
        {**STATIC, "cpuManagerPolicyOptions": {"full-cpus": "true", "full-pcpus-only": "yes"}},
        "1s4c2t",
        36,
        [
            'new static policy error: unknown CPU Manager Policy option: "full-cpus"',
            (
                'new static policy error: bad value for option "full-pcpus-only": strconv.ParseBool: parsing "yes":'
                " invalid syntax"
            ),
        ],
    ),
    (
        {**STATIC, "cpuManagerPolicyOptions": {"strict-cpu-reservation": "true"}},
        "1s4c2t",
        31,
        ['new static policy error: unknown CPU Manager Policy option: "strict-cpu-reservation"'],
    ),
    (
        {**STATIC, "cpuManagerPolicyOptions": {"strict-cpu-reservation": "true"}},
        "1s4c2t",
        32,
        [
            (
                "new static policy error: CPU Manager Policy Alpha-level Options not enabled, but option"
                ' "strict-cpu-reservation" provided'
            )
        ],
    ),
    (
        {**STATIC, "cpuManagerPolicyOptions": {"distribute-cpus-across-numa": "true"}},
        "1s4c2t",
        23,
        [
            (
                "new static policy error: CPU Manager Policy Alpha-level Options not enabled, but option"
                ' "distribute-cpus-across-numa" provided'
            )
        ],
    ),
    (
        {
            **STATIC,
            "featureGates": {"CPUManagerPolicyBetaOptions": False},
            "cpuManagerPolicyOptions": {"distribute-cpus-across-numa": "true"},
        },
        "1s4c2t",
        36,
        [
            (
                "new static policy error: CPU Manager Policy Beta-level Options not enabled, but option"
                ' "distribute-cpus-across-numa" provided'
            )
        ],
    ),
    (
        {
            **STATIC,
            "featureGates": {"CPUManagerPolicyOptions": False},
            "cpuManagerPolicyOptions": {"full-pcpus-only": "true"},
        },
        "1s4c2t",
        32,
        [
            (
                'CPU Manager policy options map[full-pcpus-only:true] require feature gates "CPUManager",'
                ' "CPUManagerPolicyOptions" enabled'
            )
        ],
    ),
    (
        {
            **STATIC,
            **ALPHA,
            "cpuManagerPolicyOptions": dict.fromkeys(
                (
                    "full-pcpus-only",
                    "distribute-cpus-across-numa",
                    "distribute-cpus-across-cores",
                    "prefer-align-cpus-by-uncorecache",
                ),
                "true",
            ),
        },
        "1s4c2t",
        36,
        [
            (
                "new static policy error: static policy options distribute-cpus-across-numa and"
                " distribute-cpus-across-cores can not be used at the same time"
            ),
            (
                "new static policy error: static policy options full-pcpus-only and distribute-cpus-across-cores"
                " can not be used at the same time"
            ),
            (
                "new static policy error: static policy options prefer-align-cpus-by-uncorecache and"
                " distribute-cpus-across-cores can not be used at the same time"
            ),
            (
                "new static policy error: static policy options prefer-align-cpus-by-uncorecache and"
                " distribute-cpus-across-numa can not be used at the same time"
            ),
        ],
    ),
    (
        {
            **STATIC,
            **ALPHA,
            "topologyManagerPolicy": "single-numa-node",
            "cpuManagerPolicyOptions": {"align-by-socket": "true"},
        },
        "2s2c2t",  # two sockets in one NUMA node
        36,
        [
            (
                "new static policy error: Topolgy manager single-numa-node policy is incompatible with CPUManager"
                " align-by-socket policy option"
            ),
            (
                "new static policy error: Align by socket is not compatible with hardware where number of sockets are"
                " more than number of NUMA"
            ),
        ],
    ),
    (
        {**STATIC, **ALPHA, "cpuManagerPolicyOptions": {"align-by-socket": "true"}},
        "2s2c2t",
        36,
        [
            (
                "new static policy error: Align by socket is not compatible with hardware where number of sockets are"
                " more than number of NUMA"
            ),
        ],
    ),
]


@pytest.mark.parametrize(("values", "machine", "minor", "texts"), REFUSED)
def test_refused(values: dict[str, Any], machine: str, minor: int, texts: list[str]) -> None:
    assert sorted(refusals(check(values, machine, minor).findings)) == sorted(texts)


OPTIONS = "cpuManagerPolicyOptions"


@pytest.mark.parametrize(
    ("values", "where"),
    [
        ({"reservedSystemCPUs": "0", "kubeReservedCgroup": "/runtime"}, ["reservedSystemCPUs"]),
        ({"reservedSystemCPUs": "0", "systemReservedCgroup": "/system"}, ["reservedSystemCPUs"]),
        ({"reservedSystemCPUs": "?"}, ["reservedSystemCPUs"]),
        ({"reservedSystemCPUs": "8"}, ["reservedSystemCPUs"]),
        (
            {"kubeReserved": {"gpu": "1", "nic": "1", "pid": "?"}},
            ["kubeReserved.gpu", "kubeReserved.nic", "kubeReserved.pid"],
        ),
        (
            {"systemReserved": {"cpu": "?", "memory": "-1", "pid": "?"}},
            ["systemReserved.cpu", "systemReserved.memory", "systemReserved.pid"],
        ),
        ({"kubeReserved": {"cpu": "9", "memory": "17Gi"}}, ["cpu", "memory"]),  # of several fields together
        ({"cpuManagerPolicy": "static"}, ["reservedSystemCPUs"]),
        ({"cpuManagerPolicy": "dynamic"}, ["cpuManagerPolicy"]),
        ({OPTIONS: {"full-pcpus-only": "true"}}, [OPTIONS]),
        ({**STATIC, OPTIONS: {"a": "1", "full-pcpus-only": "?"}}, [OPTIONS + ".a", OPTIONS + ".full-pcpus-only"]),
        (
            {
                **STATIC,
                **ALPHA,
                OPTIONS: {"distribute-cpus-across-cores": "true", "full-pcpus-only": "true"},
            },
            [OPTIONS],
        ),
        (
            {
                **STATIC,
                **ALPHA,
                OPTIONS: {"align-by-socket": "true"},
                "topologyManagerPolicy": "single-numa-node",
            },
            [OPTIONS + ".align-by-socket"],
        ),
    ],
)
def test_where(values: dict[str, Any], where: list[str]) -> None:
    assert [finding.where for finding in check(values).findings if finding.fatal] == where


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
        has_systemd=True, lacks_cgroup=lambda _path: True, kernel_flag=lambda _flag: 7
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


HARMFUL: list[tuple[dict[str, Any], str, list[tuple[str, str]]]] = [
    (
        {"reservedSystemCPU": "0"},
        "1s4c2t",
        [("reservedSystemCPU", 'strict decoding error: unknown field "reservedSystemCPU"')],
    ),
    (
        {**STATIC, "kubeReserved": {"cpu": "1"}},
        "1s4c2t",
        [
            (
                "kubeReserved.cpu",
                (
                    "Option --reserved-cpus is specified, it will overwrite the cpu setting in KubeReserved and"
                    " SystemReserved"
                ),
            )
        ],
    ),
    (
        {**STATIC, "reservedSystemCPUs": "0-1"},
        "1s4c2t",
        [
            (
                "reservedSystemCPUs",
                "the reservation 0-1 splits cores: pods get their other threads, CPUs 4-5",
            )
        ],
    ),
    (
        {
            "cpuManagerPolicy": "static",
            "kubeReserved": {"cpu": "500m"},
            "cpuManagerPolicyOptions": {"full-pcpus-only": "true"},
        },
        "1s4c2t",
        [
            (
                "reservedSystemCPUs",
                "the reservation 0 splits cores: no pod can have their other threads, CPUs 4",
            )
        ],
    ),
    (
        {**STATIC, "reservedSystemCPUs": "0-7"},
        "1s4c2t",
        [("reservedSystemCPUs", "all CPUs are reserved: no pod can have CPUs for itself")],
    ),
    (
        {**STATIC, "reservedSystemCPUs": "0,4"},
        "1s4c2t+offline5",
        [
            (
                "cpuManagerPolicy",
                (
                    "the cores have unequal numbers of online threads, and the kubelet counts with their average, 1:"
                    " it can hand out a CPU that is in use"
                ),
            )
        ],
    ),
    (
        {
            "cpuManagerPolicy": "static",
            "kubeReserved": {"cpu": "12"},
            "cpuManagerPolicyOptions": {"distribute-cpus-across-numa": "true"},
        },
        "2s1n4c2t",
        [
            (
                "reservedSystemCPUs",
                "the policy's options decide which CPUs are reserved: 0-2,4-6,8-10,12-14, without them 0-5,8-13",
            )
        ],
    ),
]


@pytest.mark.parametrize(("values", "machine", "found"), HARMFUL)
def test_harmful(values: dict[str, Any], machine: str, found: list[tuple[str, str]]) -> None:
    findings = check(values, machine).findings
    assert refusals(findings) == []
    assert harms(findings) == found


@pytest.mark.parametrize(
    ("values", "minor", "remedy"),
    [
        (STATIC, 32, "upgrade to 1.33, or set cpuCFSQuota: false, which lifts the limits of all pods"),
        ({**STATIC, "cpuCFSQuota": None}, 26, "upgrade to 1.33, or set cpuCFSQuota: false, which lifts"),
        (
            {**STATIC, "featureGates": {"DisableCPUQuotaWithExclusiveCPUs": False}},
            33,
            "set featureGates.DisableCPUQuotaWithExclusiveCPUs: true",
        ),
        (STATIC, 33, ""),
        ({**STATIC, **NO_QUOTA}, 32, ""),
        # Without exclusive CPUs all limits are what was asked for.
        ({"cpuManagerPolicy": "none"}, 32, ""),
    ],
)
def test_exclusive_cpus_with_a_quota(values: dict[str, Any], minor: int, remedy: str) -> None:
    found = [finding for finding in check(values, minor=minor).findings if finding.where == "cpuCFSQuota"]
    assert [finding.fatal for finding in found] == [False] * bool(remedy)
    assert all(finding.remedy.startswith(remedy) and "throttled" in finding.cause for finding in found)


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
