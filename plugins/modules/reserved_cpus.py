#!/usr/bin/python
# -*- coding: utf-8 -*-

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: reserved_cpus
short_description: Decide which CPUs of a node to reserve
version_added: 0.1.0
author:
  - the kubenode.cpu_manager developers (@kubenode)
description:
  - Plans which CPUs of a node to reserve for the system and for Kubernetes, from the node's own topology.
  - The plan has exactly the requested number of online CPUs, in whole cores, and never all CPUs.
  - Or predicts which CPUs the kubelet itself reserves for O(kube_reserved_cpu) and O(system_reserved_cpu).
  - Changes nothing; the result contains ready values for the kubelet, the kernel's command line and systemd.
extends_documentation_fragment:
  - kubenode.cpu_manager.node
  - kubenode.cpu_manager.reservation.planner
  - kubenode.cpu_manager.attributes.info
options:
  method:
    description:
      - V(plan) decides by the rules above. V(kubelet) predicts the static policy's own choice, its oddities included.
    type: str
    choices: [plan, kubelet]
    default: plan
  smt:
    description:
      - V(off) plans for a node whose SMT is to be switched off, where only the first thread of each core stays
        online.
    type: str
    choices: ["keep", "off"]
    default: "keep"
  kube_reserved_cpu:
    description:
      - The C(cpu) of C(kubeReserved), a quantity such as V(500m). For O(method=kubelet).
    type: str
    default: "0"
  system_reserved_cpu:
    description:
      - The C(cpu) of C(systemReserved), a quantity such as V(1500m). For O(method=kubelet).
    type: str
    default: "0"
  cpu_manager_policy_options:
    description:
      - The options of the static policy, which also steer what it reserves with O(method=kubelet), and of what size
        RV(largest_pod) is.
    type: dict
    default: {}
"""

EXAMPLES = r"""
- name: Reserve four CPUs, as many of each NUMA node
  kubenode.cpu_manager.reserved_cpus:
    count: 4
    strategy: spread
  register: plan

- name: Show the list for reservedSystemCPUs
  ansible.builtin.debug:
    var: plan.settings.reserved_system_cpus

- name: Reserve by the size of the machine, near the network card
  kubenode.cpu_manager.reserved_cpus:
    curve:
      - {cpus: 1, fraction: 0.06}
      - {cpus: 1, fraction: 0.01}
      - {cpus: 2, fraction: 0.005}
      - {fraction: 0.0025}
    near_device: eth0

- name: Predict what the kubelet reserves by itself
  kubenode.cpu_manager.reserved_cpus:
    method: kubelet
    kube_reserved_cpu: 500m
    system_reserved_cpu: 1500m
"""

RETURN = r"""
node: {description: "The name of the node, from C(/etc/hostname).", returned: always, type: str, sample: worker-3}
reserved:
  description: The reserved CPUs in the kernel's list format.
  returned: success
  type: str
  sample: 0,12,24,36
count:
  description: How many these are.
  returned: success
  type: int
  sample: 4
mask:
  description: The reserved CPUs in the kernel's mask format.
  returned: success
  type: str
  sample: 10,01001001
isolated:
  description: The CPUs that are left to the pods.
  returned: success
  type: str
  sample: 1-11,13-23,25-35,37-47
switched_off:
  description: The threads that switching SMT off takes offline.
  returned: success
  type: str
  sample: ""
split_core:
  description: The core of which only a part is reserved, empty where there is none.
  returned: success
  type: str
  sample: ""
numa_nodes:
  description: The reserved CPUs of each NUMA node.
  returned: success
  type: dict
  sample: {"0": "0,24", "1": "12,36"}
largest_pod:
  description:
    - What the reservation costs the largest pod. For each strategy and policy of the topology manager, this is the
      largest container of a Guaranteed pod that the empty node admits with the static policy. The planned strategy
      comes first and then the other; with O(method=kubelet) there is V(kubelet) alone.
    - A strategy that cannot reserve so many is left out, and so are policies other than V(none) with more than eight
      NUMA nodes. Empty with O(smt=off).
  returned: success
  type: dict
  sample:
    spread:
      none: {"cpus": 44, "refused": ""}
      best-effort: {"cpus": 44, "refused": ""}
      restricted: {"cpus": 44, "refused": "23-24"}
      single-numa-node: {"cpus": 22, "refused": ""}
    packed:
      none: {"cpus": 44, "refused": ""}
      best-effort: {"cpus": 44, "refused": ""}
      restricted: {"cpus": 44, "refused": ""}
      single-numa-node: {"cpus": 24, "refused": ""}
  contains:
    packed:
      description: The same for C(spread) and C(kubelet).
      type: dict
      contains:
        restricted:
          description: The same for the other policies.
          type: dict
          contains:
            cpus:
              description: How many CPUs the largest container has.
              type: int
            refused:
              description: Smaller numbers of CPUs that are refused, as a list of ranges.
              type: str
settings:
  description: The plan in the form that others take.
  returned: success
  type: dict
  contains:
    reserved_system_cpus:
      description: For C(reservedSystemCPUs) of the kubelet.
      type: str
      sample: 0,12,24,36
    isolcpus:
      description: For C(isolcpus=) on the kernel's command line.
      type: str
      sample: 1-11,13-23,25-35,37-47
    irqaffinity:
      description: For C(irqaffinity=) on the kernel's command line.
      type: str
      sample: 0,12,24,36
    cpu_affinity:
      description: For C(CPUAffinity=) of systemd.
      type: str
      sample: 0,12,24,36
"""

from contextlib import suppress
from typing import Any, Mapping

from ..module_utils._base.ansible_module import Outcome, Parameters, run
from ..module_utils._base.arguments import Arguments
from ..module_utils._base.errors import InputError
from ..module_utils._base.quantity import millis
from ..module_utils._base.tree import Tree
from ..module_utils._base.versions import NEWEST_MINOR
from ..module_utils._kubelet.settings import check_settings
from ..module_utils._node.reservation_request import RESERVATION, reserve
from ..module_utils.cpuset import CPUSet
from ..module_utils.policy.largest_pod import largest_pods
from ..module_utils.policy.options import StaticOptions, parse_static_options, texts_of_options
from ..module_utils.policy.reservation import PACKED, SPREAD, Reservation, kubelet_reservation
from ..module_utils.topology.kubelet_view import kubelet_view
from ..module_utils.topology.model import Topology
from ..module_utils.topology.sysfs import read_sysfs


def largest(tree: Tree, topology: Topology, parameters: Parameters, plan: Reservation) -> dict[str, Any]:
    """Return what the largest pod is with the plan, and with that of the other strategy."""
    if plan.switched_off:
        return {}
    plans = {"kubelet": plan}
    if parameters["method"] != "kubelet":
        strategy = parameters["strategy"]
        plans = {strategy: plan}
        opposite = SPREAD if strategy == PACKED else PACKED
        # It may be that the other one cannot reserve so many.
        with suppress(InputError):
            plans[opposite] = reserve(tree, topology, {**parameters, "strategy": opposite})
    options, view = options_of(parameters), kubelet_view(topology)
    return {
        name: {policy: sizes.to_dict() for policy, sizes in largest_pods(view, made.reserved, options).items()}
        for name, made in plans.items()
    }


def options_of(parameters: Parameters) -> StaticOptions:
    """Return options of every maturity count: a prediction needs no feature gate."""
    return parse_static_options(texts_of_options(parameters["cpu_manager_policy_options"]), NEWEST_MINOR, True)


def predict(topology: Topology, parameters: Parameters) -> Reservation:
    """Return what the kubelet reserves."""
    quantities = {name: parameters[name] for name in ("kube_reserved_cpu", "system_reserved_cpu")}
    check_settings(quantities)
    millicores = sum(map(millis, quantities.values()))
    reserved = kubelet_reservation(kubelet_view(topology), millicores, options_of(parameters))
    return Reservation(reserved, topology.online - reserved, CPUSet(), CPUSet())


def work(tree: Tree, parameters: Mapping[str, object], check_mode: bool) -> Outcome:
    topology = read_sysfs(tree)
    if parameters["method"] == "kubelet":
        if any(parameters[way] is not None for way in ("count", "fraction", "curve")):
            raise InputError(
                "method kubelet reserves for kube_reserved_cpu and system_reserved_cpu, not for a count",
                remedy="omit it",
            )
        plan = predict(topology, parameters)
    else:
        plan = reserve(tree, topology, parameters)
    reserved, isolated = str(plan.reserved), str(plan.isolated)
    return Outcome(
        {
            "reserved": reserved,
            "count": len(plan.reserved),
            "mask": plan.reserved.to_mask(),
            "isolated": isolated,
            "switched_off": str(plan.switched_off),
            "split_core": str(plan.split_core),
            "numa_nodes": {str(node.id): str(node.cpus & plan.reserved) for node in topology.numa_nodes},
            "largest_pod": largest(tree, topology, parameters, plan),
            "settings": {
                "reserved_system_cpus": reserved,
                "isolcpus": isolated,
                "irqaffinity": reserved,
                "cpu_affinity": reserved,
            },
        }
    )


def main() -> None:
    run(
        work,
        RESERVATION,
        Arguments(
            {
                "method": {"type": "str", "choices": ["plan", "kubelet"], "default": "plan"},
                "kube_reserved_cpu": {"type": "str", "default": "0"},
                "system_reserved_cpu": {"type": "str", "default": "0"},
                "cpu_manager_policy_options": {"type": "dict", "default": {}},
            },
            required_if=[("method", "plan", ["count", "fraction", "curve"], True)],
        ),
    )


if __name__ == "__main__":
    main()
