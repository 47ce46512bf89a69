# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Findings of further looks: they are like the others, and a look that failed is a note."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.assemble import is_open, waive
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.checks import CHECKS
from ansible_collections.kubenode.cpu_manager.tests.machines.answers import (
    ANSWER,
    CLEAN_ANSWER,
    LOOKS,
    can_be_shown,
    texts_in,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.answers import looks as any_looks

from .found_answers import KEYS, TODAY, found


def of_look(answer: Any, look: str = "isolation") -> list[tuple[str, str, str]]:
    return [(item["check"], item["subject"], item["text"]) for item in found(CLEAN_ANSWER, looks={look: answer})]


def test_what_further_looks_find_are_findings_like_the_others() -> None:
    disturbed, elsewhere, divided, refused, next_refused, *notes = found(CLEAN_ANSWER, looks=LOOKS)
    assert disturbed == {
        **dict.fromkeys(KEYS, ""),
        **LOOKS["isolation"]["findings"][0],
        "severity": "warning",
        "source": "isolation_info",
        "waived": None,
    }
    assert elsewhere == {
        **dict.fromkeys(KEYS, ""),
        **LOOKS["housekeeping"]["findings"][0],
        "severity": "warning",
        "source": "housekeeping_info",
        "waived": None,
    }
    assert divided == {
        **dict.fromkeys(KEYS, ""),
        **LOOKS["cache"]["findings"][0],
        "severity": "warning",
        "source": "cache_info",
        "waived": None,
    }
    assert refused == {
        **dict.fromkeys(KEYS, ""),
        **LOOKS["impact"]["findings"][0],
        "severity": "warning",
        "source": "admission_info",
        "waived": None,
    }
    assert next_refused == {
        **dict.fromkeys(KEYS, ""),
        **LOOKS["trial"]["findings"][0],
        "remedy": CHECKS["next-kubelet-refuses-start"].remedy,
        "severity": "warning",
        "source": "kubelet_trial",
        "waived": None,
    }
    assert [(note["check"], note["severity"], note["subject"]) for note in notes] == [
        ("reservation-splits-cores", "note", ""),
        ("isolation-unmeasured", "note", ""),
        ("container-throttled", "note", "shop/web-1/app"),
        ("impact-unmeasured", "note", ""),
        ("prediction-differs", "note", "/usr/local/bin/kubelet-1.37"),
    ]
    waive([disturbed], [{"check": "exclusive-cpus-disturbed", "reason": "x", "until": TODAY}], TODAY)
    assert not is_open(disturbed)


def test_a_note_that_was_read_before_is_not_told_again() -> None:
    told = [item["check"] for item in found(ANSWER, looks=LOOKS)]
    assert told.count("reservation-splits-cores") == 1


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ({"failed": True, "msg": "no root"}, "no root"),
        ({"failed": True}, "the node gave no reason"),
        ({}, "the node gave no reason"),
        (None, "the node gave no reason"),
        (["x"], "the node gave no reason"),
    ],
)
@pytest.mark.parametrize("look", ["isolation", "throttling", "housekeeping", "impact", "trial"])
def test_a_look_that_failed_is_a_note(look: str, answer: Any, text: str) -> None:
    assert of_look(answer, look) == [(look + "-unmeasured", "", text)]


@pytest.mark.parametrize(
    "check", ["kubelet-would-not-start", "policy-differs", "container-throttled", "moon-phase", "", None, ["x"]]
)
def test_a_look_has_findings_of_its_own_checks_only(check: Any) -> None:
    answer = {"findings": [{"check": check, "subject": "a", "wanted": "b", "found": "c"}]}
    assert of_look(answer) == [("noted", "a", "")]


def test_what_is_no_look_is_left_out() -> None:
    assert found(CLEAN_ANSWER, looks={"moon": {"failed": True}}) == []
    assert found({"status": "no kubelet"}, looks=LOOKS) == []


@given(any_looks)
def test_any_look_gives_findings_that_can_be_shown(looks: Any) -> None:
    for item in found(CLEAN_ANSWER, looks=looks):
        assert list(item) == KEYS
        assert item["severity"] == CHECKS[item["check"]].severity
        assert item["remedy"]
        assert all(map(can_be_shown, texts_in(item)))
