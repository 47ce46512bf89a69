# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where the pods of a plan fit in a fleet: the answers of allocation_plan for many nodes as one table. Pure."""

from __future__ import annotations

from typing import Any, Iterator, Mapping

from ...module_utils._base.quantity import counted
from ...module_utils.policy.quota import CONTAINER
from .answers import answered, items, line, mapping
from .host_use import cpu_count
from .terminal import host_names

_LONGEST_NAMES = 60


def fleet_placements(answers: Mapping[str, object]) -> dict[str, Any]:
    """Return {"nodes": number, "pods": rows, "unread": {message: hosts}} of {host: the answer of allocation_plan, if
    any}.

    A row is {"pod", "fits": hosts, "refused": {reason: hosts}}, in the order in which the pods arrive; with "as_whole"
    where the pod has CPUs as a whole: {"cpus", "own": {container: number}, "shared", "unused"}, in numbers of CPUs.
    """
    rows: dict[str, dict[str, Any]] = {}
    unread: dict[str, list[str]] = {}
    for host, answer in answers.items():
        found = answered(mapping(answer))
        if not found or found.get("failed") or found.get("unreachable"):
            unread.setdefault(line(found.get("msg", "it was not asked")), []).append(line(host))
            continue
        refused = {line(row.get("pod")): line(row.get("reason")) for row in _rows(found, "refused")}
        for pod, reason in {**dict.fromkeys(_admitted(found), ""), **refused}.items():
            row = rows.setdefault(pod, {"pod": pod, "fits": [], "refused": {}})
            (row["refused"].setdefault(reason, []) if reason else row["fits"]).append(line(host))
        for whole in _rows(found, "pods"):
            # On which CPUs it is differs between nodes, and how many these are does not.
            rows.get(line(whole.get("pod")), {}).setdefault("as_whole", _as_whole(whole, found))
    return {"nodes": len(answers), "pods": list(rows.values()), "unread": unread}


def _as_whole(whole: Mapping[str, object], answer: Mapping[str, object]) -> dict[str, Any]:
    of_pod = [row for row in _rows(answer, "containers") if row.get("uid") == whole.get("uid")]
    own = {
        line(row.get("container")): cpu_count(row.get("cpus")) for row in of_pod if row.get("isolation") == CONTAINER
    }
    counts = {name: cpu_count(whole.get(name)) for name in ("cpus", "shared", "unused")}
    return {"own": own, **counts}


def _admitted(answer: Mapping[str, object]) -> Iterator[str]:
    return (line(row.get("pod")) for row in _rows(answer, "containers"))


def _rows(answer: Mapping[str, object], name: str) -> Iterator[Mapping[str, Any]]:
    return map(mapping, items(answer.get(name)))


def placements_table(found: Mapping[str, Any]) -> str:
    """Return `shop/db-0: fits on 280 of 300 nodes; refused on 20: SMTAlignmentError (worker-[1-20])`.

    With `; of its 6 CPUs as a whole: 2 for a, 3 shared, 1 unused` where it has some. Pods alike share a line.
    """
    alike: dict[str, list[str]] = {}
    for row in found["pods"]:
        alike.setdefault(_outcome(row, found["nodes"]), []).append(row["pod"])
    lines = ["%s: %s" % (host_names(pods, _LONGEST_NAMES), outcome) for outcome, pods in alike.items()]
    lines += ["not planned on %s: %s" % (_named(hosts), message) for message, hosts in found["unread"].items()]
    return "".join(text + "\n" for text in lines)


def _outcome(row: Mapping[str, Any], nodes: int) -> str:
    parts = ["fits on %d of %s" % (len(row["fits"]), counted(nodes, "node"))]
    # The reason of most nodes first.
    by_size = sorted(row["refused"].items(), key=lambda refused: -len(refused[1]))
    parts += [
        "refused on %d: %s (%s)" % (len(hosts), reason, host_names(hosts, _LONGEST_NAMES)) for reason, hosts in by_size
    ]
    whole = row.get("as_whole")
    if whole is not None:
        own = ["%d for %s" % (count, name) for name, count in whole["own"].items()]
        rest = ["%d %s" % (whole[name], name) for name in ("shared", "unused") if whole[name]]
        parts.append("of its %s as a whole: %s" % (counted(whole["cpus"], "CPU"), ", ".join(own + rest)))
    return "; ".join(parts)


def _named(hosts: list[str]) -> str:
    return "%s (%s)" % (counted(len(hosts), "node"), host_names(hosts, _LONGEST_NAMES))
