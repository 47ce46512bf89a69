# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The call that changes a node goes by the plan that it is given, and predicts no start again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node import start_check
from ansible_collections.kubenode.cpu_manager.tests.faults.changing import Change
from ansible_collections.kubenode.cpu_manager.tests.faults.test_reboots import CASES, write_node

RUN = "2026-11-22T09:30:00"


@pytest.fixture
def predictions(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a word for each start that is predicted."""
    found: list[str] = []

    def counted(name: str) -> None:
        real = getattr(start_check, name)

        def call(*arguments: Any) -> Any:
            found.append(name)
            return real(*arguments)

        monkeypatch.setattr(start_check, name, call)

    counted("predict")
    counted("predict_plain")
    return found


def planned(root: Path, name: str, way: str) -> Change:
    """Return a change of a node, with its plan as the controller has it."""
    case = CASES[name]
    write_node(root, case)
    change = Change(str(root), RUN, discard=case.discard, **case.settings)
    if way == "rollback":
        assert not change.carry_out()["failed"]
        change = Change(str(root), RUN, way, discard=case.discard)
    change.given["plan"] = json.loads(json.dumps(change.plan))
    return change


@pytest.mark.parametrize("way", ["rollout", "rollback"])
@pytest.mark.parametrize("name", CASES)
def test_a_start_that_was_predicted_for_the_plan_is_not_predicted_again(
    tmp_path: Path, name: str, way: str, predictions: list[str]
) -> None:
    change = planned(tmp_path / "node", name, way)
    assert change.plan["actions"]
    assert predictions
    predictions.clear()
    answer = change.carry_out()
    assert not answer["failed"], answer
    assert predictions == []


def test_a_node_that_was_changed_since_is_planned_again(tmp_path: Path, predictions: list[str]) -> None:
    change = planned(tmp_path / "node", "none to static", "rollout")
    config = tmp_path / "node/var/lib/kubelet/config.yaml"
    config.write_text(config.read_text() + "cpuManagerReconcilePeriod: 7s\n")
    predictions.clear()
    assert not change.carry_out()["failed"]
    assert predictions
