# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plans of a rollback: back to what was before the last change."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.journal_file import LAST
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._rollout.rollout_journal import (
    CHANGING,
    STOPPING,
    RolloutJournal,
    remove_journal,
    save_files,
    write_journal,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._rollout.rollout_plan import rollout_report
from ansible_collections.kubenode.cpu_manager.tests.machines.kubelets import HEADER
from ansible_collections.kubenode.cpu_manager.tests.machines.planned import (
    BACK,
    configure,
    had,
    memory_state,
    plan,
    run_kubelet,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.troubles import CHECKPOINT, CONFIG, STATIC
from ansible_collections.kubenode.cpu_manager.tests.machines.troubles import MEMORY_STATE as MEMORY


def test_a_damaged_journal_of_the_last_change_is_a_refusal_of_a_rollback(tree: Tree) -> None:
    had(tree, STATIC)
    (Path(tree.root) / LAST[1:]).write_text("{", encoding="ascii")
    answer = plan(tree, cpu_manager_reconcile_period="5s")
    assert (answer["refusals"], answer["last"]) == ([], None)
    (refusal,) = rollout_report(Node(tree), {}, BACK)["refusals"]
    assert refusal["where"].endswith("last-change.json")


@pytest.mark.parametrize(
    ("before", "actions", "drain"),
    [
        (STATIC, [], False),
        (STATIC + "cpuManagerReconcilePeriod: 5s\n", ["stop_kubelet", "restore_configuration", "start_kubelet"], False),
        ("", ["stop_kubelet", "restore_configuration", "reset_checkpoint", "start_kubelet"], True),
        (STATIC + "topologyManagerScope: pod\n", ["stop_kubelet", "restore_configuration", "start_kubelet"], True),
        (STATIC + "maxPods: 20\n", ["stop_kubelet", "restore_configuration", "start_kubelet"], False),
    ],
)
def test_what_a_rollback_takes(tree: Tree, before: str, actions: list[str], drain: bool) -> None:
    had(tree, before)
    answer = rollout_report(Node(tree), {}, BACK)
    assert (answer["actions"], answer["drain"], answer["refusals"]) == (actions, drain, [])
    assert (answer["status"] == "drift") == bool(actions)
    assert bool(answer["drift"]) == bool(actions)
    assert answer["files"] == [CONFIG, CHECKPOINT, MEMORY]
    assert (answer["starts"], answer["findings"], answer["elsewhere"]) == (True, [], None)
    assert answer["kubelet"]["config_path"] == CONFIG


def test_a_rollback_tells_what_it_changes(tree: Tree) -> None:
    """Settings, and the states that go with them; other parts of a file by its name alone."""
    had(tree, STATIC + "maxPods: 20\n")
    row = {"subject": CONFIG, "wanted": "as before", "found": "changed", "source": CONFIG}
    assert rollout_report(Node(tree), {}, BACK)["drift"] == [row]
    had(tree, "")
    (Path(tree.root) / MEMORY[1:]).write_text(memory_state("Static"), encoding="ascii")
    answer = rollout_report(Node(tree), {}, BACK)
    assert [row["subject"] for row in answer["drift"]] == [
        "cpu_manager_policy",
        "reserved_system_cpus",
        "checkpoint",
        "memory_state",
    ]
    assert answer["drift"][0]["source"] == tree.path(CONFIG)
    assert answer["actions"][2:4] == ["reset_checkpoint", "reset_memory_state"]
    assert (answer["checkpoint"]["verdict"], answer["cpus"]["reserved"]) == ("refused", "0,4")
    assert answer["cpus"]["reserved_wanted"] == ""
    had(tree, "cpuManagerPolicy: static\nreservedSystemCPUs: 0-1\n")
    assert rollout_report(Node(tree), {}, BACK)["cpus"]["reserved_wanted"] == "0-1"


def test_a_rollback_loses_exclusive_cpus_only_with_a_drain_or_when_allowed(tree: Tree) -> None:
    had(tree, "")
    for terms, kinds in (
        (BACK, []),
        (BACK._replace(discard=True, drain=False), []),
        (BACK._replace(drain=False), ["assignments"]),
    ):
        answer = rollout_report(Node(tree), {}, terms)
        assert [refusal["kind"] for refusal in answer["refusals"]] == kinds


def test_a_rollback_from_what_cannot_be_read_takes_a_drain(tree: Tree) -> None:
    """It may have been anything."""
    had(tree, STATIC)
    run_kubelet(tree)
    (Path(tree.root) / CONFIG[1:]).write_text("cpuManagerPolicy: [", encoding="utf-8")
    answer = rollout_report(Node(tree), {}, BACK)
    assert (answer["drain"], answer["drains"], answer["refusals"]) == (True, True, [])
    assert rollout_report(Node(tree), {}, BACK._replace(drain=False))["drains"] is False


@pytest.mark.parametrize(
    "damage",
    [
        "",
        "cpuManagerPolicy: [",
        HEADER + "cpuManagerPolicy: dynamic\n",
        HEADER + "reservedSystemCPUs: 0,99\n",
        None,
    ],
)
def test_a_rollback_cures_a_configuration_with_which_no_kubelet_starts(tree: Tree, damage: str | None) -> None:
    had(tree, STATIC)
    damaged = Path(tree.root) / CONFIG[1:]
    if damage is None:
        damaged.unlink()
    else:
        damaged.write_text(damage, encoding="utf-8")
    answer = rollout_report(Node(tree), {}, BACK)
    assert (answer["refusals"], answer["starts"], answer["drain"]) == ([], True, False)
    assert answer["actions"][:2] == ["stop_kubelet", "restore_configuration"]
    assert "reset_checkpoint" not in answer["actions"]
    assert answer["kubelet"]["config_path"] == CONFIG


def test_a_rollback_of_another_rollout_or_of_none_leaves_the_node_alone(tree: Tree) -> None:
    assert rollout_report(Node(tree), {}, BACK)["actions"] == []
    had(tree, "", "one")
    assert rollout_report(Node(tree), {}, BACK._replace(rollback_of="two"))["actions"] == []
    answer = rollout_report(Node(tree), {}, BACK._replace(rollback_of="one"))
    assert answer["actions"]
    assert answer["last"]["facts"] == {"rollout": "one"}


def test_a_rollback_to_what_does_not_start_is_a_refusal(tree: Tree) -> None:
    had(tree, "cpuManagerPolicy: static\nreservedSystemCPUs: 0,99\n")
    answer = rollout_report(Node(tree), {}, BACK)
    assert {refusal["kind"] for refusal in answer["refusals"]} == {"would_not_start"}
    assert not answer["starts"]
    assert any(finding["fatal"] for finding in answer["findings"])
    for text, part in (("cpuManagerPolicy: [\n", "line 4"), ("cpuManagerPolicy: dynamic\n", "cpuManagerPolicy")):
        had(tree, text)
        answer = rollout_report(Node(tree), {}, BACK)
        (refusal,) = answer["refusals"]
        assert (refusal["kind"], refusal["where"].endswith("last-change.json")) == ("configuration", True)
        assert part in refusal["text"]
        assert answer["actions"] == []
    had(tree, None)
    (refusal,) = rollout_report(Node(tree), {}, BACK)["refusals"]
    assert (refusal["kind"], refusal["where"].endswith("last-change.json")) == ("configuration", True)


def test_a_rollback_after_an_interrupted_change(tree: Tree) -> None:
    """That one is taken back first."""
    had(tree, "")
    write_journal(tree, RolloutJournal(CHANGING, save_files(tree, [CONFIG, CHECKPOINT]), {}))
    (Path(tree.root) / CONFIG[1:]).write_text("", encoding="utf-8")
    answer = rollout_report(Node(tree), {}, BACK)
    assert answer["refusals"] == []
    row = answer["drift"][0]
    assert (row["subject"], row["found"], row["wanted"]) == ("cpu_manager_policy", "static", "none")


@pytest.mark.parametrize(
    "damage", ["cpuManagerPolicy: dynamic\n", "cpuManagerPolicy: static\nreservedSystemCPUs: 0,99\n"]
)
def test_a_rollback_of_an_interrupted_rollout_that_had_saved_nothing(tree: Tree, damage: str) -> None:
    """Without it the kubelet would not start either: what was before the rollout before cures that."""
    had(tree, STATIC + "cpuManagerReconcilePeriod: 5s\n", "one")
    terms = BACK._replace(rollback_of="two")
    journal = RolloutJournal(STOPPING, {}, {"rollout": "two"})
    write_journal(tree, journal)
    assert rollout_report(Node(tree), {}, terms)["actions"] == []
    configure(Path(tree.root), damage)
    # What is wrong is not of the rollout to go back from: that one has never begun here.
    remove_journal(tree)
    answer = rollout_report(Node(tree), {}, terms)
    assert (answer["actions"], answer["refusals"], answer["starts"]) == ([], [], False)
    write_journal(tree, journal)
    answer = rollout_report(Node(tree), {}, terms)
    assert (answer["refusals"], answer["starts"]) == ([], True)
    assert answer["actions"] == ["stop_kubelet", "restore_configuration", "start_kubelet"]
