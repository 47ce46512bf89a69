# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Writes the results of benchmarks, on the controller. The module of this name documents it."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any, Mapping

from ansible.utils.display import Display

from ..module_utils._base.errors import InputError
from ..module_utils._benchmark.run import SCHEMA_VERSION
from ..plugin_utils.benchmark.page import page
from ..plugin_utils.benchmark.result import benchmark_table, checked_result
from ..plugin_utils.controller_action import ControllerAction, Given
from ..plugin_utils.guarded_action import failure_of
from ..plugin_utils.report.answers import time_of
from ..plugin_utils.report.results import put_file

_ROLES = Path(__file__).parent.parent.parent / "roles"
_TEMPLATES = _ROLES / "isolation_benchmark" / "templates"
_STYLES = ("drift_report/files/report.css", "isolation_benchmark/files/benchmark.css")
FORMS = ("json", "html", "table")

_ARGUMENTS: dict[str, dict[str, object]] = {
    "directory": {"type": "path", "required": True},
    "results": {"type": "dict", "default": {}},
    "forms": {"type": "list", "elements": "str", "choices": [*FORMS], "default": [*FORMS]},
    "title": {"type": "str", "default": "What exclusive CPUs are worth"},
    "validate_only": {"type": "bool", "default": False},
}


class ActionModule(ControllerAction):
    """Writes what the benchmark has measured."""

    ARGUMENTS = _ARGUMENTS

    def made(self, given: Given) -> dict[str, Any]:
        """Return the result of the task: the files."""
        if given["validate_only"]:
            return {"changed": False}
        results, wrong = {}, []
        for host, result in given["results"].items():
            try:
                results[str(host)] = checked_result(str(host), result)
            except InputError as error:
                wrong.append(str(error))
        files = _written(given, results) if results or not wrong else []
        if "table" in given["forms"]:
            # As plain text: the result of a task is shown in the form that the user has chosen for results.
            for host, result in results.items():
                Display().display(benchmark_table(host, result))
        for path in files:
            Display().display("Benchmark: %s" % path)
        return {
            "changed": False,
            "files": files,
            "verdict": {host: result["verdict"] for host, result in results.items()},
            # Once the results of the others are written.
            **(failure_of(InputError("\n".join(wrong))) if wrong else {}),
        }


def _written(given: Given, results: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Write all forms that are files; their paths."""
    report = {
        "schema_version": SCHEMA_VERSION,
        "title": given["title"],
        "made": time_of(time.time()),
        "nodes": [{"host": host, "result": result} for host, result in results.items()],
    }
    files = []

    def path_of(name: str) -> str:
        files.append(os.path.join(given["directory"], name))
        return files[-1]

    if "json" in given["forms"]:
        put_file(path_of("isolation.json"), [json.dumps(report, indent=1, ensure_ascii=False) + "\n"])
    if "html" in given["forms"]:
        style = "".join((_ROLES / name).read_text("utf-8") for name in _STYLES)
        parts = {"chart": "chart.svg.j2", "template": "benchmark.html.j2"}
        texts = {name: (_TEMPLATES / file).read_text("utf-8") for name, file in parts.items()}
        put_file(path_of("isolation.html"), [page(report, {**texts, "style": style})])
    return files
