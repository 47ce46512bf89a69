# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._benchmark.result import (
    box,
    median_interval,
    quantile,
)

TIMES = st.lists(st.floats(1e-6, 1e3), min_size=1, max_size=60)


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [
        ([3.0], 0.99, 3.0),
        ([4.0, 1.0, 3.0, 2.0], 0.5, 2.5),
        ([1.0, 2.0, 3.0, 4.0, 5.0], 0.25, 2.0),
        ([0.0, 10.0], 0.99, 9.9),
    ],
)
def test_a_quantile_is_between_two_values(values: list[float], share: float, expected: float) -> None:
    assert quantile(values, share) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("number", "low", "high", "confidence"),
    [
        # Tables of the sign test have these numbers.
        (5, 1, 5, 0.9375),
        (6, 1, 6, 0.96875),
        (10, 2, 9, 0.978515625),
        (20, 6, 15, 0.958610534667969),
        (1, 1, 1, 0.0),
    ],
)
def test_an_interval_is_between_order_statistics(number: int, low: int, high: int, confidence: float) -> None:
    found = median_interval([float(value) for value in range(number, 0, -1)])
    assert (found.low, found.high) == (low, high)
    assert found.confidence == pytest.approx(confidence)


def test_the_confidence_is_how_often_the_interval_holds_the_median() -> None:
    """Each of 10 runs is below the true median or above it: of all 1024 ways, count those that the interval holds."""
    interval = median_interval([float(value) for value in range(10)])
    held = 0
    for ways in product((False, True), repeat=10):
        below = sum(ways)
        # The ranks of the interval's ends, from 0: the median is between them where neither all of these are above.
        held += interval.low < below <= interval.high
    assert held / 1024 == pytest.approx(interval.confidence)


@given(TIMES)
def test_an_interval_holds_its_median(values: list[float]) -> None:
    found = median_interval(values)
    assert min(values) <= found.low <= found.median <= found.high <= max(values)
    assert found.confidence >= 0.95 or len(values) < 6


@given(TIMES)
def test_a_box_is_in_order_and_keeps_all_values(values: list[float]) -> None:
    drawn = box(values, min(values))
    assert 1 <= drawn["low"] <= drawn["median"] <= drawn["high"]
    assert drawn["first"] <= drawn["median"] <= drawn["third"]
    assert (
        all(value < drawn["low"] or value > drawn["high"] for value in drawn["beyond"]) or drawn["low"] == drawn["high"]
    )
    assert len(drawn["beyond"]) < len(values)


def test_values_far_away_are_beyond_the_whiskers() -> None:
    drawn = box([1.0, 1.1, 1.2, 1.3, 9.0], 1.0)
    assert (drawn["high"], drawn["beyond"]) == (1.3, [9.0])
