# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._benchmark import worker
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._benchmark.result import summarized
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._containers.pods import pods_from_manifests
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.benchmark.pods import (
    WantedPods,
    answer_of,
    calibrations,
    placed,
    pod_runs,
    rows_of,
)

TEXT = Path(str(worker.__file__)).read_text("utf-8")
ALL = ("stand-alone", "aggressor", "co-located")
WANTED = WantedPods(
    "worker-1", 4, "bench", "python:3", TEXT, ALL, runs=2, unit_milliseconds=0.2, units=5, memory=1 << 22
)
SIZES = {"compute": 50, "memory": 1}


def run(pod: dict[str, Any]) -> str:
    """What the pod's container prints, as a process of this machine."""
    _python, *arguments = pod["spec"]["containers"][0]["command"]
    return subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.PIPE, text=True).stdout


def test_guaranteed_pods_are_such_as_get_cpus_of_their_own() -> None:
    plan = pod_runs(WANTED._replace(cpus=2), SIZES)
    for turn in plan["runs"]:
        (pod,) = pods_from_manifests([{**turn["pod"], "metadata": {"name": "a"}}])
        exclusive = plan["cases"][turn["case"]]["containers"][0]["exclusive"]
        assert pod.exclusive_counts(35) == {turn["workload"]: 2 if exclusive else 0}
        assert turn["pod"]["spec"]["activeDeadlineSeconds"] > 0


def test_every_combination_is_run_as_often_as_wanted() -> None:
    plan = pod_runs(WANTED, SIZES)
    assert len(plan["cases"]) == 2 + 2 + 8
    assert sorted((turn["case"], turn["run"]) for turn in plan["runs"]) == [
        (case, run) for case in range(12) for run in range(2)
    ]
    aggressors = [turn["beside"] for turn in plan["runs"] if plan["cases"][turn["case"]]["experiment"] == "aggressor"]
    assert {json.loads(pod["spec"]["containers"][0]["command"][3])["processes"] for pod in aggressors} == {4}


def test_the_pods_answer() -> None:
    """The program of the pods runs as it does there: it calibrates, and what is measured then is a result."""
    sizes = {pod["workload"]: answer_of(run(pod["pod"]))["size"] for pod in calibrations(WANTED)}
    assert all(size >= 1 for size in sizes.values())
    plan = pod_runs(WANTED._replace(runs=1, cpus=2, experiments=("stand-alone",)), sizes)
    logs = [run(turn["pod"]) for turn in plan["runs"]]
    rows = rows_of(plan["runs"], logs)
    assert answer_of(logs[0])["cpus"] == sorted(os.sched_getaffinity(0))
    assert [row["workload"] for row in rows] == ["victim", "victim"]
    assert all(0 < row["p50"] <= row["p99"] <= row["longest"] <= row["seconds"] for row in rows)
    assert {row["placement"] for row in summarized(plan["cases"], rows)["summary"]} == {"shared", "exclusive"}


@pytest.mark.parametrize(
    ("guaranteed", "placements", "word"),
    [
        ([1], {"Guaranteed": "exclusive", "Burstable": "shared"}, ""),
        # The policy none, or fewer CPUs than that: all others have them, too.
        ([0, 1, 2, 3], {"Guaranteed": "shared", "Burstable": "shared"}, "could use CPUs 0-3, and had requested 1"),
        ([2, 3], {"Guaranteed": "shared", "Burstable": "shared"}, "could use CPUs 2-3, and had requested 1"),
    ],
)
def test_pods_are_placed_where_they_could_run(guaranteed: list[int], placements: dict[str, str], word: str) -> None:
    plan = pod_runs(WANTED, SIZES)
    answer = {"seconds": 1.0, "latencies": [0.1, 0.2]}
    logs = [
        json.dumps({"answers": [answer], "cpus": guaranteed if turn["qos_class"] == "Guaranteed" else [0, 2, 3]})
        for turn in plan["runs"]
    ]
    cases, notes = placed(WANTED, plan, logs)
    for case in cases:
        own, *others = case["containers"]
        assert case["placement"] == placements[own["qos_class"]]
        assert own["exclusive"] is (case["placement"] == "exclusive")
        assert own["cpus"] == (str(CPUSet(guaranteed)) if own["qos_class"] == "Guaranteed" else "0,2-3")
        for container in others:
            assert container["exclusive"] is (placements[container["qos_class"]] == "exclusive")
    assert [word in note for note in notes] == ([True] if word else [])
    verdict = summarized(cases, rows_of(plan["runs"], logs))["verdict"]
    assert bool(verdict) is (not word)


def test_a_node_with_as_many_cpus_as_requested_has_none_exclusive() -> None:
    wanted = WANTED._replace(cpu_count=1, experiments=("stand-alone",), runs=1)
    plan = pod_runs(wanted, SIZES)
    logs = [json.dumps({"answers": [{}], "cpus": [0]})] * 2
    assert {case["placement"] for case in placed(wanted, plan, logs)[0]} == {"shared"}


@pytest.mark.parametrize("cpus", [None, 3, ["0"], [-1], [10**9]])
def test_cpus_that_are_none_are_no_answer(cpus: object) -> None:
    plan = pod_runs(WANTED, SIZES)
    with pytest.raises(InputError, match="printed no answer"):
        placed(WANTED, plan, [json.dumps({"answers": [{}], "cpus": cpus})])


def test_the_pods_of_a_benchmark_are_told_from_others() -> None:
    wanted = WANTED._replace(run_id="0123456789ab")
    pods = [turn["pod"] for turn in (*calibrations(wanted), *pod_runs(wanted, SIZES)["runs"])]
    pods += [turn["beside"] for turn in pod_runs(wanted, SIZES)["runs"] if turn["beside"]]
    assert {pod["metadata"]["labels"]["app.kubernetes.io/instance"] for pod in pods} == {"0123456789ab"}


def test_a_background_pod_works_until_it_is_ended() -> None:
    turn = next(turn for turn in pod_runs(WANTED, SIZES)["runs"] if turn["beside"] is not None)
    _python, *arguments = turn["beside"]["spec"]["containers"][0]["command"]
    process = subprocess.Popen([sys.executable, *arguments], start_new_session=True)
    try:
        time.sleep(0.3)
        assert process.poll() is None
    finally:
        subprocess.run(["kill", "-9", "--", "-%d" % process.pid], check=True)
        process.wait()


@pytest.mark.parametrize(
    "log", ["", "Traceback\nModuleNotFoundError", "[1]", "[" * 100_000, '{"answers": []}', '{"size": 3}']
)
def test_another_log_is_no_answer(log: str) -> None:
    with pytest.raises(InputError, match="printed no answer"):
        rows_of(pod_runs(WANTED, SIZES)["runs"][:1], [log])
