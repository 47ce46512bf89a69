# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Makes the report of a fleet from the result files of its nodes. The module of this name documents it."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any, Callable, Container, Iterable, Mapping, Sequence

from ansible.utils.display import Display

from ..module_utils._base.errors import InputError, option
from ..plugin_utils.controller_action import ControllerAction, Given
from ..plugin_utils.report.answers import duration_of, line, seconds_of, time_of
from ..plugin_utils.report.assemble import (
    GATES,
    ReportTerms,
    assemble,
    failing_hosts,
    fails,
    lacks_kubelets,
    read_baseline,
)
from ..plugin_utils.report.checks import CHECKS, LOOKS
from ..plugin_utils.report.junit import junit
from ..plugin_utils.report.looks import check_seconds
from ..plugin_utils.report.markdown import json_form, markdown
from ..plugin_utils.report.metrics import fleet_metrics
from ..plugin_utils.report.page import page, read_parts
from ..plugin_utils.report.results import Problem, Progress, Result, find_files, put_file, read_results, run_of, sweep
from ..plugin_utils.report.shapes import Report
from ..plugin_utils.report.terminal import fleet_table, host_names, node_lines, summary_line
from ..plugin_utils.report.trend import Point, read_history, reservations, trend
from ..plugin_utils.report.where import csv_form, where_table

_ROLE = Path(__file__).parent.parent.parent / "roles" / "drift_report"


_History = Sequence[Point]
_DESCRIBED = {name: check._asdict() for name, check in CHECKS.items()}
# The forms that are files: the name of each, and what makes it of a report and of earlier ones.
FORMS: dict[str, tuple[str, Callable[[Report, _History], Iterable[str]]]] = {
    "json": ("drift.json", lambda report, _: json_form(report)),
    "html": ("drift.html", lambda report, _: [page(report, read_parts(_ROLE))]),
    "junit": ("drift.xml", lambda report, _: junit(report, _DESCRIBED)),
    "prometheus": ("drift.prom", lambda report, _: [fleet_metrics(report)]),
    "csv": ("containers.csv", lambda report, _: csv_form(report)),
    "markdown": ("drift.md", lambda report, history: [markdown(report, history)]),
}
# Those that are shown: what makes each.
SHOWN: dict[str, Callable[[Report, _History], str]] = {
    "table": lambda report, _: fleet_table(report),
    "lines": lambda report, _: node_lines(report),
    "trend": trend,
    "reservations": reservations,
    "where": lambda report, _: where_table(report, ""),
}
# Those that show earlier reports, which are read for them alone.
_WITH_HISTORY = frozenset(("markdown", "trend", "reservations"))
_LONGEST_NAMES = 400

_ARGUMENTS: dict[str, dict[str, object]] = {
    "directory": {"type": "path", "required": True},
    "sources": {"type": "list", "elements": "path", "default": []},
    "hosts": {"type": "list", "elements": "str"},
    "max_age": {"type": "str", "default": ""},
    "forms": {
        "type": "list",
        "elements": "str",
        "choices": [*FORMS, *SHOWN],
        "default": ["json", "html", "table"],
    },
    "pod": {"type": "str", "default": ""},
    "title": {"type": "str", "default": "CPU drift report"},
    "fleet": {"type": "str", "default": ""},
    "baseline": {"type": "path"},
    "history": {"type": "list", "elements": "path", "default": []},
    "fail_on": {"type": "str", "choices": [*GATES], "default": "never"},
    # Of node_report: only checked, as what is wrong is to be known before the nodes are looked at.
    "look_at": {"type": "list", "elements": "str", "choices": [*LOOKS], "default": []},
    "look_seconds": {"type": "int", "default": 5},
    "validate_only": {"type": "bool", "default": False},
    "discard": {"type": "list", "elements": "str", "default": []},
    "began": {"type": "str", "default": ""},
}


class ActionModule(ControllerAction):
    """Makes the report of a fleet."""

    ARGUMENTS = _ARGUMENTS

    _host = ""

    def run(self, tmp: object = None, task_vars: Any = None) -> dict[str, Any]:
        """Return the result of the task; with the time also if it is refused, as another host may get the report
        made."""
        return {"began": time_of(time.time()), **super().run(tmp, task_vars)}

    def act(self, task_vars: Mapping[str, Any]) -> dict[str, Any]:
        """Return the result of the task."""
        self._host = str(task_vars.get("inventory_hostname", ""))
        return super().act(task_vars)

    def made(self, given: Given) -> dict[str, Any]:
        """Return the result of the task: the summary of the report, and where its files are."""
        terms = _terms(given)
        shows_history = not _WITH_HISTORY.isdisjoint(given["forms"])
        history = read_history(given["history"], given["fleet"], given["directory"]) if shows_history else []
        check_seconds(given["look_at"], given["look_seconds"], option("look_seconds"))
        sweep(given["directory"], terms.made)
        # That of a killed run may have the same name, as the system gives numbers of processes again.
        progress = Progress(given["directory"], run_of(os.getppid()), 0)
        progress.end()
        began = _began(given)
        if given["validate_only"]:
            return {"changed": False, "began": time_of(terms.made)}
        results = read_results(_files(given), given["fleet"], terms.made)
        report = assemble((result for result in results if not _is_earlier(result, given["discard"], began)), terms)
        files = {}
        for form in given["forms"]:
            if form in FORMS:
                name, make = FORMS[form]
                files[form] = os.path.join(given["directory"], name)
                put_file(files[form], make(report, history))
        progress.end()
        for form in given["forms"]:
            if form in SHOWN:
                # As plain text: the result of a task is shown in the form that the user has chosen for results.
                text = where_table(report, given["pod"]) if form == "where" else SHOWN[form](report, history)
                Display().display(text.rstrip("\n"))
        for path in files.values():
            Display().display("Report: %s" % path)
        summary = report["summary"]
        is_failed = fails(report, given["fail_on"])
        result = {"changed": False, "failed": is_failed, "passed": not is_failed, "summary": summary, "files": files}
        if is_failed:
            result["msg"] = "the fleet does not pass: %s; %s%s%s" % (
                summary_line(report),
                _reason(given["fail_on"], report),
                _named(failing_hosts(report, given["fail_on"])),
                _counted_at(self._host, report),
            )
        return result


def _began(given: Given) -> float:
    """Return when the run began, in seconds since the epoch. Raises InputError."""
    try:
        return seconds_of(given["began"]) if given["began"] else 0.0
    except InputError as error:
        raise InputError(error.what, "began", error.remedy) from error


def _is_earlier(result: Result | Problem, hosts: Container[str], began: float) -> bool:
    """Return whether a result of one of these hosts is that of an earlier run."""
    return isinstance(result, Result) and result.host in hosts and seconds_of(result.looked_at) < began


def _reason(gate: str, report: Report) -> str:
    """Return why a report that does not pass fails. The role takes "unread" in place of the user's "never"."""
    if report["nodes"] and lacks_kubelets(report):
        return "no host has a kubelet, so nothing was compared"
    return "not everything could be read" if gate == "unread" else "%s is %s" % (option("fail_on"), gate)


def _counted_at(host: str, report: Report) -> str:
    """Return the host at which Ansible counts a failure of the whole fleet, the first of the play, and its own
    state."""
    states = [node["state"] for node in report["nodes"] if node["host"] == line(host)]
    return "; Ansible counts this failure at %s, whose own state is %s" % (line(host), states[0]) if states else ""


def _named(hosts: Sequence[str]) -> str:
    return ": see " + host_names(hosts, _LONGEST_NAMES) if hosts else ""


def _files(given: Given) -> list[str]:
    """Return the result files, each once."""
    return list(dict.fromkeys(find_files(given["sources"] or [given["directory"]])))


def _terms(given: Given) -> ReportTerms:
    try:
        max_age = duration_of(given["max_age"]) if given["max_age"] else None
    except InputError as error:
        raise InputError(error.what, option("max_age"), error.remedy) from error
    baseline = read_baseline(given["baseline"], given["fleet"]) if given["baseline"] else None
    return ReportTerms(given["title"], time.time(), given["fleet"], given["hosts"], max_age, baseline)
