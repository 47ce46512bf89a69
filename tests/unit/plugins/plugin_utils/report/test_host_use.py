# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/plugin_utils/report/host_use.py: is what is reserved what the host uses?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.assemble import ReportTerms, assemble
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.host_use import means_of, verdict_of
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.markdown import json_form
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.results import Result
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.trend import (
    read_history,
    reservations,
    verdicts,
)
from ansible_collections.kubenode.cpu_manager.tests.docs.pages import GUIDES
from ansible_collections.kubenode.cpu_manager.tests.machines.answers import CLEAN_ANSWER, LOOKED_AT, MADE

DAY = 86400
US = 10**6


def reading(day: float, used: float = 0.0, **more: Any) -> Any:
    """After so many days, of which the host used so many CPUs on the whole."""
    pods = int(9 * day * DAY * US)
    found = {"boot": "a", "uptime": day * DAY, "total_us": pods + int(used * day * DAY * US), "pods_us": pods}
    return {**found, "pressure_us": None, "memory_bytes": None, "cpus": 48, "reserved": 4, **more}


def daily(used: float, days: int, waited: float | None = None) -> list[Any]:
    pressure = [None if waited is None else int(waited * day * DAY * US) for day in range(days + 1)]
    return [reading(day, used, pressure_us=pressure[day]) for day in range(days + 1)]


MEANS = " (means of up to 24.0 hours: shorter peaks are not seen)"
VERDICTS: list[tuple[list[Any], str]] = [
    (
        daily(2.6, 14),
        "reserves 4 CPUs, the host used 2.6 in the busiest of 14 intervals over 14.0 days; enough" + MEANS,
    ),
    (
        daily(5.2, 2),
        "reserves 4 CPUs, the host used 5.2 in the busiest of 2 intervals over 2.0 days; too small" + MEANS,
    ),
    (
        daily(2.6, 2, waited=0.3),
        (
            "reserves 4 CPUs, the host used 2.6 in the busiest of 2 intervals over 2.0 days; too small: something"
            " waited for a CPU in 30 % of the time"
        )
        + MEANS,
    ),
    (
        daily(0.5, 14),
        "reserves 4 CPUs, the host used 0.5 in the busiest of 14 intervals over 14.0 days; more than enough" + MEANS,
    ),
    # A few samples do not say that it is more than enough.
    (daily(0.5, 3), "reserves 4 CPUs, the host used 0.5 in the busiest of 3 intervals over 3.0 days; enough" + MEANS),
    (
        daily(2.6, 120),
        "reserves 4 CPUs, the host used 2.6 at the 99th per cent of 120 intervals over 120.0 days; enough" + MEANS,
    ),
    (
        [reading(1)],
        "reserves 4 CPUs; what the host uses takes two reports of one boot with the look throttling: not known",
    ),
]


@pytest.mark.parametrize(("readings", "text"), VERDICTS)
def test_what_is_said_of_a_reservation(readings: list[Any], text: str) -> None:
    assert verdict_of(readings) == text


@pytest.mark.parametrize(
    "after",
    [
        {"boot": "b"},
        {"uptime": 1},  # a clock that goes backwards
        {"total_us": 5},
        {"pods_us": 5},  # the cgroup of all pods was made anew
        {"total_us": 1 << 61},  # more than the node has
    ],
)
def test_counters_of_which_no_rate_follows(after: Any) -> None:
    changed: Any = dict(reading(2, 2), **after)
    assert list(means_of([reading(1, 2), changed])) == []


def report(day: float, used: float, **more: Any) -> Any:
    counters: dict[str, Any] = {**reading(day, used), **more}
    answer: Any = {**CLEAN_ANSWER, "cpus": {"online": "0-47", "reserved": "0-1,24-25"}}
    looks = {"throttling": {"containers": [], "host": counters}}
    return assemble([Result("worker-1", LOOKED_AT, answer, {}, [], looks)], ReportTerms("", MADE + day * DAY))


def test_two_reports_of_a_node_give_a_rate(tmp_path: Path) -> None:
    (tmp_path / "drift.json").write_text("".join(json_form(report(1, 2.6))), encoding="utf-8")
    said = reservations(report(2, 2.6), read_history([str(tmp_path)], ""))
    assert (
        said
        == "worker-1: reserves 4 CPUs, the host used 2.6 in the busiest of 1 interval over 1.0 days; enough" + MEANS
    )
    assert said in " ".join((GUIDES / "reserve_cpus.rst").read_text("utf-8").split())


def test_what_is_proposed_is_compared_with_what_was_used(tmp_path: Path) -> None:
    """The last report has what was reserved then."""
    for day in (1, 2):
        (tmp_path / ("%d.json" % day)).write_text("".join(json_form(report(day, 2.6))), encoding="utf-8")
    points = read_history([str(tmp_path / "1.json"), str(tmp_path / "2.json")], "")
    said = verdicts(points, {"worker-1": 2, "worker-2": 4})
    assert said == [
        "worker-1: reserves 2 CPUs, the host used 2.6 in the busiest of 1 interval over 1.0 days; too small" + MEANS
    ]
    assert verdicts([], {"worker-1": 2}) == []


HOSTILE: list[dict[str, Any]] = [
    {"boot": 5, "uptime": "x"},
    {"uptime": float("inf")},
    {"total_us": -1},
    {"pods_us": True},
    {"total_us": 10**400},
    {"uptime": None},
]


@pytest.mark.parametrize("more", HOSTILE)
def test_counters_that_cannot_be_are_left_out(tmp_path: Path, more: dict[str, Any]) -> None:
    made = report(2, 2, **more)
    assert "host_use" not in made["nodes"][0]
    assert reservations(made, []).startswith("no node was looked at")
    # A report that somebody has edited.
    whole = json.loads("".join(json_form(report(1, 2))))
    whole["nodes"][0]["host_use"].update(more)
    (tmp_path / "drift.json").write_text(json.dumps(whole).replace("Infinity", "1e999"), encoding="utf-8")
    assert "not known" in reservations(report(2, 2), read_history([str(tmp_path)], ""))
