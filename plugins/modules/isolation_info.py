#!/usr/bin/python
# -*- coding: utf-8 -*-

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: isolation_info
short_description: See who really ran on a node's CPUs
version_added: 0.1.0
author:
  - the kubenode.cpu_manager developers (@kubenode)
description:
  - Looks at a running node for some seconds and returns for each CPU who ran on it meanwhile, which are containers,
    other cgroups such as services of systemd, single processes and kernel threads, and which interrupts it had.
  - For each container with exclusive CPUs, returns whether it had them to itself. The checkpoint says whose they are.
  - A cpuset keeps a container on its CPUs. It does not keep kernel threads, interrupts, services of systemd and
    containers with another cpuset off them, which is what this module shows.
  - It only reads. Its process leaves the exclusive CPUs for the time of the sample, where it may use others, and is in
    no verdict; RV(observer) has what it took.
  - R(Who ran on the exclusive CPUs, ansible_collections.kubenode.cpu_manager.docsite.isolation)
    says what is counted and what is sampled.
extends_documentation_fragment:
  - kubenode.cpu_manager.node
  - kubenode.cpu_manager.kubelet
  - kubenode.cpu_manager.hide_names
  - kubenode.cpu_manager.attributes
  - kubenode.cpu_manager.attributes.info
options:
  seconds:
    description:
      - How long to look, from 1 to 3600. What takes 1 % of a CPU shows in 5 seconds; what comes once a minute, such as
        a probe, needs longer.
    type: int
    default: 5
  threshold:
    description:
      - From which share of one CPU's time, in percent, somebody else on exclusive CPUs counts as a disturbance. What is
        below is returned as a number.
    type: float
    default: 1.0
seealso:
  - module: kubenode.cpu_manager.drift_info
  - module: kubenode.cpu_manager.reconcile
"""

EXAMPLES = r"""
- name: See who runs on the exclusive CPUs
  kubenode.cpu_manager.isolation_info:
  register: isolation

- name: Fail where a container does not have its CPUs to itself
  ansible.builtin.assert:
    that: isolation.findings | length == 0
    fail_msg: "{{ isolation.findings | map(attribute='found') | join('; ') }}"

- name: Look for a minute, and count half a percent of a CPU
  kubenode.cpu_manager.isolation_info:
    seconds: 60
    threshold: 0.5
"""

RETURN = r"""
node:
  description: The name of the node, from C(/etc/hostname).
  returned: always
  type: str
  sample: worker-3
seconds:
  description: How long it really looked. 0 for a saved node.
  returned: success
  type: float
  sample: 5.002
threshold:
  description: The option O(threshold).
  returned: success
  type: float
  sample: 1.0
containers:
  description: The containers that have CPUs to themselves.
  returned: success
  type: list
  elements: dict
  contains:
    pod_uid:
      description: The UID of the pod.
      type: str
      sample: 8dbda0f5-4d4c-4b9c-b4c2-2d2d2d2d2d2d
    pod:
      description: Its namespace and name. Empty where these are not known.
      type: str
      sample: shop/database-0
    container:
      description: The name of the container. Empty for what a whole pod has and none of its containers.
      type: str
      sample: server
    id:
      description: The id of the container. Empty where it does not run.
      type: str
      sample: 4d5e9c2b1a0f4d5e9c2b1a0f4d5e9c2b1a0f4d5e9c2b1a0f4d5e9c2b1a0f4d5e
    cpus:
      description: The CPUs that it has to itself.
      type: str
      sample: 2-3
    verdict:
      description:
        - C(alone), C(disturbed), or C(idle), where nobody ran there, not even the container, which says nothing about
          whether it would be alone. None for a saved node.
      type: str
      sample: disturbed
    own_percent:
      description: The share of the CPUs' time in which the container ran.
      type: float
      sample: 93.1
    foreign_percent:
      description: The share of the CPUs' time that was not its own, without idle time.
      type: float
      sample: 3.2
    interrupts:
      description: How many interrupts the CPUs had, timers and those between CPUs included.
      type: int
      sample: 1250
    by:
      description:
        - Whose it was, the most first. All that make the verdict; of what is below the threshold, 8 in all.
      type: list
      elements: dict
      contains:
        kind:
          description:
            - C(container), C(cgroup), C(process) for one in the topmost cgroup, C(kernel thread), C(interrupts),
              C(steal) for what the hypervisor took, or C(unattributed) for what was busy and belongs to nobody that was
              seen, as processes that end soon do.
          type: str
          sample: kernel thread
        name:
          description:
            - Of a container the namespace, pod and name; of a cgroup its path; of a task its name, in which all but
              printable characters is escaped; of interrupts the most frequent with their counts.
          type: str
          sample: kworker/3:1-events
        cpus:
          description: On which of the CPUs.
          type: str
          sample: "3"
        percent:
          description: Of one CPU's time, summed over the CPUs.
          type: float
          sample: 6.4
        seconds:
          description: The same in seconds.
          type: float
          sample: 0.32
        sure:
          description:
            - Whether the kernel counts that on these CPUs. Else the time is counted, and the CPU was sampled.
          type: bool
          sample: true
        disturbs:
          description:
            - Whether it makes the verdict. What is counted in ticks of 10 ms does from two ticks on, and unattributed
              time where it is above the threshold by more than the sources may differ.
          type: bool
          sample: true
cpus:
  description: Each CPU that is online. Empty for a saved node.
  returned: success
  type: list
  elements: dict
  contains:
    cpu:
      description: Its number.
      type: int
      sample: 3
    exclusive_to:
      description: Which container has it to itself, as C(namespace/pod/container). Empty where none has.
      type: str
      sample: shop/database-0/server
    idle_percent:
      description: The share of the time in which nothing ran.
      type: float
      sample: 3.5
    irq_percent:
      description: The share of the time in interrupts, as far as the kernel counts it.
      type: float
      sample: 0.0
    softirq_percent:
      description: The share of the time in soft interrupts, which the kernel counts in ticks.
      type: float
      sample: 0.2
    steal_percent:
      description: The share of the time that the hypervisor took.
      type: float
      sample: 0.0
    unattributed_percent:
      description: The share of the time in which tasks ran that were not seen.
      type: float
      sample: 0.1
    by:
      description:
        - Who ran, with C(kind), C(name), C(percent) and C(sure) as in RV(containers[].by), the container itself
          included. Of CPUs that are not exclusive, those with 1 % or more.
      type: list
      elements: dict
      sample: [{"kind": "container", "name": "shop/database-0/server", "percent": 93.1, "sure": true}]
    interrupts:
      description:
        - How many interrupts it had, by name. Of CPUs that are not exclusive, the 8 most frequent.
      type: dict
      sample: {"LOC (Local timer interrupts)": 1250, "36 virtio1-req.0": 12, "NET_RX": 40}
observer:
  description: What the module itself took. None for a saved node.
  returned: success
  type: dict
  contains:
    pid:
      description: Its process, which is in no account.
      type: int
      sample: 4711
    cpus:
      description: The CPUs that it kept to. Empty where it may use exclusive CPUs only.
      type: str
      sample: 0-1
    cpu_seconds:
      description: The CPU time of the sample.
      type: float
      sample: 0.021
    looks:
      description: How often it looked at the tasks between the begin and the end.
      type: int
      sample: 19
    tasks:
      description: How many tasks it looked at.
      type: int
      sample: 412
    cgroups:
      description: How many cgroups it read, which only those of v1 are.
      type: int
      sample: 0
findings:
  description: The containers that are disturbed, as the drift report takes them.
  returned: success
  type: list
  elements: dict
  contains:
    check:
      description: The id of the check.
      type: str
      sample: exclusive-cpus-disturbed
    subject:
      description: The namespace, pod and container.
      type: str
      sample: shop/database-0/server
    wanted:
      description: What it should be.
      type: str
      sample: CPUs 2-3 for itself
    found:
      description: By whom it was disturbed, and how much.
      type: str
      sample: "in 5.0 s: kernel thread kworker/3:1-events: 6.4 % of a CPU, on CPUs 3"
    remedy:
      description: What to do about it, by the kind of disturber.
      type: str
      sample: give the containers their cpusets back with the playbook repair or the role reconcile
notes:
  description: What could not be measured, and why.
  returned: success
  type: list
  elements: str
  sample: []
note_checks:
  description: The id of the check to which each of RV(notes) belongs, in the same order.
  returned: success
  type: list
  elements: str
  sample: []
"""


from ..module_utils.ansible_module import Arguments, Outcome, Parameters, run
from ..module_utils.kubelet_module import HIDE_NAMES, KUBELET, node_of
from ..module_utils.node.isolation import isolation_report
from ..module_utils.tree import Tree


def work(tree: Tree, parameters: Parameters, check_mode: bool) -> Outcome:
    return Outcome(isolation_report(node_of(tree, parameters), parameters["seconds"], parameters["threshold"]))


def main() -> None:
    run(
        work,
        KUBELET,
        HIDE_NAMES,
        Arguments(
            {
                "seconds": {"type": "int", "default": 5},
                "threshold": {"type": "float", "default": 1.0},
            }
        ),
    )


if __name__ == "__main__":
    main()
