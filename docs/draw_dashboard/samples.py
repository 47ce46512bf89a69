# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A week of a fleet of 40 nodes that exists only as data, in the collection's own figures. The same at each run.

The report of each hour is a whole one, from which the code of the drift report makes the figures of the fleet and of
its nodes; the texts of the role reconcile are those of its programs.
"""

from __future__ import annotations

import math
from collections import Counter
from datetime import datetime, timedelta, timezone
from functools import lru_cache
from random import Random
from typing import Any, Iterator, NamedTuple

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._dynamic.agent import PassReport
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._dynamic.program import Figures
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._programs.reconcile_program import (
    CONTAINERS,
    METRICS,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.dynamic_state import (
    ANNOUNCE,
    EXCLUSIVE,
    POOL,
    REMOVE,
    DynamicState,
    Held,
    Move,
)
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.metrics import fleet_metrics, node_metrics
from ansible_collections.kubenode.cpu_manager.tests.machines.reports import finding, group, node, report

END = datetime(2026, 11, 23, 15, 0, tzinfo=timezone.utc)
HOURS = 7 * 24
BEGIN = END - timedelta(hours=HOURS)
# The seconds between two points of a graph, and from the sample before a point to that point: a rate takes both.
STEP, SCRAPE = 900, 240

FLEET = "eu"
NODES = tuple("worker-%02d" % number for number in range(1, 41))
# Those whose own figures are shown: the kubelet gives out the CPUs of one, the policy dynamic those of the other.
STATIC, DYNAMIC = "worker-07", "worker-35"
CONTROLLER = "controller-1"

_CPUS = 48
_RESERVED = CPUSet.parse("0-1")
_DISTRIBUTIONS = ("kubeadm", "k3s", "RKE2")
_SEVERITIES = {
    "checkpoint-refused": "danger",
    "container-throttled": "warning",
    "cpuset-differs": "warning",
    "exclusive-cpus-disturbed": "warning",
    "policy-options-differ": "warning",
    "reservation-differs": "warning",
    "topology-manager-differs": "warning",
}


class Spell(NamedTuple):
    """A finding on nodes, by their numbers, from one hour to another.

    every: how many hours later the next node is repaired.
    """

    check: str
    nodes: tuple[int, ...]
    begin: int
    end: int
    every: int = 0
    is_waived: bool = False


_ELSEWHERE = Spell("cpuset-differs", (7, 22), 112, 121)
_SPELLS = (
    Spell("reservation-differs", (3, 11, 19, 26), -60, 22, 3),
    # A foreign tool wrote the configuration of some nodes; a rollout puts them right one by one.
    Spell("policy-options-differ", tuple(range(12, 21)), 64, 92, 2),
    Spell("checkpoint-refused", (14,), 70, 78),
    _ELSEWHERE,
    Spell("exclusive-cpus-disturbed", (7, 30), 118, HOURS + 1),
    Spell("container-throttled", (5, 24, 33), 131, 156, 6),
    Spell("topology-manager-differs", (2, 9), -200, HOURS + 1, is_waived=True),
    Spell("reservation-differs", (28,), 100, HOURS + 1, is_waived=True),
)
_UNREACHABLE = {38: range(40, 55), 21: range(160, HOURS + 1)}
# Containers of a node that the kernel has on other CPUs, by the hour of that spell.
_MISPINNED = (1, 2, 2, 3, 3, 2, 2, 1, 1)

# The containers of the policy dynamic: (pod, name, first hour, last hour, CPUs at admission, most CPUs beyond these).
_CONTAINERS = (
    ("0c9f6a52", "encoder", 0, HOURS, 4, 10),
    ("4be17d08", "dataplane", 0, HOURS, 8, 0),
    ("91d3c7ee", "batch", 44, 139, 2, 14),
)
# Hours in which a container waits for its first CPUs.
_WAITING = (44, 45)


def samples() -> Iterator[str]:
    """Yield the lines of OpenMetrics, in the order of time."""
    figures, before = Figures(), _dynamic_state(0)
    for point in range(HOURS * 3600 // STEP + 1):
        for seconds in (point * STEP - SCRAPE, point * STEP):
            hour = max(seconds, 0) / 3600
            now = BEGIN.timestamp() + seconds
            state = _dynamic_state(hour)
            moves = _moves(before, state)
            figures.count(moves, 0, success=True)
            before = state
            waiting = [("91d3c7ee", "batch")] if int(hour) in _WAITING else []
            of_pass = PassReport(moves=moves, waiting=waiting, state=state, seconds=0.011 + 0.004 * len(moves))
            fleet, of_node = _reports(int(hour))
            for instance, text in (
                (CONTROLLER, fleet),
                (STATIC, of_node[STATIC] + _reconcile_pass(hour, now)),
                (DYNAMIC, of_node[DYNAMIC] + figures.text(of_pass, True, now)),
            ):
                yield from _scraped(text, instance, now)
    yield "# EOF\n"


def _scraped(text: str, instance: str, now: float) -> Iterator[str]:
    """Yield what Prometheus makes of a textfile: each sample with the time, and the labels of its node exporter."""
    for line in text.splitlines():
        if not line.startswith("#"):
            sample, _space, value = line.rpartition(" ")
            name, _brace, labels = sample.partition("{")
            own = 'instance="%s",job="node"' % instance
            yield "%s{%s%s %s %d\n" % (name, own, "," + labels if labels else "}", value, now)


# --- the drift report ---------------------------------------------------------------------------------


@lru_cache(maxsize=2)
def _reports(hour: int) -> tuple[str, dict[str, str]]:
    """Return the figures of the fleet and those of the shown nodes after the report of an hour."""
    made = _moment(hour)
    nodes = [_node(number, hour) for number in range(1, len(NODES) + 1)]
    groups = [
        group(id=place, distribution=name, nodes=sum(item["group"] == place for item in nodes))
        for place, name in enumerate(_DISTRIBUTIONS)
    ]
    whole = report(nodes=nodes, fleet=FLEET, made=made, groups=groups, problems=[], gone=[], checks={})
    shown = {item["host"]: node_metrics(item, made) for item in nodes if item["host"] in (STATIC, DYNAMIC)}
    return fleet_metrics(whole), shown


def _node(number: int, hour: int) -> Any:
    host = NODES[number - 1]
    looked_at = _moment(hour, minutes=number % 5 - 8)
    if hour in _UNREACHABLE.get(number, ()):
        return node(host, "unreachable", looked_at=looked_at, message="Connection timed out")
    findings = [_finding(spell) for spell in _SPELLS if _has(spell, number, hour)]
    counted = [found for found in findings if not found["waived"]]
    is_danger = any(found["severity"] == "danger" for found in counted)
    mispinned = [found for found in findings if found["check"] == "cpuset-differs"]
    return node(
        host,
        "refused" if is_danger else "drift" if counted else "clean",
        looked_at=looked_at,
        findings=findings,
        group=_group(number),
        containers={
            "version": "2",
            "kept": "40",
            "different": str(_different(hour) if mispinned else 0),
            "skipped": "12",
        },
        pools=_pools(host, number, hour),
        answer={"kubelet": {"distribution": _DISTRIBUTIONS[_group(number)]}},
    )


def _group(number: int) -> int:
    return 0 if number <= 24 else 1 if number <= 34 else 2


def _has(spell: Spell, number: int, hour: int) -> bool:
    if number not in spell.nodes:
        return False
    return spell.begin <= hour < spell.end + spell.every * spell.nodes.index(number)


def _finding(spell: Spell) -> Any:
    first = _moment(spell.begin)
    wanted, found = ("4-7", "4-5") if spell is _ELSEWHERE else ("as wanted", "other")
    waived = {"reason": "until the rack is rebuilt", "until": "2026-12-31"} if spell.is_waived else None
    severity = _SEVERITIES[spell.check]
    return finding(spell.check, severity=severity, wanted=wanted, found=found, first_seen=first, waived=waived)


def _different(hour: int) -> int:
    return _MISPINNED[hour - _ELSEWHERE.begin]


def _pools(host: str, number: int, hour: int) -> dict[str, str]:
    """Return a host's pools of CPUs: whole cores, more by day than by night; a container with an odd number of CPUs
    leaves the rest of a core over."""
    stranded = CPUSet()
    if host == DYNAMIC:
        exclusive = CPUSet.from_mask(_dynamic_state(hour).exclusive())
    else:
        cores = 6 + number % 4 + round(4 * _by_day(hour + number % 5))
        exclusive = CPUSet(range(2, 2 + 2 * cores))
        if number % 10 == 7 and 30 <= hour < 125:
            stranded = CPUSet([2 * cores + 1])
            exclusive = exclusive - stranded
    shared = CPUSet(range(_CPUS)) - _RESERVED - exclusive
    pools = {"online": "0-47", "reserved": _RESERVED, "exclusive": exclusive, "shared": shared, "stranded": stranded}
    return {name: str(cpus) for name, cpus in pools.items()}


def _by_day(hour: float) -> float:
    """Return a number from -1 at night to 1 by day, and less at a weekend."""
    is_weekend = (BEGIN + timedelta(hours=hour)).weekday() >= 5
    return (0.4 if is_weekend else 1.0) * math.sin(2 * math.pi * (hour + BEGIN.hour - 8) / 24)


def _moment(hour: int, minutes: int = 0) -> str:
    return (BEGIN + timedelta(hours=hour, minutes=minutes - 3)).strftime("%Y-%m-%dT%H:%M:%SZ")


# --- the role reconcile -------------------------------------------------------------------------------


def _reconcile_pass(hour: float, now: float) -> str:
    """Return the file of the node whose kubelet gives out CPUs: a pass writes more while containers are elsewhere."""
    is_busy = _has(_ELSEWHERE, NODES.index(STATIC) + 1, int(hour))
    has_failed = is_busy and hour < _ELSEWHERE.begin + 1
    results = Counter({"kept": 38 + round(4 * math.sin(hour / 5)), "written": 0, "failed": 0, "skipped": 12})
    if is_busy:
        results.update({"failed" if has_failed else "written": _different(int(hour)), "kept": -_different(int(hour))})
    duration = 0.041 + 0.006 * Random(now).random() + 0.03 * is_busy
    text = METRICS.format(success=int(not has_failed), timestamp=now, duration=duration, checkpoint=1, kubelet="")
    return text + "".join(CONTAINERS.format(result=result, count=count) for result, count in results.items())


@lru_cache(maxsize=8)
def _dynamic_state(hour: float) -> DynamicState:
    """Return containers that grow by day and give their CPUs back by night, of the CPUs beside the reserved ones."""
    held, free = {}, list(range(2, _CPUS))
    for place, (pod, name, first, last, admitted, most) in enumerate(_CONTAINERS):
        if first + len(_WAITING) * (first > 0) <= hour <= last:
            wave = 0.5 + 0.35 * _by_day(hour - 5 * place) + 0.15 * math.sin(2 * math.pi * hour / (3 + place))
            cpus = admitted + 2 * round(most * wave / 2)
            mine, free = free[:cpus], free[cpus:]
            held[(pod, name)] = Held(CPUSet(mine[:admitted]).mask, CPUSet(mine).mask)
    return DynamicState(CPUSet(free).mask, held)


def _moves(before: DynamicState, state: DynamicState) -> list[Move]:
    moves = [Move(REMOVE, key) for key in before.containers if key not in state.containers]
    for key, held in state.containers.items():
        old = before.containers.get(key)
        if old is None or old.cpus != held.cpus:
            moves += [Move(ANNOUNCE, key, held.cpus), Move(EXCLUSIVE, key, held.cpus)]
    return [*moves, Move(POOL, None, state.shared)] if before.shared != state.shared else moves
