# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A report as a table for a terminal. Pure."""

from __future__ import annotations

import re
import unicodedata
from itertools import zip_longest
from typing import Any, Iterator, Mapping, Sequence

from .report import line

_HEAD = ("NODE", "STATUS", "SUBJECT", "FOUND", "WANTED")
_WIDEST = 44
# Of a message, which stands in the place of three columns.
_MESSAGE = 100
_GAP = "  "


def table(views: Sequence[Mapping[str, Any]], skipped: Sequence[str] = ()) -> str:
    """The table, and below it what there is to say of each node. skipped: the hosts without a kubelet, named alone."""
    rows: list[Sequence[str]] = [_HEAD]
    for node in views:
        start = (node["host"], node["status"])
        for row in node["rows"]:
            rows.append((*start, *(line(row[name]) or "-" for name in ("subject", "found", "wanted"))))
            start = ("", "")
        if not node["rows"]:
            rows.append((*start, line(node["message"])))
    widths = [min(max(_width(row[at]) for row in rows if len(row) == len(_HEAD) or at < 2), _WIDEST) for at in range(5)]
    lines = [text for row in rows for text in _lines(row, widths)]
    lines += [text for node in views for text in _remarks(node)]
    if skipped:
        lines.append("No kubelet, skipped: %s" % ", ".join(skipped))
    return "".join(text + "\n" for text in lines)


def _remarks(node: Mapping[str, Any]) -> Iterator[str]:
    host = node["host"]
    for row in node["rows"]:
        if row["remedy"]:
            yield "%s: %s: %s" % (host, line(row["subject"]), line(row["remedy"]))
    for refusal in node["refusals"]:
        yield "%s: cannot be changed: %s" % (host, line(refusal))
    elsewhere = node["elsewhere"]
    if elsewhere:
        yield "%s: note: %s: %s%s" % (
            host,
            line(elsewhere["name"]),
            line(elsewhere["why"]),
            "; the page has what to paste there" if elsewhere["snippet"] else "",
        )
    for note in node["notes"]:
        yield "%s: note: %s" % (host, line(note))


def _lines(row: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    """A row, in as many lines as its longest cell takes."""
    limits = widths if len(row) == len(widths) else (*widths[:2], _MESSAGE)
    for cells in zip_longest(*map(_wrapped, row, limits), fillvalue=""):
        padded = (cell + " " * (limit - _width(cell)) for cell, limit in zip(cells, limits))
        yield _GAP.join(padded).rstrip()


def _wrapped(cell: str, limit: int) -> list[str]:
    """A cell in pieces that are not wider, broken behind spaces and commas where there are any."""
    pieces = [""]
    for word in re.findall(r"[^ ,]*[ ,]|[^ ,]+", cell):
        if _width(pieces[-1] + word.rstrip()) > limit and pieces[-1]:
            pieces.append("")
        for character in word:
            if character != " " and _width(pieces[-1] + character) > limit:
                pieces.append("")
            pieces[-1] += character
    return [piece.rstrip() for piece in pieces]


def _width(cell: str) -> int:
    """How many places it takes in a terminal."""
    if cell.isascii():
        return len(cell)
    return sum(
        0 if unicodedata.combining(one) else 2 if unicodedata.east_asian_width(one) in "WF" else 1 for one in cell
    )
