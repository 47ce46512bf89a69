# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A benchmark as pods, for the role isolation_benchmark. Each filter is documented in the file of its name here."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Mapping, Sequence

from ansible.errors import AnsibleFilterError

from ..module_utils._base.errors import MALFORMED, CPUManagerError
from ..module_utils._benchmark import worker
from ..module_utils._benchmark.run import SCHEMA_VERSION
from ..plugin_utils.benchmark.pods import WantedPods, answer_of, calibrations, placed, pod_runs, rows_of


def _wanted(given: Mapping[str, Any]) -> WantedPods:
    """What is to be run, on a node as the API describes it."""
    count = int(given["node"]["status"]["capacity"]["cpu"])
    text = Path(str(worker.__file__)).read_text("utf-8")
    options = {name: value for name, value in given.items() if name != "node"}
    return WantedPods(given["node"]["metadata"]["name"], count, text=text, **options)


def _calibration_pods(given: Mapping[str, object]) -> list[dict[str, object]]:
    return calibrations(_wanted(given))


def _pod_runs(logs: Mapping[str, str], given: Mapping[str, object]) -> dict[str, object]:
    try:
        return pod_runs(_wanted(given), {kind: int(answer_of(log)["size"]) for kind, log in logs.items()})
    except (CPUManagerError, *MALFORMED) as error:
        raise AnsibleFilterError("the calibration of the benchmark failed: %s" % error) from None


def _pod_result(logs: Sequence[str], plan: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, object]:
    about, count = given["node"]["status"]["nodeInfo"], int(given["node"]["status"]["capacity"]["cpu"])
    try:
        rows = rows_of(plan["runs"], logs)
        cases, notes = placed(_wanted(given), plan, logs)
    except CPUManagerError as error:
        raise AnsibleFilterError(str(error)) from None
    return {
        "schema_version": SCHEMA_VERSION,
        "machine": {
            "cpus": count,
            "cores": count,
            "sockets": 1,
            "numa_nodes": 1,
            "threads_per_core": 1,
            "virtual": False,
            "model": about.get("architecture", ""),
            "kernel": about.get("kernelVersion", ""),
            "load": "",
            "governor": "",
        },
        "seed": given["seed"],
        "settings": {"runs": given["runs"], "units": given["units"], "reserved": "as the kubelet has it"},
        "cases": cases,
        "rows": rows,
        "left_out": [],
        "notes": [
            *notes,
            "measured in pods, on the CPUs that the kubelet gave them",
            "the API does not say which CPUs share a core or a socket",
        ],
    }


class FilterModule:
    """The filters of a benchmark as pods."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Their names and functions."""
        return {
            "benchmark_calibration_pods": _calibration_pods,
            "benchmark_pod_runs": _pod_runs,
            "benchmark_pod_result": _pod_result,
        }
