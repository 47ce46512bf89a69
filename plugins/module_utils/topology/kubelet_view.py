# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""CPUTopology: a machine as the kubelet's CPU manager sees it through cAdvisor, its averages included.

Source: pkg/kubelet/cm/cpumanager/topology/topology.go and cAdvisor's machine and sysinfo packages,
Kubernetes 1.33 to 1.36. Use it to predict the kubelet; for decisions of our own use Topology.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Iterable, Mapping, Sequence

from ..cpuset import CPUSet, count_bits, iterate_bits
from .model import Topology


class CPUTopology:
    """The table CPU -> core, socket, NUMA node, uncore cache, kept as {id: mask} of each kind.

    The three `cpus_per_...` are averages by integer division, not the size of any one element: with
    cores of unequal size they are wrong, and the kubelet's decisions with them.
    """

    # Whether the machine has more L3 caches than the kubelet sees.
    has_hidden_caches = False

    def __init__(self, rows: Iterable[Sequence[int]]) -> None:
        """Make the table. `rows` are (cpu, core, socket, NUMA node, uncore cache); a core's id is its lowest CPU."""
        self.cores: dict[int, int] = {}
        self.sockets: dict[int, int] = {}
        self.numa_nodes: dict[int, int] = {}
        self.uncore_caches: dict[int, int] = {}
        self.cpus = 0
        kinds = (self.cores, self.sockets, self.numa_nodes, self.uncore_caches)
        for cpu, *ids in rows:
            bit = 1 << cpu
            self.cpus |= bit
            for masks, number in zip(kinds, ids):
                masks[number] = masks.get(number, 0) | bit
        self.num_cpus = count_bits(self.cpus)
        self.num_cores = len(self.cores)
        self.num_sockets = len(self.sockets)
        self.num_numa_nodes = len(self.numa_nodes)
        self.num_uncore_caches = len(self.uncore_caches)
        self.cpus_per_core = _average(self.num_cpus, self.num_cores)
        self.cpus_per_socket = _average(self.num_cpus, self.num_sockets)
        self.cpus_per_uncore_cache = _average(self.num_cpus, self.num_uncore_caches)
        self.smallest_numa_node = min(map(count_bits, self.numa_nodes.values()), default=0)
        self.smallest_socket = min(map(count_bits, self.sockets.values()), default=0)
        self.smallest_group = min(self.smallest_numa_node, self.smallest_socket)
        self._inside: dict[tuple[str, str], dict[int, list[tuple[int, int]]]] = {}

    def inside(self, outer: str, inner: str) -> dict[int, list[tuple[int, int]]]:
        """Return {id of an `outer`: (id, mask) of each `inner` with CPUs in it, by id}; both are names of
        attributes."""
        found = self._inside.get((outer, inner))
        if found is None:
            elements = sorted(getattr(self, inner).items())
            found = {
                number: [element for element in elements if element[1] & mask]
                for number, mask in getattr(self, outer).items()
            }
            self._inside[outer, inner] = found
        return found

    @cached_property
    def regular(self) -> bool:
        """True when all cores have equally many CPUs, and each is in one NUMA node and one socket."""
        return all(
            count_bits(mask) == self.cpus_per_core
            and self._is_in_one(mask, self.numa_nodes)
            and self._is_in_one(mask, self.sockets)
            for mask in self.cores.values()
        )

    @cached_property
    def numa_nodes_in_one_socket(self) -> frozenset[int]:
        """The ids of the NUMA nodes that have all their CPUs in one socket."""
        return frozenset(number for number, mask in self.numa_nodes.items() if self._is_in_one(mask, self.sockets))

    @staticmethod
    def _is_in_one(mask: int, masks: Mapping[int, int]) -> bool:
        return sum(1 for group in masks.values() if mask & group) == 1

    def all_cpus(self) -> CPUSet:
        """Return every CPU that the kubelet knows of."""
        return CPUSet.from_mask(self.cpus)

    def to_dict(self) -> dict[str, Any]:
        """Return the CPUs and the counts as plain data."""
        return {
            "cpus": str(self.all_cpus()),
            "num_cpus": self.num_cpus,
            "num_cores": self.num_cores,
            "num_sockets": self.num_sockets,
            "num_numa_nodes": self.num_numa_nodes,
            "num_uncore_caches": self.num_uncore_caches,
            "cpus_per_core": self.cpus_per_core,
            "cpus_per_socket": self.cpus_per_socket,
            "cpus_per_uncore_cache": self.cpus_per_uncore_cache,
        }

    def cpus_of_nodes(self, nodes: int) -> int:
        """Return the mask of the CPUs of a mask of NUMA node ids."""
        cpus = 0
        for node in iterate_bits(nodes):
            cpus |= self.numa_nodes.get(node, 0)
        return cpus

    def physical_cpus(self, cpus: CPUSet) -> CPUSet:
        """Return all CPUs of all cores that contain one of `cpus`."""
        mask = 0
        for core in self.cores.values():
            if core & cpus.mask:
                mask |= core
        return CPUSet.from_mask(mask)


def kubelet_view(topology: Topology) -> CPUTopology:
    """Return what the kubelet makes of this machine. CPUs of no NUMA node do not exist for it."""
    socket_of = {cpu: group.id for group in topology.sockets for cpu in group.cpus}
    all_cores = _cores(topology)
    rows = []
    # Where the machine tells of no NUMA nodes, cAdvisor takes each socket for one.
    for node in topology.numa_nodes if topology.numa or not topology.sockets else topology.sockets:
        cores = [cpus & node.cpus for cpus in all_cores if cpus & node.cpus]
        for cpus in cores:
            socket = socket_of.get(cpus.first(), 0)
            uncore = socket
            # cAdvisor asks the thread that it found first, in the order of the names of directories. It sees no cache
            # of a machine that does not give them ids.
            asked = min(cpus, key=str)
            for cache in topology.caches if topology.cache_ids else ():
                # A cache that the whole node shares belongs to the node; cAdvisor tells it by this product.
                if asked in cache.cpus and len(cache.cpus) != len(cores) * len(cpus):
                    uncore = cache.id
                    break
            rows += [(cpu, cpus.first(), socket, node.id, uncore) for cpu in cpus]
    view = CPUTopology(rows)
    view.has_hidden_caches = len(topology.caches) > view.num_uncore_caches
    return view


def _cores(topology: Topology) -> list[CPUSet]:
    """Return the CPUs of each core; cAdvisor takes those of one id and socket for one."""
    cores = [core.cpus for core in topology.cores if all(core.cpus.isdisjoint(cpus) for cpus in topology.same_ids)]
    return sorted([*cores, *topology.same_ids], key=CPUSet.first)


def _average(total: int, parts: int) -> int:
    return total // parts if parts else 0
