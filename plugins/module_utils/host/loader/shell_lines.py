# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads the shell files that GRUB's configuration is made of, as far as they only set variables.

A line that does anything else is refused, as what it does cannot be known without running it. What a command prints
is not known either; it is refused only where it is needed.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ...errors import RefusedError

_BLANKS = " \t"
_GAPS = _BLANKS + "\n"
# They end a word. Of these only a semicolon and a newline can stand after an assignment.
_ENDS = " \t\n;"
_COMMANDS = "&|()<>"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_SIMPLE = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}", re.ASCII)
_LARGEST = 1 << 20


class Value(NamedTuple):
    """What a variable has; is_sure: false where a command or the shell that reads the file decides."""

    text: str
    is_sure: bool
    where: str


def read_assignments(text: str, path: str, before: dict[str, Value]) -> dict[str, Value]:
    """The variables after a file was read, with those before it. Raises RefusedError, which names file and line."""
    return _Reader(text, path, before).variables()


class _Reader:
    """Reads one file from left to right."""

    def __init__(self, text: str, path: str, before: dict[str, Value]) -> None:
        self._text = text
        self._path = path
        self._values = dict(before)
        self._at = 0

    def variables(self) -> dict[str, Value]:
        if len(self._text) > _LARGEST or "\0" in self._text:
            raise self._refused("is no shell file that can be read")
        while self._skip():
            self._statement()
        return self._values

    def _skip(self) -> bool:
        """Go to the next word; false at the end."""
        while self._at < len(self._text):
            if self._text[self._at] in _GAPS:
                self._at += 1
            elif self._text.startswith("\\\n", self._at):
                self._at += 2
            elif self._text[self._at] == "#":
                end = self._text.find("\n", self._at)
                self._at = len(self._text) if end < 0 else end
            else:
                return True
        return False

    def _statement(self) -> None:
        """Assignments up to the end of a command; with a command after them they are not the shell's own."""
        if self._peek() == ";":
            raise self._refused("is not understood")
        found: dict[str, Value] = {}
        is_export = False
        while self._at < len(self._text) and self._text[self._at] not in "\n;#":
            name = _NAME.match(self._text, self._at)
            if name is None:
                raise self._refused("is not understood")
            self._at = name.end()
            if self._text.startswith("=", self._at):
                where = "%s, line %d" % (self._path, self._line())
                self._at += 1
                found[name.group()] = self._value(where, {**self._values, **found})
            elif name.group() == "export" and not found and not is_export and self._peek() in _BLANKS:
                is_export = True
            elif not is_export or self._peek() not in _ENDS:
                raise self._refused("is not understood")
            self._skip_blanks()
        self._at += self._peek() == ";"
        self._values.update(found)

    def _skip_blanks(self) -> None:
        while self._at < len(self._text):
            if self._text[self._at] in _BLANKS:
                self._at += 1
            elif self._text.startswith("\\\n", self._at):
                self._at += 2
            else:
                return

    def _value(self, where: str, values: dict[str, Value]) -> Value:
        pieces: list[str] = []
        is_sure = True
        while self._at < len(self._text) and self._text[self._at] not in _ENDS:
            character = self._text[self._at]
            if character in _COMMANDS:
                raise self._refused("is not understood")
            if character == "'":
                pieces.append(self._until("'"))
            elif character == '"':
                is_sure &= self._double(pieces, values)
            elif character in "$`":
                is_sure &= self._expansion(pieces, values)
            elif character == "\\":
                if self._at + 1 >= len(self._text):
                    raise self._refused("ends within a line")
                pieces.append(self._text[self._at + 1].replace("\n", ""))
                self._at += 2
            else:
                # A tilde at the beginning is a home directory.
                is_sure &= character != "~" or bool(pieces)
                pieces.append(character)
                self._at += 1
        return Value("".join(pieces), is_sure, where)

    def _until(self, end: str) -> str:
        """What is up to the next `end`, which is passed."""
        stop = self._text.find(end, self._at + 1)
        if stop < 0:
            raise self._refused("has a quote without its end")
        found = self._text[self._at + 1 : stop]
        self._at = stop + 1
        return found

    def _double(self, pieces: list[str], values: dict[str, Value]) -> bool:
        start = self._at
        is_sure = True
        self._at += 1
        while self._at < len(self._text):
            character = self._text[self._at]
            if character == '"':
                self._at += 1
                return is_sure
            if character in "$`":
                is_sure &= self._expansion(pieces, values)
                continue
            follows = self._text[self._at + 1 : self._at + 2]
            if character == "\\" and follows and follows in '$`"\\\n':
                pieces.append(follows.replace("\n", ""))
                self._at += 1
            else:
                pieces.append(character)
            self._at += 1
        self._at = start
        raise self._refused("has a quote without its end")

    def _expansion(self, pieces: list[str], values: dict[str, Value]) -> bool:
        """Add what a $ or ` stands for; false where that is not known."""
        if self._text[self._at] == "`":
            self._pass_over("`", "`")
            return False
        follows = self._text[self._at + 1 : self._at + 2]
        simple, name = _SIMPLE.match(self._text, self._at + 1), _NAME.match(self._text, self._at + 1)
        if simple is not None or name is not None:
            found = simple.group(1) if simple is not None else name.group() if name is not None else ""
            self._at = simple.end() if simple is not None else name.end() if name is not None else 0
            value = values.get(found)
            pieces.append(value.text if value else "")
            # Only those that GRUB's own programs and the system do not set are empty when they are not set here.
            return value.is_sure if value else found.startswith("GRUB_CMDLINE_")
        if follows in ("(", "{"):
            self._at += 1
            self._pass_over(follows, ")" if follows == "(" else "}")
            return False
        if follows and (follows.isalnum() or follows in "@*#?-$!"):
            self._at += 2
            return False
        pieces.append("$")
        self._at += 1
        return True

    def _pass_over(self, opening: str, closing: str) -> None:
        """Go behind a command or an expansion whose result is not known. What is quoted in it closes nothing."""
        start = self._at
        depth = 0
        while self._at < len(self._text):
            character = self._text[self._at]
            self._at += 1
            if character == "\\":
                self._at += 1
            elif character == closing and (opening != closing or self._at - 1 > start):
                depth -= 1
                if depth <= 0:
                    return
            elif character == opening:
                depth += 1
            elif character in "'\"" and opening != closing:
                stop = self._text.find(character, self._at)
                if stop < 0:
                    break
                self._at = stop + 1
        self._at = start
        raise self._refused("has a command without its end")

    def _peek(self) -> str:
        return self._text[self._at] if self._at < len(self._text) else "\n"

    def _line(self) -> int:
        return self._text.count("\n", 0, self._at) + 1

    def _refused(self, what: str) -> RefusedError:
        start = self._text.rfind("\n", 0, self._at) + 1
        line = self._text[start : start + 80].partition("\n")[0]
        return RefusedError(
            "%r %s" % (line, what),
            "%s, line %d" % (self._path, self._line()),
            "set variables there, each with a value of its own, and nothing else",
        )
