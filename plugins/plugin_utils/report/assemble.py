# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The report of a fleet as data, made of what its nodes answered. Pure.

Its shape is docs/schema/report-1.json. All forms of the report are made from it, and every text in it can be shown.
"""

from __future__ import annotations

import json
import os
from itertools import zip_longest
from typing import Any, Collection, Iterable, Iterator, Mapping, NamedTuple, Sequence

from ...module_utils._base.errors import InputError
from ...module_utils._kubelet.settings import SETTINGS
from ...module_utils.cpuset import CPUSet
from ...module_utils.topology.model import Group, Topology
from .answers import (
    CLEAN,
    DRIFT,
    FAILED,
    NO_KUBELET,
    NOTHING_WANTED,
    UNREACHABLE,
    WRONG,
    check_date,
    collected,
    items,
    line,
    machine_of,
    mapping,
    meaning_of,
    seconds_of,
    text,
    time_of,
    view,
    was_read,
    ways_of,
    why_unread,
)
from .checks import CHECKS, DANGER, LOOKS, NOTE, SEVERITIES, THROTTLING, Check, check_of_subject
from .host_use import ReservedAmounts, cpu_count, host_use_of, reserved_memory
from .looks import shown_looks, source_of
from .results import Problem, Result
from .shapes import (
    CheckCount,
    CheckText,
    Count,
    GoneFinding,
    MeasuredNode,
    Report,
    ReportedFinding,
    ReportedGroup,
    ReportedNode,
    ReportedView,
    UnusedFile,
)
from .where import places_of

# A topology as nested boxes, for pictures: sockets hold NUMA nodes, these hold L3 caches, these hold cores.


# From the outside in.
LEVELS = ("socket", "numa_node", "l3_cache")


def layout(topology: Topology) -> list[dict[str, Any]]:
    """Return boxes {"kind", "id", "cpus", "members"}; the innermost members are cores, as lists of CPU ids.

    CPUs that a level leaves out are in a box of that level whose id is None.
    """
    kinds = (topology.sockets, topology.numa_nodes, topology.caches)
    return _nested_boxes(topology, topology.online, list(zip(LEVELS, kinds)))


def _nested_boxes(topology: Topology, cpus: CPUSet, levels: list[tuple[str, tuple[Group, ...]]]) -> list[Any]:
    if not levels:
        return [list(core.cpus & cpus) for core in topology.cores if core.cpus & cpus]
    (kind, groups), inner = levels[0], levels[1:]
    boxes = []
    for number, part in _parts(groups, cpus):
        members = _nested_boxes(topology, part, inner)
        boxes.append({"kind": kind, "id": number, "cpus": str(part), "members": members})
    return boxes


def _parts(groups: Iterable[Group], cpus: CPUSet) -> Iterable[tuple[int | None, CPUSet]]:
    left = cpus
    for group in groups:
        if left & group.cpus:
            yield group.id, left & group.cpus
            left = left - group.cpus
    if left:
        yield None, left


# An earlier report of the same fleet, with which a new one is compared. Pure but for reading it.


# Of a report.
KIND = "kubenode.cpu_manager/report"
SCHEMA_VERSION = "1.0"
_MAJOR = SCHEMA_VERSION.partition(".")[0]
# Four times the report of 10,000 nodes, in bytes.
_LARGEST = 256 << 20


class Baseline:
    """The findings of an earlier report, {host: {(check, subject): {value: when it was first seen}}}."""

    def __init__(self, report: Mapping[str, object]) -> None:
        self._findings: dict[str, dict[tuple[str, str], dict[str, str]]] = {}
        made = _moment(report.get("made"))
        for node in map(mapping, items_of(report, "nodes")):
            before = self._findings.setdefault(str(node.get("host")), {})
            for finding in map(mapping, items_of(node, "findings")):
                # It may have been compared with an earlier one itself.
                first_seen = _moment(finding.get("first_seen")) or made
                values = before.setdefault((str(finding.get("check")), str(finding.get("subject"))), {})
                values.setdefault(_value(finding), first_seen)

    def compare(self, nodes: Iterable[MeasuredNode], unknown_states: Collection[str], made: str) -> list[GoneFinding]:
        """Mark each finding of these nodes as new or known, and say when it was first seen.

        made: when their report is made. A finding is known where its value is that of the earlier report, too. Returns
        the earlier ones that are gone, node by node: those of a check and subject that have no finding now. Of a node
        that could not be read nothing is gone. A node that is no longer in the report is left out.
        """
        gone: list[GoneFinding] = []
        for node in nodes:
            before = self._findings.get(node["host"], {})
            now = set()
            for finding in node["findings"]:
                key = (finding["check"], finding["subject"])
                first_seen = before.get(key, {}).get(_value(finding))
                finding["since"] = "new" if first_seen is None else "known"
                finding["first_seen"] = made if first_seen is None else first_seen
                now.add(key)
            if node["state"] not in unknown_states:
                gone += (_gone(node["host"], *key) for key in sorted(before.keys() - now))
        return gone


def _value(finding: Mapping[str, object]) -> str:
    """Return what was found. The figures of a measurement are others each time, and none of them is a value."""
    check = CHECKS.get(str(finding.get("check")))
    return "" if check is not None and check.look else str(finding.get("found"))


def _moment(value: object) -> str:
    """Return a time of ours; empty for what is none."""
    try:
        seconds_of(value)
    except InputError:
        return ""
    return str(value)


def _gone(host: str, check: str, subject: str) -> GoneFinding:
    return {"host": host, "check": line(check), "subject": line(subject)}


def hosts_by_gone(gone: Iterable[GoneFinding]) -> dict[tuple[str, str], list[str]]:
    """Return {(check, subject): the hosts of which it is gone}, that of most hosts first."""
    hosts: dict[tuple[str, str], list[str]] = {}
    for finding in gone:
        hosts.setdefault((finding["check"], finding["subject"]), []).append(line(finding["host"]))
    return dict(sorted(hosts.items(), key=lambda item: -len(item[1])))


def items_of(part: Mapping[str, object], name: str) -> list[object]:
    """Return a list in a report of ours, whatever its length."""
    value = part.get(name)
    return value if isinstance(value, list) else []


def read_baseline(path: str, fleet: str = "") -> Baseline:
    """Return the report in a file. Raises InputError for what is no report of this schema, and for that of another
    fleet.

    fleet: the name of this one, if it has one. Hosts of both may have the same names.
    """
    report = read_report(path)
    named = report.get("fleet")
    if fleet and named and named != line(fleet):
        what = "is of the fleet %s, not of %s" % (line(named)[:80], line(fleet))
        raise InputError(what, path, "give the drift.json of an earlier report of this fleet")
    return Baseline(report)


def read_report(path: str) -> dict[str, object]:
    """Return a report in a file, as plain data that somebody may have edited. Raises InputError for what is no such
    report."""
    remedy = "give the drift.json of an earlier report"
    try:
        with open(path, encoding="utf-8") as file:
            is_large = os.fstat(file.fileno()).st_size > _LARGEST
            report = None if is_large else json.load(file)
    except OSError as error:
        raise InputError("cannot be read: %s" % error.strerror, path, remedy) from error
    except (ValueError, RecursionError) as error:
        raise InputError("is no JSON, or cut off", path, remedy) from error
    if is_large:
        raise InputError("has more than %d bytes" % _LARGEST, path, remedy)
    if not isinstance(report, dict) or report.get("kind") != KIND:
        raise InputError("is no drift report", path, remedy)
    if str(report.get("schema_version")).partition(".")[0] != _MAJOR:
        raise InputError("has another schema than version %s" % _MAJOR, path, remedy)
    return report


# The shapes of a fleet's nodes: which nodes are alike, and how their CPUs are drawn. Pure.


_MOST_CPUS = 8192
_MOST_GROUPS = 1024
# Of a machine of 8,192 CPUs with 250 L3 caches.
_MOST_STEPS = 1 << 20
_KINDS = {"socket": "socket", "numa_node": "NUMA node", "l3_cache": "L3"}
# Of a topology, what has a member for each group of CPUs.
_COLLECTIONS = ("sockets", "dies", "numa_nodes", "l3_caches", "numa_distances", "nearest_cpus", "same_ids")
# Of a topology, what makes two machines different.
_PARTS = ("online", "offline", "cores", "sockets", "numa_nodes", "l3_caches", "isolated")


class Groups:
    """Gives each node the number of its group, and collects the groups."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._groups: list[ReportedGroup] = []

    def number_of(self, answer: Mapping[str, object]) -> int:
        """Return the group of the node that gave this answer."""
        topology = mapping(answer.get("topology"))
        kubelet, found = mapping(answer.get("kubelet")), mapping(answer.get("found"))
        kernel = line(answer.get("kernel") or "")
        version = " ".join(line(kubelet[key]) for key in ("distribution", "version") if kubelet.get(key))
        runtime = _runtime(kubelet.get("cri_socket"))
        settings = {name: text(found[name]) for name in SETTINGS if name in found}
        parts = {part: topology.get(part) for part in _PARTS}
        key = json.dumps([parts, kernel, version, runtime, settings], sort_keys=True)
        number = self._numbers.setdefault(key, len(self._groups))
        if number == len(self._groups):
            self._groups.append(
                {
                    "id": number,
                    "machine": machine_of(topology),
                    "map": cpu_map(topology),
                    "kernel": kernel,
                    "kubelet": version,
                    "distribution": line(kubelet.get("distribution") or ""),
                    "runtime": runtime,
                    "settings": settings,
                    "nodes": 0,
                    "states": {},
                }
            )
        return number

    def counted(self, nodes: Iterable[MeasuredNode]) -> list[ReportedGroup]:
        """Return the groups of these nodes, the smallest first, numbered in this order; the nodes get the new
        numbers."""
        nodes = list(nodes)
        states: dict[int, dict[str, int]] = {}
        for node in nodes:
            if node["group"] is not None:
                counts = states.setdefault(node["group"], {})
                counts[node["state"]] = counts.get(node["state"], 0) + 1
        # Of equally many nodes in the order of the nodes, which does not depend on that of the files.
        order = sorted(states, key=lambda number: sum(states[number].values()))
        numbers = {old: new for new, old in enumerate(order)}
        for node in nodes:
            if node["group"] is not None:
                node["group"] = numbers[node["group"]]
        return [
            {**self._groups[old], "id": new, "nodes": sum(states[old].values()), "states": states[old]}
            for old, new in numbers.items()
        ]


def _runtime(socket: object) -> str:
    """Return "containerd" of /run/k3s/containerd/containerd.sock."""
    name = line(socket or "").rpartition("/")[2].partition(".sock")[0]
    return {"crio": "cri-o"}.get(name, name)


def cpu_map(described: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return how CPUs are drawn: {"boxes", "offline"}; None where the topology cannot be read.

    A box is {"core": CPUs} or {"kind", "name", "members": boxes}.
    """
    if not described:
        return None
    try:
        cores = described["cores"]
        if len(cores) > _MOST_CPUS or any(len(described.get(kind) or ()) > _MOST_GROUPS for kind in _COLLECTIONS):
            return None
        topology = Topology.from_dict({**described, "problems": ()})
        # No CPU is on two cores of a real machine, and each box looks at all of them.
        boxes = len(topology.sockets) + len(topology.numa_nodes) + len(topology.caches)
        if sum(map(len, (core.cpus for core in topology.cores))) > _MOST_CPUS or boxes * len(cores) > _MOST_STEPS:
            return None
        if len(topology.online | topology.offline) > _MOST_CPUS:
            return None
        return {"boxes": _boxes(layout(topology)), "offline": list(topology.offline)}
    except WRONG:
        return None


def _boxes(members: Iterable[Any]) -> list[dict[str, object]]:
    boxes: list[dict[str, object]] = []
    for member in members:
        if isinstance(member, list):
            boxes.append({"core": member})
        else:
            name = "%s %s" % (_KINDS[member["kind"]], "?" if member["id"] is None else member["id"])
            boxes.append({"kind": member["kind"], "name": name, "members": _boxes(member["members"])})
    return boxes


# What is wrong on a node, as findings of the checks. Pure.
#
# A finding is {"check", "severity", "subject", "wanted", "found", "source", "text", "remedy", "waived", "since",
# "first_seen"}; all are texts but `waived`, which is None or {"reason", "until"}.


# The check of a state that does not go with the wanted settings, in place of that of one which is refused already.
_OUTDATED = {"checkpoint-refused": "checkpoint-outdated", "memory-state-refused": "memory-state-outdated"}
# Checks that have rows, and notes where there is nothing wanted to compare with.
_OF_NOTES_TOO = frozenset(("kubelet-would-not-start", *_OUTDATED))
# Subjects of rows, and the kinds of the refusals that say the same again.
_TOLD_BY_ROWS = frozenset(("configuration", "start"))
_KINDS_OF_ROWS = frozenset(("configuration", "would_not_start"))


def findings_of(
    view: ReportedView, answer: Mapping[str, object], running: Mapping[str, object], looks: Mapping[str, object]
) -> list[ReportedFinding]:
    """Return the findings of one node, the worst first.

    view: what answers.view() gives of the answer. running: {setting: value} as the running kubelet has them, empty
    where it was not read. looks: {one of LOOKS: what the node answered}, without those that were not wanted.
    """
    if view["status"] == NO_KUBELET:
        return list(_of_notes(answer))
    rows = list(_of_rows(view))
    # What a row says, a note need not say again.
    notes = [note for note in _of_notes(answer) if note["check"] not in {row["check"] for row in rows}]
    found = [*rows, *notes, *_of_refusals(view), *_of_running(answer, running)]
    if view["elsewhere"]:
        elsewhere = view["elsewhere"]
        found.append(_finding("settings-elsewhere", line(elsewhere["name"]), text=elsewhere["why"]))
    if looks:
        # A look reads the same files again, and may have the same notes.
        told = {(finding["check"], finding["text"]) for finding in found}
        found += [finding for finding in _of_looks(looks) if (finding["check"], finding["text"]) not in told]
    return sorted(found, key=lambda finding: SEVERITIES.index(finding["severity"]))


def is_open(finding: ReportedFinding) -> bool:
    """Return whether it counts: it is no note, and not waived."""
    return finding["severity"] != NOTE and not finding["waived"]


def oldest_findings(nodes: Iterable[ReportedNode]) -> dict[str, str]:
    """Return {check: when its oldest finding was first seen}, of the findings that count; empty without a baseline."""
    oldest: dict[str, str] = {}
    for node in nodes:
        for finding in node["findings"]:
            first_seen = finding["first_seen"]
            if first_seen and is_open(finding):
                # As text, times are in their order.
                oldest[finding["check"]] = min(first_seen, oldest.get(finding["check"], first_seen))
    return oldest


def _finding(
    check_id: str,
    subject: str = "",
    remedy: str = "",
    wanted: str = "",
    found: str = "",
    source: str = "",
    text: str = "",
) -> ReportedFinding:
    check: Check = CHECKS[check_id]
    return {
        "check": check.id,
        "severity": check.severity,
        "subject": subject,
        "wanted": wanted,
        "found": found,
        "source": source,
        "text": text,
        "remedy": remedy or check.remedy_for(subject),
        "waived": None,
        "since": "",
        "first_seen": "",
    }


def _of_rows(view: ReportedView) -> Iterator[ReportedFinding]:
    for row in view["rows"]:
        subject = line(row["subject"])
        check_id = check_of_subject(subject).id
        # With the settings that it has now, the kubelet takes the file.
        check_id = check_id if row["refused_now"] else _OUTDATED.get(check_id, check_id)
        yield _finding(check_id, subject, row["remedy"], row["wanted"], row["found"], row["source"])


def _of_looks(looks: Mapping[str, object]) -> Iterator[ReportedFinding]:
    """Yield a node may be hostile: a look has findings of its own checks only."""
    for look in LOOKS:
        if look not in looks:
            continue
        answer = mapping(looks[look])
        if answer.get("failed") or not answer:
            yield _finding(look + "-unmeasured", text=text(answer.get("msg") or "the node gave no reason"))
            continue
        for found in map(mapping, items(answer.get("findings"))):
            check = CHECKS.get(str(found.get("check")))
            values = {name: text(found.get(name, "")) for name in ("wanted", "found")}
            check_id = "noted" if check is None or check.look != look else check.id
            subject, remedy = line(found.get("subject", "")), text(found.get("remedy", ""))
            yield _finding(check_id, subject, remedy, source=source_of(look), **values)
        yield from _of_notes(answer)


def _of_notes(answer: Mapping[str, object]) -> Iterator[ReportedFinding]:
    """Yield a node may be hostile: an id that is none of a note's is not taken."""
    notes, ids = items(answer.get("notes")), items(answer.get("note_checks"))
    for note, check_id in zip_longest(notes, ids[: len(notes)], fillvalue=""):
        is_known = isinstance(check_id, str) and check_id in CHECKS
        is_known = is_known and (check_id in _OF_NOTES_TOO or not CHECKS[str(check_id)].subjects)
        yield _finding(str(check_id) if is_known else "noted", text=text(note))


def _of_refusals(view: ReportedView) -> Iterator[ReportedFinding]:
    is_told = {row["subject"] for row in view["rows"]} & _TOLD_BY_ROWS
    for kind, refusal in zip(view["refusal_kinds"], view["refusals"]):
        if not (is_told and kind in _KINDS_OF_ROWS):
            yield _finding("change-refused", text=refusal)


def _of_running(answer: Mapping[str, object], running: Mapping[str, object]) -> Iterator[ReportedFinding]:
    found = mapping(answer.get("found"))
    for name in SETTINGS:
        if name in running and name in found and meaning_of(name, running[name]) != meaning_of(name, found[name]):
            values = {"wanted": text(found[name]), "found": text(running[name])}
            yield _finding("running-kubelet-differs", name, source="configz of the running kubelet", **values)


def waive(findings: list[ReportedFinding], waivers: object, today: str) -> None:
    """Mark the findings that somebody has waived until a day that is not over; add a note for each day that is.

    waivers: [{"check", "reason", "until"}], `subject` too where only one is meant; others than these are left out.
    today: such as "2026-11-23".
    """
    for waiver in map(mapping, items(waivers)):
        try:
            until = check_date(waiver.get("until"))
        except InputError:
            continue
        if until < today:
            if str(waiver.get("check")) in CHECKS:
                findings.append(_ended(waiver, until))
            continue
        for finding in findings:
            if finding["check"] == waiver.get("check") and waiver.get("subject") in (None, finding["subject"]):
                finding["waived"] = {"reason": text(waiver.get("reason", "")), "until": until}


def _ended(waiver: Mapping[str, object], until: str) -> ReportedFinding:
    of = waiver.get("subject")
    subject = line(waiver.get("check")) + (" of %s" % line(of) if of else "")
    reason = "the last day was %s; the reason was: %s" % (until, text(waiver.get("reason", "")))
    return _finding("waiver-ended", subject, text=reason)


REFUSED, MISSING, STALE = "refused", "missing", "stale"
# The worst first.
STATES = (REFUSED, UNREACHABLE, FAILED, MISSING, STALE, DRIFT, NO_KUBELET, NOTHING_WANTED, CLEAN)
# A node in one of these was not compared with anything: it counts neither as wanted nor as different.
UNCOMPARED_STATES = (NOTHING_WANTED, NO_KUBELET)
# Of a node in one of these, nothing is to be done.
CALM_STATES = (CLEAN, *UNCOMPARED_STATES)
# Of a node in one of these, it is not known how it is.
UNKNOWN_STATES = frozenset((FAILED, UNREACHABLE, MISSING, STALE))
# Of these, there is nothing that was read: looked_at is when that was tried.
UNREAD_STATES = UNKNOWN_STATES - {STALE}

# What a report comes to, with the exit status that stands for it.
OUTCOMES = {"clean": 0, "unknown": 1, "drift": 2, "danger": 3}
# What makes the run fail that makes a report.
GATES = ("danger", "drift", "unread", "never")

_POOLS = ("online", "reserved", "exclusive", "shared", "stranded", "offline", "isolated", "reserved_wanted")
_USES = ("exclusive", "reserved", "shared", "offline")


class ReportTerms(NamedTuple):
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


def assemble(results: Iterable[Result | Problem], terms: ReportTerms) -> Report:
    """Return the report of these results; of several of one host the newest counts."""
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
    """Return whether a report does not pass one of GATES. What could not be read passes "never" alone."""
    if gate == "never":
        return False
    is_unread = report["problems"] or lacks_kubelets(report) or UNKNOWN_STATES.intersection(report["summary"]["states"])
    return bool(is_unread) or (gate != "unread" and OUTCOMES[report["summary"]["outcome"]] >= OUTCOMES[gate])


def lacks_kubelets(report: Report) -> bool:
    """Return whether no host of a report has a kubelet, so that nothing was compared."""
    return all(node["state"] == NO_KUBELET for node in report["nodes"])


def failing_hosts(report: Report, gate: str) -> list[str]:
    """Return the hosts for which a report does not pass one of GATES, in its order."""
    states = UNKNOWN_STATES | {"danger": {REFUSED}, "drift": {REFUSED, DRIFT}}.get(gate, set())
    return [] if gate == "never" else [node["host"] for node in report["nodes"] if node["state"] in states]


def _described(check_id: str) -> CheckText:
    check = CHECKS[check_id]
    page = "docs/docsite/rst/checks.rst#%s" % check.id
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


def _node(result: Result, terms: ReportTerms, groups: Groups) -> MeasuredNode:
    answer = collected(result.host, result.answer)
    seen = view(answer)
    if not was_read(answer, result.may_lack_kubelet):
        state = UNREACHABLE if answer["status"] == UNREACHABLE else FAILED
        return _empty_node(result.host, state, why_unread(answer), result.looked_at)
    findings = findings_of(seen, answer, result.running, result.looks)
    waive(findings, result.waivers, time_of(terms.made)[:10])
    state = _state(seen["status"], findings)
    message, looks = "", None
    if result.looks and seen["status"] != NO_KUBELET:
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
    counters = mapping(mapping(mapping(result.looks).get(THROTTLING)).get("host"))
    cpus = mapping(answer.get("cpus"))
    reserved = ReservedAmounts(cpu_count(cpus.get("reserved")), reserved_memory(answer.get("found")))
    use = host_use_of(counters, cpu_count(cpus.get("online")), reserved)
    if use is not None:
        node["host_use"] = use
    places = places_of(result, answer)
    if places:
        node["places"] = places
    return node


def _state(status: str, findings: Iterable[ReportedFinding]) -> str:
    """Return a node is as wanted where nothing but what is waived differs."""
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
    """Return how many nodes have each check, the worst checks first. A node counts once."""
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
    """Return the worst of all nodes. A node that could not be read, and a file that was not used, are never clean."""
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
    """Return a key by which worker-2 comes before worker-10."""
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
