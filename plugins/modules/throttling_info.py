#!/usr/bin/python
# -*- coding: utf-8 -*-

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: throttling_info
short_description: Read which containers are limited, by which cgroup, and how often they were throttled
version_added: 0.1.0
author:
  - the kubenode.cpu_manager developers (@kubenode)
description:
  - Reads quota, period, burst and weight of the cgroups of all containers and of all cgroups above them, in both
    versions of cgroups. Also reads what the kernel has counted of throttling. It writes nothing.
  - Finds quotas on exclusive CPUs wherever they are above a container, and quotas that are less than the exclusive
    CPUs. It also finds containers that were throttled often, and nodes whose kubelet and container runtime make weights
    by different formulas.
  - Exclusive CPUs are those of the kubelet's checkpoint, or of the policies dynamic and isolated of the role
    P(kubenode.cpu_manager.reconcile#role) where it assigns CPUs.
  - The cpu controller is read where it is, which may be another version of cgroups than that of the cpusets.
  - If something cannot be measured, there is a note with the check C(throttling-unmeasured). Nothing is estimated.
  - The module does not fail on a node without a kubelet or without containers.
extends_documentation_fragment:
  - kubenode.cpu_manager.node
  - kubenode.cpu_manager.kubelet
  - kubenode.cpu_manager.hide_names
  - kubenode.cpu_manager.attributes.info
options:
  seconds:
    description:
      - How long to count, up to 3600 seconds. With V(0), the result is what the kernel has counted since each cgroup
        was made.
      - On a saved node only V(0) gives counts.
    type: int
    default: 0
  throttled_percent:
    description:
      - In how many percent of its periods a container may be throttled, from 0 to 100. More is a finding if its cgroup
        had at least 20 periods.
    type: int
    default: 25
seealso:
  - module: kubenode.cpu_manager.drift_info
  - module: kubenode.cpu_manager.allocation_plan
"""

EXAMPLES = r"""
- name: Read what was throttled since the containers were started
  kubenode.cpu_manager.throttling_info:
  register: throttling

- name: Stop where exclusive CPUs have a quota
  ansible.builtin.assert:
    that: throttling.findings | selectattr('check', 'eq', 'exclusive-cpus-with-quota') | length == 0
    fail_msg: "{{ throttling.findings | map(attribute='found') | join('; ') }}"

- name: Read what is throttled now
  kubenode.cpu_manager.throttling_info:
    seconds: 10
"""

RETURN = r"""
node: {description: "The name of the node, from C(/etc/hostname).", returned: always, type: str, sample: worker-3}
kernel:
  description: The release of the kernel. Empty where it is not known.
  returned: success
  type: str
  sample: 6.12.0-amd64
meaning:
  description: What the numbers mean with this kernel and these cgroups, for people.
  returned: success
  type: list
  elements: str
  sample: ["throttled_us is summed over all CPUs, so it can be longer than the time that went by"]
hierarchy:
  description: The cgroups that have the cpu controller. None where there are none.
  returned: success
  type: dict
  contains:
    version:
      description: Their version, 1 or 2.
      type: int
      sample: 2
    mount:
      description: Where they are.
      type: str
      sample: /sys/fs/cgroup
seconds:
  description:
    - How long was counted, as the kernel's monotonic clock says. None for what was counted since each cgroup was made.
    - 0 if a saved node was to be measured, which is not possible.
  returned: success
  type: float
  sample: 10.003
containers:
  description: The containers, by pod and name.
  returned: success
  type: list
  elements: dict
  contains:
    pod_uid:
      description: The UID of the pod.
      type: str
      sample: 8dbda0f5-4d4c-4b9c-b4c2-5e8b0c7e7f4a
    pod:
      description: The namespace and name of the pod, where they are known.
      type: str
      sample: shop/database-0
    container:
      description: The container; empty where its name is not known.
      type: str
      sample: server
    id:
      description: Its id.
      type: str
      sample: 4f0c9d1e2b3a5f60718293a4b5c6d7e8f90123456789abcdef0123456789abcd
    qos_class:
      description: C(Guaranteed), C(Burstable) or C(BestEffort), by the place of the pod's cgroup.
      type: str
      sample: Guaranteed
    cgroup:
      description: Its cgroup, relative to RV(hierarchy.mount).
      type: str
      sample: kubepods.slice/kubepods-pod1.slice/cri-containerd-4f0c.scope
    exclusive:
      description: Its exclusive CPUs. Empty for none.
      type: str
      sample: 4-5,28-29
    of_pod:
      description:
        - The CPUs that it has of those of its pod, where that has some as a whole. Empty for others. Whether they are
          its own or those of several containers, and so whether it is to have a quota, only the kubelet knows.
      type: str
      sample: ""
    levels:
      description: The cgroups from that of its processes up to the topmost, each a key of RV(cgroups).
      type: list
      elements: str
      sample: [kubepods.slice/kubepods-pod1.slice/cri-containerd-4f0c.scope, kubepods.slice/kubepods-pod1.slice,
        kubepods.slice, /]
    limit:
      description: The smallest quota of these cgroups, which is the one that limits. None where there is none.
      type: dict
      contains:
        cgroup:
          description: The cgroup that has it.
          type: str
          sample: kubepods.slice/kubepods-pod1.slice
        cpus:
          description: How many CPUs it is worth.
          type: float
          sample: 1.5
    started:
      description: When its first process started, in UTC. Empty where that is not known.
      type: str
      sample: "2026-11-28T20:14:07Z"
    counted:
      description: What was counted of its cgroup, as in RV(cgroups).
      type: dict
      sample: {"periods": 100, "throttled_periods": 40, "throttled_us": 1200000, "bursts": 0, "burst_us": 0,
        "local_us": 1200000}
    throttled_percent:
      description: In which part of its periods its cgroup was throttled by its own quota. None without periods.
      type: float
      sample: 40.0
cgroups:
  description: The cgroups of the containers and all above them, by their paths. The topmost is C(/).
  returned: success
  type: dict
  contains:
    kind:
      description: C(container), C(pod), C(qos), C(pods) for that of all pods, C(above) or C(root).
      type: str
      sample: pod
    has_quota:
      description: Whether the cgroup has the files of a quota. Where it has not, it limits nothing.
      type: bool
      sample: true
    quota_us:
      description: The quota, in microseconds. None for no limit.
      type: int
      sample: 150000
    period_us:
      description: The period, in microseconds.
      type: int
      sample: 100000
    burst_us:
      description: How much unused quota is saved, in microseconds. None if the kernel does not support it.
      type: int
      sample: 0
    cpus:
      description: How many CPUs the quota is worth. None for no limit.
      type: float
      sample: 1.5
    shares:
      description: The shares of version 1.
      type: int
      sample: 1024
    weight:
      description: The weight of version 2.
      type: int
      sample: 100
    counted:
      description: What the kernel has counted; see RV(meaning). None where that is not known.
      type: dict
      contains:
        periods:
          description: The periods in which the cgroup had work to do.
          type: int
          sample: 100
        throttled_periods:
          description: Those in which its own quota was used up.
          type: int
          sample: 40
        throttled_us:
          description: How long its own quota stopped it, in microseconds, summed over all CPUs.
          type: int
          sample: 1200000
        bursts:
          description: The periods in which saved quota was used. None where the kernel does not count them.
          type: int
          sample: 0
        burst_us:
          description: How much of it, in microseconds.
          type: int
          sample: 0
        local_us:
          description:
            - How long its own quota and those above it stopped its tasks, in microseconds. None before kernel 6.6.
          type: int
          sample: 1200000
    problems:
      description: Values in its files that the kernel would not write. They are returned as None.
      type: list
      elements: str
      sample: []
host:
  description:
    - What all that runs in no pod has used since the boot. Two readings give a rate. None where it cannot be read.
  returned: success
  type: dict
  contains:
    boot:
      description: The id of the boot; counters of two boots cannot be compared.
      type: str
      sample: 3b0c9a1e-5d0f-4f6c-8e0a-9f5d2f1c7a44
    uptime:
      description: Seconds since the boot.
      type: float
      sample: 1209600.5
    total_us:
      description: CPU time of the whole node, in microseconds.
      type: int
      sample: 9000000000
    pods_us:
      description: That of all pods. The rest is the host's.
      type: int
      sample: 8000000000
    pressure_us:
      description:
        - How long something of C(system.slice) waited for a CPU, in microseconds. None where the kernel does not count
          it.
      type: int
      sample: 120000000
    memory_bytes:
      description:
        - The memory in use, by the kernel, too, without that of pods, huge pages, and what is kept of files that nobody
          has read for a while. The kubelet counts it in this way. None where it cannot be read.
      type: int
      sample: 2147483648
findings:
  description: What is wrong.
  returned: success
  type: list
  elements: dict
  contains:
    check:
      description:
        - C(exclusive-cpus-with-quota), where exclusive CPUs have a quota that is enough for them;
          C(limit-below-request), where it is less than these CPUs; C(container-throttled) for a container that was
          throttled often; or C(weights-by-two-formulas).
      type: str
      sample: exclusive-cpus-with-quota
    subject:
      description: The namespace, pod and container, or the CPUs below a quota that is above pods.
      type: str
      sample: shop/database-0/server
    wanted:
      description: What should be.
      type: str
      sample: no quota on the exclusive CPUs 4-5
    found:
      description: What was found, and what effect it had.
      type: str
    remedy:
      description: What to do about it, with this version of the kubelet or with the policies dynamic and isolated.
      type: str
notes:
  description: What could not be measured, and why.
  returned: success
  type: list
  elements: str
  sample: ["/var/lib/kubelet/cpu_manager_state cannot be read: which containers have exclusive CPUs is not known"]
note_checks:
  description: The id of the check to which each of RV(notes) belongs, in the same order.
  returned: success
  type: list
  elements: str
  sample: [throttling-unmeasured]
"""

from ..module_utils._base.ansible_module import Outcome, Parameters, run
from ..module_utils._base.arguments import Arguments
from ..module_utils._base.errors import noted
from ..module_utils._base.tree import Tree
from ..module_utils._isolation.throttling_info import throttling
from ..module_utils._node.hidden_names import HIDE_NAMES, shown_node_of
from ..module_utils._node.module import KUBELET


def work(tree: Tree, parameters: Parameters, check_mode: bool) -> Outcome:
    result = throttling(shown_node_of(tree, parameters), parameters["seconds"], parameters["throttled_percent"])
    return Outcome({**result, **noted(result["notes"])})


def main() -> None:
    run(
        work,
        KUBELET,
        HIDE_NAMES,
        Arguments(
            {
                "seconds": {"type": "int", "default": 0},
                "throttled_percent": {"type": "int", "default": 25},
            }
        ),
    )


if __name__ == "__main__":
    main()
