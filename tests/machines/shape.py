# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The shape of a machine, its name (the grammar is in __init__.py) and the topology it has."""

from __future__ import annotations

import re
from typing import Any, Callable, NamedTuple

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.model import Group, Topology

GROUP_LEVELS = "sdnl"
# The most that Linux takes on x86.
MOST_CPUS = 8192

# Of a NUMA node without CPUs to the node it is nearest to, and to others: what Linux shows for persistent memory.
MEMORY_DISTANCES = (17, 28)

_LEVELS = re.compile("(?:[0-9]{1,4}[a-z])+")
_LEVEL = re.compile("([0-9]+)([a-z])")
_FLAG = re.compile("([a-z]+)([0-9,-]*)")


class Core(NamedTuple):
    """One core: how many threads it has, and the number of each group that it is in."""

    threads: int
    groups: dict[str, int]


class Shape(NamedTuple):
    """A machine as its name tells it; __init__.py says what each part means."""

    # (letter, count), the groups of cores from the outside in.
    groups: tuple[tuple[str, int], ...]
    cores: int
    threads: int = 1
    single_cores: int = 0
    adjacent: bool = False
    interleaved: bool = False
    memory_nodes: int = 0
    node_ids: tuple[int, ...] = ()
    distances: tuple[int, int, int] = (10, 12, 21)
    offline: CPUSet = CPUSet()
    isolated: CPUSet = CPUSet()
    nohz_full: CPUSet = CPUSet()

    # --- its name --------------------------------------------------------------------------------

    def name(self) -> str:
        """Return the name that parse_name() reads back."""
        levels = [*self.groups, ("c", self.cores)]
        levels += [("t", self.threads)] if self.threads > 1 else []
        levels += [("e", self.single_cores)] if self.single_cores else []
        flags = [
            ("adjacent", "", self.adjacent),
            ("interleaved", "", self.interleaved),
            ("memory", str(self.memory_nodes), self.memory_nodes),
            ("nodes", str(CPUSet(self.node_ids)), self.node_ids),
            ("distances", "%d,%d,%d" % self.distances, self.distances != Shape((), 1).distances),
            ("offline", str(self.offline), self.offline),
            ("isolated", str(self.isolated), self.isolated),
            ("nohz", str(self.nohz_full), self.nohz_full),
        ]
        return "".join("%d%s" % (count, letter) for letter, count in levels) + "".join(
            "+%s%s" % (flag, value) for flag, value, wanted in flags if wanted
        )

    # --- the machine -----------------------------------------------------------------------------

    def topology(self) -> Topology:
        """Return the machine as it runs, perhaps with CPUs switched off. Raises InputError for a shape that cannot
        be."""
        whole = self.whole()
        wrong = (self.offline | self.isolated | self.nohz_full) - whole.online
        if wrong:
            raise InputError("%s: there is no CPU %s" % (self.name(), wrong))
        if self.offline == whole.online:
            raise InputError("%s: all its CPUs are offline" % self.name())
        off = whole.with_offline(self.offline)
        return Topology(
            online=off.online,
            cores=[core.cpus for core in off.cores],
            sockets=off.sockets,
            dies=off.dies,
            numa_nodes=off.numa_nodes,
            caches=off.caches,
            offline=off.offline,
            numa_distances=whole.numa_distances,
            nearest_cpus=_nearest_cpus(off.numa_nodes, whole.numa_distances),
            isolated=self.isolated,
            nohz_full=self.nohz_full,
        )

    def whole(self) -> Topology:
        """Return the machine with all its CPUs switched on."""
        cores = self._cores()
        threads = self._number_threads(cores)
        groups: dict[str, list[Group]] = {letter: [] for letter in GROUP_LEVELS}
        for letter in GROUP_LEVELS:
            members: dict[int, list[int]] = {}
            for core, cpus in zip(cores, threads):
                if letter in core.groups:
                    members.setdefault(core.groups[letter], []).extend(cpus)
            groups[letter] = [Group(number, CPUSet(cpus)) for number, cpus in members.items()]
        nodes = self._numa_nodes(groups["n"])
        distances = self._distances(nodes, groups["s"])
        return Topology(
            online=CPUSet(cpu for cpus in threads for cpu in cpus),
            cores=[CPUSet(cpus) for cpus in threads],
            sockets=groups["s"],
            dies=groups["d"] or groups["s"],
            numa_nodes=nodes,
            caches=groups["l"],
            numa_distances=distances,
            nearest_cpus=_nearest_cpus(nodes, distances),
        )

    def _cores(self) -> list[Core]:
        """Return the cores from the outside in."""
        levels = list(self.groups)
        for letter in "ns":
            if letter not in dict(levels):
                levels.insert(0, (letter, 1))
        if "l" not in dict(levels):
            levels.append(("l", 1))
        has_no_caches = dict(levels)["l"] == 0
        parents: list[dict[str, int]] = [{}]
        for letter, count in levels:
            if letter == "l" and has_no_caches:
                continue
            parents = [
                {**parent, letter: index * count + number}
                for index, parent in enumerate(parents)
                for number in range(count)
            ]
        each = [self.threads] * self.cores + [1] * self.single_cores
        return [Core(threads, parent) for parent in parents for threads in each]

    def _number_threads(self, cores: list[Core]) -> list[list[int]]:
        """Return the CPUs of each core."""
        order = list(range(len(cores)))
        if self.interleaved:
            seen: dict[int, int] = {}
            turns = []
            for core in cores:
                node = core.groups["n"]
                turns.append((seen.get(node, 0), node))
                seen[node] = seen.get(node, 0) + 1
            order.sort(key=lambda index: turns[index])
        slots = [(thread, index) for thread in range(self.threads) for index in order if thread < cores[index].threads]
        if self.adjacent:
            slots = [(thread, index) for index in order for thread in range(cores[index].threads)]
        threads: list[list[int]] = [[] for _core in cores]
        for cpu, (_thread, index) in enumerate(slots):
            threads[index].append(cpu)
        return threads

    def _numa_nodes(self, nodes: list[Group]) -> list[Group]:
        nodes = nodes + [Group(len(nodes) + number, CPUSet()) for number in range(self.memory_nodes)]
        if not self.node_ids:
            return nodes
        if len(self.node_ids) != len(nodes):
            raise InputError("%s: there are %d NUMA nodes, and %d ids" % (self.name(), len(nodes), len(self.node_ids)))
        return [Group(number, node.cpus) for number, node in zip(self.node_ids, nodes)]

    def _distances(self, nodes: list[Group], sockets: list[Group]) -> dict[int, dict[int, int]]:
        owners = [node for node in nodes if node.cpus]
        homes = {node.id: owners[index % len(owners)].id for index, node in enumerate(nodes)}
        places = {
            node.id: [socket.id for socket in sockets if not socket.cpus.isdisjoint(node.cpus)] for node in owners
        }
        memory_only = {node.id for node in nodes if not node.cpus}
        near, far = MEMORY_DISTANCES

        def distance(node: int, target: int) -> int:
            if node == target:
                return self.distances[0]
            if node in memory_only or target in memory_only:
                return near if homes[node] == homes[target] and not {node, target} <= memory_only else far
            return self.distances[1] if set(places[node]) & set(places[target]) else self.distances[2]

        return {node.id: {target.id: distance(node.id, target.id) for target in nodes} for node in nodes}


def parse_name(name: str) -> Shape:
    """Return the shape that a name says. Raises InputError for a name outside the grammar."""
    levels, *flags = name.split("+")
    if not _LEVELS.fullmatch(levels):
        raise InputError("%r: begins with counts and letters, as in 2s2n12c2t" % name)
    counts = [(letter, int(count)) for count, letter in _LEVEL.findall(levels)]
    letters = "".join(letter for letter, _count in counts)
    if len(set(letters)) != len(letters) or not re.fullmatch("[%s]*ct?e?" % GROUP_LEVELS, letters):
        raise InputError("%r: the letters are s, d, n and l in any order, then c, t and e, each once" % name)
    if re.search("[dl].*s", letters):
        raise InputError("%r: dies and L3 caches are in sockets: s comes before d and l" % name)
    by_letter = dict(counts)
    for letter, count in counts:
        if not count and letter != "l":
            raise InputError("%r: 0%s makes no machine" % (name, letter))
    cpus = by_letter["c"] * by_letter.get("t", 1) + by_letter.get("e", 0)
    for letter in GROUP_LEVELS:
        cpus *= by_letter.get(letter, 1) or 1
    if cpus > MOST_CPUS:
        raise InputError("%r: has %d CPUs, and Linux takes %d" % (name, cpus, MOST_CPUS))
    shape = Shape(
        groups=tuple((letter, count) for letter, count in counts if letter in GROUP_LEVELS),
        cores=by_letter["c"],
        threads=by_letter.get("t", 1),
        single_cores=by_letter.get("e", 0),
    )
    for flag in flags:
        shape = _with_flag(shape, flag, name)
    if shape.name() != name:
        raise InputError("%r: is written %s" % (name, shape.name()))
    shape.topology()
    return shape


def _with_flag(shape: Shape, flag: str, name: str) -> Shape:
    match = _FLAG.fullmatch(flag)
    word, value = match.groups() if match else (flag, "")
    if word not in _FLAGS:
        raise InputError("%r: there is no flag %r" % (name, flag))
    field, pattern, read = _FLAGS[word]
    if not re.fullmatch(pattern, value):
        raise InputError("%r: %r is not how +%s is written" % (name, flag, word))
    return Shape(**{**shape._asdict(), field: read(value)})


def _flag(_value: str) -> bool:
    return True


def _numbers(value: str) -> tuple[int, ...]:
    return tuple(int(number) for number in value.split(","))


def _ids(value: str) -> tuple[int, ...]:
    return tuple(CPUSet.parse(value))


_NUMBER = "[0-9]{1,4}"
_LIST = "[0-9,-]+"

# {flag: the field of a Shape, the pattern and the reader of its value}
_FLAGS: dict[str, tuple[str, str, Callable[[str], Any]]] = {
    "adjacent": ("adjacent", "", _flag),
    "interleaved": ("interleaved", "", _flag),
    "memory": ("memory_nodes", _NUMBER, int),
    "nodes": ("node_ids", _LIST, _ids),
    "distances": ("distances", ",".join([_NUMBER] * 3), _numbers),
    "offline": ("offline", _LIST, CPUSet.parse),
    "isolated": ("isolated", _LIST, CPUSet.parse),
    "nohz": ("nohz_full", _LIST, CPUSet.parse),
}


def _nearest_cpus(nodes: tuple[Group, ...] | list[Group], distances: dict[int, dict[int, int]]) -> dict[int, CPUSet]:
    """Return {node without CPUs: the CPUs of the nodes nearest to it}, unless all nodes with CPUs are equally far."""
    owners = [node for node in nodes if node.cpus]
    nearest = {}
    for node in nodes:
        if not node.cpus:
            least = min(distances[node.id][owner.id] for owner in owners)
            near = [owner for owner in owners if distances[node.id][owner.id] == least]
            if len(near) < len(owners) or len(owners) == 1:
                nearest[node.id] = CPUSet(cpu for owner in near for cpu in owner.cpus)
    return nearest
