#!/usr/bin/python
# -*- coding: utf-8 -*-

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: start_check
short_description: Check whether a kubelet would start with a configuration on this node
version_added: 0.1.0
author:
  - the kubenode.cpu_manager developers (@kubenode)
description:
  - Predicts whether a kubelet of the given version would start on this node with its configuration, unchanged or with
    the given settings. It reads what the kubelet reads, in the kubelet's order. First come the flags, the configuration
    file, the drop-in files, the feature gates, and the values of all fields. The node's CPUs, NUMA nodes, memory, swap
    and cgroups follow. It also reads the CPU manager's checkpoint, the memory manager's state, and the checkpoints of
    in-place resizing, of dynamic resource allocation and of the device manager.
  - The kubelet may refuse something before its configuration is complete, such as an unknown flag, a feature gate that
    was removed, or a file that cannot be decoded. Then this is the only finding, because nothing after it can be
    checked. All later errors are reported at once, while the kubelet stops at the first one. Errors that do harm but do
    not keep the kubelet from starting, such as a misspelled key or an option without effect, are reported, too.
  - If the start depends on something that the node's files do not show, such as a cgroup of a saved node without
    C(/sys/fs/cgroup), RV(starts) is none, and RV(unknown) lists it.
  - The module does not fail if the kubelet would not start; use M(ansible.builtin.assert) for that. It fails if there
    is no kubelet.
  - It does not check whether certificates are valid, whether the container runtime and the API server answer, and
    whether ports are free.
  - With O(log_line), it explains a line that a kubelet has logged, and reads nothing of the node.
  - The rules and messages of Kubernetes 1.33 to 1.36 are tested against kubelets of these versions. For 1.29 to 1.32,
    the feature gates, flags, fields, their checks and policy options are taken from their sources. For 1.37, the
    feature gates, flags and checkpoints are. For 1.20 to 1.28 the known differences are taken into account. RV(notes)
    say how well the version is known. M(kubenode.cpu_manager.kubelet_trial) asks the kubelet itself.
options:
  log_line:
    description:
      - What a kubelet has logged, to be explained. It may be a whole line, or several, as C(journalctl), C(kubectl) or
        a log in JSON shows them, with all escapes. Of more than 65536 characters, the first are read.
      - It is looked up on the controller, without a network and without the node, in the same table as
        R(the page of errors,ansible_collections.kubenode.cpu_manager.docsite.errors). Options about the node have no
        effect then, so they can stay in C(module_defaults).
    type: str
extends_documentation_fragment:
  - kubenode.cpu_manager.node
  - kubenode.cpu_manager.kubelet
  - kubenode.cpu_manager.settings
  - kubenode.cpu_manager.attributes.info
seealso:
  - module: kubenode.cpu_manager.kubelet_config
  - module: kubenode.cpu_manager.checkpoint_info
  - module: kubenode.cpu_manager.drift_info
"""

EXAMPLES = r"""
- name: Check whether the kubelet would start after an upgrade
  kubenode.cpu_manager.start_check:
    kubelet_version: "1.36"
  register: upgrade

- name: Stop where it would not
  ansible.builtin.assert:
    that: upgrade.starts is true
    fail_msg: >-
      {{ upgrade.findings | selectattr('fatal') | map(attribute='text') | join(' and ') }}
      {{ upgrade.unknown | map(attribute='reason') | join(' and ') }}

- name: Check whether it would start with the static policy
  kubenode.cpu_manager.start_check:
    cpu_manager_policy: static
    cpu_manager_policy_options:
      full-pcpus-only: "true"
    reservation:
      count: 4

- name: Explain what a kubelet has logged
  kubenode.cpu_manager.start_check:
    log_line: "{{ lookup('ansible.builtin.file', 'kubelet.log') }}"
  register: log
  delegate_to: localhost

- name: Show the causes
  ansible.builtin.debug:
    msg: "{{ log.explained | map(attribute='cause') }}"
"""

RETURN = r"""
explained:
  description:
    - The refusals that O(log_line) has, the best match first, and at most ten. Empty if none is known.
    - A text that a kubelet prints for several reasons is there once for each.
  returned: with O(log_line)
  type: list
  elements: dict
  contains:
    text:
      description: The kubelet's words, with C(<name>) for what differs from node to node.
      type: str
      sample: 'unknown policy: "<policy>"'
    cause:
      description: Why. Empty for a value that cannot be read, which the text around it explains.
      type: str
      sample: there is no such CPU manager policy; upper and lower case count
    remedy:
      description: What to do about it.
      type: str
      sample: write none or static
    check:
      description: The id of the check of the drift report that finds it before a start. Empty for a pod's refusal.
      type: str
      sample: kubelet-would-not-start
    section:
      description: The part of the page of errors.
      type: str
      sample: "CPU manager: policy and options"
node:
  description: The name of the node, from C(/etc/hostname).
  returned: without O(log_line)
  type: str
  sample: worker-3
starts:
  description:
    - Whether the kubelet would start, as far as it depends on what is checked. None where that cannot be
      determined; see RV(unknown).
  returned: success, without O(log_line)
  type: bool
  sample: false
kubelet_version:
  description: The version whose rules were applied.
  returned: success, without O(log_line)
  type: str
  sample: "1.36"
findings:
  description: All errors that were found.
  returned: success, without O(log_line)
  type: list
  elements: dict
  contains:
    text:
      description:
        - The kubelet's message, without the text around it; or systemd's, where systemd does not start the kubelet.
        - Empty if something does harm without a message of the kubelet.
      type: str
      sample: "unrecognized feature gate: CPUManager"
    cause:
      description: Why.
      type: str
      sample: Kubernetes 1.33 removed this gate; what it switched is always on
    remedy:
      description: What to do about it.
      type: str
      sample: remove it from featureGates
    fatal:
      description: Whether it keeps the kubelet from starting.
      type: bool
      sample: true
    where:
      description: The field of the configuration, the flag, the resource or the file.
      type: str
      sample: featureGates.CPUManager
    context:
      description:
        - What the kubelet prints right before the text, so that the line of its journal can be found. Empty if it
          prints nothing before it, or if that is unknown.
      type: str
      sample: "failed to parse kubelet flag: "
unknown:
  description: What the start also depends on, but the node's files do not show. Empty if they show everything.
  returned: success, without O(log_line)
  type: list
  elements: dict
  contains:
    reason:
      description: What it is, and why it cannot be determined.
      type: str
      sample: "it cannot be seen whether the kubelet finds the cgroup /podruntime.slice"
    where:
      description: The field of the configuration, the flag or the file that it is about.
      type: str
      sample: kubeReservedCgroup
notes:
  description: Whether the version, whose rules have to be applied, is uncertain.
  returned: success, without O(log_line)
  type: list
  elements: str
  sample:
    - "the rules for a kubelet 1.30 are not tested against one: its feature gates, flags, fields, their checks and
      policy options are known from its sources; the words of its errors, and which CPUs it takes, are not certain: let
      its kubelet try the start (kubelet_trial), or try one node first"
"""

from typing import Mapping

from ..module_utils._base.ansible_module import Outcome, run
from ..module_utils._base.arguments import Arguments
from ..module_utils._base.tree import Tree
from ..module_utils._node.module import KUBELET, node_of
from ..module_utils._node.start_check import start_report
from ..module_utils._node.wanted_settings import SETTINGS_ARGUMENTS, wanted_settings

# The action plugin of this name answers it, on the controller, which has the table.
LOG_LINE = Arguments({"log_line": {"type": "str"}})


def work(tree: Tree, parameters: Mapping[str, object], check_mode: bool) -> Outcome:
    node = node_of(tree, parameters)
    return Outcome(start_report(node, wanted_settings(node, parameters)))


def main() -> None:
    run(work, KUBELET, SETTINGS_ARGUMENTS, LOG_LINE)


if __name__ == "__main__":
    main()
