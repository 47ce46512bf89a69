# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The shapes of a fleet's nodes: which nodes are alike, and how their CPUs are drawn. Pure."""

from __future__ import annotations

import json
from typing import Any, Iterable, Mapping

from ...kubelet.settings import SETTINGS
from ...topology.layout import layout
from ...topology.model import Topology
from .answers import machine_of
from .shapes import Group, MeasuredNode
from .texts import WRONG, line, mapping, text

_MOST_CPUS = 8192
_MOST_GROUPS = 1024
# Of a machine of 8,192 CPUs with 250 L3 caches.
_MOST_STEPS = 1 << 20
_KINDS = {"socket": "socket", "numa_node": "NUMA node", "l3_cache": "L3"}
# Of a topology, what has a member for each group of CPUs.
_COLLECTIONS = ("sockets", "dies", "numa_nodes", "l3_caches", "numa_distances", "nearest_cpus", "same_ids")
# Of a topology, what makes two machines different.
_PARTS = ("online", "offline", "cores", "sockets", "numa_nodes", "l3_caches", "isolated")


class Groups:
    """Gives each node the number of its group, and collects the groups."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._groups: list[Group] = []

    def number_of(self, answer: Mapping[str, object]) -> int:
        """The group of the node that gave this answer."""
        topology = mapping(answer.get("topology"))
        kubelet, found = mapping(answer.get("kubelet")), mapping(answer.get("found"))
        kernel = line(answer.get("kernel") or "")
        version = " ".join(line(kubelet[key]) for key in ("distribution", "version") if kubelet.get(key))
        runtime = _runtime(kubelet.get("cri_socket"))
        settings = {name: text(found[name]) for name in SETTINGS if name in found}
        parts = {part: topology.get(part) for part in _PARTS}
        key = json.dumps([parts, kernel, version, runtime, settings], sort_keys=True)
        number = self._numbers.setdefault(key, len(self._groups))
        if number == len(self._groups):
            self._groups.append(
                {
                    "id": number,
                    "machine": machine_of(topology),
                    "map": cpu_map(topology),
                    "kernel": kernel,
                    "kubelet": version,
                    "distribution": line(kubelet.get("distribution") or ""),
                    "runtime": runtime,
                    "settings": settings,
                    "nodes": 0,
                    "states": {},
                }
            )
        return number

    def counted(self, nodes: Iterable[MeasuredNode]) -> list[Group]:
        """The groups of these nodes, the smallest first, numbered in this order; the nodes get the new numbers."""
        nodes = list(nodes)
        states: dict[int, dict[str, int]] = {}
        for node in nodes:
            if node["group"] is not None:
                counts = states.setdefault(node["group"], {})
                counts[node["state"]] = counts.get(node["state"], 0) + 1
        # Of equally many nodes in the order of the nodes, which does not depend on that of the files.
        order = sorted(states, key=lambda number: sum(states[number].values()))
        numbers = {old: new for new, old in enumerate(order)}
        for node in nodes:
            if node["group"] is not None:
                node["group"] = numbers[node["group"]]
        return [
            {**self._groups[old], "id": new, "nodes": sum(states[old].values()), "states": states[old]}
            for old, new in numbers.items()
        ]


def _runtime(socket: object) -> str:
    """ "containerd" of /run/k3s/containerd/containerd.sock."""
    name = line(socket or "").rpartition("/")[2].partition(".sock")[0]
    return {"crio": "cri-o"}.get(name, name)


def cpu_map(described: Mapping[str, Any]) -> dict[str, Any] | None:
    """How CPUs are drawn: {"boxes", "offline"}; None where the topology cannot be read.

    A box is {"core": CPUs} or {"kind", "name", "members": boxes}.
    """
    if not described:
        return None
    try:
        cores = described["cores"]
        if len(cores) > _MOST_CPUS or any(len(described.get(kind) or ()) > _MOST_GROUPS for kind in _COLLECTIONS):
            return None
        topology = Topology.from_dict({**described, "problems": ()})
        # No CPU is on two cores of a real machine, and each box looks at all of them.
        boxes = len(topology.sockets) + len(topology.numa_nodes) + len(topology.caches)
        if sum(map(len, (core.cpus for core in topology.cores))) > _MOST_CPUS or boxes * len(cores) > _MOST_STEPS:
            return None
        if len(topology.online | topology.offline) > _MOST_CPUS:
            return None
        return {"boxes": _boxes(layout(topology)), "offline": list(topology.offline)}
    except WRONG:
        return None


def _boxes(members: Iterable[Any]) -> list[dict[str, object]]:
    boxes: list[dict[str, object]] = []
    for member in members:
        if isinstance(member, list):
            boxes.append({"core": member})
        else:
            name = "%s %s" % (_KINDS[member["kind"]], "?" if member["id"] is None else member["id"])
            boxes.append({"kind": member["kind"], "name": name, "members": _boxes(member["members"])})
    return boxes
