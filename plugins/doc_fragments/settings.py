# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from .reservation import RESERVATION


# Annotated, as ansible-test's yamllint takes what is plainly assigned there for a literal.
class ModuleDocFragment:
    """The kubelet's CPU settings."""

    DOCUMENTATION: str = (
        r"""
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
  topology_manager_policy_options:
    description:
      - The kubelet's C(topologyManagerPolicyOptions), all of them. An empty mapping removes them.
    type: dict
  memory_manager_policy:
    description:
      - The kubelet's C(memoryManagerPolicy).
    type: str
    choices: [None, Static]
  cpu_cfs_quota:
    description:
      - The kubelet's C(cpuCFSQuota), whether it holds containers to their CPU limits.
    type: bool
  cpu_cfs_quota_period:
    description:
      - The kubelet's C(cpuCFSQuotaPeriod), V(1ms) to V(1s). Its default is V(100ms).
    type: str
  reserved_system_cpus:
    description:
      - The kubelet's C(reservedSystemCPUs), such as V(0-1,24-25). An empty text removes it.
      - A text. A number such as V(3) is refused, because it can mean CPU 3 or three CPUs. Write V("3") in quotes for
        CPU 3, or O(reservation.count=3) for three CPUs.
      - It takes the place of the CPUs in C(kubeReserved) and C(systemReserved).
    type: raw
  kube_reserved_cpu:
    description:
      - The C(cpu) of the kubelet's C(kubeReserved), such as V(500m).
    type: str
  system_reserved_cpu:
    description:
      - The C(cpu) of the kubelet's C(systemReserved), such as V(500m).
    type: str
  kube_reserved_memory:
    description:
      - The C(memory) of the kubelet's C(kubeReserved), such as V(512Mi).
    type: str
  system_reserved_memory:
    description:
      - The C(memory) of the kubelet's C(systemReserved), such as V(512Mi).
    type: str
  reserved_memory:
    description:
      - The kubelet's C(reservedMemory), all of it, which O(memory_manager_policy=Static) needs. An empty list removes
        it.
      - Its memory has to add up to what is reserved of the node, the threshold of eviction included.
    type: list
    elements: dict
    suboptions:
      numaNode:
        description:
          - The NUMA node.
        type: int
        required: true
      limits:
        description:
          - How much of C(memory), or C(hugepages-2Mi) and so on, is reserved there.
        type: dict
        required: true
"""
        + RESERVATION
    )
