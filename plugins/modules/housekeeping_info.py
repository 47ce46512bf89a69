#!/usr/bin/python
# -*- coding: utf-8 -*-

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: housekeeping_info
short_description: Read on which CPUs the host's own work may run, beside those that are reserved for it
version_added: 0.1.0
author:
  - the kubenode.cpu_manager developers (@kubenode)
description:
  - The kubelet keeps pods with exclusive CPUs off the reserved ones. It keeps nothing else on these. This module reads
    every layer of a host that says where something runs, as it is wanted, as it is set, and as the kernel has it.
    It writes nothing.
  - The layers are systemd's slices and its own affinity, interrupts, workqueues, received packets, the kernel's
    watchdog, irqbalance, and the kernel's command line as it was booted and as it is configured for the next time.
  - Also finds who manages CPUs on the node, and which two of them contradict each other.
  - A layer that a kernel or a distribution does not have is left out. What cannot be read is a note with the check
    C(housekeeping-unmeasured).
extends_documentation_fragment:
  - kubenode.cpu_manager.node
  - kubenode.cpu_manager.kubelet
  - kubenode.cpu_manager.reserved
  - kubenode.cpu_manager.reservation
  - kubenode.cpu_manager.attributes
  - kubenode.cpu_manager.attributes.info
seealso:
  - module: kubenode.cpu_manager.isolation_info
  - module: kubenode.cpu_manager.drift_info
"""

EXAMPLES = r"""
- name: Read where the host's work may run, against what the kubelet reserves
  kubenode.cpu_manager.housekeeping_info:
  register: housekeeping

- name: Stop where services may run on exclusive CPUs
  ansible.builtin.assert:
    that: housekeeping.findings | selectattr('check', 'eq', 'host-on-exclusive-cpus') | length == 0
    fail_msg: "{{ housekeeping.findings | map(attribute='found') | join('; ') }}"

- name: Read what would be to do for another reservation
  kubenode.cpu_manager.housekeeping_info:
    reservation:
      fraction: 0.08
"""

RETURN = r"""
node:
  description: The name of the node, from C(/etc/hostname).
  returned: always
  type: str
  sample: worker-3
reserved:
  description: The CPUs for the host. Empty where none are reserved.
  returned: success
  type: str
  sample: 0-1,24-25
reserved_source:
  description: Who says so, C(options) or a file of the kubelet's. Empty where nobody does.
  returned: success
  type: str
  sample: /var/lib/kubelet/config.yaml
online:
  description: The CPUs that are online.
  returned: success
  type: str
  sample: 0-47
layers:
  description:
    - The settings of the running kernel, without those of interrupts, and without the queues of network devices whose
      packets stay on the CPU of their interrupt.
  returned: success
  type: list
  elements: dict
  contains:
    layer:
      description: C(slices), C(workqueues), C(rps) or C(watchdog).
      type: str
      sample: slices
    name:
      description: Of what, for people.
      type: str
      sample: system.slice
    path:
      description: The file, which need not be there for a slice.
      type: str
      sample: /sys/fs/cgroup/system.slice/cpuset.cpus
    wanted:
      description:
        - The CPUs that it is to have. None where it may stay as it is, where it cannot be changed, and without
          reserved CPUs. The watchdog stays.
      type: str
      sample: 0-1,24-25
    found:
      description: The CPUs that it has. None where there is no limit, or it cannot be read.
      type: str
    effective:
      description: What the kernel makes of it. None where it does not show that.
      type: str
      sample: 0-47
    problem:
      description: C(fixed) where the kernel lets nobody change it, C(unreadable) for what are no CPUs, or empty.
      type: str
      sample: ""
interrupts:
  description:
    - The same of interrupts, those that have to change first. The first row can be of interrupts that are new. At most
      256.
  returned: success
  type: list
  elements: dict
  sample:
    - layer: interrupts
      name: 38 virtio2-input.0
      path: /proc/irq/38/smp_affinity_list
      wanted: 0-1,24-25
      found: 0-47
      effective: "31"
      problem: ""
interrupts_left_out:
  description: How many more there are.
  returned: success
  type: int
  sample: 0
systemd:
  description: What systemd is configured to, and what it has.
  returned: success
  type: dict
  contains:
    affinity:
      description: The CPUs that the first process may use. None where that is not known.
      type: str
      sample: 0-47
    manager:
      description: C(CPUAffinity=) of the manager, as RV(systemd.units). None where it is not set.
      type: dict
    units:
      description:
        - C(AllowedCPUs=) of each unit among the slices of RV(layers), by its name. None where no file gives it any.
      type: dict
      contains:
        cpus:
          description: The CPUs. None for C(numa).
          type: str
          sample: 0-1,24-25
        path:
          description: The last file that says so.
          type: str
          sample: /etc/systemd/system/system.slice.d/50-kubenode.conf
partitions:
  description: The partitions of cgroups v2, whose CPUs are their own alone. None where the kernel does not show them.
  returned: success
  type: dict
  contains:
    isolated:
      description: The CPUs of all isolated ones, and on newer kernels those of C(isolcpus).
      type: str
      sample: ""
    cgroups:
      description: The partitions, each with its C(cgroup), C(kind), C(cpus), and as C(problem) why it is none.
      type: list
      elements: dict
      sample: []
irqbalance:
  description: What irqbalance is configured to. None where it is not there.
  returned: success
  type: dict
  contains:
    file:
      description: The file of its variables.
      type: str
      sample: /etc/default/irqbalance
    variable:
      description: The variable that counts, C(IRQBALANCE_BANNED_CPULIST) or C(IRQBALANCE_BANNED_CPUS).
      type: str
      sample: IRQBALANCE_BANNED_CPULIST
    banned:
      description: The CPUs on which it puts no interrupt. None where it is not set, or cannot be read.
      type: str
      sample: 2-23,26-47
    wanted:
      description: The CPUs on which it should put none. None without reserved CPUs.
      type: str
      sample: 2-23,26-47
    installed:
      description: Whether its program is there.
      type: bool
      sample: true
    running:
      description: Whether it runs.
      type: bool
      sample: true
kernel:
  description: The kernel's command line, as far as it is about CPUs.
  returned: success
  type: dict
  contains:
    arguments:
      description: Those of C(irqaffinity), C(rcu_nocbs), C(nohz_full), C(isolcpus), C(systemd.cpu_affinity) and
        C(kthread_cpus) that are there.
      type: list
      elements: dict
      contains:
        name:
          description: The name.
          type: str
          sample: isolcpus
        booted:
          description: Its value as the node was booted. None where it was not there.
          type: str
          sample: managed_irq,2-23,26-47
        configured:
          description: Its value at the next boot. None where it is not there, or that is not known.
          type: str
          sample: managed_irq,2-23,26-47
    loader:
      description: What starts the kernel, C(grub), C(bls), C(systemd-boot) or C(none).
      type: str
      sample: grub
    configured_in:
      description: Where it is configured. Empty where that is not known.
      type: str
      sample: /etc/default/grub
    problem:
      description: Why the configured arguments are not known, or may be others. Empty where they are known.
      type: str
      sample: ""
    isolated:
      description: The CPUs that the running kernel isolates.
      type: str
      sample: ""
    nohz_full:
      description: The CPUs without ticks of the running kernel.
      type: str
      sample: ""
owners:
  description: Who manages CPUs on the node.
  returned: success
  type: list
  elements: dict
  contains:
    id:
      description: Its id, which stays.
      type: str
      sample: kubelet-static
    name:
      description: Its name, for people.
      type: str
    evidence:
      description: Where it shows.
      type: list
      elements: str
      sample: [/var/lib/kubelet/config.yaml]
    active:
      description: Whether it works now, as far as that can be seen.
      type: bool
      sample: true
contradictions:
  description: The pairs of RV(owners) that cannot both have their way.
  returned: success
  type: list
  elements: dict
  contains:
    first:
      description: The id of one.
      type: str
      sample: kubelet-static
    second:
      description: The id of the other.
      type: str
      sample: dra-driver-cpu
    reason:
      description: Why.
      type: str
    remedy:
      description: The way out.
      type: str
findings:
  description: What is not as the reservation wants it.
  returned: success
  type: list
  elements: dict
  contains:
    check:
      description:
        - C(host-on-exclusive-cpus) for a layer that lets the host's work run on CPUs that are not reserved;
          C(interrupts-not-movable) for interrupts that only the kernel can move; C(housekeeping-not-lasting) for slices
          that lose their CPUs when systemd makes them anew; C(partition-invalid) for a partition of cgroups that is
          none; C(kernel-line-not-booted) for an argument of the kernel that waits for a boot.
      type: str
      sample: host-on-exclusive-cpus
    subject:
      description: The layer, or the name of the argument.
      type: str
      sample: slices
    wanted:
      description: What should be.
      type: str
      sample: host's processes run on the reserved CPUs 0-1,24-25 only
    found:
      description: What is.
      type: str
      sample: "2 of 4 may run elsewhere: system.slice (no limit), user.slice (no limit)"
    remedy:
      description: What to do about it.
      type: str
notes:
  description: What could not be read, and what is odd.
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

from typing import Any, Mapping

from ..module_utils.ansible_module import Outcome, run
from ..module_utils.kubelet_module import KUBELET, RESERVED_ARGUMENTS, node_of, wanted_reservation
from ..module_utils.node.housekeeping.report import housekeeping
from ..module_utils.tree import Tree


def work(tree: Tree, parameters: Mapping[str, Any], check_mode: bool) -> Outcome:
    node = node_of(tree, parameters)
    return Outcome(housekeeping(node, wanted_reservation(node, parameters)))


def main() -> None:
    run(work, KUBELET, RESERVED_ARGUMENTS)


if __name__ == "__main__":
    main()
