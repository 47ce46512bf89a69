# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Any results make a report, and any report is a baseline, whatever a node answers and however much."""

from __future__ import annotations

import copy
import json
from typing import Any, Iterable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.answers import time_of
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.assemble import (
    Baseline,
    ReportTerms,
    assemble,
    is_open,
)
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.checks import CHECKS
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.markdown import json_form
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.results import Problem, Result
from ansible_collections.kubenode.cpu_manager.tests.machines.answers import (
    MADE,
    STATUSES,
    answers,
    check_report,
    json_values,
    result,
)

from .assembled import PROBLEM, WAIVER, check_consistency, made, outcome


def results_of(looks: Iterable[Any]) -> list[Result | Problem]:
    return [
        PROBLEM
        if look is None
        else Result(look[0], look[1], look[2] if isinstance(look[2], dict) else {"status": look[2]}, look[3], look[4])
        for look in looks
    ]


some_hosts = st.one_of(st.sampled_from(["a", "b", "worker-1"]), st.text())
moments = st.integers(int(MADE) - 10**6, int(MADE) + 10**5).map(time_of)
some_running = st.dictionaries(
    st.one_of(st.just("cpu_manager_policy"), st.just("cpu_manager_reconcile_period"), st.text(max_size=3)), json_values
)
some_waivers = st.lists(
    st.one_of(
        json_values,
        st.builds(
            lambda check, until, key, value: {
                **WAIVER,
                "check": check,
                "until": until,
                **({key: value} if key else {}),
            },
            st.sampled_from(sorted(CHECKS)),
            st.sampled_from(["2026-11-22", "2026-11-23", "2027-01-01"]),
            st.sampled_from(["", "reason", "until", "subject", "check"]),
            json_values,
        ),
    ),
    max_size=3,
)
some_results = st.lists(
    st.one_of(st.none(), st.tuples(some_hosts, moments, answers, some_running, some_waivers)), max_size=5
).map(results_of)


@given(
    some_results,
    st.one_of(st.none(), st.lists(some_hosts, max_size=3)),
    st.one_of(st.none(), st.integers(0, 10**6)),
    st.text(),
)
def test_any_results_make_a_report(
    results: Sequence[Result | Problem], hosts: list[str] | None, max_age: float | None, title: str
) -> None:
    given_results = copy.deepcopy(results)
    report = assemble(iter(results), ReportTerms(title, MADE, title, hosts, max_age))
    assert results == given_results
    check_report(report)
    check_consistency(report)
    assert json.loads("".join(json_form(report))) == report
    if hosts is not None:
        assert report["summary"]["nodes"] == len(set(hosts))


@given(some_results, some_results)
def test_any_report_is_a_baseline(before: Sequence[Result | Problem], now: Sequence[Result | Problem]) -> None:
    first = assemble(before, ReportTerms("T", MADE))
    again = assemble(before, ReportTerms("T", MADE, baseline=Baseline(first)))
    # Hosts that are shown alike share their findings.
    assert {finding["since"] for node in again["nodes"] for finding in node["findings"]} <= {"known"}
    if len({node["host"] for node in first["nodes"]}) == len(first["nodes"]):
        assert again["summary"]["gone"] == 0
    second = assemble(now, ReportTerms("T", MADE, baseline=Baseline(first)))
    check_report(second)
    check_consistency(second)
    assert {finding["since"] for node in second["nodes"] for finding in node["findings"]} <= {"known", "new"}


@given(answers, st.sampled_from(sorted(CHECKS)))
def test_a_waiver_changes_only_what_is_waived(answer: Any, check: str) -> None:
    answer = answer if isinstance(answer, dict) else {}
    without = made(answer)
    report = made(result("a", answer, waivers=[{**WAIVER, "check": check}]))
    for finding in report["nodes"][0]["findings"]:
        assert bool(finding["waived"]) is (finding["check"] == check)
        finding["waived"] = None
    assert report["nodes"][0]["findings"] == without["nodes"][0]["findings"]
    others = [finding for finding in without["nodes"][0]["findings"] if finding["check"] != check]
    assert (outcome(report)[0] in ("drift", "danger")) is any(map(is_open, others))


@pytest.mark.parametrize("status", STATUSES)
def test_a_huge_answer_has_a_limited_report(status: str) -> None:
    text = "\U000e0001" * 100000
    answer = {
        "status": status,
        "drift": [{"subject": text, "found": "", "wanted": ""}] + [{}] * 5000,
        "notes": ["x"] * 5000,
        "refusals": [{"text": "x"}] * 5000,
        "owners": [{"use": "shared", "cpus": text}] + [{"cpus": "0"}] * 5000,
        "found": {str(number): "x" for number in range(5000)},
        "wanted": {str(number): "x" for number in range(5000)},
        "kernel": text,
        "cpus": {"online": text},
    }
    report = made(answer)
    check_report(report)
    node = report["nodes"][0]
    assert len(node["findings"]) <= 3000
    assert len(node["owners"]) <= 1000
    assert len(json.dumps(report)) < 4_000_000
