# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Configurations with which the kubelet starts, and that do harm."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.tests.unit.plugins.module_utils._kubelet.start.check_cases import (
    ALPHA,
    NO_QUOTA,
    STATIC,
    check,
    harms,
    refusals,
)

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
                (
                    "the reservation 0 splits cores: no pod can have their other threads, CPUs 4, for itself with"
                    " full-pcpus-only: 1 CPU that the scheduler counts"
                ),
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


LARGE = "2s2n4c2t"


@pytest.mark.parametrize(
    ("values", "minor", "found"),
    [
        ({"cpuManagerPolicyOptions": {"align-by-socket": "true"}}, 36, ["cpuManagerPolicyOptions.align-by-socket"]),
        (
            {
                "cpuManagerPolicyOptions": {"align-by-socket": "true", "distribute-cpus-across-numa": "true"},
                "topologyManagerPolicy": "restricted",
            },
            33,
            ["cpuManagerPolicyOptions.align-by-socket"],
        ),
        ({"topologyManagerPolicyOptions": {"prefer-closest-numa-nodes": "true"}}, 36, ["topologyManagerPolicyOptions"]),
        # Switched off.
        ({"cpuManagerPolicyOptions": {"align-by-socket": "false"}}, 36, []),
    ],
)
def test_options_that_do_not_do_what_they_are_for(values: dict[str, Any], minor: int, found: list[str]) -> None:
    findings = check({**STATIC, **ALPHA, "reservedSystemCPUs": "0,16", **values}, LARGE, minor).findings
    assert (refusals(findings), [where for where, _cause in harms(findings)]) == ([], found)


@pytest.mark.parametrize(
    ("policy", "machine", "values", "is_harmful"),
    [
        ("restricted", "1s17n1c", {}, True),
        ("best-effort", "2s1n4c+memory32", {}, True),
        # Devices ask for hints with any policy of the CPU manager.
        ("best-effort", "1s17n1c", {"cpuManagerPolicy": "none", "reservedSystemCPUs": None}, True),
        ("restricted", "2s8n1c", {}, False),
        ("none", "1s17n1c", {}, False),
    ],
)
def test_more_numa_nodes_than_sets_of_them_can_be_gone_through(
    policy: str, machine: str, values: dict[str, Any], is_harmful: bool
) -> None:
    options = {} if policy == "none" else {"topologyManagerPolicyOptions": {"max-allowable-numa-nodes": "64"}}
    findings = check({**STATIC, "topologyManagerPolicy": policy, **options, **values}, machine).findings
    assert refusals(findings) == []
    assert [where for where, _cause in harms(findings)] == ["topologyManagerPolicy"] * is_harmful
    if is_harmful:
        assert findings[0].remedy == "set topologyManagerPolicy: none"


def test_of_options_that_are_refused_no_more_is_said() -> None:
    options = {"align-by-socket": "true", "no-such-option": "true"}
    findings = check({**STATIC, **ALPHA, "cpuManagerPolicyOptions": options}, LARGE).findings
    assert len(refusals(findings)) == 1
    assert not [where for where, _cause in harms(findings) if "Options" in where]


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
