# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan of a node whose kubelet's unit removes the managers' states before each start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.start_check import predict_start
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._rollout.rollout_plan import (
    ChangeTerms,
    plan_change,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.troubles import (
    CHECKPOINT,
    CONFIG,
    MEMORY_STATE,
    MEMORY_STATIC,
    SOUND,
    STATIC,
    Saved,
    memory_state,
    state,
    write_saved,
)

UNIT = "/etc/systemd/system/kubelet.service"
DIRECTLY = "/bin/rm -f %s %s" % (CHECKPOINT, MEMORY_STATE)
BY_A_SHELL = "/bin/sh -c 'rm -f /var/lib/kubelet/*_manager_state'"
UNREAD = "/opt/prepare"
WANTED = {"cpu_manager_policy": "static", "reserved_system_cpus": "0,4"}
# CPUs that are no more, and another policy.
OLD_STATES = [state(shared="0,2-4,6-9", db="1,5"), state("none", "")]


def node_of(saved: Saved, root: Path, command: str) -> Node:
    unit = "[Service]\nExecStartPre=-%s\nExecStart=/usr/bin/kubelet --config=%s\n" % (command, CONFIG)
    write_saved(saved.having({UNIT: unit}), root)
    return Node(Tree(str(root)), minor=saved.minor)


def plan_of(node: Node, terms: ChangeTerms, **wanted: Any) -> dict[str, Any]:
    return plan_change(node, {**WANTED, **wanted}, terms).report


@pytest.mark.parametrize("content", OLD_STATES)
@pytest.mark.parametrize("command", [DIRECTLY, BY_A_SHELL])
def test_no_refusal_comes_and_no_repair_is_planned_of_a_state_that_is_removed(
    command: str, content: bytes, tmp_path: Path
) -> None:
    node = node_of(SOUND.having({CHECKPOINT: content}), tmp_path, command)
    assert predict_start(node).starts is True
    plan = plan_of(node, ChangeTerms(drain=False))
    assert plan["found_refusal"] == ""
    assert plan["refusals"] == []
    assert {"reset_checkpoint", "repair_checkpoint", "stop_kubelet"}.isdisjoint(plan["actions"])


@pytest.mark.parametrize("content", OLD_STATES)
def test_whether_a_command_that_cannot_be_read_removes_it_is_not_known(content: bytes, tmp_path: Path) -> None:
    prediction = predict_start(node_of(SOUND.having({CHECKPOINT: content}), tmp_path, UNREAD))
    assert prediction.starts is None
    (doubt,) = prediction.unknown
    assert doubt.where == CHECKPOINT
    assert "ExecStartPre in %s%s" % (tmp_path, UNIT) in doubt.reason


def test_a_state_that_is_accepted_needs_no_doubt(tmp_path: Path) -> None:
    assert predict_start(node_of(SOUND, tmp_path, UNREAD)).starts is True


def test_the_memory_managers_state_is_removed_as_well(tmp_path: Path) -> None:
    saved = SOUND.having({MEMORY_STATE: memory_state("None")}).configured(STATIC + MEMORY_STATIC)
    for command, starts in ((DIRECTLY, True), ("/bin/rm -f " + CHECKPOINT, False)):
        assert predict_start(node_of(saved, tmp_path / str(starts), command)).starts is starts


def test_a_restart_loses_the_cpus_of_running_pods_and_is_refused_unless_it_drains_or_may(tmp_path: Path) -> None:
    node = node_of(SOUND, tmp_path, DIRECTLY)
    # It needs no drain where the state is kept.
    wanted = {"cpu_manager_reconcile_period": "5s"}
    (refusal,) = plan_of(node, ChangeTerms(drain=False), **wanted)["refusals"]
    assert refusal["kind"] == "assignments"
    assert "uid-db" in refusal["text"]
    assert plan_of(node, ChangeTerms(drain=False, discard=True), **wanted)["refusals"] == []
    draining = plan_of(node, ChangeTerms(), **wanted)
    assert (draining["drains"], draining["refusals"]) == (True, [])
    kept = node_of(SOUND, tmp_path / "kept", "/bin/true")
    assert plan_of(kept, ChangeTerms(drain=False), **wanted)["refusals"] == []


def test_a_trial_starts_without_the_state(tmp_path: Path) -> None:
    node = node_of(SOUND, tmp_path, DIRECTLY)
    start = plan_change(node, {**WANTED, "reserved_system_cpus": "0-1,4-5"}, ChangeTerms(discard=True)).start
    assert start is not None
    assert start.files[CHECKPOINT] is None
