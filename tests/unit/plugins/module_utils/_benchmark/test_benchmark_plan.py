# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._benchmark.benchmark_plan import (
    EXPERIMENTS,
    BenchmarkRoom,
    Case,
    Workload,
    cases_of,
    expected_seconds,
    order_of,
    workloads_of,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.options import StaticOptions
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import parse_name


def room(name: str, reserved: str, **more: Any) -> BenchmarkRoom:
    topology = parse_name(name).topology()
    options = StaticOptions(**{key: more.pop(key) for key in list(more) if key in StaticOptions._fields})
    return BenchmarkRoom(topology, options, CPUSet.parse(reserved), topology.online, **more)


def places(cases: list[Case], experiment: str) -> dict[tuple[str, ...], dict[str, str]]:
    """Return {(placement, QoS classes): {workload: CPUs}}"""
    return {
        (case.placement, *(part.qos[:2] for part in case.parts)): {part.role: str(part.cpus) for part in case.parts}
        for case in cases
        if case.experiment == experiment
    }


def test_two_cpus_have_all_but_what_takes_two_of_ones_own() -> None:
    cases, left_out = cases_of(room("2c", "0"), EXPERIMENTS, 1)
    assert places(cases, "stand-alone") == {("shared", "Gu"): {"victim": "0-1"}, ("exclusive", "Gu"): {"victim": "1"}}
    assert places(cases, "aggressor") == {
        ("shared", "Gu", "Bu"): {"victim": "0-1", "aggressor": "0-1"},
        ("exclusive", "Gu", "Bu"): {"victim": "1", "aggressor": "0"},
    }
    assert places(cases, "co-located")["exclusive", "Bu", "Gu"] == {"compute": "0", "memory": "1"}
    assert len(cases) == 11
    assert [text.partition(":")[0] for text in left_out] == [
        "co-located, exclusive, compute (Guaranteed) beside memory (Guaranteed)"
    ]


def test_with_threads_there_are_whole_cores_too() -> None:
    # CPUs 0-3 are the first threads of four cores, 4-7 the second.
    cases, left_out = cases_of(room("4c2t", "0,4"), EXPERIMENTS, 1)
    assert left_out == []
    found = places(cases, "aggressor")
    assert found["exclusive", "Gu", "Bu"] == {"victim": "1", "aggressor": "0,2-7"}
    assert found["exclusive-cores", "Gu", "Bu"] == {"victim": "1,5", "aggressor": "0,2-4,6-7"}
    assert places(cases, "co-located")["exclusive-cores", "Gu", "Gu"] == {"compute": "1,5", "memory": "2,6"}
    # As many processes as CPUs were asked for, wherever they run.
    assert {part.processes for case in cases for part in case.parts if part.role != "aggressor"} == {1}


def test_a_kubelet_that_gives_whole_cores_only_gives_no_parts() -> None:
    cases, _left_out = cases_of(room("4c2t", "0,4", full_pcpus_only=True), ["stand-alone"], 1)
    assert [case.placement for case in cases] == ["shared", "exclusive-cores"]
    cases, _left_out = cases_of(room("4c2t", "0,4", full_pcpus_only=True), ["stand-alone"], 2)
    assert [case.placement for case in cases] == ["shared", "exclusive"]


def test_a_strict_reservation_is_in_no_pool() -> None:
    cases, _left_out = cases_of(room("4c", "0", strict_cpu_reservation=True), ["aggressor"], 1)
    assert places(cases, "aggressor")["exclusive", "Gu", "Bu"] == {"victim": "1", "aggressor": "2-3"}


@pytest.mark.parametrize(
    ("machine", "reserved", "cpus", "what"),
    [
        ("2c", "0", 2, "2 CPUs are wanted for containers of their own, and there are CPUs 1 (online 0-1, reserved 0)"),
        ("2c", "0", 0, "0 CPUs are no CPUs"),
        ("4c2t", "0", 7, "8 CPUs are wanted"),
    ],
)
def test_more_cpus_than_there_are_are_refused(machine: str, reserved: str, cpus: int, what: str) -> None:
    with pytest.raises(InputError) as error:
        cases_of(room(machine, reserved), EXPERIMENTS, cpus)
    assert what in str(error.value)


def test_limits_are_those_of_the_kubelet() -> None:
    def limits(**more: bool) -> list[tuple[str, str, int, int | None]]:
        here = room("4c", "0", **more)
        cases, _left_out = cases_of(here, ["aggressor"], 2)
        return [(case.placement, part.role, part.shares, part.quota(here)) for case in cases for part in case.parts]

    assert limits() == [
        ("shared", "victim", 2048, 200000),
        ("shared", "aggressor", 1024, None),
        ("exclusive", "victim", 2048, None),
        ("exclusive", "aggressor", 1024, None),
    ]
    assert [quota for _placement, _role, _shares, quota in limits(quota_on_exclusive=True)] == [200000, None] * 2
    assert {quota for _placement, _role, _shares, quota in limits(quota=False, quota_on_exclusive=True)} == {None}


def test_the_order_is_random_and_the_seed_decides_it() -> None:
    order = order_of(11, 10, 7)
    assert Counter(order) == Counter((case, run) for case in range(11) for run in range(10))
    assert order == order_of(11, 10, 7)
    assert order != order_of(11, 10, 8) != sorted(order)


def test_a_longer_benchmark_is_expected_to_take_longer() -> None:
    cases, _left_out = cases_of(room("2c", "0"), EXPERIMENTS, 1)
    assert expected_seconds(cases, 20, 1.0) == 2 * expected_seconds(cases, 10, 1.0) > 10 * len(cases)


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
        ("(warm-up)", "prints the time 'warm-up', which is not a number above 0"),
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
        ({"victim": {"command": "a b"}}, "workloads.victim: its command is not a list of words"),
        ({"victim": {"command": []}}, "its command is not a list of words"),
        ({"victim": {"command": [1]}}, "its command is not a list of words"),
        ({"victim": ["a"]}, "is not a mapping"),
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
