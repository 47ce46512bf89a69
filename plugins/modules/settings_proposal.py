#!/usr/bin/python
# -*- coding: utf-8 -*-

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: settings_proposal
short_description: Propose the kubelets' CPU settings of a fleet, by the shapes of its nodes
version_added: 0.1.0
author:
  - the kubenode.cpu_manager developers (@kubenode)
description:
  - Puts the nodes of a fleet into groups. Those of one group have equal machines, as far as it matters, and the same is
    wanted of them. Decides the variables of the roles P(kubenode.cpu_manager.kubelet#role) and
    P(kubenode.cpu_manager.housekeeping#role) for each group, each with its reason.
  - With O(directory) it writes C(group_vars), an inventory of the groups, and a table, but only where every kubelet
    would start with them. O(plans) then are those with the proposed settings.
  - It runs on the controller, and reads no node. The playbook C(propose) calls it twice, and plans the nodes with what
    it decided in between.
  - Each file begins with a SHA-256 sum of the rest. A file that was edited is not overwritten.
extends_documentation_fragment:
  - kubenode.cpu_manager.attributes
  - kubenode.cpu_manager.node.names
attributes:
  check_mode:
    support: full
    details:
      - A file that was edited makes a run fail, and gives a warning in check mode, so that all differences are seen.
  diff_mode:
    support: full
  idempotent:
    support: full
  action:
    description: Runs on the controller alone.
    support: full
options:
  validate_only:
    description:
      - Check the arguments only, before nodes are read.
    type: bool
    default: false
  plans:
    description:
      - By host, the result of M(kubenode.cpu_manager.rollout_info). For the first call, without any setting. For the
        second one, with RV(settings) of the first.
    type: dict
    required: true
  wishes:
    description:
      - By host, the wishes for it, with the keys below.
      - C(workload) is C(latency), C(batch) or C(virtual_machines).
      - C(reservation) sets how many CPUs the system gets, with the options of M(kubenode.cpu_manager.reserved_cpus).
        The default is the curve of managed Kubernetes.
      - C(share_cores) is whether two pods may run on the threads of one core. By default for C(batch) only.
      - C(numa_alignment) is a policy of the topology manager. By default C(single-numa-node) for C(latency),
        C(restricted) for C(virtual_machines) and C(none) for C(batch).
      - C(housekeeping) is whether variables of the role P(kubenode.cpu_manager.housekeeping#role) are proposed, too.
    type: dict
    required: true
  directory:
    description:
      - Where the files go. By default nothing is written.
    type: path
  inventory:
    description:
      - By host, the values that variables of the role P(kubenode.cpu_manager.kubelet#role) have in the inventory, to
        warn about those that contradict the proposal.
    type: dict
    default: {}
  node_names:
    description:
      - By host, the name of the node in the cluster. By default that of the host.
    type: dict
    default: {}
  node_objects:
    description:
      - What to write for the API server, too.
      - V(labels) are labels of the nodes, with the policies, the workload and the shape.
      - V(node_resource_topologies) are objects of C(topology.node.k8s.io/v1alpha2), with the CPUs of each NUMA node
        after the reservation.
    type: list
    elements: str
    choices: [labels, node_resource_topologies]
    default: []
  history:
    description:
      - Files C(drift.json) of earlier reports with the look C(throttling), or directories with some. RV(notes) then say
        of each node whether what is proposed to be reserved is what its host uses.
    type: list
    elements: path
    default: []
  overwrite_edited:
    description:
      - Whether files that were edited are overwritten.
    type: bool
    default: false
  skip_hosts_without_kubelet:
    description:
      - Whether to leave out hosts such as a bastion. Otherwise such a host makes the task fail.
    type: bool
    default: false
seealso:
  - module: kubenode.cpu_manager.rollout_info
  - module: kubenode.cpu_manager.reserved_cpus
"""

EXAMPLES = r"""
- name: Read each node
  kubenode.cpu_manager.rollout_info:
  register: plan

- name: Show what would fit
  kubenode.cpu_manager.settings_proposal:
    plans: "{{ {inventory_hostname: plan} }}"
    wishes: "{{ {inventory_hostname: {'workload': 'latency', 'reservation': {'count': 4}}} }}"
  register: proposal

- name: Check that the kubelet would start with it
  kubenode.cpu_manager.start_check: "{{ proposal.settings[inventory_hostname] }}"
"""

RETURN = r"""
groups:
  description: The groups, by their names.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: The name, from the workload and the machine.
      type: str
      sample: latency_cpus48_sockets2_numa2_caches2_threads2
    machine:
      description: What the nodes have in common.
      type: str
      sample: 48 CPUs, 2 sockets, 2 NUMA nodes, 2 L3 caches, 24 cores of 2 threads
    workload:
      description: What runs there.
      type: str
      sample: latency
    kubelet_versions:
      description: The minor versions of the kubelets. The oldest decides which options are proposed.
      type: list
      elements: str
      sample: ["1.35", "1.36"]
    hosts:
      description: The hosts.
      type: list
      elements: str
      sample: [worker-1, worker-2]
    variables:
      description: The variables of the group.
      type: dict
      sample: {"kubelet_cpu_manager_policy": "static", "kubelet_reservation": {"count": 4, "strategy": "spread"}}
    reasons:
      description: By variable, why it has this value.
      type: dict
      sample: {"kubelet_cpu_manager_policy": "Containers of Guaranteed pods get CPUs of their own."}
settings:
  description: By host, the settings for the kubelet as options of modules, such as
    M(kubenode.cpu_manager.rollout_info).
  returned: success
  type: dict
  sample: {"worker-1": {"cpu_manager_policy": "static", "reservation": {"count": 4, "strategy": "spread"}}}
files:
  description: The files that were written, or would be. Files that already have the right content are not among them.
  returned: with O(directory)
  type: list
  elements: str
  sample: [/srv/proposal/inventory.yml]
objects:
  description: The objects of O(node_objects).
  returned: with O(directory)
  type: list
  elements: dict
  sample: []
notes:
  description: Information for the rollout, such as why it would be refused today.
  returned: with O(directory)
  type: list
  elements: str
  sample: []
"""
