# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a kubelet said, pasted from a log: which refusals it is, with their causes and remedies.

docs/write_errors.py writes the table refusals.json, from the code that predicts the refusals. In a browser,
docs/site/static/refusals.js does the same with the same table.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from pathlib import Path
from typing import Any, Mapping, NamedTuple, Sequence

# How many characters of a message are read, which is more than a kubelet writes in its last words.
MOST_READ = 65536
# A line may have several refusals, such as those of all fields.
MOST_FOUND = 10

TABLE = Path(__file__).resolve().with_suffix(".json")

# What the journal, klog and JSON do to a text. A backslash that is none of theirs has no meaning in a refusal.
_HEAD = re.compile(r"^[A-Z][a-z]{2} [ \d]\d [\d:]{8} \S{1,255} [^\s:]{1,255}: ", re.MULTILINE)
_ESCAPE = re.compile(r"\\+(u00[0-9a-fA-F]{2}|[nrt]|)")

# By what they are preferred: the reason within a text is more than the text, and a bare value less.
_VALUE, _TEXT, _REASON = range(3)


class _Match(NamedTuple):
    """The best is the smallest: more is preferred, and counts with a minus."""

    preference: int
    letters: int
    begin: int
    end: int
    row: int
    form: int


def plain(message: str) -> str:
    """Return a text without what a log has put around and into it, with single spaces. Takes linear time."""
    return " ".join(_ESCAPE.sub(_unescaped, _HEAD.sub("", message)).split())


def _unescaped(found: re.Match[str]) -> str:
    escape = found[1]
    if escape.startswith("u00"):
        return chr(int(escape[1:], 16))
    return " " if escape else ""


def explain(message: str) -> list[dict[str, str]]:
    """Return the refusals that a message has, the best first: {text, cause, remedy, check, section}; at most
    MOST_FOUND.

    text: as the kubelet words it, with <name> for what differs from node to node. check: the id of the check of the
    drift report that finds it, or empty. Takes time in proportion to the length of the message, of which MOST_READ
    characters are read.
    """
    said = plain(message[:MOST_READ])
    rows = _table()
    kept: list[_Match] = []
    for match in sorted(match for number, row in enumerate(rows) for match in _best_match(said, row, number)):
        # A bare value explains nothing beside the text that it stands in.
        if match.preference == -_VALUE and kept and kept[0].preference != -_VALUE:
            break
        if not any(_is_within(match, better) for better in kept):
            kept.append(match)
    return [_answer(rows[match.row], match.form) for match in kept[:MOST_FOUND]]


def _answer(row: Mapping[str, Any], form: int) -> dict[str, str]:
    return {"text": row["forms"][form]["text"], **{name: row[name] for name in ("cause", "remedy", "check", "section")}}


@lru_cache(maxsize=None)
def _table() -> Sequence[Mapping[str, Any]]:
    rows: Sequence[Mapping[str, Any]] = json.loads(TABLE.read_text("utf-8"))
    return rows


def _best_match(said: str, row: Mapping[str, Any], number: int) -> list[_Match]:
    """Return how well a row of the table fits, by the form of most letters; nothing where it does not."""
    preference = _REASON if any(part in said for part in row["within"]) else _VALUE if row["is_value"] else _TEXT
    found = []
    for place, form in enumerate(row["forms"]):
        span = _span(said, form["parts"])
        if span:
            letters = sum(map(str.isalpha, "".join(form["parts"])))
            found.append(_Match(-preference, -letters, *span, number, place))
    return [min(found)] if found else []


def _span(said: str, parts: Sequence[str]) -> tuple[int, int] | None:
    """Return from where to where a text has these parts in their order; None where it does not."""
    begin, at = -1, 0
    for part in parts:
        found = said.find(part, at)
        if found < 0:
            return None
        begin = found if begin < 0 else begin
        at = found + len(part)
    return begin, at


def _is_within(match: _Match, better: _Match) -> bool:
    """Return whether a better match explains this one, too. The same text may have several causes."""
    same = (match.letters, match.begin, match.end) == (better.letters, better.begin, better.end)
    return not same and match.begin < better.end and better.begin < match.end
