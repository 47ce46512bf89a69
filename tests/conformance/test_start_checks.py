# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The start check against the kubelet's own starts: it says what the kubelet said, and nothing where it started."""

from __future__ import annotations

from typing import Any, Mapping

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.versions import minor_version
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.findings import Finding, Host
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.predict import predict_values
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.start_check import checkpoint_findings
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.kubelet_view import CPUTopology

from .policy_case import ZERO_RESERVATION
from .read_vectors import rows
from .test_vectors import POLICY_FILES, TOPOLOGIES

CHECKPOINT = "/var/lib/kubelet/cpu_manager_state"

# The vectors ask the policy itself. In a kubelet a reservation of zero is none, and it says so before.
NO_RESERVATION = "[cpumanager] unable to determine reserved CPU resources for static policy"


def configuration_of(case: Mapping[str, Any]) -> dict[str, Any]:
    """Return the KubeletConfiguration of a case."""
    values: dict[str, Any] = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "cpuManagerPolicy": "static",
        "cpuManagerPolicyOptions": case["options"],
        "topologyManagerPolicy": case["topology_policy"],
        "topologyManagerScope": case["topology_scope"],
        "featureGates": case["feature_gates"],
    }
    if "reserved_cpus" in case:
        values["reservedSystemCPUs"] = case["reserved_cpus"]
    if "reserved_milli" in case:
        values["kubeReserved"] = {"cpu": "%dm" % case["reserved_milli"]}
    return values


def refusals(case: Mapping[str, Any], version: str) -> list[str]:
    topology = CPUTopology(TOPOLOGIES[case["topology"]])
    host = Host(topology, minor_version(version), tuple(topology.numa_nodes), {})
    prediction = predict_values(configuration_of(case), host)
    findings, checked = list(prediction.findings), prediction.checked
    if checked is not None:
        state = case.get("state")
        content = None if state is None else state.encode("utf-8")
        found = checkpoint_findings(content, CHECKPOINT, checked, host)
        findings += [finding for finding in found if isinstance(finding, Finding)]
    assert all(finding.cause and finding.remedy and finding.where for finding in findings)
    return [finding.text for finding in findings if finding.fatal]


@pytest.mark.parametrize("version", POLICY_FILES)
def test_every_start(version: str) -> None:
    wrong = []
    refused = number = 0
    for number, row in enumerate(rows(POLICY_FILES[version]), 1):
        expected = row["expect"].get("error")
        if expected == ZERO_RESERVATION:
            expected = NO_RESERVATION
        found = refusals(row["case"], version)
        refused += expected is not None
        if (expected not in found) if expected else found:
            wrong.append((number, expected, found))
    assert wrong == []
    assert number == 900
    assert refused > 300
