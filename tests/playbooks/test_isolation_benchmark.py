# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The playbook isolation_benchmark, really run on this machine, with short workloads."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any, Iterator

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._benchmark.benchmark_cgroups import BenchmarkCgroups
from ansible_collections.kubenode.cpu_manager.tests.support.cpus_of_machine import alone, why_not

from .conftest import ansible_playbook, play, task

PLAYBOOK = "kubenode.cpu_manager.isolation_benchmark"
SHORT: dict[str, Any] = {
    "isolation_benchmark_runs": 1,
    "isolation_benchmark_units": 10,
    "isolation_benchmark_experiments": ["stand-alone", "aggressor"],
    "isolation_benchmark_allow_pods": True,
    "isolation_benchmark_seed": 3,
    "cpu_manager_become": False,
    # This machine is meant.
    "kubelet_node_root": "/",
}
FILES = ["isolation.html", "isolation.json"]

WHY_NOT = why_not()
pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)


@pytest.fixture(autouse=True)
def _one_at_a_time() -> Iterator[None]:
    with alone():
        yield


def test_every_form_is_written(tmp_path: Path) -> None:
    variables = {**SHORT, "isolation_benchmark_forms": ["json", "html", "table"]}
    run = ansible_playbook(tmp_path, PLAYBOOK, {"node-1": variables})
    assert run.status == 0, run.account()
    assert re.search(r"4 cases, 1 runs of each: about \d+ seconds, at most 900", run.output)
    assert "Protection from an aggressor\n  workload" in run.output
    written = tmp_path / "isolation-benchmark"
    assert sorted(path.name for path in written.iterdir()) == FILES
    report = json.loads((written / "isolation.json").read_text(encoding="utf-8"))
    assert report["schema_version"] == "1.0"
    (node,) = report["nodes"]
    assert node["host"] == "node-1"
    assert node["result"]["seed"] == 3
    assert len(node["result"]["rows"]) == 4
    page = (written / "isolation.html").read_text(encoding="utf-8")
    # It loads nothing, and has both verdicts and a box for each row and metric.
    assert not re.search(r"(?:src|href)=|url\(|@import|<script", page)
    assert page.count('<rect class="box"') == 8
    assert all(answer["text"].replace("'", "&#39;") in page for answer in node["result"]["verdict"])


def test_check_mode_says_what_it_would_run_and_runs_nothing(tmp_path: Path) -> None:
    run = ansible_playbook(tmp_path, PLAYBOOK, {"node-1": SHORT}, "--check")
    assert run.status == 0, run.account()
    assert "4 cases, 1 runs of each: about" in run.output
    assert not (tmp_path / "isolation-benchmark").exists()


def test_what_is_wrong_is_said_by_the_name_of_its_variable(tmp_path: Path) -> None:
    hosts = {
        "runs": {**SHORT, "isolation_benchmark_runs": 0},
        "cpus": {**SHORT, "isolation_benchmark_cpus": 5000},
        "seconds": {**SHORT, "isolation_benchmark_seconds": 1},
        "workloads": {**SHORT, "isolation_benchmark_workloads": {"victim": {"command": ["no-such-program"]}}},
        "saved": {**SHORT, "kubelet_node_root": str(tmp_path / "saved")},
    }
    run = ansible_playbook(tmp_path, PLAYBOOK, hosts)
    assert run.status == 2, run.output
    assert "isolation_benchmark_runs: 0 is not from 1 to 1000" in run.last("runs")["msg"]
    assert "isolation_benchmark_cpus: 5000 CPUs are wanted" in run.last("cpus")["msg"]
    assert "isolation_benchmark_seconds: the benchmark would take about" in run.last("seconds")["msg"]
    assert "isolation_benchmark_workloads.victim: no-such-program" in run.last("workloads")["msg"]
    assert "is a saved node" in run.last("saved")["msg"]
    assert not any("cases" in result for result in run.results["saved"])
    assert not (tmp_path / "isolation-benchmark").exists()


def test_the_end_of_an_asynchronous_task_ends_the_benchmark(tmp_path: Path) -> None:
    endless = {
        **task(
            "isolation_benchmark",
            experiments=["stand-alone"],
            runs=1,
            allow_pods=True,
            workloads={"victim": {"command": ["sleep", "300"]}},
        ),
        "async": 2,
        "poll": 1,
    }
    run = ansible_playbook(tmp_path, play(endless), {"node-1": {"kubelet_node_root": "/"}})
    assert run.status == 2, run.output
    deadline = time.monotonic() + 60
    while BenchmarkCgroups(Tree("/")).leftovers():
        assert time.monotonic() < deadline
        time.sleep(0.05)
