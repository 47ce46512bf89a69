# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a change makes of the memory manager's state."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.drift import with_memory_state
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.start_check import MemoryPlan
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._rollout.rollout_plan import (
    ChangeTerms,
    rollout_report,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.planned import WHOLE, configure, memory_state, plan
from ansible_collections.kubenode.cpu_manager.tests.machines.troubles import MEMORY_STATE as MEMORY
from ansible_collections.kubenode.cpu_manager.tests.machines.troubles import MEMORY_STATIC, STATIC


@pytest.mark.parametrize(
    ("found", "text", "wanted", "reason"),
    [
        ("", memory_state("None"), {}, ""),
        ("", memory_state("None"), {"memory_manager_policy": "None"}, ""),
        (
            "",
            memory_state("None"),
            {
                "memory_manager_policy": "Static",
                "system_reserved_memory": "924Mi",
                "reserved_memory": [{"numaNode": 0, "limits": {"memory": "1Gi"}}],
            },
            'configured policy "Static" differs from state checkpoint policy "None"',
        ),
        (
            MEMORY_STATIC,
            memory_state("Static", 1 << 30),
            {"memory_manager_policy": "None"},
            'configured policy "None" differs from state checkpoint policy "Static"',
        ),
        (MEMORY_STATIC, memory_state("Static", 1 << 30), {"memory_manager_policy": "Static"}, ""),
        (
            MEMORY_STATIC,
            memory_state("Static", 1 << 30),
            {
                "system_reserved_memory": "1948Mi",
                "reserved_memory": [{"numaNode": 0, "limits": {"memory": "2Gi"}}],
            },
            "the expected machine state is different from the real one",
        ),
        # What somebody changed, and the kubelet cannot start with since.
        (MEMORY_STATIC, memory_state("Static", 2 << 30), {}, "the expected machine state is different from the real"),
        ("", memory_state("Static", 1 << 30), {}, 'configured policy "None" differs'),
        ("", "{", {}, "unexpected end of JSON input"),
    ],
)
def test_the_memory_managers_state(tree: Tree, found: str, text: str, wanted: dict[str, Any], reason: str) -> None:
    configure(Path(tree.root), STATIC + found)
    (Path(tree.root) / MEMORY[1:]).write_text(text, encoding="ascii")
    answer = plan(tree, **wanted)
    drift = [row["found"] for row in answer["drift"] if row["subject"] == "memory_state"]
    assert [reason in text for text in drift] == [True] * bool(reason)
    assert ("reset_memory_state" in answer["actions"]) == bool(reason)
    assert (answer["starts"], answer["drain"]) == (True, bool(reason))
    if reason:
        writes = ["write_configuration"] if wanted else []
        assert answer["actions"] == ["stop_kubelet", "reset_memory_state", *writes, "start_kubelet"]


def test_both_states_are_reset_before_the_configuration(tree: Tree) -> None:
    (Path(tree.root) / MEMORY[1:]).write_text(memory_state("Static"), encoding="ascii")
    actions = plan(tree, cpu_manager_policy="none")["actions"]
    assert actions == [*WHOLE[:2], "reset_memory_state", *WHOLE[2:]]


def test_what_has_to_go_of_the_memory_manager_comes_with_a_restart_before_all_else() -> None:
    report = {"status": "clean", "drift": [], "actions": ["reconcile"], "notes": []}
    assert with_memory_state(report, MemoryPlan(b"{", ""), "") == report
    note = with_memory_state(report, MemoryPlan(b"{", ""), "it is damaged")["notes"][0]
    assert getattr(note, "check", "") == "memory-state-refused"
    assert note == "as the node is, its kubelet would not start again: it is damaged"
    row = {"subject": "memory_state", "wanted": "accepted", "found": "refused: it is damaged", "source": None}
    assert with_memory_state(report, MemoryPlan(b"{", "it is damaged"), "") == {
        "status": "drift",
        "drift": [{**row, "refused_now": False}],
        "actions": ["stop_kubelet", "reset_memory_state", "start_kubelet", "reconcile"],
        "notes": [],
    }


def test_memory_of_containers_is_lost_only_with_a_drain_or_when_allowed(tree: Tree) -> None:
    entries = '"entries":{"pod":{"app":[{"numaAffinity":[0],"type":"memory","size":1024}]}},'
    text = '{"policyName":"Static","machineState":{},%s"checksum":0}' % entries
    (Path(tree.root) / MEMORY[1:]).write_text(text, encoding="ascii")
    for terms, kinds in (
        (ChangeTerms(), []),
        (ChangeTerms(drain=False, discard=True), []),
        (ChangeTerms(drain=False), ["assignments"]),
    ):
        answer = rollout_report(Node(tree), {}, terms)
        assert [refusal["kind"] for refusal in answer["refusals"]] == kinds
    (refusal,) = answer["refusals"]
    assert refusal["where"] == tree.path(MEMORY)
    assert "pod pod, container app" in refusal["text"]
