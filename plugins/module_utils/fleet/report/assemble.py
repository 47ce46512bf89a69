# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The report of a fleet as data, made of what its nodes answered. Pure.

Its shape is docs/schema/report-1.json. All forms of the report are made from it, and every text in it can be shown.
"""

from __future__ import annotations

from typing import Iterable, Mapping, NamedTuple, Sequence

from .answers import CLEAN, DRIFT, FAILED, NO_KUBELET, NOTHING_WANTED, UNREACHABLE, collected, view
from .baseline import KIND, SCHEMA_VERSION, Baseline
from .checks import CHECKS, DANGER, SEVERITIES
from .findings import findings_of, is_open, waive
from .groups import Groups
from .results import Problem, Result
from .shapes import CheckCount, CheckText, Count, Finding, MeasuredNode, Report, UnusedFile
from .texts import items, line, mapping, text
from .times import seconds_of, time_of
from .ways import ways_of

REFUSED, MISSING, STALE = "refused", "missing", "stale"
# The worst first.
STATES = (REFUSED, UNREACHABLE, FAILED, MISSING, STALE, DRIFT, NO_KUBELET, NOTHING_WANTED, CLEAN)
# Of a node in one of these, it is not known how it is.
UNKNOWN_STATES = frozenset((FAILED, UNREACHABLE, MISSING, STALE))
# Of these, there is nothing that was read: looked_at is when that was tried.
UNREAD_STATES = UNKNOWN_STATES - {STALE}

# What a report comes to, with the exit status that stands for it.
OUTCOMES = {"clean": 0, "unknown": 1, "drift": 2, "danger": 3}
# What makes the run fail that makes a report.
GATES = ("danger", "drift", "unread", "never")

_POOLS = ("online", "reserved", "exclusive", "shared", "offline", "isolated", "reserved_wanted")
_USES = ("exclusive", "reserved", "shared", "offline")


class Terms(NamedTuple):
    """What a report is made for."""

    title: str
    # Seconds since the epoch.
    made: float
    fleet: str = ""
    # The hosts that the report has to have; None for those of which there are results.
    hosts: Sequence[str] | None = None
    # Seconds after which the result of a node is too old; None for never.
    max_age: float | None = None
    baseline: Baseline | None = None


def assemble(results: Iterable[Result | Problem], terms: Terms) -> Report:
    """The report of these results; of several of one host the newest counts."""
    groups = Groups()
    problems: list[UnusedFile] = []
    newest: dict[str, MeasuredNode] = {}
    wanted = None if terms.hosts is None else set(terms.hosts)
    for result in results:
        if isinstance(result, Problem):
            problems.append({"file": text(result.file), "text": text(result.text), "remedy": text(result.remedy)})
        elif wanted is None or result.host in wanted:
            before = newest.get(result.host)
            if before is None or before["looked_at"] < result.looked_at:
                newest[result.host] = _node(result, terms, groups)
    for host in terms.hosts or ():
        if host not in newest:
            newest[host] = _empty_node(host, MISSING, "there is no result of this node")
    order = {state: number for number, state in enumerate(STATES)}
    nodes = sorted(newest.values(), key=lambda node: (order[node["state"]], _natural(node["host"])))
    made = time_of(terms.made)
    gone = None if terms.baseline is None else terms.baseline.compare(nodes, UNKNOWN_STATES, made)
    checks = _check_counts(nodes)
    outcome, exit_status = _outcome(nodes, problems)
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": KIND,
        "fleet": line(terms.fleet),
        "title": line(terms.title),
        "made": made,
        "summary": {
            "nodes": len(nodes),
            "states": _counts(node["state"] for node in nodes),
            "checks": checks,
            "gone": None if gone is None else len(gone),
            "outcome": outcome,
            "exit_status": exit_status,
        },
        "groups": groups.counted(nodes),
        "problems": problems,
        "gone": gone or [],
        "checks": {row["check"]: _described(row["check"]) for row in checks},
        "nodes": nodes,
    }


def fails(report: Report, gate: str) -> bool:
    """Whether a report does not pass one of GATES. What could not be read passes "never" alone."""
    if gate == "never":
        return False
    is_unread = report["problems"] or not report["nodes"] or UNKNOWN_STATES.intersection(report["summary"]["states"])
    return bool(is_unread) or (gate != "unread" and OUTCOMES[report["summary"]["outcome"]] >= OUTCOMES[gate])


def failing_hosts(report: Report, gate: str) -> list[str]:
    """The hosts for which a report does not pass one of GATES, in its order."""
    states = UNKNOWN_STATES | {"danger": {REFUSED}, "drift": {REFUSED, DRIFT}}.get(gate, set())
    return [] if gate == "never" else [node["host"] for node in report["nodes"] if node["state"] in states]


def _described(check_id: str) -> CheckText:
    check = CHECKS[check_id]
    page = "docs/docsite/rst/checks/%s.rst" % check.id
    return {
        "severity": check.severity,
        "title": check.title,
        "why": check.why,
        "remedy": check.remedy_for(),
        "page": page,
    }


def _empty_node(host: str, state: str, message: str, looked_at: str = "") -> MeasuredNode:
    return {
        "host": line(host),
        "state": state,
        "looked_at": looked_at,
        "group": None,
        "message": message,
        "findings": [],
        "ways": [],
        "actions": "",
        "refusals": [],
        "elsewhere": {},
        "containers": {},
        "pools": {},
        "owners": [],
    }


def _node(result: Result, terms: Terms, groups: Groups) -> MeasuredNode:
    answer = collected(result.host, result.answer)
    seen = view(answer)
    if answer["status"] in (FAILED, UNREACHABLE):
        message = seen["message"] or "the node gave no reason"
        return _empty_node(result.host, answer["status"], message, result.looked_at)
    findings = findings_of(seen, answer, result.running, result.looks)
    waive(findings, result.waivers, time_of(terms.made)[:10])
    state = _state(seen["status"], findings)
    message, looks = "", None
    if result.looks and seen["status"] != NO_KUBELET:
        # Imported here: most reports have no looks.
        from .looks import shown_looks

        looks = shown_looks(result.looks)
    if terms.max_age is not None and terms.made - seconds_of(result.looked_at) > terms.max_age:
        state, message = STALE, "the newest result of this node is of %s" % result.looked_at
    node: MeasuredNode = {
        **_empty_node(result.host, state, message, result.looked_at),
        "group": groups.number_of(answer),
        "findings": findings,
        "ways": ways_of(answer, result.running) if any(map(is_open, findings)) else [],
        "actions": seen["actions"],
        "refusals": seen["refusals"],
        "elsewhere": seen["elsewhere"],
        "containers": seen["containers"],
        "pools": _pools(mapping(answer.get("cpus"))),
        "owners": [_owner(owner) for owner in map(mapping, items(answer.get("owners")))],
    }
    if looks is not None:
        node["looks"] = looks
    return node


def _state(status: str, findings: Iterable[Finding]) -> str:
    """A node is as wanted where nothing but what is waived differs."""
    severities = {finding["severity"] for finding in findings if is_open(finding)}
    if severities:
        return REFUSED if DANGER in severities else DRIFT
    return CLEAN if status == DRIFT else status


def _pools(cpus: Mapping[str, object]) -> dict[str, str]:
    return {name: line(cpus.get(name) or "") for name in _POOLS}


def _owner(owner: Mapping[str, object]) -> list[str]:
    use = owner.get("use")
    return [str(use) if use in _USES else "unknown", line(owner.get("owner") or ""), line(owner.get("cpus") or "")]


def _check_counts(nodes: Iterable[MeasuredNode]) -> list[CheckCount]:
    """How many nodes have each check, the worst checks first. A node counts once."""
    rows: dict[str, CheckCount] = {}
    for node in nodes:
        seen: dict[str, set[Count]] = {}
        for finding in node["findings"]:
            marks = seen.setdefault(finding["check"], set())
            marks.add("waived" if finding["waived"] else "nodes")
            marks.update(["new"] if finding["since"] == "new" else [])
        for check_id, marks in seen.items():
            start: CheckCount = {
                "check": check_id,
                "severity": CHECKS[check_id].severity,
                "nodes": 0,
                "waived": 0,
                "new": 0,
            }
            row = rows.setdefault(check_id, start)
            for mark in marks:
                row[mark] += 1
    return sorted(rows.values(), key=lambda row: (SEVERITIES.index(row["severity"]), -row["nodes"], row["check"]))


def _outcome(nodes: Sequence[MeasuredNode], problems: Sequence[UnusedFile]) -> tuple[str, int]:
    """The worst of all nodes. A node that could not be read, and a file that was not used, are never clean."""
    findings = [finding for node in nodes for finding in node["findings"] if is_open(finding)]
    if any(finding["severity"] == DANGER for finding in findings):
        outcome = "danger"
    elif findings:
        outcome = "drift"
    else:
        is_unknown = problems or not nodes or any(node["state"] in UNKNOWN_STATES for node in nodes)
        outcome = "unknown" if is_unknown else "clean"
    return outcome, OUTCOMES[outcome]


def _counts(states: Iterable[str]) -> dict[str, int]:
    counts = dict.fromkeys(STATES, 0)
    for state in states:
        counts[state] += 1
    return {state: count for state, count in counts.items() if count}


def _natural(host: str) -> list[tuple[int, str]]:
    """worker-2 comes before worker-10."""
    parts: list[tuple[int, str]] = []
    digits = ""
    for character in host + "\0":
        if character in "0123456789":
            digits += character
            continue
        if digits:
            parts.append((int(digits[:18]), digits))
            digits = ""
        parts.append((-1, character))
    return parts
