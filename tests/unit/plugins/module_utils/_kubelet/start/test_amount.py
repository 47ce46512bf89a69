# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from fractions import Fraction
from math import ceil
from time import perf_counter

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import GoError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.quantity import (
    BINARY_SUFFIXES,
    DECIMAL_SUFFIXES,
    millis,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.amount import (
    BINARY,
    Amount,
    duration_text,
    map_text,
)


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
        ("1.5Gi", 3 << 29, "{{0 0} {", "1536Mi"),
        ("100Mi", 100 << 20, "{{104857600 0} {<nil>}  BinarySI}", "100Mi"),
        ("0.5Ki", 512, "{{0 0} {", "512"),
        ("500M", 5 * 10**8, "{{500 6} {<nil>}  DecimalSI}", "500M"),
        ("1E", 10**18, "{{1 18} {<nil>}  DecimalSI}", "1E"),
        ("999E", 999 * 10**18, "{{999 18} {<nil>}  DecimalSI}", "999E"),
        ("1000E", 10**21, "{{1000 18} {<nil>}  DecimalSI}", "1"),  # there is no suffix for it
        ("1e21", 10**21, "{{1 21} {<nil>}  DecimalExponent}", "1e21"),
        ("-1.5Ki", -1536, "{{0 0} {", "-1536"),
        ("-2Ki", -2048, "{{-2048 0} {<nil>}  BinarySI}", "-2Ki"),
        # What is finer than a billionth, or than a byte, is rounded away from zero.
        ("1n", Fraction(1, 10**9), "{{1 -9} {<nil>}  DecimalSI}", "1n"),
        ("0.1n", Fraction(1, 10**9), "{{0 0} {", "1n"),
        ("-1.1n", Fraction(-2, 10**9), "{{0 0} {", "-2n"),
        ("0.0000000001e-2", Fraction(1, 10**9), "{{0 0} {", "1e-9"),
        # Below 1 a binary quantity becomes a decimal one; one that is no whole number is shown as if it were.
        ("0.0001Ki", Fraction(1024, 10**4), "{{0 0} {", "102400u"),
        ("1.0001Ki", Fraction(10241024, 10**4), "{{0 0} {", "1024102400u"),
        # Binary quantities end at 64 bits.
        ("7Ei", 7 << 60, "{{0 0} {", "7Ei"),
        ("8Ei", (1 << 63) - 1, "{{0 0} {", "9223372036854775807"),
        ("-9Ei", 1 - (1 << 63), "{{0 0} {", "-9223372036854775807"),
        ("9999999999999999999Ki", (1 << 63) - 1, "{{0 0} {", "9223372036854775807"),
        ("9999999999999999999", 10**19 - 1, "{{0 0} {", "9999999999999999999"),
        # Without digits.
        (".", 0, "{{0 0} {<nil>}  DecimalSI}", "0"),
        ("+", 0, "{{0 0} {<nil>}  DecimalSI}", "0"),
        ("Ki", 0, "{{0 0} {<nil>}  BinarySI}", "0"),
        # Exponents.
        ("1e-1000", Fraction(1, 10**9), "{{0 0} {", "1e-9"),
        ("-1e-99999", Fraction(-1, 10**9), "{{0 0} {", "-1e-9"),
        ("1e+0003", 1000, "{{1 3} {<nil>}  DecimalExponent}", "1e3"),
        ("0e99999", 0, "{{0 0} {<nil>}  DecimalExponent}", "0"),
        ("1e1000", 10**1000, "{{1 1000} {<nil>}  DecimalExponent}", "10e999"),
        ("1E2", 100, "{{1 2} {<nil>}  DecimalExponent}", "100"),
        ("%s5" % ("0" * 990), 5, "{{5 0} {<nil>}  DecimalSI}", "5"),
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
        ("1ki", "unable to parse quantity's suffix"),
        ("1MM", "unable to parse quantity's suffix"),
        ("Ei", "unable to parse numeric part of quantity"),
        ("9" * 5000, "a quantity of more than 1000 digits"),
        ("1e1001", "a quantity of more than 1000 digits"),
        ("1e999999999999999999", "a quantity of more than 1000 digits"),
    ],
)
def test_no_amounts(text: str, error: str) -> None:
    with pytest.raises(GoError, match=error):
        Amount.parse(text)


@pytest.mark.parametrize(
    ("left", "right", "total"),
    [
        ("0", "1Gi", "1Gi"),
        ("1Gi", "0", "1Gi"),
        ("1Gi", "1G", "2073741824"),  # in the format of the first
        ("1G", "24k", "1000024k"),
        ("1", "500m", "1500m"),
        ("0.5Ki", "500m", "512500m"),
        ("1Ki", "500m", "1024500m"),
        ("8Ei", "1", "8Ei"),
        ("1023Ei", "1", "8Ei"),
        ("4Ei", "4Ei", "8Ei"),
    ],
)
def test_sums(left: str, right: str, total: str) -> None:
    assert str(Amount.parse(left).plus(Amount.parse(right))) == total


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("1000E", "1000E"),  # Go prints 1
        ("12000000000000000000k", "12000000000000000000k"),
        ("1e21", "1e21"),
        ("9E", "9E"),
        ("500m", "500m"),
        ("8Ei", "9223372036854775807"),
    ],
)
def test_what_people_read(text: str, told: str) -> None:
    assert Amount.parse(text).for_people() == told


def test_a_sum_beyond_all_suffixes() -> None:
    """Go writes none."""
    total = Amount(0)
    for _term in range(128):
        total = total.plus(Amount(1 << 63, 0, BINARY))
    assert total.exact() == 1 << 70
    assert str(total) == "1"


@pytest.mark.parametrize(
    ("left", "right", "is_long"),
    [
        ("1", "1", False),
        ("1", "1.5Gi", True),
        ("1.5Gi", "0", True),
        ("0", "1.5Gi", True),
        ("0.0Gi", "1Gi", True),  # nothing, in a long way
        ("1Gi", "0.0Gi", True),
        ("9E", "224P", False),
        ("9E", "223372036854775807", False),
        ("9E", "223372036854775808", True),
        ("-9E", "-223372036854775808", False),
        ("-9E", "-223372036854775809", True),
        ("1E", "1n", True),
        ("9G", "1n", False),
        ("10G", "1n", True),
    ],
)
def test_long_sums(left: str, right: str, is_long: bool) -> None:
    total = Amount.parse(left).plus(Amount.parse(right))
    assert total.is_long == is_long
    assert total.exact() == Amount.parse(left).exact() + Amount.parse(right).exact()
    assert total.printed().startswith("{{0 0} {") == is_long


@pytest.mark.parametrize(
    ("text", "is_long"),
    [
        ("999999999999999999", False),
        ("1000000000000000000", True),
        ("0000000000000000001", False),
        ("0.00000000000000001", True),  # 18 digits, and finer than a billionth
        ("0.00000000000000001G", False),
        ("0.000000000000000001G", True),  # 19 digits
        ("999999999999999999E", False),
        ("99999999999Ki", False),
        ("999999999999Ki", True),
        ("99999999Mi", False),
        ("999999999Mi", True),
        ("99999Gi", False),
        ("999999Gi", True),
        ("99Ti", False),
        ("100Ti", True),
        ("1Pi", True),
        ("1Ei", True),
        ("1.Gi", False),
        ("1.0Gi", True),
        ("1n", False),
        ("1.0n", True),
    ],
)
def test_how_long_go_counts_in_64_bits(text: str, is_long: bool) -> None:
    assert Amount.parse(text).is_long == is_long


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("10Mi", 10 << 20),
        ("-5", -5),
        ("1e3", 1000),
        ("9E", 9 * 10**18),
        ("10E", None),
        ("1.0", None),
        ("1000m", None),
        ("1.5Gi", None),
        ("1Pi", None),
    ],
)
def test_numbers_in_64_bits(text: str, number: int | None) -> None:
    assert Amount.parse(text).in_64_bits() == number


@pytest.mark.parametrize(
    ("text", "thousandths"),
    [
        ("0", 0),
        ("2", 2000),
        ("1500m", 1500),
        ("1n", 1),
        ("1000001u", 1001),
        ("9223372036854775", 9223372036854775000),
        # Beyond 64 bits Go counts on from below.
        ("9223372036854776", -9223372036854775616),
        ("9999999999999999999", 1864712049423023128),
        ("9300G", 9300 * 10**12),
        ("10T", 10**16),
        ("9300000000000k", 9300000000000 * 10**6 - (1 << 64)),
        ("9300000000M", 9300000000 * 10**9 - (1 << 64)),
        # With so many powers of ten it gives up.
        ("9300000G", 0),
        ("1E", 0),
        ("10e18", 0),
        ("10000000000000000000", 10**22 % (1 << 64)),
    ],
)
def test_thousandths(text: str, thousandths: int) -> None:
    assert Amount.parse(text).millis() == thousandths


@given(st.integers(-(10**30), 10**30), st.sampled_from(["", "m", "k", "Ki", "Gi", "E", "e5"]))
def test_thousandths_fit_64_bits(number: int, suffix: str) -> None:
    amount = Amount.parse("%d%s" % (number, suffix))
    assert -(1 << 63) <= amount.millis() < 1 << 63
    if amount.is_long:
        assert (amount.millis() - ceil(amount.exact() * 1000)) % (1 << 64) == 0


@given(
    st.from_regex(r"[+]?([0-9]{1,20}[.]?|[0-9]{0,9}[.][0-9]{1,20})", fullmatch=True),
    st.sampled_from([*DECIMAL_SUFFIXES, *BINARY_SUFFIXES, "e2", "E-3", "e+1"]),
)
def test_thousandths_are_those_that_are_read_without_an_amount(number: str, suffix: str) -> None:
    """Most modules read a number of CPUs alone, without limits of Go and without a format."""
    expected = millis(number + suffix)
    # Where Go has room for them.
    assume(expected < 1 << 63)
    assert Amount.parse(number + suffix).millis() == expected


@given(st.text(alphabet="0123456789.+-eEinumkKMGTP _x", max_size=30))
def test_any_text_is_a_quantity_or_refused(text: str) -> None:
    try:
        amount = Amount.parse(text)
    except GoError:
        return
    assert str(amount)
    assert amount.printed().startswith("{{")
    assert -(1 << 63) <= amount.millis() < 1 << 63
    if amount.value:
        # How it is shown, it can be read again, but for what is coarser than all suffixes.
        assert abs(amount.exact()) >= 10**21 or Amount.parse(str(amount)).exact() == amount.exact()


def test_a_hostile_text_takes_no_time() -> None:
    started = perf_counter()
    for text in (
        "9" * 10**6,
        "1e" + "9" * 10**6,
        "1e-" + "0" * 10**6 + "1",
        "." * 10**6,
        "e" * 10**6,
        "1e999",
        "1e-999",
    ):
        try:
            amount = Amount.parse(text)
        except GoError:
            continue
        str(amount.plus(Amount.parse("1n")))
    assert perf_counter() - started < 5


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


@pytest.mark.parametrize(("text", "told"), [("1k", "1000"), ("4", "4"), ("1500m", "1500m")])
def test_an_amount_of_cpus_has_no_suffix_for_thousands(text: str, told: str) -> None:
    assert Amount.parse(text).of_cpus() == told
