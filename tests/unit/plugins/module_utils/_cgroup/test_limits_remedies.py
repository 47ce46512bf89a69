# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._cgroup.limits import (
    Burst,
    Limited,
    predict_container,
    quota,
    read_bursts,
)
from ansible_collections.kubenode.cpu_manager.tests.support.numbers import examples


def predict(milli: int, threads: int = 1, cpus: int = 8, work: int | None = None) -> dict[str, Any]:
    return predict_container(Limited(milli, 100_000, cpus, threads, None if work is None else work * 1000))


def remedies(row: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {remedy["remedy"]: remedy for remedy in row["remedies"]}


def test_quota_of_a_limit() -> None:
    assert [quota(milli, 100_000) for milli in (1, 10, 11, 200, 1500)] == [1000, 1000, 1100, 20_000, 150_000]
    assert quota(200, 10_000) == 2000


def test_a_burst_and_its_remedies() -> None:
    row = predict(200, work=70)
    assert (row["quota_us"], row["period_us"], row["usable_cpus"], row["work_ms"]) == (20_000, 100_000, 8, 70.0)
    assert row["latency_ms"]["unthrottled"] == 70
    assert row["latency_ms"]["maximum"] > 300
    assert row["throttled_share"] == round(row["throttled_share"], 3) > 0
    found = remedies(row)
    # A shorter period is none: with 2 ms in each 10 ms, the burst would take 350 ms.
    assert list(found) == ["whole-cpus", "limit", "burst"]
    assert found["whole-cpus"]["latency_ms"]["maximum"] == 70
    # The smallest limit: with a step less, the burst is throttled.
    enough = int(found["limit"]["change"].split()[3][:-1])
    assert found["limit"]["throttled_share"] == 0
    assert predict(enough - 20, work=70)["throttled_share"] > 0
    # The kernel takes no burst above the quota, and that is too little here.
    assert found["burst"]["change"].startswith("20000 in cpu.max.burst")
    assert found["burst"]["throttled_share"] > 0
    assert 70 < found["burst"]["latency_ms"]["maximum"] < row["latency_ms"]["maximum"]


def test_a_burst_that_fits_needs_nothing() -> None:
    row = predict(500, work=20)
    assert (row["throttled_share"], row["lost_periods"], row["remedies"]) == (0.0, 0.0, [])


def test_more_threads_than_the_limit() -> None:
    # Two threads would never be throttled and yet take 200 ms: fewer threads are no remedy for a burst.
    row = predict(2000, threads=8, work=400)
    assert row["throttled_share"] > 0
    assert row["latency_ms"]["maximum"] < 200
    assert "threads" not in remedies(row)
    fewer = remedies(predict(2000, threads=8))["threads"]
    assert (fewer["change"], fewer["throttled_share"], fewer["lost_share"]) == ("2 threads", 0.0, 0.0)
    assert remedies(predict(1500, threads=8))["threads"]["change"] == "1 thread"


def test_always_busy() -> None:
    row = predict(500, threads=2, cpus=2)
    assert (row["work_ms"], row["throttled_share"], row["lost_share"], row["longest_wait_ms"]) == (
        None,
        1.0,
        0.75,
        75.0,
    )
    found = remedies(row)
    assert list(found) == ["whole-cpus", "limit", "period", "threads"]
    assert found["limit"]["change"] == "a limit of 2000m CPU"
    assert (found["limit"]["lost_share"], found["whole-cpus"]["lost_share"], found["threads"]["lost_share"]) == (
        0,
        0,
        0.5,
    )
    # The shorter period changes only how long each wait is.
    assert (found["period"]["lost_share"], found["period"]["longest_wait_ms"]) == (0.75, 20.0)


def test_bursts_that_are_given() -> None:
    assert read_bursts([{"pod": "shop/*", "container": None, "threads": 2, "work": "70ms"}, {}]) == [
        Burst("shop/*", "*", 2, 70_000),
        Burst(),
    ]
    assert Burst("shop/web-*", "nginx").matches("shop/web-0", "nginx")
    assert not Burst("shop/web-*", "nginx").matches("shop/web-0", "sidecar")


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"threads": 0}, "threads is 0, not 1 to 100000"),
        ({"work": "0"}, "work is 0, not 1us to 1h"),
        ({"work": "2h"}, "work is 2h, not 1us to 1h"),
        ({"work": "70"}, "a unit is missing"),
    ],
)
def test_bursts_that_are_wrong(row: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputError, match=problem) as error:
        read_bursts([{}, row])
    assert "bursts[1]" in str(error.value)


@settings(max_examples=examples(25))
@given(st.integers(10, 4000), st.integers(1, 8), st.integers(1, 8), st.one_of(st.none(), st.integers(1, 200)))
def test_no_remedy_makes_more_than_it_promises(milli: int, threads: int, cpus: int, work: int | None) -> None:
    row = predict(milli, threads, cpus, work)
    found = remedies(row)
    if not row["throttled_share"]:
        assert found == {}
    for name in ("whole-cpus", "limit"):
        if name in found:
            assert found[name]["throttled_share"] == 0
    for remedy in found.values():
        if work is None:
            assert remedy["lost_share"] <= row["lost_share"]
        else:
            assert remedy["latency_ms"]["maximum"] <= row["latency_ms"]["maximum"]
