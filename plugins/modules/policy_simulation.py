#!/usr/bin/python
# -*- coding: utf-8 -*-

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: policy_simulation
short_description: Replay traces of pods on a machine under the policies none, static and dynamic
version_added: 0.1.0
author:
  - the kubenode.cpu_manager developers (@kubenode)
description:
  - Replays when pods start and end, and how many of their threads are ready to run, on the CPUs of a machine. Counts
    how many run and how many wait under each policy.
  - Writes for each trace a picture that shows which pod had which CPU at which time, and the figures. Compares the
    policies dynamic and static, pod by pod.
  - Runs on the controller and changes no node. The guide on the policy dynamic lists the limits of the model.
extends_documentation_fragment:
  - kubenode.cpu_manager.attributes.controller
  - kubenode.cpu_manager.node.names
options:
  directory:
    description: Where the files go, on the controller.
    type: path
    required: true
  host:
    description: The name of the machine in titles and file names.
    type: str
    required: true
  topology:
    description:
      - The machine, as RV(kubenode.cpu_manager.cpu_topology_info#module:topology) gives it.
      - Exactly one of O(topology) and O(machine) is required.
    type: dict
  machine:
    description: The machine, such as V(2 sockets x 12 cores x 2 threads), the largest parts first.
    type: str
  traces:
    description:
      - V(services), V(batch) and V(crowded) are made for the machine; the guide on the policy dynamic describes them.
      - A mapping is a trace of your own, in the form that the same guide describes. One with pods that have CPUs as a
        whole is not replayed under dynamic, which gives them nothing, if O(policies) has another.
    type: list
    elements: raw
    default: [services, batch, crowded]
  seed:
    description: The seed of the random numbers. The same seed gives the same trace.
    type: int
    default: 1
  policies:
    description: The policies to replay under.
    type: list
    elements: str
    choices: [none, static, dynamic]
    default: [none, static, dynamic]
  policy_options:
    description: Options of the static policy, which the policy dynamic takes, too.
    type: dict
    default: {}
  reserved_system_cpus:
    description:
      - The reserved CPUs.
      - By default the first core.
    type: str
  topology_manager_policy:
    description:
      - The kubelet's topology manager, which decides on pods by the NUMA nodes of their CPUs, memory and devices. Under
        the policy dynamic, the kubelet gives out no CPUs, and it decides by the others.
    type: str
    choices: [none, best-effort, restricted, single-numa-node]
    default: none
  topology_manager_scope:
    description: What is aligned, each container or the whole pod.
    type: str
    choices: [container, pod]
    default: container
  numa_memory:
    description:
      - The memory and huge pages of each NUMA node. With it, the memory manager has the policy Static, and gives memory
        to the Guaranteed pods of traces that ask for it in C(resources).
    type: list
    elements: dict
    suboptions: &memory
      numa_node:
        description: The NUMA node.
        type: int
        required: true
      amounts:
        description: How much, such as V({"memory":"64Gi","hugepages-1Gi":"8Gi"}). Huge pages are part of the memory.
        type: dict
        required: true
  reserved_memory:
    description: What the memory manager keeps of it, on at least one NUMA node. Required with O(numa_memory).
    type: list
    elements: dict
    suboptions: *memory
  devices:
    description: The devices of plugins, which pods of traces ask for in C(resources).
    type: list
    elements: dict
    default: []
    suboptions:
      resource:
        description: The resource, such as V(nvidia.com/gpu).
        type: str
        required: true
      count:
        description: How many devices.
        type: int
        required: true
      numa_nodes:
        description: The NUMA nodes that each of them is on. Empty where the plugin does not say any.
        type: list
        elements: int
        default: []
  shared_minimum:
    description: How many CPUs the policy dynamic keeps in the shared pool beside the reserved ones.
    type: int
    default: 0
  settle:
    description: For how many seconds a CPU that was moved to another owner is not moved again by growing or shrinking.
    type: float
    default: 30
  delay:
    description: How many seconds before a container loses a CPU this is announced to it, V(0) to V(60).
    type: float
    default: 5
  period:
    description: How many seconds are between two passes of the policy dynamic, V(1) to V(3600).
    type: float
    default: 10
seealso:
  - module: kubenode.cpu_manager.allocation_plan
"""

EXAMPLES = r"""
- name: Replay a day of services on a machine that is still to be bought
  kubenode.cpu_manager.policy_simulation:
    host: candidate
    machine: 2 sockets x 24 cores x 2 threads
    traces: [services]
    directory: /srv/simulation

- name: See which pods of a trace are refused where each has its memory and its GPU on one NUMA node
  kubenode.cpu_manager.policy_simulation:
    host: candidate
    machine: 2 sockets x 24 cores x 2 threads
    traces: ["{{ lookup('ansible.builtin.file', 'trace.json') | from_json }}"]
    topology_manager_policy: single-numa-node
    numa_memory:
      - {numa_node: 0, amounts: {memory: 128Gi}}
      - {numa_node: 1, amounts: {memory: 128Gi}}
    reserved_memory:
      - {numa_node: 0, amounts: {memory: 1Gi}}
    devices:
      - {resource: nvidia.com/gpu, count: 2, numa_nodes: [0]}
    directory: /srv/simulation
"""

RETURN = r"""
files:
  description: The files that were written, for each trace a picture and its figures.
  returned: success
  type: list
  elements: str
  sample: [/srv/simulation/simulation-worker-3-services.svg, /srv/simulation/simulation-worker-3-services.json]
reserved:
  description: The reserved CPUs.
  returned: success
  type: str
  sample: 0,24
traces:
  description: The results of each trace.
  returned: success
  type: list
  elements: dict
  contains:
    trace:
      description: Its name.
      type: str
      sample: services
    description:
      description: Its description.
      type: str
      sample: services, seed 1, for 48 CPUs
    pods:
      description: How many pods it has.
      type: int
      sample: 17
    seconds:
      description: How long it is.
      type: float
      sample: 7200.0
    policies:
      description:
        - The figures of each policy. C(utilisation) is the part of all CPUs that ran threads. C(waiting_part) is the
          part of the threads that waited. C(moves) is how often a pass gave a container or the shared pool other CPUs.
        - C(pods) has the same for each pod.
      type: list
      elements: dict
      sample: [{"policy": "static", "utilisation": 0.391, "waiting_part": 0.309, "moves": 0, "refused": []}]
    dynamic_beside_static:
      description:
        - Which pods wait longer (C(worse)) and shorter (C(better)) under dynamic than under static, and by how many
          seconds of threads. C(never_worse) is whether none waits longer by more than a thousandth of one.
        - Null unless it was replayed under both.
      type: dict
      sample: {"never_worse": true, "worse": [], "thread_seconds_saved": 39786.0, "part_saved": 0.9875}
isolated:
  description:
    - How the static policy uses the CPUs that the machine was booted to isolate. C(shared) are isolated CPUs that
      containers share until they become exclusive, C(reserved) those that no container ever gets, C(not_isolated) CPUs
      that may become exclusive although they are not isolated. C(reserve) is the reservation with which the last two
      are empty.
    - C(strict) is whether the option strict-cpu-reservation leaves only isolated CPUs to be shared.
  returned: success
  type: dict
  sample: {"shared": "", "reserved": "", "not_isolated": "", "reserve": "", "strict": false, "harmless": true}
"""
