# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One model of a machine's CPUs, whatever it was read from."""

from __future__ import annotations

from typing import Any, Callable, Iterable, Mapping, NamedTuple, Sequence

from .._base.errors import NodeError
from ..cpuset import CPUSet


class Group(NamedTuple):
    """CPUs that share something: a core, a die, a socket, a NUMA node, a cache."""

    id: int
    cpus: CPUSet


class Topology:
    """The CPUs of one machine and what they share.

    Attributes:
        online, offline: CPUSet. Offline are those that are present and switched off.
        cores: the cores, each with its online threads; a core's id is its lowest CPU, as in the kubelet.
        dies, sockets, caches: ids as the kernel gives them, where they are unique; caches are those of level 3.
        numa: whether the machine has NUMA nodes.
        numa_nodes: every NUMA node, also one without CPUs (its set is empty).
        numa_distances: {node: {node: distance}}, empty where the machine does not say.
        nearest_cpus: {node: CPUSet}, the CPUs nearest to a NUMA node that has none of its own.
        same_ids: the CPUs of several cores of one socket and NUMA node that have the same id, mostly none.
        cache_ids: whether the kernel gives ids to the caches of level 3.
        isolated, nohz_full: CPUSet, as the kernel was booted.
        problems: texts on what the machine says of itself and cannot be true, or misleads the kubelet.

    All groups hold online CPUs only and come in the order of their lowest CPU (NUMA nodes: of their id).
    """

    def __init__(
        self,
        online: CPUSet,
        cores: Iterable[CPUSet],
        sockets: Iterable[Group] = (),
        dies: Iterable[Group] = (),
        numa_nodes: Iterable[Group] | None = None,
        caches: Iterable[Group] = (),
        offline: CPUSet = CPUSet(),
        numa_distances: Mapping[int, Mapping[int, int]] | None = None,
        nearest_cpus: Mapping[int, CPUSet] | None = None,
        isolated: CPUSet = CPUSet(),
        nohz_full: CPUSet = CPUSet(),
        problems: Sequence[str] = (),
        same_ids: Iterable[CPUSet] = (),
        cache_ids: bool = True,
    ) -> None:
        if not online:
            raise NodeError("no online CPU found")
        self.online = online
        self.offline = offline - online
        self.cores = _by_lowest_cpu(Group(0, cpus) for cpus in _partition(cores, online))
        self.cores = tuple(Group(core.cpus.first(), core.cpus) for core in self.cores)
        self.sockets = _by_lowest_cpu(_online_part(sockets, online))
        self.dies = _by_lowest_cpu(_online_part(dies, online))
        self.caches = _by_lowest_cpu(_online_part(caches, online))
        # A kernel without NUMA shows no node at all: all CPUs are in one.
        self.numa = numa_nodes is not None
        nodes = [Group(0, online)] if numa_nodes is None else [Group(n.id, n.cpus & online) for n in numa_nodes]
        self.numa_nodes = tuple(sorted(nodes))
        self.numa_distances = {node: dict(row) for node, row in (numa_distances or {}).items()}
        self.nearest_cpus = {node: cpus & online for node, cpus in (nearest_cpus or {}).items()}
        self.isolated = isolated
        self.nohz_full = nohz_full
        self.problems = tuple(problems)
        self.same_ids = tuple(cpus & online for cpus in same_ids if cpus & online)
        self.cache_ids = cache_ids

    @property
    def threads_per_core(self) -> int:
        """The most online threads that any core has."""
        return max(len(core.cpus) for core in self.cores)

    @property
    def uniform_cores(self) -> bool:
        """True when every core has equally many online threads."""
        return len({len(core.cpus) for core in self.cores}) == 1

    def with_offline(self, cpus: CPUSet) -> Topology:
        """Return this machine after `cpus` were switched off."""
        online = self.online - cpus
        nodes = [Group(node.id, node.cpus & online) for node in self.numa_nodes]
        nearest = nearest_by_distance(nodes, self.numa_distances)
        nearest.update({node: near & online for node, near in self.nearest_cpus.items() if near & online})
        return Topology(
            online,
            [core.cpus & online for core in self.cores if core.cpus & online],
            self.sockets,
            self.dies,
            nodes if self.numa else None,
            self.caches,
            self.offline | (cpus & self.online),
            self.numa_distances,
            nearest,
            self.isolated,
            self.nohz_full,
            self.problems,
            self.same_ids,
            self.cache_ids,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain data with every set in the list format; from_dict() reads it back."""
        return {
            "online": str(self.online),
            "offline": str(self.offline),
            "cores": [str(core.cpus) for core in self.cores],
            "dies": _group_dict(self.dies),
            "sockets": _group_dict(self.sockets),
            "numa": self.numa,
            "numa_nodes": _group_dict(self.numa_nodes),
            "l3_caches": _group_dict(self.caches),
            "numa_distances": {
                str(node): {str(target): distance for target, distance in row.items()}
                for node, row in self.numa_distances.items()
            },
            "nearest_cpus": {str(node): str(cpus) for node, cpus in self.nearest_cpus.items()},
            "isolated": str(self.isolated),
            "nohz_full": str(self.nohz_full),
            "problems": list(self.problems),
            "same_ids": [str(cpus) for cpus in self.same_ids],
            "l3_cache_ids": self.cache_ids,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Topology:
        """Return the topology that to_dict() described."""
        return cls(
            CPUSet.parse(data["online"]),
            [CPUSet.parse(cpus) for cpus in data["cores"]],
            _groups(data.get("sockets", {})),
            _groups(data.get("dies", {})),
            _groups(data["numa_nodes"]) if "numa_nodes" in data and data.get("numa", True) else None,
            _groups(data.get("l3_caches", {})),
            CPUSet.parse(data.get("offline", "")),
            {
                int(node): {int(target): distance for target, distance in row.items()}
                for node, row in data.get("numa_distances", {}).items()
            },
            {int(node): CPUSet.parse(cpus) for node, cpus in data.get("nearest_cpus", {}).items()},
            CPUSet.parse(data.get("isolated", "")),
            CPUSet.parse(data.get("nohz_full", "")),
            data.get("problems", ()),
            [CPUSet.parse(cpus) for cpus in data.get("same_ids", ())],
            data.get("l3_cache_ids", True),
        )

    def __eq__(self, other: object) -> bool:
        return self.to_dict() == other.to_dict() if isinstance(other, Topology) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.online, self.cores, self.numa_nodes))

    def __repr__(self) -> str:
        return "<Topology of %d CPUs: %d sockets, %d NUMA nodes, %d L3 caches, %d cores>" % (
            len(self.online),
            len(self.sockets),
            len(self.numa_nodes),
            len(self.caches),
            len(self.cores),
        )


def sets_by(cpus: Iterable[int], key: Callable[[int], Any]) -> dict[Any, CPUSet]:
    """Return the CPUs of each key; a CPU whose key is None is in no set."""
    masks: dict[object, int] = {}
    for cpu in cpus:
        its_key = key(cpu)
        if its_key is not None:
            masks[its_key] = masks.get(its_key, 0) | 1 << cpu
    return {its_key: CPUSet.from_mask(mask) for its_key, mask in masks.items()}


def numbered(found: Iterable[tuple[CPUSet, int | None]]) -> list[Group]:
    """Return groups with the machine's own ids, or from 0 by their lowest CPU where it gives no id or one to two
    groups."""
    by_lowest_cpu = sorted(found, key=lambda pair: pair[0].first())
    ids = [number for _cpus, number in by_lowest_cpu]
    unique = None not in ids and len(set(ids)) == len(ids)
    return [
        Group(number if unique and number is not None else position, cpus)
        for position, (cpus, number) in enumerate(by_lowest_cpu)
    ]


def nearest_by_distance(nodes: Sequence[Group], distances: Mapping[int, Mapping[int, int]]) -> dict[int, CPUSet]:
    """Return {NUMA node without CPUs: the CPUs of the nodes nearest to it}; not those that are equally far from all."""
    owners = [node for node in nodes if node.cpus]
    found = {}
    for node in nodes:
        row = distances.get(node.id, {})
        own_row = [row[owner.id] for owner in owners if owner.id in row]
        if node.cpus or not own_row:
            continue
        near = [owner for owner in owners if row.get(owner.id) == min(own_row)]
        if len(near) < len(owners) or len(owners) == 1:
            found[node.id] = CPUSet(cpu for owner in near for cpu in owner.cpus)
    return found


def _partition(cores: Iterable[CPUSet], online: CPUSet) -> list[CPUSet]:
    """Return the cores cut to the online CPUs; a CPU of no core is a core by itself."""
    found, seen = [], 0
    for core in cores:
        cpus = core & online
        if cpus.mask & seen:
            raise NodeError("CPU %s is in two cores" % CPUSet.from_mask(cpus.mask & seen))
        seen |= cpus.mask
        if cpus:
            found.append(cpus)
    return found + [CPUSet([cpu]) for cpu in CPUSet.from_mask(online.mask & ~seen)]


def _online_part(groups: Iterable[Group], online: CPUSet) -> Iterable[Group]:
    return (Group(group.id, group.cpus & online) for group in groups if group.cpus & online)


def _by_lowest_cpu(groups: Iterable[Group]) -> tuple[Group, ...]:
    return tuple(sorted(groups, key=lambda group: (group.cpus.first(), group.id)))


def _group_dict(groups: Iterable[Group]) -> dict[str, str]:
    """Return {id: CPUs}; ids are texts, because JSON and YAML facts would make them so anyway."""
    return {str(group.id): str(group.cpus) for group in groups}


def _groups(data: Mapping[str, str]) -> list[Group]:
    return [Group(int(number), CPUSet.parse(cpus)) for number, cpus in data.items()]
