#!/usr/bin/python
# -*- coding: utf-8 -*-

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: checkpoint_info
short_description: Read a CPU manager checkpoint and check whether the kubelet would accept it
version_added: 0.1.0
author:
  - the kubenode.cpu_manager developers (@kubenode)
description:
  - Reads C(cpu_manager_state) and checks it as the kubelet would at its next start, with the present or the planned
    configuration.
extends_documentation_fragment:
  - kubenode.cpu_manager.node
  - kubenode.cpu_manager.kubelet
  - kubenode.cpu_manager.settings
  - kubenode.cpu_manager.attributes.info
seealso:
  - module: kubenode.cpu_manager.checkpoint
"""

EXAMPLES = r"""
- name: Check whether the kubelet would start with another reservation
  kubenode.cpu_manager.checkpoint_info:
    reserved_system_cpus: "0-1,24-25"
  register: answer

- name: Show its answer
  ansible.builtin.debug:
    msg: "{{ answer.checkpoint.verdict }} {{ answer.checkpoint.reason }}"
"""

RETURN = r"""
node: {description: "The name of the node, from C(/etc/hostname).", returned: always, type: str, sample: worker-3}
file:
  description: The checkpoint.
  returned: success
  type: str
  sample: /var/lib/kubelet/cpu_manager_state
checkpoint:
  description: What the file contains, and whether the kubelet would accept it.
  returned: success
  type: dict
  contains:
    verdict:
      description: C(accepted), C(refused) or C(absent).
      type: str
      sample: accepted
    reason:
      description: Why the kubelet refuses it, in its words.
      type: str
      sample: ""
    remedy:
      description: What to do about it.
      type: str
      sample: ""
    format:
      description: The format of the file, C(v1) to C(v4), if it can be read.
      type: str
      sample: v2
    checksum_right:
      description: Whether the kubelet accepts the checksum in the file.
      type: bool
      sample: true
    policy:
      description: The policy in the file, if it can be read.
      type: str
      sample: static
    default_cpu_set:
      description: The shared pool, if it can be read.
      type: str
      sample: 0-3,6-47
    assignments:
      description: The exclusive CPUs by pod UID and container, as far as they can be read.
      type: dict
      sample: {"8dbda0f5-4d4c-4b9c-b4c2-5e8b0c7e7f4a": {"app": "4-5"}}
    pod_assignments:
      description: The CPUs of whole pods by pod UID, which only the formats C(v3) and C(v4) have.
      type: dict
      sample: {}
    lost:
      description:
        - Exclusive CPUs of containers that do not run, and that no container of their pod has that runs. An init
          container that has ended keeps them until its pod ends. Empty if it is not known which containers run.
      type: list
      elements: dict
      contains:
        pod:
          description: The namespace and name of the pod; its UID if these are unknown.
          type: str
          sample: shop/database-0
        container:
          description: The container.
          type: str
          sample: load
        cpus:
          description: The CPUs.
          type: str
          sample: "6"
      sample: []
kubelet_says:
  description: The complete message with which the kubelet refuses the file; empty if it accepts the file.
  returned: success
  type: str
  sample: ""
notes:
  description:
    - As RV(kubenode.cpu_manager.start_check#module:notes), and how to get the CPUs in RV(checkpoint.lost) back.
  returned: success
  type: list
  elements: str
  sample: []
"""

from typing import Mapping

from ..module_utils._base.ansible_module import Outcome, run
from ..module_utils._base.tree import Tree
from ..module_utils._node.container_cpus import lost_in, lost_notes, unowned_notes
from ..module_utils._node.module import KUBELET, node_of
from ..module_utils._node.start_check import planned_config
from ..module_utils._node.wanted_settings import SETTINGS_ARGUMENTS, wanted_settings
from ..module_utils.state.acceptance import judge
from ..module_utils.state.checkpoint import restore_error


def work(tree: Tree, parameters: Mapping[str, object], check_mode: bool) -> Outcome:
    node = node_of(tree, parameters)
    observed, _notes = node.observed(node.configuration())
    # Not before the containers: the kubelet writes a container's CPUs down before it starts the container.
    judgement = judge(node.checkpoint(), planned_config(node, wanted_settings(node, parameters)))
    says = restore_error(judgement.reason, node.checkpoint_path) if judgement.unread else judgement.reason
    found = lost_in(observed, judgement.state)
    unowned = [] if judgement.state is None else unowned_notes(judgement.state)
    return Outcome(
        {
            "file": tree.path(node.checkpoint_path),
            "checkpoint": {**judgement.to_dict(), "lost": [lost.to_dict() for lost in found]},
            "kubelet_says": says,
            "notes": [*lost_notes(found), *unowned, *node.version_notes()],
        }
    )


def main() -> None:
    run(work, KUBELET, SETTINGS_ARGUMENTS)


if __name__ == "__main__":
    main()
