#!/usr/bin/python
# -*- coding: utf-8 -*-

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: allocation_report
short_description: Say of each pod on how many nodes of a fleet it fits
version_added: 0.1.0
author:
  - the kubenode.cpu_manager developers (@kubenode)
description:
  - What the playbook C(plan) shows of a fleet. It takes the variable C(kubelet_allocation) of all hosts of the play,
    which is the answer of M(kubenode.cpu_manager.allocation_plan). It says of each pod on how many nodes it fits, and
    why the others refuse it. Each node is asked for all pods, as if none of them ran on another node.
  - A node without an answer is named with the reason.
  - It runs on the controller, once, and writes its file in check mode, too.
extends_documentation_fragment:
  - kubenode.cpu_manager.attributes.controller
  - kubenode.cpu_manager.node.names
options:
  path:
    description: A file on the controller for the same as JSON. By default none is written.
    type: path
seealso:
  - module: kubenode.cpu_manager.allocation_plan
"""

EXAMPLES = r"""
- name: Show where the pods fit
  kubenode.cpu_manager.allocation_report:
    path: placements.json
  run_once: true
"""

RETURN = r"""
nodes: {description: How many nodes were asked., returned: success, type: int, sample: 300}
pods:
  description: The pods in the order in which they arrive.
  returned: success
  type: list
  elements: dict
  contains:
    pod:
      description: Namespace and name of the pod.
      type: str
      sample: shop/db-0
    fits:
      description: The hosts that would admit it.
      type: list
      elements: str
      sample: [worker-1, worker-2]
    refused:
      description: The hosts that would refuse it, by the kubelet's reason.
      type: dict
      sample: {"SMTAlignmentError": ["worker-3"]}
    as_whole:
      description:
        - How many CPUs a pod has that has CPUs as a whole. Also how many of them each container has for itself, how
          many the others share, and how many none uses. Init containers, which have ended before the others begin,
          count among these containers. Only of such a pod that some node admits.
      type: dict
      sample: {"cpus": 6, "own": {"engine": 2}, "shared": 4, "unused": 0}
unread:
  description: The hosts without an answer, by the reason.
  returned: success
  type: dict
  sample: {}
"""
