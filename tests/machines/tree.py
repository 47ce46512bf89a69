# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Write the /sys/devices/system/{cpu,node} and /proc/cpuinfo of a topology, as a Linux kernel on x86 shows them."""

from __future__ import annotations

import os
from typing import Iterable, Mapping

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.model import Group, Topology

from .shape import parse_name
from .texts import cpuinfo

CPU = "sys/devices/system/cpu"
NODE = "sys/devices/system/node"

# CONFIG_NR_CPUS of the distributions' kernels, less one.
KERNEL_MAX = 8191
NODE_MEMORY = 64 << 20  # KiB

# level, type, size; then who shares it: the core, or the topology's L3 cache.
CORE_CACHES = ((1, "Data", "32K"), (1, "Instruction", "32K"), (2, "Unified", "1024K"))
L3_SIZE = "32768K"


def write_machine(root: str | os.PathLike[str], name: str) -> Topology:
    """Write the files of the machine of a shape, such as `1s4c2t+offline3`; its topology."""
    shape = parse_name(name)
    topology = shape.topology()
    write_tree(topology, root, shape.whole())
    return topology


def write_tree(
    topology: Topology,
    root: str | os.PathLike[str],
    whole: Topology | None = None,
    with_cpuinfo: bool = True,
    with_numa: bool = True,
    old_kernel: bool = False,
    with_access: bool = False,
) -> None:
    """Write the machine's files below the directory `root`, which need not exist.

    whole: the machine with all CPUs switched on, which knows the NUMA nodes of those that are off.
    with_numa: False for a kernel that was built without NUMA; it has no node directory.
    old_kernel: True for one before 4.11, which had neither ids of caches nor dies, and the old names only.
    with_access: True for a machine whose firmware says which node each node's memory is nearest to (HMAT).
    """
    _TreeWriter(topology, os.fspath(root), whole or topology, old_kernel).write(with_cpuinfo, with_numa, with_access)


class _TreeWriter:
    def __init__(self, topology: Topology, root: str, whole: Topology, old_kernel: bool) -> None:
        self.topology = topology
        self.root = root
        self.present = topology.online | topology.offline
        self.possible = CPUSet.from_mask((2 << max(self.present)) - 1)
        self.old_kernel = old_kernel
        # Those that are there already: to ask for each file takes longer than to write it.
        self.directories: set[str] = set()
        self.whole = whole
        self.home = {cpu: node.id for node in whole.numa_nodes for cpu in node.cpus}
        self.core_numbers = {cpu: number for number, core in enumerate(whole.cores) for cpu in core.cpus}

    def write(self, with_cpuinfo: bool, with_numa: bool, with_access: bool) -> None:
        self._cpu_files()
        cores = {cpu: core.cpus for core in self.topology.cores for cpu in core.cpus}
        for cpu in self.present:
            if cpu != 0 or cpu in self.topology.offline:
                self._file("%s/cpu%d/online" % (CPU, cpu), "%d" % (cpu in self.topology.online))
            else:
                self._directory("%s/cpu%d" % (CPU, cpu))  # CPU 0 cannot be switched off
            if cpu in self.topology.online:
                self._topology_files(cpu, cores[cpu])
                self._cache_files(cpu, cores[cpu])
        if with_numa:
            self._node_files()
            for node in self.topology.numa_nodes:
                self._files_of_node(node, with_access)
        if with_cpuinfo:
            self._file("proc/cpuinfo", cpuinfo(self.topology), end="")

    def _cpu_files(self) -> None:
        topology = self.topology
        self._files(
            CPU,
            {
                "online": topology.online,
                "offline": topology.offline | (self.possible - self.present),
                "present": self.present,
                "possible": self.possible,
                "isolated": topology.isolated,
                "nohz_full": topology.nohz_full or "  (null)",
                "kernel_max": KERNEL_MAX,
            },
        )
        active = topology.threads_per_core > 1
        control = "on" if active else "off" if self.whole.threads_per_core > 1 else "notsupported"
        self._files(CPU + "/smt", {"active": int(active), "control": control})

    def _topology_files(self, cpu: int, core: CPUSet) -> None:
        path = "%s/cpu%d/topology" % (CPU, cpu)
        sets = [("thread_siblings", "core_cpus", core)]
        ids = {"core_id": self.core_numbers[cpu]}
        for group in _of(self.topology.sockets, cpu):
            sets.append(("core_siblings", "package_cpus", group.cpus))
            ids["physical_package_id"] = group.id
        for group in _of(self.whole.sockets, cpu):
            # The kernel counts cores in their socket.
            ids["core_id"] = sorted({self.core_numbers[sibling] for sibling in group.cpus}).index(
                self.core_numbers[cpu]
            )
        for group in () if self.old_kernel else _of(self.topology.dies, cpu):
            sets.append(("", "die_cpus", group.cpus))
            ids["die_id"] = group.id
        self._files(path, ids)
        for old_name, new_name, cpus in sets:
            for name in (old_name,) if self.old_kernel else filter(None, (old_name, new_name)):
                self._files(path, {name: self._mask(cpus), name + "_list": cpus})

    def _cache_files(self, cpu: int, core: CPUSet) -> None:
        caches = [(level, kind, size, self.core_numbers[cpu], core) for level, kind, size in CORE_CACHES]
        caches += [(3, "Unified", L3_SIZE, group.id, group.cpus) for group in _of(self.topology.caches, cpu)]
        for index, (level, kind, size, cache_id, cpus) in enumerate(caches):
            path = "%s/cpu%d/cache/index%d" % (CPU, cpu, index)
            self._files(
                path,
                {
                    "level": level,
                    "type": kind,
                    "size": size,
                    "coherency_line_size": 64,
                    "shared_cpu_map": self._mask(cpus),
                    "shared_cpu_list": cpus,
                },
            )
            if not self.old_kernel:
                self._file(path + "/id", "%d" % cache_id)

    def _node_files(self) -> None:
        nodes = self.topology.numa_nodes
        ids = CPUSet(node.id for node in nodes)
        self._files(
            NODE,
            {
                "online": ids,
                "possible": CPUSet.from_mask((2 << max(ids)) - 1),
                "has_cpu": CPUSet(node.id for node in nodes if node.cpus),
                "has_memory": ids,
                "has_normal_memory": ids,
            },
        )

    def _files_of_node(self, node: Group, with_access: bool) -> None:
        path = "%s/node%d" % (NODE, node.id)
        row = self.topology.numa_distances.get(node.id, {})
        memory = (("MemTotal", NODE_MEMORY), ("MemFree", NODE_MEMORY // 2), ("MemUsed", NODE_MEMORY // 2))
        self._files(
            path,
            {
                "cpumap": self._mask(node.cpus),
                "cpulist": node.cpus,
                "distance": " ".join(str(row[target]) for target in sorted(row)) or "10",
                "meminfo": "\n".join("Node %d %-15s %8d kB" % (node.id, name + ":", size) for name, size in memory),
            },
        )
        for cpu in self.present:
            if self.home.get(cpu) == node.id:
                self._link("%s/cpu%d" % (path, cpu), "../../cpu/cpu%d" % cpu)
                self._link("%s/cpu%d/node%d" % (CPU, cpu, node.id), "../../node/node%d" % node.id)
        if with_access:
            near = self.topology.nearest_cpus.get(node.id, node.cpus)
            for target in self.topology.numa_nodes:
                if not target.cpus.isdisjoint(near):
                    self._link("%s/access1/initiators/node%d" % (path, target.id), "../../../node%d" % target.id)

    def _mask(self, cpus: CPUSet) -> str:
        """Return groups of 32 bits as the kernel pads them: the first has the digits that the possible CPUs need."""
        return kernel_mask(cpus, max(self.possible) + 1)

    def _files(self, directory: str, values: Mapping[str, object]) -> None:
        for name, value in values.items():
            self._file("%s/%s" % (directory, name), str(value))

    def _file(self, path: str, text: str, end: str = "\n") -> None:
        self._directory(os.path.dirname(path))
        with open(os.path.join(self.root, path), "wb") as file:
            file.write((text + end).encode("ascii"))

    def _link(self, path: str, target: str) -> None:
        self._directory(os.path.dirname(path))
        os.symlink(target, os.path.join(self.root, path))

    def _directory(self, path: str) -> None:
        if path not in self.directories:
            os.makedirs(os.path.join(self.root, path), exist_ok=True)
            self.directories.add(path)


def kernel_mask(cpus: CPUSet, bits: int) -> str:
    """Return the text of a mask of `bits` bits, as the kernel's "%*pb" prints it."""
    digits = "%0*x" % ((bits + 3) // 4, cpus.mask)
    first = len(digits) % 8
    groups = [digits[:first]] if first else []
    return ",".join(groups + [digits[at : at + 8] for at in range(first, len(digits), 8)])


def _of(groups: Iterable[Group], cpu: int) -> Iterable[Group]:
    return (group for group in groups if cpu in group.cpus)
