# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Quantities, durations and maps as Go reads them and as the kubelet's messages show them.

How a quantity was written decides on its text. What their parts are is read in _base/quantity.py.
Source: k8s.io/apimachinery/pkg/api/resource (quantity.go, amount.go, suffix.go); Go's time and fmt.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Mapping, NamedTuple

from ..._base.errors import GoError
from ..._base.quantity import (
    BINARY_SUFFIXES,
    DECIMAL_SUFFIXES,
    MAX_DIGITS,
    MAX_DURATION,
    DurationError,
    nanoseconds,
    split_quantity,
)

if TYPE_CHECKING:
    # Imported where an amount has a fraction: every import costs time on every node.
    from fractions import Fraction

DECIMAL, BINARY, EXPONENT = "DecimalSI", "BinarySI", "DecimalExponent"

_USUAL = re.compile(r"[0-9]+(?:m|k|M|G|Ki|Mi|Gi)?")
_SUFFIX = re.compile(r"[eEinumkKMGTP]*[-+]?[0-9]*")
_EXPONENT = re.compile(r"[eE][-+]?([0-9]+)")
_WRONG_FORMAT = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
# Longer texts are cut off in what Go says of a duration.
_MOST_SHOWN = 10000
# By their power of ten, and by how often they are 1024.
_BY_POWER = {power: suffix for suffix, power in DECIMAL_SUFFIXES.items()}
_BY_STEP = ("", *BINARY_SUFFIXES)
# Of a number in 64 bits, as far as Go takes this way of reading; a binary suffix takes some of them.
_DIGITS, _BINARY_PREFIX_DIGITS = 18, 4
_MOST = 1 << 63
# From here on a number can be coarser than all suffixes.
_COARSE = 10 ** (max(_BY_POWER) + 3)
# What is finer is rounded away from zero.
_FINEST = min(_BY_POWER)
# How many powers of ten Go multiplies a number with in one step: what is beyond 64 bits is cut off.
_STEPS = (1, 2, 3, 6, 9)


class Amount(NamedTuple):
    """A quantity: value * 10**scale, and the format that it was written in.

    `is_long`: Go keeps it as a number of any length, and not in 64 bits.
    """

    value: int
    scale: int = 0
    format: str = ""
    is_long: bool = False

    @classmethod
    def parse(cls, text: str) -> Amount:
        """Read a quantity. Raises GoError, also where it has more digits than can be read at once."""
        if text == "0":
            return cls(0)
        fault = "" if _USUAL.fullmatch(text) else quantity_fault(text)
        if fault:
            raise GoError(fault)
        sign, whole, fraction, suffix = split_quantity(text)
        if len(whole) + len(fraction) > MAX_DIGITS:
            raise GoError("a quantity of more than %d digits" % MAX_DIGITS)
        number = int(whole + fraction or "0")
        # How many digits 64 bits have room for.
        room = _DIGITS - len(whole.lstrip("0") or "0") - len(fraction)
        if suffix in BINARY_SUFFIXES:
            step = _BY_STEP.index(suffix)
            room = -1 if fraction else room - _BINARY_PREFIX_DIGITS - 3 * step
            amount = cls(number << 10 * step, -len(fraction), BINARY, room < 0)._capped()
        else:
            form = DECIMAL if suffix in DECIMAL_SUFFIXES else EXPONENT
            power = DECIMAL_SUFFIXES[suffix] if suffix in DECIMAL_SUFFIXES else _exponent(suffix[1:], number)
            scale = power - len(fraction)
            amount = cls(number, scale, form, room < 0 or scale < _FINEST)._rounded()
        return amount._replace(value=-amount.value) if sign == "-" else amount

    def _rounded(self) -> Amount:
        if self.scale >= _FINEST:
            return self
        return self._replace(value=-(-self.value // 10 ** (_FINEST - self.scale)), scale=_FINEST)

    def _capped(self) -> Amount:
        """Return the amount within its limits: binary quantities end at 64 bits, and those below 1 are taken for
        decimal ones."""
        amount = self._rounded()
        if amount.exceeds(_MOST - 1):
            return self._replace(value=_MOST - 1, scale=0)
        is_whole = not amount.value or amount.value >= 10 ** max(-amount.scale, 0)
        return amount if is_whole else amount._replace(format=DECIMAL)

    def plus(self, addend: Amount) -> Amount:
        """Return the sum, as Go adds: nothing and something is in the format of the latter."""
        is_long = self.is_long or addend.is_long
        if not self.value or not addend.value:
            return (self if self.value else addend)._replace(is_long=is_long)
        scale = min(self.scale, addend.scale)
        value = self.value * 10 ** (self.scale - scale) + addend.value * 10 ** (addend.scale - scale)
        return Amount(value, scale, self.format, is_long or not -_MOST <= value < _MOST)

    def exact(self) -> Fraction:
        """Return its number."""
        from fractions import Fraction

        return Fraction(self.value) * Fraction(10) ** self.scale

    def exceeds(self, limit: int) -> bool:
        """Return whether it is more than a whole number."""
        return bool(self.value * 10 ** max(self.scale, 0) > limit * 10 ** max(-self.scale, 0))

    def in_64_bits(self) -> int | None:
        """Return the number as AsInt64 has it: None for a number with a fraction, even of zeros, and for one that is
        long."""
        if self.is_long or self.scale < 0:
            return None
        number = int(self.exact())
        return number if -_MOST <= number < _MOST else None

    def __str__(self) -> str:
        if not self.value:
            return "0"
        exact = self.exact()
        if self.format == BINARY and abs(exact) >= 1 << 10 and exact.denominator == 1:
            whole, steps = int(exact), 0
            while whole % 1024 == 0:
                whole, steps = whole // 1024, steps + 1
            # For what is coarser than all suffixes, Go writes none.
            return "%d%s" % (whole, _BY_STEP[steps] if steps < len(_BY_STEP) else "")
        value, scale = self.value, self.scale
        while value % 10 == 0:
            value, scale = value // 10, scale + 1
        value, scale = value * 10 ** (scale % 3), scale - scale % 3
        if self.format == EXPONENT:
            return "%de%d" % (value, scale) if scale else str(value)
        return "%d%s" % (value, _BY_POWER.get(scale, ""))

    def for_people(self) -> str:
        """Return the amount as text, right also where Go writes another: it has no suffix for what is coarser than
        all."""
        if self.format != DECIMAL or abs(self.exact()) < _COARSE:
            return str(self)
        return "%d%s" % (self.value, _BY_POWER.get(self.scale, "e%d" % self.scale))

    def of_cpus(self) -> str:
        """Return the amount as a number of CPUs: thousands of these have no suffix."""
        if self.format == DECIMAL and self.scale > 0 and abs(self.exact()) < _COARSE:
            return "%d" % int(self.exact())
        return self.for_people()

    def printed(self) -> str:
        """Return the struct as %v prints it: some messages show this."""
        if self.is_long:
            # A random address follows.
            return "{{0 0} {"
        return "{{%d %d} {<nil>}  %s}" % (self.value, self.scale, self.format)

    def millis(self) -> int:
        """Return its thousandths, rounded up, in the 64 bits that Go has for them."""
        scale = self.scale + 3
        thousandths: int = -(-self.value * 10 ** max(scale, 0) // 10 ** max(-scale, 0))
        wrapped = (thousandths + _MOST) % (2 * _MOST) - _MOST
        if wrapped != thousandths and not self.is_long and self.scale + 3 not in _STEPS:
            return 0
        return wrapped


def _exponent(digits: str, number: int) -> int:
    """Return the exponent of a number. Raises GoError."""
    sign, size = ("-", digits[1:]) if digits[0] == "-" else ("", digits.lstrip("+"))
    size = size.lstrip("0") or "0"
    is_large = len(size) > len(str(MAX_DIGITS)) or int(size) > MAX_DIGITS
    if is_large and number and not sign:
        raise GoError("a quantity of more than %d digits" % MAX_DIGITS)
    # Beyond this, all is rounded to the same.
    power = 2 * MAX_DIGITS + _DIGITS if is_large else int(size)
    return -power if sign else power if number else 0


def quantity_fault(text: str) -> str:
    """Return what resource.ParseQuantity says; empty for a quantity. Go takes one without digits for 0."""
    _sign, whole, fraction, suffix = split_quantity(text)
    if not text or not _SUFFIX.fullmatch(suffix):
        return _WRONG_FORMAT
    if suffix not in DECIMAL_SUFFIXES and suffix not in BINARY_SUFFIXES:
        exponent = _EXPONENT.fullmatch(suffix)
        digits = exponent.group(1).lstrip("0") if exponent else ""
        if exponent is None or len(digits) > len(str(MAX_DURATION)) or int(digits or "0") >= MAX_DURATION:
            return "unable to parse quantity's suffix"
    if suffix in ("Pi", "Ei") and not whole + fraction:
        return "unable to parse numeric part of quantity"
    return ""


def read_duration(text: str) -> int:
    """Return the nanoseconds of a duration. Raises GoError, with what time.ParseDuration says."""
    try:
        return nanoseconds(text)
    except DurationError as error:
        unit, shown = error.unit, quote_octets(text)
        if unit is None:
            raise GoError("time: invalid duration %s" % shown) from error
        if not unit:
            raise GoError("time: missing unit in duration %s" % shown) from error
        raise GoError("time: unknown unit %s in duration %s" % (quote_octets(unit), shown)) from error


def quote_octets(text: str) -> str:
    """Return a text as the package time quotes it: byte by byte."""
    quoted = []
    for character in text[:_MOST_SHOWN]:
        if " " <= character < "\x80":
            quoted.append("\\" + character if character in '"\\' else character)
        else:
            quoted += ["\\x%02x" % octet for octet in character.encode("utf-8", "replace")]
    return '"%s"' % "".join(quoted)


def duration_text(duration: int) -> str:
    """Return a duration, in nanoseconds, as Go prints it: 100ms, 1.5s, 1m30s."""
    sign, rest = ("-", -duration) if duration < 0 else ("", duration)
    for unit, size in (("ns", 1), ("µs", 10**3), ("ms", 10**6)):
        if 0 < rest < size * 1000:
            return "%s%s%s" % (sign, _decimal(rest, size), unit)
    minutes, rest = divmod(rest, 60 * 10**9)
    hours, minutes = divmod(minutes, 60)
    text = "%dh%dm" % (hours, minutes) if hours else "%dm" % minutes if minutes else ""
    return "%s%s%ss" % (sign, text, _decimal(rest, 10**9))


def _decimal(number: int, size: int) -> str:
    whole, rest = divmod(number, size)
    digits = str(size + rest)[1:].rstrip("0")
    return "%d.%s" % (whole, digits) if digits else str(whole)


def map_text(texts: Mapping[str, str]) -> str:
    """Return a map as Go prints it."""
    return "map[%s]" % " ".join("%s:%s" % item for item in sorted(texts.items()))
