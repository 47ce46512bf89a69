# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What Go says of a text that is no JSON. Source: encoding/json (scanner.go)."""

from __future__ import annotations

import re

from ...golang import quote

_SPACE = re.compile(rb"[ \t\r\n]*")
_WORDS = (b"true", b"false", b"null")
# What is right so far, and what the next byte is then wrong in.
_STRING = re.compile(rb'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*')
_ESCAPE = re.compile(rb"\\(?:u[0-9a-fA-F]{0,3})?")
_NUMBER = re.compile(rb"-?(?:(?:0|[1-9][0-9]*)(?:\.(?:[0-9]+(?:[eE](?:[-+]?[0-9]*)?)?)?|[eE](?:[-+]?[0-9]*)?)?)?")
_IN_NUMBER = (
    (b"-", "in numeric literal"),
    (b".", "after decimal point in numeric literal"),
    (b"e", "in exponent of numeric literal"),
    (b"E", "in exponent of numeric literal"),
    (b"+", "in exponent of numeric literal"),
)
_MAX_DEPTH = 10000
_VALUE, _KEY = "looking for beginning of value", "looking for beginning of object key string"


class _FaultError(Exception):
    """The first byte that is wrong is at `at`; at the end of the text it is one too few."""

    def __init__(self, at: int, context: str) -> None:
        super().__init__(context)
        self.at = at
        self.context = context


def json_fault(text: str) -> str:
    """The words of Go's scanner; empty for what it takes."""
    data = text.encode("utf-8", "surrogateescape")
    try:
        _scan(data)
    except _FaultError as fault:
        if fault.context == "exceeded max depth":
            return fault.context
        if fault.at >= len(data):
            return "unexpected end of JSON input"
        return "invalid character %s %s" % (_quoted(data[fault.at]), fault.context)
    return ""


def _quoted(octet: int) -> str:
    character = chr(octet)
    if character in "'\"":
        return "'\\''" if character == "'" else "'\"'"
    return "'%s'" % quote(character)[1:-1]


def _scan(data: bytes) -> None:
    """Raises _FaultError."""
    closing: list[bytes] = []
    at = _value_start(data, 0, closing)
    while True:
        at = _skip(data, at)
        if not closing:
            if at < len(data):
                raise _FaultError(at, "after top-level value")
            return
        sign = data[at : at + 1]
        if sign == closing[-1]:
            closing.pop()
            at += 1
        elif sign == b",":
            at = _skip(data, at + 1)
            at = _value_start(data, _key_end(data, at) if closing[-1] == b"}" else at, closing)
        else:
            raise _FaultError(at, "after object key:value pair" if closing[-1] == b"}" else "after array element")


def _skip(data: bytes, at: int) -> int:
    return _SPACE.match(data, at).end()  # type: ignore[union-attr]


def _key_end(data: bytes, at: int) -> int:
    """Behind a key's colon."""
    if data[at : at + 1] != b'"':
        raise _FaultError(at, _KEY)
    at = _skip(data, _string_end(data, at))
    if data[at : at + 1] != b":":
        raise _FaultError(at, "after object key")
    return at + 1


def _value_start(data: bytes, at: int, closing: list[bytes]) -> int:
    """Behind a scalar, or behind the scalar or the empty collection that a collection begins with."""
    while True:
        at = _skip(data, at)
        sign = data[at : at + 1]
        if sign not in (b"{", b"["):
            return _scalar_end(data, at, sign)
        closing.append(b"}" if sign == b"{" else b"]")
        if len(closing) > _MAX_DEPTH:
            raise _FaultError(at, "exceeded max depth")
        at = _skip(data, at + 1)
        if data[at : at + 1] == closing[-1]:
            return at
        if sign == b"{":
            at = _key_end(data, at)


def _scalar_end(data: bytes, at: int, sign: bytes) -> int:
    if sign == b'"':
        return _string_end(data, at)
    if sign and sign in b"-0123456789":
        return _number_end(data, at)
    word = next((word for word in _WORDS if sign and word.startswith(sign)), b"")
    if not word:
        raise _FaultError(at, _VALUE)
    for number, octet in enumerate(word):
        if data[at + number : at + number + 1] != bytes((octet,)):
            raise _FaultError(at + number, "in literal %s (expecting '%s')" % (word.decode(), chr(octet)))
    return at + len(word)


def _string_end(data: bytes, at: int) -> int:
    end = _STRING.match(data, at).end()  # type: ignore[union-attr]
    if data[end : end + 1] == b'"':
        return end + 1
    escape = _ESCAPE.match(data, end)
    if not escape:
        raise _FaultError(end, "in string literal")
    in_code = escape.end() > end + 1
    raise _FaultError(escape.end(), "in \\u hexadecimal character escape" if in_code else "in string escape code")


def _number_end(data: bytes, at: int) -> int:
    end = _NUMBER.match(data, at).end()  # type: ignore[union-attr]
    for sign, context in _IN_NUMBER:
        if data[end - 1 : end] == sign:
            # A minus may also be in the exponent.
            is_exponent = sign == b"-" and end - 1 > at
            raise _FaultError(end, "in exponent of numeric literal" if is_exponent else context)
    return end
