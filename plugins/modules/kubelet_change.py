#!/usr/bin/python
# -*- coding: utf-8 -*-

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kubelet_change
short_description: Carry out the planned change of a node's kubelet, and undo it if it fails
version_added: 0.1.0
author:
  - the kubenode.cpu_manager developers (@kubenode)
description:
  - Carries out a plan of M(kubenode.cpu_manager.rollout_info) on the node. The kubelet is stopped, the files are saved
    in a journal, and the configuration is written. The checkpoint and the memory manager's state are repaired or reset.
    The container runtime is restarted if its configuration changes. Then the kubelet is started, and has to be well for
    O(seconds). If a step fails, everything is undone, and the kubelet is started and verified with the old files.
  - It first compares the node with what the plan was made for. If that is another by then, the node is planned again by
    the same rules, and if something else would be done, the module fails with C(node_changed) in C(failure.kind), and
    changes nothing. Nothing else predicts whether the kubelet starts.
  - If a service is to be stopped, the change runs in a process of its own, which needs neither the controller nor the
    connection. With systemd that is the transient unit C(kubenode-cpu-manager-change.service), and its journal has a
    line for each step. If that process is killed, it is started again, and undoes the change by the journal. A second
    call waits until it has ended.
  - What asks the API server is not done here. A node that has to be drained is drained between O(step=begin_drain) and
    O(step=change), and brought back before O(step=end_drain).
extends_documentation_fragment:
  - kubenode.cpu_manager.node
  - kubenode.cpu_manager.kubelet
  - kubenode.cpu_manager.settings
  - kubenode.cpu_manager.change_terms
  - kubenode.cpu_manager.attributes.change
options:
  step:
    description:
      - V(change) carries O(plan) out.
      - V(undo) takes back a change that was interrupted or failed, whichever run began it, and takes it over. A change
        that another run has made and verified stays, and only has to come to its end.
      - V(begin_drain) notes that the node is about to be cordoned and drained, with O(facts).
      - V(end_drain) notes that the node is back in the cluster, and ends the change.
    type: str
    choices: [change, undo, begin_drain, end_drain]
    default: change
  plan:
    description:
      - The result of M(kubenode.cpu_manager.rollout_info) that was shown.
    type: dict
  run:
    description:
      - The name of the run. The journal of a change has it, and no other run goes on with that change, except by
        V(undo) in O(step), so that two runs never change one node in turns.
    type: str
    required: true
  rollout:
    description:
      - The name of the rollout that the change is a part of. A rollback can name it.
    type: str
    default: ''
  drained:
    description:
      - Whether the node was drained for the change after V(begin_drain) in O(step). Containers may then lose exclusive
        CPUs.
    type: bool
    default: false
  facts:
    description:
      - With V(begin_drain) in O(step), what is to be remembered of the node, such as whether it was cordoned before.
    type: dict
    default: {}
  pods:
    description:
      - The pods that stayed on the node, as the API server has them. What the checkpoint has of others is removed.
    type: list
    elements: dict
  tried:
    description:
      - The C(trial) of the plan. What was predicted to be refused, and was not, is no reason to refuse the change.
    type: dict
  seconds:
    description: For how many seconds without interruption the kubelet has to be healthy.
    type: float
    default: 20
  timeout:
    description: After how many seconds a start is given up.
    type: float
    default: 180
  log_file:
    description: The file to which the kubelet logs, if it does not log to the journal.
    type: path
  backup_keep:
    description: How many backups of each file stay, the new one among them. V(0) keeps all of them.
    type: int
    default: 3
  call:
    description:
      - What tells this call from others. A call that is repeated waits for the change that it has begun, and returns
        its result. By default each call is another one.
    type: str
    default: ''
  patience:
    description:
      - For how many seconds the module waits for a change that goes on in a process of its own.
    type: float
    default: 900
seealso:
  - module: kubenode.cpu_manager.rollout_info
  - module: kubenode.cpu_manager.rollout_journal
"""

EXAMPLES = r"""
- name: Plan the node's change to the static policy
  kubenode.cpu_manager.rollout_info:
    cpu_manager_policy: static
    reserved_system_cpus: "0,12"
  register: plan

- name: Carry it out, and undo it if the kubelet does not run well
  kubenode.cpu_manager.kubelet_change:
    cpu_manager_policy: static
    reserved_system_cpus: "0,12"
    plan: "{{ plan }}"
    run: "{{ now(utc=true).isoformat() }}"
"""

RETURN = r"""
node: {description: "The name of the node, from C(/etc/hostname).", returned: always, type: str, sample: worker-3}
steps:
  description: The steps that were done, in order, with C(name) and C(changed).
  returned: success or failure of a step
  type: list
  elements: dict
  sample: [{"name": "Stop the kubelet", "changed": true}, {"name": "Start the kubelet", "changed": true}]
journal:
  description: The journal of the change afterwards; see M(kubenode.cpu_manager.rollout_journal). None if none is open.
  returned: success or failure of a step
  type: dict
  sample: null
backup_files:
  description: Where old files were kept, by their paths.
  returned: success or failure of a step
  type: dict
  sample: {"/var/lib/kubelet/config.yaml": "/var/lib/kubelet/config.yaml.20261121T101500Z~"}
notes:
  description: What others have written since the change that was taken back, and how it is kept.
  returned: success or failure of a step
  type: list
  elements: str
  sample: []
reconcile:
  description: What was written into cpusets of containers; see M(kubenode.cpu_manager.reconcile).
  returned: if that is a part of the plan
  type: dict
  sample: {"counts": {"kept": 40, "written": 1, "failed": 0, "skipped": 12}}
left_over:
  description: What failed after the change was made, and does not undo it.
  returned: if something failed so
  type: str
  sample: "Write the cpusets of containers as the checkpoint says: 1 containers do not have their CPUs"
running:
  description: Whether the change still goes on, as O(patience) is over.
  returned: if it goes on
  type: bool
  sample: true
problem:
  description: The step that failed, and why.
  returned: failure of a step
  type: str
  sample: "Start the kubelet: no kubelet runs"
outcome:
  description: What became of the node then.
  returned: failure of a step
  type: str
  sample: the node is as it was
undone:
  description: Whether everything was undone.
  returned: failure of a step
  type: bool
  sample: true
"""

import uuid
from typing import Any

from ..module_utils._base.ansible_module import Outcome, Parameters, difference, run
from ..module_utils._base.arguments import Arguments
from ..module_utils._base.errors import InputError, NodeError, option
from ..module_utils._base.tree import Tree
from ..module_utils._change.change_service import carried_out
from ..module_utils._change.node_change import BEGIN_DRAIN, CHANGE, END_DRAIN, UNDO
from ..module_utils._node.module import KUBELET, TRIED
from ..module_utils._node.wanted_settings import SETTINGS_ARGUMENTS
from ..module_utils._rollout.rollout_plan import PLAN


def work(tree: Tree, parameters: Parameters, check_mode: bool) -> Outcome:
    seconds, timeout = parameters["seconds"], parameters["timeout"]
    if not 0 <= seconds <= timeout:
        raise InputError("%g is not between 0 and the timeout, %g" % (seconds, timeout), where=option("seconds"))
    if not parameters["run"]:
        raise InputError("is empty", option("run"), "name the run, such as by its time")
    given = {**parameters, "call": parameters["call"] or uuid.uuid4().hex}
    result: dict[str, Any] = carried_out(tree, given, not check_mode)
    diff = [difference(*texts) for texts in result.pop("diff", ())]
    if result.pop("failed", False):
        failure = result.pop("failure")
        raise NodeError(result.pop("msg"), kind=failure["kind"]).returning(result)
    return Outcome(result, bool(result.pop("changed")), diff)


def main() -> None:
    run(
        work,
        KUBELET,
        TRIED,
        SETTINGS_ARGUMENTS,
        PLAN,
        Arguments(
            {
                "step": {"type": "str", "choices": [CHANGE, UNDO, BEGIN_DRAIN, END_DRAIN], "default": CHANGE},
                "plan": {"type": "dict"},
                "run": {"type": "str", "required": True},
                "rollout": {"type": "str", "default": ""},
                "drained": {"type": "bool", "default": False},
                "facts": {"type": "dict", "default": {}},
                "pods": {"type": "list", "elements": "dict"},
                "seconds": {"type": "float", "default": 20},
                "timeout": {"type": "float", "default": 180},
                "log_file": {"type": "path"},
                "backup_keep": {"type": "int", "default": 3},
                "call": {"type": "str", "default": ""},
                "patience": {"type": "float", "default": 900},
            },
            required_if=[("step", CHANGE, ("plan",))],
        ),
    )


if __name__ == "__main__":
    main()
