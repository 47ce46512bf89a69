# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A machine for the kubelet's checks, configurations for it, and what the checks say of them."""

from __future__ import annotations

from typing import Any, Sequence

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.findings import Checked, Finding, Host
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.predict import (
    Prediction,
    predict_values,
)
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
    """Return what the managers start with."""
    checked = check(values, machine, minor).checked
    assert checked is not None
    return checked


def refusals(findings: Sequence[Finding]) -> list[str]:
    return [finding.text for finding in findings if finding.fatal]


def harms(findings: Sequence[Finding]) -> list[tuple[str, str]]:
    return [(finding.where, finding.text or finding.cause) for finding in findings if not finding.fatal]


OPTIONS = "cpuManagerPolicyOptions"
