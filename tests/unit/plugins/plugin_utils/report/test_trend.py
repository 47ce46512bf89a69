# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.terminal import WIDEST, fleet_table
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.trend import (
    FIRST,
    MOST,
    point_of,
    read_history,
    trend,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.reports import finding, node, report


def fleet(good: int, *others: Any, day: int = 23, **parts: Any) -> Any:
    nodes = [*others, *(node("worker-%d" % number) for number in range(good))]
    return report(nodes, made="2026-11-%02dT15:04:05Z" % day, **parts)


def drifting(count: int, check: str = "policy-differs", state: str = "drift", **parts: Any) -> list[Any]:
    return [node("bad-%d" % number, state, findings=[finding(check, **parts)]) for number in range(count)]


@pytest.mark.parametrize(
    ("given", "grade"),
    [
        (fleet(20), "A"),
        (fleet(19, *drifting(1)), "B"),
        (fleet(18, *drifting(1), node("gone", "missing")), "C"),
        (fleet(15, *drifting(5)), "D"),
        (fleet(999, *drifting(1, "checkpoint-refused", "refused")), "F"),
        (fleet(0, node("a", "no kubelet"), node("b", "nothing wanted")), ""),
        (fleet(0, *drifting(11), node("bastion", "no kubelet")), "D"),
        (fleet(999, node("gone", "unreachable")), "B"),
        (fleet(0), ""),
    ],
)
def test_grades(given: Any, grade: str) -> None:
    assert point_of(given).grade == grade


def test_reports_are_columns_and_checks_are_lines() -> None:
    history = [point_of(fleet(16, *drifting(4, "cpuset-differs"), day=day)) for day in (20, 21)]
    old = drifting(1, first_seen="2026-11-20T15:04:05Z", since="known")
    new = [node("new", "drift", findings=[finding(first_seen="2026-11-23T15:04:05Z", since="new")])]
    assert trend(fleet(38, *old, *new), history).splitlines() == [
        "                                   11-20 11-21 11-23  DAYS",
        "grade                                  C     C     B",
        "nodes as wanted, %                    80    80    95",
        "policy-differs                         0     0     2     3",
        "cpuset-differs                         4     4     0",
        "Grade B: 38 of 40 nodes as wanted.",
    ]


def test_a_single_report_and_none_at_all() -> None:
    assert trend(fleet(1), []).splitlines()[-1] == "Grade A: 1 of 1 node as wanted."
    assert trend(fleet(0), []).splitlines()[1:] == [
        "grade                                  -",
        "nodes as wanted, %                     -",
        FIRST,
        "No node was compared with wanted settings, so there is no grade.",
    ]
    bastion = trend(fleet(0, *drifting(11), node("bastion", "no kubelet")), [])
    assert bastion.splitlines()[-1] == "Grade D: 0 of 11 nodes as wanted."
    danger = trend(fleet(1, *drifting(1, "checkpoint-refused", "refused")), [])
    assert "Grade F: 1 of 2 nodes as wanted; a kubelet would not start" in danger


def test_notes_are_no_lines_and_later_reports_no_columns() -> None:
    noted = node("a", findings=[finding("reservation-splits-cores")])
    later = point_of(fleet(1, day=25))
    assert trend(fleet(0, noted), [later]) == trend(fleet(1), [])


def test_the_last_ones_fit_in_a_terminal() -> None:
    history = [point_of(fleet(1, *drifting(1), day=day)) for day in range(1, 23)]
    lines = trend(fleet(1), history).splitlines()
    assert lines[0].split() == ["11-%02d" % day for day in range(24 - MOST, 24)] + ["DAYS"]
    assert max(map(len, lines)) <= WIDEST


def test_reports_are_found_below_directories(tmp_path: Path) -> None:
    for day, name in ((21, "b"), (20, "c/d"), (22, "a"), (19, "other")):
        place = tmp_path / name
        place.mkdir(parents=True)
        given = fleet(1, day=day, fleet="us" if name == "other" else "eu")
        (place / "drift.json").write_text(json.dumps(given), encoding="utf-8")
        (place / "other.json").write_text("{", encoding="utf-8")
    points = read_history([str(tmp_path), str(tmp_path / "a/drift.json")], "eu")
    assert [point.made[8:10] for point in points] == ["20", "21", "22"]
    assert len(read_history([str(tmp_path)], "")) == 4


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "is no JSON, or cut off"),
        ("[]", "is no drift report"),
        (json.dumps(report(made="yesterday")), "is not a time"),
    ],
)
def test_what_is_no_report(content: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "drift.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=said) as caught:
        read_history([str(tmp_path)], "")
    assert caught.value.where == str(path)


def test_on_its_first_day_a_trend_says_so_and_no_directory_has_a_report(tmp_path: Path) -> None:
    assert read_history([str(tmp_path)], "") == []
    shown = trend(fleet(1), read_history([str(tmp_path)], "")).splitlines()
    assert shown[-2:] == [FIRST, "Grade A: 1 of 1 node as wanted."]
    assert FIRST not in trend(fleet(1), [point_of(fleet(2, day=21))])
    made_with_it = str(tmp_path / "reports")
    assert read_history([made_with_it], "", made_with_it + "/2026-11-27") == []
    with pytest.raises(InputError, match="there is no such file or directory"):
        read_history([str(tmp_path / "reprots")], "")


@pytest.mark.parametrize(
    "summary",
    [None, [], {"states": [], "checks": {}}, {"states": {"clean": "x", "drift": -1}, "checks": [None, {"check": 7}]}],
)
def test_a_report_that_was_edited_is_no_error(summary: Any) -> None:
    point = point_of({**report(), "summary": summary})
    assert (point.nodes, point.as_wanted, point.grade) == (0, 0, "")
    assert trend(report(), [point])


def test_the_name_of_a_check_writes_nothing_to_the_terminal() -> None:
    rows = [{"check": "\x1b[2J" + "x" * 200, "severity": "warning", "nodes": 1}]
    hostile = {**report(made="2026-11-20T15:04:05Z"), "summary": {"states": {"clean": 1}, "checks": rows}}
    shown = trend(fleet(1), [point_of(hostile)])
    assert "\x1b" not in shown
    assert max(map(len, shown.splitlines())) <= WIDEST


def test_the_table_says_for_how_long_a_check_is_found() -> None:
    ages = [
        finding(first_seen="2026-11-%02dT15:04:05Z" % day, since="known" if day < 23 else "new") for day in (23, 21, 22)
    ]
    nodes = [node("worker-%d" % number, "drift", findings=[found]) for number, found in enumerate(ages)]
    (line,) = (
        line for line in fleet_table(report(nodes, problems=[])).splitlines() if line.startswith("policy-differs (")
    )
    assert "; for 2 days" in line
    nodes[1]["findings"][0]["waived"] = {"reason": "", "until": ""}
    assert "; for 1 day\n" in fleet_table(report(nodes, problems=[]))
    assert "; for" not in fleet_table(report(nodes[:1], problems=[]))
