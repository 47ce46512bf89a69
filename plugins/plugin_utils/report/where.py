# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where the containers of a fleet are: one row for each, from the results of the nodes. Pure.

Containers with exclusive CPUs are in every result; all others, and what was throttled, in one with the look throttling.
"""

from __future__ import annotations

import csv
import io
from typing import Any, Callable, Iterable, Iterator, Mapping

from ...module_utils.cpuset import CPUSet
from ...module_utils.topology.model import Group, Topology
from .answers import WRONG, items, line, mapping, seconds_of
from .checks import THROTTLING
from .results import Result
from .shapes import ContainerPlace, MeasuredNode, Report

EXCLUSIVE, SHARED = "exclusive", "shared"
# Of the CPUs that its pod has as a whole, alone or with others of it.
OF_POD = "pod"
_WHOLE, _SPLIT = "whole", "split"
COLUMNS = ("pod", "container", "node", "use", "cpus", "cores", "numa_nodes", "caches", "throttled_percent", "since")
_HEADS = {"cpus": "CPUS", "numa_nodes": "NUMA", "caches": "L3", "throttled_percent": "THROTTLED %"}
# With these a program for tables takes a cell for a formula; the last four are as wide as a letter of Japanese.
_FORMULAS = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_LONGEST = 60
# Lists of CPUs of one node whose meaning is found out; those of real nodes have half as many containers with CPUs.
_MOST_LISTS = 300
# Cores, NUMA nodes, caches: Linux has at most 8,192 CPUs.
_MOST_PARTS = 8192


def places_of(result: Result, answer: Mapping[str, Any]) -> list[ContainerPlace]:
    """Return a row for each container of a node that is known. answer: that of the node; it raises nothing."""
    place = _placer(answer)
    looked = mapping(mapping(result.looks).get(THROTTLING))
    shared = line(mapping(answer.get("cpus")).get("shared") or "")
    places = []
    for row in map(mapping, items(looked.get("containers"))):
        exclusive, of_pod = (line(row.get(name) or "") for name in ("exclusive", "of_pod"))
        percent, since = row.get("throttled_percent"), line(row.get("started") or "")
        is_number = isinstance(percent, (int, float)) and not isinstance(percent, bool) and 0 <= percent <= 100
        places.append(
            place(
                line(row.get("pod") or row.get("pod_uid") or ""),
                line(row.get("container") or ""),
                EXCLUSIVE if exclusive else OF_POD if of_pod else SHARED,
                exclusive or of_pod or shared,
                float(percent) if is_number else None,  # type: ignore[arg-type]  # as just looked at
                since if _is_past(since, result.looked_at) else "",
            )
        )
    if not places:
        for owner in map(mapping, items(answer.get("owners"))):
            name, cpus = line(owner.get("owner") or ""), line(owner.get("cpus") or "")
            if owner.get("use") == EXCLUSIVE and name:
                pod, _slash, owner_names = name.rpartition("/")
                containers = owner_names.split(", ")
                use = EXCLUSIVE if len(containers) == 1 else OF_POD
                places += [place(pod, container, use, cpus, None, "") for container in containers]
    return places


def _placer(answer: Mapping[str, Any]) -> Callable[..., ContainerPlace]:
    """Return what makes a row; what CPUs mean on the machine is found out once for each list of CPUs."""
    topology = _topology_of(answer)
    meanings: dict[tuple[str, str], tuple[str, str, str]] = {}

    def place(pod: str, container: str, use: str, cpus: str, percent: float | None, since: str) -> ContainerPlace:
        key = (use, cpus)
        if key not in meanings and len(meanings) < _MOST_LISTS:
            meanings[key] = _meaning(topology, use, cpus)
        cores, nodes, caches = meanings.get(key, ("", "", ""))
        return {
            "pod": pod,
            "container": container,
            "use": use,
            "cpus": cpus,
            "cores": cores,
            "numa_nodes": nodes,
            "caches": caches,
            "throttled_percent": percent,
            "since": since,
        }

    return place


def _topology_of(answer: Mapping[str, Any]) -> Topology | None:
    """Return the machine of a node; None where it does not say it, or says more than any machine has."""
    said = mapping(answer.get("topology"))
    if any(len(part) > _MOST_PARTS for part in said.values() if isinstance(part, (list, dict))):
        return None
    try:
        return Topology.from_dict(said)
    except WRONG:
        return None


def _meaning(topology: Topology | None, use: str, text: str) -> tuple[str, str, str]:
    """Return whether CPUs that not all share are whole cores, and their NUMA nodes and L3 caches; empty if it is not
    known."""
    try:
        cpus = CPUSet.parse(text)
    except WRONG:
        return "", "", ""
    if topology is None or not cpus:
        return "", "", ""
    mask = cpus.mask
    is_split = any(core.cpus.mask & mask and core.cpus.mask & ~mask for core in topology.cores)
    cores = _SPLIT if is_split else _WHOLE
    return "" if use == SHARED else cores, _ids(topology.numa_nodes, cpus), _ids(topology.caches, cpus)


def _ids(groups: Iterable[Group], cpus: CPUSet) -> str:
    return str(CPUSet(group.id for group in groups if group.cpus & cpus))


def _is_past(since: str, looked_at: str) -> bool:
    """Return whether a time is one, and not after the look: a clock may be wrong."""
    try:
        return seconds_of(since) <= seconds_of(looked_at)
    except WRONG:
        return False


def rows_of(report: Report, pod: str = "") -> Iterator[list[str]]:
    """Yield the rows of a fleet by pod, container and node, as texts. pod: of whose name this is a part; empty for
    all."""
    rows = [(place, node) for node in report["nodes"] for place in node.get("places", ()) if pod in place["pod"]]
    for place, node in sorted(rows, key=lambda row: (row[0]["pod"], row[0]["container"], row[1]["host"])):
        yield [_text(place, node, column) for column in COLUMNS]


def _text(place: ContainerPlace, node: MeasuredNode, column: str) -> str:
    if column == "node":
        return node["host"]
    values: Mapping[str, object] = place
    value = values[column]
    return "" if value is None else "%g" % value if isinstance(value, float) else str(value)


def csv_form(report: Report) -> Iterator[str]:
    """Yield the table as CSV (RFC 4180), in which no cell is a formula."""
    for row in (list(COLUMNS), *rows_of(report)):
        text = io.StringIO()
        csv.writer(text).writerow(["'" + value if value.startswith(_FORMULAS) else value for value in row])
        yield text.getvalue()


def where_table(report: Report, pod: str) -> str:
    """Return the table for a terminal, of the pods whose name has `pod` in it."""
    rows = [[_cut(value) for value in row] for row in rows_of(report, pod)]
    unread = [node["host"] for node in report["nodes"] if node["group"] is None]
    notes = ["%d of %d nodes were not read" % (len(unread), len(report["nodes"]))] if unread else []
    if not rows:
        named = " of a pod %s" % line(pod) if pod else ""
        return "\n".join(["no container%s was found on %d nodes" % (named, len(report["nodes"]) - len(unread)), *notes])
    head = [_HEADS.get(column, column.upper()) for column in COLUMNS]
    widths = [max(map(len, column)) for column in zip(head, *rows)]
    lines = ["  ".join(value.ljust(width) for value, width in zip(row, widths)).rstrip() for row in (head, *rows)]
    return "\n".join([*lines, *notes])


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 2] + " …"
