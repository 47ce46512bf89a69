# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the text of a configuration is made of: values and where they stand, and what a plain scalar stands for.

Source: sigs.k8s.io/yaml (goyaml.v2: resolve.go).
"""

from __future__ import annotations

from typing import Any, Mapping, NamedTuple, Sequence

from .._base.startup import Pattern

# What a member of a configuration can be, beside plain data.


class _Remove:
    __slots__ = ()

    def __repr__(self) -> str:
        return "REMOVE"


# In place of a value: the key goes.
REMOVE = _Remove()


def value_at(values: object, path: Sequence[str]) -> Any:
    """Return what is at a path of keys; None where there is nothing, or no mapping on the way."""
    for key in path:
        values = values.get(key) if isinstance(values, Mapping) else None
    return values


def same(left: Any, right: Any) -> bool:
    """Return True when two values are equal and of the same types: 1, 1.0 and True differ."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(value, right[key]) for key, value in left.items())
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


# How a value is written: the collections, the scalars, and nothing at all (C(key:), a null).
BLOCK, FLOW = "block", "flow"
PLAIN, SINGLE, DOUBLE, LITERAL = "plain", "single-quoted", "double-quoted", "literal"
EMPTY = "empty"
# An alias; and nothing behind a key that has no colon either, as in C({a, b}).
ALIAS, ALONE = "alias", "alone"


class ReadError(ValueError):
    """The text cannot be read. `is_broken`: the kubelet refuses it, too; else only this reader does.

    `text` is what the kubelet says of it, empty where that cannot be determined for sure.
    """

    def __init__(self, what: str, is_broken: bool = False, text: str = "") -> None:
        super().__init__(what)
        self.is_broken = is_broken
        self.text = text


class YAMLError(ReadError):
    """The text is broken, or uses what this reader refuses. `line` and `column` count from 1."""

    def __init__(self, line: int, column: int, what: str, is_broken: bool = False, text: str = "") -> None:
        super().__init__("line %d, column %d: %s" % (line, column, what), is_broken, text)
        self.line = line
        self.column = column


class Duplicate(NamedTuple):
    """A key that its mapping has already. `text` is what a strict reader says of it; `line` counts from 1."""

    line: int
    text: str


class TextNode(NamedTuple):
    """One value, written as text[start:end]; neither the comment behind it nor its last line break belongs to it.

    An EMPTY node starts and ends behind its key's colon. Only mappings have members, in the order of the text;
    what their merge key gives is in the value only. A node with an anchor starts behind that.
    """

    value: Any
    start: int
    end: int
    style: str
    members: dict[str, TextMember]
    # The merge key, '<<'.
    merge: TextMember | None = None
    # All of the text, in its order. Only the root has them.
    duplicates: tuple[Duplicate, ...] = ()


class TextMember(NamedTuple):
    """One key of a mapping: where the key starts, the offset behind its colon, and its value."""

    start: int
    colon: int
    node: TextNode
    # Whether the mapping has the key above, too.
    is_twice: bool = False


class Anchor(NamedTuple):
    """A value with a name: its '&' is at `start`, the name ends at `name_end` and the value at `end`."""

    start: int
    name_end: int
    end: int
    # Where the '*' are that stand for the value.
    aliases: list[int]


WORDS = {
    **dict.fromkeys(("y", "Y", "true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **{sign + word: float(sign + "inf") for word in (".inf", ".Inf", ".INF") for sign in ("", "+", "-")},
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}
_FLOAT = Pattern(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_INTEGER = Pattern(r"([-+]?)(?:(0[xX][0-9a-fA-F]+)|(0[bB][01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))")
# Go's integers end here.
LARGE = 1 << 63
_MAX_DIGITS = 400


def resolve(text: str) -> Any:
    """Return what a plain scalar stands for. Raises OverflowError for a number that not all kubelets read alike."""
    if text in WORDS:
        return WORDS[text]
    if text[0] not in "+-.0123456789":
        return text
    # A leading point ends Go's search for underscores.
    plain = text.replace("_", "") if text[0] != "." else text
    if plain[:2] == "0b" and plain[2:3] in ("-", "+") and plain[3:].strip("01") == "" and 3 < len(plain) < 66:
        return int(plain.replace("0b", "", 1), 2)
    integer = _INTEGER.fullmatch(plain)
    is_float = _FLOAT.fullmatch(plain)
    if integer and len(plain) < _MAX_DIGITS:
        sign, hexadecimal, binary, octal, decimal = integer.groups()
        base = 16 if hexadecimal else 2 if binary else 8 if octal else 10
        number = int(sign + (hexadecimal or binary or octal or decimal), base)
        if -LARGE <= number < (2 * LARGE if not sign else LARGE):
            return number
        if not sign and not is_float:
            raise OverflowError(text)
    if is_float:
        value = float(plain)
        if abs(value) != float("inf"):
            return value
        if plain.isdigit():
            raise OverflowError(text)
    elif integer and not integer.group(1):
        raise OverflowError(text)
    return text


def as_json(value: object) -> Any:
    """Return the value that JSON has: a number without a fraction is an integer."""
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < LARGE else value
