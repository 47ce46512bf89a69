# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a report marks in its findings: those that are waived, and those that are new since an earlier report."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.answers import time_of
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.assemble import OUTCOMES, Baseline, fails
from ansible_collections.kubenode.cpu_manager.tests.machines.answers import CLEAN_ANSWER, MADE, check_report, result

from .assembled import DANGER, DRIFT, FAILED, WAIVER, check_consistency, made, outcome, states

# --- waivers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "check", "state"), [(DRIFT, "policy-differs", "drift"), (DANGER, "kubelet-would-not-start", "refused")]
)
def test_a_waived_finding_counts_for_nothing_until_its_last_day_is_over(answer: Any, check: str, state: str) -> None:
    waivers = [{**WAIVER, "check": check}]
    for today, is_waived in (("2026-11-23", True), ("2026-12-31", True), ("2027-01-01", False)):
        report = made(result("a", answer, today + "T00:00:00Z", waivers=waivers), made=day(today) + 86399)
        check_consistency(report)
        assert states(report) == {"a": "clean" if is_waived else state}
        assert outcome(report)[1] == (0 if is_waived else OUTCOMES[outcome(report)[0]])
        assert fails(report, "drift") is not is_waived
        row, *ended = report["summary"]["checks"]
        assert [note["check"] for note in ended] == ([] if is_waived else ["waiver-ended"])
        assert (row["nodes"], row["waived"]) == ((0, 1) if is_waived else (1, 0))
        # It is shown, whether it counts or not.
        finding = report["nodes"][0]["findings"][0]
        assert bool(finding["waived"]) is is_waived


def day(date: str) -> int:
    return next(second for second in range(1795392000, 1795392000 + 86400 * 60, 86400) if time_of(second)[:10] == date)


def test_a_waiver_of_one_finding_leaves_the_others() -> None:
    answer = {**DRIFT, "drift": [*DRIFT["drift"], {"subject": "isolated"}]}
    report = made(result("a", answer, waivers=[WAIVER]))
    assert (states(report), outcome(report)) == ({"a": "drift"}, ("drift", 2))
    assert [bool(finding["waived"]) for finding in report["nodes"][0]["findings"]] == [True, False]


def test_a_waiver_is_of_its_node_alone() -> None:
    report = made(result("a", DRIFT, waivers=[WAIVER]), result("b", DRIFT))
    assert states(report) == {"a": "clean", "b": "drift"}
    (row,) = report["summary"]["checks"]
    assert (row["nodes"], row["waived"]) == (1, 1)


def test_a_node_cannot_waive_anything() -> None:
    assert states(made({**DRIFT, "waivers": [WAIVER], "waived": True})) == {"a": "drift"}


# --- groups and the baseline ----------------------------------------------------------------------


def test_a_report_after_an_earlier_one() -> None:
    before = made(DRIFT, DRIFT, DRIFT, DRIFT)
    answer = {**DRIFT, "drift": [*DRIFT["drift"], {"subject": "isolated"}]}
    now = made(CLEAN_ANSWER, answer, FAILED, result("z", DRIFT), baseline=Baseline(before))
    check_report(now)
    check_consistency(now)
    assert now["summary"]["gone"] == 1
    # Of the third node nothing is known, and the fourth is not in this report.
    assert now["gone"] == [{"host": "a", "check": "policy-differs", "subject": "cpu_manager_policy"}]
    marks = {node["host"]: [finding["since"] for finding in node["findings"]] for node in now["nodes"]}
    assert marks == {"a": [], "b": ["known", "new"], "c": [], "z": ["new"]}
    (later,) = made(answer, baseline=Baseline(now), made=MADE + 60)["nodes"]
    assert [finding["first_seen"] for finding in later["findings"]] == [time_of(MADE + 60)] * 2
    (later,) = made(result("b", answer), baseline=Baseline(now), made=MADE + 60)["nodes"]
    assert [finding["first_seen"] for finding in later["findings"]] == [time_of(MADE)] * 2
    rows = {row["check"]: row["new"] for row in now["summary"]["checks"]}
    assert rows == {"policy-differs": 1, "isolated-cpus-differ": 1}


def test_without_a_baseline_nothing_is_new() -> None:
    report = made(DRIFT)
    assert report["summary"]["gone"] is None
    assert report["gone"] == []
    assert report["nodes"][0]["findings"][0]["since"] == ""


def test_a_waived_finding_is_known_as_well() -> None:
    before = made(result("a", DRIFT, waivers=[WAIVER]))
    now = made(DRIFT, baseline=Baseline(before))
    assert now["nodes"][0]["findings"][0]["since"] == "known"
