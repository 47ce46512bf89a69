# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Errors of the kubelet's YAML reader, and what they are to a person."""

from __future__ import annotations

import re
from typing import NamedTuple


class Mark(NamedTuple):
    """A place in the text; all three count from 0."""

    at: int
    line: int
    column: int


class FaultError(Exception):
    """The text cannot be read. `text` is what the kubelet says, empty where that cannot be determined for sure."""

    def __init__(self, problem: str, mark: Mark, line: int = 0, is_sure: bool = True, prefix: str = "yaml: ") -> None:
        super().__init__(problem)
        self.problem = problem
        self.mark = mark
        self.is_sure = is_sure
        self.text = prefix + ("line %d: " % line if line else "") + problem if is_sure else ""


_QUOTES = "; put a text in quotes"
_WHOLE = "; is the file whole?"
# Problems that a person understands better in other words. All others are good enough.
_FOR_PEOPLE = {
    "found character that cannot start any token": "found %s, which no value can start with" + _QUOTES,
    "did not find expected key": (
        "expected a key or the end of the line, found %s; check the quotes and the indentation"
    ),
    "did not find expected '-' indicator": "expected a '-', found %s; check the indentation",
    "could not find expected ':'": "expected ': ' after the key %s",
    "mapping values are not allowed in this context": (
        "found %s where no value can be; check the indentation, and put a text with ': ' in quotes"
    ),
    "block sequence entries are not allowed in this context": (
        "found a list on the line of its key; start it on the next line"
    ),
    "mapping keys are not allowed in this context": "found %s where no key can start; check the indentation",
    "found unexpected end of stream": "the quote that opens here is never closed" + _WHOLE,
    "found unexpected document indicator": "the quote that opens here is not closed in its document" + _WHOLE,
    "found unknown escape character": "%s begins with no escape sequence; double the backslash",
    "did not find expected ',' or ']'": "expected ',' or ']', found %s" + _WHOLE,
    "did not find expected ',' or '}'": "expected ',' or '}', found %s" + _WHOLE,
    "did not find expected node content": "expected a value, found %s" + _QUOTES,
    "did not find expected <document start>": "expected '---', found %s",
    "did not find expected alphabetic or numeric character": (
        "expected a name of letters, digits, '-' and '_', found %s" + _QUOTES
    ),
    "found a tab character that violates indentation": "found a tab; use spaces",
    "found a tab character where an indentation space is expected": "found a tab; use spaces",
    "document contains excessive aliasing": "the aliases stand for too many values; write them out",
    "control characters are not allowed": "found the character %s; remove it",
    "map merge requires map or sequence of maps as the value": "a merge key takes a mapping or a list of mappings",
}


_ABOUT_A_NAME = (
    ("unknown anchor '(.*)' referenced", "the alias *%(name)s has no anchor &%(name)s above it"),
    ("anchor '(.*)' value contains itself", "the alias *%(name)s stands inside of what it is to repeat"),
    ("unsupported value: (.*)", "%(name)s is no number that JSON has"),
)


def for_people(problem: str, found: str) -> str:
    """The problem in words for a person; `found` is the text that stands there."""
    if problem == "found character that cannot start any token" and found.startswith("\t"):
        return "found a tab; use spaces"
    for pattern, what in _ABOUT_A_NAME:
        match = re.fullmatch(pattern, problem)
        if match:
            return what % {"name": match.group(1)}
    return _FOR_PEOPLE.get(problem, problem).replace("%s", ascii(found[:20]) if found else "the end")
