# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Kubernetes quantities and Go durations, exactly and in whole numbers; and counts as people read them.

The one reader of amounts: what Go says of a text that is none is in _kubelet/start/amount.py, which reads by this one.
Source: k8s.io/apimachinery/pkg/api/resource and time.ParseDuration.
"""

from __future__ import annotations

from .errors import InputError
from .startup import Pattern

# The power of ten of each suffix, and that of two.
DECIMAL_SUFFIXES = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
BINARY_SUFFIXES = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
# In nanoseconds.
DURATION_UNITS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}

_QUANTITY = Pattern(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([\s\S]*)")
_NUMBER = Pattern(r"([0-9]*)(?:\.([0-9]*))?")
_UNIT = Pattern(r"[^.0-9]+")
# Go counts nanoseconds in 64 bits, with a sign.
MAX_DURATION = 1 << 63

_QUANTITY_EXAMPLES = "write CPUs as 2, 0.5 or 500m, memory as 512Mi or 1Gi"

# More digits than any quantity needs, and few enough to be read at once.
MAX_DIGITS = 1000


class DurationError(InputError):
    """Go reads no duration in a text. `unit` is the one that Go does not have, "" for none, None for another reason."""

    def __init__(self, what: str, unit: str | None = None) -> None:
        super().__init__(what, remedy="write it as 10s, 1m30s or 500ms")
        self.unit = unit


def counted(number: object, noun: str) -> str:
    """Return `2 nodes`, `1 node`, `0.5 CPUs`, `2 processes`. number: as it is written."""
    end = "" if str(number) == "1" else "es" if noun.endswith("s") else "s"
    return "%s %s%s" % (number, noun, end)


def counted_are(number: int, noun: str) -> str:
    """Return `2 nodes are`, `1 node is`."""
    return "%s %s" % (counted(number, noun), "is" if number == 1 else "are")


def counted_cpus(milli: int) -> str:
    """Return `2 CPUs`, `1 CPU`, `0.5 CPUs`. milli: thousandths of a CPU."""
    return counted(("%.3f" % (milli / 1000)).rstrip("0").rstrip("."), "CPU")


def split_quantity(text: str) -> tuple[str, str, str, str]:
    """Return (sign, digits before the point, digits behind it, the rest) of any text; a quantity's rest is its
    suffix."""
    sign, whole, fraction, suffix = _QUANTITY.fullmatch(text).groups("")
    return sign, whole, fraction, suffix


def millis(quantity: object) -> int:
    """Return thousandths of a quantity such as "1500m", "2", 2.0, "1e0", rounded up as in Kubernetes. Raises
    InputError."""
    text = _text(quantity)
    sign, whole, fraction, suffix = split_quantity(text)
    if not whole + fraction:
        raise InputError("quantity %r: a number is missing" % text, remedy=_QUANTITY_EXAMPLES)
    if len(whole) + len(fraction) > MAX_DIGITS:
        raise InputError("quantity %r: has more than %d digits" % (text, MAX_DIGITS))
    digits = int(whole + fraction)
    if suffix in BINARY_SUFFIXES:
        scaled, power = digits << BINARY_SUFFIXES[suffix], 3 - len(fraction)
    else:
        scaled, power = digits, _decimal_power(text, suffix) + 3 - len(fraction)
    factor: int = 10 ** abs(power)
    amount = scaled * factor if power >= 0 else -(-scaled // factor)
    return -amount if sign == "-" else amount


def _decimal_power(text: str, suffix: str) -> int:
    if suffix in DECIMAL_SUFFIXES:
        return DECIMAL_SUFFIXES[suffix]
    exponent = suffix[1:]
    digits = exponent[1:] if exponent[:1] in ("+", "-") else exponent
    if suffix[:1] in ("e", "E") and digits.isascii() and digits.isdigit() and len(digits) <= 3:
        return int(exponent)
    raise InputError("quantity %r: unknown suffix %r" % (text, suffix), remedy=_QUANTITY_EXAMPLES)


def nanoseconds(duration: object) -> int:
    """Return the nanoseconds of a Go duration such as "10s", "1m30s", "100ms", "0", cut off to whole ones.

    Raises InputError, for a text a DurationError. Go has no durations beyond 2562047h47m16.854775807s.
    """
    text = duration if isinstance(duration, str) else _text(duration)
    is_negative = text[:1] == "-"
    at = 1 if text[:1] in ("+", "-") else 0
    if text[at:] == "0":
        return 0
    total = 0
    while True:
        number = _NUMBER.match(text, at)
        if not number or number.group() in ("", "."):
            raise DurationError("duration %r: a number is missing" % text)
        whole = _bounded(number.group(1))
        at = _UNIT.end(text, number.end())
        unit = text[number.end() : at]
        # Go reads from the left: it does not come to the unit of such a number.
        if unit not in DURATION_UNITS and whole <= MAX_DURATION:
            problem = "there is no unit %r" % unit if unit else "a unit is missing"
            raise DurationError("duration %r: %s" % (text, problem), unit)
        total += whole if whole > MAX_DURATION else _nanoseconds(whole, number.group(2) or "", DURATION_UNITS[unit])
        # Below zero there is room for one more.
        if total > MAX_DURATION or (total == MAX_DURATION and at == len(text) and not is_negative):
            raise DurationError("duration %r: it is longer than Go can count, 2562047h47m16.854775807s" % text)
        if at == len(text):
            return -total if is_negative else total


def _bounded(digits: str) -> int:
    """Return the number of these digits; one that is too large for a duration where that is so."""
    digits = digits.lstrip("0")
    return MAX_DURATION + 1 if len(digits) > len(str(MAX_DURATION)) else int(digits or "0")


def _nanoseconds(whole: int, fraction: str, unit: int) -> int:
    """Return one number of a duration. Go takes 18 or 19 digits of a fraction, and multiplies them as float64."""
    part, scale = 0, 1.0
    for digit in fraction:
        longer = part * 10 + int(digit)
        if part > (MAX_DURATION - 1) // 10 or longer > MAX_DURATION:
            break
        part, scale = longer, scale * 10
    return whole * unit + int(part * (unit / scale))


def _text(quantity: object) -> str:
    if isinstance(quantity, bool) or not isinstance(quantity, (str, int, float)):
        raise InputError("%r is not a quantity" % (quantity,), remedy="write it as 2, 0.5 or 500m")
    return quantity if isinstance(quantity, str) else repr(quantity)
