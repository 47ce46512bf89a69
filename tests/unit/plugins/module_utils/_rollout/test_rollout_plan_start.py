# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""With which files the kubelet is started by each change, which a trial start is given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import OverlaidTree, Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.start_check import (
    planned_contents,
    predict_start,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._rollout.rollout_journal import (
    CHANGING,
    DRAINING,
    RolloutJournal,
    save_files,
    write_journal,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._rollout.rollout_plan import (
    ChangeTerms,
    PlannedChange,
    plan_change,
    starts_kubelet,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.kubelets import HEADER
from ansible_collections.kubenode.cpu_manager.tests.machines.planned import BACK, configure, had
from ansible_collections.kubenode.cpu_manager.tests.machines.troubles import CHECKPOINT, CONFIG, STATIC

HERE = ChangeTerms()


def starts(tree: Tree, change: PlannedChange) -> bool | None:
    """Return whether the node would start with what is planned, by the prediction of the node with these files
    alone."""
    assert change.start is not None
    node = Node(OverlaidTree(tree, change.start.files))
    written = planned_contents(node, change.start.wanted)
    return predict_start(Node(OverlaidTree(tree, {**change.start.files, **written}))).starts


@pytest.mark.parametrize(
    ("wanted", "reset"),
    [
        ({"cpu_manager_reconcile_period": "5s"}, []),
        ({"cpu_manager_policy": "none"}, [CHECKPOINT]),
        ({"cpu_manager_policy_options": {"strict-cpu-reservation": "true"}}, [CHECKPOINT]),
    ],
)
def test_a_rollout_starts_it_with_the_settings_and_with_states_that_fit(
    tree: Tree, wanted: dict[str, Any], reset: list[str]
) -> None:
    change = plan_change(Node(tree), wanted, HERE)
    assert change.start is not None
    assert (sorted(change.start.files), change.start.wanted) == (reset, wanted)
    assert starts_kubelet(change.report)
    assert starts(tree, change) is True


def test_a_repair_starts_it_with_the_settings_that_are_there(tree: Tree) -> None:
    configure(Path(tree.root), STATIC.replace("0,4", "1,5"))
    assert predict_start(Node(tree)).starts is False
    change = plan_change(Node(tree), {}, HERE)
    assert change.start is not None
    assert list(change.start.files) == [CHECKPOINT]
    assert starts_kubelet(change.report)
    assert starts(tree, change) is True


def test_a_rollback_starts_it_with_the_files_that_it_puts_back(tree: Tree) -> None:
    had(tree, "")
    change = plan_change(Node(tree), {}, BACK)
    assert change.start is not None
    assert sorted(change.start.files) == [CONFIG, CHECKPOINT]
    assert change.start.files[CONFIG] == HEADER.encode("ascii")
    assert starts(tree, change) is True


@pytest.mark.parametrize("terms", [HERE, BACK])
def test_an_interrupted_change_is_taken_back_first(tree: Tree, terms: ChangeTerms) -> None:
    write_journal(tree, RolloutJournal(CHANGING, save_files(tree, [CONFIG, CHECKPOINT]), {}))
    before = (Path(tree.root) / CONFIG[1:]).read_bytes()
    configure(Path(tree.root), STATIC + "maxPods: 20\n")
    change = plan_change(Node(tree), {}, terms)
    assert change.start is not None
    assert change.start.files[CONFIG] == before
    # That is a start of the kubelet, though nothing more is to be done.
    assert change.report["actions"] == []
    assert starts_kubelet(change.report)
    assert starts(tree, change) is True


def test_where_no_kubelet_is_started(tree: Tree) -> None:
    for terms in (HERE, BACK):
        assert not starts_kubelet(plan_change(Node(tree), {}, terms).report)
    write_journal(tree, RolloutJournal(DRAINING, {}, {}))
    assert not starts_kubelet(plan_change(Node(tree), {}, HERE).report)
    configure(Path(tree.root), "cpuManagerPolicy: [")
    assert plan_change(Node(tree), {"cpu_manager_policy": "static"}, HERE).start is None
