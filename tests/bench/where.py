# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How long the table of 60,000 containers of 1,000 nodes takes, and how much memory, with the page and the JSON."""

from __future__ import annotations

import json
import multiprocessing
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

from ansible_collections.kubenode.cpu_manager.plugins.action.fleet_report import FORMS
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.assemble import ReportTerms, assemble
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.results import (
    Result,
    find_files,
    put_file,
    read_results,
    write_result,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.answers import ANSWER, LOOKED_AT, MADE
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import parse_name

NODES, CONTAINERS = 1000, 60
SECONDS, MEBIBYTES = 20.0, 500


def _result(number: int) -> Result:
    containers: list[dict[str, Any]] = []
    cgroups: dict[str, Any] = {}
    for place in range(CONTAINERS):
        path = "kubepods.slice/kubepods-pod%d.slice/cri-containerd-%064x.scope" % (place, place)
        containers.append(
            {
                "pod_uid": "%032x" % (number * CONTAINERS + place),
                "pod": "shop/db-%d-%d" % (number, place),
                "container": "server",
                "id": "%064x" % place,
                "cgroup": path,
                "exclusive": "%d,%d" % (place + 4, place + 68) if place < 20 else "",
                "levels": [path, "kubepods.slice", "/"],
                "limit": {"cgroup": path, "cpus": 1.5},
                "counted": {"periods": 100, "throttled_periods": 4, "throttled_us": 1200000},
                "throttled_percent": 4.0,
                "started": LOOKED_AT,
            }
        )
        cgroups[path] = {"kind": "container", "quota_us": 150000, "period_us": 100000, "cpus": 1.5, "weight": 100}
    looks = {"throttling": {"hierarchy": {"version": 2}, "seconds": 5, "containers": containers, "cgroups": cgroups}}
    answer = {**ANSWER, "topology": parse_name("2s1n32c2t").topology().to_dict()}
    return Result("worker-%04d" % number, LOOKED_AT, answer, {}, [], looks)


def _made(directory: str, answers: Any) -> None:
    start = time.monotonic()
    report = assemble(read_results(find_files([directory]), "", MADE), ReportTerms("", MADE))
    for form in ("csv", "json", "html"):
        name, make = FORMS[form]
        put_file(str(Path(directory) / name), make(report, []))
    answers.put((time.monotonic() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))


def measure() -> bool:
    """Print the time and the memory; True when both are within their limits."""
    with tempfile.TemporaryDirectory() as directory:
        for number in range(NODES):
            write_result(directory, _result(number))
        # In a process of its own: the memory of this one has the results as they were made.
        context = multiprocessing.get_context("spawn")
        answers = context.Queue()
        process = context.Process(target=_made, args=(directory, answers))
        process.start()
        seconds, mebibytes = answers.get()
        process.join()
        rows = (Path(directory) / "containers.csv").read_text("utf-8").count("\n") - 1
        report = json.loads((Path(directory) / "drift.json").read_text("utf-8"))
    whole = rows == sum(len(node["places"]) for node in report["nodes"]) == NODES * CONTAINERS
    print("Where %d containers of %d nodes are, as CSV, JSON and page:" % (rows, NODES))
    print("  %.1f s (limit %.0f), %.0f MiB (limit %d)" % (seconds, SECONDS, mebibytes, MEBIBYTES))
    return whole and seconds <= SECONDS and mebibytes <= MEBIBYTES
