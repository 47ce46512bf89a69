# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/plugin_utils/report/assemble.py: the parts of a report, its states, its outcome and its gates.

Which results are in it is in test_assemble_choice.py, waivers and earlier reports in test_assemble_marks.py.
"""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.assemble import GATES, OUTCOMES, fails
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.checks import CHECKS
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.results import Problem
from ansible_collections.kubenode.cpu_manager.tests.machines.answers import (
    ANSWER,
    CLEAN_ANSWER,
    LOOKED_AT,
    check_report,
    result,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.reports import node as empty_node

from .assembled import DANGER, DRIFT, FAILED, NO_KUBELET, PROBLEM, UNREACHABLE, check_consistency, made, outcome, states

# --- the whole ------------------------------------------------------------------------------------


def test_a_report() -> None:
    report = made(ANSWER, CLEAN_ANSWER, FAILED, PROBLEM, fleet="east", title="Drift", hosts=["a", "b", "c", "z"])
    check_report(report)
    check_consistency(report)
    assert list(report) == [
        "schema_version",
        "kind",
        "fleet",
        "title",
        "made",
        "summary",
        "groups",
        "problems",
        "gone",
        "checks",
        "nodes",
    ]
    assert (report["fleet"], report["title"], report["made"]) == ("east", "Drift", "2026-11-23T15:04:05Z")
    assert report["summary"] == {
        "nodes": 4,
        "states": {"failed": 1, "missing": 1, "drift": 1, "clean": 1},
        "checks": [
            {"check": check, "severity": CHECKS[check].severity, "nodes": 1, "waived": 0, "new": 0}
            for check in ("change-refused", "policy-differs", "noted", "reservation-splits-cores", "settings-elsewhere")
        ],
        "gone": None,
        "outcome": "drift",
        "exit_status": 2,
    }
    assert report["problems"] == [PROBLEM._asdict()]
    assert report["checks"]["policy-differs"] == {
        "severity": "warning",
        "title": "The CPU manager's policy is not the wanted one",
        "why": CHECKS["policy-differs"].why,
        "remedy": CHECKS["policy-differs"].remedy_for(),
        "page": "docs/docsite/rst/checks.rst#policy-differs",
    }


PLACE = {
    "pod": "a/b",
    "use": "exclusive",
    "cores": "split",
    "throttled_percent": None,
    "since": "",
}


def test_a_node() -> None:
    node = made(ANSWER)["nodes"][0]
    findings, ways = node.pop("findings"), node.pop("ways")
    assert node == {
        "host": "a",
        "state": "drift",
        "looked_at": LOOKED_AT,
        "group": 0,
        "message": "",
        "actions": "stop kubelet, start kubelet",
        "refusals": ["config.yaml: it is a link; remove it"],
        "elsewhere": {"name": "kubespray", "why": "its next run writes the file anew", "snippet": "a: 1\n"},
        "containers": {"version": "2", "kept": "40", "different": "1", "skipped": "12"},
        "pools": {
            "online": "0-7",
            "reserved": "0,4",
            "exclusive": "1-2",
            "shared": "3",
            "stranded": "3",
            "offline": "",
            "isolated": "",
            "reserved_wanted": "0-1",
        },
        "owners": [
            ["exclusive", "a/b/c", "1"],
            ["exclusive", "a/b/d", "2"],
            ["reserved", "", "0,4"],
            ["shared", "", "3,5-7"],
        ],
        "places": [
            {**PLACE, "container": "c", "cpus": "1", "numa_nodes": "0", "caches": "0"},
            {**PLACE, "container": "d", "cpus": "2", "numa_nodes": "1", "caches": "1"},
        ],
    }
    assert len(findings) == 5
    assert [row["subject"] for row in ways] == ["cpu_manager_policy", "cpu_manager_reconcile_period"]


def test_a_node_that_was_not_read() -> None:
    node = made(FAILED)["nodes"][0]
    assert node == empty_node("a", "failed", looked_at=LOOKED_AT, message="a: broken")


def test_what_is_as_wanted_has_no_ways() -> None:
    """They are most nodes, and nobody looks there."""
    assert made({**CLEAN_ANSWER, "notes": ["x"]})["nodes"][0]["ways"] == []


@pytest.mark.parametrize("use", ["mine", "", None, 7, ["exclusive"], "\x1b"])
def test_an_owner_of_no_use(use: Any) -> None:
    answer = {**CLEAN_ANSWER, "owners": [{"use": use, "owner": "a\x1b", "cpus": None}, "x"]}
    assert made(answer)["nodes"][0]["owners"] == [["unknown", "a\\x1b", ""], ["unknown", "", ""]]


# --- states and outcomes --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "state", "worst"),
    [
        (CLEAN_ANSWER, "clean", "clean"),
        ({"status": "nothing wanted"}, "nothing wanted", "clean"),
        (NO_KUBELET, "no kubelet", "clean"),
        (DRIFT, "drift", "drift"),
        (DANGER, "refused", "danger"),
        (FAILED, "failed", "unknown"),
        (UNREACHABLE, "unreachable", "unknown"),
        # A note is no drift.
        ({**CLEAN_ANSWER, "notes": ["x"]}, "clean", "clean"),
        # What is against the node's own status counts.
        ({**DRIFT, "status": "clean"}, "drift", "drift"),
        ({**DANGER, "status": "nothing wanted"}, "refused", "danger"),
        (
            {**CLEAN_ANSWER, "notes": ["x"], "note_checks": ["kubelet-not-restarted"]},
            "drift",
            "drift",
        ),
        (
            {**CLEAN_ANSWER, "notes": ["x"], "note_checks": ["kubelet-would-not-start"]},
            "refused",
            "danger",
        ),
        ({**CLEAN_ANSWER, "refusals": [{"text": "no"}]}, "drift", "drift"),
        ({**NO_KUBELET, "notes": ["x"], "note_checks": ["kubelet-missing"]}, "no kubelet", "clean"),
        ({**NO_KUBELET, "notes": ["x"], "note_checks": ["change-interrupted"]}, "drift", "drift"),
        # A state that only a report gives.
        ({"status": "missing"}, "failed", "unknown"),
        ({"status": "stale"}, "failed", "unknown"),
        ({"status": "refused"}, "failed", "unknown"),
        ({"status": "Clean"}, "failed", "unknown"),
        ({"status": ["clean"]}, "failed", "unknown"),
        ({"status": None}, "failed", "unknown"),
        ({"status": ""}, "failed", "unknown"),
        ({}, "unreachable", "unknown"),
    ],
)
def test_state_and_outcome(answer: Any, state: str, worst: str) -> None:
    report = made(answer)
    check_consistency(report)
    assert states(report) == {"a": state}
    assert outcome(report) == (worst, OUTCOMES[worst])


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (FAILED, "a: broken"),
        ({"failed": True}, "failed without a message"),
        ({"failed": True, "msg": ""}, "the node gave no reason"),
        ({"unreachable": True, "msg": "no\r\nroute\r"}, "no\nroute"),
        # A node cannot say of itself that it was not read.
        ({"status": "unreachable", "message": ""}, "the answer of the node has the status unreachable, which is none"),
        ({"status": "failed", "msg": "x"}, "the answer of the node has the status failed, which is none"),
        ({"status": {"a": "\x1b"}}, "the answer of the node has the status {a: \\u001b}, which is none"),
    ],
)
def test_a_node_that_was_not_read_has_a_message(answer: Any, message: str) -> None:
    report = made(answer)
    check_consistency(report)
    assert report["nodes"][0]["message"] == message


def test_the_running_kubelet_counts() -> None:
    report = made(result("a", CLEAN_ANSWER, running={"cpu_manager_policy": "none"}))
    assert (states(report), outcome(report)) == ({"a": "drift"}, ("drift", 2))
    assert states(made(result("a", CLEAN_ANSWER, running={"cpu_manager_policy": "static"}))) == {"a": "clean"}


def test_the_worst_counts() -> None:
    order = [(CLEAN_ANSWER, "clean"), (FAILED, "unknown"), (DRIFT, "drift"), (DANGER, "danger")]
    for count in range(1, 5):
        for chosen in itertools.permutations(order, count):
            worst = max((name for _answer, name in chosen), key=list(OUTCOMES).index)
            report = made(*(answer for answer, _name in chosen))
            assert outcome(report) == (worst, OUTCOMES[worst])


def test_the_exit_statuses() -> None:
    assert OUTCOMES == {"clean": 0, "unknown": 1, "drift": 2, "danger": 3}


def test_a_file_that_was_not_used_is_never_clean() -> None:
    assert outcome(made(CLEAN_ANSWER, PROBLEM)) == ("unknown", 1)
    assert outcome(made(DRIFT, PROBLEM)) == ("drift", 2)
    report = made(Problem("nodes/\x1b\udcff.json", "x\n\x00", ""))
    assert report["problems"] == [{"file": "nodes/\\x1b\\udcff.json", "text": "x\n\\x00", "remedy": ""}]
    check_report(report)


@pytest.mark.parametrize(
    ("results", "failing"),
    [
        ([CLEAN_ANSWER], []),
        ([{"status": "nothing wanted"}, NO_KUBELET], []),
        ([{**CLEAN_ANSWER, "notes": ["x"]}], []),
        ([DRIFT], ["drift"]),
        ([DANGER], ["danger", "drift"]),
        ([DANGER, DRIFT], ["danger", "drift"]),
        ([FAILED], ["danger", "drift", "unread"]),
        ([UNREACHABLE], ["danger", "drift", "unread"]),
        ([PROBLEM, CLEAN_ANSWER], ["danger", "drift", "unread"]),
        ([], ["danger", "drift", "unread"]),
        # A fleet with drift of which a part was not read may have a danger there.
        ([DRIFT, FAILED], ["danger", "drift", "unread"]),
        ([DRIFT, PROBLEM], ["danger", "drift", "unread"]),
    ],
)
def test_gates(results: list[Any], failing: list[str]) -> None:
    report = made(*results)
    assert [gate for gate in GATES if fails(report, gate)] == failing


@pytest.mark.parametrize("terms", [{"hosts": ["a", "z"]}, {"max_age": 1}])
def test_a_gate_stops_what_is_missing_or_stale(terms: Any) -> None:
    report = made(CLEAN_ANSWER, **terms)
    assert fails(report, "danger")
    assert fails(report, "drift")
    assert fails(report, "unread")
    assert not fails(report, "never")
