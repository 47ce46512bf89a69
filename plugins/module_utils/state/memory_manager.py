# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The memory manager's state, the file memory_manager_state: would a kubelet start with it, and what does it write?

Source: pkg/kubelet/cm/memorymanager (policy_static.go, memory_manager.go).
"""

from __future__ import annotations

from contextlib import suppress
from types import MappingProxyType
from typing import Any, Iterable, Mapping, NamedTuple, Sequence

from .._base.errors import GoError
from .._base.golang import Number, Object, json_text, quote, read_json
from .formats import fnv

# Types of Go: how encoding/json reads a value into each, and how spew prints it, of which the kubelet makes checksums.
#
# A value is plain data: a struct is {name in JSON: value}, a pointer is what it leads to, nil is None.
# Its source: encoding/json (decode.go) and github.com/davecgh/go-spew (spew/format.go) with SpewKeys and SortKeys.


_KINDS = {Number: "number", str: "string", bool: "bool", list: "array", Object: "object"}
_NIL = "<nil>"
# No number of 64 bits is longer: int() of a text of many digits is slow.
_LONGEST = len(str(1 << 64))


class StructPlace(NamedTuple):
    """Where a value stands: the struct around it, and the names of the fields that lead there."""

    struct: str = ""
    fields: tuple[str, ...] = ()


class Problems:
    """The first thing that is wrong with a text. Go reads on behind it."""

    def __init__(self) -> None:
        self.first = ""

    def add(self, found: str, type_name: str, place: StructPlace) -> None:
        """Note a value that does not go into its type, in Go's words."""
        where = "Go struct field %s.%s" % (place.struct, ".".join(place.fields)) if place.fields else "Go value"
        self.first = self.first or "json: cannot unmarshal %s into %s of type %s" % (found, where, type_name)


class Type:
    """A type of Go; `name` is what Go prints for it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def zero(self) -> object:
        """Return the value of a variable to which nothing was assigned."""
        return None

    def read(self, value: object, before: object, problems: Problems, place: StructPlace) -> object:
        """Return what becomes of the value `before` when the JSON value is read into it."""
        raise NotImplementedError

    def spew(self, value: object) -> str:
        """Return the value without its type."""
        raise NotImplementedError

    def typed(self, value: object) -> str:
        """Return the value behind its type."""
        return "(%s)%s" % (self.name, self.spew(value))

    def _wrong(self, value: object, before: object, problems: Problems, place: StructPlace) -> object:
        problems.add(_KINDS[type(value)], self.name, place)
        return before


class Text(Type):
    """A string."""

    def zero(self) -> str:
        return ""

    def read(self, value: object, before: object, problems: Problems, place: StructPlace) -> object:
        if value is None:
            return before
        is_text = isinstance(value, str) and not isinstance(value, Number)
        return value if is_text else self._wrong(value, before, problems, place)

    def spew(self, value: object) -> str:
        return str(value)


class Whole(Type):
    """A whole number of 64 bits or fewer, with a sign or without."""

    def __init__(self, name: str, signed: bool = False, bits: int = 64) -> None:
        super().__init__(name)
        self.signed = signed
        self.values = range(-(1 << bits - 1), 1 << bits - 1) if signed else range(1 << bits)

    def zero(self) -> int:
        return 0

    def read(self, value: object, before: object, problems: Problems, place: StructPlace) -> object:
        if value is None:
            return before
        if not isinstance(value, Number):
            return self._wrong(value, before, problems, place)
        number = self.parse(value)
        if number is None:
            problems.add("number %s" % value, self.name, place)
            return before
        return number

    def parse(self, text: str) -> int | None:
        """Return the number of a text of digits; None where Go reads none."""
        digits = text[1:] if self.signed and text[:1] in ("-", "+") else text
        if not (digits.isascii() and digits.isdigit()) or len(digits.lstrip("0")) > _LONGEST:
            return None
        number = int(digits.lstrip("0") or "0") * (-1 if text[0] == "-" else 1)
        return number if number in self.values else None

    def spew(self, value: Any) -> str:
        return "%d" % value


class Pointer(Type):
    """A pointer; null makes it nil."""

    def __init__(self, to: Type) -> None:
        super().__init__("*" + to.name)
        self.to = to

    def read(self, value: object, before: object, problems: Problems, place: StructPlace) -> object:
        if value is None:
            return None
        return self.to.read(value, self.to.zero() if before is None else before, problems, place)

    def spew(self, value: object) -> str:
        return _NIL if value is None else "<*>" + self.to.spew(value)


class Slice(Type):
    """A list; null makes it nil."""

    def __init__(self, of: Type, name: str = "") -> None:
        super().__init__(name or "[]" + of.name)
        self.of = of

    def read(self, value: Any, before: Any, problems: Problems, place: StructPlace) -> object:
        if value is None:
            return None
        if not isinstance(value, list) or isinstance(value, Object):
            return self._wrong(value, before, problems, place)
        # Go reads into the elements that are there.
        old = [*(before or ()), *(self.of.zero() for _more in value)]
        return [self.of.read(item, element, problems, place) for item, element in zip(value, old)]

    def spew(self, value: Any) -> str:
        return _NIL if value is None else "[%s]" % " ".join(map(self.of.spew, value))


class Map(Type):
    """A map of texts, or with `keys` of numbers; null makes it nil, an object adds to it."""

    def __init__(self, name: str, of: Type, keys: Whole | None = None) -> None:
        super().__init__(name)
        self.of = of
        self.keys = keys

    def read(self, value: Any, before: Any, problems: Problems, place: StructPlace) -> object:
        if value is None:
            return None
        if not isinstance(value, Object):
            return self._wrong(value, before, problems, place)
        found = {} if before is None else before
        for key, item in value:
            element = self.of.read(item, self.of.zero(), problems, place)
            number = key if self.keys is None else self.keys.parse(key)
            if number is None:
                problems.add("number " + key, "int", place)
            else:
                found[number] = element
        return found

    def spew(self, value: Any) -> str:
        if value is None:
            return _NIL
        keys = sorted(value, key=lambda key: key if self.keys else key.encode("utf-8"))
        return "map[%s]" % " ".join("%s:%s" % (key, self.of.spew(value[key])) for key in keys)


class StructField(NamedTuple):
    """A field of a struct: its name in JSON and in Go, and its type.

    below: the name of the struct in the struct that has it, if there is one.
    """

    json: str
    go: str
    type: Type
    below: str = ""


class Struct(Type):
    """A struct; null leaves it as it is."""

    def __init__(self, name: str, fields: Sequence[StructField]) -> None:
        super().__init__(name)
        self.fields = fields
        self.by_name: Mapping[str, StructField] = {field.json: field for field in fields}

    def zero(self) -> dict[str, object]:
        return {field.json: field.type.zero() for field in self.fields}

    def read(self, value: Any, before: Any, problems: Problems, place: StructPlace) -> Any:
        if value is None:
            return before
        if not isinstance(value, Object):
            return self._wrong(value, before, problems, place)
        for key, item in value:
            field = self.by_name.get(key) or self._in_any_case(key)
            if field is not None:
                path = (*place.fields, field.below, field.json) if field.below else (*place.fields, field.json)
                inner = StructPlace(self.name.rpartition(".")[2], path)
                before[field.json] = field.type.read(item, before[field.json], problems, inner)
        return before

    def spew(self, value: Any) -> str:
        return "{%s}" % " ".join("%s:%s" % (field.go, field.type.typed(value[field.json])) for field in self.fields)

    def _in_any_case(self, key: str) -> StructField | None:
        # Imported here: what a kubelet wrote has the names as they are.
        from .._base.golang import folded

        name = folded(key)
        return next((field for field in self.fields if field.json.lower() == name), None)


TEXT = Text("string")
INT = Whole("int", signed=True)
UINT64 = Whole("uint64")


# The formats of the memory manager's state: how a kubelet reads them, and what it writes.
#
#     v1  1.21 and later  the machine's memory by NUMA node, and blocks of it by pod and container
#     v2  1.36            with blocks of whole pods, where the gate PodLevelResourceManagers is on
#     v3  1.37            v1 for older kubelets, and v2 once more as one text with its own checksum
#
# What is said of 1.37 comes from its sources alone; the others were compared with kubelets.
# Its source: pkg/kubelet/cm/memorymanager/state (checkpoint.go, state_checkpoint.go, state.go).


# {NUMA node: {"memory" or "hugepages-...": bytes}}
Amounts = Mapping[int, Mapping[str, int]]

# From then on what the nodes of a group have is compared as a sum, and not of each node.
_GROUP_SUMS_SINCE = 32
_V2_ON_REQUEST_IN = 36
_V3_SINCE = 37

_CORRUPTED = "checkpoint is corrupted"


class MemoryConfig(NamedTuple):
    """What of the kubelet's configuration and machine decides whether it accepts a state."""

    policy: str
    # What reservedMemory keeps from pods.
    reserved: Amounts
    minor: int
    # The feature gate PodLevelResourceManagers.
    pod_level: bool = False
    # The memory and huge pages of all NUMA nodes; None where that is not known, and why.
    machine: Amounts | None = None
    unknown: str = "the memory of the NUMA nodes is not known"


class MemoryStateError(Exception):
    """The kubelet cannot restore its state; the message is the cause that it gives."""


class MemoryState(NamedTuple):
    """What a kubelet restores. Each part is None where the file says null."""

    policy: str
    # {NUMA node: NUMANodeState}
    machine: dict[int, Any] | None
    # {pod UID: {container: [Block]}}
    entries: dict[str, Any] | None
    # {pod UID: PodEntry}
    pod_entries: dict[str, Any] | None


_TABLE = Struct(
    "state.MemoryTable",
    [
        StructField("total", "TotalMemSize", UINT64),
        StructField("systemReserved", "SystemReserved", UINT64),
        StructField("allocatable", "Allocatable", UINT64),
        StructField("reserved", "Reserved", UINT64),
        StructField("free", "Free", UINT64),
    ],
)
_NODE = Struct(
    "state.NUMANodeState",
    [
        StructField("numberOfAssignments", "NumberOfAssignments", INT),
        StructField("memoryMap", "MemoryMap", Map("map[v1.ResourceName]*state.MemoryTable", Pointer(_TABLE))),
        StructField("cells", "Cells", Slice(INT)),
    ],
)
_BLOCK = Struct(
    "state.Block",
    [
        StructField("numaAffinity", "NUMAAffinity", Slice(INT)),
        StructField("type", "Type", Text("v1.ResourceName")),
        StructField("size", "Size", UINT64),
    ],
)
_BLOCKS = Slice(_BLOCK)
_POD = Struct("state.PodEntry", [StructField("memoryBlocks", "MemoryBlocks", _BLOCKS)])

_POLICY = StructField("policyName", "PolicyName", TEXT)
_MACHINE = StructField("machineState", "MachineState", Map("state.NUMANodeMap", Pointer(_NODE), INT))
_CONTAINERS = Map("map[string][]state.Block", _BLOCKS)
_ENTRIES = StructField("entries", "Entries", Map("state.ContainerMemoryAssignments", _CONTAINERS))
_POD_ENTRIES = StructField("podEntries", "PodEntries", Map("state.PodMemoryAssignments", _POD))
_CHECKSUM = StructField("checksum", "Checksum", Whole("checksum.Checksum"))

# What the kubelet calls its newest format, and the older ones, too, where it makes their sums.
STRUCT = "MemoryManagerCheckpoint"
FORMAT1 = (_POLICY, _MACHINE, _ENTRIES, _CHECKSUM)
FORMAT2 = (_POLICY, _MACHINE, _ENTRIES, _POD_ENTRIES, _CHECKSUM)
_DATA = (_POLICY, _MACHINE, _ENTRIES, _POD_ENTRIES)
_FORMAT3 = (
    *(field._replace(below=STRUCT + "V1") for field in FORMAT1),
    StructField("data", "Data", TEXT),
    StructField("dataChecksum", "DataChecksum", Whole("checksum.Checksum")),
)


def decoded(fields: Iterable[StructField], name: str, data: object) -> tuple[dict[str, Any], str]:
    """Return what is read into a struct, and what is wrong; maps are there from the start."""
    struct, problems = Struct("state." + name, tuple(fields)), Problems()
    first = {field.json: {} if isinstance(field.type, Map) else field.type.zero() for field in struct.fields}
    return struct.read(data, first, problems, StructPlace()), problems.first


def sum_of(fields: Iterable[StructField], value: Mapping[str, object], name: str = STRUCT) -> int:
    struct = Struct("state." + name, tuple(fields))
    return fnv("(*%s)%s" % (struct.name, struct.spew({**value, _CHECKSUM.json: 0})))


# --- reading ------------------------------------------------------------------------------------------------


def restore_memory(content: bytes | MemoryStateError, config: MemoryConfig) -> MemoryState:
    """Return what the kubelet restores of a file, of any format. Raises MemoryStateError."""
    if isinstance(content, MemoryStateError):
        raise content
    try:
        data = read_json(content)
    except GoError as error:
        raise MemoryStateError(str(error)) from error
    if config.minor >= _V3_SINCE:
        value = _read_format3(data)
    elif config.pod_level and config.minor == _V2_ON_REQUEST_IN:
        value = _read_with_pods(data)
    else:
        value = _read_format1(data, config.minor)
    if value["policyName"] != config.policy:
        raise MemoryStateError(
            "[memorymanager] configured policy %s differs from state checkpoint policy %s"
            % (quote(config.policy), quote(value["policyName"]))
        )
    pods = value.get("podEntries") if config.pod_level else {}
    return MemoryState(value["policyName"], value["machineState"], value["entries"], pods)


def _read_format1(data: object, minor: int, pod_level: bool = False) -> dict[str, Any]:
    name = STRUCT if minor < _V2_ON_REQUEST_IN else STRUCT + "V1"
    value, wrong = decoded(FORMAT1, name, data)
    if wrong:
        raise MemoryStateError(wrong)
    # Since 1.36 a checksum of 0 is as good as the right one.
    if minor >= _V2_ON_REQUEST_IN and not value["checksum"]:
        return value
    # 1.36.0 wrote the sum of this name.
    names = {STRUCT, name} if minor == _V2_ON_REQUEST_IN and not pod_level else {STRUCT}
    if all(value["checksum"] != sum_of(FORMAT1, value, name) for name in sorted(names)):
        raise MemoryStateError(_CORRUPTED)
    return value


def _read_format2(data: object, name: str) -> tuple[dict[str, Any], bool]:
    """Return what is read, and whether all of it is right."""
    value, wrong = decoded(FORMAT2, name, data)
    return value, not wrong and value["checksum"] == sum_of(FORMAT2, value)


def _read_with_pods(data: object) -> dict[str, Any]:
    """Read as the kubelet 1.36 with the gate: what it reads as format 1 is added to what it could not take as format
    2."""
    value, is_right = _read_format2(data, STRUCT)
    if is_right:
        return value
    old = _read_format1(data, _V2_ON_REQUEST_IN, pod_level=True)
    return {**old, "podEntries": value["podEntries"]}


def _read_format3(data: object) -> dict[str, Any]:
    value, wrong = decoded(_FORMAT3, STRUCT, data)
    if wrong:
        wrong = "failed to deserialize memory manager checkpoint: " + wrong
    else:
        inner, wrong = _read_data(value["data"])
        if not wrong and value["dataChecksum"] == fnv("(string)" + value["data"]):
            return inner
    if value["data"] or value["dataChecksum"]:
        # Then it is no older format.
        raise MemoryStateError("could not load v3 checkpoint: " + (wrong or _CORRUPTED))
    value, is_right = _read_format2(data, STRUCT + "V2")
    return value if is_right else _read_format1(data, _V3_SINCE)


def _read_data(text: str) -> tuple[dict[str, Any], str]:
    """Return what the member data says, and what is wrong with it."""
    try:
        inner, wrong = decoded(_DATA, STRUCT + "Data", read_json(text.encode("utf-8")))
    except GoError as error:
        inner, wrong = {}, str(error)
    return inner, "failed to deserialize memory manager checkpoint data: " + wrong if wrong else ""


# --- writing ------------------------------------------------------------------------------------------------


def write_memory(
    config: MemoryConfig,
    machine: dict[int, Any],
    pod_entries: dict[str, Any] | None,
    entries: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
) -> bytes:
    """Return the bytes of a state. entries: {pod UID: {container: [block]}} of those that have memory of their own."""
    value = {"policyName": config.policy, "machineState": machine, "entries": entries, "podEntries": pod_entries}
    # In the order of their names as texts.
    shown: dict[str, Any] = {"policyName": config.policy}
    shown["machineState"] = {str(node): machine[node] for node in sorted(machine, key=str)}
    if entries:
        shown["entries"] = {pod: dict(sorted(containers.items())) for pod, containers in sorted(entries.items())}
    pods = {"podEntries": dict(sorted(pod_entries.items()))} if pod_entries else {}
    if config.minor >= _V3_SINCE:
        data = json_text({**shown, **pods})
        sums = {"checksum": sum_of(FORMAT1, value), "data": data, "dataChecksum": fnv("(string)" + data)}
        return json_text({**shown, **sums}).encode("utf-8")
    if config.pod_level and config.minor == _V2_ON_REQUEST_IN:
        return json_text({**shown, **pods, "checksum": sum_of(FORMAT2, value)}).encode("utf-8")
    return json_text({**shown, "checksum": sum_of(FORMAT1, value)}).encode("utf-8")


NONE, STATIC = "None", "Static"
MEMORY = "memory"

ACCEPTED, REFUSED, NOT_JUDGED = "accepted", "refused", "not judged"

_OTHER_MACHINE = "[memorymanager] the expected machine state is different from the real one"
_NO_MACHINE = "[memorymanager] machine state can not be empty when it has memory assignments"
_NOT_THERE = "[memorymanager] (pod: %s, container: %s) the memory assignment uses %s that does not exist"
_PANIC = "runtime error: invalid memory address or nil pointer dereference"

_MOST = (1 << 64) - 1

_RANDOM = "the state has groups of NUMA nodes that overlap, which the kubelet goes through in random order"


class MemoryJudgement(NamedTuple):
    """Whether a kubelet would start with a state."""

    # NOT_JUDGED where it cannot be determined.
    verdict: str
    # The kubelet's cause where it refuses the state; why it cannot be determined where it is not judged; else empty.
    reason: str = ""
    # Whether the kubelet can restore the state, which it does before it looks at the machine.
    restored: bool = True

    def text(self, path: str) -> str:
        """Return all that the kubelet says where it refuses the state in the file `path`."""
        if self.restored:
            return self.reason
        return (
            "could not restore state from checkpoint: %s, please drain this node and delete the memory manager"
            " checkpoint file %s before restarting Kubelet" % (self.reason, quote(path))
        )


def judge_memory(content: bytes | MemoryStateError, config: MemoryConfig) -> MemoryJudgement:
    """Judge whether a kubelet with this configuration, on this machine, would start with this file. An error: it
    cannot be read."""
    try:
        state = restore_memory(content, config)
    except MemoryStateError as error:
        return MemoryJudgement(REFUSED, str(error), restored=False)
    if any(None in (node["memoryMap"] or {}).values() for node in (state.machine or {}).values() if node is not None):
        return MemoryJudgement(REFUSED, _PANIC)
    return MemoryJudgement(ACCEPTED) if config.policy != STATIC else _judge_machine(state, config)


def memory_owners(content: bytes) -> list[tuple[str, str]]:
    """Return [(pod UID, container)] of those that have memory of their own; none where that cannot be read."""
    return sorted(memory_amounts(content))


def memory_amounts(content: bytes) -> dict[tuple[str, str], dict[str, int]]:
    """Return {(pod UID, container): {"memory" or "hugepages-...": bytes}} of those that have some of their own.

    Nothing where that cannot be read; what is no size is left out.
    """
    try:
        data = read_json(content)
    except GoError:
        return {}
    found: dict[tuple[str, str], dict[str, int]] = {}
    for pod, containers in _members(data, "entries"):
        for container, blocks in _pairs(containers):
            _add_blocks(found.setdefault((pod, container), {}), blocks)
    return found


def memory_of_pods(content: bytes) -> dict[str, dict[str, int]]:
    """Return {pod UID: {"memory" or "hugepages-...": bytes}} of those that have some as a whole, as
    memory_amounts()."""
    try:
        data = read_json(content)
    except GoError:
        return {}
    # In 1.37 they are in a text.
    text = dict(_pairs(data)).get("data")
    if isinstance(text, str):
        with suppress(GoError):
            data = read_json(text.encode("utf-8"))
    found: dict[str, dict[str, int]] = {}
    for pod, entry in _members(data, "podEntries"):
        for _name, blocks in _pairs(entry):
            _add_blocks(found.setdefault(pod, {}), blocks)
    return found


def _add_blocks(sizes: dict[str, int], blocks: object) -> None:
    for block in blocks if isinstance(blocks, list) else ():
        given = {key.lower(): value for key, value in _pairs(block)}
        kind, size = given.get("type"), given.get("size")
        amount = UINT64.parse(size) if isinstance(size, Number) else None
        if isinstance(kind, str) and not isinstance(kind, Number) and amount is not None:
            sizes[kind] = sizes.get(kind, 0) + amount


def _members(data: object, name: str) -> list[tuple[str, object]]:
    """Return the members of what Go reads for a field: the last of its name, in upper or lower case."""
    return next((_pairs(value) for key, value in reversed(_pairs(data)) if key.lower() == name.lower()), [])


def _pairs(value: object) -> list[tuple[str, object]]:
    return value if isinstance(value, Object) else []


# --- the machine --------------------------------------------------------------------------------------------


class _Owned(NamedTuple):
    """The blocks of a container, or without a container's name those of a pod."""

    pod: str
    container: str
    blocks: Sequence[Mapping[str, Any]]


def first_machine(machine: Amounts, reserved: Amounts) -> dict[int, Any]:
    """Return the memory of which no pod has any: {NUMA node: NUMANodeState}."""
    found: dict[int, Any] = {}
    for node, totals in machine.items():
        # Go counts and subtracts with 64 bits without a sign.
        kept = {kind: amount & _MOST for kind, amount in reserved.get(node, {}).items()}
        pages = sum(total for kind, total in totals.items() if kind != MEMORY)
        tables = {}
        for kind, total in sorted(totals.items()):
            free = total - kept.get(kind, 0) - (pages if kind == MEMORY else 0) & _MOST
            rest = {"allocatable": free, "reserved": 0, "free": free}
            tables[kind] = {"total": total, "systemReserved": kept.get(kind, 0), **rest}
        found[node] = {"numberOfAssignments": 0, "memoryMap": tables, "cells": [node]}
    return found


def _judge_machine(state: MemoryState, config: MemoryConfig) -> MemoryJudgement:
    """Return whether the state is what the kubelet expects of the machine, its settings and the containers' blocks."""
    if not state.machine:
        return MemoryJudgement(REFUSED, _NO_MACHINE) if state.entries else MemoryJudgement(ACCEPTED)
    # Where the machine is not known: on any other machine than the state's the state is refused.
    machine = _machine_of(state.machine) if config.machine is None else config.machine
    owned = list(_owned(state))
    orders = (owned, owned[::-1]) if len(owned) > 1 else (owned,)
    reasons = {_refusal(state.machine, config._replace(machine=machine), containers) for containers in orders}
    if "" not in reasons:
        return MemoryJudgement(REFUSED, min(reasons))
    if len(reasons) > 1:
        return MemoryJudgement(NOT_JUDGED, _RANDOM)
    return MemoryJudgement(ACCEPTED) if config.machine is not None else MemoryJudgement(NOT_JUDGED, config.unknown)


def _machine_of(state: Mapping[int, Any]) -> Amounts:
    """Return the machine on which this state can have been written."""
    return {
        node: {MEMORY: 0, **{kind: table["total"] for kind, table in (value["memoryMap"] or {}).items()}}
        for node, value in state.items()
        if value is not None
    }


def machine_differences(content: bytes, config: MemoryConfig) -> list[str]:
    """Return which amounts of the NUMA nodes are others than in a state that a kubelet can restore."""
    here = config.machine or {}
    there = {} if config.machine is None else _machine_of(restore_memory(content, config).machine or {})
    found = []
    for node in sorted({*there, *here} if there else ()):
        amounts = there.get(node, {}), here.get(node, {})
        for kind in sorted({kind for kinds in amounts for kind in kinds}):
            old, new = ("none" if kind not in kinds else "%d bytes" % kinds[kind] for kinds in amounts)
            if old != new:
                found.append("NUMA node %d: %s: %s in the file, %s now" % (node, kind, old, new))
    return found


def _owned(state: MemoryState) -> Iterable[_Owned]:
    """Yield who owns blocks; of a pod that has blocks as a whole only these count."""
    for pod, containers in sorted((state.entries or {}).items()):
        whole = (state.pod_entries or {}).get(pod, {}).get("memoryBlocks")
        for name, blocks in [("", whole)] if whole else sorted((containers or {}).items()):
            yield _Owned(pod, name, blocks or ())


def _refusal(found: Mapping[int, object], config: MemoryConfig, owned: Iterable[_Owned]) -> str:
    """Return why the kubelet refuses the state of the NUMA nodes; empty where it is as expected."""
    expected = first_machine(config.machine or {}, config.reserved)
    for pod, container, blocks in owned:
        for block in blocks:
            wrong = _take(expected, block)
            if wrong:
                return _NOT_THERE % (pod, container, wrong)
    if found.keys() != expected.keys():
        return _OTHER_MACHINE
    if None in found.values():
        return _PANIC
    return "" if all(_is_equal(found, expected, node, config.minor) for node in found) else _OTHER_MACHINE


def _take(machine: Mapping[int, Any], block: Mapping[str, Any]) -> str:
    """Take a block from its NUMA nodes, in their order; what of it there is not."""
    wanted = block["size"]
    for node in block["numaAffinity"] or ():
        if node not in machine:
            return "the NUMA"
        machine[node]["numberOfAssignments"] += 1
        machine[node]["cells"] = block["numaAffinity"]
        table = machine[node]["memoryMap"].get(block["type"])
        if table is None:
            return "memory resource"
        taken = min(wanted, table["free"])
        wanted -= taken
        table["reserved"] += taken
        table["free"] -= taken
    return ""


def _is_equal(found: Mapping[int, Any], expected: Mapping[int, Any], node: int, minor: int) -> bool:
    here, there = found[node], expected[node]
    cells, tables = here["cells"] or [], here["memoryMap"] or {}
    group = cells if minor >= _GROUP_SUMS_SINCE else [node]
    if here["numberOfAssignments"] != there["numberOfAssignments"] or sorted(cells) != sorted(there["cells"]):
        return False
    if tables.keys() != there["memoryMap"].keys():
        return False
    for kind, table in tables.items():
        if any(table[name] != there["memoryMap"][kind][name] for name in ("total", "systemReserved", "allocatable")):
            return False
        # How much of a group's memory is whose is counted over the group, without overflow.
        for name in ("free", "reserved"):
            totals = [_total(machine, group, kind, name) for machine in (found, expected)]
            if None in totals or totals[0] != totals[1]:
                return False
    return True


def _total(machine: Mapping[int, Any], cells: Iterable[int], kind: str, name: str) -> int | None:
    """Return the sum of a group's memory of one kind, as 64 bits hold it; None where a node of the group has none."""
    tables = [(machine[node]["memoryMap"] or {}).get(kind) for node in cells]
    return None if None in tables else sum(table[name] for table in tables) & _MOST  # type: ignore[index]
