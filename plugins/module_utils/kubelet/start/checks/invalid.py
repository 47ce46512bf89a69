# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the kubelet's validation says of single fields: the forms that many of its refusals have.

Source: pkg/kubelet/apis/config/validation (validation.go).
"""

from __future__ import annotations

from typing import Iterator, NamedTuple, Sequence

from ....golang import quote
from ..finding import Finding, refused
from .field_values import FieldValues


class Range(NamedTuple):
    """What a number has to be. `allows_zero`: 0 is right beside it."""

    field: str
    flag: str
    least: int
    most: int
    text: str
    allows_zero: bool = False


NO_END = 2**63


def at_least_zero(field: str, flag: str) -> Range:
    """A number that is not negative."""
    return Range(field, flag, 0, NO_END, "must not be a negative number")


def between(field: str, flag: str, least: int, most: int, allows_zero: bool = False) -> Range:
    """A number of a range."""
    return Range(field, flag, least, most, "must be between %d and %d, inclusive" % (least, most), allows_zero)


def range_findings(fields: FieldValues, ranges: Sequence[Range]) -> Iterator[Finding]:
    """What is out of its range."""
    for limits in ranges:
        number = fields.number(limits.field)
        if limits.least <= number <= limits.most or (limits.allows_zero and not number):
            continue
        remedy = (
            "write %d or more" % limits.least
            if limits.most == NO_END
            else "write %d to %d" % (limits.least, limits.most)
        )
        text = "%s (--%s) %d %s" % (limits.field, limits.flag, number, limits.text)
        yield invalid(text, "the number is out of range", remedy, limits.field)


def invalid(text: str, cause: str, remedy: str, where: str) -> Finding:
    """A refusal of the validation."""
    return refused("invalid configuration: " + text, cause, remedy, where)


def gate_is_off(text: str, gate: str, where: str) -> Finding:
    """A refusal of a field whose feature gate is off."""
    remedy = "set featureGates.%s: true, or remove %s" % (gate, where)
    return invalid(text, "the gate %s is off" % gate, remedy, where)


def one_of(options: Sequence[str]) -> str:
    """Options as the kubelet lists them."""
    return "%s or %s" % (", ".join(map(quote, options[:-1])), quote(options[-1]))
