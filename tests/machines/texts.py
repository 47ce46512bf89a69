# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the tools print of a topology: /proc/cpuinfo, `lscpu -p`, hwloc's XML, cAdvisor's MachineInfo."""

from __future__ import annotations

import json
import re
from typing import Any, Iterable, Iterator, NamedTuple
from xml.sax.saxutils import quoteattr

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.model import Group, Topology


def cpuinfo(topology: Topology) -> str:
    """Return /proc/cpuinfo as a kernel on x86 prints it: the online CPUs, each with an empty line after it."""
    blocks = []
    for cpu in topology.online:
        fields: dict[str, object] = {
            "processor": cpu,
            "vendor_id": "GenuineIntel",
            "model name": "Intel(R) Xeon(R) Gold 6230 CPU @ 2.10GHz",
            "cpu MHz": "2100.000",
        }
        socket = _group_of(topology.sockets, cpu)
        if socket is not None:
            cores = [core.cpus for core in topology.cores if core.cpus <= socket.cpus]
            fields["physical id"] = socket.id
            fields["siblings"] = len(socket.cpus)
            fields["core id"] = next(number for number, core in enumerate(cores) if cpu in core)
            fields["cpu cores"] = len(cores)
        blocks.append("".join("%s\t: %s\n" % field for field in fields.items()) + "\n")
    return "".join(blocks)


def cpuinfo_arm64(topology: Topology) -> str:
    """Return /proc/cpuinfo as a kernel on arm64 prints it, which tells the processors only."""
    block = "processor\t: %d\nBogoMIPS\t: 200.00\nCPU implementer\t: 0x48\nCPU architecture: 8\nCPU part\t: 0xd01\n\n"
    return "".join(block % cpu for cpu in topology.online)


def lscpu(topology: Topology, with_all: bool = False) -> str:
    """Return `lscpu -p`, or with_all `lscpu -a -p=CPU,CORE,SOCKET,NODE,CACHE,ONLINE`."""
    has_l3 = bool(topology.caches)
    lines = [
        "# The following is the parsable format, which can be fed to other",
        "# programs. Each different item in every column has an unique ID",
        "# starting usually from zero.",
        "# CPU,Core,Socket,Node,,L1d,L1i,L2" + ",L3" * has_l3 + ",Online" * with_all,
    ]
    cores = {cpu: number for number, core in enumerate(topology.cores) for cpu in core.cpus}
    for cpu in topology.online | (topology.offline if with_all else CPUSet()):
        core = cores.get(cpu)
        groups = [_group_of(groups, cpu) for groups in (topology.sockets, topology.numa_nodes, topology.caches)]
        socket, node, l3 = ["" if group is None else str(group.id) for group in groups]
        if core is None:
            # The caches of an offline CPU have one field together.
            lines.append("%d,,,,,,N" % cpu)
        else:
            own = [str(core)] * 3 + [l3] * has_l3 + ["Y"] * with_all
            lines.append(",".join([str(cpu), str(core), socket, node, "", *own]))
    return "\n".join(lines) + "\n"


def hwloc(topology: Topology, version: int = 2) -> str:
    """Return `lstopo --of xml` of hwloc 1.x or 2.x, with what a reader of topologies needs of it."""
    return _HwlocWriter(topology, version).text()


class _Object(NamedTuple):
    """An object of hwloc: sorted, the ones that hold others come first."""

    negative_size: int
    rank: int
    first: int
    type: str
    id: int | None
    cpus: CPUSet


class _HwlocWriter:
    def __init__(self, topology: Topology, version: int) -> None:
        self.topology = topology
        self.version = version
        self.lines: list[str] = []

    def text(self) -> str:
        topology = self.topology
        self.lines.append('<?xml version="1.0" encoding="UTF-8"?>')
        if self.version == 2:
            self.lines += ['<!DOCTYPE topology SYSTEM "hwloc2.dtd">', '<topology version="2.0">']
        else:
            self.lines += ['<!DOCTYPE topology SYSTEM "hwloc.dtd">', "<topology>"]
        machine, *objects = sorted(self._objects())
        self._write(machine, objects)
        if self.version == 2 and topology.numa_distances:
            self._distances_2()
        self.lines.append("</topology>")
        return "\n".join(self.lines) + "\n"

    def _objects(self) -> Iterator[_Object]:
        topology = self.topology
        yield _object(0, "Machine", 0, topology.online)
        for group in topology.sockets:
            yield _object(1, "Package", group.id, group.cpus)
        for group in topology.dies:
            # As in hwloc: a die that is the whole package is not shown.
            if self.version == 2 and group.cpus not in [socket.cpus for socket in topology.sockets]:
                yield _object(2, "Die", group.id, group.cpus)
        for group in topology.numa_nodes:
            if self.version == 1 and group.cpus:
                yield _object(3, "NUMANode", group.id, group.cpus)
        for group in topology.caches:
            yield _object(4, "L3Cache", group.id, group.cpus)
        for group in topology.cores:
            yield _object(5, "Core", group.id, group.cpus)
            for cpu in group.cpus:
                yield _object(6, "PU", cpu, CPUSet([cpu]))

    def _write(self, parent: _Object, objects: list[_Object]) -> None:
        """Write an object and, inside it, those of `objects` that are in it; these must be sorted."""
        topology = self.topology
        kind = parent.type
        attributes: dict[str, object] = {"os_index": parent.id, "cpuset": hwloc_mask(parent.cpus)}
        if self.version == 1 and kind == "L3Cache":
            kind = "Cache"
        if kind in ("Cache", "L3Cache"):
            attributes.update(depth=3, cache_type=0)
        if kind == "Machine":
            attributes["complete_cpuset"] = hwloc_mask(topology.online | topology.offline)
        self.lines.append("<object type=%s%s>" % (quoteattr(kind), _attributes(attributes)))
        if kind == "Machine" and self.version == 2:
            for node in topology.numa_nodes:
                cpus = topology.nearest_cpus.get(node.id, node.cpus or topology.online)
                attributes = {"os_index": node.id, "cpuset": hwloc_mask(cpus)}
                self.lines.append('<object type="NUMANode"%s/>' % _attributes(attributes))
        inside = [child for child in objects if child.cpus <= parent.cpus]
        while inside:
            child, *others = inside
            self._write(child, [group for group in others if group.cpus <= child.cpus])
            inside = [group for group in others if not group.cpus <= child.cpus]
        if kind == "Machine" and self.version == 1:
            self._memory_only_and_distances_1()
        self.lines.append("</object>")

    def _memory_only_and_distances_1(self) -> None:
        for node in self.topology.numa_nodes:
            if not node.cpus:
                self.lines.append('<object type="NUMANode" os_index="%d" cpuset="0x0"/>' % node.id)
        distances = self.topology.numa_distances
        if distances:
            # Rows and columns are in the order of the objects.
            ids = [int(number) for number in re.findall('"NUMANode" os_index="([0-9]+)"', "".join(self.lines))]
            self.lines.append('<distances nbobjs="%d" relative_depth="1" latency_base="10.000000">' % len(ids))
            self.lines += ['<latency value="%f"/>' % (distances[node][target] / 10) for node in ids for target in ids]
            self.lines.append("</distances>")

    def _distances_2(self) -> None:
        ids = [node.id for node in self.topology.numa_nodes]
        values = [self.topology.numa_distances[node][target] for node in ids for target in ids]
        self.lines.append(
            '<distances2 type="NUMANode" nbobjs="%d" kind="5" name="NUMALatency" indexing="os">' % len(ids)
        )
        self._numbers("indexes", ids)
        self._numbers("u64values", values)
        self.lines.append("</distances2>")

    def _numbers(self, element: str, numbers: list[int]) -> None:
        """Write numbers as hwloc does: ten in each element."""
        for start in range(0, len(numbers), 10):
            text = "".join("%d " % number for number in numbers[start : start + 10])
            self.lines.append('<%s length="%d">%s</%s>' % (element, len(text), text, element))


def _object(rank: int, kind: str, number: int, cpus: CPUSet) -> _Object:
    return _Object(-len(cpus), rank, cpus.first() if cpus else -1, kind, number, cpus)


def _attributes(attributes: dict[str, object]) -> str:
    return "".join(" %s=%s" % (name, quoteattr(str(value))) for name, value in attributes.items())


def hwloc_mask(cpus: CPUSet) -> str:
    """Return hwloc's text of a set: groups of 32 bits with 0x before each; a group of zero between others is left
    out."""
    digits = "%x" % cpus.mask
    digits = digits.zfill((len(digits) + 7) // 8 * 8)
    groups = [digits[at : at + 8] for at in range(0, len(digits), 8)]
    texts = ["0x" + group if int(group, 16) else "" for group in groups]
    return ",".join(texts[:-1] + [texts[-1] or "0x0"])


def machine_info(topology: Topology) -> str:
    """Return cAdvisor's MachineInfo: an L3 cache is the node's when as many CPUs share it as the node has, else the
    core's."""
    nodes: list[dict[str, Any]] = []
    for node in topology.numa_nodes:
        cores = [core.cpus for core in topology.cores if core.cpus <= node.cpus]
        node_caches: list[dict[str, Any]] = []
        rows = []
        for number, cpus in enumerate(cores):
            socket, l3 = _group_of(topology.sockets, cpus.first()), _group_of(topology.caches, cpus.first())
            row: dict[str, Any] = {
                "core_id": number,
                "thread_ids": list(cpus),
                "caches": [_cache(number, 1, "Data"), _cache(number, 1, "Instruction"), _cache(number, 2, "Unified")],
                "uncore_caches": None,
                "socket_id": socket.id if socket else 0,
            }
            if l3 is not None and len(l3.cpus) != len(cores) * len(cpus):
                row["uncore_caches"] = [_cache(l3.id, 3, "Unified")]
            elif l3 is not None and _cache(l3.id, 3, "Unified") not in node_caches:
                node_caches.append(_cache(l3.id, 3, "Unified"))
            rows.append(row)
        distances = topology.numa_distances.get(node.id, {})
        nodes.append(
            {
                "node_id": node.id,
                "memory": 64 << 30,
                "hugepages": None,
                "cores": rows or None,
                "caches": node_caches or None,
                "distances": [distances[target] for target in sorted(distances)] or None,
            }
        )
    info = {
        "num_cores": len(topology.online),
        "num_physical_cores": len(topology.cores),
        "num_sockets": len(topology.sockets),
        "topology": nodes,
    }
    return json.dumps(info)


def _cache(number: int, level: int, kind: str) -> dict[str, Any]:
    return {"id": number, "size": 32 << 20 if level == 3 else 32 << 10, "type": kind, "level": level}


def _group_of(groups: Iterable[Group], cpu: int) -> Group | None:
    return next((group for group in groups if cpu in group.cpus), None)
