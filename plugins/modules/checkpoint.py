#!/usr/bin/python
# -*- coding: utf-8 -*-

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: checkpoint
short_description: Take a CPU manager checkpoint that the kubelet would refuse out of its way
version_added: 0.1.0
author:
  - the kubenode.cpu_manager developers (@kubenode)
description:
  - Judges C(cpu_manager_state) as the kubelet would at its next start, with the configuration that is there or
    planned,
    and resets it where it would be refused. A kubelet that finds no checkpoint writes a new one.
  - Stop the kubelet before, because a running one writes the file again.
extends_documentation_fragment:
  - kubenode.cpu_manager.node
  - kubenode.cpu_manager.kubelet
  - kubenode.cpu_manager.settings
  - kubenode.cpu_manager.attributes
  - kubenode.cpu_manager.attributes.change
options:
  state:
    description:
      - V(valid) removes the checkpoint only if the kubelet would not start with it. V(absent) removes it in any case.
    type: str
    choices: [valid, absent]
    default: valid
  discard_assignments:
    description:
      - Also remove a checkpoint that gives running pods exclusive CPUs. On a node that is not drained, the kubelet
        then moves these pods to other CPUs. Without this, such a checkpoint is left there and the module fails.
    type: bool
    default: false
  backup:
    description:
      - Keep the old file beside its place.
    type: bool
    default: true
seealso:
  - module: kubenode.cpu_manager.checkpoint_info
"""

EXAMPLES = r"""
- name: Make sure that the kubelet starts with the policy that is planned
  kubenode.cpu_manager.checkpoint:
    cpu_manager_policy: static
    reserved_system_cpus: "0,24"

- name: Remove the checkpoint of a drained node
  kubenode.cpu_manager.checkpoint:
    state: absent
    discard_assignments: true
"""

RETURN = r"""
node:
  description: The name of the node, from C(/etc/hostname).
  returned: always
  type: str
  sample: worker-3
file:
  description: The checkpoint.
  returned: success
  type: str
  sample: /var/lib/kubelet/cpu_manager_state
checkpoint:
  description: The checkpoint as it was found.
  returned: success
  type: dict
  contains:
    verdict:
      description: C(accepted), C(refused) or C(absent); C(not judged) with O(state=absent).
      type: str
      sample: refused
    reason:
      description: Why the kubelet refuses it, in its words.
      type: str
      sample: configured policy "static" differs from state checkpoint policy "none"
    remedy:
      description: What to do about it.
      type: str
      sample: stop the kubelet and take the file out of the way before it starts again
    policy:
      description: The policy in the file, if it can be read.
      type: str
      sample: none
    default_cpu_set:
      description: The shared pool, if it can be read.
      type: str
      sample: ""
    assignments:
      description: The exclusive CPUs by pod UID and container, as far as they can be read.
      type: dict
      sample: {}
backup_file:
  description: Where the old file was kept.
  returned: when the file was removed and O(backup) is true
  type: str
  sample: /var/lib/kubelet/cpu_manager_state.20261121T101500Z~
"""

from typing import Any, Mapping

from ..module_utils.ansible_module import KUBELET, SETTINGS_ARGUMENTS, Outcome, node_of, planned_config, run
from ..module_utils.errors import RefusedError
from ..module_utils.files import remove_file
from ..module_utils.node.drift import REFUSED, Judgement, judge, readable
from ..module_utils.tree import Tree


def work(tree: Tree, parameters: Mapping[str, Any], check_mode: bool) -> Outcome:
    node = node_of(tree, parameters)
    path, content = tree.path(node.checkpoint_path), node.checkpoint()
    if parameters["state"] == "absent":
        judgement = readable(content)
    else:
        judgement = judge(content, planned_config(node, parameters))
    result: dict[str, Any] = {"file": path, "checkpoint": judgement.to_dict()}
    if content is None or not (parameters["state"] == "absent" or judgement.verdict == REFUSED):
        return Outcome(result, diff=_diff(path, judgement, judgement))
    if judgement.state is not None and judgement.state.exclusive_cpus() and not parameters["discard_assignments"]:
        raise RefusedError(
            "%s: gives exclusive CPUs (%s) to %d pods, which the kubelet would move to others%s;"
            " drain the node and set discard_assignments: true"
            % (
                path,
                judgement.state.exclusive_cpus(),
                len(judgement.state.assignments),
                "; it refuses the file as it is: " + judgement.reason if judgement.reason else "",
            )
        )
    if not check_mode:
        backup_file = remove_file(path, content, parameters["backup"])
        if backup_file:
            result["backup_file"] = backup_file
    return Outcome(result, True, _diff(path, judgement, readable(None)))


def _diff(path: str, before: Judgement, after: Judgement) -> dict[str, str]:
    return {"before_header": path, "after_header": path, "before": before.to_text(), "after": after.to_text()}


def main() -> None:
    run(
        work,
        KUBELET,
        SETTINGS_ARGUMENTS,
        {
            "state": {"type": "str", "choices": ["valid", "absent"], "default": "valid"},
            "discard_assignments": {"type": "bool", "default": False},
            "backup": {"type": "bool", "default": True},
        },
        mutually_exclusive=[("reserved_system_cpus", "reservation")],
    )


if __name__ == "__main__":
    main()
