#!/usr/bin/python
# -*- coding: utf-8 -*-

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: housekeeping_info
short_description: Read on which CPUs the host's own work may run, compared with the reserved CPUs
version_added: 0.1.0
author:
  - the kubenode.cpu_manager developers (@kubenode)
description:
  - The kubelet gives no reserved CPU to a container with exclusive CPUs. It does not keep the host's own work on the
    reserved CPUs. This module reads every setting of a host that decides where such work runs, with the wanted value,
    the configured value, and the value in effect. It writes nothing.
  - The layers are systemd's slices and its own affinity, interrupts, workqueues, received packets, the kernel's
    watchdog and irqbalance. Another one is the kernel's command line, as it was booted and as it is configured for the
    next boot.
  - If the role housekeeping has been used on the node, also compares the node with what the role had to set on it. This
    is, for example, a partition, the affinity of systemd, or the CPUs that tuned isolates.
  - Also finds the programs that manage CPUs on the node, and the pairs of them that contradict each other.
  - A layer that a kernel or a distribution does not have is left out. A setting that cannot be read is a note with the
    check C(housekeeping-unmeasured).
extends_documentation_fragment:
  - kubenode.cpu_manager.node
  - kubenode.cpu_manager.kubelet
  - kubenode.cpu_manager.reserved
  - kubenode.cpu_manager.attributes.info
seealso:
  - module: kubenode.cpu_manager.isolation_info
  - module: kubenode.cpu_manager.drift_info
"""

EXAMPLES = r"""
- name: Compare where the host's work may run with the kubelet's reservation
  kubenode.cpu_manager.housekeeping_info:
  register: housekeeping

- name: Fail if services may run on exclusive CPUs
  ansible.builtin.assert:
    that: housekeeping.findings | selectattr('check', 'eq', 'host-on-exclusive-cpus') | length == 0
    fail_msg: "{{ housekeeping.findings | map(attribute='found') | join('; ') }}"

- name: Compare it with a different reservation
  kubenode.cpu_manager.housekeeping_info:
    reservation:
      fraction: 0.08
"""

RETURN = r"""
node: {description: "The name of the node, from C(/etc/hostname).", returned: always, type: str, sample: worker-3}
reserved:
  description: The CPUs that are reserved for the host. Empty if none are.
  returned: success
  type: str
  sample: 0-1,24-25
reserved_source:
  description:
    - Where the reservation is configured, C(options), a file of the kubelet, or the journal of the role housekeeping.
      Empty if there is none.
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
    - The settings of the running kernel, without those of interrupts, and without the queues of network devices for
      which the kernel processes packets on the CPU of their interrupt.
  returned: success
  type: list
  elements: dict
  contains:
    layer:
      description: C(slices), C(workqueues), C(rps) or C(watchdog).
      type: str
      sample: slices
    name:
      description: The name of what is set, for people.
      type: str
      sample: system.slice
    path:
      description: The file. It may be absent for a slice.
      type: str
      sample: /sys/fs/cgroup/system.slice/cpuset.cpus
    wanted:
      description:
        - The wanted CPUs. None if every value is fine, as for the watchdog, if it cannot be changed, and without
          reserved CPUs.
      type: str
      sample: 0-1,24-25
    found:
      description: The configured CPUs. None if there is no limit, or if it cannot be read.
      type: str
    effective:
      description: The CPUs in effect. None if the kernel does not show them.
      type: str
      sample: 0-47
    problem:
      description:
        - C(fixed) if the kernel allows no change, C(refused) if it has refused a change of the role housekeeping since
          the last boot, C(unreadable) if the value is not a list of CPUs, or empty.
      type: str
      sample: ""
interrupts:
  description:
    - The same for interrupts, those that have to change first. The first row can be the default for new interrupts. At
      most 256 rows.
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
  description: How many interrupts are not in RV(interrupts).
  returned: success
  type: int
  sample: 0
systemd:
  description: The CPUs of systemd, configured and in effect.
  returned: success
  type: dict
  contains:
    affinity:
      description: The CPUs that the first process may use. None if they are unknown.
      type: str
      sample: 0-47
    manager:
      description: C(CPUAffinity=) of the manager, in the form of RV(systemd.units). None if it is not set.
      type: dict
    units:
      description:
        - C(AllowedCPUs=) of each unit among the slices of RV(layers), by its name. None if no file sets it.
      type: dict
      contains:
        cpus:
          description: The CPUs. None for C(numa).
          type: str
          sample: 0-1,24-25
        path:
          description: The file that sets it last.
          type: str
          sample: /etc/systemd/system/system.slice.d/50-kubenode.conf
    wanted:
      description:
        - C(manager) and C(units), the wanted CPUs where the files do not give such. None where they may stay as they
          are, and without reserved CPUs. The manager has to have some with cgroup v1, or if the role housekeeping has
          set them.
      type: dict
partitions:
  description: The partitions of cgroup v2, whose CPUs belong to no other cgroup. None if the kernel shows none.
  returned: success
  type: dict
  contains:
    isolated:
      description: The CPUs of all isolated partitions, and on newer kernels those of C(isolcpus).
      type: str
      sample: ""
    cgroups:
      description: The partitions, each with C(cgroup), C(kind), C(cpus), and C(problem), the reason if it is invalid.
      type: list
      elements: dict
      sample: []
irqbalance:
  description: The configuration of irqbalance. None if irqbalance is not installed.
  returned: success
  type: dict
  contains:
    file:
      description:
        - What sets the variable, such as a file of environment variables, a unit or its drop-in file. If nothing sets
          it, the file that can. Empty if none can.
      type: str
      sample: /etc/default/irqbalance
    variable:
      description: The variable that is in effect, C(IRQBALANCE_BANNED_CPULIST) or C(IRQBALANCE_BANNED_CPUS).
      type: str
      sample: IRQBALANCE_BANNED_CPULIST
    banned:
      description: The CPUs on which it puts no interrupt. None if the variable is not set, or cannot be read.
      type: str
      sample: 2-23,26-47
    wanted:
      description: The CPUs on which it should put no interrupt. None without reserved CPUs.
      type: str
      sample: 2-23,26-47
    installed:
      description: Whether its program is installed.
      type: bool
      sample: true
    running:
      description: Whether it runs.
      type: bool
      sample: true
tuned:
  description: The configuration of tuned. None if it is not active, or its profile isolates no CPUs.
  returned: success
  type: dict
  contains:
    profiles:
      description: The active profiles.
      type: list
      elements: str
      sample: [cpu-partitioning]
    file:
      description: The file of variables from which they take the isolated CPUs. Empty if there is none.
      type: str
      sample: /etc/tuned/cpu-partitioning-variables.conf
    isolated:
      description: The isolated CPUs. None if they are not set, or worked out by tuned itself.
      type: str
      sample: 2-23,26-47
    wanted:
      description: The CPUs that should be isolated. None without reserved CPUs.
      type: str
      sample: 2-23,26-47
    layers:
      description: The layers that the profiles set, of C(interrupts), C(workqueues), C(irqbalance) and C(manager).
      type: list
      elements: str
      sample: [interrupts, workqueues, irqbalance, manager]
kernel:
  description: The arguments of the kernel's command line that are about CPUs.
  returned: success
  type: dict
  contains:
    arguments:
      description: Those of C(irqaffinity), C(rcu_nocbs), C(nohz_full), C(isolcpus), C(systemd.cpu_affinity) and
        C(kthread_cpus) that are set or wanted.
      type: list
      elements: dict
      contains:
        name:
          description: The name.
          type: str
          sample: isolcpus
        booted:
          description: The value with which the node was booted. None if it was not set.
          type: str
          sample: managed_irq,2-23,26-47
        configured:
          description: The value at the next boot. None if it is not set, or unknown.
          type: str
          sample: managed_irq,2-23,26-47
        wanted:
          description:
            - The value that the module M(kubenode.cpu_manager.housekeeping) has written, or otherwise would write by
              default. None if the argument is not wanted, and without reserved CPUs.
          type: str
          sample: managed_irq,2-23,26-47
    loader:
      description: The boot loader, C(grub), C(bls), C(systemd-boot) or C(none).
      type: str
      sample: grub
    configured_in:
      description: The file in which the command line is configured. Empty if it is unknown.
      type: str
      sample: /etc/default/grub
    problem:
      description: Why the configured arguments are unknown or uncertain. Empty if they are known.
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
  description: The programs that manage CPUs on the node.
  returned: success
  type: list
  elements: dict
  contains:
    id:
      description: The id of the program, stable over versions of this collection.
      type: str
      sample: kubelet-static
    name:
      description: Its name, for people.
      type: str
    evidence:
      description: The files and processes by which it was found.
      type: list
      elements: str
      sample: [/var/lib/kubelet/config.yaml]
    active:
      description: Whether it runs now, as far as that can be determined.
      type: bool
      sample: true
contradictions:
  description: The pairs of RV(owners) that contradict each other.
  returned: success
  type: list
  elements: dict
  contains:
    first:
      description: The id of the first program.
      type: str
      sample: kubelet-static
    second:
      description: The id of the second program.
      type: str
      sample: dra-driver-cpu
    reason:
      description: Why they contradict each other.
      type: str
    remedy:
      description: What to do about it.
      type: str
findings:
  description: The differences from the reservation.
  returned: success
  type: list
  elements: dict
  contains:
    check:
      description:
        - C(host-on-exclusive-cpus) for a layer with which the host's work may run on CPUs that are not reserved.
        - C(interrupts-not-movable) for interrupts that only the kernel can move.
        - C(housekeeping-not-lasting) for slices that lose their CPUs when systemd creates them again, and for other
          files that are missing at the next boot. Also for CPUs that tuned will isolate instead of those that it was
          given.
        - C(housekeeping-unfinished) for a run of the role housekeeping that is in progress or was interrupted.
        - C(partition-invalid) for a partition of cgroups that the kernel does not enforce, or that is missing.
        - C(kernel-line-not-booted) for an argument of the kernel that takes effect at the next boot.
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
      description: The present state.
      type: str
      sample: "2 of 4 may run elsewhere: system.slice (no limit), user.slice (no limit)"
    remedy:
      description: What to do about it.
      type: str
notes:
  description: What could not be read, and what is unusual.
  returned: success
  type: list
  elements: str
  sample: ["cannot be read as CPUs: /proc/irq/36/smp_affinity_list"]
note_checks:
  description: The id of the check to which each of RV(notes) belongs, in the same order.
  returned: success
  type: list
  elements: str
  sample: [housekeeping-unmeasured]
"""

from typing import Any, Mapping

from ..module_utils._base.ansible_module import Outcome, run
from ..module_utils._base.tree import Tree
from ..module_utils._housekeeping.housekeeping_info import housekeeping
from ..module_utils._node.module import KUBELET, node_of
from ..module_utils._node.reservation_request import RESERVED_ARGUMENTS, wanted_reservation


def work(tree: Tree, parameters: Mapping[str, Any], check_mode: bool) -> Outcome:
    node = node_of(tree, parameters)
    return Outcome(housekeeping(node, wanted_reservation(node, parameters)))


def main() -> None:
    run(work, KUBELET, RESERVED_ARGUMENTS)


if __name__ == "__main__":
    main()
