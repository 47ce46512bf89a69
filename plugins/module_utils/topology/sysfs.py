# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read a topology from sysfs.

Described in Linux's Documentation/admin-guide/cputopology.rst and Documentation/ABI/stable/sysfs-devices-node.
"""

from __future__ import annotations

from .._base.errors import InputError, NodeError
from .._base.tree import Tree, is_number
from ..cpuset import CPUSet
from .model import Group, Topology, nearest_by_distance, numbered

CPU = "/sys/devices/system/cpu"
NODE = "/sys/devices/system/node"

# Old and new names of the same mask. The masks are read rather than the lists: they are as old as the directory.
CORE_MASKS = ("core_cpus", "thread_siblings")
DIE_MASKS = ("die_cpus",)
SOCKET_MASKS = ("package_cpus", "core_siblings")

L3 = "3"


def read_sysfs(tree: Tree) -> Topology:
    """Return the topology of the machine whose /sys is in `tree`. Raises NodeError where that tells no CPU."""
    return _SysfsReader(tree).topology()


class _SysfsReader:
    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.problems: list[str] = []

    def topology(self) -> Topology:
        present, self.online = self._cpus()
        nodes = self._numa_nodes()
        distances = self._distances(nodes) if nodes else {}
        cores = self._siblings(CORE_MASKS)
        sockets = self._groups(SOCKET_MASKS, "physical_package_id")
        caches = self._caches()
        return Topology(
            online=self.online,
            cores=[cpus for _cpu, cpus in cores],
            sockets=sockets,
            dies=self._groups(DIE_MASKS, "die_id"),
            numa_nodes=nodes,
            caches=numbered(caches),
            offline=present - self.online,
            numa_distances=distances,
            nearest_cpus=self._nearest_cpus(nodes, distances) if nodes else {},
            isolated=self._list(CPU + "/isolated") or CPUSet(),
            nohz_full=self._list(CPU + "/nohz_full") or CPUSet(),
            problems=self.problems,
            same_ids=self._same_ids(cores, sockets, nodes or []),
            cache_ids=all(number is not None for _cpus, number in caches),
        )

    def _cpus(self) -> tuple[CPUSet, CPUSet]:
        """Return present and online CPUs; on a kernel or in a saved tree without these lists, those with a
        directory."""
        online = self._list(CPU + "/online")
        present = self._list(CPU + "/present")
        if online is None or present is None:
            directories = CPUSet(self.tree.numbered(CPU, "cpu"))
            present = directories if present is None else present
            if online is None:
                online = CPUSet(cpu for cpu in directories if self._is_online(cpu))
        if not online:
            raise NodeError(
                "no online CPU found",
                where=self.tree.path(CPU),
                remedy="is this a node's root directory, with its /sys?",
            )
        return present, online

    def _is_online(self, cpu: int) -> bool:
        # CPU 0 often has no such file: it cannot be switched off. An offline CPU has no topology.
        path = "%s/cpu%d" % (CPU, cpu)
        return self.tree.read_value(path + "/online") != "0" and self.tree.exists(path + "/topology")

    def _groups(self, mask_names: tuple[str, ...], id_name: str) -> list[Group]:
        found = self._siblings(mask_names)
        return numbered([(cpus, self._number("%s/cpu%d/topology/%s" % (CPU, cpu, id_name))) for cpu, cpus in found])

    def _siblings(self, mask_names: tuple[str, ...]) -> list[tuple[int, CPUSet]]:
        """Return the groups of online CPUs of one kind, such as the cores, each with its lowest CPU.

        A group is read from its lowest CPU only: all its CPUs tell the same, and on a big machine the
        time goes into opening files. A CPU whose mask begins with a CPU that does not name it in turn
        is in no group.
        """
        found = []
        seen = 0
        for cpu in self.online:
            if seen >> cpu & 1:
                continue
            path = "%s/cpu%d/topology/" % (CPU, cpu)
            cpus = self._first_mask(path, mask_names)
            if cpus is not None and self._is_own(cpu, cpus, seen, path + mask_names[-1]):
                seen |= cpus.mask
                found.append((cpu, cpus))
        return found

    def _same_ids(self, cores: list[tuple[int, CPUSet]], sockets: list[Group], nodes: list[Group]) -> list[CPUSet]:
        """Return the cores that have the id of another one in their socket and NUMA node.

        Linux counts the cores of each cluster anew where a device tree describes them, as on many ARM boards.
        """
        socket_of, node_of = ({cpu: group.id for group in kind for cpu in group.cpus} for kind in (sockets, nodes))
        found: dict[tuple[str, int | None, int | None], list[CPUSet]] = {}
        for cpu, cpus in cores:
            core_id = self.tree.read_value("%s/cpu%d/topology/core_id" % (CPU, cpu))
            if core_id is not None:
                found.setdefault((core_id, socket_of.get(cpu), node_of.get(cpu)), []).append(cpus)
        same = [CPUSet(cpu for cpus in members for cpu in cpus) for members in found.values() if len(members) > 1]
        for cpus in same:
            path = self.tree.path("%s/cpu%d/topology/core_id" % (CPU, cpus.first()))
            self.problems.append("%s: CPUs %s are of several cores; the kubelet takes them for one" % (path, cpus))
        return same

    def _caches(self) -> list[tuple[CPUSet, int | None]]:
        """Return the caches of level 3 with their ids, read from their lowest CPU as in _siblings()."""
        found: list[tuple[CPUSet, int | None]] = []
        seen = 0
        for cpu in self.online:
            if seen >> cpu & 1:
                continue
            directory = "%s/cpu%d/cache" % (CPU, cpu)
            # The highest level has the highest index: mostly the first look finds it.
            for index in reversed(self.tree.numbered(directory, "index")):
                path = "%s/index%d/" % (directory, index)
                if self.tree.read_value(path + "level") != L3 or self.tree.read_value(path + "type") == "Instruction":
                    continue
                cpus = self._first_mask(path, ("shared_cpu_map",))
                if not cpus:
                    # Some machines leave it empty: a cache of which only this CPU is known.
                    cpus = CPUSet([cpu])
                if self._is_own(cpu, cpus, seen, path + "shared_cpu_map"):
                    seen |= cpus.mask
                    found.append((cpus, self._number(path + "id")))
                break
        return found

    def _is_own(self, cpu: int, cpus: CPUSet, seen: int, path: str) -> bool:
        """Return whether this group, as its lowest online CPU tells it, may be believed."""
        if cpus and cpus.first() == cpu and not cpus.mask & seen:
            return True
        self.problems.append("%s: CPU %d is said to be with CPUs %s, which do not agree" % (path, cpu, cpus))
        return False

    def _numa_nodes(self) -> list[Group] | None:
        """Return the NUMA nodes with their online CPUs; None when the kernel shows none."""
        numbers = self.tree.numbered(NODE, "node")
        if not numbers:
            return None
        nodes: list[Group] = []
        seen = 0
        for number in numbers:
            path = "%s/node%d/" % (NODE, number)
            cpus = self._first_mask(path, ("cpumap",))
            if cpus is None:
                cpus = (self._list(path + "cpulist") or CPUSet()) & self.online
            if cpus.mask & seen:
                # With emulated NUMA, the maps of all nodes have all CPUs. A CPU is in the node that has its link, by
                # which the kubelet's cAdvisor goes.
                linked = CPUSet(self.tree.numbered(path, "cpu")) & self.online
                if linked.mask & seen or (cpus - linked).mask & ~seen:
                    text = "%scpumap: node %d claims CPUs of another node; it is left out" % (path, number)
                    self.problems.append(text)
                    continue
                cpus = linked
            seen |= cpus.mask
            nodes.append(Group(number, cpus))
        return nodes

    def _distances(self, nodes: list[Group]) -> dict[int, dict[int, int]]:
        """Return {node: {node: distance}}; a row has one figure for each online node, ascending."""
        distances = {}
        online = self._list(NODE + "/online")
        order = list(online) if online else [node.id for node in nodes]
        for node in nodes:
            row = (self.tree.read_value("%s/node%d/distance" % (NODE, node.id)) or "").split()
            if len(row) == len(order) and all(map(is_number, row)):
                distances[node.id] = {target: int(figure) for target, figure in zip(order, row)}
        return distances

    def _nearest_cpus(self, nodes: list[Group], distances: dict[int, dict[int, int]]) -> dict[int, CPUSet]:
        """Return the CPUs of the nearest nodes of each node that has memory only."""
        nearest = nearest_by_distance(nodes, distances)
        for node in nodes:
            if node.cpus:
                continue
            # The firmware may say it itself. access1 counts CPUs only, access0 other initiators of traffic too.
            path = "%s/node%d/" % (NODE, node.id)
            initiators = self.tree.numbered(path + "access1/initiators", "node")
            initiators = initiators or self.tree.numbered(path + "access0/initiators", "node")
            near = CPUSet(cpu for owner in nodes if owner.id in initiators for cpu in owner.cpus)
            if near:
                nearest[node.id] = near
        return nearest

    def _first_mask(self, path: str, names: tuple[str, ...]) -> CPUSet | None:
        for name in names:
            text = self.tree.read_value(path + name)
            if text:
                return self._parsed(CPUSet.parse_mask, path + name, text) & self.online
        return None

    def _list(self, path: str) -> CPUSet | None:
        text = self.tree.read_value(path)
        # nohz_full reads "(null)" on a kernel that was booted without it.
        return None if text is None else CPUSet() if text == "(null)" else self._parsed(CPUSet.parse, path, text)

    def _number(self, path: str) -> int | None:
        text = self.tree.read_value(path)
        return int(text) if text is not None and is_number(text) else None

    def _parsed(self, parse, path: str, text: str) -> CPUSet:  # type: ignore[no-untyped-def]
        try:
            return parse(text)  # type: ignore[no-any-return]
        except InputError as error:
            raise self.tree.damaged(path, str(error)) from error
