#!/usr/bin/python
# -*- coding: utf-8 -*-

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rollout_verdict
short_description: Judge the change of a fleet from the plans of its nodes
version_added: 0.1.0
author:
  - the kubenode.cpu_manager developers (@kubenode)
description:
  - What the role P(kubenode.cpu_manager.kubelet#role) and the playbooks C(rollout), C(rollback) and C(repair) decide on
    the controller. It takes the variables C(kubelet_plan) and C(kubelet_fixed) of all hosts of the play, and changes
    nothing.
  - It reads nodes and pods from the API server if pods must find room on other nodes, if an interrupted change has
    drained a node, and with O(impact). It does so with C(kubernetes.core.k8s_info) on the host that the task is
    delegated to. Pods are in no result and no log, but for the names of workloads and of refused pods with O(impact).
extends_documentation_fragment:
  - kubenode.cpu_manager.attributes.controller
  - kubenode.cpu_manager.node.names
options:
  step:
    description:
      - V(plan) returns the plan as text, and what the run needs the cluster for. It keeps which hosts change, and which
        are refused, for the lookup P(kubenode.cpu_manager.hosts#lookup). For a rollback, it first chooses the rollout
        that the fleet goes back from. It fails if a node is not known, or if no node has had a rollout. It also fails
        if a node names a rollout whose time is in the future or is not a time, and if a single node names the newest
        and others name another.
      - V(role) does the same, and fails if what the run needs the cluster for cannot be done from here.
      - V(node) fails if this node cannot be changed, with all reasons.
      - V(cluster) fails if what the run needs the cluster for cannot be done from here, as with
        M(kubenode.cpu_manager.kubernetes_core_check). With O(impact), it returns what the change does to the live
        workloads of the cluster, and fails if that is too much. The admission of all pods of each node that changes is
        replayed, as its kubelet will be.
      - V(batch) fails if a batch must not be changed, because more hosts were lost than may fail, or because pods would
        find no CPUs on the other nodes.
      - V(recover) fails if pods may have come to this node since a change of it was interrupted.
      - V(sum) says in one line what became of the nodes.
    type: str
    choices: [plan, role, node, cluster, batch, recover, sum]
    required: true
  change:
    description: What the run does.
    type: str
    choices: [rollout, repair, rollback]
    default: rollout
  rollback_of:
    description:
      - With V(plan), the rollout that the operator has named. By default, the newest is chosen.
    type: str
    default: ''
  done_so_far:
    description: With V(node), what was changed already. By default nothing.
    type: str
    default: ''
  skip_hosts_without_kubelet:
    description: Whether hosts without a kubelet are left out.
    type: bool
    default: false
  max_fail_percentage:
    description: With V(plan), how many of the hosts may be refused, and with V(batch), how many may be lost.
    type: int
    default: 0
  fleet:
    description: With V(batch), the hosts whose nodes may take pods, also those that do not change.
    type: list
    elements: str
    default: []
  purpose:
    description: With V(cluster), what the cluster is needed for. By default it is not needed.
    type: str
    default: ''
  alternative:
    description: With V(cluster), how the run can do without the cluster.
    type: str
    default: ''
  impact:
    description: With V(cluster), whether to find out what becomes of the pods.
    type: bool
    default: false
  impact_from:
    description:
      - With V(cluster) and O(impact), who tells of the pods. V(nodes) is each node itself, without an API server, by
        what O(kubenode.cpu_manager.admission_info#module:pods) reads. Then each pod stands for itself, and whether
        another node takes what is refused is not known.
    type: str
    choices: [api, nodes]
    default: api
  as_lines:
    description: With V(cluster), whether RV(msg) is a list of lines.
    type: bool
    default: false
  fail_on:
    description:
      - With V(cluster), what is to stop the change. V(refused) is a workload of which a node refuses a pod, V(homeless)
        one of which no node that a pod may come to takes it, which O(impact_from=nodes) does not tell.
    type: str
    choices: [never, refused, homeless]
    default: never
  waivers:
    description:
      - With V(cluster), the workloads that do not stop the change, each with its C(workload) as RV(msg) names it, a
        C(reason), and C(until), the last day.
      - A waiver counts in one cluster, C(cluster), named by its context, or without one by its kubeconfig. It may be
        left out where the hosts have one cluster, and is refused without it where they have several.
    type: list
    elements: raw
    default: []
  dest:
    description:
      - With V(cluster), the file on the controller that the impact is written to, as JSON.
      - R(What becomes of the pods, ansible_collections.kubenode.cpu_manager.docsite.impact) describes it.
    type: path
  schedule:
    description:
      - With V(cluster), whether to find out in which order and how many at a time the hosts are changed, by what runs
        on their nodes. Where nodes are drained, nodes, pods and PodDisruptionBudgets are read from the API server.
    type: bool
    default: false
  schedule_dest:
    description:
      - With V(cluster), the file on the controller that RV(schedule) is written to, as JSON.
    type: path
  drain_seconds:
    description:
      - With V(cluster), how many seconds the drain and the change of a node take. V(0) for the median of what the
        nodes have measured at their last drain, as M(kubenode.cpu_manager.rollout_info) says it in C(last).
    type: int
    default: 0
seealso:
  - module: kubenode.cpu_manager.rollout_info
"""

EXAMPLES = r"""
- name: Judge the plans of all nodes
  kubenode.cpu_manager.rollout_verdict:
    step: plan
  register: verdict
  run_once: true
"""

RETURN = r"""
of:
  description: Which run of this C(ansible-playbook) it is, as RV(kubenode.cpu_manager.fix_values#module:run).
  returned: with V(plan)
  type: str
  sample: 525400a1-64fd-92d5-b64d-00000000000a
rollback_of:
  description: The rollout that the fleet goes back from. Empty if the run is no rollback.
  returned: with V(plan)
  type: str
  sample: "2026-11-22T09:30:00.123456"
schedule:
  description:
    - In which order and how many at a time the hosts are changed. C(batches) has the C(hosts) of each batch, and how
      many C(pods) leave them; C(seconds) is how long it takes, null where that is not known. C(measured) is how many
      drains were measured of which C(node_seconds), the time of a batch, is the median.
  returned: with O(schedule)
  type: dict
  sample: {"batches": [{"hosts": ["worker-3"], "pods": 12}], "seconds": 600}
told:
  description: What is to be shown to the operator.
  returned: with V(plan)
  type: str
  sample: "Nothing to do: worker-1, worker-2"
run:
  description: The name of the run, its time in UTC.
  returned: with V(plan)
  type: str
  sample: "2026-11-22T09:30:00.123456"
hosts:
  description: The hosts that are going to be drained, or were for a change that was interrupted.
  returned: with V(plan)
  type: list
  elements: str
  sample: [worker-3]
purpose:
  description: What the cluster is needed for.
  returned: with V(plan)
  type: str
  sample: draining and uncordoning worker-3
alternative:
  description: How the run can do without the cluster; empty if it cannot.
  returned: with V(plan)
  type: str
  sample: drain nodes yourself and set kubelet_drain to false
msg:
  description: What becomes of each workload and what each node has afterwards, and why the change is not begun.
  returned: with V(cluster) and O(impact)
  type: raw
"""
