# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from math import isnan
from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import GoError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.configuration import (
    EVICTION_HARD,
    HARD,
    MEMORY_AVAILABLE,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.amount import Amount
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.reservations import (
    PERIOD,
    RECLAIM,
    SIGNALS,
    SOFT,
    EvictionFault,
    EvictionShare,
    kept_from_pods,
    soft_faults,
    threshold,
    threshold_faults,
)

M = MEMORY_AVAILABLE
NO_QUANTITY = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


def no_number(text: str) -> str:
    return 'strconv.ParseFloat: parsing "%s": invalid syntax' % text


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("0%", None),
        ("100%", None),
        ("100Mi", Amount.parse("100Mi")),
        ("1Ki", Amount.parse("1Ki")),
        ("+5", Amount.parse("5")),
        ("5", Amount.parse("5")),
        ("500m", Amount.parse("500m")),
        ("50%", EvictionShare(0.5)),
        # Only these two texts switch it off.
        ("100.0%", EvictionShare(1)),
        ("0.0%", EvictionShare(0)),
        ("00%", EvictionShare(0)),
        ("-0%", EvictionShare(0)),
        ("+25%", EvictionShare(0.25)),
        ("50%%", EvictionShare(0.5)),
        ("100%%", EvictionShare(1)),
        ("5e1%", EvictionShare(0.5)),
        ("2.5E+1%", EvictionShare(0.25)),
        ("50.%", EvictionShare(0.5)),
        (".5e2%", EvictionShare(0.5)),
        ("5_0%", EvictionShare(0.5)),
        ("2_5.0_0e0_0%", EvictionShare(0.25)),
        ("1e-400%", EvictionShare(0)),
        ("0x1p5%", EvictionShare(0.3199999928474426)),
        ("0X_3_2P0%", EvictionShare(0.5)),
        ("0x.8p0%", EvictionShare(0.004999999888241291)),
        ("0x1.8p-9999999999%", EvictionShare(0)),
        # As Go's float32 has it.
        ("5%", EvictionShare(0.05000000074505806)),
        ("10%", EvictionShare(0.10000000149011612)),
        ("5.5%", EvictionShare(0.054999999701976776)),
        ("%s5%%" % ("0" * 10000), EvictionShare(0.05000000074505806)),
        ("0.%s1%%" % ("0" * 10000), EvictionShare(0)),
    ],
)
def test_thresholds(text: str, found: Amount | EvictionShare | None) -> None:
    assert threshold(M, text) == found


def test_a_share_that_is_no_number_is_taken() -> None:
    for text in ("nan%", "NaN%", "NAN%"):
        share = threshold(M, text)
        assert isinstance(share, EvictionShare)
        assert isnan(share.value)
        assert kept_from_pods(M, text, 1000) == Amount(0, 0, "BinarySI")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", NO_QUANTITY),
        ("abc", NO_QUANTITY),
        ("5 %", no_number("5 ")),
        (" 5%", no_number(" 5")),
        ("5% ", NO_QUANTITY),
        ("%", no_number("")),
        ("%%", no_number("")),
        (".%", no_number(".")),
        ("+%", no_number("+")),
        ("e5%", no_number("e5")),
        ("5e%", no_number("5e")),
        ("5e+%", no_number("5e+")),
        ("1.2.3%", no_number("1.2.3")),
        ("--5%", no_number("--5")),
        ("5,5%", no_number("5,5")),
        ("_5%", no_number("_5")),
        ("5_%", no_number("5_")),
        ("5__0%", no_number("5__0")),
        ("5_.0%", no_number("5_.0")),
        ("5._0%", no_number("5._0")),
        ("5_e1%", no_number("5_e1")),
        ("5e1_%", no_number("5e1_")),
        ("5e_1%", no_number("5e_1")),
        ("_%", no_number("_")),
        ("0x%", no_number("0x")),
        ("0x5%", no_number("0x5")),  # it lacks its exponent
        ("0xp1%", no_number("0xp1")),
        ("0x.p1%", no_number("0x.p1")),
        ("0x_p1%", no_number("0x_p1")),
        ("0x1_p1%", no_number("0x1_p1")),
        ("0_x1p1%", no_number("0_x1p1")),
        ("0x1p1_%", no_number("0x1p1_")),
        ("0x1pa%", no_number("0x1pa")),
        ("0b1%", no_number("0b1")),
        ("+nan%", no_number("+nan")),
        ("infi%", no_number("infi")),
        ("\u0131nf%", no_number("\u0131nf")),  # a letter that is an i without its dot
        ("\uff15%", no_number("\uff15")),
        ("\u0665%", no_number("\u0665")),
        ('"%', 'strconv.ParseFloat: parsing "\\"": invalid syntax'),
        ("1e39%", 'strconv.ParseFloat: parsing "1e39": value out of range'),
        ("-1e39%", 'strconv.ParseFloat: parsing "-1e39": value out of range'),
        ("3.4028236e38%", 'strconv.ParseFloat: parsing "3.4028236e38": value out of range'),
        ("1e9999999%", 'strconv.ParseFloat: parsing "1e9999999": value out of range'),
        ("0x1p128%", 'strconv.ParseFloat: parsing "0x1p128": value out of range'),
        ("-0x1p99999999%", 'strconv.ParseFloat: parsing "-0x1p99999999": value out of range'),
        ("101%", "eviction percentage threshold memory.available must be <= 100%: 101%"),
        ("1e3%", "eviction percentage threshold memory.available must be <= 100%: 1e3%"),
        ("100.00001%", "eviction percentage threshold memory.available must be <= 100%: 100.00001%"),
        ("inf%", "eviction percentage threshold memory.available must be <= 100%: inf%"),
        ("+Infinity%", "eviction percentage threshold memory.available must be <= 100%: +Infinity%"),
        ("-1%", "eviction percentage threshold memory.available must be >= 0%: -1%"),
        ("-1%%", "eviction percentage threshold memory.available must be >= 0%: -1%%"),
        ("-inf%", "eviction percentage threshold memory.available must be >= 0%: -inf%"),
        ("0", "eviction threshold memory.available must be positive: 0"),
        ("0Mi", "eviction threshold memory.available must be positive: 0"),
        ("-5", "eviction threshold memory.available must be positive: -5"),
        ("-100Mi", "eviction threshold memory.available must be positive: -100Mi"),
        ("-1024Mi", "eviction threshold memory.available must be positive: -1Gi"),
        ("Mi", "eviction threshold memory.available must be positive: 0"),
        ("1ki", "unable to parse quantity's suffix"),
    ],
)
def test_no_thresholds(text: str, fault: str) -> None:
    with pytest.raises(GoError) as error:
        threshold(M, text)
    assert str(error.value) == fault


def test_just_above_all_is_all() -> None:
    """A float32 has no number between 100 and 100.00000763."""
    assert threshold(M, "100.000001%") == EvictionShare(1)


@pytest.mark.parametrize(
    ("text", "capacity", "kept"),
    [
        (None, 1000, "0"),
        ("0%", 1000, "0"),
        ("100%", 1000, "0"),
        ("0%", None, "0"),
        ("100Mi", None, "100Mi"),
        ("100Mi", 1, "100Mi"),
        ("500m", 1, "500m"),
        ("25%", 16 << 30, "4Gi"),
        # What is shown of a machine of 24684096 KiB.
        ("5%", 25276514304, "1263825734"),
        ("50%", 25276514304, "12342048Ki"),
        ("100.0%", 1000, "1k"),
        ("-0%", 1000, "0"),
        ("5%", 0, "0"),
        ("5%", None, None),
    ],
)
def test_what_is_kept_from_pods(text: str | None, capacity: int | None, kept: str | None) -> None:
    amount = kept_from_pods(M, text, capacity)
    assert (None if amount is None else str(amount)) == kept


def test_what_is_kept_of_a_threshold_that_is_refused() -> None:
    with pytest.raises(GoError, match="must be positive: -5"):
        kept_from_pods(M, "-5", 1000)


def test_signals() -> None:
    for signal, since in SIGNALS.items():
        assert list(threshold_faults(HARD, {signal: "5%"}, 36)) == []
        assert list(threshold_faults(HARD, {signal: "5%"}, since)) == []
    for minor, is_known in ((28, False), (29, True)):
        for signal in ("containerfs.available", "containerfs.inodesFree"):
            text = "unsupported eviction signal " + signal
            found = [EvictionFault(HARD, signal, text)] * (not is_known)
            assert list(threshold_faults(HARD, {signal: "5%"}, minor)) == found
            assert list(soft_faults({signal: "5%"}, {signal: "1m"}, {}, minor))[:1] == [
                fault._replace(field=SOFT) for fault in found
            ]


@pytest.mark.parametrize(
    "signal", ["memory.avail", "Memory.available", "nodefs.inodesfree", "swap.available", "", "a\nb"]
)
def test_signals_that_there_are_not(signal: str) -> None:
    text = "unsupported eviction signal " + signal
    # The signal is looked at before its value.
    for value in ("5%", "abc", ""):
        assert list(threshold_faults(HARD, {signal: value}, 36)) == [EvictionFault(HARD, signal, text)]
        assert list(soft_faults({}, {signal: value}, {}, 36)) == [EvictionFault(PERIOD, signal, text)]
        assert list(soft_faults({}, {}, {signal: value}, 36)) == [EvictionFault(RECLAIM, signal, text)]
        # That it lacks a period is not told of it.
        assert list(soft_faults({signal: value}, {}, {}, 36)) == [EvictionFault(SOFT, signal, text)]


def test_the_defaults_are_no_faults() -> None:
    assert list(threshold_faults(HARD, EVICTION_HARD, 20)) == []
    assert set(EVICTION_HARD) < set(SIGNALS)


def test_all_faults_are_told() -> None:
    thresholds = {"pid.available": "-1%", "nodefs.available": "5%", M: "0", "imagefs.available": "x"}
    assert list(threshold_faults(HARD, thresholds, 36)) == [
        EvictionFault(HARD, "imagefs.available", NO_QUANTITY),
        EvictionFault(HARD, M, "eviction threshold memory.available must be positive: 0"),
        EvictionFault(HARD, "pid.available", "eviction percentage threshold pid.available must be >= 0%: -1%"),
    ]


NO_PERIOD = "grace period must be specified for the soft eviction threshold memory.available"


@pytest.mark.parametrize(
    ("thresholds", "periods", "reclaims", "found"),
    [
        ({}, {}, {}, []),
        ({M: "5%"}, {M: "1m"}, {}, []),
        ({M: "200Mi"}, {M: "1m30s", "pid.available": "0"}, {M: "0", "pid.available": "5%"}, []),
        ({M: "5%"}, {M: "0s"}, {M: "100Mi"}, []),
        ({M: "5%"}, {M: "+1h"}, {M: "100%"}, []),
        ({M: "5%"}, {M: "1m"}, {M: "nan%"}, []),
        ({}, {M: "1m"}, {}, []),
        # A threshold that is switched off needs no period.
        ({M: "0%"}, {}, {}, []),
        ({M: "100%"}, {}, {}, []),
        ({M: "100.0%"}, {}, {}, [(PERIOD, NO_PERIOD)]),
        ({M: "5%"}, {}, {}, [(PERIOD, NO_PERIOD)]),
        ({M: "5%"}, {"pid.available": "1m"}, {}, [(PERIOD, NO_PERIOD)]),
        ({M: "abc"}, {M: "1m"}, {}, [(SOFT, NO_QUANTITY)]),
        ({M: "abc"}, {}, {}, [(SOFT, NO_QUANTITY), (PERIOD, NO_PERIOD)]),
        ({M: "5%"}, {M: ""}, {}, [(PERIOD, 'time: invalid duration ""')]),
        ({M: "5%"}, {M: "5"}, {}, [(PERIOD, 'time: missing unit in duration "5"')]),
        ({M: "5%"}, {M: "1d"}, {}, [(PERIOD, 'time: unknown unit "d" in duration "1d"')]),
        ({M: "5%"}, {M: "9999999999h"}, {}, [(PERIOD, 'time: invalid duration "9999999999h"')]),
        (
            {M: "5%"},
            {M: "-1m"},
            {},
            [(PERIOD, "invalid eviction grace period specified: -1m, must be a positive value")],
        ),
        ({}, {}, {M: "-0"}, []),
        ({}, {}, {M: "-1"}, [(RECLAIM, "negative eviction minimum reclaim specified for memory.available")]),
        ({}, {}, {M: "abc"}, [(RECLAIM, NO_QUANTITY)]),
        ({}, {}, {M: "x%"}, [(RECLAIM, no_number("x"))]),
        (
            {},
            {},
            {M: "0%"},
            [(RECLAIM, "eviction percentage minimum reclaim memory.available must be positive: 0%")],
        ),
        (
            {},
            {},
            {M: "-5%"},
            [(RECLAIM, "eviction percentage minimum reclaim memory.available must be positive: -5%")],
        ),
        ({}, {}, {M: "500%"}, []),
        # In this order.
        (
            {M: "0"},
            {M: "-1s"},
            {M: "-1"},
            [
                (SOFT, "eviction threshold memory.available must be positive: 0"),
                (PERIOD, "invalid eviction grace period specified: -1s, must be a positive value"),
                (RECLAIM, "negative eviction minimum reclaim specified for memory.available"),
            ],
        ),
    ],
)
def test_soft_eviction(
    thresholds: dict[str, str], periods: dict[str, str], reclaims: dict[str, str], found: list[tuple[str, str]]
) -> None:
    faults = list(soft_faults(thresholds, periods, reclaims, 36))
    assert faults == [EvictionFault(field, M, text) for field, text in found]


NUMBERS = st.text(alphabet="0123456789_.+-eEpPxXinfatyNKMG ", max_size=20)


@given(st.text() | NUMBERS | NUMBERS.map("{}%".format), st.none() | st.integers(0, 1 << 62))
def test_any_text_is_a_threshold_or_refused(text: str, capacity: int | None) -> None:
    try:
        found = threshold(M, text)
    except GoError:
        with pytest.raises(GoError):
            kept_from_pods(M, text, capacity)
        return
    kept = kept_from_pods(M, text, capacity)
    if isinstance(found, EvictionShare):
        assert isnan(found.value) or 0 <= found.value <= 1
        assert (kept is None) == (capacity is None)
        assert kept is None or capacity is None or 0 <= kept.exact() <= capacity + (1 << 10)
    else:
        assert kept == (found or Amount(0))


@given(st.floats(0, 100, width=32))
def test_a_share_as_python_writes_it(number: float) -> None:
    found = threshold(M, "%r%%" % number)
    assert isinstance(found, EvictionShare)
    assert found.value == pytest.approx(number / 100, rel=1e-6, abs=1e-44)


def test_a_hostile_text_takes_no_time() -> None:
    started = perf_counter()
    for text in ("9", "_", "9_", "0x", "0x1_", "e9", ".", "-", "inf", "%"):
        for end in ("%", "x%", "e1%", "p1%", ""):
            for fault in threshold_faults(HARD, {M: text * 10_000 + end}, 36):
                assert fault.text
    assert perf_counter() - started < 5
