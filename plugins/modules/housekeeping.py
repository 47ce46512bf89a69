#!/usr/bin/python
# -*- coding: utf-8 -*-

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: housekeeping
short_description: Keep the host's own work on its reserved CPUs
version_added: 0.1.0
author:
  - the kubenode.cpu_manager developers (@kubenode)
description:
  - The kubelet keeps pods with exclusive CPUs off the reserved ones, and keeps nothing else on these. This module gives
    the reserved CPUs to interrupts, workqueues, received packets, systemd's slices and irqbalance, now and after each
    boot, in an order that never leaves work without a CPU.
  - Before it writes anything, it saves all values and files that were there in
    C(/var/lib/kubenode-cpu-manager/housekeeping.json). With O(state=absent) each is put back, files to the byte with
    mode and owner. A run that was killed is finished or taken back by the next.
  - An interrupt whose CPUs the kernel lets nobody change, or refuses to change, is a note, not a failure.
  - What somebody else has changed since is not lost. O(state=present) writes values of the kernel again, and keeps the
    changed content of a file of its own as a backup beside it. O(state=absent) leaves a value that reaches beyond the
    reserved CPUs, and a file that is not as it was written; from a file that others share it takes only its own lines.
    Each is a note with the check C(housekeeping-foreign).
  - Interrupts that appear later begin with the default affinity, and the queues of network devices that appear later
    with the default mask, if there is one. Both are written, too. With O(state=absent), what has begun with them gets
    what it would have had.
  - Another owner of what is to be written, as tuned or CRI-O may be, is refused before anything is written.
extends_documentation_fragment:
  - kubenode.cpu_manager.node
  - kubenode.cpu_manager.kubelet
  - kubenode.cpu_manager.reserved
  - kubenode.cpu_manager.reservation
  - kubenode.cpu_manager.attributes
  - kubenode.cpu_manager.attributes.change
options:
  state:
    description:
      - Whether the host's work is kept on the reserved CPUs. V(absent) puts everything back.
    type: str
    choices: [present, absent]
    default: present
  layers:
    description:
      - What is written. What was written and is not in this list any more is put back.
      - V(slices) are the cgroups beside those of pods, by drop-in files of systemd and at once. They need
        cgroups v2.
      - With V(watchdog), the kernel does not see lockups of other CPUs any more.
      - V(manager) is the affinity of systemd itself and of all that it starts, which counts from the next boot on.
    type: list
    elements: str
    choices: [interrupts, workqueues, rps, slices, irqbalance, watchdog, manager]
    default: [interrupts, workqueues, rps, slices, irqbalance]
  exclude_slices:
    description:
      - Cgroups beside those of pods that keep the CPUs that they have, such as V(machine.slice).
    type: list
    elements: str
    default: []
  kernel_arguments:
    description:
      - Whether the arguments of RV(kernel_arguments) are written for GRUB, grubby or systemd-boot. They count from the
        next boot on; the node is not booted. Otherwise they are only shown.
    type: bool
    default: false
  kernel_isolation:
    description:
      - Which arguments are wanted. By default V(irqaffinity), V(rcu_nocbs) and V(managed_irq), and with cgroups v1
        also V(systemd.cpu_affinity).
      - V(domain) is refused, as it takes the balancing of load from all pods without exclusive CPUs.
    type: list
    elements: str
    choices: [irqaffinity, rcu_nocbs, nohz_full, managed_irq, systemd.cpu_affinity, kthread_cpus, domain]
  partition_cpus:
    description:
      - Some of the reserved CPUs that are to be the own CPUs of O(partition_slice), as a partition of cgroups v2. That
        is what C(isolcpus) does, without a boot. Nobody else runs there, so the rest of the host gets the other
        reserved CPUs, of which at least one must be left. Without it there is no partition, and one that was made is
        undone.
      - A service runs there with C(Slice=isolated.slice) in its unit, or a process that is moved there. No pod does.
      - It is refused for CPUs that are given to pods, by their cgroups or by the kubelet's configuration; with the
        static policy the option C(strict-cpu-reservation) has to be on. It is refused where the kernel has no
        C(cpuset.cpus.exclusive), as before Linux 6.7.
    type: str
  partition_type:
    description:
      - V(isolated) is without the balancing of load, so processes there have to choose their CPUs themselves. V(root)
        is with it.
    type: str
    choices: [isolated, root]
    default: isolated
  partition_slice:
    description:
      - The slice of systemd that is made for it, right below the topmost one, so its name has no dash.
    type: str
    default: isolated.slice
  allow_owners:
    description:
      - The ids of owners of CPUs beside which it may work all the same, as RV(ignore:owners) of
        M(kubenode.cpu_manager.housekeeping_info) has them.
    type: list
    elements: str
    default: []
  persistent:
    description:
      - Whether a service brings the kernel's values back after each boot, before the kubelet starts. It runs this code
        as one file, which needs only Python.
    type: bool
    default: true
  interpreter:
    description:
      - The Python on the node that the service runs, an absolute path. By default the one that Ansible uses there. The
        service does not see C(/home), C(/root), C(/run/user), C(/tmp) and C(/var/tmp); a Python there is refused.
    type: path
  manage_services:
    description:
      - Whether systemd reads its files again, irqbalance is restarted where it runs, and the loader's command is run,
        when their files are changed. What an interrupted run has not come to is done by the next one.
      - Otherwise, and always on a saved node, they are told in RV(needs).
    type: bool
    default: true
seealso:
  - module: kubenode.cpu_manager.housekeeping_info
  - module: kubenode.cpu_manager.isolation_info
"""

EXAMPLES = r"""
- name: Keep the host's work on the CPUs that the kubelet reserves
  kubenode.cpu_manager.housekeeping:

- name: Keep interrupts and workqueues on two CPUs, until the next boot only
  kubenode.cpu_manager.housekeeping:
    reserved_system_cpus: 0-1
    layers: [interrupts, workqueues]
    persistent: false

- name: Reserve four CPUs, and keep two of them for processes that poll
  kubenode.cpu_manager.housekeeping:
    reserved_system_cpus: 0-3
    partition_cpus: 2-3

- name: Put everything back
  kubenode.cpu_manager.housekeeping:
    state: absent
"""

RETURN = r"""
node:
  description: The name of the node, from C(/etc/hostname).
  returned: always
  type: str
  sample: worker-3
reserved:
  description: The CPUs of the host, without those of O(partition_cpus). Empty with O(state=absent).
  returned: success
  type: str
  sample: 0-1,24-25
changes:
  description: What was written, in this order; in check mode, what would be.
  returned: success
  type: list
  elements: dict
  contains:
    layer:
      description: One of O(layers), C(partition), C(boot) for the service, or C(kernel_line).
      type: str
      sample: interrupts
    name:
      description: What it is, or C(file), C(link).
      type: str
      sample: 36 virtio1-req.0
    path:
      description: The file that was written.
      type: str
      sample: /proc/irq/36/smp_affinity_list
    before:
      description: What it held before; of a file, its size. Empty where there was nothing, or no limit.
      type: str
      sample: 0-47
    after:
      description: What it holds now.
      type: str
      sample: 0-1
commands:
  description: The commands that make changed files count, in this order. They were run where O(manage_services) is set.
  returned: success
  type: list
  elements: list
  sample: [["systemctl", "daemon-reload"]]
needs:
  description: What is left to be done by others.
  returned: success
  type: dict
  contains:
    daemon_reload:
      description: Whether systemd has to read its files again.
      type: bool
      sample: false
    restart_irqbalance:
      description: Whether irqbalance has to be restarted.
      type: bool
      sample: false
    slices:
      description: The commands that start or stop the slice of a partition.
      type: list
      elements: list
      sample: []
    update_loader:
      description: The commands that make a changed command line count.
      type: list
      elements: list
      sample: []
    reboot:
      description: Why the node has to be booted. Nothing here does that.
      type: list
      elements: str
      sample: ["rcu_nocbs=2-23,26-47 counts from the next boot on"]
kernel_arguments:
  description: The arguments that the kernel is to be booted with, each with its reason. Empty with O(state=absent).
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: The argument.
      type: str
      sample: rcu_nocbs
    booted:
      description: Its value on the line of the running kernel. None where it is not there.
      type: str
      sample: null
    configured:
      description: Its value for the next boot, before this run. None where it is not there, or not known.
      type: str
      sample: null
    wanted:
      description: The value that is wanted.
      type: str
      sample: 2-23,26-47
    reason:
      description: Why.
      type: str
      sample: the CPUs of pods do not run the callbacks of RCU
    needs_change:
      description: Whether what is configured is something else.
      type: bool
      sample: true
    needs_reboot:
      description: Whether the node runs with something else than it is configured to boot with.
      type: bool
      sample: false
notes:
  description: What could not be done, and why.
  returned: success
  type: list
  elements: str
  sample: ["interrupts: the kernel lets nobody move 36 virtio1-req.0, which may run elsewhere"]
note_checks:
  description: The id of the check to which each of RV(notes) belongs, in the same order.
  returned: success
  type: list
  elements: str
  sample: ["housekeeping-fixed"]
"""

import sys
from typing import Any, Mapping

from ..module_utils.ansible_module import Arguments, Outcome, difference, run
from ..module_utils.cpuset import CPUSet
from ..module_utils.errors import InputError, option
from ..module_utils.host.hidden import check_visible
from ..module_utils.host.kernel_line import FEATURES
from ..module_utils.host.layers import INTERRUPTS, IRQBALANCE, MANAGER, RPS, SLICES, WATCHDOG, WORKQUEUES
from ..module_utils.host.owner.conflicts import refuse
from ..module_utils.host.owner.owners import HOUSEKEEPING
from ..module_utils.host.partitions import KINDS
from ..module_utils.kubelet.file.configuration import Configuration
from ..module_utils.kubelet_module import KUBELET, RESERVED_ARGUMENTS, node_of, wanted_reservation

# Imported, so that Ansible brings it.
from ..module_utils.node.housekeeping import program
from ..module_utils.node.housekeeping.at_boot import HIDDEN, PROGRAM_PATH, AtBoot
from ..module_utils.node.housekeeping.bring import absent, present
from ..module_utils.node.housekeeping.journal import OwnCPUs, Wish, read_journal
from ..module_utils.node.housekeeping.run import Answer, online_cpus
from ..module_utils.node.housekeeping.shown import differences, needs_of
from ..module_utils.node.housekeeping.steps import KERNEL_LINE
from ..module_utils.node.housekeeping.wanted import Extras, possible_cpus, runs_systemd
from ..module_utils.node.housekeeping.wished import (
    booted_arguments,
    kernel_line,
    own_cpus,
    reserved_cpus,
    waits_for_boot,
)
from ..module_utils.node.node import Node, cgroup_root_of
from ..module_utils.node.owners import owners_of
from ..module_utils.tree import Tree
from ..module_utils.zipapp import build

PROGRAM = program.__name__.partition(".module_utils.")[2]
DEFAULT_LAYERS = [INTERRUPTS, WORKQUEUES, RPS, SLICES, IRQBALANCE]
LAYERS = [*DEFAULT_LAYERS, WATCHDOG, MANAGER]


def work(tree: Tree, parameters: Mapping[str, Any], check_mode: bool) -> Outcome:
    if parameters["state"] == "absent":
        return take_away(tree, parameters, not check_mode)
    node = node_of(tree, parameters)
    reserved = reserved_cpus(node, wanted_reservation(node, parameters))
    configuration, _problem = node.found()
    refuse(owners_of(node, configuration), HOUSEKEEPING, parameters["allow_owners"])
    own = partition_of(node, configuration, reserved, parameters)
    reserved -= CPUSet() if own is None else own.cpus
    line = kernel_line(
        tree,
        reserved,
        possible_cpus(tree, online_cpus(tree)),
        parameters["kernel_isolation"],
        configuration is not None,
        parameters["kernel_arguments"],
    )
    layers = [*parameters["layers"], *([KERNEL_LINE] if parameters["kernel_arguments"] else [])]
    wish = Wish(
        reserved, tuple(dict.fromkeys(layers)), tuple(parameters["exclude_slices"]), cgroup_root_of(configuration), own
    )
    extras = Extras(
        line.arguments if parameters["kernel_arguments"] else None,
        at_boot(parameters) if parameters["persistent"] else None,
        parameters["manage_services"] and runs_systemd(tree),
    )
    answer = present(tree, wish, extras, not check_mode)
    reboot = list(line.reboot)
    if MANAGER in parameters["layers"]:
        reboot += waits_for_boot(tree, reserved)
    return outcome(answer, str(reserved), line.rows, reboot)


def partition_of(
    node: Node, configuration: Configuration | None, reserved: CPUSet, parameters: Mapping[str, Any]
) -> OwnCPUs | None:
    if parameters["partition_cpus"] is None:
        return None
    try:
        cpus = CPUSet.parse(parameters["partition_cpus"])
    except InputError as error:
        raise error.within(option("partition_cpus")) from error
    own = OwnCPUs(cpus, parameters["partition_type"], parameters["partition_slice"])
    journal = read_journal(node.tree)
    return own_cpus(
        node, configuration, reserved, own, online_cpus(node.tree), () if journal is None else journal.slices
    )


def take_away(tree: Tree, parameters: Mapping[str, Any], act: bool) -> Outcome:
    journal = read_journal(tree)
    had_line = journal is not None and KERNEL_LINE in journal.wish.layers
    answer = absent(tree, act, parameters["manage_services"])
    booted = booted_arguments(tree) if had_line else []
    reboot = ["the kernel runs with %s until the next boot" % name for name in booted]
    return outcome(answer, "", [], reboot)


def at_boot(parameters: Mapping[str, Any]) -> AtBoot:
    interpreter = parameters["interpreter"] or sys.executable
    check_visible(interpreter, [PROGRAM_PATH], HIDDEN)
    return AtBoot(build(PROGRAM, interpreter), interpreter)


def outcome(answer: Answer, reserved: str, rows: Any, reboot: Any) -> Outcome:
    result = {
        **answer.to_dict(),
        "reserved": reserved,
        "needs": {**needs_of(answer.needs), "reboot": reboot},
        "kernel_arguments": list(rows),
    }
    return Outcome(result, answer.changed, [difference(*found) for found in differences(answer)])


def main() -> None:
    run(
        work,
        KUBELET,
        RESERVED_ARGUMENTS,
        Arguments(
            {
                "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
                "layers": {"type": "list", "elements": "str", "choices": LAYERS, "default": DEFAULT_LAYERS},
                "exclude_slices": {"type": "list", "elements": "str", "default": []},
                "kernel_arguments": {"type": "bool", "default": False},
                "kernel_isolation": {"type": "list", "elements": "str", "choices": list(FEATURES)},
                "partition_cpus": {"type": "str"},
                "partition_type": {"type": "str", "choices": list(KINDS), "default": KINDS[0]},
                "partition_slice": {"type": "str", "default": "isolated.slice"},
                "allow_owners": {"type": "list", "elements": "str", "default": []},
                "persistent": {"type": "bool", "default": True},
                "interpreter": {"type": "path"},
                "manage_services": {"type": "bool", "default": True},
            }
        ),
    )


if __name__ == "__main__":
    main()
