# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.settings import SETTINGS
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.answers import (
    WAYS,
    collected,
    meaning_of,
    ways_of,
)
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.checks import CHECKS
from ansible_collections.kubenode.cpu_manager.tests.machines.answers import (
    ANSWER,
    answers,
    can_be_shown,
    json_values,
    texts_in,
)

POLICY, PERIOD = "cpu_manager_policy", "cpu_manager_reconcile_period"


def odd(name: str, wanted: Any = None, files: Any = None, running: Any = None, checkpoint: Any = None) -> list[str]:
    """Return the ways that stand out in the row of a setting."""
    answer = {
        "wanted": {} if wanted is None else {name: wanted},
        "found": {} if files is None else {name: files},
        "checkpoint": {"policy": checkpoint},
    }
    rows = ways_of(answer, {} if running is None else {name: running})
    return next((row["odd"] for row in rows if row["subject"] == name), [])


def test_rows() -> None:
    assert ways_of(ANSWER, {POLICY: "none"}) == [
        {
            "subject": POLICY,
            "wanted": "static",
            "files": "none",
            "kubelet": "none",
            "checkpoint": "none",
            "kernel": None,
            "odd": ["files", "kubelet", "checkpoint"],
        },
        {
            "subject": PERIOD,
            "wanted": None,
            "files": "10s",
            "kubelet": None,
            "checkpoint": None,
            "kernel": None,
            "odd": [],
        },
    ]


def test_a_container_is_what_the_checkpoint_says_and_the_kernel_enforces() -> None:
    drift = [
        {"subject": "container shop/db-0/server", "wanted": "4-5", "found": "0-7"},
        {"subject": ["container a/b/c"]},
        "container a/b/c",
    ]
    assert ways_of({"drift": drift}, {}) == [
        {
            "subject": "container shop/db-0/server",
            "wanted": None,
            "files": None,
            "kubelet": None,
            "checkpoint": "4-5",
            "kernel": "0-7",
            "odd": ["kernel"],
        }
    ]


@pytest.mark.parametrize(
    ("subject", "wanted", "found", "seen"),
    [
        ("cgroup system.slice", "0-1", "0-7", {"wanted": "0-1", "kernel": "0-7"}),
        ("isolated", "2-7", "0-7", {"wanted": "2-7", "kernel": "0-7"}),
        ("nohz_full", "", "0", {"wanted": "", "kernel": "0"}),
        ("checkpoint", "accepted", "refused: x", {"wanted": "accepted", "checkpoint": "refused: x"}),
        ("memory_state", "accepted", "refused: x", {"wanted": "accepted", "checkpoint": "refused: x"}),
        ("configuration", "readable", "no YAML", {"wanted": "readable", "files": "no YAML"}),
        ("start", "starts", "refused: x", {"wanted": "starts", "files": "refused: x"}),
        ("enforceNodeAllocatable", ["pods"], [], {"wanted": "[pods]", "files": "[]"}),
        ("isolated ", "0", "1", {"wanted": "0", "files": "1"}),
    ],
)
def test_what_differs_and_is_no_setting(subject: str, wanted: Any, found: Any, seen: dict[str, str]) -> None:
    (row,) = ways_of({"drift": [{"subject": subject, "wanted": wanted, "found": found}]}, {})
    assert row == {"subject": subject, **dict.fromkeys(WAYS), **seen, "odd": [list(seen)[-1]]}


def test_every_subject_has_one_row() -> None:
    subjects = ["cpu_manager_policy", *(subject for check in CHECKS.values() for subject in check.subjects)]
    drift = [{"subject": subject, "wanted": "a", "found": "b"} for subject in subjects]
    found = {row["subject"] for row in ways_of({"found": dict.fromkeys(SETTINGS, "b"), "drift": drift}, {})}
    assert found >= set(subjects)


def test_settings_come_in_their_order() -> None:
    names = list(SETTINGS)
    answer = {"found": dict.fromkeys(reversed(names), ""), "wanted": {"no_setting": 1}}
    assert [row["subject"] for row in ways_of(answer, {"no_setting": 1})] == names


def test_what_only_the_running_kubelet_has_is_no_row() -> None:
    assert ways_of({}, {POLICY: "static"}) == []


@pytest.mark.parametrize(
    ("wanted", "files", "running", "checkpoint", "answer"),
    [
        ("static", "static", "static", "static", []),
        ("static", None, None, None, []),
        ("static", "none", "none", "none", ["files", "kubelet", "checkpoint"]),
        ("static", "static", "none", "static", ["kubelet"]),
        ("static", "static", "static", "none", ["checkpoint"]),
        ("none", "none", None, "static", ["checkpoint"]),
        ("static", "none", None, None, ["files"]),
        ("static", "none", "none", "static", ["files", "kubelet"]),
        ("static", "none", "dynamic", None, ["files", "kubelet"]),
        ("static", "none", "none", "dynamic", ["files", "kubelet", "checkpoint"]),
        # Nothing wanted: what most have is right, and of as many of each the first.
        (None, "none", "static", "static", ["files"]),
        (None, "none", None, "static", ["checkpoint"]),
        # Not read is not different.
        ("static", "static", None, "", []),
        ("static", "static", None, None, []),
    ],
)
def test_what_stands_out(wanted: Any, files: Any, running: Any, checkpoint: Any, answer: list[str]) -> None:
    assert odd(POLICY, wanted, files, running, checkpoint) == answer


@pytest.mark.parametrize(
    ("name", "wanted", "files", "running", "answer"),
    [
        (PERIOD, "60s", "1m", "1m0s", []),
        (PERIOD, "0s", "10s", "10s", []),  # what the kubelet makes of zero
        (PERIOD, "60s", "1m", "10s", ["kubelet"]),
        ("reserved_system_cpus", "0,1,2", "0-2", "0-2", []),
        ("kube_reserved_memory", "1024Mi", "1Gi", "2Gi", ["kubelet"]),
        ("cpu_manager_policy_options", {"a": "x", "b": "y"}, {"b": "y", "a": "x"}, None, []),
        ("cpu_manager_policy_options", {}, {"a": "x"}, None, ["files"]),
    ],
)
def test_values_that_mean_the_same_do_not_stand_out(
    name: str, wanted: Any, files: Any, running: Any, answer: list[str]
) -> None:
    assert odd(name, wanted, files, running) == answer


def test_meaning() -> None:
    assert meaning_of(PERIOD, "60s") == meaning_of(PERIOD, "1m0s") != meaning_of(PERIOD, "61s")
    assert meaning_of(PERIOD, ["\x1b"]) == "[\\u001b]"


@given(answers, st.dictionaries(st.sampled_from(list(SETTINGS)), json_values, max_size=3))
def test_any_answer_has_rows(answer: Any, running: Any) -> None:
    for row in ways_of(collected("a", answer), running):
        assert list(row) == ["subject", *WAYS, "odd"]
        assert all(row[way] is None or isinstance(row[way], str) for way in WAYS)
        assert all(map(can_be_shown, texts_in(row)))
        assert row["odd"] == [way for way in WAYS if way in row["odd"] and row[way] is not None]
        shown = {row[way] for way in WAYS if row[way] is not None}
        assert len(row["odd"]) < max(len([way for way in WAYS if row[way] is not None]), 1)
        assert row["odd"] == [] or len(shown) > 1
