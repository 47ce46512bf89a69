#!/usr/bin/python
# -*- coding: utf-8 -*-

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_report
short_description: Read a node, and write the result to a file on the controller
version_added: 0.1.0
author:
  - the kubenode.cpu_manager developers (@kubenode)
description:
  - Runs M(kubenode.cpu_manager.rollout_info) on the node, and writes its complete result below O(directory), on the
    controller. The result of the task itself is short, so that ten thousand nodes do not fill the memory of Ansible.
  - M(kubenode.cpu_manager.fleet_report) makes the report of these files.
  - Takes every option of M(kubenode.cpu_manager.rollout_info), too, with the same meaning. Those of the group
    C(kubenode.cpu_manager.cpu_manager) can be given under C(module_defaults).
  - With O(look_at), M(kubenode.cpu_manager.isolation_info), M(kubenode.cpu_manager.throttling_info),
    M(kubenode.cpu_manager.housekeeping_info), M(kubenode.cpu_manager.cache_info),
    M(kubenode.cpu_manager.admission_info) or M(kubenode.cpu_manager.kubelet_trial) run on the node, too, one after the
    other. Their findings are in the report.
    If one of them fails, this is a note in the report.
  - An earlier result of the node in O(directory) is replaced. The task fails for a node that cannot be reached or
    read, or whose options are wrong, after the file is written. The file contains the error, too. To make the report of
    all hosts nevertheless, write it in the C(always) section of the block that has this task.
extends_documentation_fragment:
  - kubenode.cpu_manager.node
  - kubenode.cpu_manager.kubelet
  - kubenode.cpu_manager.settings
  - kubenode.cpu_manager.attributes
attributes:
  check_mode:
    support: full
    details:
      - Reads the node, and writes the file on the controller in check mode, too. O(textfile) is not written.
  diff_mode:
    support: none
  idempotent:
    support: full
options:
  directory:
    description: The directory of the report, on the controller. The file goes to C(nodes) below it.
    type: path
    required: true
  fleet:
    description: A name of the fleet, which goes into the file.
    type: str
    default: ''
  from_variables:
    description:
      - Whether the options for the node that are not given here are taken from the variables of the host.
        O(option_names) has the variable of each option.
      - The role C(kubelet) uses this. An expression with all variables would be compiled again for each host.
    type: bool
    default: false
  waivers:
    description:
      - Findings on this node that are accepted for now. They are reported as waived until the end of their last day,
        and count again afterwards.
    type: list
    elements: dict
    default: []
    suboptions:
      check:
        description: The id of the check, such as V(policy-differs).
        type: str
        required: true
      reason:
        description: Why, for people.
        type: str
        required: true
      until:
        description: The last day, such as V(2026-12-31).
        type: str
        required: true
      subject:
        description: The only subject to which this applies, such as C(cpu_manager_policy). By default all subjects.
        type: str
  hide_names:
    description:
      - Whether the file has hashes in place of the names of pods, namespaces and containers; see
        M(kubenode.cpu_manager.rollout_info).
    type: bool
    default: false
  may_lack_kubelet:
    description:
      - Whether a host without a kubelet is left out on purpose, as a bastion is.
      - Otherwise, such a host counts as one that could not be read, and the task fails for it. It may have a kubelet
        that was not found, as with the root directory of another machine.
    type: bool
    default: false
  textfile:
    description:
      - A file on the node, for the textfile collector of its node exporter. By default none is written. In check mode
        it is not written; of a saved node it is one below its root, if its directory is there.
    type: path
  ask_kubelet:
    description:
      - Whether the settings of the running kubelet are read through the API server, from
        C(/api/v1/nodes/NAME/proxy/configz).
      - It needs the Python library C(kubernetes) on the controller, and the right to get C(nodes/proxy). Whoever has
        this right can run commands in every pod of the node.
    type: bool
    default: false
  look_at:
    description:
      - What else is measured on each node, which takes longer than to read its files.
      - V(isolation) is what else ran on the exclusive CPUs of containers, as M(kubenode.cpu_manager.isolation_info)
        measures it on a running node. The file has it without its C(cpus).
      - V(throttling) is which quotas containers have, and how often they were throttled, as
        M(kubenode.cpu_manager.throttling_info) reads it.
      - V(housekeeping) is where the host's own work may run, as M(kubenode.cpu_manager.housekeeping_info) reads it. It
        is compared with O(reserved_system_cpus) or O(reservation), or else with what the kubelet reserves.
      - V(cache) is how the caches are divided, as M(kubenode.cpu_manager.cache_info) reads it.
      - V(impact) is what becomes of the node's pods with the wanted settings. M(kubenode.cpu_manager.admission_info)
        runs on the node, and O(impact_from) says who tells of its pods.
      - V(trial) is whether the node's own kubelet starts with its files, or that of O(trial_program), as
        M(kubenode.cpu_manager.kubelet_trial) lets it try that. A saved node has no trial.
      - A host without a kubelet is not measured.
    type: list
    elements: str
    choices: [isolation, throttling, housekeeping, cache, impact, trial]
    default: []
  look_seconds:
    description:
      - How long each of O(look_at) measures, from 1 to 3600 seconds. With V(0), which V(isolation) does not support,
        the result is what the kernel has counted since each cgroup was made. V(housekeeping), V(impact) and V(trial) do
        not use it, and V(cache) measures the bandwidth of memory for so long, if resctrl counts it.
    type: int
    default: 5
  impact_from:
    description:
      - Who tells of the pods for V(impact) in O(look_at). V(api) is the API server, of which the node and its pods are
        read. It takes the Python library C(kubernetes) on the controller, and the rights to get nodes and to list pods
        of all namespaces.
      - With V(nodes), the node itself tells of its pods, by O(kubenode.cpu_manager.admission_info#module:pods), and so
        does a saved node.
    type: str
    choices: [api, nodes]
    default: api
  trial_program:
    description:
      - The path of another kubelet on the node, such as that of the next version, which V(trial) of O(look_at) starts
        in place of the node's own.
    type: str
  devices:
    description: With V(impact) in O(look_at), the option of M(kubenode.cpu_manager.admission_info).
    type: list
    elements: dict
    default: []
  node_name:
    description: The name of the node in the cluster. By default the name of the host in the inventory.
    type: str
  kubeconfig:
    description: The kubeconfig on the controller. By default that of the user.
    type: path
  context:
    description: The context in the kubeconfig. By default the current one.
    type: str
seealso:
  - module: kubenode.cpu_manager.fleet_report
  - module: kubenode.cpu_manager.rollout_info
  - module: kubenode.cpu_manager.isolation_info
  - module: kubenode.cpu_manager.throttling_info
  - module: kubenode.cpu_manager.housekeeping_info
  - module: kubenode.cpu_manager.cache_info
  - module: kubenode.cpu_manager.kubelet_trial
"""

EXAMPLES = r"""
- name: Report
  block:
    - name: Look at each node
      kubenode.cpu_manager.node_report:
        directory: /srv/reports/today
        cpu_manager_policy: static
        waivers:
          - check: reconcile-period-differs
            reason: "ticket 4711: the next rollout brings it"
            until: "2026-12-31"
  always:
    - name: Make the report
      kubenode.cpu_manager.fleet_report:
        directory: /srv/reports/today
      delegate_to: localhost
      run_once: true
"""

RETURN = r"""
status:
  description:
    - The status that M(kubenode.cpu_manager.rollout_info) returned, or C(failed) or C(unreachable).
  returned: always
  type: str
  sample: drift
file:
  description: The file on the controller.
  returned: always
  type: str
  sample: /srv/reports/today/nodes/worker-3.json
"""
