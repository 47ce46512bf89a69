# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What of a topology each format tells: the part that its reader must find in it."""

from __future__ import annotations

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.model import Topology


def told_by_cpuinfo(topology: Topology) -> Topology:
    """Return what cpuinfo tells of a machine: online CPUs, cores and sockets."""
    return Topology(topology.online, [core.cpus for core in topology.cores], topology.sockets)


def told_by_lscpu(topology: Topology, with_all: bool = False) -> Topology:
    """Return what lscpu tells of a machine: no dies, no distances, only NUMA nodes with CPUs; offline CPUs on
    demand."""
    return Topology(
        online=topology.online,
        cores=[core.cpus for core in topology.cores],
        sockets=topology.sockets,
        numa_nodes=[node for node in topology.numa_nodes if node.cpus],
        caches=topology.caches,
        offline=topology.offline if with_all else CPUSet(),
    )


def told_by_hwloc(topology: Topology) -> Topology:
    """Return all but what the kernel was booted with, a die that is its whole socket, and the distance of a node to
    itself."""
    sockets = [socket.cpus for socket in topology.sockets]
    return Topology(
        online=topology.online,
        cores=[core.cpus for core in topology.cores],
        sockets=topology.sockets,
        dies=[die for die in topology.dies if die.cpus not in sockets],
        numa_nodes=topology.numa_nodes,
        caches=topology.caches,
        offline=topology.offline,
        numa_distances=topology.numa_distances if len(topology.numa_nodes) > 1 else None,
        nearest_cpus=topology.nearest_cpus,
    )


def told_by_machine_info(topology: Topology) -> Topology:
    """Return what cAdvisor's MachineInfo tells of a machine: no dies and no offline CPUs."""
    return Topology(
        online=topology.online,
        cores=[core.cpus for core in topology.cores],
        sockets=topology.sockets,
        numa_nodes=topology.numa_nodes,
        caches=topology.caches,
        numa_distances=topology.numa_distances,
        nearest_cpus=topology.nearest_cpus,
    )
