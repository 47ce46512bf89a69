# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_rollout/tried_plan.py: a change goes by the kubelet. The trial itself is replaced."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Mapping

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import RefusedError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.start_check import predict_configuration
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._rollout.rollout_plan import ChangeTerms
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._rollout.tried_plan import TrialTerms, tried_plan
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._trial import kubelet_trial
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._trial.kubelet_trial import Trial
from ansible_collections.kubenode.cpu_manager.tests.machines.planned import configure
from ansible_collections.kubenode.cpu_manager.tests.machines.tree import write_machine
from ansible_collections.kubenode.cpu_manager.tests.machines.troubles import CONFIG, STATIC

ODD = STATIC + "memorySwap: {swapBehavior: Nonsense}\n"
# Without reserved memory it is refused, though it is certain with what the CPU manager starts.
WANTED = {"memory_manager_policy": "Static"}


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    """It is a live one."""
    write_machine(tmp_path, "1s4c2t")
    (tmp_path / "var/lib/kubelet").mkdir(parents=True)
    monkeypatch.setattr(Tree, "live", True)
    configure(tmp_path, ODD)
    return Node(Tree(str(tmp_path)), command_line=["/usr/bin/kubelet", "--config=%s" % CONFIG])


def says(monkeypatch: pytest.MonkeyPatch, starts: bool | None) -> list[Mapping[str, object]]:
    """The kubelet says this of each start, and refuses nothing of what is predicted; the settings that it tries."""
    asked: list[Mapping[str, object]] = []

    def try_start(
        node: Node, wanted: Mapping[str, object], files: Mapping[str, bytes | None], before: object = None
    ) -> Trial:
        asked.append(wanted)
        findings = predict_configuration(node, wanted).findings
        mistaken = [(finding.where, finding.text) for finding in findings if finding.fatal] if starts else []
        return Trial(starts, version="1.36.3", mistaken=mistaken, differs=bool(mistaken), of=str(len(asked)))

    monkeypatch.setattr(kubelet_trial, "try_start", try_start)
    return asked


def plan_of(node: Node, wanted: dict[str, Any], mode: str = "auto") -> dict[str, Any]:
    return tried_plan(node, wanted, ChangeTerms(), None, TrialTerms(mode))


SETTING = {"cpu_manager_reconcile_period": "7s"}


def test_where_the_kubelet_starts_no_prediction_refuses(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = says(monkeypatch, True)
    assert [row["kind"] for row in plan_of(node, SETTING, "never")["refusals"]] == ["would_not_start"]
    assert asked == []
    plan = plan_of(node, SETTING)
    assert (plan["refusals"], plan["starts"], plan["trial"]["starts"]) == ([], True, True)
    assert asked[0] == SETTING


@pytest.mark.parametrize("starts", [False, None])
def test_where_it_does_not_start_the_prediction_counts(
    node: Node, monkeypatch: pytest.MonkeyPatch, starts: bool | None
) -> None:
    says(monkeypatch, starts)
    plan = plan_of(node, SETTING)
    kinds = ["would_not_start", *(["kubelet_refused"] if starts is False else [])]
    assert ([row["kind"] for row in plan["refusals"]], plan["starts"]) == (kinds, False)


def test_what_was_believed_of_an_earlier_plan_is_forgotten(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    says(monkeypatch, None)
    findings = predict_configuration(node, SETTING).findings
    node.mistaken = frozenset((finding.where, finding.text) for finding in findings if finding.fatal)
    assert plan_of(node, SETTING, "never")["refusals"] == []
    assert [row["kind"] for row in plan_of(node, SETTING)["refusals"]] == ["would_not_start"]


def test_what_is_wanted_is_tried_where_a_refusal_is_predicted(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    configure(Path(node.tree.root), STATIC)
    for starts, mode in ((False, "auto"), (None, "always"), (True, "never")):
        says(monkeypatch, starts)
        with pytest.raises(RefusedError) as error:
            plan_of(node, WANTED, mode)
        assert error.value.kind == "would_not_start"
    says(monkeypatch, True)
    plan = plan_of(node, WANTED)
    assert (plan["refusals"], plan["trial"]["starts"]) == ([], True)
