# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The texts of scalars in each style. Source: goyaml.v2/scannerc.go."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..nodes import DOUBLE, LITERAL, PLAIN, SINGLE
from .fault import Mark
from .tokens import BLANK_OR_END, BREAKS, SCALAR, Token

if TYPE_CHECKING:
    from .scanner import Scanner

_COLON_INSIDE = ":(?![%s])" % BLANK_OR_END
_PLAIN = re.compile("(?:[^:%s]|%s)*" % (BLANK_OR_END, _COLON_INSIDE))
_PLAIN_IN_FLOW = re.compile(r"(?:[^:,?\[\]{}%s]|%s)*" % (BLANK_OR_END, _COLON_INSIDE))
_SINGLE = re.compile("(?:[^'%s]|'')*" % BLANK_OR_END)
_DOUBLE = re.compile(r'[^"\\%s]*' % BLANK_OR_END)
_BLANKS = re.compile("[ \t]*")
_SPACES = re.compile(" *")
_LINE = re.compile("[^%s\0]*" % BREAKS)
_ESCAPES = {
    "0": "\0", "a": "\a", "b": "\b", "t": "\t", "\t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r", "e": "\x1b",
    " ": " ", '"': '"', "'": "'", "\\": "\\", "N": "\x85", "_": "\xa0", "L": "\u2028", "P": "\u2029",
}  # fmt: skip
_CODE_LENGTHS = {"x": 2, "u": 4, "U": 8}
_HEX = re.compile("[0-9a-fA-F]*")


def _folded(first: str, others: str) -> str:
    """The line breaks between two words."""
    return (others or " ") if first in {"\n", ""} else first + others


class _Gap:
    """Blanks and line breaks inside of a scalar."""

    def __init__(self) -> None:
        self.blanks = self.first = self.others = ""
        self.broken = False

    def take(self, scanner: Scanner, indent: int = 0) -> None:
        """Up to the next word. Outside of quotes no tab may be in the indentation, which `indent` ends."""
        while True:
            if self.broken and scanner.column() < indent:
                spaces = _SPACES.match(scanner.text, scanner.at)
                scanner.at += min(len(spaces.group()) if spaces else 0, indent - scanner.column())
                if scanner.text[scanner.at] == "\t" and scanner.column() < indent:
                    raise scanner.refuse("found a tab character that violates indentation")
            blanks = scanner.take_match(_BLANKS)
            if not self.broken:
                self.blanks += blanks
            if not scanner.at_break():
                return
            line_break = scanner.take_break()
            if self.broken:
                self.others += line_break
            else:
                self.blanks, self.first, self.broken = "", line_break, True
            scanner.reach(1)

    def text(self) -> str:
        return _folded(self.first, self.others) if self.broken else self.blanks


def plain_scalar(scanner: Scanner) -> Token:
    start = end = scanner.mark()
    pattern = _PLAIN_IN_FLOW if scanner.flow_level else _PLAIN
    parts: list[str] = []
    gap = _Gap()
    while True:
        scanner.reach(4)
        if scanner.at_marker() or scanner.text[scanner.at] == "#":
            break
        word = scanner.take_match(pattern)
        if word:
            parts += [gap.text(), word]
            gap = _Gap()
            end = scanner.mark()
            scanner.reach(2)
        if scanner.text[scanner.at] not in " \t" + BREAKS:
            break
        gap.take(scanner, scanner.indent + 1)
        if not scanner.flow_level and scanner.column() < scanner.indent + 1:
            break
    if gap.broken:
        scanner.key_allowed = True
    return Token(SCALAR, start, end, "".join(parts), PLAIN)


def quoted_scalar(scanner: Scanner) -> Token:
    start = scanner.mark()
    quote = scanner.text[scanner.at]
    scanner.at += 1
    parts: list[str] = []
    while True:
        scanner.reach(4)
        if scanner.at_marker():
            raise scanner.refuse("found unexpected document indicator", start)
        if scanner.at >= scanner.end:
            raise scanner.refuse("found unexpected end of stream", start)
        gap = _Gap()
        if quote == "'":
            parts.append(scanner.take_match(_SINGLE).replace("''", "'"))
        else:
            gap.broken = _take_double(scanner, parts, start)
        scanner.reach(2)
        if scanner.text[scanner.at] == quote:
            break
        escaped = gap.broken
        gap.take(scanner)
        # An escaped line break is nothing.
        parts.append(gap.others if escaped else gap.text())
    scanner.at += 1
    return Token(SCALAR, start, scanner.mark(), "".join(parts), SINGLE if quote == "'" else DOUBLE)


def _take_double(scanner: Scanner, parts: list[str], start: Mark) -> bool:
    """Words without blanks; true where an escaped line break ends them."""
    while True:
        parts.append(scanner.take_match(_DOUBLE))
        scanner.reach(2)
        if scanner.text[scanner.at] != "\\":
            return False
        sign = scanner.text[scanner.at + 1]
        if sign in BREAKS:
            scanner.at += 1
            scanner.take_break()
            return True
        length = _CODE_LENGTHS.get(sign, 0)
        if not length and sign not in _ESCAPES:
            raise scanner.refuse("found unknown escape character", scanner.mark())
        scanner.at += 2
        parts.append(_code(scanner, length, start) if length else _ESCAPES[sign])


def _code(scanner: Scanner, length: int, start: Mark) -> str:
    scanner.reach(length)
    code = scanner.text[scanner.at : scanner.at + length]
    if not code.isascii() or not _HEX.fullmatch(code):
        raise scanner.refuse("did not find expected hexdecimal number", start)
    value = int(code, 16)
    if 0xD800 <= value <= 0xDFFF or value > 0x10FFFF:
        raise scanner.refuse("found invalid Unicode character escape code", start)
    scanner.at += length
    return chr(value)


def block_scalar(scanner: Scanner) -> Token:
    start = scanner.mark()
    folds = scanner.text[scanner.at] == ">"
    scanner.at += 1
    scanner.reach(1)
    chomping, increment = _header(scanner, start)
    scanner.take_line_end(start)
    end = _before_break(scanner, start.at)
    indent = max(scanner.indent, 0) + increment if increment else 0
    indent, breaks, last = _take_breaks(scanner, indent)
    if chomping == "+" and breaks:
        end = last
    parts: list[str] = []
    first, was_blank = "", False
    while scanner.column() == indent and scanner.at < scanner.end:
        is_blank = scanner.text[scanner.at] in " \t"
        if folds and first == "\n" and not was_blank and not is_blank:
            parts.append("" if breaks else " ")
        else:
            parts.append(first)
        parts += [breaks, scanner.take_match(_LINE)]
        was_blank = is_blank
        end = scanner.mark()
        first = scanner.take_break()
        _indent, breaks, last = _take_breaks(scanner, indent)
        if chomping == "+" and breaks:
            end = last
    parts.append("" if chomping == "-" else first)
    parts.append(breaks if chomping == "+" else "")
    return Token(SCALAR, start, end, "".join(parts), LITERAL)


def _header(scanner: Scanner, start: Mark) -> tuple[str, int]:
    chomping, increment = "", 0
    for _sign in range(2):
        sign = scanner.text[scanner.at]
        if sign in "+-" and not chomping:
            chomping = sign
        elif sign in "0123456789" and not increment:
            if sign == "0":
                raise scanner.refuse("found an indentation indicator equal to 0", start)
            increment = int(sign)
        else:
            break
        scanner.at += 1
        scanner.reach(1)
    return chomping, increment


def _take_breaks(scanner: Scanner, indent: int) -> tuple[int, str, Mark]:
    """The lines without text; the text's indentation, which without a number is the longest of them; their end."""
    breaks, longest, end = "", 0, scanner.mark()
    while True:
        spaces = _SPACES.match(scanner.text, scanner.at)
        count = len(spaces.group()) if spaces else 0
        scanner.at += min(count, max(indent - scanner.column(), 0)) if indent else count
        scanner.reach(1)
        longest = max(longest, scanner.column())
        if scanner.text[scanner.at] == "\t" and (not indent or scanner.column() < indent):
            raise scanner.refuse("found a tab character where an indentation space is expected")
        if not scanner.at_break():
            return indent or max(longest, scanner.indent + 1, 1), breaks, end
        end = scanner.mark()
        breaks += scanner.take_break()


def _before_break(scanner: Scanner, start: int) -> Mark:
    """The end of the line that has just been taken."""
    at = scanner.at
    while at > start and scanner.text[at - 1] in BREAKS:
        at -= 1
    comment = scanner.text[start:at]
    return Mark(start + len(comment), scanner.line - (at < scanner.at), 0)
