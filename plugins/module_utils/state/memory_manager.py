# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The memory manager's state as far as a change of its settings touches it: whether it is taken, and whose it is.

The kubelet compares all of it with the machine; here it is the policy and what is reserved of each NUMA node.
Source: pkg/kubelet/cm/memorymanager/policy_static.go, validateState and areMachineStatesEqual.
"""

from __future__ import annotations

from typing import Any, Iterator, Mapping

from .golang import GoError, Object, quote, read_json

# {NUMA node: {"memory" or "hugepages-...": bytes}}
Reserved = Mapping[int, Mapping[str, int]]

_STATIC = "Static"
_OTHER_MACHINE = "[memorymanager] the expected machine state is different from the real one"


def memory_refusal(content: bytes, policy: str, reserved: Reserved) -> str:
    """Why a memory manager with this policy refuses a state; empty where nothing speaks against it."""
    try:
        data = read_json(content)
    except GoError as error:
        return str(error)
    if not isinstance(data, Object):
        return ""
    name = _member(data, "policyName", "")
    if isinstance(name, str) and name != policy:
        return "[memorymanager] configured policy %s differs from state checkpoint policy %s" % (
            quote(policy),
            quote(name),
        )
    if policy == _STATIC and any(
        found != reserved.get(node, {}).get(kind, 0) for node, kind, found in _reservations(data)
    ):
        return _OTHER_MACHINE
    return ""


def memory_owners(content: bytes) -> list[tuple[str, str]]:
    """[(pod UID, container)] of those that have memory of their own; none where that cannot be read."""
    try:
        data = read_json(content)
    except GoError:
        return []
    entries = _members(data, "entries")
    return sorted((pod, container) for pod, blocks in entries for container, _blocks in _pairs(blocks))


def _reservations(data: Object) -> Iterator[tuple[int, str, int]]:
    """(NUMA node, kind of memory, bytes) that the state says are reserved."""
    for node, state in _members(data, "machineState"):
        for kind, table in _members(state, "memoryMap"):
            reserved = _member(table, "systemReserved")
            if node.isdecimal() and isinstance(reserved, str) and reserved.isdecimal():
                yield int(node), kind, int(reserved)


def _member(data: Any, name: str, default: Any = None) -> Any:
    """What Go reads for a field: the last of its name, in upper or lower case."""
    return next((value for key, value in reversed(_pairs(data)) if key.lower() == name.lower()), default)


def _members(data: Any, name: str) -> list[tuple[str, Any]]:
    return _pairs(_member(data, name))


def _pairs(value: Any) -> list[tuple[str, Any]]:
    return value if isinstance(value, Object) else []
