# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""JSON values as Go meets them, and what it says of texts that are no duration, quantity or time.

Source: encoding/json (encode.go); time (format.go, ParseDuration); k8s.io/apimachinery/pkg/api/resource (quantity.go).
"""

from __future__ import annotations

import re
from typing import Any, Iterable

from ....golang import Number, Object
from ....quantity import DURATION_UNITS, MAX_DURATION

# --- JSON values ---------------------------------------------------------------------------------------


def is_object(value: object) -> bool:
    """Whether it is a JSON object: a dict, or an Object of a JSON text."""
    return isinstance(value, (dict, Object))


def pairs(value: Any) -> Iterable[tuple[str, Any]]:
    """The members of an object in the order in which Go meets them: YAML becomes JSON with sorted keys."""
    return value if isinstance(value, Object) else sorted(value.items())


def kind_of(value: object) -> str:
    """What Go calls a JSON value."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, (int, float, Number)):
        return "number"
    return "object" if is_object(value) else "array" if isinstance(value, list) else "string"


def number_text(number: object) -> str:
    """A number as JSON has it: as it is written there, or as Go writes it."""
    if not isinstance(number, float):
        return str(number)
    text = repr(number)
    if number and not 1e-6 <= abs(number) < 1e21:
        return text.replace("e-0", "e-")
    if "e" not in text:
        return text[:-2] if text.endswith(".0") else text
    from decimal import Decimal

    return format(Decimal(text), "f")


# --- durations ---------------------------------------------------------------------------------------------

_DIGITS = re.compile(r"[0-9]*")
_UNIT = re.compile(r"[^.0-9]*")
# Longer texts are cut off.
_MOST_SHOWN = 10000


def parse_duration(text: str) -> tuple[int, str]:
    """(nanoseconds, ""), or (0, what time.ParseDuration says)."""
    invalid = "time: invalid duration " + _duration_quote(text)
    is_negative = text[:1] == "-"
    at = 1 if text[:1] in ("-", "+") else 0
    if text[at:] == "0":
        return 0, ""
    total = 0
    while True:
        whole, at = _match(_DIGITS, text, at)
        number = _at_most(whole, MAX_DURATION)
        fraction = ""
        if number <= MAX_DURATION and text[at : at + 1] == ".":
            fraction, at = _match(_DIGITS, text, at + 1)
        if number > MAX_DURATION or not whole + fraction:
            return 0, invalid
        unit, at = _match(_UNIT, text, at)
        if unit not in DURATION_UNITS:
            what = "unknown unit %s" % _duration_quote(unit) if unit else "missing unit"
            return 0, "time: %s in duration %s" % (what, _duration_quote(text))
        total += number * DURATION_UNITS[unit] + _part(fraction, DURATION_UNITS[unit])
        if total > MAX_DURATION or (total == MAX_DURATION and at == len(text) and not is_negative):
            return 0, invalid
        if at == len(text):
            return -total if is_negative else total, ""


def _match(pattern: re.Pattern[str], text: str, at: int) -> tuple[str, int]:
    match = pattern.match(text, at)
    found = match.group() if match else ""
    return found, at + len(found)


def _at_most(digits: str, limit: int) -> int:
    """The number; of one far beyond the limit, one beyond it."""
    digits = digits.lstrip("0")
    return limit + 1 if len(digits) > len(str(limit)) else int(digits or "0")


def _part(fraction: str, unit: int) -> int:
    """The nanoseconds of a fraction: Go takes what fits 63 bits of its digits, and multiplies as float64."""
    part, scale = 0, 1.0
    for digit in fraction[:20]:
        longer = part * 10 + int(digit)
        if part > (MAX_DURATION - 1) // 10 or longer > MAX_DURATION:
            break
        part, scale = longer, scale * 10
    return int(part * (unit / scale))


def _duration_quote(text: str) -> str:
    """As the package time quotes: byte by byte."""
    quoted = []
    for character in text[:_MOST_SHOWN]:
        if " " <= character < "\x80":
            quoted.append("\\" + character if character in '"\\' else character)
        else:
            quoted += ["\\x%02x" % octet for octet in character.encode("utf-8", "replace")]
    return '"%s"' % "".join(quoted)


# --- quantities and times ------------------------------------------------------------------------------------

_NUMBER = re.compile(r"[+-]?([0-9]*)(?:\.([0-9]*))?")
_SUFFIX = re.compile(r"[eEinumkKMGTP]*[-+]?[0-9]*")
_EXPONENT = re.compile(r"[eE][-+]?([0-9]+)")
_SUFFIXES = frozenset(("", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"))
_WRONG_FORMAT = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
# What Go takes off from around a text, as far as it is left in JSON as it is.
SPACES = " \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"


def quantity_fault(text: str) -> str:
    """What resource.ParseQuantity says; empty for a quantity. Go takes one without digits for 0."""
    number = _NUMBER.match(text)
    suffix = text[number.end() if number else 0 :]
    if not text or not number or not _SUFFIX.fullmatch(suffix):
        return _WRONG_FORMAT
    exponent = _EXPONENT.fullmatch(suffix)
    if suffix not in _SUFFIXES and (not exponent or _at_most(exponent.group(1), MAX_DURATION) >= MAX_DURATION):
        return "unable to parse quantity's suffix"
    if suffix in ("Pi", "Ei") and not number.group(1) and not number.group(2):
        return "unable to parse numeric part of quantity"
    return ""


_TIME = re.compile(
    r"[0-9]{4}-([0-9]{2})-([0-9]{2})[Tt]([0-9]{1,2}):([0-9]{2}):([0-9]{2})(?:[.,][0-9]+)?(?:[Zz]|[-+][0-9]{2}:[0-9]{2})",
    re.ASCII,
)


def time_fault(text: str) -> str:
    """What time.Parse says of a text that is no time, up to the part that it stumbles over; empty for a time."""
    match = _TIME.fullmatch(text)
    if not match:
        return 'parsing time %s as "2006-01-02T15:04:05Z07:00": cannot parse ' % _duration_quote(text)
    names = ("month", "day", "hour", "minute", "second")
    limits = ((1, 12), (1, 31), (0, 23), (0, 59), (0, 59))
    for name, number, (first, last) in zip(names, match.groups(), limits):
        if not first <= int(number) <= last:
            return "parsing time %s: %s out of range" % (_duration_quote(text), name)
    return ""
