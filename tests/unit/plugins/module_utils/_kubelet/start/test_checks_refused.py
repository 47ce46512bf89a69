# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Configurations that the kubelet refuses: its words, and the field."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.tests.unit.plugins.module_utils._kubelet.start.check_cases import (
    ALPHA,
    NO_QUOTA,
    OPTIONS,
    STATIC,
    check,
    refusals,
)

REFUSED: list[tuple[dict[str, Any], str, int, list[str]]] = [
    # --- alone, so that nothing else has it looked at
    (
        {"topologyManagerScope": "node"},
        "1s4c2t",
        36,
        [
            (
                'invalid configuration: topologyManagerScope (--topology-manager-scope) "node" must be one of:'
                ' "container", or "pod"'
            )
        ],
    ),
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
