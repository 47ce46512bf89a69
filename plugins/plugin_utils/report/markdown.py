# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The report of a fleet as Markdown, for a pull request or a ticket, and as JSON. Pure.

Each text of a node stands in a code span, in which GitHub and GitLab read no markup, link, mention or picture. A
code span ends at a run of as many backticks as it began with, so it begins with more than its text has. In a
table a pipe behind a backslash does not end a cell, in a code span either. Source: GitHub Flavored Markdown Spec,
4.10 (tables) and 6.3 (code spans).
"""

from __future__ import annotations

import json
import re
from typing import Iterable, Iterator, Sequence

from ...module_utils._base.quantity import counted
from .assemble import CALM_STATES, hosts_by_gone
from .shapes import Count, Report
from .terminal import ages_of, cell, counted_states, folded, host_names, remedies, summary_line
from .trend import Point, last_reports, point_of, verdict

# A report as JSON: one line for each node, so that a tool for lines finds a node, too. Pure.


def json_form(report: Report) -> Iterator[str]:
    """Yield the parts of the text. Its schema is docs/schema/report-1.json."""
    head = json.dumps({name: value for name, value in report.items() if name != "nodes"}, indent=1)
    yield head.rstrip("}").rstrip() + ',\n "nodes": ['
    separator = "\n"
    for node in report["nodes"]:
        yield separator + "  " + json.dumps(node)
        separator = ",\n"
    yield "\n ]\n}\n"


# Of a comment, in characters: GitHub refuses a longer one.
LONGEST = 65536
# For the lines that say what is left out.
_RESERVE = 800
_LONGEST_CELL = 300
_MOST_PROBLEMS = 20
_MOST_GONE = 20
# Words alone. A colon only before a space, and a hyphen only in a word: no address, emoji, or name of an issue.
_HARMLESS = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9 ,;'()]|: |(?<=[a-z])-(?=[a-z]))*")

_Rows = Sequence[Sequence[str]]


def markdown(report: Report, history: Sequence[Point] = ()) -> str:
    """Return the report in at most LONGEST characters: the nodes that are as wanted are counted, the others are in a
    table.

    report: as docs/schema/report-1.json describes it. history: earlier ones, the oldest first.
    """
    sheet = _Sheet()
    sheet.add(_start(report))
    states = [([(_words(state), "%d" % count)], 1) for state, count in counted_states(report)]
    sheet.table("States", ("State", "Nodes"), states, "row")
    _add_checks(sheet, report)
    days, *lines = last_reports(report, history)
    if len(days.values) > 1:
        rows = [([[_code(name), *map(_words, values)]], 1) for name, values in lines]
        sheet.table("The last reports", ["", *map(_code, days.values)], rows, "line")
    problems = [([[_code(row[name]) for name in ("file", "text", "remedy")]], 1) for row in report["problems"]]
    sheet.table("Result files that are not used", ("File", "Why", "What to do"), problems, "file", _MOST_PROBLEMS)
    gone = [
        ([[_code(host_names(hosts)), _code(check), _code(subject)]], len(hosts))
        for (check, subject), hosts in hosts_by_gone(report["gone"]).items()
    ]
    sheet.table("Gone since the baseline", ("Nodes", "Check", "Subject"), gone, "finding", _MOST_GONE)
    todo = [([(_code(check), _code(remedy))], 1) for check, _severity, remedy in remedies(report) if remedy]
    sheet.table("What to do", ("Check", "Remedy"), todo, "check")
    head = ("Nodes", "State", "Check", "Subject", "Found", "Wanted")
    sheet.table("Nodes that are not as wanted", head, _nodes(report), "node")
    return "".join(sheet.lines)


class _Sheet:
    """Lines up to the longest text that GitHub takes."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._left = LONGEST - _RESERVE

    def add(self, text: str) -> bool:
        """Add it, where there is room."""
        fits = len(text) <= self._left
        if fits:
            self.lines.append(text)
            self._left -= len(text)
        return fits

    def table(
        self, title: str, head: Sequence[str], blocks: Iterable[tuple[_Rows, int]], name: str, most: int = LONGEST
    ) -> None:
        """Add a table, if there is anything to be in it, and say what is left out.

        blocks: rows that stay together, and for how many things they stand, which are called `name`.
        """
        start = "\n### %s\n\n%s%s" % (title, _row(head), _row(["---"] * len(head)))
        left = 0
        for number, (rows, things) in enumerate(blocks):
            if left or number >= most or not self.add(start + "".join(map(_row, rows))):
                left += things
            start = ""
        if left:
            self.lines.append("\nLeft out here for their length: %s.\n" % counted(left, "more " + name))


def _start(report: Report) -> str:
    title = _words(report["title"]) + (" of " + _words(report["fleet"]) if report["fleet"] else "")
    outcome, summary = _words(report["summary"]["outcome"]), _words(summary_line(report))
    grade = verdict(point_of(report))
    return "## %s\n\n**%s**: %s\n\n%s\n\nMade %s.\n" % (title, outcome, summary, grade, _code(report["made"]))


def _add_checks(sheet: _Sheet, report: Report) -> None:
    summary = report["summary"]
    names: list[Count] = ["nodes", "waived"]
    if summary["gone"] is not None:
        names.append("new")
    ages, blocks = ages_of(report), []
    for row in summary["checks"]:
        about = report["checks"].get(row["check"])
        title = about["title"] if about else ""
        counts = ["%d" % row[name] for name in names]
        if "new" in names:
            counts.append(str(ages.get(row["check"], "")))
        blocks.append(([[_code(row["check"]), _words(row["severity"]), *counts, _words(title)]], 1))
    columns = [name.capitalize() for name in names] + (["Days"] if "new" in names else [])
    head = ["Check", "Severity", *columns, "What it says"]
    sheet.table("Checks", head, blocks, "check")


def _nodes(report: Report) -> Iterator[tuple[_Rows, int]]:
    for fold in folded([node for node in report["nodes"] if node["state"] not in CALM_STATES]):
        start = (_code(host_names(fold.hosts)), _words(fold.state))
        rows: list[Sequence[str]] = []
        if fold.message or not fold.rows:
            rows.append((*start, "", "", _code(fold.message), ""))
        for row in fold.rows:
            check, subject, found, wanted = map(_code, [*row, ""][:4])
            rows.append((*(("", "") if rows else start), check, subject, found, wanted))
        yield rows, len(fold.hosts)


def _row(cells: Sequence[str]) -> str:
    return "| %s |\n" % " | ".join(cells)


def _words(value: object) -> str:
    """Return what is no text of a node: as words, where they are nothing but words."""
    shown = cell(value, _LONGEST_CELL)
    return shown if _HARMLESS.fullmatch(shown) else _code(shown)


def _code(value: object) -> str:
    """Return a text that stays text, wherever it comes from. Empty for an empty one."""
    shown = cell(value, _LONGEST_CELL)
    if not shown:
        return ""
    fence = "`" * (max(map(len, re.findall("`+", shown)), default=0) + 1)
    # A space beside each fence, of which one at each end is no part of the text.
    space = " " if "`" in (shown[0], shown[-1]) else ""
    return "".join((fence, space, shown.replace("|", "\\|"), space, fence))
