# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The report of a fleet as one HTML file that loads nothing. Pure but for read_parts(). It runs on the controller.

The file has two halves. HTML that can be read without a script: the summary, and one row for each node. And JSON with
all that is shown of a node once its row is opened; nodes that have a value in common share one copy of it. The n-th row
of the HTML is the n-th node of the JSON.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any, Iterable, Mapping, Sequence
from urllib.parse import quote

from jinja2 import Environment, StrictUndefined

from ...module_utils._base.quantity import counted
from .assemble import CALM_STATES, hosts_by_gone
from .shapes import MeasuredNode, Report, ReportedFinding, ReportedGroup
from .terminal import host_names
from .trend import point_of, verdict

# The parts of the page, by the files of the role that each is joined of.
_PARTS = {
    "template": ("templates/fleet.html.j2",),
    "style": ("files/report.css",),
    "script": ("files/cpu_map.js", "files/report.js"),
}
# {state: how it is shown}; a state that is not here is shown as one of a node that was not read.
KINDS = {
    "clean": "good",
    "nothing wanted": "quiet",
    "no kubelet": "quiet",
    "drift": "drift",
    "refused": "danger",
    "failed": "unread",
    "unreachable": "unread",
    "missing": "unread",
    "stale": "unread",
}
# The tiles of the summary: the kind, its name, and whether it is there without such a node, too.
TILES = (
    ("good", "as wanted", True),
    ("drift", "drift", True),
    ("danger", "refused", True),
    ("unread", "not read", True),
    ("quiet", "not compared", False),
)

_WORST_FIRST = ("danger", "drift", "unread", "good", "quiet")
_FACTS = ("machine", "kernel", "kubelet", "runtime")
_NO_GROUP: ReportedGroup = {
    "id": None,
    "machine": "",
    "kernel": "",
    "kubelet": "",
    "distribution": "",
    "runtime": "",
    "settings": {},
    "map": None,
    "nodes": 0,
    "states": {},
}
_NO_SHAPE = "Nodes whose machine was not read"
# A list of names that is as short as this is open.
_FEW = 8
# Rows in one list of the HTML.
_CHUNK = 120
_LONGEST_ROW = 160
_LONGEST_NAMES = 400
_MOST_GONE = 200
_MOST_IN_ROW = 3
# Of the bar: its width, and the least width of a part, so that one node of 10,000 can be seen.
_BAR, _LEAST = 1000.0, 5.0
# The parts of a node that equal nodes share.
_SHARED = ("pools", "owners", "containers", "elsewhere", "refusals", "looks", "places")


def read_parts(role: Path) -> dict[str, str]:
    """Return the texts of which the page is made, from the directory of the role drift_report."""
    return {name: "".join((role / path).read_text("utf-8") for path in paths) for name, paths in _PARTS.items()}


def page(report: Report, parts: Mapping[str, str]) -> str:
    """Return the HTML of a report.

    report: the report as data (schema 1.0). Its texts may hold markup, but no control characters.
    parts: {"template": the text of fleet.html.j2, "style": that of report.css, "script": that of all scripts}.
    Raises ValueError where style or script would end the element that it is put into.
    """
    for name in ("style", "script"):
        if "</" + name in parts[name].lower():
            raise ValueError("the %s of the page has an end tag" % name)
    sections = _sections(report)
    # Its own environment: that of Ansible's templates escapes nothing by itself.
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return str(
        environment.from_string(parts["template"]).render(
            report=report,
            summary=report["summary"],
            verdict=verdict(point_of(report)),
            tiles=_tiles(report["summary"]["states"]),
            bar=_bar(report["summary"]["states"]),
            checks=_checks(report),
            gone=_gone(report),
            sections=sections,
            chunk_size=_CHUNK,
            usual=["%s=%s" % fact for fact in _usual(report["groups"]).items() if fact[0] not in _FACTS],
            states=[state for state in KINDS if state in report["summary"]["states"]],
            unread=",".join(state for state, kind in KINDS.items() if kind == "unread"),
            style=parts["style"],
            script=parts["script"],
            style_hash=_hash(parts["style"]),
            script_hash=_hash(parts["script"]),
            data=_data(report, sections),
        )
    )


def _hash(text: str) -> str:
    """Return what a Content-Security-Policy calls an inline style or script by."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


def _link(**filters: str) -> str:
    """Return a link to the rows that have all of this; report.js reads it."""
    return "#" + "&".join("%s=%s" % (name, quote(value, safe="")) for name, value in filters.items())


# --- the summary --------------------------------------------------------------------------------------


def _tiles(states: Mapping[str, int]) -> list[dict[str, object]]:
    """Return one tile for each kind of states, with its states where it has several."""
    tiles = []
    for kind, name, always in TILES:
        found = {state: number for state, number in states.items() if KINDS.get(state, "unread") == kind}
        if found or always:
            members = [{"state": state, "nodes": found[state], "link": _link(state=state)} for state in found]
            shown = [member for member in members if member["state"] != name]
            link = _link(state=",".join(found)) if found else ""
            tiles.append(
                {
                    "kind": kind,
                    "name": name,
                    "nodes": sum(found.values()),
                    "link": link,
                    "members": shown if kind != "good" else [],
                }
            )
    return tiles


def _bar(states: Mapping[str, int]) -> list[dict[str, Any]]:
    """Return the kinds of all nodes side by side: parts of a bar that is _BAR wide."""
    kinds: Counter[str] = Counter()
    for state, number in states.items():
        kinds[KINDS.get(state, "unread")] += number
    total = sum(kinds.values())
    widths = {kind: max(_LEAST, _BAR * kinds[kind] / total) for kind, _name, _always in TILES if kinds[kind]}
    scale = _BAR / sum(widths.values()) if widths else 0
    parts, at = [], 0.0
    for kind, width in widths.items():
        parts.append({"kind": kind, "at": "%.1f" % at, "width": "%.1f" % (width * scale)})
        at += width * scale
    return parts


def _checks(report: Report) -> list[dict[str, object]]:
    """Return the rows of the table of checks."""
    rows = []
    texts: Mapping[str, Mapping[str, object]] = report["checks"]
    for row in report["summary"]["checks"]:
        name = row["check"]
        about = texts.get(name, {})
        links = {"link": _link(check=name), "link_new": _link(check=name, findings="new")}
        rows.append(
            {
                **row,
                **{key: about.get(key, "") for key in ("title", "why", "remedy", "page")},
                **links,
                "link_waived": _link(check=name, findings="waived"),
                "kind": _severity(row["severity"]),
            }
        )
    return rows


def _gone(report: Report) -> dict[str, object]:
    """Return what is gone since the baseline: rows of equal findings, and how many findings have no row."""
    folded = list(hosts_by_gone(report["gone"]).items())
    rows = [
        {"check": check, "subject": _cut(subject), "hosts": host_names(hosts, _LONGEST_NAMES)}
        for (check, subject), hosts in folded[:_MOST_GONE]
    ]
    return {"rows": rows, "left_out": sum(len(hosts) for _key, hosts in folded[_MOST_GONE:])}


def _severity(severity: str) -> str:
    return severity if severity in ("danger", "warning") else "note"


# --- the rows -----------------------------------------------------------------------------------------


def _sections(report: Report) -> list[dict[str, object]]:
    """Return the groups with their rows: first those in which a node is not as wanted, otherwise in the report's order.

    Nodes of no group come before all groups, as something is wrong with most of them.
    """
    members: dict[int | None, list[MeasuredNode]] = {}
    for node in report["nodes"]:
        members.setdefault(node["group"], []).append(node)
    usual = _usual(report["groups"])
    sections = []
    for group in (_NO_GROUP, *report["groups"]):
        nodes = members.get(group["id"], [])
        if nodes:
            sections.append(_section(group, nodes, usual))
    return sorted(sections, key=lambda section: not section["rows"])


def _section(group: ReportedGroup, nodes: Sequence[MeasuredNode], usual: Mapping[str, str]) -> dict[str, object]:
    states = Counter(node["state"] for node in nodes)
    name = "none" if group["id"] is None else str(group["id"])
    calm: list[dict[str, Any]] = []
    # Nodes that are a list of names, as nothing is wrong with them.
    for state in CALM_STATES:
        rows = [node for node in nodes if node["state"] == state]
        if rows:
            calm.append({"state": state, "kind": KINDS[state], "nodes": rows, "open": len(rows) <= _FEW})
    return {
        "id": name,
        "title": group["machine"] or (_NO_SHAPE if group["id"] is None else "Machine unknown"),
        "link": _link(group=name),
        "facts": [_fact(*fact, usual) for fact in _facts(group) if _is_shown(*fact, usual)],
        "counts": sorted(
            ((number, state, KINDS.get(state, "unread")) for state, number in states.items()),
            key=lambda count: (_WORST_FIRST.index(count[2]), -count[0]),
        ),
        "nodes": [node for node in nodes if node["state"] not in CALM_STATES],
        "calm": [{**part, "rows": [_calm_row(node) for node in part["nodes"]]} for part in calm],
        "rows": [_row(node) for node in nodes if node["state"] not in CALM_STATES],
        "text": " ".join("%s=%s" % fact if fact[0] not in _FACTS else fact[1] for fact in _facts(group)),
        "map": group["map"],
        "size": len(nodes),
    }


def _facts(group: ReportedGroup) -> list[tuple[str, str]]:
    values = (group["machine"], group["kernel"], group["kubelet"], group["runtime"])
    return [*zip(_FACTS, values), *group["settings"].items()]


def _is_shown(key: str, value: str, usual: Mapping[str, str]) -> bool:
    """Return whether the header of a group has a fact: a setting that most nodes share is said once, above all
    groups."""
    return bool(value) and key != "machine" and (key in _FACTS or usual.get(key) != value)


def _fact(key: str, value: str, usual: Mapping[str, str]) -> dict[str, object]:
    common = usual.get(key, "")
    return {
        "name": "" if key in _FACTS else key,
        "label": {"kernel": "kernel", "runtime": "runtime"}.get(key, ""),
        "value": value,
        "usual": common if common != value else "",
    }


def _usual(groups: Iterable[ReportedGroup]) -> dict[str, str]:
    """Return what more than half of the nodes have, of each fact: another value is worth a look."""
    counts: dict[str, Counter[str]] = {}
    total = 0
    for group in groups:
        total += group["nodes"]
        for key, value in _facts(group):
            counts.setdefault(key, Counter())[value] += group["nodes"]
    most = {key: values.most_common(1)[0] for key, values in counts.items()}
    return {key: value for key, (value, number) in most.items() if 2 * number > total}


def _row(node: MeasuredNode) -> dict[str, object]:
    """Return what the row of a node shows without a script: its name, its state, and in short what is wrong."""
    counting = [finding for finding in node["findings"] if not finding["waived"]]
    checks = dict.fromkeys(finding["check"] for finding in counting)
    waived = len(node["findings"]) - len(counting)
    short = [_short(finding) for finding in counting[:_MOST_IN_ROW]]
    if len(counting) > _MOST_IN_ROW:
        short.append("and %d more" % (len(counting) - _MOST_IN_ROW))
    if not counting and node["message"]:
        short.append(_cut(" ".join(node["message"].split())))
    if waived:
        short.append("%d waived" % waived)
    return {
        "host": node["host"],
        "link": _link(node=node["host"]),
        "state": node["state"],
        "kind": KINDS.get(node["state"], "unread"),
        "checks": list(checks)[:_MOST_IN_ROW],
        "short": "; ".join(short),
        "new": any(finding["since"] == "new" for finding in counting),
    }


def _calm_row(node: MeasuredNode) -> dict[str, object]:
    """Return that of a node with which nothing is wrong: its name, and how many notes there are, as the names form
    columns."""
    waived = sum(bool(finding["waived"]) for finding in node["findings"])
    notes = len(node["findings"]) - waived
    short = [counted(notes, "note")] if notes else []
    return {**_row(node), "checks": [], "short": ", ".join([*short, *(["%d waived" % waived] if waived else [])])}


def _short(finding: ReportedFinding) -> str:
    if finding["text"]:
        return _cut(finding["text"])
    if not finding["wanted"] and not finding["found"]:
        return _cut(finding["subject"])
    return _cut("%s is %s, wanted %s" % (finding["subject"], finding["found"] or "unset", finding["wanted"] or "unset"))


def _cut(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST_ROW else text[:_LONGEST_ROW] + " …"


# --- the data of the script ---------------------------------------------------------------------------


class _Values:
    """JSON texts, each once; a node names those that it has by their numbers."""

    def __init__(self) -> None:
        self.texts: dict[str, int] = {}

    def number(self, value: Any) -> int:
        return self.texts.setdefault(_json(value), len(self.texts))


def _data(report: Report, sections: Sequence[Mapping[str, Any]]) -> str:
    """Return all nodes in the order of their rows, as JSON that cannot end the script element that it is in.

    {"groups": [{"id", "text", "map"}], "checks": {id: {"title"}}, "values": [any value], "nodes": [node]};
    a node has "group" as a position in groups, and numbers of values for its findings and the like.
    """
    values = _Values()
    nodes = [
        _json(_shared(node, position, values))
        for position, section in enumerate(sections)
        for part in (section, *section["calm"])
        for node in part["nodes"]
    ]
    groups = [{key: section[key] for key in ("id", "text", "map")} for section in sections]
    checks = {name: {"title": about["title"]} for name, about in report["checks"].items()}
    text = '{"groups":%s,"checks":%s,"values":[%s],"nodes":[%s]}' % (
        _json(groups),
        _json(checks),
        ",".join(values.texts),
        ",".join(nodes),
    )
    for character in "<>&\u2028\u2029":
        text = text.replace(character, "\\u%04x" % ord(character))
    return text


def _shared(node: MeasuredNode, position: int, values: _Values) -> dict[str, object]:
    shown: dict[str, object] = {"host": node["host"], "state": node["state"], "group": position}
    shown.update((key, node[key]) for key in ("looked_at", "message", "actions") if node[key])
    for key in ("findings", "ways"):
        if node[key]:
            shown[key] = [values.number(value) for value in node[key]]
    parts: Mapping[str, object] = node
    shown.update((key, values.number(parts[key])) for key in _SHARED if parts.get(key))
    return shown


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
