#!/usr/bin/python
# -*- coding: utf-8 -*-

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: isolation_info
short_description: Measure what really ran on a node's CPUs
version_added: 0.1.0
author:
  - the kubenode.cpu_manager developers (@kubenode)
description:
  - Measures a running node for some seconds. Returns for each CPU which containers, other cgroups such as services of
    systemd, single processes and kernel threads ran on it, and which interrupts it handled.
  - For each container with exclusive CPUs, returns whether anything else ran there. These CPUs are listed in the
    kubelet's checkpoint, or in the file of the policies dynamic and isolated of the role
    P(kubenode.cpu_manager.reconcile#role) where it assigns CPUs.
  - A cpuset keeps a container on its CPUs. It does not keep kernel threads, interrupts, services of systemd and
    containers with another cpuset off them, which is what this module shows.
  - It only reads. During the sample, its process does not use the exclusive CPUs, if it may use others, and is excluded
    from all verdicts. RV(observer) has the time that it took.
  - R(Who ran on the exclusive CPUs, ansible_collections.kubenode.cpu_manager.docsite.isolation)
    explains what is counted and what is sampled.
extends_documentation_fragment:
  - kubenode.cpu_manager.node
  - kubenode.cpu_manager.kubelet
  - kubenode.cpu_manager.hide_names
  - kubenode.cpu_manager.attributes.info
options:
  seconds:
    description:
      - How long to measure, from 1 to 3600. In 5 seconds, the module detects what takes 1 % of a CPU. Something that
        runs once a minute, such as a probe, needs a longer measurement.
    type: int
    default: 5
  threshold:
    description:
      - The share of one CPU's time, in percent, from which on anything else on exclusive CPUs counts as a disturbance.
        Less is only returned as a number.
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
node: {description: "The name of the node, from C(/etc/hostname).", returned: always, type: str, sample: worker-3}
seconds:
  description: How long the measurement really was. 0 for a saved node.
  returned: success
  type: float
  sample: 5.002
threshold:
  description: The option O(threshold).
  returned: success
  type: float
  sample: 1.0
containers:
  description: The containers with exclusive CPUs.
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
      description: The name of the container. Empty for CPUs of a whole pod that no container has for itself.
      type: str
      sample: server
    id:
      description: The id of the container. Empty if it does not run.
      type: str
      sample: 4d5e9c2b1a0f4d5e9c2b1a0f4d5e9c2b1a0f4d5e9c2b1a0f4d5e9c2b1a0f4d5e
    cpus:
      description: The CPUs that it has to itself.
      type: str
      sample: 2-3
    verdict:
      description:
        - C(alone), C(disturbed), or C(idle) if nothing ran there, not even the container, so that it is unknown whether
          it would be alone. None for a saved node, and for a container that ended, began, or got or lost CPUs during
          the measurement.
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
        - What took this time, the largest part first. All parts that decide the verdict; of parts below the threshold,
          8 in total.
      type: list
      elements: dict
      contains:
        kind:
          description:
            - C(container), C(cgroup), C(process) for one in the topmost cgroup, C(kernel thread), C(interrupts),
              C(steal) for what the hypervisor took, or C(unattributed) for busy time that belongs to no observed task,
              for example to short processes.
          type: str
          sample: kernel thread
        name:
          description:
            - For a container the namespace, pod and name, and for a cgroup its path. For a task its name, in which all
              but printable characters is escaped. For interrupts the most frequent with their counts.
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
            - Whether the kernel counts this time on these CPUs. Otherwise the time is counted, but the CPU was sampled.
          type: bool
          sample: true
        disturbs:
          description:
            - Whether it decides the verdict. Time that is counted in ticks of 10 ms does from two ticks on, and
              unattributed time if it is above the threshold by more than the error of the sources.
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
      description: The container to which it is exclusive, as C(namespace/pod/container). Empty if there is none.
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
        - What ran, with C(kind), C(name), C(percent) and C(sure) as in RV(containers[].by), the container itself
          included. For CPUs that are not exclusive, only parts of 1 % or more.
      type: list
      elements: dict
      sample: [{"kind": "container", "name": "shop/database-0/server", "percent": 93.1, "sure": true}]
    interrupts:
      description:
        - How many interrupts it had, by name. For CPUs that are not exclusive, the 8 most frequent.
      type: dict
      sample: {"LOC (Local timer interrupts)": 1250, "36 virtio1-req.0": 12, "NET_RX": 40}
observer:
  description: The time that the module itself took. None for a saved node.
  returned: success
  type: dict
  contains:
    pid:
      description: Its process, which is excluded from all counts.
      type: int
      sample: 4711
    cpus:
      description: The CPUs that it used. Empty if it may use exclusive CPUs only.
      type: str
      sample: 0-1
    cpu_seconds:
      description: The CPU time of the sample.
      type: float
      sample: 0.021
    looks:
      description: How often it read the tasks between the begin and the end.
      type: int
      sample: 19
    tasks:
      description: How many processes it asked for their time, and threads of those of whose threads it read the files.
      type: int
      sample: 412
    cgroups:
      description: How many cgroups it read, which only those of v1 are. A pod with one container is read as a whole.
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
  sample: ["who runs on which CPU can be seen on a running node only, and this one is saved"]
note_checks:
  description: The id of the check to which each of RV(notes) belongs, in the same order.
  returned: success
  type: list
  elements: str
  sample: [isolation-unmeasured]
"""

from ..module_utils._base.ansible_module import Outcome, Parameters, run
from ..module_utils._base.arguments import Arguments
from ..module_utils._base.tree import Tree
from ..module_utils._isolation.isolation_info import isolation_report
from ..module_utils._node.hidden_names import HIDE_NAMES, shown_node_of
from ..module_utils._node.module import KUBELET


def work(tree: Tree, parameters: Parameters, check_mode: bool) -> Outcome:
    return Outcome(isolation_report(shown_node_of(tree, parameters), parameters["seconds"], parameters["threshold"]))


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
