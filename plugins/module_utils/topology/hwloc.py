# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read a topology from hwloc's XML, `lstopo --of xml`, of hwloc 1.x (hwloc.dtd) and 2.x (hwloc2.dtd).

Offline are the CPUs that hwloc knows of and left out. Without its option --disallowed those are also the CPUs that
the cgroup of the lstopo process forbids: run it outside of containers.

hwloc 2.x gives a NUMA node without CPUs the CPUs nearest to it, and does not say so. Of nodes with the same CPUs
these are taken to belong to the one with the lowest number, which is how firmware numbers them.
"""

from __future__ import annotations

from xml.parsers import expat

from .._base.errors import InputError
from .._base.tree import is_number
from ..cpuset import MAX_CPUS, CPUSet
from .model import Group, Topology, nearest_by_distance, numbered

HINT = "give the whole output of 'lstopo --of xml'"

GROUPS = ("Package", "Die", "L3Cache", "Core")
NUMA_NODE = "NUMANode"
OLD_NAMES = {"Socket": "Package", "Node": NUMA_NODE}
INSTRUCTION_CACHE = "2"
# Neither infinity nor "not a number" is one.
MOST_DISTANCE = 1e9
# How hwloc begins a set that has no end.
INFINITE = "0xf...f"
LATENCY_KIND = 4  # HWLOC_DISTANCES_KIND_MEANS_LATENCY


def read_hwloc(text: str) -> Topology:
    """Return the topology in hwloc's XML. Raises InputError, which names line and column, for a bad text."""
    return _HwlocReader().read(text)


class _HwlocReader:
    """Collects the objects while expat goes through the text."""

    def __init__(self) -> None:
        # The text is decoded already, so what it says of its encoding no longer counts.
        self.parser = expat.ParserCreate("utf-8")
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        self.parser.EntityDeclHandler = self._refuse_entity
        self.is_topology = False
        self.machine: tuple[CPUSet, CPUSet] | None = None
        self.pus: set[int] = set()
        self.groups: dict[str, list[tuple[CPUSet, int | None]]] = {kind: [] for kind in GROUPS}
        self.seen = dict.fromkeys(GROUPS, CPUSet())
        self.nodes: list[tuple[CPUSet, int]] = []
        self.matrix: _Matrix | None = None
        self.matrices: list[_Matrix] = []

    def read(self, text: str) -> Topology:
        try:
            self.parser.Parse(text.encode("utf-8", "replace"), True)
        except expat.ExpatError as error:
            raise self._error("is not XML: %s" % expat.ErrorString(error.code)) from error
        if self.machine is None:
            raise InputError("no object with a cpuset found", "hwloc XML", HINT)
        online, complete = self.machine
        if CPUSet(self.pus) != online or not online:
            raise InputError(
                "the machine's cpuset is %r, and there are PU objects for %r" % (str(online), str(CPUSet(self.pus))),
                "hwloc XML",
                HINT,
            )
        nodes, nearest = _own_and_nearest(self.nodes, online)
        distances = self._distances()
        return Topology(
            online=online,
            cores=[cpus for cpus, _number in self.groups["Core"]],
            sockets=numbered(self.groups["Package"]),
            dies=numbered(self.groups["Die"]),
            numa_nodes=nodes or None,
            caches=numbered(self.groups["L3Cache"]),
            offline=complete - online,
            numa_distances=distances,
            nearest_cpus={**nearest_by_distance(nodes, distances), **nearest},
        )

    # --- what expat calls ------------------------------------------------------------------------

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if not self.is_topology:
            if name != "topology":
                raise self._error("the first element is <topology>, not <%s>" % name)
            self.is_topology = True
        elif name == "object":
            self._object(attributes)
        elif name == "distances2":
            self.matrix = _Matrix(attributes.get("nbobjs", ""), 1.0, False) if _is_latency(attributes) else None
        elif name == "distances":
            base = self._float(attributes.get("latency_base", "1"))
            self.matrix = _Matrix(attributes.get("nbobjs", ""), base, True)
        elif self.matrix is not None:
            if name == "latency":
                self.matrix.values.append(self._float(attributes.get("value", "")))
            elif name in ("indexes", "u64values"):
                self.matrix.texts = []

    def _text(self, text: str) -> None:
        if self.matrix is not None:
            self.matrix.texts.append(text)

    def _end(self, name: str) -> None:
        if self.matrix is None:
            return
        if name in ("indexes", "u64values"):
            try:
                self.matrix.end(name)
            except ValueError as error:
                raise self._error("<%s> has numbers only" % name) from error
        elif name in ("distances", "distances2"):
            self.matrices.append(self.matrix)
            self.matrix = None

    def _refuse_entity(self, name: str, *_details: object) -> None:
        raise self._error("declares the entity %r, which hwloc never does" % name)

    # --- objects ---------------------------------------------------------------------------------

    def _object(self, attributes: dict[str, str]) -> None:
        kind = attributes.get("type", "")
        if self.machine is None:
            # The outermost object holds all others: Machine, or System in old versions.
            if "cpuset" not in attributes:
                raise self._error("the outermost object has no cpuset")
            online = self._cpuset(attributes["cpuset"])
            online &= self._cpuset(attributes.get("online_cpuset", attributes["cpuset"]))
            complete = attributes.get("complete_cpuset", attributes["cpuset"])
            self.machine = (online, online if complete.startswith(INFINITE) else self._cpuset(complete))
            return
        online = self.machine[0]
        if kind == "PU":
            if self._number(attributes) in online:
                self.pus.add(self._number(attributes))
            return
        if kind == "Cache" and attributes.get("depth") == "3" and attributes.get("cache_type") != INSTRUCTION_CACHE:
            kind = "L3Cache"
        kind = OLD_NAMES.get(kind, kind)
        if kind != NUMA_NODE and kind not in self.groups:
            return
        if "cpuset" not in attributes:
            raise self._error("the %s has no cpuset" % kind)
        cpus = self._cpuset(attributes["cpuset"]) & online
        if kind == NUMA_NODE:
            self._add_node(cpus, self._number(attributes))
        elif cpus:
            self._add_group(kind, cpus, self._number(attributes) if "os_index" in attributes else None)

    def _add_node(self, cpus: CPUSet, number: int) -> None:
        if any(number == listed for _cpus, listed in self.nodes):
            raise self._error("NUMA node %d comes twice" % number)
        self.nodes.append((cpus, number))

    def _add_group(self, kind: str, cpus: CPUSet, number: int | None) -> None:
        twice = cpus & self.seen[kind]
        if twice:
            raise self._error("CPUs %s are in two objects of type %s" % (twice, kind))
        self.seen[kind] |= cpus
        self.groups[kind].append((cpus, number))

    def _number(self, attributes: dict[str, str]) -> int:
        value = attributes.get("os_index", "")
        if not (is_number(value) and len(value) < 11):
            raise self._error("os_index is a number, not %r" % value)
        return int(value)

    def _cpuset(self, text: str) -> CPUSet:
        """Return hwloc's own mask format: 0x00ff,0xffffffff; an empty group is zero, 0xf...f means all further CPUs."""
        groups = text.split(",")
        if len(groups) > MAX_CPUS // 32:
            raise self._error("a cpuset has more than %d CPUs" % MAX_CPUS)
        mask = 0
        if groups[0] == INFINITE:
            mask = (1 << MAX_CPUS - 32 * (len(groups) - 1)) - 1
            groups = groups[1:]
        for group in groups:
            try:
                # hwloc never writes more digits, and CPUSet refuses all that is none.
                bits = CPUSet.parse_mask(group if len(group) <= 10 else "").mask if group else 0
            except InputError as error:
                raise self._error("%r is not a cpuset" % text[:80]) from error
            mask = mask << 32 | bits
        return CPUSet.from_mask(mask)

    # --- distances -------------------------------------------------------------------------------

    def _distances(self) -> dict[int, dict[int, int]]:
        """Return {node: {node: distance}} from the matrix that has a row and a column for each NUMA node."""
        for matrix in self.matrices:
            nodes = [number for _cpus, number in self.nodes] if matrix.is_of_level else matrix.indexes
            if matrix.count == str(len(nodes)) and len(matrix.values) == len(nodes) ** 2:
                values = iter(matrix.values)
                return {node: {target: round(next(values) * matrix.base) for target in nodes} for node in nodes}
            if not matrix.is_of_level:
                raise InputError(
                    "the distances of %s NUMA nodes have %d indexes and %d values"
                    % (matrix.count, len(nodes), len(matrix.values)),
                    "hwloc XML",
                    HINT,
                )
        return {}

    def _float(self, value: str) -> float:
        try:
            number = float(value)
        except ValueError:
            number = -1.0
        if not 0 <= number < MOST_DISTANCE:
            raise self._error("%r is not a distance" % value)
        return number

    def _error(self, what: str) -> InputError:
        return InputError(
            what,
            "hwloc XML, line %d, column %d" % (self.parser.CurrentLineNumber, self.parser.CurrentColumnNumber + 1),
            HINT,
        )


class _Matrix:
    """A matrix of distances while it is read; its numbers may come in several elements."""

    def __init__(self, count: str, base: float, is_of_level: bool) -> None:
        self.count = count
        self.base = base
        # In hwloc 1.x it is of the objects of one level, and does not say which.
        self.is_of_level = is_of_level
        self.indexes: list[int] = []
        self.values: list[float] = []
        self.texts: list[str] = []

    def end(self, element: str) -> None:
        numbers = [int(number) for number in "".join(self.texts).split()]
        if element == "u64values":
            self.values += numbers
        else:
            self.indexes += numbers


def _is_latency(attributes: dict[str, str]) -> bool:
    """Return whether a matrix is the firmware's table of NUMA latencies (hwloc also keeps bandwidths, and others'
    own)."""
    if attributes.get("type") != "NUMANode" or attributes.get("indexing") != "os":
        return False
    kind = attributes.get("kind", "")
    return attributes.get("name", "NUMALatency") == "NUMALatency" and is_number(kind) and bool(int(kind) & LATENCY_KIND)


def _own_and_nearest(found: list[tuple[CPUSet, int]], online: CPUSet) -> tuple[list[Group], dict[int, CPUSet]]:
    """Return the NUMA nodes with their own CPUs, and {node without CPUs: the CPUs nearest to it}."""
    nodes, nearest = [], {}
    owned = CPUSet()
    for cpus, number in sorted(found, key=lambda node: (len(node[0]), node[1])):
        if cpus.isdisjoint(owned):
            nodes.append(Group(number, cpus))
            owned |= cpus
        else:
            nodes.append(Group(number, CPUSet()))
            nearest[number] = cpus
    if sum(1 for node in nodes if node.cpus) > 1:
        # Equally far from all: near none.
        nearest = {number: cpus for number, cpus in nearest.items() if cpus not in (owned, online)}
    return nodes, nearest
