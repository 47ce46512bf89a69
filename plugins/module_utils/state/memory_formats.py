# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The formats of the memory manager's state: how a kubelet reads them, and what it writes.

    v1  1.21 and later  the machine's memory by NUMA node, and blocks of it by pod and container
    v2  1.36            with blocks of whole pods, where the gate PodLevelResourceManagers is on
    v3  1.37            v1 for older kubelets, and v2 once more as one text with its own checksum

What is said of 1.37 comes from its sources alone; the others were compared with kubelets.
Source: pkg/kubelet/cm/memorymanager/state (checkpoint.go, state_checkpoint.go, state.go).
"""

from __future__ import annotations

from typing import Any, Iterable, Mapping, NamedTuple

from ..errors import GoError
from ..golang import json_text, quote, read_json
from ..golang_types import INT, TEXT, UINT64, Field, Map, Place, Pointer, Problems, Slice, Struct, Text, Whole
from .formats import fnv

# {NUMA node: {"memory" or "hugepages-...": bytes}}
Amounts = Mapping[int, Mapping[str, int]]

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
        Field("total", "TotalMemSize", UINT64),
        Field("systemReserved", "SystemReserved", UINT64),
        Field("allocatable", "Allocatable", UINT64),
        Field("reserved", "Reserved", UINT64),
        Field("free", "Free", UINT64),
    ],
)
_NODE = Struct(
    "state.NUMANodeState",
    [
        Field("numberOfAssignments", "NumberOfAssignments", INT),
        Field("memoryMap", "MemoryMap", Map("map[v1.ResourceName]*state.MemoryTable", Pointer(_TABLE))),
        Field("cells", "Cells", Slice(INT)),
    ],
)
_BLOCK = Struct(
    "state.Block",
    [
        Field("numaAffinity", "NUMAAffinity", Slice(INT)),
        Field("type", "Type", Text("v1.ResourceName")),
        Field("size", "Size", UINT64),
    ],
)
_BLOCKS = Slice(_BLOCK)
_POD = Struct("state.PodEntry", [Field("memoryBlocks", "MemoryBlocks", _BLOCKS)])

_POLICY = Field("policyName", "PolicyName", TEXT)
_MACHINE = Field("machineState", "MachineState", Map("state.NUMANodeMap", Pointer(_NODE), INT))
_CONTAINERS = Map("map[string][]state.Block", _BLOCKS)
_ENTRIES = Field("entries", "Entries", Map("state.ContainerMemoryAssignments", _CONTAINERS))
_POD_ENTRIES = Field("podEntries", "PodEntries", Map("state.PodMemoryAssignments", _POD))
_CHECKSUM = Field("checksum", "Checksum", Whole("checksum.Checksum"))

# What the kubelet calls its newest format, and the older ones, too, where it makes their sums.
STRUCT = "MemoryManagerCheckpoint"
FORMAT1 = (_POLICY, _MACHINE, _ENTRIES, _CHECKSUM)
FORMAT2 = (_POLICY, _MACHINE, _ENTRIES, _POD_ENTRIES, _CHECKSUM)
_DATA = (_POLICY, _MACHINE, _ENTRIES, _POD_ENTRIES)
_FORMAT3 = (
    *(field._replace(below=STRUCT + "V1") for field in FORMAT1),
    Field("data", "Data", TEXT),
    Field("dataChecksum", "DataChecksum", Whole("checksum.Checksum")),
)


def decoded(fields: Iterable[Field], name: str, data: object) -> tuple[dict[str, Any], str]:
    """What is read into a struct, and what is wrong; maps are there from the start."""
    struct, problems = Struct("state." + name, tuple(fields)), Problems()
    first = {field.json: {} if isinstance(field.type, Map) else field.type.zero() for field in struct.fields}
    return struct.read(data, first, problems, Place()), problems.first


def sum_of(fields: Iterable[Field], value: Mapping[str, object], name: str = STRUCT) -> int:
    struct = Struct("state." + name, tuple(fields))
    return fnv("(*%s)%s" % (struct.name, struct.spew({**value, _CHECKSUM.json: 0})))


# --- reading ------------------------------------------------------------------------------------------------


def restore_memory(content: bytes | MemoryStateError, config: MemoryConfig) -> MemoryState:
    """What the kubelet restores of a file, of any format. Raises MemoryStateError."""
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
    """What is read, and whether all of it is right."""
    value, wrong = decoded(FORMAT2, name, data)
    return value, not wrong and value["checksum"] == sum_of(FORMAT2, value)


def _read_with_pods(data: object) -> dict[str, Any]:
    """As the kubelet 1.36 with the gate: what it reads as format 1 is added to what it could not take as format 2."""
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
    """What the member data says, and what is wrong with it."""
    try:
        inner, wrong = decoded(_DATA, STRUCT + "Data", read_json(text.encode("utf-8")))
    except GoError as error:
        inner, wrong = {}, str(error)
    return inner, "failed to deserialize memory manager checkpoint data: " + wrong if wrong else ""


# --- writing ------------------------------------------------------------------------------------------------


def write_memory(config: MemoryConfig, machine: dict[int, Any], pod_entries: dict[str, Any] | None) -> bytes:
    """The bytes of a state in which no container has memory of its own."""
    value = {"policyName": config.policy, "machineState": machine, "entries": {}, "podEntries": pod_entries}
    # In the order of their names as texts.
    shown: dict[str, Any] = {"policyName": config.policy}
    shown["machineState"] = {str(node): machine[node] for node in sorted(machine, key=str)}
    pods = {"podEntries": dict(sorted(pod_entries.items()))} if pod_entries else {}
    if config.minor >= _V3_SINCE:
        data = json_text({**shown, **pods})
        sums = {"checksum": sum_of(FORMAT1, value), "data": data, "dataChecksum": fnv("(string)" + data)}
        return json_text({**shown, **sums}).encode("utf-8")
    if config.pod_level and config.minor == _V2_ON_REQUEST_IN:
        return json_text({**shown, **pods, "checksum": sum_of(FORMAT2, value)}).encode("utf-8")
    return json_text({**shown, "checksum": sum_of(FORMAT1, value)}).encode("utf-8")
