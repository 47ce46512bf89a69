# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.answers import (
    check_date,
    duration_of,
    seconds_of,
    time_of,
)

# Of the years 1000 to 9999, which have four digits on every system.
seconds = st.integers(-30610224000, 253402300799)


def test_time() -> None:
    assert time_of(0) == "1970-01-01T00:00:00Z"
    assert time_of(1795446245.9) == "2026-11-23T15:04:05Z"
    assert seconds_of("2026-11-23T15:04:05Z") == 1795446245


@given(seconds)
def test_a_time_is_read_as_it_was_written(moment: int) -> None:
    assert seconds_of(time_of(moment)) == moment


@given(seconds, seconds)
def test_later_times_are_greater_texts(first: int, second: int) -> None:
    assert (time_of(first) < time_of(second)) == (first < second)


@pytest.mark.parametrize(
    "moment",
    [
        "",
        "2026-11-23",
        "2026-11-23T15:04:05",
        "2026-11-23T15:04:05+01:00",
        "2026-11-23 15:04:05Z",
        "2026-11-23T15:04:05Z ",
        " 2026-11-23T15:04:05Z",
        "2026-11-23T15:04:05z",
        "2026-1-2T3:4:5Z",
        "2026-11-31T15:04:05Z",  # no such day
        "2026-02-29T15:04:05Z",
        "2026-11-23T24:00:00Z",
        "0000-11-23T15:04:05Z",
        "\u0662\u0660\u0662\u0666-11-23T15:04:05Z",  # digits of another script
        "2026-11-23T15:04:05Z\n",
        "\x00",
        "\ud800",
        None,
        7,
        1795446245,
        [],
        {},
        b"2026-11-23T15:04:05Z",
    ],
)
def test_what_is_no_time(moment: Any) -> None:
    with pytest.raises(InputError, match=r" is not a time such as 2026-11-23T15:04:05Z\Z"):
        seconds_of(moment)


@given(st.one_of(st.text(), st.from_regex(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"), st.integers(), st.none()))
def test_anything_is_a_time_or_an_error(moment: Any) -> None:
    try:
        answer = seconds_of(moment)
    except InputError:
        return
    # A leap second is the first of the next minute.
    assert time_of(answer) == moment or moment[17:19] in ("60", "61")


# --- dates --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("date", ["2026-12-31", "2028-02-29", datetime.date(2026, 12, 31)])
def test_date(date: Any) -> None:
    assert check_date(date) == str(date)


@pytest.mark.parametrize(
    "date",
    [
        "",
        "2026-12-32",
        "2027-02-29",
        "2026-1-1",
        "31.12.2026",
        "never",
        "2026-12-31 ",
        "2026-12-31T00:00:00Z",
        None,
        20261231,
    ]
    + [datetime.datetime(2026, 12, 31, tzinfo=datetime.timezone.utc), ["2026-12-31"]],
)
def test_what_is_no_date(date: Any) -> None:
    with pytest.raises(InputError, match=r" is not a date such as 2026-12-31\Z"):
        check_date(date)


@given(st.dates())
def test_every_date(date: datetime.date) -> None:
    # Some systems write years below 1000 with fewer digits, and a waiver needs none.
    if date.year >= 1000:
        assert check_date(date) == check_date(date.isoformat()) == date.isoformat()


# --- durations ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "answer"),
    [("0s", 0), ("45s", 45), ("90m", 5400), ("24h", 86400), ("7d", 604800), ("2w", 1209600), ("1d12h", 129600)],
)
def test_duration(text: str, answer: int) -> None:
    assert duration_of(text) == answer


@pytest.mark.parametrize(
    "text",
    [
        "",
        "24",
        "h",
        "24 h",
        " 24h",
        "24h ",
        "24h\n",
        "-1h",
        "+1h",
        "1.5h",
        "24H",
        "1h30",
        "1y",
        "1h,2m",
        "٣h",
        "1" * 5000 + "h",
    ],
)
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(InputError, match="is not a duration; write one such as 24h, 90m or 7d"):
        duration_of(text)


@given(st.text())
def test_any_text_is_a_duration_or_an_error(text: str) -> None:
    try:
        assert duration_of(text) >= 0
    except InputError:
        assert not (text[:-1].isdigit() and text.isascii() and text[-1] in "smhdw")
