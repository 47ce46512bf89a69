# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a node can divide of its caches, who does, and what was counted. It only reads."""

from __future__ import annotations

import os
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Callable, Mapping

from ...cache.mount import GORESCTRL, MOUNT
from ...cache.read import find_mount, is_supported, read_domains, read_online, read_resctrl
from ...cache.resctrl import (
    OUR_GROUPS,
    ROOT,
    UNMEASURED,
    Bandwidth,
    Cache,
    Counted,
    Found,
    Group,
    Monitoring,
    value_text,
)
from ...cpuset import CPUSet, count_bits
from ...errors import CPUManagerError, InputError, Note, noted, option
from ..places import CACHE as JOURNAL

if TYPE_CHECKING:
    from ...tree import Tree
    from ..node import Node

MOST_SECONDS = 3600
# How long the lock of others is waited for; reading without it may only be of two moments.
_PATIENCE = 2.0
_ID_LENGTH = 64

Sleep = Callable[[float], None]


def cache_answer(tree: Tree, make_node: Callable[[], Node], seconds: int) -> dict[str, Any]:
    """As cache_report(), without the node where resctrl is not mounted and nothing is wished, as on most."""
    _check_seconds(seconds)
    if find_mount(tree) is None and not tree.exists(JOURNAL, follow=False):
        return {**_nothing(is_supported(tree)), **noted(())}
    return cache_report(make_node(), seconds)


def _check_seconds(seconds: int) -> None:
    if not 0 <= seconds <= MOST_SECONDS:
        raise InputError("is %d" % seconds, option("seconds"), "give 0 to %d" % MOST_SECONDS)


def cache_report(node: Node, seconds: int, sleep: Sleep = time.sleep) -> dict[str, Any]:
    """What resctrl of a node has; see the module cache_info for the shape.

    seconds: over which bandwidth is measured, 0 for none. Raises InputError for a number out of range, NodeError where
    reading takes more rights.
    """
    _check_seconds(seconds)
    tree = node.tree
    notes: list[str] = []
    mounted = find_mount(tree)
    has_journal = tree.exists(JOURNAL, follow=False)
    found = None
    try:
        found = _read(node, notes)
    except CPUManagerError as error:
        notes.append(Note(UNMEASURED, "resctrl cannot be read: %s" % error))
    online = read_online(tree)
    exclusive = _exclusive(node, notes)
    answer = _nothing(mounted is not None or is_supported(tree))
    answer.update(mounted=mounted is not None, exclusive=None if exclusive is None else str(exclusive))
    rates: Mapping[str, Mapping[int, Counted]] = {}
    if found is not None:
        rates = _rates(node, found, seconds, sleep, notes)
        answer.update(_shown(node, found, online, exclusive or CPUSet(), rates, seconds, notes))
    findings: list[dict[str, str]] = []
    if has_journal or _has_foreign(found):
        # Imported here: most nodes have no group at all.
        from .findings import findings_of

        wish, findings = findings_of(node, found, mounted is not None, notes)
        answer["partition"] = wish
    answer["findings"] = findings
    return {**answer, **noted(notes)}


def _has_foreign(found: Found | None) -> bool:
    return found is not None and bool(found.foreign)


def _nothing(is_there: bool) -> dict[str, Any]:
    return {
        "supported": is_there,
        "mounted": False,
        "mount": MOUNT,
        "options": [],
        "closids": {"total": 0, "used": 0},
        "caches": [],
        "bandwidths": [],
        "monitoring": None,
        "groups": [],
        "containers": [],
        "exclusive": None,
        "seconds": None,
        "partition": None,
        "findings": [],
    }


def _read(node: Node, notes: list[str]) -> Found | None:
    """resctrl, under its lock where it is mounted here."""
    with ExitStack() as stack:
        if os.path.ismount(node.tree.path(MOUNT)):
            # Imported here: a saved node has no lock.
            from ...cache.write import locked

            try:
                stack.enter_context(locked(node.tree, exclusive=False, patience=_PATIENCE))
            except CPUManagerError as error:
                notes.append(Note(UNMEASURED, "what was read may be of several moments: %s" % error))
        return read_resctrl(node.tree)


def _exclusive(node: Node, notes: list[str]) -> CPUSet | None:
    """The exclusive CPUs; None where the checkpoint is not there, or damaged."""
    try:
        # Imported here: a node without resctrl needs none of it.
        from .assigned import assigned_cpus

        assigned = assigned_cpus(node)
    except CPUManagerError as error:
        notes.append(Note(UNMEASURED, "which CPUs are exclusive is not known: %s" % error))
        return None
    return None if assigned is None else assigned[0]


def _rates(
    node: Node, found: Found, seconds: int, sleep: Sleep, notes: list[str]
) -> Mapping[str, Mapping[int, Counted]]:
    """{group: {id: bytes a second}} over a time; nothing without one, or where nothing counts."""
    if not seconds:
        return {}
    if found.monitoring is None or not os.path.ismount(node.tree.path(MOUNT)):
        notes.append(Note(UNMEASURED, "the bandwidth is not measured: nothing counts it here"))
        return {}
    try:
        before, start = read_resctrl(node.tree), time.monotonic()
        sleep(seconds)
        after, end = read_resctrl(node.tree), time.monotonic()
    except CPUManagerError as error:
        # Without the lock, which nobody may hold for so long, a group can vanish while it is read.
        notes.append(Note(UNMEASURED, "the bandwidth is not measured: %s" % error))
        return {}
    if before is None or after is None:
        return {}
    # Imported here: without a time nobody needs it.
    from .rates import rates_between

    return rates_between(before, after, end - start)


# --- the answer --------------------------------------------------------------------------------------------


def _shown(
    node: Node,
    found: Found,
    online: CPUSet,
    exclusive: CPUSet,
    rates: Mapping[str, Mapping[int, Counted]],
    seconds: int,
    notes: list[str],
) -> dict[str, Any]:
    domains = {level: read_domains(node.tree, level, online) for level in {cache.level for cache in found.caches}}
    answer = {
        "options": list(found.options),
        "closids": {"total": found.closids(), "used": len(found.groups)},
        "caches": [_cache(cache, found.root, domains[cache.level], exclusive) for cache in found.caches],
        "bandwidths": [_bandwidth(limit) for limit in found.bandwidths],
        "monitoring": None if found.monitoring is None else _monitoring(found.monitoring),
        "groups": [_group(group, rates.get(name, {})) for name, group in sorted(found.groups.items())],
        "seconds": seconds if rates else None,
    }
    if any(group.tasks for group in found.groups.values()):
        # Imported here: on most nodes no process is in a group.
        from .containers import containers_in

        answer["containers"] = containers_in(node, found, notes)
    return answer


def _cache(cache: Cache, root: Group, domains: Mapping[int, CPUSet], exclusive: CPUSet) -> dict[str, Any]:
    return {
        "name": cache.name,
        "closids": cache.closids,
        "ways": count_bits(cache.ways),
        "mask": "%x" % cache.ways,
        "least_ways": cache.least,
        "io_ways": "%x" % cache.io_ways,
        "sparse": cache.sparse,
        "cdp": cache.has_cdp,
        "ids": {
            str(number): {
                "cpus": str(domains.get(number, CPUSet())),
                "exclusive": str(domains.get(number, CPUSet()) & exclusive),
                "usage": cache.usage.get(number, ""),
            }
            for number in root.schemata.get(cache.name, {})
        },
    }


def _bandwidth(limit: Bandwidth) -> dict[str, Any]:
    return {
        "name": limit.name,
        "closids": limit.closids,
        "least": limit.least,
        "step": limit.step,
        "linear": limit.linear,
        "throttling": limit.throttling,
        "in_mib_per_second": limit.is_rate,
    }


def _monitoring(found: Monitoring) -> dict[str, Any]:
    return {"rmids": found.rmids, "features": list(found.features), "numa_nodes_per_cache": found.sub_numa}


def owner_of(group: str) -> str:
    """Whose a group is, by its name: "root", "ours", "goresctrl", "runtime" for a container's id, or "other"."""
    if group == ROOT:
        return "root"
    if group in OUR_GROUPS:
        return "ours"
    if group.startswith(GORESCTRL):
        return "goresctrl"
    is_id = len(group) == _ID_LENGTH and all(letter in "0123456789abcdef" for letter in group)
    return "runtime" if is_id else "other"


def _group(group: Group, rates: Mapping[int, Counted]) -> dict[str, Any]:
    return {
        "name": group.name or "/",
        "owner": owner_of(group.name),
        "mode": group.mode,
        "cpus": str(group.cpus),
        "schemata": {
            resource: {str(number): value_text(resource, value) for number, value in values.items()}
            for resource, values in group.schemata.items()
        },
        "processes": len(group.tasks),
        "has_more_processes": group.has_more,
        "monitoring_groups": group.monitors,
        "counted": {str(number): _counted(counted, rates.get(number)) for number, counted in group.counted.items()},
    }


def _counted(counted: Counted, rate: Counted | None) -> dict[str, int | None]:
    return {
        "occupancy": counted.occupancy,
        "total": counted.total,
        "local": counted.local,
        "total_per_second": None if rate is None else rate.total,
        "local_per_second": None if rate is None else rate.local,
    }
