# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import sys
from types import FrameType

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._cgroup.limits import (
    TICK,
    BandwidthLimit,
    Steady,
    predict_burst,
    predict_steady,
)
from ansible_collections.kubenode.cpu_manager.tests.support.numbers import examples

MS = 1000


def exact(quota: int, period: int) -> BandwidthLimit:
    """Return the limit on a kernel that notices everything at once and whose slices are next to nothing."""
    return BandwidthLimit(quota * MS, period * MS, slice_us=100, tick_us=0, kept_us=0)


def closed_latency(bandwidth: BandwidthLimit, work_us: int) -> int:
    """Return the latency of a burst of one thread that begins with a period: the upper bound for all phases. See
    model.py."""
    if bandwidth.quota_us is None or bandwidth.quota_us >= bandwidth.period_us:
        return work_us
    lost = max(0, -(-(work_us - bandwidth.burst_us) // bandwidth.quota_us) - 1)
    return work_us + lost * (bandwidth.period_us - bandwidth.quota_us) - (bandwidth.burst_us if lost else 0)


LIMITS = st.tuples(st.integers(1 * MS, 150 * MS), st.integers(1 * MS, 200 * MS)).map(
    lambda limit: BandwidthLimit(*limit)
)
WORK = st.integers(1, 200 * MS)
CPUS = st.integers(1, 8)


# The table of measured values: 70 ms of work with a quota of 20 ms is its best known row.
@pytest.mark.parametrize(
    ("quota", "period", "work", "minimum", "median", "maximum"),
    [
        (20, 100, 70, 230, 270, 310),
        (50, 100, 120, 170, 190, 220),
        (10, 100, 35, 215, 260, 305),
        (20, 50, 70, 130, 145, 160),
    ],
)
def test_closed_form_of_one_thread(quota: int, period: int, work: int, minimum: int, median: int, maximum: int) -> None:
    burst = predict_burst(exact(quota, period), 1, 1, work * MS)
    assert closed_latency(exact(quota, period), work * MS) == maximum * MS
    found = [value / MS for value in (burst.minimum_us, burst.median_us, burst.maximum_us)]
    assert found == pytest.approx([minimum, median, maximum], abs=0.02 * maximum)


def test_70_ms_of_work_with_a_quota_of_20_ms() -> None:
    burst = predict_burst(BandwidthLimit(20 * MS), 1, 1, 70 * MS)
    assert burst.unthrottled_us == 70 * MS
    assert 215 * MS < burst.minimum_us < 235 * MS
    assert 250 * MS < burst.median_us < 275 * MS
    assert 300 * MS < burst.maximum_us < 315 * MS
    assert burst.lost_periods == pytest.approx(2.8, abs=0.2)
    # Three of five periods, the two after it included, and sometimes two of five.
    assert burst.throttled_share == pytest.approx(0.56, abs=0.03)


def test_a_cgroup_that_has_used_its_quota_up_at_the_end_counts_as_throttled() -> None:
    burst = predict_burst(BandwidthLimit(20 * MS), 1, 1, 22 * MS)
    assert burst.median_us == 22 * MS
    assert burst.lost_periods < 0.5
    assert burst.throttled_share == pytest.approx(0.26, abs=0.03)


def test_no_quota_and_enough_quota() -> None:
    for bandwidth in (BandwidthLimit(None), BandwidthLimit(200 * MS), BandwidthLimit(20 * MS, 10 * MS)):
        burst = predict_burst(bandwidth, 4, 2, 100 * MS)
        assert (burst.minimum_us, burst.maximum_us, burst.throttled_share) == (50 * MS, 50 * MS, 0.0)
        assert predict_steady(bandwidth, 4, 2) == Steady(0.0, 0.0, 0)


def test_a_burst_that_was_saved_up() -> None:
    limited = predict_burst(BandwidthLimit(50 * MS), 1, 1, 90 * MS)
    assert limited.throttled_share > 0.2
    saved = predict_burst(BandwidthLimit(50 * MS, burst_us=50 * MS), 1, 1, 90 * MS)
    assert (saved.maximum_us, saved.lost_periods) == (90 * MS, 0.0)


def test_always_busy() -> None:
    assert predict_steady(BandwidthLimit(20 * MS), 1, 8) == Steady(1.0, 0.8, 80 * MS)
    assert predict_steady(BandwidthLimit(50 * MS), 8, 2) == Steady(1.0, 0.75, 75 * MS)
    # 96 threads want a slice of 5 ms each, and there are two in a period: the last one waits for 48 periods.
    assert predict_steady(BandwidthLimit(10 * MS), 96, 96).longest_wait_us == 4800 * MS


def test_a_long_burst_is_as_its_parts_are() -> None:
    """Beyond some periods, each is like the one before: what is skipped takes just as long."""
    short, long = (predict_burst(BandwidthLimit(20 * MS), 1, 1, work * MS) for work in (1010, 20010))
    assert long.median_us - short.median_us == 950 * 100 * MS
    assert long.lost_periods - short.lost_periods == pytest.approx(950)


@pytest.mark.parametrize(
    ("quota", "work", "cpus"),
    [(5, 200, 1), (20, 70, 1), (80, 200, 1), (100, 200, 2), (150, 200, 4), (20, 200_000, 1)],
)
def test_a_prediction_takes_few_calls(quota: int, work: int, cpus: int) -> None:
    """Calls and not milliseconds, as those depend on the machine: 7,000 calls take 3 to 6 ms. The times are in ms."""
    calls = 0

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        predict_burst(BandwidthLimit(quota * MS), cpus, cpus, work * MS)
    finally:
        sys.setprofile(before)
    assert 500 < calls < 10_000


@settings(max_examples=examples(40))
@given(LIMITS, CPUS, CPUS, WORK)
def test_laws_of_all_bursts(bandwidth: BandwidthLimit, threads: int, cpus: int, work: int) -> None:
    burst = predict_burst(bandwidth, threads, cpus, work)
    running = min(threads, cpus)
    assert burst.unthrottled_us == -(-work // running)
    assert burst.unthrottled_us <= burst.minimum_us <= burst.median_us <= burst.maximum_us
    assert 0 <= burst.throttled_share < 1
    assert burst.lost_periods >= 0
    assert predict_burst(bandwidth, threads, cpus, work) == burst
    if burst.lost_periods:
        assert burst.maximum_us > burst.unthrottled_us


@settings(max_examples=examples(40))
@given(LIMITS, WORK)
def test_closed_formula_is_the_upper_bound_of_one_thread(bandwidth: BandwidthLimit, work: int) -> None:
    at_once = bandwidth._replace(tick_us=0)
    assert predict_burst(at_once, 1, 1, work).maximum_us <= closed_latency(bandwidth, work)


@settings(max_examples=examples(40))
@given(LIMITS.filter(lambda bandwidth: bandwidth.period_us >= 2 * TICK), WORK)
@example(BandwidthLimit(10_029, 10_033), 145_984)
def test_ticks_cost_a_tick_of_work_and_a_period_at_most(bandwidth: BandwidthLimit, work: int) -> None:
    latest = closed_latency(bandwidth, work + TICK) + bandwidth.period_us
    assert predict_burst(bandwidth, 1, 1, work).maximum_us <= latest


def test_quota_is_lost_where_a_period_is_shorter_than_a_tick() -> None:
    # A thread that runs to the next tick draws one quota there, however many periods have passed.
    bandwidth = BandwidthLimit(1_001, 1_002)
    lost = [predict_burst(bandwidth, 1, 1, work).maximum_us - work for work in (20 * MS, 40 * MS, 80 * MS)]
    assert bandwidth.period_us < lost[0] < lost[1] < lost[2]
    assert predict_burst(bandwidth._replace(tick_us=0), 1, 1, 80 * MS).maximum_us < 80 * MS + bandwidth.period_us


@settings(max_examples=examples(40))
@given(LIMITS, WORK, st.integers(0, 100 * MS))
def test_more_quota_and_less_work_never_take_longer(bandwidth: BandwidthLimit, work: int, more: int) -> None:
    at_once = bandwidth._replace(tick_us=0, kept_us=0)
    quota = bandwidth.quota_us or 0
    assert closed_latency(at_once._replace(quota_us=quota + more), work) <= closed_latency(at_once, work)
    assert closed_latency(at_once, work) <= closed_latency(at_once, work + more)
    limited = predict_burst(at_once, 1, 1, work)
    # A slice that is held at the end of a period is not lost, and its size hangs on what is left of the pool.
    slack = bandwidth.slice_us
    assert predict_burst(at_once._replace(quota_us=quota + more), 1, 1, work).median_us <= limited.median_us + slack
    assert limited.median_us <= predict_burst(at_once, 1, 1, work + more).median_us + slack


@settings(max_examples=examples(40))
@given(LIMITS, CPUS, CPUS, st.integers(0, 100 * MS))
def test_laws_of_busy_threads(bandwidth: BandwidthLimit, threads: int, cpus: int, more: int) -> None:
    steady = predict_steady(bandwidth, threads, cpus)
    quota = bandwidth.quota_us or 0
    assert 0 <= steady.lost_share < 1
    assert (steady.throttled_share == 1) == (steady.lost_share > 0) == (steady.longest_wait_us > 0)
    bigger = predict_steady(bandwidth._replace(quota_us=quota + more), threads, cpus)
    assert bigger.lost_share <= steady.lost_share
    assert predict_steady(bandwidth, threads + 1, cpus).lost_share >= steady.lost_share
