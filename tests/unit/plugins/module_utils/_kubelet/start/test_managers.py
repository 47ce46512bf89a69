# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.gates import Gates
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.findings import Host
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.managers import (
    topology_manager_findings,
    topology_option_gates,
)
from ansible_collections.kubenode.cpu_manager.tests.unit.plugins.module_utils._kubelet.start.check_cases import (
    check,
    host,
)

RESTRICTED = {"topologyManagerPolicy": "restricted"}
OPTIONS = "topologyManagerPolicyOptions"


def texts(values: dict[str, Any], minor: int = 36, machine: Host | None = None) -> list[str]:
    gates = Gates(values.get("featureGates", {}), minor)
    machine = machine or host("2s1n2c", minor)
    findings = topology_manager_findings(values, gates, machine._replace(minor=minor))
    assert all(finding.fatal and finding.cause and finding.remedy and finding.where for finding in findings)
    return [finding.text for finding in findings]


@pytest.mark.parametrize(
    ("values", "minor"),
    [
        ({}, 36),
        ({"topologyManagerPolicy": "none", OPTIONS: {"what": "ever"}}, 36),
        ({OPTIONS: {"what": "ever"}}, 36),
        ({"topologyManagerPolicy": "", OPTIONS: {"what": "ever"}}, 36),
        ({"topologyManagerPolicy": "unknown", OPTIONS: {"what": "ever"}}, 36),  # the validation says it
        ({**RESTRICTED, OPTIONS: {"prefer-closest-numa-nodes": "true"}}, 28),
        ({**RESTRICTED, OPTIONS: {"max-allowable-numa-nodes": "16"}}, 31),
        ({**RESTRICTED, OPTIONS: {"what": "ever"}, "featureGates": {"TopologyManager": False}}, 26),
        ({**RESTRICTED, OPTIONS: {"prefer-closest-numa-nodes": "true"}, "featureGates": {"AllAlpha": True}}, 26),
    ],
)
def test_fine(values: dict[str, Any], minor: int) -> None:
    assert texts(values, minor) == []


@pytest.mark.parametrize(
    ("options", "minor", "found"),
    [
        ({"what": "ever"}, 36, ['unknown Topology Manager Policy option: "what"']),
        ({"max-allowable-numa-nodes": "9"}, 30, ['unknown Topology Manager Policy option: "max-allowable-numa-nodes"']),
        (
            {"max-allowable-numa-nodes": "4"},
            36,
            ['the minimum value of "max-allowable-numa-nodes" should not be less than 8'],
        ),
        (
            {"max-allowable-numa-nodes": "true", "prefer-closest-numa-nodes": "yes"},
            36,
            [
                (
                    'unable to convert policy option to integer "max-allowable-numa-nodes": strconv.Atoi:'
                    ' parsing "true": invalid syntax'
                ),
                'bad value for option "prefer-closest-numa-nodes": strconv.ParseBool: parsing "yes": invalid syntax',
            ],
        ),
    ],
)
def test_options(options: dict[str, str], minor: int, found: list[str]) -> None:
    assert texts({**RESTRICTED, OPTIONS: options}, minor) == found


@pytest.mark.parametrize(
    ("gates", "option", "minor", "found"),
    [
        (
            {"TopologyManagerPolicyBetaOptions": False},
            "prefer-closest-numa-nodes",
            31,
            'Topology Manager Policy Beta-level Options not enabled, but option "prefer-closest-numa-nodes" provided',
        ),
        (
            {"TopologyManagerPolicyOptions": True},
            "prefer-closest-numa-nodes",
            27,
            'Topology Manager Policy Alpha-level Options not enabled, but option "prefer-closest-numa-nodes" provided',
        ),
        (
            {"TopologyManagerPolicyBetaOptions": False},
            "prefer-closest-numa-nodes",
            32,
            "",
        ),
        (
            {"TopologyManagerPolicyBetaOptions": False},
            "max-allowable-numa-nodes",
            32,
            'Topology Manager Policy Beta-level Options not enabled, but option "max-allowable-numa-nodes" provided',
        ),
        (
            {"TopologyManagerPolicyBetaOptions": False},
            "max-allowable-numa-nodes",
            33,
            'topology manager policy beta-level options not enabled, but option "max-allowable-numa-nodes" provided',
        ),
    ],
)
def test_levels(gates: dict[str, bool], option: str, minor: int, found: str) -> None:
    value = "true" if option == "prefer-closest-numa-nodes" else "9"
    assert texts({**RESTRICTED, OPTIONS: {option: value}, "featureGates": gates}, minor) == [found] * bool(found)


ONE, TWO = '"TopologyManagerPolicyOptions"', '"TopologyManager", "TopologyManagerPolicyOptions"'


@pytest.mark.parametrize(
    ("gates", "minor", "needed"),
    [
        ({"TopologyManagerPolicyOptions": False}, 35, ONE),
        ({"TopologyManagerPolicyOptions": False}, 36, ""),  # it is locked
        ({}, 27, ONE),
        ({}, 26, TWO),
        ({}, 28, ""),
        ({"TopologyManagerPolicyOptions": True}, 26, ""),
        ({"TopologyManager": False}, 26, ""),  # no topology manager, no options
    ],
)
@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ({"prefer-closest-numa-nodes": "true"}, "map[prefer-closest-numa-nodes:true]"),
        ({"b": "2", "a": "1"}, "map[a:1 b:2]"),
        ({}, "map[]"),
    ],
)
@pytest.mark.parametrize("policy", [{}, RESTRICTED])
def test_gates(
    gates: dict[str, bool], minor: int, needed: str, options: dict[str, str], shown: str, policy: dict[str, str]
) -> None:
    values = {**policy, OPTIONS: options, "featureGates": gates}
    findings = topology_option_gates(values, Gates(gates, minor), host(minor=minor))
    text = "topology manager policy options %s require feature gates %s enabled" % (shown, needed)
    assert [finding.text for finding in findings] == [text] * bool(needed)
    assert all(finding.fatal and finding.where == OPTIONS for finding in findings)
    if needed:
        assert findings[0].remedy == "remove the options, or set featureGates.TopologyManagerPolicyOptions: true"
        # It ends the start: nothing else is looked at.
        assert texts(values, minor) == []


def test_without_options_no_gate_is_needed() -> None:
    for values in ({}, {OPTIONS: None}, RESTRICTED):
        assert topology_option_gates(values, Gates({"TopologyManagerPolicyOptions": False}, 31), host()) == []


def test_the_machine() -> None:
    too_many = ["unsupported on machines with more than 8 NUMA Nodes"]
    assert texts(RESTRICTED, machine=host("2s5n1c")) == too_many
    assert texts(RESTRICTED, 30, machine=host("2s5n1c")) == too_many
    assert texts({**RESTRICTED, OPTIONS: {"max-allowable-numa-nodes": "10"}}, machine=host("2s5n1c")) == []
    # Nodes without CPUs count.
    assert texts(RESTRICTED, machine=host("2s1n1c+memory7")) == too_many
    unknown = host("2s1n2c")._replace(distances={})
    assert texts({**RESTRICTED, OPTIONS: {"prefer-closest-numa-nodes": "true"}}, machine=unknown) == [
        "cannot discover NUMA topology: error getting NUMA distances from cadvisor"
    ]


@pytest.mark.parametrize(
    ("values", "where"),
    [
        (
            {OPTIONS: {"a": "1", "prefer-closest-numa-nodes": "?"}},
            [OPTIONS + ".a", OPTIONS + ".prefer-closest-numa-nodes"],
        ),
        ({OPTIONS: {"max-allowable-numa-nodes": "4"}}, [OPTIONS + ".max-allowable-numa-nodes"]),
        ({}, ["topologyManagerPolicy"]),
    ],
)
def test_where(values: dict[str, Any], where: list[str]) -> None:
    values = {**RESTRICTED, **values}
    gates = Gates(values.get("featureGates", {}), 31)
    found = topology_manager_findings(values, gates, host("2s5n1c", 31))
    assert [finding.where for finding in found] == where


@pytest.mark.parametrize(
    ("machine", "values", "minor", "remedy"),
    [
        ("2s5n1c", {}, 30, "set topologyManagerPolicy: none"),
        ("2s5n1c", {}, 31, "set topologyManagerPolicy: none, or max-allowable-numa-nodes in " + OPTIONS),
        ("2s8n1c", {}, 31, "set topologyManagerPolicy: none, or max-allowable-numa-nodes in " + OPTIONS),
        # With the option it would start, and hang as it admits pods.
        ("1s17n1c", {}, 36, "set topologyManagerPolicy: none"),
        ("1s17n1c", {OPTIONS: {"max-allowable-numa-nodes": "16"}}, 36, "set topologyManagerPolicy: none"),
        ("2s1n1c", {OPTIONS: {"max-allowable-numa-nodes": "9"}}, 30, "remove it, or upgrade to Kubernetes 1.31"),
        ("2s1n1c", {OPTIONS: {"prefer-closest-numa-nodes": "?"}}, 31, 'write "true" or "false"'),
        (
            "2s1n1c",
            {OPTIONS: {"prefer-closest-numa-nodes": "true"}, "featureGates": {"TopologyManagerPolicyOptions": True}},
            27,
            "set featureGates.TopologyManagerPolicyAlphaOptions: true",
        ),
    ],
)
def test_the_remedy(machine: str, values: dict[str, Any], minor: int, remedy: str) -> None:
    gates = Gates(values.get("featureGates", {}), minor)
    (finding,) = topology_manager_findings({**RESTRICTED, **values}, gates, host(machine, minor))
    assert finding.remedy == remedy


def test_the_remedy_where_no_distances_are_known() -> None:
    values = {**RESTRICTED, OPTIONS: {"prefer-closest-numa-nodes": "true"}}
    (finding,) = topology_manager_findings(values, Gates({}, 36), host("2s1n2c")._replace(distances={}))
    assert finding.remedy == "remove prefer-closest-numa-nodes"


@pytest.mark.parametrize("pages", ["hugepages-2Mi", "hugepages-1Gi"])
def test_huge_pages_cannot_be_reserved_and_not_with_0_either(pages: str) -> None:
    values = {
        "memoryManagerPolicy": "Static",
        "systemReserved": {"memory": "924Mi"},
        "reservedMemory": [{"numaNode": 0, "limits": {"memory": "1Gi", pages: "2Gi"}}],
    }
    (finding,) = (finding for finding in check(values).findings if finding.fatal)
    assert finding.remedy == "take %s out of reservedMemory" % pages
    limits: dict[str, str] = {"memory": "1Gi", pages: "0"}
    (finding,) = (
        finding
        for finding in check({**values, "reservedMemory": [{"numaNode": 0, "limits": limits}]}).findings
        if finding.fatal
    )
    assert (finding.cause, finding.remedy) == ("it is 0", "remove it")
