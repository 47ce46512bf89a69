# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The eviction thresholds of a kubelet: which it refuses, and how much memory the hard ones keep from pods.

Source: pkg/kubelet/eviction/helpers.go; Go's strconv.
"""

from __future__ import annotations

import re
from math import inf
from struct import pack, unpack
from typing import Callable, Iterator, Mapping, NamedTuple

from ....errors import GoError
from ....golang import quote
from .amount import BINARY, Amount

SOFT = "evictionSoft"
PERIOD, RECLAIM = "evictionSoftGracePeriod", "evictionMinimumReclaim"

# Since which minor version each is known.
SIGNALS: Mapping[str, int] = {
    "memory.available": 0,
    "allocatableMemory.available": 0,
    "nodefs.available": 0,
    "nodefs.inodesFree": 0,
    "imagefs.available": 0,
    "imagefs.inodesFree": 0,
    "containerfs.available": 29,
    "containerfs.inodesFree": 29,
    "pid.available": 0,
}

# These two switch a threshold off, and only as they are written here.
_OFF = ("0%", "100%")

_DECIMAL_NUMBER = re.compile(r"[+-]?(?:[0-9_]+(?:\.[0-9_]*)?|\.[0-9_]+)(?:[eE][+-]?[0-9][0-9_]*)?")
_HEX_NUMBER = re.compile(r"[+-]?0[xX][0-9a-fA-F_]*(?:\.[0-9a-fA-F_]*)?[pP][+-]?[0-9][0-9_]*")
_NO_NUMBER = re.compile(r"[+-]?(?:inf|infinity)|nan", re.IGNORECASE | re.ASCII)
# An underscore stands between two digits, or between the 0x and a digit.
_LOOSE_UNDERSCORE = re.compile(r"(?<![0-9])_|_(?![0-9])")
_LOOSE_HEX_UNDERSCORE = re.compile(r"(?<![0-9a-fA-FxX])_|_(?![0-9a-fA-F])")


class Fault(NamedTuple):
    """What the kubelet refuses of a field, with its words."""

    field: str
    signal: str
    text: str


class Share(NamedTuple):
    """A threshold as a share of what there is; of the accuracy of Go's float32."""

    value: float


def threshold_faults(field: str, thresholds: Mapping[str, str], minor: int) -> Iterator[Fault]:
    """What the kubelet 1.`minor` refuses of evictionHard or evictionSoft, in the order of the names."""
    return _faults(field, thresholds, minor, threshold)


def soft_faults(
    thresholds: Mapping[str, str], periods: Mapping[str, str], reclaims: Mapping[str, str], minor: int
) -> Iterator[Fault]:
    """What it refuses of evictionSoft, evictionSoftGracePeriod and evictionMinimumReclaim, in this order."""
    yield from threshold_faults(SOFT, thresholds, minor)
    yield from _faults(PERIOD, periods, minor, _check_period)
    yield from _faults(RECLAIM, reclaims, minor, _check_reclaim)
    for signal, text in sorted(thresholds.items()):
        if signal not in periods and text not in _OFF and _is_known(signal, minor):
            yield Fault(PERIOD, signal, "grace period must be specified for the soft eviction threshold %s" % signal)


def _faults(field: str, values: Mapping[str, str], minor: int, check: Callable[[str, str], object]) -> Iterator[Fault]:
    for signal, text in sorted(values.items()):
        try:
            if not _is_known(signal, minor):
                raise GoError("unsupported eviction signal %s" % signal)
            check(signal, text)
        except GoError as error:
            yield Fault(field, signal, str(error))


def threshold(signal: str, text: str) -> Amount | Share | None:
    """A threshold; None for one that is switched off. Raises GoError."""
    if text in _OFF:
        return None
    if not text.endswith("%"):
        amount = Amount.parse(text)
        if amount.value <= 0:
            raise GoError("eviction threshold %s must be positive: %s" % (signal, amount))
        return amount
    share = _share(text)
    if share < 0:
        raise GoError("eviction percentage threshold %s must be >= 0%%: %s" % (signal, text))
    if share > 1:
        raise GoError("eviction percentage threshold %s must be <= 100%%: %s" % (signal, text))
    return Share(share)


def kept_from_pods(signal: str, text: str | None, capacity: int | None) -> Amount | None:
    """What a hard threshold keeps from pods; None where it is not known. Raises GoError."""
    found = None if text is None else threshold(signal, text)
    if found is None:
        return Amount(0)
    if isinstance(found, Amount):
        return found
    if capacity is None:
        return None
    # A share that is no number keeps nothing from anybody.
    return Amount(int(capacity * found.value) if found.value == found.value else 0, 0, BINARY)


def _is_known(signal: str, minor: int) -> bool:
    return SIGNALS.get(signal, minor + 1) <= minor


def _check_period(_signal: str, text: str) -> None:
    from ..loading.go_values import parse_duration

    period, fault = parse_duration(text)
    if fault:
        raise GoError(fault)
    if period < 0:
        raise GoError("invalid eviction grace period specified: %s, must be a positive value" % text)


def _check_reclaim(signal: str, text: str) -> None:
    if not text.endswith("%"):
        if Amount.parse(text).value < 0:
            raise GoError("negative eviction minimum reclaim specified for %s" % signal)
    elif _share(text) <= 0:
        raise GoError("eviction percentage minimum reclaim %s must be positive: %s" % (signal, text))


def _share(text: str) -> float:
    return _float32(_float32(_parsed(text.rstrip("%"))) / 100)


def _parsed(text: str) -> float:
    """A number as Go's ParseFloat(text, 32) reads it. Raises GoError."""
    if _NO_NUMBER.fullmatch(text):
        return float(text)
    plain, number = text.replace("_", ""), None
    try:
        if _DECIMAL_NUMBER.fullmatch(text) and not _LOOSE_UNDERSCORE.search(text):
            number = float(plain)
        elif _HEX_NUMBER.fullmatch(text) and not _LOOSE_HEX_UNDERSCORE.search(text):
            number = float.fromhex(plain)
    except OverflowError:
        number = inf
    except ValueError:
        pass  # there are no digits
    if number is None:
        raise GoError("strconv.ParseFloat: parsing %s: invalid syntax" % quote(text))
    if abs(_float32(number)) == inf:
        raise GoError("strconv.ParseFloat: parsing %s: value out of range" % quote(text))
    return number


def _float32(number: float) -> float:
    try:
        rounded: float = unpack("<f", pack("<f", number))[0]
    except OverflowError:
        return inf if number > 0 else -inf
    return rounded
