# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import re
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._benchmark.workloads import Workload, workloads_of

OUTPUT = "warm-up 900 ms\nrequest 1.5 ms\nrequest 2.5 ms\ntotal 40 ms\ntotal 50 ms\n"


def own(**given: Any) -> Workload:
    return workloads_of({"victim": {"command": ["bench"], **given}}, False)["victim"]


def test_a_time_is_the_last_that_matches() -> None:
    assert own(time_pattern="total ([0-9.]+)", unit="ms").read(OUTPUT, 9.0) == {"seconds": 0.05, "latencies": []}


def test_without_a_pattern_it_is_wall_clock() -> None:
    assert own().read(OUTPUT, 9.0) == {"seconds": 9.0, "latencies": []}


def test_each_latency_that_matches_counts() -> None:
    assert own(latency_pattern="request ([0-9.]+)", unit="us").read(OUTPUT, 9.0) == {
        "seconds": 9.0,
        "latencies": pytest.approx([1.5e-6, 2.5e-6]),
    }


@pytest.mark.parametrize(
    ("pattern", "what"),
    [
        ("nothing ([0-9]+)", "prints no time: nothing matches"),
        ("(warm-up)", "prints the time 'warm-up', which is no number above 0"),
        ("9(0)0", "prints the time '0'"),
    ],
)
def test_an_output_without_a_time_is_refused(pattern: str, what: str) -> None:
    with pytest.raises(InputError, match=re.escape(what)):
        own(time_pattern=pattern).read(OUTPUT, 9.0)


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"victm": {"command": ["a"]}}, "victm is none of the workloads: victim, aggressor, compute, memory"),
        ({"victim": {"command": "a b"}}, "workloads.victim: its command is no list of words"),
        ({"victim": {"command": []}}, "its command is no list of words"),
        ({"victim": {"command": [1]}}, "its command is no list of words"),
        ({"victim": ["a"]}, "is no mapping"),
        ({"victim": {"command": ["a"], "cwd": "/"}}, "cwd is none of its keys"),
        ({"victim": {"command": ["a"], "unit": "min"}}, "unit min is none of s, ms, us, ns"),
        ({"victim": {"command": ["a"], "time_pattern": "("}}, "is no regular expression"),
        ({"victim": {"command": ["a"], "time_pattern": "a"}}, "has 0 groups"),
        ({"victim": {"command": ["a"], "latency_pattern": "(a)(b)"}}, "has 2 groups"),
    ],
)
def test_a_wrong_workload_is_refused(given: Any, what: str) -> None:
    with pytest.raises(InputError) as error:
        workloads_of(given, False)
    assert what in str(error.value)


def test_stress_ng_is_the_aggressor_unless_another_one_is() -> None:
    found = workloads_of({}, True)
    assert found["aggressor"].command[0] == "stress-ng"
    assert [found[role].kind for role in ("victim", "compute", "memory")] == ["compute", "compute", "memory"]
    with pytest.raises(InputError, match="a command of yours already"):
        workloads_of({"aggressor": {"command": ["a"]}}, True)
