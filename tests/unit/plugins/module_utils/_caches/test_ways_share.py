# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_caches/ways.py."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._caches.ways import (
    CacheShare,
    Fraction,
    check_ids,
    parse_shares,
    shown_shares,
)


@pytest.mark.parametrize(
    ("given_share", "shown"),
    [
        ("60%", "60%"),
        (" 60 % ", "60%"),
        (6, "6"),
        ("6", "6"),
        ("proportional", "proportional"),
        ({"all": "40%", "0": 8}, {"all": "40%", "0": "8"}),
        ({0: "1%"}, {"0": "1%"}),
        ({"00": 2}, {"0": "2"}),
    ],
)
def test_forms(given_share: Any, shown: Any) -> None:
    shares = parse_shares(given_share, "exclusive_share")
    assert shown_shares(shares) == shown
    assert parse_shares(shown_shares(shares), "exclusive_share") == shares


@pytest.mark.parametrize(
    ("given_share", "text"),
    [
        ("0%", "nothing would be set apart"),
        ("100%", "nothing would be left for others"),
        ("0", "nothing would be set apart"),
        ("-1", "is no share"),
        ("1.5", "is no share"),
        (1.5, "is no share"),
        (True, "is no share"),
        (None, "is no share"),
        ([], "is no share"),
        ("٣%", "is no share"),
        ({}, "names no cache"),
        ({"x": 1}, "is no id of a cache"),
        ({"0": 1, "00": 2}, "is there twice"),
        ({"0": "0%"}, "exclusive_share, 0: with 0%"),
    ],
)
def test_what_is_wanted_wrong(given_share: Any, text: str) -> None:
    with pytest.raises(InputError, match=text.replace("(", r"\(")):
        parse_shares(given_share, "exclusive_share")


def test_ids() -> None:
    shares = parse_shares({"0": 1, "5": 2}, "exclusive_share")
    check_ids(shares, [0, 5], "exclusive_share", "L3")
    with pytest.raises(InputError, match="has no L3 cache 5; it has 0, 1"):
        check_ids(shares, [0, 1], "exclusive_share", "L3")
    with pytest.raises(InputError, match='says nothing of the L3 caches 7; add "all"'):
        check_ids(shares, [0, 5, 7], "exclusive_share", "L3")


@given(st.integers(1, 99), st.integers(3, 64), st.integers(1, 2), st.integers(0, 64), st.integers(1, 64))
def test_a_part_is_rounded_and_within_its_bounds(percent: int, ways: int, least: int, some: int, of_all: int) -> None:
    room = ways - least
    found = CacheShare(percent=percent).of(ways, least, room, Fraction(0, 1))
    assert least <= found <= max(room, least)
    exact = ways * percent / 100
    assert found in (least, room) or abs(found - exact) <= 0.5
    proportional = CacheShare().of(ways, least, room, Fraction(min(some, of_all), of_all))
    assert least <= proportional <= max(room, least)
    assert CacheShare(ways=7).of(ways, least, room, Fraction(0, 1)) == 7
