#!/usr/bin/python
# -*- coding: utf-8 -*-

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: drift_info
short_description: Compare a node's CPU management with the wanted settings
version_added: 0.1.0
author:
  - the kubenode.cpu_manager developers (@kubenode)
description:
  - Reads a node's CPU topology, its kubelet's configuration and its checkpoint in one call, and compares them with
    the wanted settings. The configuration is the one that the kubelet runs with, from its file, drop-in
    files and flags together.
  - Without any setting, checks whether the kubelet would start again with the node's own files, flags, machine and
    checkpoint, with the same prediction as M(kubenode.cpu_manager.start_check).
    M(kubenode.cpu_manager.rollout_info) also checks the memory manager's state.
  - Fails if the kubelet would start with the settings that the node has, but not with the wanted settings. If the
    kubelet would not start with the settings that the node has, the module reports this in RV(found_refusal) and as
    RV(drift) with the subject C(start), and does not fail.
  - If pods run, also compares the CPUs that the checkpoint gives to each container with those that its cgroup has and
    those that the kernel enforces, with cgroup v1 and v2. A difference is what M(kubenode.cpu_manager.reconcile) would
    write, unless its RV(drift[].remedy) says why it could not; the kubelet itself does not check it again. While the
    shared pool changes, a difference may also be one that the kubelet removes itself within its reconcile period.
  - Compares the CPUs that the kernel was booted to isolate with the reservation.
  - On a node without a kubelet, succeeds with the RV(status) C(no kubelet).
extends_documentation_fragment:
  - kubenode.cpu_manager.node
  - kubenode.cpu_manager.kubelet
  - kubenode.cpu_manager.settings
  - kubenode.cpu_manager.attributes.info
seealso:
  - module: kubenode.cpu_manager.kubelet_config
  - module: kubenode.cpu_manager.checkpoint
  - module: kubenode.cpu_manager.start_check
"""

EXAMPLES = r"""
- name: Compare the node with the wanted settings
  kubenode.cpu_manager.drift_info:
    cpu_manager_policy: static
    reservation:
      count: 4
      strategy: spread
  register: node

- name: Read the settings of a node that works
  kubenode.cpu_manager.drift_info:
  register: good
  delegate_to: worker-1

- name: Compare the node with these settings
  kubenode.cpu_manager.drift_info: "{{ good.found }}"
"""

RETURN = r"""
node: {description: "The name of the node, from C(/etc/hostname).", returned: always, type: str, sample: worker-3}
status:
  description: C(clean), C(drift), C(no kubelet), or C(nothing wanted) in place of C(clean) if no setting is wanted.
  returned: success
  type: str
  sample: drift
wanted:
  description: The wanted settings, with the reservation as it was planned for this node.
  returned: success
  type: dict
  sample: {"cpu_manager_policy": "static", "reserved_system_cpus": "0,12,24,36"}
found:
  description: All CPU settings of the node, as options of the modules. None if there is no kubelet.
  returned: success
  type: dict
  sample: {"cpu_manager_policy": "none"}
drift:
  description: What differs from the wanted state.
  returned: success
  type: list
  elements: dict
  contains:
    subject:
      description:
        - A setting, or a field of the configuration that belongs to a setting.
        - Or C(configuration) if it cannot be read, C(start) if the kubelet would not start, or C(checkpoint).
        - Or C(container) with its namespace, pod and name, or C(cgroup) with its path.
        - Or C(isolated) or C(nohz_full), the CPUs that the kernel was booted with.
      type: str
      sample: cpu_manager_policy
    wanted:
      description: The wanted value.
      type: raw
      sample: static
    found:
      description: The present value; of a container, the CPUs that the kernel enforces.
      type: raw
      sample: none
    remedy:
      description: What to do about it, if none of the RV(actions) removes the difference.
      returned: when there is no such action
      type: str
      sample: restart the kubelet, which then writes the cpusets of all its containers once
    refused_now:
      description:
        - Whether the kubelet also refuses the state with its present settings, and not only with the wanted ones.
      returned: for C(checkpoint) and C(memory_state)
      type: bool
      sample: false
    source:
      description: The file, or the flag and its file, that sets the present value. None for the kubelet's default.
      returned: for a setting, or a field that belongs to one
      type: str
      sample: --cpu-manager-policy in /var/lib/kubelet/kubeadm-flags.env
kubelet:
  description: How the kubelet is installed. None if there is no kubelet.
  returned: success
  type: dict
  contains:
    distribution:
      description: The distribution of Kubernetes, C(unknown) for a kubelet of no supported distribution.
      type: str
      sample: kubeadm
    service:
      description: The systemd service that runs the kubelet.
      type: str
      sample: kubelet
    config_path:
      description: Its configuration file.
      type: str
      sample: /var/lib/kubelet/config.yaml
    config_dir:
      description: Its directory of drop-in files.
      type: str
      sample: /var/lib/rancher/k3s/agent/etc/kubelet.conf.d
    kubelet_root:
      description: The directory that holds the checkpoint.
      type: str
      sample: /var/lib/kubelet
    version:
      description:
        - The version whose rules are used, O(kubelet_version) or that of the running kubelet. None if it is unknown.
      type: str
      sample: 1.35.6
    cri_socket:
      description: The socket of the container runtime, as the distribution places it.
      type: str
      sample: /run/containerd/containerd.sock
    log_file:
      description: The log file of the distribution's kubelet. None if it logs to the journal of its service.
      type: str
      sample: /var/lib/rancher/rke2/agent/logs/kubelet.log
    pid:
      description: The process id of the running kubelet. None if it does not run.
      type: int
      sample: 712
    command_line:
      description:
        - The command line of the running kubelet. Empty if it does not run.
        - C(redacted) is in the place of values that may be secret, and of those of flags that no kubelet has.
      type: list
      elements: str
      sample: [/usr/bin/kubelet, --config=/var/lib/kubelet/config.yaml]
kernel:
  description: The release of the kernel. Empty if it is unknown.
  returned: success
  type: str
  sample: 6.1.0-18-amd64
found_refusal:
  description: Why the kubelet would not start again with the settings that the node has. Empty if it would start.
  returned: success
  type: str
  sample: current set of available CPUs "0-7" doesn't match with CPUs in state "0-6"
actions:
  description:
    - What to do, in order. C(repair_checkpoint) keeps exclusive CPUs; C(reset_checkpoint) has none to keep, and removes
      the file.
  returned: success
  type: list
  elements: str
  sample: [stop_kubelet, reset_checkpoint, write_configuration, start_kubelet, reconcile]
checkpoint:
  description: The checkpoint, and whether a kubelet with the wanted settings would start with it; see
    M(kubenode.cpu_manager.checkpoint_info).
  returned: success
  type: dict
  sample: {"verdict": "refused"}
cpus:
  description:
    - The present use of the CPUs. Reserved CPUs are also in the shared pool, unless the reservation is strict.
    - C(stranded) are those of the C(shared) ones that no container can get for itself, as
      RV(kubenode.cpu_manager.allocation_plan#module:stranded) says.
  returned: success
  type: dict
  sample:
    online: 0-47
    offline: ""
    reserved: 0-1
    exclusive: ""
    shared: 2-47
    stranded: ""
    isolated: ""
    reserved_wanted: 0,12,24,36
owners:
  description: The owners of the CPUs. Each present CPU is in exactly one element.
  returned: success
  type: list
  elements: dict
  contains:
    use:
      description: C(exclusive), C(reserved), C(shared) or C(offline).
      type: str
      sample: exclusive
    owner:
      description:
        - The namespace, pod and container to which exclusive CPUs belong, with the pod's UID in place of the first two
          if its name is unknown. Empty for other uses.
        - Of a pod that has CPUs as a whole, all containers that share some of them, as C(shop/trading-0/logs, proxy).
          What none of them has is that of C(no container).
      type: str
      sample: shop/database-0/server
    cpus:
      description: The CPUs.
      type: str
      sample: 4-5,28-29
enforcement:
  description: The cgroups that were compared with the checkpoint. None if no pods run.
  returned: success
  type: dict
  contains:
    version:
      description: The version of the cgroups with the cpuset controller, 1 or 2.
      type: int
      sample: 2
    mount:
      description: Where these cgroups are mounted.
      type: str
      sample: /sys/fs/cgroup
    containers:
      description:
        - How many containers and sandboxes are C(kept), C(different), or C(skipped) because it cannot be determined
          which CPUs they should have. All are skipped if the kubelet would refuse the checkpoint.
      type: dict
      sample: {"kept": 40, "different": 1, "skipped": 12}
    cgroups:
      description:
        - The cgroups of all pods, of the QoS classes, and of the host beside them, with C(path), C(cpus) and the
          C(effective) CPUs.
      type: list
      elements: dict
      sample: [{"path": "kubepods.slice", "cpus": "", "effective": "0-47"}]
topology:
  description: The machine. M(kubenode.cpu_manager.cpu_topology_info) returns the NUMA distances, too.
  returned: success
  type: dict
  sample: {"online": "0-47"}
elsewhere:
  description:
    - Another system that writes the kubelet's files, and therefore needs the same settings. None if there is none.
  returned: success
  type: dict
  contains:
    name:
      description: The name of the system.
      type: str
      sample: kubespray
    why:
      description: What it does with the files.
      type: str
    snippet:
      description: The settings in the form of that system, ready to paste. Empty if there are none.
      type: str
      sample: "kubelet_cpu_manager_policy: static\n"
notes:
  description:
    - What is no drift but does harm, such as a reservation that splits cores. Also what decides whether the kubelet
      starts, if that cannot be determined, and whether the version of the kubelet is uncertain.
    - Under the static policy, that other containers run on reserved CPUs, too, unless an option keeps them off. This is
      no finding of a report.
  returned: success
  type: list
  elements: str
  sample: ["the reservation 0-1 splits cores: pods get their other threads, CPUs 24-25"]
note_checks:
  description: The id of the check to which each of RV(notes) belongs, in the same order. Empty for a note without one.
  returned: success
  type: list
  elements: str
  sample: [reservation-splits-cores]
"""

from typing import Any, Mapping

from ..module_utils._base.ansible_module import Outcome, run
from ..module_utils._base.errors import noted
from ..module_utils._base.tree import Tree
from ..module_utils._node.drift import RECONCILE, report, with_memory_state
from ..module_utils._node.module import KUBELET, node_of
from ..module_utils._node.wanted_settings import SETTINGS_ARGUMENTS, wanted_settings


def work(tree: Tree, parameters: Mapping[str, Any], check_mode: bool) -> Outcome:
    node = node_of(tree, parameters)
    wanted = wanted_settings(node, parameters, needs_kubelet=True)
    configuration, problem = node.found()
    observed, notes = node.observed(configuration)
    if observed is not None and observed.is_bound:
        # Imported here: the processes of most nodes are not bound.
        from ..module_utils._node.binders import with_binders

        observed = with_binders(tree, observed)
    # Not before the containers: the kubelet writes a container's CPUs down before it starts the container.
    starts = None
    if configuration is not None:
        # Imported here: a machine without a kubelet needs no prediction.
        from ..module_utils._kubelet.settings import design_notes
        from ..module_utils._node.start_check import predicted_starts

        starts = predicted_starts(node, wanted, configuration)
        # Not in reports: it is so on nearly every node.
        notes = [*notes, *design_notes(None if starts.planned.checked is None else starts.planned.checked.cpu_manager)]
    result = report(
        node.topology,
        node.machine(),
        configuration,
        node.checkpoint(),
        wanted,
        observed,
        problem,
        starts,
        node.owned_cpus(),
    )
    if starts is not None and result["found"] is not None:
        # Imported here, as above.
        from ..module_utils._node.start_check import is_at_risk, memory_plan

        result = with_memory_state(result, memory_plan(node, starts.planned), memory_plan(node, starts.found).reason)
        if not result["found_refusal"] and is_at_risk(node, result["found"], observed):
            # Imported here: most nodes have nothing to lose.
            from ..module_utils._node.restart import restart_notes

            notes = [*notes, *restart_notes(node)]
    notes = [*result["notes"], *notes, *node.own_notes()]
    to_reconcile = RECONCILE in result["actions"]
    if node.may_have_owners(with_crio=to_reconcile):
        # Imported here: hardly any node has others.
        from ..module_utils._node.owners_found import contradiction_notes

        notes += contradiction_notes(node, configuration, to_reconcile)
    remarks = noted(notes)
    about = {
        "kernel": node.kernel(),
        "kubelet": node.kubelet(configuration),
        "elsewhere": node.elsewhere(wanted, configuration),
    }
    return Outcome({**result, **remarks, **about})


def main() -> None:
    run(work, KUBELET, SETTINGS_ARGUMENTS)


if __name__ == "__main__":
    main()
