# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Settings, the kubelet's file that says them, and a machine for them, as several tests of settings use them."""

from __future__ import annotations

from typing import Any

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.configuration import KubeletConfiguration
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.findings import Host
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.kubelet_view import kubelet_view
from ansible_collections.kubenode.cpu_manager.tests.machines.kubelets import HEADER
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import parse_name
from ansible_collections.kubenode.cpu_manager.tests.machines.values import defaults_of_settings

DEFAULTS = defaults_of_settings()

OTHERS: dict[str, Any] = {
    "cpu_manager_policy": "static",
    "cpu_manager_policy_options": {"full-pcpus-only": "true"},
    "cpu_manager_reconcile_period": "5s",
    "topology_manager_policy": "restricted",
    "topology_manager_scope": "pod",
    "topology_manager_policy_options": {"prefer-closest-numa-nodes": "true"},
    "memory_manager_policy": "Static",
    "cpu_cfs_quota": False,
    "cpu_cfs_quota_period": "50ms",
    "reserved_system_cpus": "0,4",
    "kube_reserved_cpu": "500m",
    "system_reserved_cpu": "1",
    "kube_reserved_memory": "512Mi",
    "system_reserved_memory": "1Gi",
    "reserved_memory": [{"numaNode": 0, "limits": {"memory": "1636Mi"}}],
}

OTHERS_TEXT = """\
apiVersion: kubelet.config.k8s.io/v1beta1
cpuCFSQuota: false
cpuCFSQuotaPeriod: 50ms
cpuManagerPolicy: static
cpuManagerPolicyOptions:
  full-pcpus-only: "true"
cpuManagerReconcilePeriod: 5s
kind: KubeletConfiguration
kubeReserved:
  cpu: 500m
  memory: 512Mi
memoryManagerPolicy: Static
reservedMemory:
- numaNode: 0
  limits:
    memory: 1636Mi
reservedSystemCPUs: 0,4
systemReserved:
  cpu: "1"
  memory: 1Gi
topologyManagerPolicy: restricted
topologyManagerPolicyOptions:
  prefer-closest-numa-nodes: "true"
topologyManagerScope: pod
"""


def file(text: str = "") -> KubeletConfiguration:
    return KubeletConfiguration.parse(HEADER + text, "config.yaml")


def machine(name: str = "1s4c2t", minor: int = 36) -> Host:
    return Host(kubelet_view(parse_name(name).topology()), minor)
