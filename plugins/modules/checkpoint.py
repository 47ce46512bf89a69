#!/usr/bin/python
# -*- coding: utf-8 -*-

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: checkpoint
short_description: Repair, write, convert or remove a CPU manager checkpoint
version_added: 0.1.0
author:
  - the kubenode.cpu_manager developers (@kubenode)
description:
  - Checks C(cpu_manager_state) as the kubelet would at its next start, with the present or the planned configuration,
    and brings it to the wanted state.
  - A repair keeps the exclusive CPUs of every container that can keep them. If containers would lose theirs, the module
    names them and changes nothing, unless O(discard_assignments) allows it.
  - A C(memory_manager_state) that the kubelet would refuse is removed with V(valid), and the kubelet writes a new one.
    It cannot be repaired, as its numbers are the kubelet's own.
  - Stop the kubelet before, because a running one writes the file again.
extends_documentation_fragment:
  - kubenode.cpu_manager.node
  - kubenode.cpu_manager.kubelet
  - kubenode.cpu_manager.settings
  - kubenode.cpu_manager.backup
  - kubenode.cpu_manager.attributes.change
options:
  state:
    description:
      - V(valid) repairs the checkpoint if the kubelet would not start with it, or, with O(pods) or O(containers), if
        it names pods that no longer exist. If there is nothing to keep, the file is removed, and the kubelet writes a
        new one.
      - V(present) writes what O(checkpoint), O(source), O(pods) or O(containers) give, if the kubelet would accept it.
        From running pods it calculates what the kubelet itself would have written if it had started them with this
        configuration on an empty node. So a node can change to the static policy with its pods in place.
      - V(format) writes the checkpoint in the format of the version O(kubelet_version). This is not needed before an
        upgrade, because kubelets read older formats.
      - V(absent) removes it.
    type: str
    choices: [valid, present, format, absent]
    default: valid
  checkpoint:
    description:
      - The state to write, in the form that M(kubenode.cpu_manager.checkpoint_info) returns it.
      - Its keys C(policy), C(default_cpu_set), C(assignments) and C(pod_assignments) count. The policy defaults to that
        of the configuration.
    type: dict
  source:
    description:
      - A file on the node that is put in the checkpoint's place byte for byte, such as a backup.
    type: path
  pods:
    description:
      - The pods of this node, as the API server gives them, or manifests with UIDs. Pods that have ended are left out.
    type: list
    elements: dict
  containers:
    description:
      - The containers of this node as C(crictl inspect) prints them, each as one element.
      - They replace O(pods), and show to which pod each container in a checkpoint of format C(v1) belongs.
    type: list
    elements: dict
  discard_assignments:
    description:
      - Continue even if containers lose their exclusive CPUs. On a node that is not drained, the kubelet then moves
        these pods to other CPUs. Otherwise the module names them and fails.
    type: bool
    default: false
  allow_running_kubelet:
    description:
      - Write even while the kubelet is running. The kubelet will overwrite the file at its next allocation.
    type: bool
    default: false
  tried:
    description:
      - What M(kubenode.cpu_manager.rollout_info) has returned as RV(kubenode.cpu_manager.rollout_info#module:trial) of
        this node. What was predicted to be refused, and was not, is no reason to refuse the change.
    type: dict
seealso:
  - module: kubenode.cpu_manager.checkpoint_info
"""

EXAMPLES = r"""
- name: Make sure that the kubelet starts with the policy that is planned
  kubenode.cpu_manager.checkpoint:
    cpu_manager_policy: static
    reserved_system_cpus: "0,24"

- name: Write the static checkpoint for the pods that run, before the kubelet starts with the static policy
  kubenode.cpu_manager.checkpoint:
    state: present
    cpu_manager_policy: static
    reserved_system_cpus: "0,24"
    pods: "{{ pods_of_this_node.resources }}"

- name: Bring a backup back
  kubenode.cpu_manager.checkpoint:
    state: present
    source: /var/lib/kubelet/cpu_manager_state.20261121T101500Z~
    discard_assignments: true

- name: Remove the checkpoint of a drained node
  kubenode.cpu_manager.checkpoint:
    state: absent
    discard_assignments: true
"""

RETURN = r"""
node: {description: "The name of the node, from C(/etc/hostname).", returned: always, type: str, sample: worker-3}
file:
  description: The checkpoint.
  returned: success
  type: str
  sample: /var/lib/kubelet/cpu_manager_state
checkpoint:
  description:
    - The checkpoint as it was found, in the form of RV(kubenode.cpu_manager.checkpoint_info#module:checkpoint).
    - Its C(verdict) is C(not judged) if a check was not requested.
  returned: success
  type: dict
  sample: {"verdict": "refused", "policy": "none"}
after:
  description: The checkpoint after the change, in the same form.
  returned: success
  type: dict
  sample: {"verdict": "accepted"}
lost:
  description: The exclusive CPUs that containers lose.
  returned: success
  type: list
  elements: dict
  contains:
    pod:
      description: The UID of the pod.
      type: str
      sample: 8dbda0f5-4d4c-4b9c-b4c2-5e8b0c7e7f4a
    container:
      description: The container; empty for the CPUs of a whole pod.
      type: str
      sample: app
    cpus:
      description: Its CPUs.
      type: str
      sample: 4-5
    why:
      description: Why it cannot keep them.
      type: str
      sample: CPUs 5 are not online
stale:
  description: The exclusive CPUs that are taken from pods that no longer exist, with C(pod), C(container), C(cpus).
  returned: success
  type: list
  elements: dict
  sample: []
memory_state:
  description: The memory manager's state as it was found.
  returned: with O(state=valid)
  type: dict
  contains:
    file:
      description: The file.
      type: str
      sample: /var/lib/kubelet/memory_manager_state
    verdict:
      description: C(accepted), C(refused) or C(absent); C(not judged) where the node's files do not give the memory of
        its NUMA nodes. What is refused is removed.
      type: str
      sample: refused
    reason:
      description: Why the kubelet refuses it, in its words; or why it is not judged.
      type: str
      sample: '[memorymanager] configured policy "Static" differs from state checkpoint policy "None"'
    lost:
      description: The containers that lose memory of their own, with C(pod), its UID, and C(container).
      type: list
      elements: dict
      sample: []
    backup_file:
      description: Where the old file was kept, if it was removed and O(backup) is true.
      type: str
      sample: /var/lib/kubelet/memory_manager_state.20261121T101500Z~
refused:
  description:
    - The pods that the kubelet itself would not have admitted, in the form of
      RV(kubenode.cpu_manager.allocation_plan#module:refused).
    - They get no CPUs.
  returned: with O(state=present) and O(pods) or O(containers)
  type: list
  elements: dict
  sample: []
notes:
  description:
    - What an upgrade or a downgrade of the kubelet does to the file. Also, whether the kubelet's version is newer or
      older than the tested ones, and which version is assumed if it is unknown.
    - Kubernetes 1.37 and later write format C(v4), which older kubelets read as C(v2). So the CPUs of whole pods are
      lost on the way back, and named here or in RV(lost) before it happens.
    - Statements about 1.37 are taken from its KEPs, and were not replayed against a 1.37 kubelet.
  returned: success
  type: list
  elements: str
  sample: []
backup_file:
  description: Where the old file was kept.
  returned: when the file was changed and O(backup) is true
  type: str
  sample: /var/lib/kubelet/cpu_manager_state.20261121T101500Z~
"""

from typing import Any, Mapping, Sequence

from ..module_utils._base.ansible_module import Outcome, Parameters, difference, run
from ..module_utils._base.arguments import Arguments
from ..module_utils._base.errors import InputError, option
from ..module_utils._base.files import check_changes, make_changes
from ..module_utils._base.tree import LARGEST_OF_KUBELET, Tree
from ..module_utils._containers.pods import (
    Pod,
    RuntimeContainer,
    container_ids,
    pods_from_manifests,
    pods_of,
    read_containers,
    running_pods,
)
from ..module_utils._node.allocation import Question, seed_state
from ..module_utils._node.checkpoint_plan import (
    CheckpointPlan,
    given_content,
    plan_absent,
    plan_format,
    plan_present,
    plan_valid,
)
from ..module_utils._node.module import KUBELET, TRIED, node_of
from ..module_utils._node.node import Node
from ..module_utils._node.start_check import Managers, memory_plan_with
from ..module_utils._node.state_changes import States, assumed_config, check_stopped, planned_managers
from ..module_utils._node.wanted_settings import SETTINGS_ARGUMENTS, wanted_settings
from ..module_utils.state.acceptance import CPUManagerConfig
from ..module_utils.state.writing import format_for, write_checkpoint

GIVEN = ("checkpoint", "source", "pods", "containers")


def work(tree: Tree, parameters: Parameters, check_mode: bool) -> Outcome:
    node = node_of(tree, parameters)
    path, memory_path = tree.path(node.checkpoint_path), tree.path(node.memory_state_path)
    managers = None
    if parameters["state"] != "absent":
        managers = planned_managers(node, wanted_settings(node, parameters))
    plan, refused, notes = plan_change(node, parameters, managers)
    is_repair = parameters["state"] == "valid"
    states = States(plan, memory_plan_with(node, managers.memory) if managers and is_repair else None)
    result: dict[str, Any] = {"file": path, **plan.to_dict(), **refused, "notes": [*notes, *plan.notes]}
    if states.memory is not None:
        result["memory_state"] = {"file": memory_path, **states.memory.to_dict()}
    if states.changed and not parameters["discard_assignments"]:
        states.check_losses(node)
    changes = states.file_changes(tree, node)
    if changes:
        backup, keep = parameters["backup"], parameters["backup_keep"]
        check_changes(changes, backup, keep)
        if not parameters["allow_running_kubelet"]:
            check_stopped(tree, "allow_running_kubelet")
        if not check_mode:
            backups = make_changes(changes, backup, keep)
            if path in backups:
                result["backup_file"] = backups[path]
            if memory_path in backups:
                result["memory_state"]["backup_file"] = backups[memory_path]
    shown = [(path, plan.before.to_text(), plan.after.to_text()), *states.memory_difference(node)]
    return Outcome(result, states.changed, [difference(*texts) for texts in shown])


def plan_change(
    node: Node, parameters: Parameters, managers: Managers | None
) -> tuple[CheckpointPlan, dict[str, object], list[str]]:
    """Return what to do, the pods that the kubelet would refuse where their CPUs are planned, and notes on its version.

    managers: with what they are to start; None where the checkpoint goes.
    """
    state = parameters["state"]
    old = node.checkpoint()
    if managers is None:
        return plan_absent(old), {}, []
    config, notes = assumed_config(node, managers.cpu)
    containers = read_containers(parameters["containers"] or ())
    pods = live_pods(parameters, containers)
    if state == "format":
        return plan_format(old, config, container_ids(containers)), {}, notes
    if state == "valid":
        uids = None if pods is None else [pod.uid for pod in pods]
        discard = parameters["discard_assignments"]
        return plan_valid(old, config, uids, container_ids(containers), discard), {}, notes
    if sum(parameters[name] is not None for name in GIVEN) != 1:
        raise InputError(
            "takes one of %s" % ", ".join(map(option, GIVEN)), where="%s: present" % option("state"), remedy="give one"
        )
    if pods is not None:
        return (*seeded(node, parameters, config, pods), notes)
    if parameters["source"] is not None:
        return plan_present(old, node.tree.read_bytes(parameters["source"], LARGEST_OF_KUBELET), config), {}, notes
    return plan_present(old, given_content(parameters["checkpoint"], config), config), {}, notes


def live_pods(parameters: Parameters, containers: Sequence[RuntimeContainer]) -> Sequence[Pod] | None:
    """Return the pods that run on the node, as far as they are given."""
    if parameters["pods"] is not None:
        return running_pods(pods_from_manifests(parameters["pods"]))
    return None if parameters["containers"] is None else pods_of(containers)


def seeded(
    node: Node, parameters: Mapping[str, object], config: CPUManagerConfig, pods: Sequence[Pod]
) -> tuple[CheckpointPlan, dict[str, object]]:
    """Return the file that the kubelet itself would have written for these pods."""
    question = Question(
        node.topology, node.machine(), node.needed_configuration(), wanted_settings(node, parameters), None, pods
    )
    state, refused = seed_state(question)
    content = write_checkpoint(config.policy_name, state, format_for(config.minor, config.pod_level))
    return plan_present(node.checkpoint(), content, config), {"refused": refused}


OPTIONS: dict[str, dict[str, Any]] = {
    "state": {"type": "str", "choices": ["valid", "present", "format", "absent"], "default": "valid"},
    "checkpoint": {"type": "dict"},
    "source": {"type": "path"},
    "pods": {"type": "list", "elements": "dict"},
    "containers": {"type": "list", "elements": "dict"},
    "discard_assignments": {"type": "bool", "default": False},
    "allow_running_kubelet": {"type": "bool", "default": False},
    "backup": {"type": "bool", "default": True},
    "backup_keep": {"type": "int", "default": 3},
}


def main() -> None:
    run(work, KUBELET, TRIED, SETTINGS_ARGUMENTS, Arguments(OPTIONS, mutually_exclusive=[("pods", "containers")]))


if __name__ == "__main__":
    main()
