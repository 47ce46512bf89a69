# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The memory manager's state, the file memory_manager_state: would a kubelet start with it, and what does it write?

Source: pkg/kubelet/cm/memorymanager (policy_static.go, memory_manager.go).
"""

from __future__ import annotations

from typing import Any, Iterable, Mapping, NamedTuple, Sequence

from ..errors import GoError
from ..golang import Object, quote, read_json
from .memory_formats import Amounts, MemoryConfig, MemoryState, MemoryStateError, restore_memory, write_memory

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
        """All that the kubelet says where it refuses the state in the file `path`."""
        if self.restored:
            return self.reason
        return (
            "could not restore state from checkpoint: %s, please drain this node and delete the memory manager"
            " checkpoint file %s before restarting Kubelet" % (self.reason, quote(path))
        )


def judge_memory(content: bytes | MemoryStateError, config: MemoryConfig) -> MemoryJudgement:
    """Would a kubelet with this configuration, on this machine, start with this file? An error: it cannot be read."""
    try:
        state = restore_memory(content, config)
    except MemoryStateError as error:
        return MemoryJudgement(REFUSED, str(error), restored=False)
    if any(None in (node["memoryMap"] or {}).values() for node in (state.machine or {}).values() if node is not None):
        return MemoryJudgement(REFUSED, _PANIC)
    return MemoryJudgement(ACCEPTED) if config.policy != STATIC else _judge_machine(state, config)


def memory_state_after(content: bytes | None, config: MemoryConfig) -> bytes | None:
    """What is in the file after a start with `content`, which the kubelet accepts; None where that is not known.

    None as `content`: there was no file.
    """
    state = MemoryState("", {}, {}, {}) if content is None else restore_memory(content, config)
    if content is not None and (config.policy != STATIC or state.machine):
        return content
    machine: dict[int, object] = {}
    if config.policy == STATIC:
        if config.machine is None:
            return None
        machine = _first_machine(config.machine, config.reserved)
    return write_memory(config, machine, state.pod_entries if config.pod_level else {})


def first_memory_state(config: MemoryConfig) -> bytes | None:
    """What a kubelet writes that finds no state; None where the machine's memory is not known and counts."""
    return memory_state_after(None, config)


def memory_owners(content: bytes) -> list[tuple[str, str]]:
    """[(pod UID, container)] of those that have memory of their own; none where that cannot be read."""
    try:
        data = read_json(content)
    except GoError:
        return []
    entries = _members(data, "entries")
    return sorted((pod, container) for pod, blocks in entries for container, _blocks in _pairs(blocks))


def _members(data: object, name: str) -> list[tuple[str, object]]:
    """The members of what Go reads for a field: the last of its name, in upper or lower case."""
    return next((_pairs(value) for key, value in reversed(_pairs(data)) if key.lower() == name.lower()), [])


def _pairs(value: object) -> list[tuple[str, object]]:
    return value if isinstance(value, Object) else []


# --- the machine --------------------------------------------------------------------------------------------


class _Owned(NamedTuple):
    """The blocks of a container, or without a container's name those of a pod."""

    pod: str
    container: str
    blocks: Sequence[Mapping[str, Any]]


def _first_machine(machine: Amounts, reserved: Amounts) -> dict[int, object]:
    """The memory of which no pod has any: {NUMA node: NUMANodeState}."""
    found: dict[int, object] = {}
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
    """Whether the state is what the kubelet expects of the machine, its settings and the containers' blocks."""
    if not state.machine:
        return MemoryJudgement(REFUSED, _NO_MACHINE) if state.entries else MemoryJudgement(ACCEPTED)
    # Where the machine is not known: on any other machine than the state's the state is refused.
    machine = _machine_of(state.machine) if config.machine is None else config.machine
    owned = list(_owned(state))
    orders = (owned, owned[::-1]) if len(owned) > 1 else (owned,)
    reasons = {_refusal(state.machine, machine, config.reserved, containers) for containers in orders}
    if "" not in reasons:
        return MemoryJudgement(REFUSED, min(reasons))
    if len(reasons) > 1:
        return MemoryJudgement(NOT_JUDGED, _RANDOM)
    return MemoryJudgement(ACCEPTED) if config.machine is not None else MemoryJudgement(NOT_JUDGED, config.unknown)


def _machine_of(state: Mapping[int, Any]) -> Amounts:
    """The machine on which this state can have been written."""
    return {
        node: {MEMORY: 0, **{kind: table["total"] for kind, table in (value["memoryMap"] or {}).items()}}
        for node, value in state.items()
        if value is not None
    }


def _owned(state: MemoryState) -> Iterable[_Owned]:
    """Of a pod that has blocks as a whole only these count."""
    for pod, containers in sorted((state.entries or {}).items()):
        whole = (state.pod_entries or {}).get(pod, {}).get("memoryBlocks")
        for name, blocks in [("", whole)] if whole else sorted((containers or {}).items()):
            yield _Owned(pod, name, blocks or ())


def _refusal(found: Mapping[int, object], machine: Amounts, reserved: Amounts, owned: Iterable[_Owned]) -> str:
    """Why the kubelet refuses the state of the NUMA nodes; empty where it is as expected."""
    expected = _first_machine(machine, reserved)
    for pod, container, blocks in owned:
        for block in blocks:
            wrong = _take(expected, block)
            if wrong:
                return _NOT_THERE % (pod, container, wrong)
    if found.keys() != expected.keys():
        return _OTHER_MACHINE
    if None in found.values():
        return _PANIC
    return "" if all(_is_equal(found, expected, node) for node in found) else _OTHER_MACHINE


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


def _is_equal(found: Mapping[int, Any], expected: Mapping[int, Any], node: int) -> bool:
    here, there = found[node], expected[node]
    cells, tables = here["cells"] or [], here["memoryMap"] or {}
    if here["numberOfAssignments"] != there["numberOfAssignments"] or sorted(cells) != sorted(there["cells"]):
        return False
    if tables.keys() != there["memoryMap"].keys():
        return False
    for kind, table in tables.items():
        if any(table[name] != there["memoryMap"][kind][name] for name in ("total", "systemReserved", "allocatable")):
            return False
        # How much of a group's memory is whose is counted over the group, without overflow.
        for name in ("free", "reserved"):
            totals = [_total(machine, cells, kind, name) for machine in (found, expected)]
            if None in totals or totals[0] != totals[1]:
                return False
    return True


def _total(machine: Mapping[int, Any], cells: Iterable[int], kind: str, name: str) -> int | None:
    """The sum of a group's memory of one kind, as 64 bits hold it; None where a node of the group has none."""
    tables = [(machine[node]["memoryMap"] or {}).get(kind) for node in cells]
    return None if None in tables else sum(table[name] for table in tables) & _MOST  # type: ignore[index]
