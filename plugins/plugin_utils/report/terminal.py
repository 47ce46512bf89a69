# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The report of a fleet as a table for a terminal, nodes of which the same is to be said in one row. Pure."""

from __future__ import annotations

import re
import unicodedata
from itertools import groupby, zip_longest
from typing import Iterable, Iterator, Mapping, NamedTuple, Sequence, Tuple

from ...module_utils._base.errors import InputError
from ...module_utils._base.quantity import counted
from .answers import NO_KUBELET, line, seconds_of
from .assemble import STATES, hosts_by_gone, oldest_findings
from .checks import NOTE
from .shapes import Report, ReportedFinding, ReportedNode, Waived

# Columns of a terminal that everything fits in.
WIDEST = 120
_HEAD = ("NODES", "STATE", "CHECK", "SUBJECT", "FOUND", "WANTED")
_GAP = "  "
_MOST_LINES = 250
# Of one node, or of nodes alike.
_MOST_FINDINGS = 20
# Above it nodes with the same checks share a row, whatever values they have.
_MOST_ROWS = 150
_MOST_REMARKS = 20
# Of the notes of one check.
_MOST_TEXTS = 5
_LONGEST_CELL = 160
_LONGEST_REMARK = 600
_DAY = 86400


# State, message and rows of a node.
_Said = Tuple[str, str, Tuple[Tuple[str, ...], ...]]


class Fold(NamedTuple):
    """Nodes of which the same is to be said."""

    hosts: Sequence[str]
    state: str
    # Why they could not be read.
    message: str
    # Check with its marks, subject, found and wanted, or in place of the last two one text.
    rows: Sequence[Sequence[str]]


def fleet_table(report: Report) -> str:
    """Return the table, what there is to say below it, and the summary in the last line; no line has over 120 columns.

    report: as docs/schema/report-1.json describes it. What a terminal would obey is escaped.
    """
    nodes = report["nodes"]
    folds = folded([node for node in nodes if node["state"] != NO_KUBELET or _worth_a_row(node)])
    paragraphs = [list(_table(folds)), list(_checks(report)), list(_remarks(report)), [summary_line(report)]]
    # The table is as wide as it may be already.
    paragraphs[1:] = [[part for text in texts for part in _indented(text)] for texts in paragraphs[1:]]
    return "\n".join("".join(text + "\n" for text in texts) for texts in paragraphs if texts)


def node_lines(report: Report) -> str:
    """Return `worker-1: drift: policy-differs (cpu_manager_policy: none, wanted static)`; `worker-[2-9]: clean`.

    A line for each node, or for nodes of which the same is to be said.
    """
    lines = []
    for fold in folded(report["nodes"]):
        found = "; ".join(_row_in_words(*row) for row in fold.rows)
        lines.append(": ".join(filter(None, (host_names(fold.hosts), fold.state, fold.message, found))))
    return "".join(text + "\n" for text in lines)


def _row_in_words(check: str, subject: str, *values: str) -> str:
    said = ", wanted ".join(value or "-" for value in values)
    return "%s (%s)" % (check, "%s: %s" % (subject, said) if subject else said) if subject or any(values) else check


def summary_line(report: Report) -> str:
    """Return `300 nodes: 288 clean, 12 drift; 3 checks failed; outcome drift`"""
    summary = report["summary"]
    states = ", ".join("%d %s" % (count, line(state)) for state, count in counted_states(report))
    failed = sum(bool(row["nodes"]) and row["severity"] != NOTE for row in summary["checks"])
    parts = [
        counted(summary["nodes"], "node") + (": " + states if states else ""),
        counted(failed, "check") + " failed",
        *([counted(summary["gone"], "finding") + " gone"] if summary["gone"] is not None else []),
        *([counted(len(report["problems"]), "result file") + " not used"] if report["problems"] else []),
        "outcome %s" % line(summary["outcome"]),
    ]
    return "; ".join(parts)


def counted_states(report: Report) -> list[tuple[str, int]]:
    """Return (state, nodes) of each state that a node has, the best first."""
    counts = report["summary"]["states"]
    return [(state, counts[state]) for state in dict.fromkeys([*reversed(STATES), *counts]) if state in counts]


# --- equal nodes as one -------------------------------------------------------------------------------


def folded(nodes: Iterable[ReportedNode]) -> list[Fold]:
    """Return nodes with the same state, message and findings together, in the order of the first of each; notes left
    out.

    If that gives very many rows, then nodes with the same checks share them, and values that differ are counted.
    """
    nodes = list(nodes)
    fine: dict[_Said, list[ReportedNode]] = {}
    for node in nodes:
        fine.setdefault((node["state"], _message(node), _rows(node)), []).append(node)
    if sum(min(max(len(rows), 1), _MOST_FINDINGS) for _state, _said, rows in fine) <= _MOST_ROWS:
        return [
            Fold([line(node["host"]) for node in alike], line(state), _said(message, alike), _limited(rows))
            for (state, message, rows), alike in fine.items()
        ]
    coarse: dict[tuple[str, tuple[str, ...]], list[tuple[_Said, list[ReportedNode]]]] = {}
    for key, alike in fine.items():
        coarse.setdefault((key[0], tuple(dict.fromkeys(row[0] for row in key[2]))), []).append((key, alike))
    return [_merged(state, checks, parts) for (state, checks), parts in coarse.items()]


def _merged(state: str, checks: Sequence[str], parts: Sequence[tuple[_Said, Sequence[ReportedNode]]]) -> Fold:
    nodes = [node for _key, alike in parts for node in alike]
    messages = dict.fromkeys(message for (_state, message, _rows), _nodes in parts)
    shown = [_said(message, nodes) for message in messages]
    said = "; ".join([*shown[:_MOST_TEXTS], *_more(shown)])
    rows = []
    for check in checks:
        cells = [row[1:] for (_state, _message, found), _nodes in parts for row in found if row[0] == check]
        columns = zip_longest(*dict.fromkeys(cells), fillvalue="")
        rows.append((check, *(_common(list(dict.fromkeys(column))) for column in columns)))
    return Fold([line(node["host"]) for node in nodes], line(state), said, _limited(rows))


def _more(texts: Sequence[str]) -> list[str]:
    others = len(texts) - _MOST_TEXTS
    return ["and %s" % counted(others, "other message")] if others > 0 else []


def _common(values: Sequence[str]) -> str:
    return values[0] if len(values) == 1 else "%d values, as %s" % (len(values), values[0] or "-")


def _rows(node: ReportedNode) -> tuple[tuple[str, ...], ...]:
    return tuple(
        (_check(found), cell(found["subject"]), *_values(found))
        for found in node["findings"]
        if found["severity"] != NOTE
    )


def _limited(rows: Sequence[Sequence[str]]) -> Sequence[Sequence[str]]:
    if len(rows) <= _MOST_FINDINGS:
        return rows
    return [*rows[: _MOST_FINDINGS - 1], ("and %d more findings" % (len(rows) - _MOST_FINDINGS + 1), "", "")]


def _check(found: ReportedFinding) -> str:
    marks = [until(found["waived"])] if found["waived"] else []
    marks += ["new"] if found["since"] == "new" else []
    return cell(found["check"]) + ("" if not marks else " [%s]" % ", ".join(marks))


def until(waived: Waived) -> str:
    """Return `waived until 2026-12-31`; `waived`."""
    return "waived until %s" % cell(waived["until"]) if waived["until"] else "waived"


def _values(found: ReportedFinding) -> tuple[str, ...]:
    if found["text"] and not (found["found"] or found["wanted"]):
        return (cell(found["text"]),)
    return (cell(found["found"]), cell(found["wanted"]))


def _worth_a_row(node: ReportedNode) -> bool:
    return any(found["severity"] != NOTE for found in node["findings"])


def _message(node: ReportedNode) -> str:
    """Return the message, with a mark in place of the node's name, so that nodes that failed alike have the same
    one."""
    if not node["message"]:
        return ""
    host = line(node["host"])
    message = cell(node["message"], _LONGEST_REMARK)
    return re.sub(r"(?<![\w.-])%s(?![\w-])" % re.escape(host), "\0", message) if host else message


def _said(message: str, nodes: Sequence[ReportedNode]) -> str:
    return message.replace("\0", line(nodes[0]["host"]) if len(nodes) == 1 else "NODE")


def cell(value: object, longest: int = _LONGEST_CELL) -> str:
    """Return a value in one line that is not longer."""
    shown = line(value)
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


# --- names of many nodes ------------------------------------------------------------------------------


def host_names(hosts: Sequence[str], longest: int = 60) -> str:
    """Return `worker-[1-40]`, `db-1, worker-[1-3,7]`, or if that is longer `worker-1, worker-3 and 38 more`."""
    parts = list(_ranges(hosts))
    whole = ", ".join(name for name, _count in parts)
    if len(whole) <= longest or len(hosts) == 1:
        return whole
    if len(parts[0][0]) > longest:
        parts = [(host, 1) for host in hosts]
    text, left = parts[0][0], len(hosts) - parts[0][1]
    for name, count in parts[1:]:
        if len(text) + len(name) + 16 > longest:
            break
        text, left = "%s, %s" % (text, name), left - count
    return "%s and %d more" % (text, left) if left else text


def _ranges(hosts: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Yield names that differ in one number as one, each with how many hosts it stands for."""
    families: dict[tuple[str, str, int], list[str]] = {}
    for host in hosts:
        # A name has its number before the domain, an address at its end.
        label, dot, domain = (host, "", "") if re.fullmatch(r"[0-9.]*", host) else host.partition(".")
        match = re.fullmatch(r"(.*?)([0-9]{1,9})([^0-9]*)", label, re.DOTALL)
        if match is None:
            families.setdefault((host, "", -1), []).append("")
            continue
        before, number, behind = match.groups()
        # worker-07 is not worker-7.
        padded = len(number) if number.startswith("0") and len(number) > 1 else 0
        families.setdefault((before, behind + dot + domain, padded), []).append(number)
    for (before, behind, padded), numbers in families.items():
        if len(numbers) == 1:
            yield before + numbers[0] + behind, 1
        elif padded == -1:
            yield before, len(numbers)
        else:
            runs = ",".join(_runs(sorted({int(number) for number in numbers}), padded))
            yield "%s[%s]%s" % (before, runs, behind), len(numbers)


def _runs(numbers: Sequence[int], padded: int) -> Iterator[str]:
    for _offset, run in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0]):
        members = [str(number).zfill(padded) for _at, number in run]
        yield members[0] if len(members) == 1 else "%s-%s" % (members[0], members[-1])


# --- the table ----------------------------------------------------------------------------------------


def _table(folds: Sequence[Fold]) -> Iterator[str]:
    blocks: list[list[Sequence[str]]] = [[_HEAD]]
    for fold in folds:
        start = (host_names(fold.hosts), fold.state)
        block: list[Sequence[str]] = [(*start, fold.message)] if fold.message or not fold.rows else []
        for row in fold.rows:
            block.append((*(("", "") if block else start), *(text or "-" for text in row)))
        blocks.append(block)
    widths = _widths([row for block in blocks for row in block])
    count = 0
    for number, block in enumerate(blocks):
        lines = [text for row in block for text in _lines(row, widths)]
        count += len(lines)
        if count > _MOST_LINES and number > 1:
            hosts = sum(len(fold.hosts) for fold in folds[number - 1 :])
            yield "%s more: see another form of this report, which has all" % counted(hosts, "node")
            return
        yield from lines


def _widths(rows: Sequence[Sequence[str]]) -> list[int]:
    """Return the widths of the columns; the widest give way until all fit. A last cell that spans columns does not
    count.

    A column stays as wide as its longest word, if that is possible.
    """
    widths, least = [0] * len(_HEAD), [0] * len(_HEAD)
    for row in rows:
        for at, text in enumerate(row if len(row) == len(_HEAD) else row[:-1]):
            widths[at] = max(widths[at], _width(text))
            least[at] = max([least[at], *(_width(word.rstrip()) for word in _words(text))])
    room = WIDEST - len(_GAP) * (len(_HEAD) - 1)
    if sum(least) > room:
        least = [0] * len(_HEAD)
    limit = max(widths)
    while sum(_limited_to(limit, widths, least)) > room:
        limit -= 1
    return _limited_to(limit, widths, least)


def _limited_to(limit: int, widths: Sequence[int], least: Sequence[int]) -> list[int]:
    return [max(min(width, limit), low) for width, low in zip(widths, least)]


def _words(text: str) -> list[str]:
    """Return what a text is not broken within, each with the space or comma behind it."""
    return re.findall(r"[^ ,]*[ ,]|[^ ,]+", text)


def _lines(row: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    """Yield a row, in as many lines as its longest cell takes; a row of fewer cells has its last one up to the end."""
    limits = list(widths[: len(row)])
    if len(row) < len(widths):
        limits[-1] = WIDEST - sum(width + len(_GAP) for width in limits[:-1])
    for cells in zip_longest(*map(_wrapped, row, limits), fillvalue=""):
        padded = (text + " " * (limit - _width(text)) for text, limit in zip(cells, limits))
        yield _GAP.join(padded).rstrip()


def _wrapped(text: str, limit: int) -> list[str]:
    """Return a text in pieces that are not wider, broken behind spaces and commas where there are any."""
    pieces = [""]
    for word in _words(text):
        if pieces[-1] and _width(pieces[-1] + word.rstrip()) > limit:
            pieces.append("")
        for character in word:
            if character != " " and _width(pieces[-1] + character) > limit:
                pieces.append("")
            pieces[-1] += character
    return [piece.rstrip() for piece in pieces]


def _width(text: str) -> int:
    """Return how many places it takes in a terminal."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return len(text) + wide - sum(bool(unicodedata.combining(character)) for character in text)


def _indented(text: str) -> Iterator[str]:
    margin = len(text) - len(text.lstrip())
    for number, part in enumerate(_wrapped(text.lstrip(), WIDEST - 4)):
        yield " " * (margin + 2 * bool(number)) + part


# --- below the table ----------------------------------------------------------------------------------


def _checks(report: Report) -> Iterator[str]:
    """Yield what each check is about, since when it is found, and what to do, once."""
    ages = ages_of(report)
    for check, severity, remedy in remedies(report):
        about = report["checks"].get(check)
        title = cell(about["title"], _LONGEST_REMARK) if about else ""
        parts = ["%s (%s)" % (cell(check), cell(severity)), *([": " + title] if title else [])]
        parts += ["; for %s" % counted(ages[check], "day")] if ages.get(check) else []
        yield "".join(parts)
        if remedy:
            yield "  " + cell(remedy, _LONGEST_REMARK)


def ages_of(report: Report) -> dict[str, int]:
    """Return {check: for how many whole days its oldest finding is known}, of the findings that count."""
    return {check: _days(first, report["made"]) for check, first in oldest_findings(report["nodes"]).items()}


def _days(first: str, last: str) -> int:
    """Return the whole days between two times; 0 where one is none."""
    try:
        return (seconds_of(last) - seconds_of(first)) // _DAY
    except InputError:
        return 0


def remedies(report: Report) -> Iterator[tuple[str, str, str]]:
    """Yield each check that is found anywhere, notes left out, with its severity and its remedy, which may be empty.

    The remedy is that of its findings where these agree, else the general one of the check.
    """
    order = {row["check"]: number for number, row in enumerate(report["summary"]["checks"])}
    found: dict[str, tuple[str, dict[str, None]]] = {}
    for node in report["nodes"]:
        for item in node["findings"]:
            if item["severity"] != NOTE:
                _severity, own = found.setdefault(item["check"], (item["severity"], {}))
                if item["remedy"] and len(own) < 2:
                    own[item["remedy"]] = None
    for check in sorted(found, key=lambda name: order.get(name, len(order))):
        severity, own = found[check]
        general = report["checks"][check]["remedy"] if check in report["checks"] else ""
        yield check, severity, [*own, general][0] if len(own) == 1 or (own and not general) else general


def _remarks(report: Report) -> Iterator[str]:
    waivers: dict[str, list[str]] = {}
    notes: dict[str, dict[str, list[str]]] = {}
    for node in report["nodes"]:
        host = line(node["host"])
        for found in node["findings"]:
            if found["waived"]:
                reason = "%s %s: %s" % (
                    cell(found["check"]), until(found["waived"]), cell(found["waived"]["reason"], _LONGEST_REMARK),
                )  # fmt: skip
                _add(waivers, reason, host)
            elif found["severity"] == NOTE:
                _add(notes.setdefault(cell(found["check"]), {}), said_in_words(found), host)
    yield from _listed(waivers)
    yield from _listed({text: hosts for check, texts in notes.items() for text, hosts in _of_note(check, texts)})
    gone = hosts_by_gone(report["gone"])
    yield from _listed({" ".join(["gone:", *map(cell, key)]).rstrip(): hosts for key, hosts in gone.items()})
    without = [line(node["host"]) for node in report["nodes"] if node["state"] == NO_KUBELET]
    if without:
        yield "No kubelet: %s" % host_names(without, WIDEST - len("No kubelet: "))
    problems = report["problems"]
    for problem in problems[:_MOST_REMARKS]:
        parts = [cell(part, _LONGEST_REMARK) for part in (problem["file"], problem["text"], problem["remedy"])]
        yield "not used: %s: %s%s" % (parts[0], parts[1], "; " + parts[2] if parts[2] else "")
    if len(problems) > _MOST_REMARKS:
        yield "not used: and %s" % counted(len(problems) - _MOST_REMARKS, "more file")


def said_in_words(found: ReportedFinding) -> str:
    """Return a finding in one line: `cpu_manager_policy: none, wanted static`; `checkpoint: the checksum is wrong`."""
    subject, values = cell(found["subject"]), _values(found)
    text = (
        cell(found["text"], _LONGEST_REMARK)
        if len(values) == 1
        else "%s, wanted %s" % tuple(value or "-" for value in values)
    )
    return "%s: %s" % (subject, text) if subject else text


def _add(texts: dict[str, list[str]], text: str, host: str) -> None:
    hosts = texts.setdefault(text, [])
    if not hosts or hosts[-1] != host:
        hosts.append(host)


def _of_note(check: str, texts: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield the texts of a note, each with its hosts, and as the last one how many more there are."""
    for text, hosts in list(texts.items())[:_MOST_TEXTS]:
        yield "note: %s: %s" % (check, text), hosts
    others = list(texts.values())[_MOST_TEXTS:]
    if others:
        hosts = list(dict.fromkeys(host for few in others for host in few))
        yield "note: %s: %s" % (check, counted(len(others), "more text")), hosts


def _listed(texts: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for text, hosts in list(texts.items())[:_MOST_REMARKS]:
        yield "%s: %s" % (host_names(hosts), text)
    if len(texts) > _MOST_REMARKS:
        yield "and %d more of this kind" % (len(texts) - _MOST_REMARKS)
