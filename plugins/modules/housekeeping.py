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
  - The kubelet gives no reserved CPU to a container with exclusive CPUs, but it does not keep the host's own work on
    the reserved CPUs. This module sets the reserved CPUs for interrupts, workqueues, received packets, systemd's slices
    and irqbalance, now and after each boot. Its order never leaves work without a CPU.
  - Before it writes anything, it saves the present values and files in
    C(/var/lib/kubenode-cpu-manager/housekeeping.json). O(state=absent) restores them, files byte for byte with mode and
    owner. If a run was killed, the next run completes or undoes it.
  - Only one run at a time writes to a node. A second one waits up to 10 seconds for the first, and then fails.
  - An interrupt whose CPUs cannot be changed is a note, not a failure.
  - Changes that other programs have made since are not lost. O(state=present) writes values of the kernel again, and
    keeps the changed content of a file of its own as a backup beside it. O(state=absent) leaves a value that includes
    CPUs that are not reserved, and a file that differs from what was written. From a file that is shared with other
    programs it removes only its own lines. Each of these is a note with the check C(housekeeping-foreign).
  - Interrupts that appear later begin with the default affinity, and the queues of network devices that appear later
    with the default mask, if there is one. Both are written, too. O(state=absent) gives those that appeared since the
    values that they would have had.
  - If a different program manages what is to be written, such as tuned or CRI-O, the module fails before anything is
    written. With O(tuned=true), tuned is given its CPUs instead, and keeps the layers that its profile sets.
extends_documentation_fragment:
  - kubenode.cpu_manager.node
  - kubenode.cpu_manager.kubelet
  - kubenode.cpu_manager.reserved
  - kubenode.cpu_manager.owners
  - kubenode.cpu_manager.attributes.change
options:
  state:
    description:
      - Whether the host's work is kept on the reserved CPUs. V(absent) restores everything.
    type: str
    choices: [present, absent]
    default: present
  layers:
    description:
      - The layers that are written. A layer that was written before and is no longer in this list is restored.
      - V(slices) are the cgroups beside those of pods, by drop-in files of systemd and at once. They need cgroup v2.
        The slices of virtual machines and logins get their files also if systemd has not created them yet.
      - With V(watchdog), the kernel no longer detects lockups of the other CPUs.
      - V(manager) is the affinity of systemd itself and of all processes that it starts, from the next boot on.
    type: list
    elements: str
    choices: [interrupts, workqueues, rps, slices, irqbalance, watchdog, manager]
    default: [interrupts, workqueues, rps, slices, irqbalance]
  exclude_slices:
    description:
      - Cgroups beside those of pods that keep their present CPUs, such as V(machine.slice).
    type: list
    elements: str
    default: []
  kernel_arguments:
    description:
      - Whether the arguments of RV(kernel_arguments) are written for GRUB, grubby or systemd-boot. They take effect at
        the next boot; this module does not boot the node. Otherwise they are only returned.
    type: bool
    default: false
  kernel_isolation:
    description:
      - The wanted arguments. By default V(irqaffinity), V(rcu_nocbs) and V(managed_irq), and with cgroup v1 also
        V(systemd.cpu_affinity).
      - V(domain) is refused, because with it the kernel no longer balances the load of pods without exclusive CPUs.
    type: list
    elements: str
    choices: [irqaffinity, rcu_nocbs, nohz_full, managed_irq, systemd.cpu_affinity, kthread_cpus, domain]
  partition_cpus:
    description:
      - Some of the reserved CPUs, which O(partition_slice) gets for itself alone, as a partition of cgroup v2. The
        effect is that of C(isolcpus), without a boot. The rest of the host gets the remaining reserved CPUs, and at
        least one must remain. Without this option there is no partition, and an earlier one is removed.
      - A service runs in the partition with C(Slice=isolated.slice) in its unit, and so does a process that is moved
        there. Pods do not.
      - CPUs that pods may use, by their cgroups or by the kubelet's configuration, are refused. With the static policy
        the option C(strict-cpu-reservation) has to be on. A node on which the role reconcile assigns CPUs by its
        policies dynamic and isolated is refused, too, and a kernel without C(cpuset.cpus.exclusive), as before Linux
        6.7.
    type: str
  partition_type:
    description:
      - With V(isolated), the kernel does not balance the load, so processes in the partition have to choose their CPUs
        themselves. With V(root), it does.
    type: str
    choices: [isolated, root]
    default: isolated
  partition_slice:
    description:
      - The slice of systemd that is created for the partition, directly below the root slice, so its name has no dash.
    type: str
    default: isolated.slice
  tuned:
    description:
      - Whether tuned isolates all online CPUs that are not reserved, where its active profile takes them from a file of
        variables, as C(cpu-partitioning) and C(realtime) do. Only the line C(isolated_cores=) of that file is written,
        and C(tuned-adm) applies the profile that is active. O(state=absent) restores the file, and has it applied.
      - The layers that the profile sets are then not written here, but left to tuned. These are V(interrupts) if it has
        C(isolated_cores) in its section C(scheduler), V(irqbalance) if it has C(banned_cpus), V(workqueues) if its
        section C(sysfs) has their C(cpumask), and V(manager) if it has C(cpu_affinity). All other layers are written as
        ever. If tuned has left a setting on other CPUs that can be moved, that is a note with the check
        C(housekeeping-left-to-tuned).
      - The arguments that the profile gives the kernel take effect at the next boot, as RV(needs.reboot) says.
      - A node on which tuned does not run or has no profile that isolates CPUs is refused. So is a profile that has its
        CPUs in its own file or works them out by a function, and O(kernel_arguments=true) beside a profile that gives
        the kernel such arguments itself.
    type: bool
    default: false
  persistent:
    description:
      - Whether a service sets the kernel's values after each boot, before the kubelet starts. It runs this code as one
        file, which needs only Python.
    type: bool
    default: true
  interpreter:
    description:
      - The absolute path of the Python on the node that the service runs. By default the one that Ansible uses there.
        The service has no access to C(/home), C(/root), C(/run/user), C(/tmp) and C(/var/tmp); a Python there is
        refused.
    type: path
  manage_services:
    description:
      - Whether, after a change of their files, systemd reads its files again, irqbalance is restarted if it runs, tuned
        applies its profile, and the boot loader's command is run. The next run does what an interrupted run has not
        done.
      - Otherwise, and always on a saved node, RV(needs) contains these steps.
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

- name: Have tuned isolate the CPUs that the kubelet does not reserve, and set all layers that tuned does not
  kubenode.cpu_manager.housekeeping:
    tuned: true

- name: Restore everything
  kubenode.cpu_manager.housekeeping:
    state: absent
"""

RETURN = r"""
node: {description: "The name of the node, from C(/etc/hostname).", returned: always, type: str, sample: worker-3}
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
      description: One of O(layers), C(partition), C(boot) for the service, C(kernel_line) or C(tuned).
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
    apply_tuned:
      description: The command by which tuned applies its profile.
      type: list
      elements: list
      sample: []
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
from typing import Any, Mapping, Sequence

from ..module_utils._base.ansible_module import Outcome, difference, run
from ..module_utils._base.arguments import Arguments
from ..module_utils._base.errors import InputError, option
from ..module_utils._base.journal_file import SERVICES
from ..module_utils._base.tree import Tree, own_ids
from ..module_utils._base.zipapp import build
from ..module_utils._host.kernel_line import FEATURES
from ..module_utils._host.layers import INTERRUPTS, IRQBALANCE, MANAGER, RPS, SLICES, WATCHDOG, WORKQUEUES
from ..module_utils._host.only_root import HIDDEN, PYTHON_FLAGS, check_only_root
from ..module_utils._host.partitions import KINDS
from ..module_utils._host.systemd import check_visible

# Imported, so that Ansible brings it.
from ..module_utils._housekeeping import carry_out as program
from ..module_utils._housekeeping.at_boot import PROGRAM_PATH, AtBoot
from ..module_utils._housekeeping.carry_out import HousekeepingResult, online_cpus
from ..module_utils._housekeeping.housekeeping import (
    Extras,
    absent,
    differences,
    kernel_line,
    needs_of,
    own_cpus,
    possible_cpus,
    present,
    reserved_cpus,
    runs_systemd,
    still_booted,
    waits_for_boot,
)
from ..module_utils._housekeeping.housekeeping_journal import HousekeepingWish, OwnCPUs, read_journal
from ..module_utils._housekeeping.steps import KERNEL_LINE
from ..module_utils._housekeeping.tuned_profile import (
    isolated_before,
    layers_beside,
    needed_tuned,
    tuned_waits_for_boot,
)
from ..module_utils._kubelet.configuration import Configuration
from ..module_utils._node.module import KUBELET, node_of
from ..module_utils._node.node import Node, cgroup_root_of
from ..module_utils._node.owners_found import owners_of
from ..module_utils._node.reservation_request import RESERVED_ARGUMENTS, wanted_reservation
from ..module_utils._owners.conflicts import refuse
from ..module_utils._owners.owners import HOUSEKEEPING, TUNED, Owner, undisturbed
from ..module_utils.cpuset import CPUSet

PROGRAM = program.__name__.partition(".module_utils.")[2]
DEFAULT_LAYERS = [INTERRUPTS, WORKQUEUES, RPS, SLICES, IRQBALANCE]
LAYERS = [*DEFAULT_LAYERS, WATCHDOG, MANAGER]


def work(tree: Tree, parameters: Mapping[str, Any], check_mode: bool) -> Outcome:
    if parameters["state"] == "absent":
        return take_away(tree, parameters, not check_mode)
    node = node_of(tree, parameters)
    reserved = reserved_cpus(node, wanted_reservation(node, parameters))
    configuration, problem = node.found()
    if problem is not None:
        # Without the configuration it is unknown where the pods are, and which CPUs they may have.
        raise problem
    owners = owners_of(node, configuration)
    tuned = needed_tuned(tree, owners, parameters["kernel_arguments"]) if parameters["tuned"] else None
    agreeing = undisturbed([*parameters["layers"], *([] if tuned is None else [TUNED])])
    refuse(owners, HOUSEKEEPING, [*parameters["allow_owners"], *agreeing])
    own = partition_of(node, configuration, reserved, owners, parameters)
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
    wish = HousekeepingWish(
        reserved,
        layers_beside(dict.fromkeys(layers), tuned),
        tuple(parameters["exclude_slices"]),
        cgroup_root_of(configuration),
        own,
        tuple(argument.text for argument in line.arguments if parameters["kernel_arguments"]),
    )
    extras = Extras(
        line.arguments if parameters["kernel_arguments"] else None,
        at_boot(tree, parameters) if parameters["persistent"] else None,
        parameters["manage_services"] and runs_systemd(tree),
        tuned,
    )
    answer = present(tree, wish, extras, not check_mode)
    reboot = list(line.reboot)
    if MANAGER in parameters["layers"]:
        reboot += waits_for_boot(tree, reserved)
    if tuned is not None:
        reboot += tuned_waits_for_boot(tree, online_cpus(tree) - reserved)
    return outcome(answer, str(reserved), line.rows, reboot)


def partition_of(
    node: Node,
    configuration: Configuration | None,
    reserved: CPUSet,
    owners: Sequence[Owner],
    parameters: Mapping[str, Any],
) -> OwnCPUs | None:
    if parameters["partition_cpus"] is None:
        return None
    try:
        cpus = CPUSet.parse(parameters["partition_cpus"])
    except InputError as error:
        raise error.within(option("partition_cpus")) from error
    own = OwnCPUs(cpus, parameters["partition_type"], parameters["partition_slice"])
    journal = read_journal(node.tree)
    made = () if journal is None else journal.slices
    return own_cpus(node, configuration, reserved, own, online_cpus(node.tree), made, owners)


def take_away(tree: Tree, parameters: Mapping[str, Any], act: bool) -> Outcome:
    journal = read_journal(tree)
    had_line = journal is not None and KERNEL_LINE in journal.wish.layers
    answer = absent(tree, act, parameters["manage_services"])
    reboot = still_booted(tree) if had_line else []
    if journal is not None:
        reboot += tuned_waits_for_boot(tree, isolated_before(journal))
    return outcome(answer, "", [], reboot)


def at_boot(tree: Tree, parameters: Mapping[str, Any]) -> AtBoot:
    interpreter = parameters["interpreter"] or sys.executable
    check_visible(tree, interpreter, [PROGRAM_PATH], HIDDEN)
    check_only_root(tree, PROGRAM_PATH, interpreter, PYTHON_FLAGS, [SERVICES[0]])
    return AtBoot(build(PROGRAM, interpreter), interpreter, owner=own_ids())


def outcome(answer: HousekeepingResult, reserved: str, rows: Any, reboot: Any) -> Outcome:
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
                "tuned": {"type": "bool", "default": False},
                "allow_owners": {"type": "list", "elements": "str", "default": []},
                "persistent": {"type": "bool", "default": True},
                "interpreter": {"type": "path"},
                "manage_services": {"type": "bool", "default": True},
            }
        ),
    )


if __name__ == "__main__":
    main()
