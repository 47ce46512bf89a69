# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How the reports of a fleet have changed: the last ones side by side, a line a check, and a grade for each.

The form trend shows it; Markdown has it as a table, and the figures for Prometheus the grade of one report.
"""

from __future__ import annotations

import os
from typing import Iterator, Mapping, NamedTuple, Sequence

from ...module_utils._base.errors import InputError
from ...module_utils._base.quantity import counted
from .answers import CLEAN, line, mapping, seconds_of
from .assemble import UNCOMPARED_STATES, items_of, read_report
from .checks import NOTE
from .host_use import Reading, ReservedAmounts, amount, host_use_of, verdicts_of
from .shapes import HostUse, Report
from .terminal import ages_of, cell

# Columns that fit in a terminal beside the name of a check, this report with them.
MOST = 12
# The name of the form in a directory of reports.
_NAME = "drift.json"
# The least percentage of nodes that are as wanted for a grade.
_GRADES = (("A", 100), ("B", 95), ("C", 80), ("D", 0))
_IN_DANGER = "F"
# The best first.
GRADES = (*(grade for grade, _least in _GRADES), _IN_DANGER)
# Where there is no trend yet.
FIRST = "This is the first report: from the next one on, both are side by side."
_LONGEST_CHECK = 34
_WIDTH = 6
_COLUMN = "%" + str(_WIDTH) + "s"


class Point(NamedTuple):
    """A report in short."""

    made: str
    # How many were compared with wanted settings, or could not be read.
    nodes: int
    # How many are as wanted; a node that could not be read is none of them.
    as_wanted: int
    # Whether a kubelet would not start, or would refuse its state.
    is_danger: bool
    # {check: on how many nodes it is found}, notes left out.
    checks: Mapping[str, int]
    # {host: what its host's part has used}, of the nodes of which it was read.
    host_uses: Mapping[str, HostUse] = {}

    @property
    def grade(self) -> str:
        """A to D by the share of nodes that are as wanted, F where there is danger; empty without a node."""
        if not self.nodes:
            return ""
        return _IN_DANGER if self.is_danger else next(grade for grade, least in _GRADES if self.percent >= least)

    @property
    def percent(self) -> int:
        """The share of nodes that are as wanted, rounded down: 299 of 300 are not all. Not without a node."""
        return 100 * self.as_wanted // self.nodes


def point_of(report: Mapping[str, object]) -> Point:
    """Return a report of ours, which somebody may have edited, in short."""
    summary = mapping(report.get("summary"))
    states = {str(state): _count(nodes) for state, nodes in mapping(summary.get("states")).items()}
    rows = [row for row in map(mapping, items_of(summary, "checks")) if row.get("severity") != NOTE]
    return Point(
        str(report.get("made")),
        sum(nodes for state, nodes in states.items() if state not in UNCOMPARED_STATES),
        states.get(CLEAN, 0),
        summary.get("outcome") == "danger",
        {str(row.get("check")): _count(row.get("nodes")) for row in rows},
        dict(_host_uses(report)),
    )


def _host_uses(report: Mapping[str, object]) -> Iterator[tuple[str, HostUse]]:
    for node in map(mapping, items_of(report, "nodes")):
        use = mapping(node.get("host_use"))
        reserved = ReservedAmounts(_count(use.get("reserved")), amount(use.get("reserved_memory_bytes")))
        found = host_use_of(use, _count(use.get("cpus")), reserved)
        if found is not None:
            yield line(node.get("host")), found


def verdicts(points: Sequence[Point], reserved: Mapping[str, ReservedAmounts]) -> list[str]:
    """Return what is said of each of these hosts of which a report knows what its host uses: whether so much is enough.

    points: in order. reserved: {host: what is to be reserved}.
    """
    lines = []
    for host, wanted in reserved.items():
        readings = [Reading(point.made, point.host_uses[host]) for point in points if host in point.host_uses]
        if readings:
            lines += ["%s: %s" % (host, said) for said in verdicts_of(readings, wanted)]
    return lines


def reservations(report: Report, history: Sequence[Point]) -> str:
    """Return what is said of each node of which the report knows what its host uses: whether what is reserved is
    enough."""
    now = point_of(report)
    points = [*(point for point in history if point.made < now.made), now]
    reserved = {
        host: ReservedAmounts(use["reserved"], use["reserved_memory_bytes"])
        for host, use in sorted(now.host_uses.items())
    }
    lines = verdicts(points, reserved)
    return "\n".join(lines) or "no node was looked at for throttling, which reads what its host uses"


def _count(value: object) -> int:
    return value if isinstance(value, int) and 0 <= value < 1 << 31 else 0


def read_history(paths: Sequence[str], fleet: str, directory: str = "") -> list[Point]:
    """Return the reports in files, and in the drift.json below directories, the oldest first, without those of other
    fleets.

    A directory without one is that of the first day, and so is one that is only made with the directory of this report.
    Raises InputError for a file that is no report, and for another path that is not there.
    """
    points = {}
    for path in paths:
        files = [path] if os.path.isfile(path) else sorted(_below(path))
        if not files and not os.path.isdir(path) and not _is_within(directory, path):
            what = "there is no such file or directory"
            raise InputError(what, path, "give files of earlier reports, or a directory for them, which may be empty")
        for file in files:
            report = read_report(file)
            if not (fleet and report.get("fleet") and report["fleet"] != fleet):
                try:
                    seconds_of(report.get("made"))
                except InputError as error:
                    raise InputError(error.what, file, "give the drift.json of an earlier report") from error
                point = point_of(report)
                points[point.made] = point
    return [points[made] for made in sorted(points)]


def _is_within(directory: str, path: str) -> bool:
    return os.path.abspath(directory).startswith(os.path.join(os.path.abspath(path), ""))


def _below(directory: str) -> Iterator[str]:
    for place, _directories, names in os.walk(directory):
        if _NAME in names:
            yield os.path.join(place, _NAME)


class TrendLine(NamedTuple):
    """What is said of each of the last reports, in their order."""

    name: str
    values: Sequence[str]


def last_reports(report: Report, history: Sequence[Point]) -> list[TrendLine]:
    """Return the day of each of the last reports, its grade, and on how many nodes each check is found. This one comes
    last.

    The lines of the checks are those behind the first three.
    """
    now = point_of(report)
    points = [*(point for point in history if point.made < now.made), now][-MOST:]
    checks = dict.fromkeys(check for point in reversed(points) for check, nodes in point.checks.items() if nodes)
    return [
        TrendLine("", [point.made[5:10] for point in points]),
        TrendLine("grade", [point.grade for point in points]),
        TrendLine("nodes as wanted, %", [str(point.percent) if point.nodes else "" for point in points]),
        *(TrendLine(check, [str(point.checks.get(check, 0)) for point in points]) for check in checks),
    ]


def trend(report: Report, history: Sequence[Point]) -> str:
    """Return the last reports in columns, this one at last; how long each check is found already, and what the grade
    is."""
    days, *lines = last_reports(report, history)
    ages = ages_of(report)
    shown = [_line(*days, "DAYS"), *(_line(*line, str(ages.get(line.name) or "")) for line in lines)]
    first = [FIRST] if len(days.values) == 1 else []
    return "".join(text + "\n" for text in [*shown, *first, verdict(point_of(report))])


def verdict(point: Point) -> str:
    """Return the grade and its reason in a sentence."""
    if not point.nodes:
        return "No node was compared with wanted settings, so there is no grade."
    danger = "; a kubelet would not start, or would refuse its state" if point.is_danger else ""
    said = "%d of %s as wanted" % (point.as_wanted, counted(point.nodes, "node"))
    return "Grade %s: %s%s." % (point.grade, said, danger)


def _line(name: str, values: Sequence[str], last: str = "") -> str:
    columns = "".join(_COLUMN % (value or "-") for value in values)
    return ("%-*s%s%s" % (_LONGEST_CHECK, cell(name, _LONGEST_CHECK), columns, _COLUMN % last)).rstrip()
