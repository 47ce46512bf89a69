# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a node can divide of its caches, who does, and what was counted. It only reads."""

from __future__ import annotations

import os
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Callable, Iterator, Mapping

from .._base.errors import CPUManagerError, InputError, Note, noted, option
from .._base.journal_file import CACHE
from .._base.journal_file import CACHE as JOURNAL
from .._base.quantity import counted_are
from .._base.tree import GORESCTRL, RESCTRL
from .._cgroup.kubepods import container_id
from .._containers.crictl import find_names
from .._node.node import Node
from ..cpuset import CPUSet, count_bits
from .cache_partition import CacheJournal, assigned_cpus, plan_of, pool_of, read_journal, shown_wish
from .resctrl import (
    EXCLUSIVE_GROUP,
    OUR_GROUPS,
    ROOT,
    UNMEASURED,
    BandwidthResource,
    Cache,
    ControlGroup,
    Counted,
    Monitoring,
    Resctrl,
    find_mount,
    is_supported,
    read_domains,
    read_online,
    read_resctrl,
    value_text,
)
from .write import locked

if TYPE_CHECKING:
    from .._base.tree import Tree


# The containers whose processes are in a group of resctrl: the CPUs of our groups say nothing of them.
#
# Its source: "Resource allocation rules" in Documentation/filesystems/resctrl.rst in Linux: the group of a process
# comes
# before that of its CPU.


def containers_in(node: Node, found: Resctrl, notes: list[str]) -> list[dict[str, Any]]:
    """Return each container with a process in a group, by group and id; see the module cache_info for the shape."""
    ids = {name: dict.fromkeys(_ids(node, group)) for name, group in found.groups.items() if group.tasks}
    if not any(ids.values()):
        return []
    try:
        configuration = node.found()[0]
        names, _all_named = find_names(node.tree, node.runtime_endpoint(configuration), node.hides_names)
    except CPUManagerError as error:
        notes.append("the names of containers are not known: %s" % error)
        names = {}
    rows = []
    for group, of_group in ids.items():
        for identity in of_group:
            named = names.get(identity)
            rows.append(
                {
                    "group": group,
                    "id": identity,
                    "pod": "" if named is None else named.pod_name,
                    "container": "" if named is None else named.name,
                }
            )
    return rows


def _ids(node: Node, group: ControlGroup) -> Iterator[str]:
    for pid in group.tasks:
        try:
            text = (node.tree.content("/proc/%d/cgroup" % pid) or b"").decode("utf-8", "replace")
        except CPUManagerError:
            continue  # it ended meanwhile
        for line in text.splitlines():
            # A container may make cgroups of any name in its own, so the first one counts.
            identity = next(filter(None, map(container_id, line.split("/"))), "")
            if identity and "kubepods" in line:
                yield identity
                break


# How much memory traffic each group has caused over a time. Pure.


def rates_between(before: Resctrl, after: Resctrl, seconds: float) -> dict[str, dict[int, Counted]]:
    """Return {group: {id of the cache: bytes a second}} of the groups that were there all the time.

    A counter that went back was begun anew, and says nothing.
    """
    found: dict[str, dict[int, Counted]] = {}
    for name, group in after.groups.items():
        first = before.groups.get(name)
        if first is not None:
            found[name] = {
                number: Counted(
                    None,
                    _rate(first.counted[number].total, now.total, seconds),
                    _rate(first.counted[number].local, now.local, seconds),
                )
                for number, now in group.counted.items()
                if number in first.counted
            }
    return found


def _rate(before: int | None, after: int | None, seconds: float) -> int | None:
    if before is None or after is None or after < before or seconds <= 0:
        return None
    return round((after - before) / seconds)


# What is not as the journal wishes it, and who else is in the exclusive ways: as the modules and the pass see it.


LOST, DIFFERS, BY_RUNTIME = "cache-partition-lost", "cache-partition-differs", "cache-class-by-runtime"

_RUN = "run the role cache, or wait for the next pass of the role reconcile"
_MOUNT = "mount resctrl at boot (cache_mount: true), and run the role cache"
_APART = "ways for the exclusive CPUs"
_MOST_SHOWN = 5


def findings_of(
    node: Node, found: Resctrl | None, is_mounted: bool, notes: list[str]
) -> tuple[dict[str, Any] | None, list[dict[str, str]]]:
    """Return the wish as options of cache_partition, None where there is none, and the findings.

    found: None where resctrl is not mounted, or cannot be read, of which there is a note already.
    """
    if found is not None:
        notes += [_by_runtime(group) for group in found.foreign if group.tasks]
    try:
        journal = read_journal(node.tree)
    except CPUManagerError as error:
        notes.append(Note(UNMEASURED, "the settings of the partition are unknown: %s" % error))
        return None, []
    if journal is None:
        return None, []
    finding = _finding(node, found, journal, notes) if found is not None or not is_mounted else None
    return shown_wish(journal.wish, journal.terms), [] if finding is None else [finding]


def _finding(node: Node, found: Resctrl | None, journal: CacheJournal, notes: list[str]) -> dict[str, str] | None:
    if found is None:
        lost = "no ways of the caches are set apart, as resctrl is not mounted"
        return _row(LOST, "resctrl", _APART, lost, _MOUNT)
    try:
        pool = pool_of(node, journal.wish, notes)
        target, steps, _journal = plan_of(node, found, journal.wish, pool, journal)
    except CPUManagerError as error:
        return _row(DIFFERS, "the settings in %s" % CACHE, "are possible", str(error), _RUN)
    notes += target.notes
    if not steps:
        return None
    if EXCLUSIVE_GROUP not in found.groups:
        return _row(LOST, EXCLUSIVE_GROUP, _APART, "there is no such group, as after a boot", _RUN)
    shown = "; ".join(map(str, steps[:_MOST_SHOWN]))
    more = " and %d more" % (len(steps) - _MOST_SHOWN) if len(steps) > _MOST_SHOWN else ""
    return _row(DIFFERS, "resctrl", "as by the settings and the checkpoint", "to write: %s%s" % (shown, more), _RUN)


def _row(check: str, subject: str, wanted: str, found: str, remedy: str) -> dict[str, str]:
    return {"check": check, "subject": subject, "wanted": wanted, "found": found, "remedy": remedy}


def _by_runtime(group: ControlGroup) -> str:
    text = "%s%s in the group %s of a different program: its ways apply to them, whatever CPUs they have"
    more = "more than " if group.has_more else ""
    return Note(BY_RUNTIME, text % (more, counted_are(len(group.tasks), "process"), group.name))


MOST_SECONDS = 3600
# How long the lock of others is waited for; reading without it may only be of two moments.
_PATIENCE = 2.0
_ID_LENGTH = 64

Sleep = Callable[[float], None]


def cache_answer(tree: Tree, make_node: Callable[[], Node], seconds: int) -> dict[str, Any]:
    """Return what cache_report() returns, but do not make the node where resctrl is not mounted and nothing is
    wished, as on most."""
    _check_seconds(seconds)
    if find_mount(tree) is None and not tree.exists(JOURNAL, follow=False):
        return {**_nothing(is_supported(tree)), **noted(())}
    return cache_report(make_node(), seconds)


def _check_seconds(seconds: int) -> None:
    if not 0 <= seconds <= MOST_SECONDS:
        raise InputError("is %d" % seconds, option("seconds"), "give 0 to %d" % MOST_SECONDS)


def cache_report(node: Node, seconds: int, sleep: Sleep = time.sleep) -> dict[str, Any]:
    """Return what resctrl of a node has; see the module cache_info for the shape.

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
        wish, findings = findings_of(node, found, mounted is not None, notes)
        answer["partition"] = wish
    answer["findings"] = findings
    return {**answer, **noted(notes)}


def _has_foreign(found: Resctrl | None) -> bool:
    return found is not None and bool(found.foreign)


def _nothing(is_there: bool) -> dict[str, Any]:
    return {
        "supported": is_there,
        "mounted": False,
        "mount": RESCTRL,
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


def _read(node: Node, notes: list[str]) -> Resctrl | None:
    """Read resctrl, under its lock where it is mounted here."""
    with ExitStack() as stack:
        if os.path.ismount(node.tree.path(RESCTRL)):
            try:
                stack.enter_context(locked(node.tree, exclusive=False, patience=_PATIENCE))
            except CPUManagerError as error:
                notes.append(Note(UNMEASURED, "what was read may be of several moments: %s" % error))
        return read_resctrl(node.tree)


def _exclusive(node: Node, notes: list[str]) -> CPUSet | None:
    """Return the exclusive CPUs; None where the checkpoint is not there, or damaged."""
    try:
        assigned = assigned_cpus(node)
    except CPUManagerError as error:
        notes.append(Note(UNMEASURED, "which CPUs are exclusive is not known: %s" % error))
        return None
    return None if assigned is None else assigned[0]


def _rates(
    node: Node, found: Resctrl, seconds: int, sleep: Sleep, notes: list[str]
) -> Mapping[str, Mapping[int, Counted]]:
    """Return {group: {id: bytes a second}} over a time; nothing without one, or where nothing counts."""
    if not seconds:
        return {}
    if found.monitoring is None or not os.path.ismount(node.tree.path(RESCTRL)):
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
    return rates_between(before, after, end - start)


# --- the answer --------------------------------------------------------------------------------------------


def _shown(
    node: Node,
    found: Resctrl,
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
        answer["containers"] = containers_in(node, found, notes)
    return answer


def _cache(cache: Cache, root: ControlGroup, domains: Mapping[int, CPUSet], exclusive: CPUSet) -> dict[str, Any]:
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


def _bandwidth(limit: BandwidthResource) -> dict[str, Any]:
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
    """Return whose a group is, by its name: "root", "ours", "goresctrl", "runtime" for a container's id, or "other"."""
    if group == ROOT:
        return "root"
    if group in OUR_GROUPS:
        return "ours"
    if group.startswith(GORESCTRL):
        return "goresctrl"
    is_id = len(group) == _ID_LENGTH and all(letter in "0123456789abcdef" for letter in group)
    return "runtime" if is_id else "other"


def _group(group: ControlGroup, rates: Mapping[int, Counted]) -> dict[str, Any]:
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
