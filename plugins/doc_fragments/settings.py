# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from textwrap import indent

from .planner import OPTIONS


class ModuleDocFragment:
    """The kubelet's CPU settings."""

    DOCUMENTATION = r"""
options:
  cpu_manager_policy:
    description:
      - The kubelet's C(cpuManagerPolicy).
    type: str
    choices: [none, static]
  cpu_manager_policy_options:
    description:
      - The kubelet's C(cpuManagerPolicyOptions), all of them. An empty mapping removes them.
      - They go with the policy when O(cpu_manager_policy=none), because the kubelet does not start with options of
        no policy.
    type: dict
  cpu_manager_reconcile_period:
    description:
      - The kubelet's C(cpuManagerReconcilePeriod), such as V(10s).
    type: str
  topology_manager_policy:
    description:
      - The kubelet's C(topologyManagerPolicy).
    type: str
    choices: [none, best-effort, restricted, single-numa-node]
  topology_manager_scope:
    description:
      - The kubelet's C(topologyManagerScope).
    type: str
    choices: [container, pod]
  reserved_system_cpus:
    description:
      - The kubelet's C(reservedSystemCPUs), such as V(0-1,24-25). An empty text removes it.
      - It takes the place of the CPUs in C(kubeReserved) and C(systemReserved).
    type: str
  kube_reserved_cpu:
    description:
      - The C(cpu) of the kubelet's C(kubeReserved), such as V(500m).
    type: str
  system_reserved_cpu:
    description:
      - The C(cpu) of the kubelet's C(systemReserved), such as V(500m).
    type: str
  reservation:
    description:
      - Plan O(reserved_system_cpus) from the node's own topology, as M(kubenode.cpu_manager.reserved_cpus) does.
    type: dict
    suboptions:
""" + indent(OPTIONS, "      ")
