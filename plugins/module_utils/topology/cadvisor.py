# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read a topology from cAdvisor's MachineInfo, as the kubelet does: JSON of google/cadvisor, info/v1/machine.go.

It tells neither offline CPUs nor dies. An L3 cache stands with the cores that share it ("uncore_caches"), or with the
NUMA node when it spans exactly the node, or with the core when no other core shares it.
"""

from __future__ import annotations

import json
from typing import Any, Hashable

from .._base.errors import InputError
from .._base.quantity import counted
from ..cpuset import MAX_CPUS, CPUSet
from .model import Group, Topology, nearest_by_distance, numbered

HINT = "give the whole answer of cAdvisor's /api/v1.3/machine"


def read_machine_info(text: str) -> Topology:
    """Return the topology of a MachineInfo. Raises InputError, which names the field, for a text that is none."""
    try:
        info = json.loads(text)
    except RecursionError as error:
        raise InputError("is nested too deeply", "MachineInfo", HINT) from error
    except ValueError as error:
        raise InputError("is not JSON: %s" % error, "MachineInfo", HINT) from error
    if not isinstance(info, dict):
        raise InputError("is a JSON object, not %s" % _shown(info), "MachineInfo", HINT)
    return _MachineReader(info).topology()


class _MachineReader:
    def __init__(self, info: dict[str, Any]) -> None:
        self.info = info
        self.online = 0
        self.cores: list[CPUSet] = []
        self.sockets: dict[int, int] = {}
        self.nodes: list[Group] = []
        self.problems: list[str] = []
        # What tells a cache from the others, with its id and the bits of its CPUs.
        self.caches: dict[Hashable, tuple[int | None, int]] = {}

    def topology(self) -> Topology:
        nodes = _objects(self.info, "topology", "")
        for where, node in nodes:
            self._read_node(node, where)
        threads = CPUSet.from_mask(self.online)
        count = _number(self.info, "num_cores", "")
        if count != len(threads) or not count:
            raise InputError(
                "num_cores is %d, and the topology has %s" % (count, counted(len(threads), "thread")),
                "MachineInfo",
                HINT,
            )
        distances = self._distances(nodes)
        return Topology(
            online=threads,
            cores=self.cores,
            # Where the firmware does not number sockets, Linux says -1.
            sockets=numbered(
                (CPUSet.from_mask(mask), None if number < 0 else number) for number, mask in self.sockets.items()
            ),
            numa_nodes=self.nodes,
            caches=numbered((CPUSet.from_mask(mask), number) for number, mask in self.caches.values()),
            numa_distances=distances,
            nearest_cpus=nearest_by_distance(self.nodes, distances),
            problems=self.problems,
        )

    def _read_node(self, node: dict[str, object], where: str) -> None:
        number = _number(node, "node_id", where)
        if any(number == listed.id for listed in self.nodes):
            raise _error(where + "node_id", "node %d comes twice" % number)
        node_caches = _l3_ids(node, "caches", where)
        if len(node_caches) > 1:
            # Happens where cores have different numbers of threads, by which cAdvisor tells the node's caches.
            self.problems.append("MachineInfo: node %d has several L3 caches; whose they are is not told" % number)
            node_caches = []
        mask = 0
        for core_where, core in _objects(node, "cores", where):
            cpus = self._threads(core, core_where)
            mask |= cpus.mask
            self.cores.append(cpus)
            socket = _number(core, "socket_id", core_where, -1) if "socket_id" in core else None
            if socket is not None:
                self.sockets[socket] = self.sockets.get(socket, 0) | cpus.mask
            self._add_caches(core, core_where, cpus, number, socket, node_caches)
        self.nodes.append(Group(number, CPUSet.from_mask(mask)))

    def _threads(self, core: dict[str, object], where: str) -> CPUSet:
        where += "thread_ids"
        threads = core.get("thread_ids")
        if not isinstance(threads, list) or not threads:
            raise _error(where, "is a list of CPUs, not %s" % _shown(threads))
        for index, thread in enumerate(threads):
            _check_number(thread, "%s[%d]" % (where, index), highest=MAX_CPUS - 1)
            if self.online >> thread & 1:
                raise _error(where, "CPU %d comes twice" % thread)
            self.online |= 1 << thread
        return CPUSet(threads)

    def _add_caches(
        self,
        core: dict[str, object],
        where: str,
        cpus: CPUSet,
        node: int,
        socket: int | None,
        node_caches: list[int | None],
    ) -> None:
        """Note the core's L3 cache, from the place that tells of it most exactly."""
        shared, private = _l3_ids(core, "uncore_caches", where), _l3_ids(core, "caches", where)
        if private and not shared:
            number, key = private[0], cpus  # type: int | None, Hashable
        elif shared or node_caches:
            number = (shared or node_caches)[0]
            # Ids are unique in a socket; an old cAdvisor gives none.
            key = (socket, number) if number is not None else ("node", node)
        else:
            return
        self.caches[key] = (number, self.caches.get(key, (None, 0))[1] | cpus.mask)

    def _distances(self, nodes: list[tuple[str, dict[str, Any]]]) -> dict[int, dict[int, int]]:
        """Return {node: {node: distance}}; a row has one figure for each node, in the order of their ids."""
        order = sorted(node.id for node in self.nodes)
        distances = {}
        for node_where, node in nodes:
            row = node.get("distances") or []
            where = node_where + "distances"
            if not isinstance(row, list):
                raise _error(where, "is a list of numbers, not %s" % _shown(row))
            for index, figure in enumerate(row):
                _check_number(figure, "%s[%d]" % (where, index))
            if row and len(row) != len(order):
                raise _error(where, "has %s for %s" % (counted(len(row), "number"), counted(len(order), "node")))
            if row:
                distances[node["node_id"]] = dict(zip(order, row))
        return distances


def _l3_ids(owner: dict[str, object], field: str, where: str) -> list[int | None]:
    """Return the ids of the L3 caches in a list of caches; None where cAdvisor is too old to give one."""
    return [
        _number(cache, "id", cache_where) if "id" in cache else None
        for cache_where, cache in _objects(owner, field, where)
        if _number(cache, "level", cache_where) == 3 and cache.get("type") != "Instruction"
    ]


def _objects(owner: dict[str, object], field: str, where: str) -> list[tuple[str, dict[str, object]]]:
    """Return the objects of a list, each with its name for an error; Go writes an empty list as null."""
    found = owner.get(field)
    if found is None:
        return []
    if not isinstance(found, list):
        raise _error(where + field, "is a list, not %s" % _shown(found))
    for index, item in enumerate(found):
        if not isinstance(item, dict):
            raise _error("%s%s[%d]" % (where, field, index), "is an object, not %s" % _shown(item))
    return [("%s%s[%d]." % (where, field, index), item) for index, item in enumerate(found)]


def _number(owner: dict[str, object], field: str, where: str, lowest: int = 0) -> int:
    if field not in owner:
        raise _error(where + field, "is missing")
    return _check_number(owner[field], where + field, lowest)


def _check_number(value: object, where: str, lowest: int = 0, highest: int = (1 << 63) - 1) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not lowest <= value <= highest:
        raise _error(where, "is a number from %d to %d, not %s" % (lowest, highest, _shown(value)))
    return value


def _shown(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else text[:37] + "..."


def _error(where: str, what: str) -> InputError:
    return InputError(what, "MachineInfo, %s" % where, HINT)
