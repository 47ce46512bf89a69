# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The line that sums up a run."""

from __future__ import annotations

from typing import Any, Collection

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.answers import collect
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.rollout.texts import change_summary, trial_text

REPORT = "; next: ansible-playbook kubenode.cpu_manager.drift_report"
AGAIN = "; next: see why above, and run again"
PLANS: dict[str, Any] = {
    "drift": {"status": "drift", "actions": ["stop_kubelet", "start_kubelet"], "journal": None},
    "interrupted": {"status": "clean", "actions": [], "journal": {"phase": "changing"}},
    "clean": {"status": "clean", "actions": [], "journal": None},
    "bastion": {"status": "no kubelet", "actions": [], "journal": None},
    "away": {},
    "broken": {"failed": True, "msg": "broken"},
}


def summary(names: Collection[str], lost: Collection[str] = (), **options: bool) -> str:
    plans = {name: PLANS[name] for name in names}
    return change_summary(collect(plans), set(names) - set(lost), **options)


def test_what_was_changed_is_counted() -> None:
    assert summary(["drift", "interrupted", "clean"]) == "changed 2, unchanged 1, left out 0, failed 0" + REPORT
    assert summary([]) == "changed 0, unchanged 0, left out 0, failed 0" + REPORT


@pytest.mark.parametrize(("skip", "counts"), [(True, "unchanged 0, left out 1"), (False, "unchanged 1, left out 0")])
def test_what_is_left_out_is_counted_where_it_is(skip: bool, counts: str) -> None:
    assert summary(["bastion"], skip_no_kubelet=skip) == "changed 0, %s, failed 0" % counts + REPORT


def test_check_mode_changes_nothing() -> None:
    counts = "would change 1, unchanged 1, left out 0, failed 0"
    assert summary(["drift", "clean"], check_mode=True) == counts + "; next: run it without --check"
    assert summary(["clean"], check_mode=True) == "would change 0, unchanged 1, left out 0, failed 0" + REPORT


def test_what_failed_or_was_lost_is_named() -> None:
    names = ["drift", "away", "broken"]
    expected = "changed 1, unchanged 0, left out 0, failed 2 (away, broken)" + AGAIN
    assert summary(names, lost=["away", "broken"]) == expected
    assert summary(["drift"], lost=["drift"]) == "changed 0, unchanged 0, left out 0, failed 1 (drift)" + AGAIN


def test_not_all_of_many_are_named() -> None:
    plans = {"w-%d" % number: PLANS["drift"] for number in range(7)}
    said = change_summary(collect(plans), ())
    assert said == "changed 0, unchanged 0, left out 0, failed 7 (w-0, w-1, w-2, w-3, w-4 and 2 more)" + AGAIN


STARTED = {"starts": True, "version": "1.37.0", "checkpoint_format": {"before": 2, "after": 2}, "seconds": 3.1}


def test_what_the_kubelets_of_a_fleet_said_of_trials() -> None:
    answers: dict[str, object] = {
        "a": STARTED,
        "b": {**STARTED, "checkpoint_format": {"before": 2, "after": 4}, "prediction_differs": True},
        "c": {**STARTED, "starts": False, "message": "unknown flag:\n--x", "checkpoint_format": {"before": 2}},
        "d": {"starts": None, "version": None, "reason": "cannot be tried: a saved node"},
        "e": {"failed": True, "msg": "/usr/bin/k: is no program on this node"},
        "f": {**STARTED, "seconds": 9, "checkpoint_format": {"before": None, "after": 4}},
        "g": {},
    }
    assert trial_text(answers).splitlines() == [
        "a, f:",
        "  the kubelet 1.37.0 starts",
        "b:",
        "  the kubelet 1.37.0 starts",
        "  checkpoint: format 2 -> 4",
        "  the prediction differs, and the kubelet is right",
        "c:",
        "  the kubelet 1.37.0 does not start: unknown flag: --x",
        "d:",
        "  cannot be tried: a saved node",
        "e:",
        "  /usr/bin/k: is no program on this node",
        "g:",
        "  no answer",
    ]


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from(sorted({*STARTED, "message", "reason", "msg"})), ANY) | ANY)
def test_whatever_a_node_answers_to_a_trial_is_text(answer: object) -> None:
    assert trial_text({"a": answer}).isprintable() or "\n" in trial_text({"a": answer})


def test_what_a_terminal_obeys_is_shown_and_a_long_text_is_cut() -> None:
    said = trial_text({"a\x1b[2J": {**STARTED, "starts": False, "message": "\x1b]0;owned\x07" + "x" * 100000}})
    assert "\x1b" not in said
    assert "\x07" not in said
    assert len(said) < 21000
