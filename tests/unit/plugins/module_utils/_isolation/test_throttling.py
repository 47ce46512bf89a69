# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._isolation.bandwidth import Level, Statistics
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._isolation.throttling import (
    ThrottlingSample,
    Watched,
    between,
    cgroup_rows,
    container_rows,
    limit_of,
    meaning_of,
    since_boot,
    throttled_percent,
)

ONE = Watched("uid", "shop/web-1", "app", "b" * 64, "Burstable", "k/bu/pod/c", "k/bu/pod", "k", "k/bu/pod/c/container")
COUNTERS = st.integers(0, 1 << 64)
STATISTICS = st.builds(
    Statistics,
    COUNTERS,
    COUNTERS,
    COUNTERS,
    st.none() | COUNTERS,
    st.none() | COUNTERS,
    st.none() | COUNTERS,
)


def level(path: str, quota: int | None = None, counted: Statistics | None = None, identity: int = 1) -> Level:
    return Level(path, identity, True, quota, 100000, 0, None, 100, counted)


def test_the_levels_of_a_container() -> None:
    assert [(path, ONE.kind(path)) for path in ONE.levels] == [
        ("k/bu/pod/c/container", "container"),
        ("k/bu/pod/c", "container"),
        ("k/bu/pod", "pod"),
        ("k/bu", "qos"),
        ("k", "pods"),
        ("", "root"),
    ]
    inside = ONE._replace(
        cgroup="a.slice/k/pod/c", pod_cgroup="a.slice/k/pod", top="a.slice/k", process_cgroup="a.slice/k/pod/c"
    )
    assert [inside.kind(path) for path in inside.levels] == ["container", "pod", "pods", "above", "root"]
    assert ONE.label == "shop/web-1/app"
    assert ONE._replace(pod="", name=None).label == "uid/bbbbbbbbbbbb"


def test_the_smallest_quota_limits_and_the_nearest_of_equal_ones() -> None:
    levels = {"k/bu/pod/c": level("k/bu/pod/c", 50000), "k/bu/pod": level("k/bu/pod", 40000), "": level("", 40000)}
    limit = limit_of(ONE, levels)
    assert limit is not None
    assert limit.path == "k/bu/pod"
    assert limit_of(ONE, {"k": level("k")}) is None
    # By the ratio, and not by the quota.
    short = level("k")._replace(quota_us=20000, period_us=20000)
    limit = limit_of(ONE, {**levels, "k": short})
    assert limit is not None
    assert limit.path == "k/bu/pod"


def test_rows() -> None:
    counted = Statistics(10, 4, 2500, 0, 0, 3000)
    levels = {path: level(path, 33333, counted) for path in ONE.levels}
    sample = since_boot(levels)
    (row,) = container_rows([ONE], levels, sample)
    assert row["levels"] == ["k/bu/pod/c/container", "k/bu/pod/c", "k/bu/pod", "k/bu", "k", "/"]
    assert row["limit"] == {"cgroup": "k/bu/pod/c/container", "cpus": 0.333}
    assert (row["throttled_percent"], row["counted"]) == (40.0, counted._asdict())
    cgroups = cgroup_rows([ONE], {**levels, "other": level("other")}, sample)
    assert list(cgroups) == row["levels"]
    assert {path: cgroup["kind"] for path, cgroup in cgroups.items()}["/"] == "root"
    assert cgroups["k"]["quota_us"] == 33333
    # A container that has ended.
    (row,) = container_rows([ONE], {}, ThrottlingSample({}))
    assert (row["levels"], row["limit"], row["counted"], row["throttled_percent"]) == ([], None, None, None)


@pytest.mark.parametrize(
    ("periods", "throttled", "percent"), [(0, 0, None), (3, 0, 0.0), (3, 1, 33.3), (1000, 1000, 100.0)]
)
def test_the_part_of_throttled_periods(periods: int, throttled: int, percent: float | None) -> None:
    assert throttled_percent(Statistics(periods, throttled, 0)) == percent


@given(STATISTICS, STATISTICS)
def test_what_is_between_two_readings(before: Statistics, after: Statistics) -> None:
    sample = between({"a": level("a", counted=before)}, {"a": level("a", counted=after)}, 2.5)
    assert sample.seconds == 2.5
    backwards = any(old is not None and new is not None and new < old for old, new in zip(before, after))
    assert (sample.restarted == ["a"]) == backwards
    if not backwards:
        for old, spent, new in zip(before, sample.counted["a"], after):
            assert (spent is None) == (old is None or new is None)
            assert spent is None or (old or 0) + spent == new
    else:
        assert sample.counted == {}


def test_cgroups_that_come_and_go() -> None:
    counted = Statistics(1, 1, 1)
    before = {"gone": level("gone", counted=counted), "same": level("same", counted=counted), "odd": level("odd")}
    after = {
        "new": level("new", counted=counted),
        "same": level("same", counted=Statistics(5, 5, 5), identity=2),
        "odd": level("odd", counted=counted),
    }
    sample = between(before, after, 1.0)
    assert (sample.counted, sample.restarted) == ({}, ["same"])


@pytest.mark.parametrize(
    ("kernel", "text"),
    [
        ("6.18.44-fc", "throttles tasks"),
        ("7.0.0", "throttles tasks"),
        ("6.17.9", "whole queue"),
        ("5.4.0-200-generic", "whole queue"),
        ("", "release of the kernel is not known"),
        ("../../6.18", "release of the kernel is not known"),
        ("9" * 5000, "release of the kernel is not known"),
    ],
)
def test_what_the_kernel_means_by_throttled_time(kernel: str, text: str) -> None:
    assert sum(text in line for line in meaning_of(kernel, 2, {})) == 1


def test_what_the_kernel_does_not_count() -> None:
    old = Level("a", 1, True, None, 100000, None, 1024, None, Statistics(1, 0, 0))
    lines = "\n".join(meaning_of("5.4", 1, {"a": old, "b": Level("b")}))
    assert "no cpu.stat.local" in lines
    assert "no bursts" in lines
    assert "nanoseconds" in lines
    lines = "\n".join(meaning_of("6.12", 2, {"a": level("a", counted=Statistics(1, 0, 0, 0, 0, 0)), "": Level("")}))
    assert "local_us is what" in lines
    assert "no bursts" not in lines
    assert "nanoseconds" not in lines
