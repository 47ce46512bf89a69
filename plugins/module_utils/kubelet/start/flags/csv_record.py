# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One record of CSV, as Go reads it: flags that take lists are read so.

Source: Go's encoding/csv (reader.go).
"""

from __future__ import annotations

from ....errors import GoError

_BARE = 'bare " in non-quoted field'
_QUOTE = 'extraneous or missing " in quoted-field'


def read_record(content: bytes) -> list[str]:
    """The fields of the first line that is not empty. Raises GoError."""
    # One character for each byte: columns are counted in bytes.
    fields = _Reader(content.decode("latin-1")).record()
    return [field.encode("latin-1").decode("utf-8", "surrogateescape") for field in fields]


class _Reader:
    """Reads line by line: a line ends in a line feed, and a carriage return before it belongs to it."""

    def __init__(self, content: str) -> None:
        self.content = content
        self.next = 0
        self.line = ""
        self.number = 0
        # Of the next character of the line, from 0.
        self.at = 0
        self.fields: list[str] = []

    def record(self) -> list[str]:
        while self._next_line():
            if self.line not in ("", "\n"):
                break
        else:
            raise GoError("EOF")
        first = self.number
        while self._field(first):
            pass
        return self.fields

    def _next_line(self) -> bool:
        if self.next == len(self.content):
            self.line, self.at = "", 0
            return False
        end = self.content.find("\n", self.next) + 1
        line = self.content[self.next : end or len(self.content)]
        self.next += len(line)
        if line.endswith("\r\n"):
            line = line[:-2] + "\n"
        elif not end and line.endswith("\r"):
            line = line[:-1]
        self.line, self.at = line, 0
        self.number += 1
        return True

    def _field(self, first: int) -> bool:
        """Read a field; whether another one follows."""
        if self.line[self.at : self.at + 1] == '"':
            self.at += 1
            return self._quoted(first)
        end = self.line.find(",", self.at)
        field = self.line[self.at : end] if end >= 0 else self.line[self.at :].rstrip("\n")
        if '"' in field:
            raise self._fault(first, self.number, self.at + field.index('"'), _BARE)
        self.fields.append(field)
        self.at = end + 1
        return end >= 0

    def _quoted(self, first: int) -> bool:
        parts = []
        while True:
            end = self.line.find('"', self.at)
            if end >= 0:
                parts.append(self.line[self.at : end])
                self.at = end + 1
                behind = self.line[self.at : self.at + 1]
                if behind == '"':
                    parts.append('"')
                    self.at += 1
                    continue
                if behind not in ("", ",", "\n"):
                    raise self._fault(first, self.number, end, _QUOTE)
                self.fields.append("".join(parts))
                self.at += 1
                return behind == ","
            rest = self.line[self.at :]
            parts.append(rest)
            column = self.at + len(rest)
            if not self._next_line():
                raise self._fault(first, self.number, column, _QUOTE)

    def _fault(self, first: int, line: int, column: int, what: str) -> GoError:
        record = "record on line %d; " % first if first != line else ""
        return GoError("%sparse error on line %d, column %d: %s" % (record, line, column + 1, what))
