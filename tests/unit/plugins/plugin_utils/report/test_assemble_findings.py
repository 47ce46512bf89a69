# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/plugin_utils/report/assemble.py: what an answer has, its notes, and which are waived.

What further looks find is in test_assemble_findings_of_looks.py.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.assemble import is_open, waive
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.checks import CHECKS, SEVERITIES
from ansible_collections.kubenode.cpu_manager.tests.machines.answers import (
    ANSWER,
    answers,
    can_be_shown,
    json_values,
    texts_in,
)

from .found_answers import KEYS, TODAY, checks, found, noted

# --- what an answer has ---------------------------------------------------------------------------


def test_a_finding_of_each_kind() -> None:
    assert checks(ANSWER) == [
        "policy-differs",
        "change-refused",
        "reservation-splits-cores",
        "noted",
        "settings-elsewhere",
    ]
    policy, refusal, _splits, _note, elsewhere = found(ANSWER)
    assert policy == {
        "check": "policy-differs",
        "severity": "warning",
        "subject": "cpu_manager_policy",
        "wanted": "static",
        "found": "none",
        "source": "/var/lib/kubelet/config.yaml",
        "text": "",
        "remedy": "set it",
        "waived": None,
        "since": "",
        "first_seen": "",
    }
    assert list(policy) == KEYS
    assert refusal["text"] == "config.yaml: it is a link; remove it"
    assert (elsewhere["subject"], elsewhere["text"]) == ("kubespray", "its next run writes the file anew")


def test_nothing_is_found_on_a_node_that_is_as_wanted() -> None:
    assert found({"status": "clean", "drift": [], "notes": [], "refusals": [], "elsewhere": None}) == []


def test_the_remedy_of_the_check_stands_in_for_one_of_the_node() -> None:
    answer = {
        "status": "drift",
        "drift": [{"subject": "topology_manager_scope", "found": "pod", "wanted": "container"}],
    }
    (finding,) = found(answer)
    assert finding["remedy"] == CHECKS["topology-manager-differs"].remedy_for("topology_manager_scope")
    assert "kubelet_topology_manager_scope" in finding["remedy"]


def test_the_worst_are_first_and_else_the_order_stays() -> None:
    subjects = ["isolated", "checkpoint", "cpu_manager_policy", "start"]
    answer = {"status": "drift", "drift": [{"subject": subject} for subject in subjects], "notes": ["x"]}
    assert [finding["subject"] for finding in found(answer)] == [
        "checkpoint",
        "start",
        "isolated",
        "cpu_manager_policy",
        "",
    ]


def test_a_state_that_does_not_go_with_the_wanted_settings_is_no_danger() -> None:
    """As long as the kubelet takes it with the settings that it has now."""
    rows = [
        {"subject": subject, "refused_now": now} for subject in ("checkpoint", "memory_state") for now in (True, False)
    ]
    findings = found({"status": "drift", "drift": rows})
    assert [(finding["check"], finding["severity"]) for finding in findings] == [
        ("checkpoint-refused", "danger"),
        ("memory-state-refused", "danger"),
        ("checkpoint-outdated", "warning"),
        ("memory-state-outdated", "warning"),
    ]
    assert checks({"status": "drift", "drift": [{"subject": "start", "refused_now": False}]}) == [
        "kubelet-would-not-start"
    ]


@pytest.mark.parametrize(
    ("subject", "kind", "is_told"),
    [
        ("configuration", "configuration", True),
        ("start", "would_not_start", True),
        ("start", "assignments", False),
        ("start", "", False),
        ("cpu_manager_policy", "would_not_start", False),
    ],
)
def test_a_refusal_that_says_the_same_as_a_row_is_left_out(subject: str, kind: str, is_told: bool) -> None:
    answer = {"status": "drift", "drift": [{"subject": subject}], "refusals": [{"kind": kind, "text": "x"}]}
    assert ("change-refused" in checks(answer)) is not is_told


def test_a_node_without_a_kubelet_has_notes_alone() -> None:
    answer = {**ANSWER, "status": "no kubelet", "notes": ["x"], "note_checks": ["kubelet-missing"]}
    assert checks(answer, {"cpu_manager_policy": "static"}) == ["kubelet-missing"]


def test_a_row_that_is_none_is_a_finding() -> None:
    assert checks({"status": "drift", "drift": ["text", None, {}]}) == ["field-differs"] * 3


# --- notes ----------------------------------------------------------------------------------------


def test_notes_have_the_check_beside_them() -> None:
    assert noted("a", "b", ids=["field-ignored", "version-untested"]) == [
        ("field-ignored", "a"),
        ("version-untested", "b"),
    ]
    assert [name for name, _text in noted("x", ids=["kubelet-would-not-start"])] == ["kubelet-would-not-start"]


@pytest.mark.parametrize(
    "ids",
    [
        [],
        [""],
        None,
        "field-ignored",
        ["nonsense"],
        [None],
        [["field-ignored"]],
        [{"field-ignored": 1}],
    ],
)
def test_a_note_without_a_check_of_notes(ids: Any) -> None:
    assert noted("a", ids=ids) == [("noted", "a")]


def test_more_ids_than_notes_are_left_out() -> None:
    assert noted("a", ids=["field-ignored", "cores-uneven"]) == [("field-ignored", "a")]
    assert noted(ids=["field-ignored"]) == []
    assert noted("a", "b", ids=["field-ignored"]) == [("field-ignored", "a"), ("noted", "b")]


# --- the running kubelet --------------------------------------------------------------------------


def test_the_running_kubelet_is_compared_with_its_files() -> None:
    answer = {"status": "clean", "found": {"cpu_manager_policy": "none", "topology_manager_scope": "pod"}}
    (finding,) = found(answer, {"cpu_manager_policy": "static", "topology_manager_scope": "pod"})
    assert [finding[key] for key in ("check", "subject", "wanted", "found", "source")] == [
        "running-kubelet-differs",
        "cpu_manager_policy",
        "none",
        "static",
        "configz of the running kubelet",
    ]


@pytest.mark.parametrize(
    ("name", "file", "running"),
    [
        # The kubelet writes durations and amounts in a form of its own.
        ("cpu_manager_reconcile_period", "60s", "1m0s"),
        ("cpu_cfs_quota_period", "0.1s", "100ms"),
        ("kube_reserved_memory", "1024Mi", "1Gi"),
        ("kube_reserved_cpu", "0.5", "500m"),
        ("reserved_system_cpus", "0,1", "0-1"),
        (
            "reserved_memory",
            [{"numaNode": 0, "limits": {"memory": "1024Mi"}}],
            [{"numaNode": 0, "limits": {"memory": "1Gi"}}],
        ),
        ("cpu_manager_policy", {"hostile": 1}, {"hostile": 1}),
    ],
)
def test_values_that_mean_the_same_do_not_differ(name: str, file: Any, running: Any) -> None:
    assert found({"status": "clean", "found": {name: file}}, {name: running}) == []


@pytest.mark.parametrize(
    ("file", "running"),
    [
        ({}, {"cpu_manager_policy": "static"}),
        ({"cpu_manager_policy": "static"}, {}),
        (None, {"cpu_manager_policy": "static"}),
        ({"no_setting": 1}, {"no_setting": 2}),
    ],
)
def test_only_what_both_have_is_compared(file: Any, running: Any) -> None:
    assert found({"status": "clean", "found": file}, running) == []


# --- waivers --------------------------------------------------------------------------------------

WAIVER = {"check": "policy-differs", "reason": "ticket 4711", "until": "2026-12-31"}


def waived(waivers: Any, answer: Any = None) -> list[str]:
    """Return the checks that are waived."""
    findings = found(ANSWER if answer is None else answer)
    waive(findings, waivers, TODAY)
    return [finding["check"] for finding in findings if finding["waived"]]


def test_a_waived_finding_says_why_and_until_when() -> None:
    findings = found(ANSWER)
    waive(findings, [{**WAIVER, "reason": "a\x1b[31m"}], TODAY)
    assert findings[0]["waived"] == {"reason": "a\\x1b[31m", "until": "2026-12-31"}
    assert not is_open(findings[0])
    assert is_open(findings[1])
    assert [finding["waived"] for finding in findings[1:]] == [None] * 4


@pytest.mark.parametrize(
    ("until", "counts"),
    [
        ("2026-12-31", True),
        ("2026-11-24", True),
        ("2026-11-23", True),  # its last day
        ("2026-11-22", False),
        ("1999-01-01", False),
        ("", False),
        ("never", False),
        ("zzzz", False),
        ("2026-12-32", False),
        ("2026-12-31T00:00:00Z", False),
        (None, False),
        (20261231, False),
        (["2026-12-31"], False),
    ],
)
def test_a_waiver_has_a_last_day(until: Any, counts: bool) -> None:
    assert waived([{**WAIVER, "until": until}]) == (["policy-differs"] if counts else [])


def test_a_waiver_that_has_ended_is_a_note() -> None:
    findings = found(ANSWER)
    ended = {**WAIVER, "subject": "cpu_manager_policy", "reason": "a\x1b", "until": "2026-11-22"}
    waive(findings, [ended, {**WAIVER, "check": "no-check", "until": "2026-11-22"}], TODAY)
    assert [finding["check"] for finding in findings if finding["waived"]] == []
    (note,) = [finding for finding in findings if finding["check"] == "waiver-ended"]
    assert note["subject"] == "policy-differs of cpu_manager_policy"
    assert note["text"] == "the last day was 2026-11-22; the reason was: a\\x1b"
    assert not is_open(note)


def test_a_waiver_that_counts_leaves_no_note() -> None:
    findings = found(ANSWER)
    waive(findings, [WAIVER], TODAY)
    assert "waiver-ended" not in {finding["check"] for finding in findings}


@pytest.mark.parametrize(
    ("subject", "counts"),
    [
        ({}, True),
        ({"subject": None}, True),
        ({"subject": "cpu_manager_policy"}, True),
        ({"subject": "cpu_manager_policy_options"}, False),
        ({"subject": ""}, False),
        ({"subject": ["cpu_manager_policy"]}, False),
    ],
)
def test_a_waiver_may_be_of_one_subject(subject: Any, counts: bool) -> None:
    assert waived([{**WAIVER, **subject}]) == (["policy-differs"] if counts else [])


@pytest.mark.parametrize(
    "waivers",
    [[], None, "text", {}, [None], ["policy-differs"], [{}], [{"until": "2026-12-31"}], [{**WAIVER, "check": []}]],
)
def test_waivers_that_waive_nothing(waivers: Any) -> None:
    assert waived(waivers) == []


def test_all_findings_of_a_check_are_waived() -> None:
    answer = {"status": "drift", "drift": [{"subject": "container a/b/%d" % number} for number in range(3)]}
    assert waived([{**WAIVER, "check": "cpuset-differs"}], answer) == ["cpuset-differs"] * 3
    assert waived([{**WAIVER, "check": "cpuset-differs", "subject": "container a/b/1"}], answer) == ["cpuset-differs"]


def test_a_note_is_never_open() -> None:
    (note,) = found({"status": "clean", "notes": ["x"]})
    assert not is_open(note)


# --- anything -------------------------------------------------------------------------------------


@given(answers, st.dictionaries(st.sampled_from(["cpu_manager_policy", "x"]), json_values), json_values)
def test_any_answer_has_findings(answer: Any, running: Any, waivers: Any) -> None:
    findings = found(answer, running)
    waive(findings, waivers if isinstance(waivers, list) else [{**WAIVER, "reason": waivers}], TODAY)
    for finding in findings:
        assert list(finding) == KEYS
        assert finding["severity"] == CHECKS[finding["check"]].severity
        assert all(isinstance(finding[key], str) for key in KEYS if key != "waived")
        assert finding["remedy"] != ""
        assert all(map(can_be_shown, texts_in(finding)))
    severities = [SEVERITIES.index(finding["severity"]) for finding in findings]
    assert severities == sorted(severities)
