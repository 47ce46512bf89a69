#!/usr/bin/python
# -*- coding: utf-8 -*-

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rollout_info
short_description: Plan the change of a node's CPU management
version_added: 0.1.0
author:
  - the kubenode.cpu_manager developers (@kubenode)
description:
  - Decides everything that a rollout or a rollback would do to the node, before anything is changed, and whether the
    kubelet would start afterwards. The result contains that of M(kubenode.cpu_manager.drift_info).
  - If a change was interrupted, a run first restores the files from before it. The plan is made for the node as it will
    be then.
  - An error that is found on the node does not make the module fail. It is reported, and RV(refusals) contains the
    errors that prevent a change. An error in the wanted settings makes the module fail.
extends_documentation_fragment:
  - kubenode.cpu_manager.node
  - kubenode.cpu_manager.kubelet
  - kubenode.cpu_manager.hide_names
  - kubenode.cpu_manager.settings
  - kubenode.cpu_manager.change_terms
  - kubenode.cpu_manager.attributes.info
options:
  trial:
    description:
      - Whether the node's own kubelet tries the start that comes with the change, as with
        M(kubenode.cpu_manager.kubelet_trial). What it refuses is one of the RV(refusals). A node that needs no change
        tries nothing.
      - With V(auto), where there can be no trial, a note says why, and the prediction stands alone. With V(always),
        that is a refusal.
    type: str
    choices: [auto, always, never]
    default: never
  tried:
    description:
      - The RV(trial) of an earlier plan of this node. It is taken over where the planned start is the same as then,
        whatever containers came or went.
      - What was predicted to be refused, and was not, is no reason to refuse the change.
    type: dict
  role:
    description:
      - The name of a role of this collection. The host is refused if its variables of this role have values that the
        role does not take.
    type: str
  upgrade_to:
    description:
      - A version of Kubernetes, such as V(1.37). RV(upgrade) then says whether the node's kubelet could become one of
        that version with the node's files as they are now, and come back.
    type: str
  beside_cpus:
    description:
      - If it is given, what M(kubenode.cpu_manager.admission_info) with these options says of the node comes with the
        plan, as RV(beside_cpus). The file system and the kubelet are those of this module.
    type: dict
seealso:
  - module: kubenode.cpu_manager.drift_info
  - module: kubenode.cpu_manager.start_check
  - module: kubenode.cpu_manager.rollout_journal
"""

EXAMPLES = r"""
- name: Plan the node's change to the static policy
  kubenode.cpu_manager.rollout_info:
    cpu_manager_policy: static
    reservation:
      count: 4
  register: plan

- name: Stop where the kubelet would not start
  ansible.builtin.assert:
    that: plan.starts
    fail_msg: "{{ plan.findings | map(attribute='text') | join('; ') }}"

- name: Read whether the nodes can go to Kubernetes 1.37 and come back
  kubenode.cpu_manager.rollout_info:
    upgrade_to: "1.37"
  register: plan

- name: Stop where one cannot
  ansible.builtin.assert:
    that: plan.upgrade.starts is true and plan.upgrade.back.starts is true
    fail_msg: "{{ (plan.upgrade.findings + plan.upgrade.back.findings) | map(attribute='text') | join('; ') }}"
"""

RETURN = r"""
node: {description: "The name of the node, from C(/etc/hostname).", returned: always, type: str, sample: worker-3}
status:
  description: As RV(kubenode.cpu_manager.drift_info#module:status).
  returned: success
  type: str
  sample: drift
wanted:
  description: As RV(kubenode.cpu_manager.drift_info#module:wanted).
  returned: success
  type: dict
  sample: {"cpu_manager_policy": "static", "reserved_system_cpus": "0,12,24,36"}
found:
  description: As RV(kubenode.cpu_manager.drift_info#module:found).
  returned: success
  type: dict
  sample: {"cpu_manager_policy": "none"}
drift:
  description:
    - As RV(kubenode.cpu_manager.drift_info#module:drift).
    - A C(subject) can also be C(memory_state), the memory manager's state file, or with a rollback the path of a file.
  returned: success
  type: list
  elements: dict
  sample: [{"subject": "cpu_manager_policy", "wanted": "static", "found": "none"}]
actions:
  description: What to do, in order, as RV(kubenode.cpu_manager.drift_info#module:actions).
  returned: success
  type: list
  elements: str
  sample: [stop_kubelet, reset_checkpoint, reset_memory_state, write_configuration, start_kubelet, reconcile]
kernel:
  description: As RV(kubenode.cpu_manager.drift_info#module:kernel).
  returned: success
  type: str
  sample: 6.1.0-18-amd64
found_refusal:
  description: As RV(kubenode.cpu_manager.drift_info#module:found_refusal).
  returned: success
  type: str
  sample: current set of available CPUs "0-7" doesn't match with CPUs in state "0-6"
refusals:
  description: Why the node cannot be changed. Empty if it can be, or if nothing is to be changed.
  returned: success
  type: list
  elements: dict
  contains:
    kind:
      description:
        - The kind of the reason, such as C(no_kubelet), C(would_not_start), or C(configuration) if it cannot be read.
        - C(assignments) if running containers would lose them.
        - C(kubelet_runs) if it runs and O(manage_service=false).
        - C(other_owner) if a different program sets the CPUs of containers.
        - C(edited) if others have changed a file that is to be taken back.
        - C(kubelet_refused) if the node's own kubelet does not start in a trial, and C(not_tried) if there can be no
          trial and O(trial=always).
        - C(no_service) if the service that is to be stopped is not there, and C(saved_node) if it would not be the
          node's.
        - C(refused) if the node is managed by other means.
      type: str
      sample: assignments
    where:
      description: The file or the setting.
      type: str
      sample: /var/lib/kubelet/cpu_manager_state
    text:
      description: What is wrong.
      type: str
    remedy:
      description: What to do about it.
      type: str
checkpoint:
  description: As RV(kubenode.cpu_manager.drift_info#module:checkpoint).
  returned: success
  type: dict
  sample: {"verdict": "refused"}
cpus:
  description: As RV(kubenode.cpu_manager.drift_info#module:cpus).
  returned: success
  type: dict
  sample: {"online": "0-47", "reserved": "0-1", "shared": "2-47"}
owners:
  description: As RV(kubenode.cpu_manager.drift_info#module:owners).
  returned: success
  type: list
  elements: dict
  sample: [{"use": "shared", "owner": "", "cpus": "2-47"}]
enforcement:
  description: As RV(kubenode.cpu_manager.drift_info#module:enforcement).
  returned: success
  type: dict
  sample: {"version": 2, "mount": "/sys/fs/cgroup", "containers": {"kept": 40, "different": 1, "skipped": 12}}
topology:
  description: The machine. See M(kubenode.cpu_manager.cpu_topology_info).
  returned: success
  type: dict
  sample: {"online": "0-47"}
elsewhere:
  description: As RV(kubenode.cpu_manager.drift_info#module:elsewhere).
  returned: success
  type: dict
  sample: {"name": "kubespray", "snippet": "kubelet_cpu_manager_policy: static\n"}
notes:
  description: As RV(kubenode.cpu_manager.drift_info#module:notes).
  returned: success
  type: list
  elements: str
  sample: ["the reservation 0-1 splits cores: pods get their other threads, CPUs 24-25"]
note_checks:
  description: As RV(kubenode.cpu_manager.drift_info#module:note_checks).
  returned: success
  type: list
  elements: str
  sample: [reservation-splits-cores]
drain:
  description:
    - Whether pods have to leave the node first, because the kubelet would admit them again under other rules.
  returned: success
  type: bool
  sample: true
drains:
  description: Whether the node is drained, that is whether pods have to leave it and O(drain) allows it.
  returned: success
  type: bool
  sample: true
starts:
  description:
    - Whether the kubelet would start after the change. None where that cannot be determined; RV(unknown) says why, and
      does not prevent the change.
  returned: success
  type: bool
  sample: true
findings:
  description:
    - What the kubelet would refuse, or start with and do harm, each with C(text), C(cause), C(remedy), C(fatal),
      C(where) and C(context); see M(kubenode.cpu_manager.start_check).
  returned: success
  type: list
  elements: dict
  sample: []
trial:
  description:
    - What the node's own kubelet says of the start that comes with the change. None where nothing was to be tried, as
      no kubelet is started with other files, or with O(trial=never).
  returned: success
  type: dict
  sample: {"starts": true, "version": "1.36.3", "seconds": 3.1, "told": "tried by kubelet 1.36.3, 3.1 s"}
  contains:
    starts:
      description: As RV(kubenode.cpu_manager.kubelet_trial#module:starts).
      type: bool
    message:
      description: As RV(kubenode.cpu_manager.kubelet_trial#module:message).
      type: str
    reason:
      description: As RV(kubenode.cpu_manager.kubelet_trial#module:reason).
      type: str
    version:
      description: As RV(kubenode.cpu_manager.kubelet_trial#module:version).
      type: str
    seconds:
      description: As RV(kubenode.cpu_manager.kubelet_trial#module:seconds).
      type: float
    runtime:
      description: As RV(kubenode.cpu_manager.kubelet_trial#module:runtime).
      type: str
    not_tried:
      description: As RV(kubenode.cpu_manager.kubelet_trial#module:not_tried).
      type: list
      elements: str
    prediction_differs:
      description: As RV(kubenode.cpu_manager.kubelet_trial#module:prediction_differs).
      type: bool
    mistaken:
      description: The C(where) and C(text) of each of the RV(findings) that a kubelet that started does not refuse.
      type: list
      elements: list
    of:
      description: What was tried, as a short text that is the same for the same.
      type: str
    told:
      description: Which kubelet has tried it, and how long that took. Empty where none has.
      type: str
runtime:
  description:
    - The container runtime, with C(kind), C(version), C(service), C(files) and C(found) as
      M(kubenode.cpu_manager.runtime_config) returns them. None if its configuration stays as it is.
  returned: success
  type: dict
  sample: {"kind": "containerd", "version": "1.7", "service": "containerd", "files": ["/etc/containerd/config.toml"]}
beside_cpus:
  description: What of the node decides on its pods beside CPUs. See M(kubenode.cpu_manager.admission_info).
  returned: with O(beside_cpus)
  type: dict
  sample: {"memory": 270367404032, "devices": []}
upgrade:
  description:
    - Whether the kubelet of the version O(upgrade_to) would start with the node's files as they are, and what is lost.
    - RV(upgrade.back) is the same prediction for the present kubelet, with the checkpoint that the new one writes.
  returned: with O(upgrade_to)
  type: dict
  contains:
    kubelet_version:
      description: The version.
      type: str
      sample: "1.37"
    starts:
      description: Whether it would start. None if that cannot be determined.
      type: bool
      sample: true
    findings:
      description: As RV(findings).
      type: list
      elements: dict
      sample: []
    unknown:
      description: As RV(unknown).
      type: list
      elements: dict
      sample: []
    back:
      description: The way back, with C(kubelet_version), C(starts), C(findings) and C(unknown).
      type: dict
      sample: {"kubelet_version": "1.36", "starts": true, "findings": [], "unknown": []}
    notes:
      description: What is lost on the way, and how far the rules of these versions are known.
      type: list
      elements: str
      sample: ["the kubelet 1.37 reads this file, of format v2, and writes format v4 in its place"]
unknown:
  description:
    - What it also depends on whether the kubelet starts, and cannot be seen, each with C(reason) and C(where); see
      M(kubenode.cpu_manager.start_check).
  returned: success
  type: list
  elements: dict
  sample: []
files:
  description: The files that the change touches, as paths on the node. Empty where the node needs no change.
  returned: success
  type: list
  elements: str
  sample:
    - /var/lib/kubelet/config.yaml
    - /var/lib/kubelet/cpu_manager_state
    - /var/lib/kubelet/memory_manager_state
restart:
  description:
    - What the start of the kubelet that comes with the change does to each pod that runs and has CPUs, memory or
      devices of its own, as in RV(kubenode.cpu_manager.allocation_plan#module:restart). Empty where none is started.
    - Where a pod would be refused, or lose CPUs of its own, pods are drained even if no rule of admission changes.
      Without O(drain) the change is refused then, unless O(discard_assignments) allows it.
  returned: success
  type: list
  elements: dict
  sample: [{"uid": "0f3f7f0a-90a4-4b39-8a3e-6a9a3fd2f1c4", "pod": "shop/db-0", "fate": "keeps", "reason": "",
    "message": "", "why": "", "assumed": ""}]
judged:
  description:
    - Digests of what the plan is made for. M(kubenode.cpu_manager.kubelet_change) plans a node once more only if one of
      them is another by then. Empty if nothing is to be changed, or if an interrupted change is taken back first.
  returned: success
  type: dict
  sample: {"states": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"}
managers:
  description:
    - With what the CPU manager and the memory manager start after the change. None if none is started, or if that is
      not certain.
  returned: success
  type: dict
  sample: {"cpu": {"policy_name": "static", "reserved": "0,12"}, "memory": null}
back_of:
  description:
    - The rollout that the plan goes back from. Empty if the last change is of no rollout, and None if it is the change
      that was interrupted.
  returned: with O(change=rollback)
  type: str
  sample: "2026-11-22T09:30:00.123456"
resets:
  description:
    - Those of RV(files) that the kubelet would refuse with its configuration as it will be. They are the states of its
      managers, and are repaired or removed.
  returned: success
  type: list
  elements: str
  sample: [/var/lib/kubelet/cpu_manager_state]
journal:
  description:
    - A change of this node that was interrupted; see M(kubenode.cpu_manager.rollout_journal). None if none was.
    - C(restores) names the saved files that are restored when the change is taken back. The states of the kubelet's
      managers are omitted if containers came since, and the kubelet starts with the present states.
  returned: success
  type: dict
  sample:
    phase: changing
    files: [/var/lib/kubelet/config.yaml]
    facts: {"cordoned": false}
    exclusive_now: 1,5
    restores: [/var/lib/kubelet/config.yaml]
last:
  description:
    - The last change of this node that came to its end. None if there was none.
    - C(facts.undone) names a rollout that was taken back. C(drain_seconds) is how many seconds passed from the drain of
      the node until it was back, where that was measured.
  returned: success
  type: dict
  sample: {"phase": "changing", "files": ["/var/lib/kubelet/config.yaml"], "facts": {"rollout": "2026-11-22T09:30:00"}}
kubelet:
  description: How the kubelet is installed; see M(kubenode.cpu_manager.drift_info). None where there is no kubelet.
  returned: success
  type: dict
  sample: {"distribution": "kubeadm", "service": "kubelet", "config_path": "/var/lib/kubelet/config.yaml"}
"""

from typing import Any, Mapping

from ..module_utils._base.ansible_module import Outcome, run
from ..module_utils._base.arguments import Arguments
from ..module_utils._base.tree import Tree
from ..module_utils._base.versions import minor_version
from ..module_utils._node.hidden_names import HIDE_NAMES, shown_node_of
from ..module_utils._node.module import KUBELET, TRIED
from ..module_utils._node.start_check import ALWAYS, AUTO, NEVER
from ..module_utils._node.wanted_settings import SETTINGS_ARGUMENTS, wanted_settings
from ..module_utils._rollout.rollout_plan import PLAN, ROLLOUT, plan_of, upgrade_report


def work(tree: Tree, parameters: Mapping[str, Any], check_mode: bool) -> Outcome:
    node = shown_node_of(tree, parameters)
    wanted = wanted_settings(node, parameters, needs_kubelet=True) if parameters["change"] == ROLLOUT else {}
    report = plan_of(node, wanted, parameters)
    if parameters["upgrade_to"]:
        minor = minor_version(parameters["upgrade_to"], "upgrade_to")
        report["upgrade"] = upgrade_report(node, minor) if node.installation is not None else None
    return Outcome(report)


def main() -> None:
    run(
        work,
        KUBELET,
        TRIED,
        HIDE_NAMES,
        SETTINGS_ARGUMENTS,
        PLAN,
        Arguments(
            {
                "trial": {"type": "str", "choices": [AUTO, ALWAYS, NEVER], "default": NEVER},
                # Of the action plugin of this name.
                "role": {"type": "str"},
                "beside_cpus": {"type": "dict"},
                "upgrade_to": {"type": "str"},
            }
        ),
    )


if __name__ == "__main__":
    main()
