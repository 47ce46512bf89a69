# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The tokens of any YAML, and the errors of the kubelet's reader with their lines.

A token is read where the composer first needs it: of two errors in a text the one counts that the kubelet meets first.
Source: goyaml.v2/scannerc.go.
"""

from __future__ import annotations

import re
from collections import deque

from .fault import FaultError, Mark
from .tokens import (
    ALIAS,
    ANCHOR,
    BLANK_OR_END,
    BLOCK_END,
    BLOCK_MAPPING,
    BLOCK_SEQUENCE,
    BREAKS,
    COMMA,
    DOCUMENT_END,
    DOCUMENT_START,
    ENTRY,
    KEY,
    STREAM_END,
    VALUE,
    Token,
)

_BREAK = re.compile("\r\n|[%s]" % BREAKS)
_SPACES, _SPACES_AND_TABS = re.compile(" *"), re.compile("[ \t]*")
_LINE = re.compile("[^%s\0]*" % BREAKS)
_MARKER = re.compile(r"(?:---|\.\.\.)(?=[%s])" % BLANK_OR_END)
_NAME = re.compile("[-0-9A-Za-z_]*")
_NO_PLAIN_START = frozenset("-?:,[]{}#&*!|>'\"%@`" + BLANK_OR_END)
_MAX_KEY = 1024


class _Key:
    """Where a key without '?' may have begun."""

    __slots__ = ("mark", "number", "possible", "required")

    def __init__(self, possible: bool, required: bool, number: int, mark: Mark) -> None:
        self.possible, self.required, self.number, self.mark = possible, required, number, mark


class Scanner:
    """Reads one text from left to right. Raises FaultError."""

    def __init__(self, text: str, fault: str = "") -> None:
        """With a `fault` the text ends where the kubelet's reader meets bytes that it refuses so."""
        self.text = text + "\0\0\0\0"
        self.end = len(text)
        self.fault = fault
        self.at = self.line = self.line_start = 0
        self.indent, self.indents = -1, [-1]
        self.flow_level = 0
        self.key_allowed = True
        self.tokens: deque[Token] = deque()
        self.taken = 0
        self.keys = [_Key(False, False, 0, self.mark())]
        # The number of a token that may be a key's first, and the place in `keys` that it is for.
        self.key_of_token: dict[int, int] = {}

    def peek(self) -> Token:
        """The next token. What may be a key is known only behind it."""
        while True:
            if self.tokens:
                level = self.key_of_token.get(self.taken)
                if level is None or level >= len(self.keys) or not self._is_valid(self.keys[level]):
                    return self.tokens[0]
            self._fetch()

    def take(self) -> Token:
        token = self.peek()
        self.tokens.popleft()
        self.taken += 1
        return token

    # --- marks and characters ------------------------------------------------------------------

    def mark(self) -> Mark:
        return Mark(self.at, self.line, self.at - self.line_start)

    def refuse(self, problem: str, place: Mark | None = None) -> FaultError:
        """An error here; `place` is where a person looks for its cause."""
        here = self.mark()
        # Its lines count from 0, and this one has been gone to.
        return FaultError(problem, place or here, here.line + 1 if here.line else 0)

    def reach(self, count: int) -> None:
        """That many characters are looked at from here."""
        if self.fault and self.at + count > self.end:
            raise FaultError(self.fault, self.mark(), 0)

    def column(self) -> int:
        return self.at - self.line_start

    def at_marker(self) -> bool:
        return self.at == self.line_start and _MARKER.match(self.text, self.at) is not None

    def at_break(self) -> bool:
        return self.text[self.at] in BREAKS

    def take_break(self) -> str:
        """Go to the next line; what the break is in a text."""
        self.reach(2)
        match = _BREAK.match(self.text, self.at)
        if match is None:
            return ""
        self.at = self.line_start = match.end()
        self.line += 1
        return match.group() if match.group() in "\u2028\u2029" else "\n"

    def take_match(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self.text, self.at)
        found = match.group() if match else ""
        self.at += len(found)
        self.reach(1)
        return found

    def take_line_end(self, start: Mark, problem: str = "did not find expected comment or line break") -> None:
        """Blanks, a comment and the break."""
        self.take_match(_SPACES_AND_TABS)
        if self.text[self.at] == "#":
            self.take_match(_LINE)
        if not self.at_break() and self.at < self.end:
            raise self.refuse(problem, start)
        self.take_break()

    # --- the next token --------------------------------------------------------------------------

    def _fetch(self) -> None:
        self.reach(1)
        self._skip_gap()
        self._unroll(self.column())
        self.reach(4)
        sign, ends = self.text[self.at], self.text[self.at + 1] in BLANK_OR_END
        in_flow = self.flow_level > 0
        if self.at >= self.end:
            self._stream_end()
        elif sign == "%" and self.column() == 0:
            from .directives import scan_directive

            self._document_level()
            self.add(scan_directive(self))
        elif self.at_marker():
            self._document_level()
            self._sign(DOCUMENT_START if sign == "-" else DOCUMENT_END, 3)
        elif sign in "[{":
            self._save_key()
            self.keys.append(_Key(False, False, self.taken + len(self.tokens), self.mark()))
            self.flow_level += 1
            self.key_allowed = True
            self._sign(sign)
        elif sign in "]}":
            self._remove_key()
            if in_flow:
                self.flow_level -= 1
                self.key_of_token.pop(self.keys.pop().number, None)
            self.key_allowed = False
            self._sign(sign)
        elif sign == ",":
            self._remove_key()
            self.key_allowed = True
            self._sign(COMMA)
        elif sign == "-" and ends:
            self._begin_in_block("block sequence entries are not allowed in this context", BLOCK_SEQUENCE)
            self._remove_key()
            self.key_allowed = True
            self._sign(ENTRY)
        elif sign == "?" and (in_flow or ends):
            self._begin_in_block("mapping keys are not allowed in this context", BLOCK_MAPPING)
            self._remove_key()
            self.key_allowed = not in_flow
            self._sign(KEY)
        elif sign == ":" and (in_flow or ends):
            self._value()
        else:
            self._content(sign, ends)

    def _content(self, sign: str, ends: bool) -> None:
        from .scalars import block_scalar, plain_scalar, quoted_scalar

        if sign in "|>" and not self.flow_level:
            self._remove_key()
            self.key_allowed = True
            self.add(block_scalar(self))
            return
        if sign not in "*&!'\"" and not (
            sign not in _NO_PLAIN_START or (sign == "-" and not ends) or (sign in "?:" and not self.flow_level)
        ):
            raise self.refuse("found character that cannot start any token")
        self._save_key()
        self.key_allowed = False
        if sign in "*&":
            self.add(self._name(ALIAS if sign == "*" else ANCHOR))
        elif sign == "!":
            from .directives import scan_tag

            self.add(scan_tag(self))
        elif sign in "'\"":
            self.add(quoted_scalar(self))
        else:
            self.add(plain_scalar(self))

    def add(self, token: Token, position: int = -1) -> None:
        if position < 0:
            self.tokens.append(token)
        else:
            self.tokens.insert(position, token)

    def _sign(self, kind: str, length: int = 1) -> None:
        start = self.mark()
        self.at += length
        self.add(Token(kind, start, self.mark()))

    def _name(self, kind: str) -> Token:
        start = self.mark()
        self.at += 1
        name = self.take_match(_NAME)
        if not name or self.text[self.at] not in BLANK_OR_END + "?:,]}%@`":
            raise self.refuse("did not find expected alphabetic or numeric character", start)
        return Token(kind, start, self.mark(), name)

    def _skip_gap(self) -> None:
        """Go over blanks, comments and line breaks."""
        while True:
            self.reach(1)
            if self.text[self.at] == "\ufeff" and self.column() == 0:
                self.at += 1
            self.take_match(_SPACES_AND_TABS if self.flow_level or not self.key_allowed else _SPACES)
            if self.text[self.at] == "#":
                self.take_match(_LINE)
            if not self.take_break():
                return
            if not self.flow_level:
                self.key_allowed = True

    def _stream_end(self) -> None:
        if self.column():
            self.line += 1
            self.line_start = self.at
        self._document_level()
        self.add(Token(STREAM_END, self.mark(), self.mark()))

    def _document_level(self) -> None:
        self._unroll(-1)
        self._remove_key()
        self.key_allowed = False

    def _value(self) -> None:
        key = self.keys[-1]
        if self._is_valid(key):
            self.add(Token(KEY, key.mark, key.mark), key.number - self.taken)
            self._roll(key.mark, BLOCK_MAPPING, key.number)
            key.possible = False
            self.key_of_token.pop(key.number, None)
            self.key_allowed = False
        else:
            self._begin_in_block("mapping values are not allowed in this context", BLOCK_MAPPING)
            self.key_allowed = not self.flow_level
        self._sign(VALUE)

    # --- keys that no '?' announces --------------------------------------------------------------

    def _is_valid(self, key: _Key) -> bool:
        if key.possible and (key.mark.line < self.line or key.mark.at + _MAX_KEY < self.at):
            self._check_not_required(key)
            key.possible = False
        return key.possible

    def _save_key(self) -> None:
        required = not self.flow_level and self.indent == self.column()
        if self.key_allowed:
            self._remove_key()
            number = self.taken + len(self.tokens)
            self.keys[-1] = _Key(True, required, number, self.mark())
            self.key_of_token[number] = len(self.keys) - 1

    def _remove_key(self) -> None:
        key = self.keys[-1]
        if key.possible:
            self._check_not_required(key)
            key.possible = False
            self.key_of_token.pop(key.number, None)

    def _check_not_required(self, key: _Key) -> None:
        if key.required:
            raise self.refuse("could not find expected ':'", key.mark)

    # --- indentation -----------------------------------------------------------------------------

    def _begin_in_block(self, problem: str, kind: str) -> None:
        if not self.flow_level:
            if not self.key_allowed:
                raise self.refuse(problem)
            self._roll(self.mark(), kind)

    def _roll(self, mark: Mark, kind: str, number: int = -1) -> None:
        """A deeper column begins a collection, before the token with this number."""
        if not self.flow_level and self.indent < mark.column:
            self.indents.append(self.indent)
            self.indent = mark.column
            self.add(Token(kind, mark, mark), number - self.taken if number >= 0 else -1)

    def _unroll(self, column: int) -> None:
        while not self.flow_level and self.indent > column:
            self.add(Token(BLOCK_END, self.mark(), self.mark()))
            self.indent = self.indents.pop()
