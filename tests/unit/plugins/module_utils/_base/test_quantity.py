# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_base/quantity.py."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.quantity import (
    counted,
    counted_are,
    counted_cpus,
    millis,
    nanoseconds,
)

QUANTITIES = [
    # whole CPUs
    ("0", 0),
    ("2", 2000),
    ("+2", 2000),
    ("007", 7000),  # leading zeros are no octal
    # fractions
    ("0.5", 500),
    (".5", 500),
    ("1.", 1000),
    ("1.250", 1250),
    # suffixes
    ("500m", 500),
    ("1500m", 1500),
    ("1.5m", 2),  # rounded up
    ("2500u", 3),
    ("1u", 1),  # however little
    ("0." + "0" * 200 + "1", 1),
    ("9" * 31, int("9" * 31) * 1000),
    ("1n", 1),
    ("1000000n", 1),
    ("1k", 10**6),
    ("1M", 10**9),
    ("1G", 10**12),
    ("1T", 10**15),
    ("1P", 10**18),
    ("1E", 10**21),
    ("1Ki", 1024 * 1000),
    ("0.5Ki", 512 * 1000),
    ("1Mi", 2**20 * 1000),
    ("1Gi", 2**30 * 1000),
    ("1Ti", 2**40 * 1000),
    ("1Pi", 2**50 * 1000),
    ("1Ei", 2**60 * 1000),
    ("0.0001Ki", 103),  # 102.4
    # exponents
    ("1e0", 1000),
    ("2e1", 20000),
    ("2E1", 20000),
    ("1.5e+1", 15000),
    ("5e-1", 500),
    ("1e-9", 1),
    ("1e99", 10**102),
    ("1e100", 10**103),
    ("2e003", 2 * 10**6),
    ("1e-200", 1),
    # below zero: rounded away from it, as Kubernetes does
    ("-1", -1000),
    ("-500m", -500),
    ("-1.5m", -2),
    # as YAML reads it
    (2, 2000),
    (0, 0),
    (0.5, 500),
    (2.0, 2000),
    (0.1, 100),
    (1e-05, 1),
    (1e22, 10**25),
]


@pytest.mark.parametrize(("quantity", "thousandths"), QUANTITIES)
def test_millis(quantity: object, thousandths: int) -> None:
    assert millis(quantity) == thousandths


BAD_QUANTITIES = [
    # no number
    ("", "quantity '': a number is missing; write CPUs as 2, 0.5 or 500m, memory as 512Mi or 1Gi"),
    (".", "quantity '.': a number is missing; write CPUs as 2, 0.5 or 500m, memory as 512Mi or 1Gi"),
    ("-", "quantity '-': a number is missing; write CPUs as 2, 0.5 or 500m, memory as 512Mi or 1Gi"),
    ("m", "quantity 'm': a number is missing; write CPUs as 2, 0.5 or 500m, memory as 512Mi or 1Gi"),
    ("two", "quantity 'two': a number is missing; write CPUs as 2, 0.5 or 500m, memory as 512Mi or 1Gi"),
    ("--1", "quantity '--1': a number is missing; write CPUs as 2, 0.5 or 500m, memory as 512Mi or 1Gi"),
    (" 1", "quantity ' 1': a number is missing; write CPUs as 2, 0.5 or 500m, memory as 512Mi or 1Gi"),
    (
        "\u0663",
        "quantity '\u0663': a number is missing; write CPUs as 2, 0.5 or 500m, memory as 512Mi or 1Gi",
    ),  # a digit elsewhere, not here
    (float("inf"), "quantity 'inf': a number is missing; write CPUs as 2, 0.5 or 500m, memory as 512Mi or 1Gi"),
    (float("nan"), "quantity 'nan': a number is missing; write CPUs as 2, 0.5 or 500m, memory as 512Mi or 1Gi"),
    # no suffix
    ("1 ", "quantity '1 ': unknown suffix ' '; write CPUs as 2, 0.5 or 500m, memory as 512Mi or 1Gi"),
    ("1cpu", "quantity '1cpu': unknown suffix 'cpu'; write CPUs as 2, 0.5 or 500m, memory as 512Mi or 1Gi"),
    ("1K", "quantity '1K': unknown suffix 'K'; write CPUs as 2, 0.5 or 500m, memory as 512Mi or 1Gi"),
    ("1mi", "quantity '1mi': unknown suffix 'mi'; write CPUs as 2, 0.5 or 500m, memory as 512Mi or 1Gi"),
    ("1.2.3", "quantity '1.2.3': unknown suffix '.3'; write CPUs as 2, 0.5 or 500m, memory as 512Mi or 1Gi"),
    ("0x10", "quantity '0x10': unknown suffix 'x10'; write CPUs as 2, 0.5 or 500m, memory as 512Mi or 1Gi"),
    ("1_0", "quantity '1_0': unknown suffix '_0'; write CPUs as 2, 0.5 or 500m, memory as 512Mi or 1Gi"),
    # no exponent
    ("1e", "quantity '1e': unknown suffix 'e'; write CPUs as 2, 0.5 or 500m, memory as 512Mi or 1Gi"),
    ("1e+", "quantity '1e+': unknown suffix 'e+'; write CPUs as 2, 0.5 or 500m, memory as 512Mi or 1Gi"),
    ("1e1m", "quantity '1e1m': unknown suffix 'e1m'; write CPUs as 2, 0.5 or 500m, memory as 512Mi or 1Gi"),
    ("1e1000", "quantity '1e1000': unknown suffix 'e1000'; write CPUs as 2, 0.5 or 500m, memory as 512Mi or 1Gi"),
    ("1e\u00b2", "quantity '1e\u00b2': unknown suffix 'e\u00b2'; write CPUs as 2, 0.5 or 500m, memory as 512Mi or 1Gi"),
    # too many digits
    ("1" * 1001, "quantity '%s': has more than 1000 digits" % ("1" * 1001)),
    ("0." + "1" * 1000, "quantity '0.%s': has more than 1000 digits" % ("1" * 1000)),
    # no text
    (None, "None is not a quantity; write it as 2, 0.5 or 500m"),
    (True, "True is not a quantity; write it as 2, 0.5 or 500m"),
    ([1], "[1] is not a quantity; write it as 2, 0.5 or 500m"),
    ((1, 2), "(1, 2) is not a quantity; write it as 2, 0.5 or 500m"),
]


@pytest.mark.parametrize(("quantity", "message"), BAD_QUANTITIES)
def test_bad_quantity(quantity: object, message: str) -> None:
    with pytest.raises(InputError) as caught:
        millis(quantity)
    assert str(caught.value).startswith(message)


SCALES = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "": Fraction(1),
    "k": Fraction(1000),
}


@given(st.integers(0, 10**9), st.integers(0, 9), st.sampled_from(list(SCALES)), st.sampled_from(["", "-"]))
def test_millis_is_exact_and_rounds_away_from_zero(digits: int, places: int, suffix: str, sign: str) -> None:
    text = ("%0*d" % (places + 1, digits))[: -places or None]
    text += "." + ("%0*d" % (places + 1, digits))[-places:] if places else ""
    exact = Fraction(digits, 10**places) * SCALES[suffix] * 1000
    assert millis(sign + text + suffix) == (-1 if sign else 1) * -(-exact.numerator // exact.denominator)


@given(st.integers(-(10**12), 10**12))
def test_a_number_means_what_its_text_means(number: int) -> None:
    assert millis(number) == millis(str(number)) == millis("%dm" % (1000 * number)) == 1000 * number


@given(st.text("0123456789.+-eEmkKi \u00b2\u0663", max_size=8))
def test_any_text_is_a_quantity_or_an_input_error(text: str) -> None:
    try:
        found = millis(text)
    except InputError:
        return
    assert isinstance(found, int)


DURATIONS = [
    ("0", 0),
    ("+0", 0),
    ("-0", 0),
    ("0s", 0),
    ("1ns", 1),
    ("1us", 10**3),
    ("1\u00b5s", 10**3),  # the micro sign
    ("1\u03bcs", 10**3),  # the Greek letter
    ("1ms", 10**6),
    ("10s", 10 * 10**9),
    ("10000ms", 10 * 10**9),
    ("1m", 60 * 10**9),
    ("1h", 3600 * 10**9),
    ("1m30s", 90 * 10**9),
    ("1h0m0.5s", 36005 * 10**8),
    ("0.5s", 5 * 10**8),
    (".5s", 5 * 10**8),
    ("1.s", 10**9),
    ("1.5h", 5400 * 10**9),
    ("0.3ns", 0),  # cut off
    ("-1.5s", -15 * 10**8),
    ("+2s", 2 * 10**9),
    ("1s1s", 2 * 10**9),
    ("1s1h", 3601 * 10**9),  # in any order
    ("00010s", 10 * 10**9),
    ("0" * 40 + "1s", 10**9),
    ("0" * 5000 + "1s", 10**9),
    # As far as Go counts; below zero there is one more.
    ("2562047h47m16.854775807s", 2**63 - 1),
    ("-2562047h47m16.854775808s", -(2**63)),
    ("9223372036854775807ns", 2**63 - 1),
    ("-9223372036854775808ns", -(2**63)),
    ("-9223372036854775807ns1ns", -(2**63)),
    # A fraction is multiplied as a float64, and of its digits no more are read than fit into 63 bits.
    ("1.999999999999999999s", 2 * 10**9),
    ("0.9999999999999999999999h", 3600 * 10**9),
    ("0.3333333333333333333h", 1200 * 10**9),
    ("0.100000000000000000000h", 360 * 10**9),
    ("0.%ss" % ("0" * 5000), 0),
    (0, 0),
]


@pytest.mark.parametrize(("duration", "expected"), DURATIONS)
def test_nanoseconds(duration: object, expected: int) -> None:
    assert nanoseconds(duration) == expected


BAD_DURATIONS = [
    ("", "duration '': a number is missing; write it as 10s, 1m30s or 500ms"),
    ("s", "duration 's': a number is missing; write it as 10s, 1m30s or 500ms"),
    (".s", "duration '.s': a number is missing; write it as 10s, 1m30s or 500ms"),
    ("-", "duration '-': a number is missing; write it as 10s, 1m30s or 500ms"),
    ("--1s", "duration '--1s': a number is missing; write it as 10s, 1m30s or 500ms"),
    ("10", "duration '10': a unit is missing; write it as 10s, 1m30s or 500ms"),
    ("1m30", "duration '1m30': a unit is missing; write it as 10s, 1m30s or 500ms"),
    ("00", "duration '00': a unit is missing; write it as 10s, 1m30s or 500ms"),
    ("1 s", "duration '1 s': there is no unit ' s'; write it as 10s, 1m30s or 500ms"),
    ("1s ", "duration '1s ': there is no unit 's '; write it as 10s, 1m30s or 500ms"),
    ("1d", "duration '1d': there is no unit 'd'; write it as 10s, 1m30s or 500ms"),
    ("1S", "duration '1S': there is no unit 'S'; write it as 10s, 1m30s or 500ms"),
    ("1ss", "duration '1ss': there is no unit 'ss'; write it as 10s, 1m30s or 500ms"),
    ("1e3s", "duration '1e3s': there is no unit 'e'; write it as 10s, 1m30s or 500ms"),
    ("0x1s", "duration '0x1s': there is no unit 'x'; write it as 10s, 1m30s or 500ms"),
    ("1h-1m", "duration '1h-1m': there is no unit 'h-'; write it as 10s, 1m30s or 500ms"),
    ("1.5.5s", "duration '1.5.5s': a unit is missing; write it as 10s, 1m30s or 500ms"),
    ("\uff11s", "duration '\uff11s': a number is missing; write it as 10s, 1m30s or 500ms"),
    ("-00", "duration '-00': a unit is missing; write it as 10s, 1m30s or 500ms"),
    # Go's durations end at 2**63 nanoseconds.
    ("9999999h", "duration '9999999h': it is longer than Go can count, 2562047h47m16.854775807s; write it as 10s"),
    ("2562048h", "duration '2562048h': it is longer than Go can count"),
    ("9223372036854775808ns", "duration '9223372036854775808ns': it is longer than Go can count"),
    ("2562047h47m16.854775808s", "duration '2562047h47m16.854775808s': it is longer than Go can count"),
    ("-9223372036854775809ns", "duration '-9223372036854775809ns': it is longer than Go can count"),
    ("9223372036854775808ns1ns", "duration '9223372036854775808ns1ns': it is longer than Go can count"),
    ("1" * 5000 + "s", "duration '%ss': it is longer than Go can count" % ("1" * 5000)),
    (10, "duration '10': a unit is missing; write it as 10s, 1m30s or 500ms"),
    (None, "None is not a quantity; write it as 2, 0.5 or 500m"),
    (False, "False is not a quantity; write it as 2, 0.5 or 500m"),
]


@pytest.mark.parametrize(("duration", "message"), BAD_DURATIONS)
def test_bad_duration(duration: object, message: str) -> None:
    with pytest.raises(InputError) as caught:
        nanoseconds(duration)
    assert str(caught.value).startswith(message)


@given(st.integers(0, 1000), st.integers(0, 59), st.integers(0, 59), st.integers(0, 999))
def test_parts_of_a_duration_add_up(hours: int, minutes: int, seconds: int, thousandths: int) -> None:
    total = ((hours * 60 + minutes) * 60 + seconds) * 1000 + thousandths
    for text in (
        "%dh%dm%ds%dms" % (hours, minutes, seconds, thousandths),
        "%dh%dm%d.%03ds" % (hours, minutes, seconds, thousandths),
        "%dms" % total,
    ):
        assert nanoseconds(text) == total * 10**6
        assert nanoseconds("-" + text) == -total * 10**6


@pytest.mark.parametrize(
    ("number", "noun", "text"),
    [
        (0, "CPU", "0 CPUs"),
        (1, "CPU", "1 CPU"),
        (2, "process", "2 processes"),
        (1, "process", "1 process"),
        ("1", "NUMA node", "1 NUMA node"),
        ("0.5", "CPU", "0.5 CPUs"),
        ("500m", "CPU", "500m CPUs"),
    ],
)
def test_counted(number: object, noun: str, text: str) -> None:
    assert counted(number, noun) == text


def test_counted_with_its_verb() -> None:
    assert (counted_are(1, "way"), counted_are(2, "process")) == ("1 way is", "2 processes are")


@pytest.mark.parametrize(
    ("milli", "text"), [(0, "0 CPUs"), (1000, "1 CPU"), (1500, "1.5 CPUs"), (40000, "40 CPUs"), (1, "0.001 CPUs")]
)
def test_counted_cpus(milli: int, text: str) -> None:
    assert counted_cpus(milli) == text
