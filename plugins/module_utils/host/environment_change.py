# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One value in a file of variables that systemd gives to a service, and all else as it is. Pure.

environment.py reads such files as newer versions do. In older ones a backslash lets a comment go on, too: what is
written here counts in all. Source: EnvironmentFile= in systemd.exec(5).
"""

from __future__ import annotations

from typing import NamedTuple

from ..errors import RefusedError
from .environment import COMMENT, ESCAPED, NAME, read_environment

_BLANK = " \t\r"


class Assignment(NamedTuple):
    """A variable's value, and where its lines are: from their first sign up to the end of the last, without it."""

    name: str
    value: str
    start: int
    end: int


class Lines(NamedTuple):
    """What a file gives, in order; and what its last line lacks to be ended: None where nothing ends it."""

    assignments: list[Assignment]
    missing: str | None


def parse_lines(text: str) -> Lines:
    """Any text is such a file. What is no assignment gives nothing."""
    reader = _Reader(text)
    found: list[Assignment] = []
    while reader.at < len(text):
        start = reader.at
        if text[start] in _BLANK + "\n":
            reader.at += 1
        elif text[start] in COMMENT:
            reader.skip_comment()
        else:
            line = reader.assignment(start)
            if line is not None:
                found.append(line)
    return Lines(found, reader.missing)


def with_value(text: str, name: str, value: str) -> str:
    """The file with another value of a variable, in the last line that gives it one, or else in a new line at the end.

    value: a text without blanks, quotes and backslashes. Raises RefusedError where a quote has no end, and for what
    systemd does not read as such a file.
    """
    lines = parse_lines(text)
    last = next((line for line in reversed(lines.assignments) if line.name == name), None)
    assignment = "%s=%s" % (name, value)
    if last is not None and last.value == value:
        changed = text
    elif lines.missing is None:
        raise RefusedError("a quote in it has no end, so it is not clear what it says", remedy="correct the file")
    elif last is None:
        changed = "%s%s%s\n" % (text, lines.missing, assignment)
    else:
        changed = text[: last.start] + assignment + text[last.end :]
    if read_environment(changed).get(name) != value:
        raise RefusedError("systemd would read no %s in it" % name, remedy="correct the file")
    return changed


class _Reader:
    """Reads a text from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.missing: str | None = ""

    def _take(self) -> str:
        sign = self.text[self.at : self.at + 1]
        self.at += len(sign)
        return sign

    def skip_comment(self) -> None:
        """A backslash before its end makes the next line a part of it."""
        while self.at < len(self.text):
            sign = self._take()
            if sign == "\n":
                return
            if sign == "\\" and not self._take():
                self.missing = "\n\n"
                return
        self.missing = "\n"

    def assignment(self, start: int) -> Assignment | None:
        """The lines of a name and its value; None for any that has no such name."""
        while self.at < len(self.text) and self.text[self.at] not in "=\n":
            self.at += 1
        name = self.text[start : self.at].rstrip(_BLANK)
        if self._take() != "=":
            # A line without a value: at the end of the text it has no end, either.
            self.missing = "" if self.text[self.at - 1 : self.at] == "\n" else "\n"
            return None
        value, end = self._value()
        return Assignment(name, value, start, end) if NAME.fullmatch(name) else None

    def _value(self) -> tuple[str, int]:
        """The value, and where its last line ends."""
        # Blanks at the end are no part of it, but for those that were quoted or escaped.
        value, kept, begun = "", 0, False
        while True:
            sign = self._take()
            if not sign or sign == "\n":
                self.missing = "" if sign else "\n"
                return value[:kept] + value[kept:].rstrip(_BLANK), self.at - len(sign)
            if sign == "\\":
                sign = self._take()
                if not sign:
                    self.missing = "\n\n"
                    return value, self.at
                if sign != "\n":
                    value += sign
                    kept, begun = len(value), True
            elif sign in "\"'" and not begun:
                quoted = self._quoted(sign)
                if quoted is None:
                    self.missing = None
                    return value, self.at
                value += quoted
                kept = len(value)
            elif begun or sign not in _BLANK:
                value += sign
                begun = True

    def _quoted(self, quote: str) -> str | None:
        """What is up to the next quote; None where there is none."""
        found = ""
        while True:
            sign = self._take()
            if not sign:
                return None
            if sign == quote:
                return found
            if sign == "\\" and quote == '"':
                escaped = self._take()
                sign = "" if escaped == "\n" else escaped if escaped in ESCAPED else sign + escaped
            found += sign
