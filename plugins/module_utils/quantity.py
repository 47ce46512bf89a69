# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Kubernetes quantities and Go durations, exactly and in whole numbers.

Source: k8s.io/apimachinery/pkg/api/resource and time.ParseDuration.
"""

from __future__ import annotations

from .errors import InputError

_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DURATION = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}

_EXAMPLES = {"quantity": "write CPUs as 2, 0.5 or 500m", "duration": "write it as 10s, 1m30s or 500ms"}

# More digits than any quantity of CPUs or seconds needs; the API server caps them too.
_MAX_DIGITS = 30


def millis(quantity: object) -> int:
    """Thousandths of a quantity such as "1500m", "2", 2.0, "1e0", rounded up as in Kubernetes. Raises InputError."""
    text = _text(quantity)
    sign, whole, fraction, suffix = _number(text, "quantity")
    digits = int((whole + fraction) or "0")
    if suffix in _BINARY:
        scaled, power = digits << _BINARY[suffix], 3 - len(fraction)
    else:
        scaled, power = digits, _decimal_power(text, suffix) + 3 - len(fraction)
    factor: int = 10 ** abs(power)
    return sign * (scaled * factor if power >= 0 else -(-scaled // factor))


def _decimal_power(text: str, suffix: str) -> int:
    if suffix in _DECIMAL:
        return _DECIMAL[suffix]
    exponent = suffix[1:]
    digits = exponent[1:] if exponent[:1] in ("+", "-") else exponent
    if suffix[:1] in ("e", "E") and digits.isascii() and digits.isdigit() and len(digits) <= 2:
        return int(exponent)
    raise InputError("quantity %r: unknown suffix %r; %s" % (text, suffix, _EXAMPLES["quantity"]))


def nanoseconds(duration: object) -> int:
    """The nanoseconds of a Go duration such as "10s", "1m30s", "100ms", "0". Raises InputError."""
    text = duration if isinstance(duration, str) else _text(duration)
    sign, rest = (-1, text[1:]) if text[:1] == "-" else (1, text[1:] if text[:1] == "+" else text)
    if rest == "0":
        return 0
    total = 0
    while True:
        _sign, whole, fraction, rest = _number(rest, "duration", text, signed=False)
        unit = next((unit for unit in sorted(_DURATION, key=len, reverse=True) if rest.startswith(unit)), None)
        if unit is None:
            raise InputError("duration %r: a unit is missing; %s" % (text, _EXAMPLES["duration"]))
        parts: int = 10 ** len(fraction)
        total += int(whole or "0") * _DURATION[unit] + int(fraction or "0") * _DURATION[unit] // parts
        rest = rest[len(unit) :]
        if not rest:
            return sign * total


def _number(text: str, what: str, whole_text: str | None = None, signed: bool = True) -> tuple[int, str, str, str]:
    """Split a number off the start: (sign, digits before the point, digits after it, the rest)."""
    shown = text if whole_text is None else whole_text
    sign, at = 1, 0
    if signed and text[:1] in ("+", "-"):
        sign, at = (-1 if text[0] == "-" else 1), 1
    start = at
    while at < len(text) and text[at] in "0123456789":
        at += 1
    whole, fraction = text[start:at], ""
    if text[at : at + 1] == ".":
        start = at + 1
        at = start
        while at < len(text) and text[at] in "0123456789":
            at += 1
        fraction = text[start:at]
    if not whole and not fraction:
        raise InputError("%s %r: a number is missing; %s" % (what, shown, _EXAMPLES[what]))
    if len(whole) + len(fraction) > _MAX_DIGITS:
        raise InputError("%s %r: has more than %d digits" % (what, shown, _MAX_DIGITS))
    return sign, whole, fraction, text[at:]


def _text(quantity: object) -> str:
    if isinstance(quantity, bool) or not isinstance(quantity, (str, int, float)):
        raise InputError("%r is not a quantity; write it as 2, 0.5 or 500m" % (quantity,))
    return quantity if isinstance(quantity, str) else repr(quantity)
