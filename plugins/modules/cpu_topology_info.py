#!/usr/bin/python
# -*- coding: utf-8 -*-

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cpu_topology_info
short_description: Read the CPU topology of a node
version_added: 0.1.0
author:
  - the kubenode.cpu_manager developers (@kubenode)
description:
  - Reads which CPUs a node has and which core, die, socket, NUMA node and L3 cache each belongs to.
  - Also returns the machine as the kubelet counts it, which differs where CPUs are offline or cores are unequal.
extends_documentation_fragment:
  - kubenode.cpu_manager.node
  - kubenode.cpu_manager.attributes.info
options:
  source:
    description:
      - What to read. V(sysfs) is complete; V(cpuinfo) reads only C(/proc/cpuinfo), for a saved machine that has
        nothing else.
      - The others read O(text), the output of C(lscpu -p), of C(lstopo --of xml), or cAdvisor's C(MachineInfo) as
        JSON.
    type: str
    choices: [sysfs, cpuinfo, lscpu, hwloc, cadvisor]
    default: sysfs
  text:
    description:
      - The text to read a topology from, for the values V(lscpu), V(hwloc) and V(cadvisor) of O(source).
    type: str
"""

EXAMPLES = r"""
- name: Read the CPU topology of the node
  kubenode.cpu_manager.cpu_topology_info:
  register: cpu

- name: Show the CPUs of each NUMA node
  ansible.builtin.debug:
    var: cpu.topology.numa_nodes

- name: Read a topology that lscpu printed elsewhere
  kubenode.cpu_manager.cpu_topology_info:
    source: lscpu
    text: "{{ lookup('ansible.builtin.file', 'node7.lscpu') }}"
"""

RETURN = r"""
node: {description: "The name of the node, from C(/etc/hostname).", returned: always, type: str, sample: worker-3}
topology:
  description: The machine. All sets of CPUs are texts in the kernel's list format.
  returned: success
  type: dict
  contains:
    online:
      description: The CPUs that are online.
      type: str
      sample: 0-47
    offline:
      description: The CPUs that are present and switched off.
      type: str
      sample: ""
    cores:
      description: The online threads of each core, by lowest CPU.
      type: list
      elements: str
      sample: ["0,24", "1,25"]
    dies:
      description: The CPUs of each die, by id.
      type: dict
      sample: {"0": "0-11,24-35"}
    sockets:
      description: The CPUs of each socket, by id.
      type: dict
      sample: {"0": "0-11,24-35", "1": "12-23,36-47"}
    numa:
      description: Whether the machine has NUMA nodes. If not, all CPUs are in one here, and the kubelet takes
        each socket for one.
      type: bool
      sample: true
    numa_nodes:
      description: The CPUs of each NUMA node, by id; empty for one with memory only.
      type: dict
      sample: {"0": "0-11,24-35", "1": "12-23,36-47"}
    l3_caches:
      description: The CPUs of each L3 cache, by id.
      type: dict
      sample: {"0": "0-11,24-35", "1": "12-23,36-47"}
    numa_distances:
      description: The distance from each NUMA node to each.
      type: dict
      sample: {"0": {"0": 10, "1": 21}, "1": {"0": 21, "1": 10}}
    nearest_cpus:
      description: The CPUs nearest to each NUMA node that has none of its own.
      type: dict
      sample: {}
    isolated:
      description: The CPUs that the kernel was booted to isolate.
      type: str
      sample: ""
    nohz_full:
      description: The CPUs that the kernel runs without a tick.
      type: str
      sample: ""
    problems:
      description: Errors in the machine's own description, and facts that mislead the kubelet.
      type: list
      elements: str
      sample: []
    same_ids:
      description: The CPUs of several cores to which the kernel gives one id in their socket and NUMA node, as on many
        ARM boards. The kubelet takes them for one core.
      type: list
      elements: str
      sample: []
    l3_cache_ids:
      description: Whether the kernel gives ids to the L3 caches; with firmware of ARM it often does not. The kubelet
        ignores caches without ids.
      type: bool
      sample: true
kubelet_view:
  description: The machine as the kubelet's CPU manager counts it, averages included.
  returned: success
  type: dict
  contains:
    cpus:
      description: The CPUs that the kubelet uses.
      type: str
      sample: 0-47
    num_cpus:
      description: How many these are.
      type: int
      sample: 48
    num_cores:
      description: How many cores.
      type: int
      sample: 24
    num_sockets:
      description: How many sockets.
      type: int
      sample: 2
    num_numa_nodes:
      description: How many NUMA nodes with CPUs.
      type: int
      sample: 2
    num_uncore_caches:
      description: How many uncore caches; where a NUMA node has one L3 cache, its socket stands for it.
      type: int
      sample: 2
    cpus_per_core:
      description: CPUs divided by cores, rounded down.
      type: int
      sample: 2
    cpus_per_socket:
      description: CPUs divided by sockets, rounded down.
      type: int
      sample: 24
    cpus_per_uncore_cache:
      description: CPUs divided by uncore caches, rounded down.
      type: int
      sample: 24
"""

from typing import Mapping

from ..module_utils._base.ansible_module import Outcome, Parameters, run
from ..module_utils._base.arguments import Arguments
from ..module_utils._base.errors import InputError
from ..module_utils._base.tree import Tree
from ..module_utils.topology.kubelet_view import kubelet_view
from ..module_utils.topology.model import Topology
from ..module_utils.topology.sysfs import read_sysfs


def read(tree: Tree, parameters: Parameters) -> Topology:
    """Return the topology from the source that was asked for. A reader is imported where it is used: most runs need
    none."""
    source, text = parameters["source"], parameters["text"]
    if source == "lscpu":
        from ..module_utils.topology.lscpu import read_lscpu

        return read_lscpu(text)
    if source == "hwloc":
        from ..module_utils.topology.hwloc import read_hwloc

        return read_hwloc(text)
    if source == "cadvisor":
        from ..module_utils.topology.cadvisor import read_machine_info

        return read_machine_info(text)
    if source == "cpuinfo":
        from ..module_utils.topology.cpuinfo import read_cpuinfo

        cpuinfo = tree.read_text("/proc/cpuinfo")
        try:
            return read_cpuinfo(cpuinfo)
        except InputError as error:
            raise tree.damaged("/proc/cpuinfo", str(error)) from error
    return read_sysfs(tree)


def work(tree: Tree, parameters: Mapping[str, object], check_mode: bool) -> Outcome:
    topology = read(tree, parameters)
    return Outcome({"topology": topology.to_dict(), "kubelet_view": kubelet_view(topology).to_dict()})


def main() -> None:
    run(
        work,
        Arguments(
            {
                "source": {
                    "type": "str",
                    "choices": ["sysfs", "cpuinfo", "lscpu", "hwloc", "cadvisor"],
                    "default": "sysfs",
                },
                "text": {"type": "str"},
            },
            required_if=[("source", source, ["text"]) for source in ("lscpu", "hwloc", "cadvisor")],
        ),
    )


if __name__ == "__main__":
    main()
