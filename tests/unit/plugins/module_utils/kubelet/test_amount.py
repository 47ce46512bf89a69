# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from fractions import Fraction

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.kubelet.amount import (
    Amount,
    duration_text,
    map_text,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.golang import GoError


@pytest.mark.parametrize(
    ("text", "exact", "printed", "shown"),
    [
        ("0", 0, "{{0 0} {<nil>}  }", "0"),
        ("2", 2, "{{2 0} {<nil>}  DecimalSI}", "2"),
        ("1500m", Fraction(3, 2), "{{1500 -3} {<nil>}  DecimalSI}", "1500m"),
        ("0.5", Fraction(1, 2), "{{5 -1} {<nil>}  DecimalSI}", "500m"),
        (".5", Fraction(1, 2), "{{5 -1} {<nil>}  DecimalSI}", "500m"),
        ("+3.", 3, "{{3 0} {<nil>}  DecimalSI}", "3"),
        ("-1", -1, "{{-1 0} {<nil>}  DecimalSI}", "-1"),
        ("1000", 1000, "{{1000 0} {<nil>}  DecimalSI}", "1k"),
        ("12e3", 12000, "{{12 3} {<nil>}  DecimalExponent}", "12e3"),
        ("7e0", 7, "{{7 0} {<nil>}  DecimalExponent}", "7"),
        ("1Gi", 1 << 30, "{{1073741824 0} {<nil>}  BinarySI}", "1Gi"),
        ("1.5Gi", 3 << 29, "{{1610612736 0} {<nil>}  BinarySI}", "1536Mi"),
        ("100Mi", 100 << 20, "{{104857600 0} {<nil>}  BinarySI}", "100Mi"),
        ("0.5Ki", 512, "{{512 0} {<nil>}  BinarySI}", "512"),
        ("500M", 5 * 10**8, "{{500 6} {<nil>}  DecimalSI}", "500M"),
        ("1E", 10**18, "{{1 18} {<nil>}  DecimalSI}", "1E"),
        ("1000E", 10**21, "{{1000 18} {<nil>}  DecimalSI}", "1000E"),
        ("1e21", 10**21, "{{1 21} {<nil>}  DecimalExponent}", "1e21"),
        ("-1.5Ki", -1536, "{{-1536 0} {<nil>}  BinarySI}", "-1536"),
        ("-2Ki", -2048, "{{-2048 0} {<nil>}  BinarySI}", "-2Ki"),
        # What is finer than a billionth, or than a byte, is rounded away from zero.
        ("1n", Fraction(1, 10**9), "{{1 -9} {<nil>}  DecimalSI}", "1n"),
        ("0.1n", Fraction(1, 10**9), "{{1 -9} {<nil>}  DecimalSI}", "1n"),
        ("-1.1n", Fraction(-2, 10**9), "{{-2 -9} {<nil>}  DecimalSI}", "-2n"),
        ("0.0000000001e-2", Fraction(1, 10**9), "{{1 -9} {<nil>}  DecimalExponent}", "1e-9"),
        ("0.0001Ki", 1, "{{1 0} {<nil>}  BinarySI}", "1"),
    ],
)
def test_amounts(text: str, exact: Fraction, printed: str, shown: str) -> None:
    amount = Amount.parse(text)
    assert amount.exact() == exact
    assert amount.printed() == printed
    assert str(amount) == shown


@pytest.mark.parametrize(
    ("suffix", "factor"),
    [
        ("n", Fraction(1, 10**9)),
        ("u", Fraction(1, 10**6)),
        ("m", Fraction(1, 10**3)),
        ("", 1),
        ("k", 10**3),
        ("M", 10**6),
        ("G", 10**9),
        ("T", 10**12),
        ("P", 10**15),
        ("E", 10**18),
        ("Ki", 1 << 10),
        ("Mi", 1 << 20),
        ("Gi", 1 << 30),
        ("Ti", 1 << 40),
        ("Pi", 1 << 50),
        ("Ei", 1 << 60),
    ],
)
def test_suffixes(suffix: str, factor: Fraction) -> None:
    for number in (1, 7):
        amount = Amount.parse("%d%s" % (number, suffix))
        assert amount.exact() == number * factor
        assert str(amount) == "%d%s" % (number, suffix)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "quantities must match the regular expression"),
        (" 1", "quantities must match the regular expression"),
        ("1 Gi", "quantities must match the regular expression"),
        ("1Gb", "quantities must match the regular expression"),
        (".", "quantities must match the regular expression"),
        ("1ki", "unable to parse quantity's suffix"),
        ("1MM", "unable to parse quantity's suffix"),
        ("9" * 5000, "a quantity of more than 1000 digits"),
    ],
)
def test_no_amounts(text: str, error: str) -> None:
    with pytest.raises(GoError, match=error):
        Amount.parse(text)


@pytest.mark.parametrize(
    ("one", "other", "total"),
    [
        ("0", "1Gi", "1Gi"),
        ("1Gi", "0", "1Gi"),
        ("1Gi", "1G", "2073741824"),  # in the format of the first
        ("1G", "24k", "1000024k"),
        ("1", "500m", "1500m"),
        ("0.5Ki", "500m", "512500m"),
    ],
)
def test_sums(one: str, other: str, total: str) -> None:
    assert str(Amount.parse(one).plus(Amount.parse(other))) == total


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (0, "0s"),
        (1, "1ns"),
        (100_000, "100µs"),
        (1_500_000, "1.5ms"),
        (100_000_000, "100ms"),
        (1_000_000_000, "1s"),
        (1_500_000_000, "1.5s"),
        (90_000_000_000, "1m30s"),
        (3_600_000_000_000, "1h0m0s"),
        (-5_000_000, "-5ms"),
    ],
)
def test_durations(nanoseconds: int, text: str) -> None:
    assert duration_text(nanoseconds) == text


def test_maps() -> None:
    assert map_text({}) == "map[]"
    assert map_text({"b": "2", "a": "1"}) == "map[a:1 b:2]"
