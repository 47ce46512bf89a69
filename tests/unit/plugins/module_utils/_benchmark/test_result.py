# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any, Sequence

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._benchmark.result import summarized
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.benchmark.result import benchmark_table, duration

VICTIM = {"workload": "victim", "qos_class": "Guaranteed", "cpus": "1", "exclusive": True}
AGGRESSOR = {"workload": "aggressor", "qos_class": "Burstable", "cpus": "0", "exclusive": False}
CASES = [
    {"experiment": "stand-alone", "placement": "exclusive", "containers": [VICTIM]},
    {"experiment": "aggressor", "placement": "exclusive", "containers": [VICTIM, AGGRESSOR]},
    {"experiment": "aggressor", "placement": "shared", "containers": [VICTIM, AGGRESSOR]},
]


def rows(case: int, p99: Sequence[float], has_latency: bool = True) -> list[dict[str, Any]]:
    return [
        {
            "case": case,
            "run": run,
            "place": 0,
            "workload": "victim",
            "qos_class": "Guaranteed",
            "seconds": 100 * value,
            "p50": value / 2 if has_latency else None,
            "p99": value if has_latency else None,
        }
        for run, value in enumerate(p99)
    ]


def around(value: float) -> list[float]:
    return [value * (1 + step / 100) for step in range(-5, 5)]


@pytest.mark.parametrize(
    ("alone", "own", "shared", "answers"),
    [
        (around(2.0), around(2.0), around(5.0), ["yes", "yes"]),
        # A little worse than alone, within the noise.
        (around(2.0), around(2.05), around(5.0), ["yes", "yes"]),
        # Worse, and no better than shared: it is said, too.
        (around(2.0), around(3.0), around(3.02), ["no", "not shown"]),
        (around(2.0), around(4.0), around(3.0), ["no", "no"]),
        # Higher, but so scattered that it may be the same.
        (around(2.0), [1.9] * 4 + [2.6] * 6, around(5.0), ["not shown", "yes"]),
    ],
)
def test_a_verdict_is_what_the_intervals_show(
    alone: list[float], own: list[float], shared: list[float], answers: list[str]
) -> None:
    for has_latency, metric in ((True, "p99"), (False, "seconds")):
        found = summarized(
            CASES, [*rows(0, alone, has_latency), *rows(1, own, has_latency), *rows(2, shared, has_latency)]
        )
        assert [answer["answer"] for answer in found["verdict"]] == answers
        assert {answer["metric"] for answer in found["verdict"]} == {metric}


def test_the_noise_is_that_of_the_victim_alone() -> None:
    found = summarized(CASES, [*rows(0, around(2.0)), *rows(1, around(2.0)), *rows(2, around(5.0))])
    first, second = found["verdict"]
    # Median 1.99, interval to 2.06.
    assert first["noise"] == pytest.approx(2.06 / 1.99 - 1, abs=1e-4)
    assert "noise of 3.5 %" in first["text"]
    assert "2.50 times as high" in second["text"]


def test_boxes_are_relative_to_the_best_run_of_all_placements() -> None:
    found = summarized(CASES, [*rows(0, [8.0]), *rows(1, [2.0, 4.0]), *rows(2, [6.0])])
    boxes = {(row["experiment"], row["placement"]): row["p99"]["box"]["median"] for row in found["summary"]}
    assert boxes == {
        ("stand-alone", "exclusive"): 1.0,
        ("aggressor", "exclusive"): 1.5,
        ("aggressor", "shared"): 3.0,
    }


def test_without_runs_there_is_no_verdict() -> None:
    assert summarized(CASES, []) == {"summary": [], "verdict": []}


def test_a_table_has_all_and_no_control_characters() -> None:
    found = summarized(CASES, [*rows(0, around(0.002)), *rows(1, around(0.002)), *rows(2, around(0.005))])
    result = {**found, "seed": 7, "settings": {"runs": 10}, "left_out": ["a\x1b[2Jb"], "notes": ["slow"]}
    lines = benchmark_table("worker-1", result).splitlines()
    assert lines[0] == "worker-1: 10 runs of each, seed 7"
    assert "  victim (Guaranteed)  aggressor (Burstable)  shared: 1" in "\n".join(lines)
    assert "4.98 ms [4.80 ms, 5.15 ms]" in "\n".join(lines)
    assert lines[-4].startswith("YES: ")
    assert lines[-2:] == ["not run: a[2Jb", "note: slow"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(2.345, "2.35 s"), (0.9999, "1.00 s"), (0.0456, "45.6 ms"), (0.00089, "890 us"), (123.4, "123 s")],
)
def test_a_duration_has_three_digits(seconds: float, text: str) -> None:
    assert duration(seconds) == text
