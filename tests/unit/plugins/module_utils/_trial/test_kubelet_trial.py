# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a trial makes of the plan of a change; tests/cluster/test_trial.py has the trials themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._trial import kubelet_trial
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._trial.kubelet_trial import Trial, with_trial

NOTE = {"notes": ["a note"], "note_checks": ["noted"]}
REFUSAL = {"kind": "assignments", "where": "", "text": "a container would lose CPUs", "remedy": ""}
REPORT: dict[str, Any] = {"starts": True, "refusals": [REFUSAL], **NOTE}
SAID = Trial(True, version="1.36.3", seconds=3.1, runtime="/usr/bin/containerd", not_tried=("pods",), of="abc")
# With all that is asked of it replaced.
NODE = Node(Tree(str(Path(__file__).parent)))
TOLD = "tried by kubelet 1.36.3, 3.1 s"


def planned_with(monkeypatch: pytest.MonkeyPatch, trial: Trial, is_needed: bool = False) -> dict[str, Any]:
    """Return the plan of a node whose kubelet says this."""
    monkeypatch.setattr(kubelet_trial, "try_start", lambda *_given, **_more: trial)
    return with_trial(REPORT, NODE, {}, {}, is_needed)


@pytest.mark.parametrize("is_needed", [True, False])
def test_a_start_changes_nothing_of_the_plan(monkeypatch: pytest.MonkeyPatch, is_needed: bool) -> None:
    plan = planned_with(monkeypatch, SAID, is_needed)
    assert plan == {
        **REPORT,
        "trial": {
            "starts": True,
            "message": "",
            "reason": "",
            "version": "1.36.3",
            "seconds": 3.1,
            "runtime": "/usr/bin/containerd",
            "not_tried": ["pods"],
            "prediction_differs": False,
            "mistaken": [],
            "of": "abc",
            "told": TOLD,
        },
    }


@pytest.mark.parametrize("is_needed", [True, False])
def test_a_refusal_is_told_beside_the_others(monkeypatch: pytest.MonkeyPatch, is_needed: bool) -> None:
    plan = planned_with(monkeypatch, SAID._replace(starts=False, message="unknown flag: --x"), is_needed)
    first, refusal = plan["refusals"]
    assert first == REFUSAL
    assert refusal["kind"] == "kubelet_refused"
    assert refusal["text"] == "the kubelet does not start with what is planned (%s): unknown flag: --x" % TOLD
    assert refusal["remedy"].endswith("set trial: never")
    assert plan["starts"] is False
    assert (plan["notes"], plan["note_checks"]) == (["a note"], ["noted"])


def test_a_start_cures_no_other_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubelet_trial, "try_start", lambda *_given, **_more: SAID)
    assert with_trial({**REPORT, "starts": False}, NODE, {}, {}, False)["starts"] is False


def test_where_the_kubelet_refuses_what_was_predicted_to_start(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned_with(monkeypatch, SAID._replace(starts=False, message="no", differs=True))
    assert plan["refusals"][1]["text"].endswith(", which was not predicted: no")


def test_where_the_kubelet_starts_with_what_was_predicted_to_be_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned_with(monkeypatch, SAID._replace(differs=True, mistaken=[("--v", "bad"), ("--x", "worse")]))
    assert plan["notes"][1] == TOLD + ": it starts with what is planned, for which a refusal was predicted: bad; worse"
    assert len(plan["note_checks"]) == len(plan["notes"])
    assert plan["trial"]["mistaken"] == [["--v", "bad"], ["--x", "worse"]]


def test_where_there_can_be_no_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    untried = Trial(None, reason="cannot be tried: a saved node")
    said = "the start after the change is only predicted: cannot be tried: a saved node"
    plan = planned_with(monkeypatch, untried)
    assert (plan["notes"], plan["refusals"], plan["starts"]) == (["a note", said], [REFUSAL], True)
    assert (plan["trial"]["told"], plan["trial"]["starts"]) == ("", None)
    # Nor has a kubelet tried it of which nothing is known in the end.
    assert planned_with(monkeypatch, untried._replace(version="1.36.3"))["trial"]["told"] == ""
    needed = planned_with(monkeypatch, untried, is_needed=True)
    assert needed["notes"] == ["a note"]
    assert needed["refusals"][1] == {
        "kind": "not_tried",
        "where": "trial: always",
        "text": said,
        "remedy": "set it to auto to go by the prediction where there is no trial",
    }


def test_a_saved_node_has_no_trial(tmp_path: Path) -> None:
    plan = with_trial(REPORT, Node(Tree(str(tmp_path))), {}, {}, is_needed=False)
    assert plan["trial"]["reason"] == "cannot be tried: a saved node"


@pytest.mark.parametrize(
    "before", [None, "", [], {}, {"of": "abc"}, {**SAID.to_dict(), "of": "abc", "mistaken": [1]}, {"mistaken": {}}]
)
def test_what_is_no_trial_is_not_taken_for_an_earlier_one(monkeypatch: pytest.MonkeyPatch, before: object) -> None:
    monkeypatch.setattr(kubelet_trial, "try_start", lambda *_given, before: before or SAID._replace(of="new"))
    assert with_trial(REPORT, NODE, {}, {}, False, before)["trial"]["of"] == "new"


def test_an_earlier_trial_is_read_as_it_was_told(monkeypatch: pytest.MonkeyPatch) -> None:
    said = SAID._replace(starts=False, message="no", differs=True, mistaken=[("--v", "bad")], not_tried=["pods"])
    first = planned_with(monkeypatch, said)["trial"]
    monkeypatch.setattr(kubelet_trial, "try_start", lambda *_given, before: before)
    assert with_trial(REPORT, NODE, {}, {}, False, first)["trial"] == first
