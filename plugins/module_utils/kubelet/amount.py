# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Quantities, durations and maps as the kubelet's messages show them.

How a quantity was written decides on its text.
Source: k8s.io/apimachinery/pkg/api/resource (quantity.go, amount.go, suffix.go); Go's time and fmt.
"""

from __future__ import annotations

import re
from fractions import Fraction
from math import ceil
from typing import Mapping, NamedTuple

from ..quantity import MAX_DIGITS
from ..state.golang import GoError

DECIMAL, BINARY, EXPONENT = "DecimalSI", "BinarySI", "DecimalExponent"

_QUANTITY = re.compile(r"([+-]?)(?=\.?[0-9])([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)")
_EXPONENT = re.compile("[eE]([-+]?[0-9]{1,3})")
_BINARY_SUFFIXES = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL_SUFFIXES = {-9: "n", -6: "u", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E"}
_POWERS = {suffix: power for power, suffix in _DECIMAL_SUFFIXES.items()}
# Kubernetes rounds what is finer away from zero, and has no suffix for what is coarser.
_FINEST, _COARSEST = min(_DECIMAL_SUFFIXES), max(_DECIMAL_SUFFIXES)


class Amount(NamedTuple):
    """A quantity: value * 10**scale, and the format that it was written in."""

    value: int
    scale: int = 0
    format: str = ""

    @classmethod
    def parse(cls, text: str) -> Amount:
        """Read a quantity. Raises GoError."""
        if text == "0":
            return cls(0)
        match = _QUANTITY.fullmatch(text)
        if not match:
            raise GoError("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")
        sign, whole, fraction, suffix = match.group(1), match.group(2), match.group(3) or "", match.group(4)
        if len(whole) + len(fraction) > MAX_DIGITS:
            raise GoError("a quantity of more than %d digits" % MAX_DIGITS)
        value, scale = int(whole + fraction), -len(fraction)
        exponent = _EXPONENT.fullmatch(suffix)
        if suffix in _POWERS:
            scale, finest, form = scale + _POWERS[suffix], _FINEST, DECIMAL
        elif suffix in _BINARY_SUFFIXES:
            value, finest, form = value << 10 * _BINARY_SUFFIXES.index(suffix), 0, BINARY
        elif exponent:
            scale, finest, form = scale + int(exponent.group(1)), _FINEST, EXPONENT
        else:
            raise GoError("unable to parse quantity's suffix")
        if scale < finest:
            value, scale = ceil(Fraction(value, 10 ** (finest - scale))), finest
        return cls(-value if sign == "-" else value, scale, form)

    def plus(self, other: Amount) -> Amount:
        """The sum, as Go adds: nothing and something is in the format of the latter."""
        if not self.value:
            return other
        if not other.value:
            return self
        scale = min(self.scale, other.scale)
        value = self.value * 10 ** (self.scale - scale) + other.value * 10 ** (other.scale - scale)
        return Amount(value, scale, self.format)

    def exact(self) -> Fraction:
        """Its number."""
        return Fraction(self.value) * Fraction(10) ** self.scale

    def __str__(self) -> str:
        if not self.value:
            return "0"
        whole = ceil(self.exact())
        if self.format == BINARY and abs(self.exact()) >= 1 << 10:
            steps = 0
            while whole % 1024 == 0 and steps < len(_BINARY_SUFFIXES) - 1:
                whole, steps = whole // 1024, steps + 1
            return "%d%s" % (whole, _BINARY_SUFFIXES[steps])
        value, scale = self.value, self.scale
        while value % 10 == 0 and (self.format == EXPONENT or scale < _COARSEST):
            value, scale = value // 10, scale + 1
        value, scale = value * 10 ** (scale % 3), scale - scale % 3
        if self.format == EXPONENT:
            return "%de%d" % (value, scale) if scale else str(value)
        return "%d%s" % (value, _DECIMAL_SUFFIXES[scale])

    def printed(self) -> str:
        """The struct as %v prints it: some messages show this."""
        return "{{%d %d} {<nil>}  %s}" % (self.value, self.scale, self.format)


def duration_text(nanoseconds: int) -> str:
    """A duration as Go prints it: 100ms, 1.5s, 1m30s."""
    sign, rest = ("-", -nanoseconds) if nanoseconds < 0 else ("", nanoseconds)
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
    """A map as Go prints it."""
    return "map[%s]" % " ".join("%s:%s" % item for item in sorted(texts.items()))
