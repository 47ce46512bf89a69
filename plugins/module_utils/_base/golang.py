# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What Go reads and how it complains, as far as the kubelet's checkpoint depends on it.

Source: encoding/json (scanner.go, decode.go), strconv (atoi.go, quote.go) and k8s.io/utils/cpuset.
"""

from __future__ import annotations

import json
import re
from typing import Any

from ..cpuset import MAX_CPUS, CPUSet
from .errors import BeyondError, GoError


class Object(list):  # type: ignore[type-arg]
    """A JSON object: [(key, value)] in the order of the text, with keys that are there twice."""


class Number(str):
    """A JSON number as it is written."""

    __slots__ = ()


# --- JSON ------------------------------------------------------------------------------------------

_MAX_DEPTH = 10000
_END = "unexpected end of JSON input"

_SPACE = re.compile(r"[ \t\r\n]*")
_PLAIN = re.compile(r'[^"\\\x00-\x1f]*')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_HEX = re.compile(r"[0-9a-fA-F]{0,4}")
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_LITERALS = {"t": ("true", True), "f": ("false", False), "n": ("null", None)}


def read_json(content: bytes) -> Any:
    """Return the value of the text: str, Number, bool, None, list or Object. Raises GoError."""
    return _Reader(content).document()


class _Reader:
    """Reads bytes, one character each, from left to right, without recursion: a text may be hostile."""

    def __init__(self, content: bytes) -> None:
        self.text = content.decode("latin-1")
        self.at = 0

    def document(self) -> object:
        # Collections that are open, each with the key that its next value belongs to.
        open_here: list[tuple[Any, str]] = []
        while True:
            value, is_open = self._begin(len(open_here))
            if is_open:
                key = self._key() if isinstance(value, Object) else ""
                open_here.append((value, key))
                continue
            while open_here:
                collection, key = open_here.pop()
                collection.append((key, value) if isinstance(collection, Object) else value)
                if self._goes_on(collection):
                    open_here.append((collection, self._key() if isinstance(collection, Object) else ""))
                    break
                value = collection
            else:
                if self._peek():
                    raise self._invalid("after top-level value")
                return value

    def _begin(self, depth: int) -> tuple[object, bool]:
        """Return the next value, and whether it is a collection that is not empty and so not yet read."""
        character = self._peek()
        if character == '"':
            return self._string(), False
        if character and character in "{[":
            if depth >= _MAX_DEPTH:
                raise self._invalid("exceeded max depth")
            collection: object = Object() if character == "{" else []
            self.at += 1
            if self._peek() == ("}" if character == "{" else "]"):
                self.at += 1
                return collection, False
            return collection, True
        if character in _LITERALS:
            return self._literal(*_LITERALS[character]), False
        if character == "-" or "0" <= character <= "9":
            return self._number(), False
        if not character:
            raise GoError(_END)
        raise self._invalid("looking for beginning of value")

    def _goes_on(self, collection: object) -> bool:
        """Read what stands behind a value of a collection: whether another one follows."""
        is_object = isinstance(collection, Object)
        character = self._peek()
        if character not in (",", "}" if is_object else "]"):
            raise self._unexpected("after object key:value pair" if is_object else "after array element")
        self.at += 1
        return character == ","

    def _key(self) -> str:
        if self._peek() != '"':
            raise self._unexpected("looking for beginning of object key string")
        key = self._string()
        if self._peek() != ":":
            raise self._unexpected("after object key")
        self.at += 1
        return key

    def _string(self) -> str:
        self.at += 1
        parts = []
        while True:
            start, self.at = self.at, _end(_PLAIN, self.text, self.at)
            parts.append(_text_of(self.text[start : self.at]))
            character = self.text[self.at : self.at + 1]
            if not character:
                raise GoError(_END)
            if character == '"':
                self.at += 1
                return "".join(parts)
            if character != "\\":
                raise self._invalid("in string literal")
            parts.append(self._escape())

    def _escape(self) -> str:
        self.at += 1
        escape = self.text[self.at : self.at + 1]
        if escape in _ESCAPES:
            self.at += 1
            return _ESCAPES[escape]
        if escape != "u":
            raise self._invalid("in string escape code")
        unit = self._unit()
        if 0xD800 <= unit < 0xDC00 and self.text.startswith("\\u", self.at):
            before = self.at
            self.at += 1
            second = self._unit()
            if 0xDC00 <= second < 0xE000:
                return chr(0x10000 + ((unit - 0xD800) << 10) + (second - 0xDC00))
            self.at = before
        return "\ufffd" if 0xD800 <= unit < 0xE000 else chr(unit)

    def _unit(self) -> int:
        """Return the four digits behind the u of an escape."""
        start = self.at + 1
        self.at = _end(_HEX, self.text, start)
        if self.at < start + 4:
            raise self._invalid("in \\u hexadecimal character escape")
        return int(self.text[start : self.at], 16)

    def _literal(self, word: str, value: object) -> object:
        for character in word:
            if self.text[self.at : self.at + 1] != character:
                raise self._invalid("in literal %s (expecting '%s')" % (word, character))
            self.at += 1
        return value

    def _number(self) -> Number:
        number = _NUMBER.match(self.text, self.at)
        if not number:
            self.at += 1
            raise self._invalid("in numeric literal")
        start, self.at = self.at, number.end()
        character = self.text[self.at : self.at + 1]
        fraction, exponent = "." in number.group(), "e" in number.group().lower()
        # The expression stops before a point or an exponent that lacks its digits.
        if character == "." and not fraction and not exponent:
            self.at += 1
            raise self._invalid("after decimal point in numeric literal")
        if character in ("e", "E") and not exponent:
            self.at += 1
            self.at += self.text[self.at : self.at + 1] in ("+", "-")
            raise self._invalid("in exponent of numeric literal")
        return Number(self.text[start : self.at])

    def _peek(self) -> str:
        self.at = _end(_SPACE, self.text, self.at)
        return self.text[self.at : self.at + 1]

    def _unexpected(self, where: str) -> GoError:
        return self._invalid(where) if self.at < len(self.text) else GoError(_END)

    def _invalid(self, where: str) -> GoError:
        # To see whether a text that ends here could end, Go puts a space behind it.
        character = self.text[self.at : self.at + 1] or " "
        quoted = {"'": "\\'", '"': '"'}.get(character, quote(character)[1:-1])
        return GoError("invalid character '%s' %s" % (quoted, where))


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at


def _text_of(characters: str) -> str:
    """Return the text of bytes; each that is no UTF-8 becomes one replacement character."""
    if characters.isascii():
        return characters
    text = characters.encode("latin-1").decode("utf-8", "surrogateescape")
    return "".join("\ufffd" if "\ud800" <= character <= "\udfff" else character for character in text)


# --- texts, numbers, CPU sets -----------------------------------------------------------------------

_QUOTED = {
    '"': '\\"', "\\": "\\\\", "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v",
}  # fmt: skip


# At most one digit more than a number of 64 bits: int() of a text of many is slow and, since Python 3.11, refused.
_INTEGER = re.compile(r"[-+]?(?=[0-9])0*([0-9]{0,21})")


def quote(text: str) -> str:
    """Return the text as %q prints it."""
    return '"%s"' % "".join(_QUOTED.get(character) or _printed(character) for character in text)


def _printed(character: str) -> str:
    if character.isprintable():
        return character
    code = ord(character)
    return ("\\x%02x" if code < 0x80 else "\\u%04x" if code < 0x10000 else "\\U%08x") % code


def read_integer(text: str) -> int:
    """Return a whole number of 64 bits, as strconv.Atoi reads it: `+1` is one. Raises GoError."""
    start = _INTEGER.match(text)
    number = int(start.group(1) or "0") if start else 0
    # Go reads from the left: behind a number beyond 64 bits, it looks at nothing.
    if number < 1 << 64 and (not start or start.end() < len(text)):
        raise GoError("strconv.Atoi: parsing %s: invalid syntax" % quote(text))
    number = -number if text[0] == "-" else number
    if not -(1 << 63) <= number < 1 << 63:
        raise GoError("strconv.Atoi: parsing %s: value out of range" % quote(text))
    return number


def read_cpus(text: str) -> CPUSet:
    """Return a CPU set as the kubelet reads it. Raises GoError, also where the kubelet would run out of memory."""
    mask = 0
    for item in text.split(",") if text else ():
        first_text, dash, last_text = item.partition("-")
        first = read_integer(first_text)
        last = read_integer(last_text) if dash else first
        if first > last:
            raise GoError("invalid range %s (%d > %d)" % (quote(item), first, last))
        if not 0 <= first <= last < MAX_CPUS:
            raise BeyondError("%s is out of range: CPU ids go from 0 to %d" % (quote(item), MAX_CPUS - 1))
        mask |= (1 << last + 1) - (1 << first)
    return CPUSet.from_mask(mask)


def json_text(value: object) -> str:
    """Return the text of a value, as Go writes it."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    # Go escapes these for the sake of browsers.
    for character in "<>&\u2028\u2029":
        text = text.replace(character, "\\u%04x" % ord(character))
    return text


def write_json(value: object) -> str:
    """Return the text of a value that read_json() has read, as Go writes it. Without recursion, since it may be
    hostile."""
    parts: list[str] = []
    # What is still to be written, the last first, and whether that is a text of JSON already.
    todo: list[tuple[Any, bool]] = [(value, False)]
    while todo:
        item, is_written = todo.pop()
        if is_written or isinstance(item, Number):
            parts.append(item)
        elif isinstance(item, list):
            is_object = isinstance(item, Object)
            pieces: list[tuple[Any, bool]] = []
            for member in item:
                pieces.append((("," if pieces else "") + (json_text(member[0]) + ":" if is_object else ""), True))
                pieces.append((member[1] if is_object else member, False))
            opening, closing = "{}" if is_object else "[]"
            todo += reversed([(opening, True), *pieces, (closing, True)])
        else:
            parts.append(json_text(item))
    return "".join(parts)


def folded(key: str) -> str:
    """Return the key as Go compares it: without regard to case; two letters beyond ASCII (U+017F, U+212A) equal s
    and k."""
    return key.replace("\u017f", "s").replace("\u212a", "k").lower() if not key.isascii() else key.lower()
