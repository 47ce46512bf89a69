# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plans for a node on which a change was interrupted, and journals that cannot be read or written."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.journal_file import LAST
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._rollout.rollout_journal import (
    CHANGING,
    DRAINING,
    STOPPING,
    RolloutJournal,
    SavedFile,
    save_files,
    write_journal,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._rollout.rollout_plan import (
    ChangeTerms,
    rollout_report,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.kubelets import HEADER
from ansible_collections.kubenode.cpu_manager.tests.machines.planned import BACK, plan, run_kubelet
from ansible_collections.kubenode.cpu_manager.tests.machines.troubles import CHECKPOINT, CONFIG


def test_a_change_that_was_interrupted(tree: Tree) -> None:
    assert plan(tree)["journal"] is None
    write_journal(tree, RolloutJournal(CHANGING, {}, {"cordoned": True}))
    assert plan(tree)["journal"] == {
        "phase": "changing",
        "files": [],
        "facts": {"cordoned": True},
        "run": "",
        "exclusive_now": "1,5",
        "restores": [],
    }


@pytest.mark.parametrize("damage", ["", "cpuManagerPolicy: [", HEADER + "reservedSystemCPUs: 0,99\n", None])
def test_a_plan_is_made_for_the_node_as_it_will_be_when_the_change_is_taken_back(
    tree: Tree, damage: str | None
) -> None:
    saved = save_files(tree, [CONFIG, CHECKPOINT])
    write_journal(tree, RolloutJournal(CHANGING, saved, {}))
    damaged = Path(tree.root) / CONFIG[1:]
    if damage is None:
        damaged.unlink()
    else:
        damaged.write_text(damage, encoding="utf-8")
    (Path(tree.root) / CHECKPOINT[1:]).write_bytes(b"{")
    answer = plan(tree, cpu_manager_policy="static")
    assert (answer["status"], answer["actions"], answer["refusals"]) == ("clean", [], [])
    assert answer["cpus"]["exclusive"] == "1,5"


@pytest.mark.parametrize("phase", [DRAINING, STOPPING])
def test_files_that_were_not_changed_yet_count_as_they_are(tree: Tree, phase: str) -> None:
    write_journal(
        tree, RolloutJournal(phase, {CONFIG: SavedFile((HEADER + "maxPods: [\n").encode("ascii"), 0o644)}, {})
    )
    answer = plan(tree, cpu_manager_policy="static")
    assert (answer["status"], answer["actions"], answer["refusals"]) == ("clean", [], [])


def test_files_that_cannot_be_written_are_refusals_where_any_is_written(tree: Tree) -> None:
    """As those of an interrupted change are, and the journal in which a change is noted."""
    directory = Path(tree.root) / "var/lib/kubenode-cpu-manager"
    directory.touch()
    assert plan(tree)["refusals"] == []
    (refusal,) = plan(tree, cpu_manager_reconcile_period="5s")["refusals"]
    assert refusal["where"] == str(directory / "change.json")
    directory.unlink()
    (Path(tree.root) / "etc").touch()
    saved = {CONFIG: save_files(tree, [CONFIG])[CONFIG], "/etc/kubelet.yaml": SavedFile(None)}
    write_journal(tree, RolloutJournal(CHANGING, saved, {}), LAST)
    assert rollout_report(Node(tree), {}, BACK)["refusals"] == []
    write_journal(tree, RolloutJournal(STOPPING, {}, {}))
    (refusal,) = rollout_report(Node(tree), {}, BACK)["refusals"]
    assert refusal["where"] == tree.path("/etc/kubelet.yaml")


def test_a_damaged_journal_is_a_refusal(tree: Tree) -> None:
    journal = Path(tree.root) / "var/lib/kubenode-cpu-manager/change.json"
    journal.parent.mkdir(parents=True)
    journal.write_text("{", encoding="ascii")
    (refusal,) = plan(tree)["refusals"]
    assert "cannot be read as the journal of a change" in refusal["text"]


@pytest.mark.parametrize("phase", [DRAINING, STOPPING, CHANGING])
def test_an_interrupted_change_after_which_no_kubelet_would_start(tree: Tree, phase: str) -> None:
    """It could not come to its end. With something planned that cures it, it does."""
    write_journal(tree, RolloutJournal(phase, {}, {}))
    (Path(tree.root) / CHECKPOINT[1:]).write_bytes(b"{")
    (refusal,) = rollout_report(Node(tree), {}, BACK)["refusals"]
    assert (refusal["kind"], refusal["where"].endswith("/change.json")) == ("would_not_start", True)
    assert "run the playbook repair" in refusal["remedy"]
    # Nothing is put back that somebody may have corrected, but where files were changed.
    assert ("forget the change" in refusal["remedy"]) == (phase == CHANGING)
    answer = plan(tree)
    assert (answer["refusals"], answer["actions"]) == ([], ["stop_kubelet", "reset_checkpoint", "start_kubelet"])


def test_an_interrupted_change_of_a_node_that_somebody_has_corrected_since(tree: Tree) -> None:
    """What is saved would be put back: whoever knows better can forget it."""
    good = (Path(tree.root) / CONFIG[1:]).read_bytes()
    for bad in (None, SavedFile(b"", 0o644), SavedFile(good.replace(b"0,4", b"0,99"), 0o644)):
        write_journal(tree, RolloutJournal(CHANGING, {CONFIG: bad or SavedFile(None)}, {}))
        refusal = plan(tree)["refusals"][0]
        assert refusal["remedy"].endswith("forget the change with rollout_journal, state: absent")
        # That it would stay open is said where nothing else is.
        assert not any("a change of this node was interrupted" in refusal["text"] for refusal in plan(tree)["refusals"])
    # What pods lose does not change with what is forgotten.
    write_journal(tree, RolloutJournal(CHANGING, {}, {}))
    (refusal,) = rollout_report(Node(tree), {"cpu_manager_policy": "none"}, ChangeTerms(drain=False))["refusals"]
    assert (refusal["kind"], "forget" in refusal["remedy"]) == ("assignments", False)


def test_no_drain_where_the_kubelet_is_stopped_to_take_a_change_back(tree: Tree) -> None:
    """And cannot be started again before the change that cures it."""
    run_kubelet(tree)
    (Path(tree.root) / CHECKPOINT[1:]).write_bytes(b"{")
    for phase, drain in ((STOPPING, True), (CHANGING, False)):
        write_journal(tree, RolloutJournal(phase, {}, {}))
        assert plan(tree)["drain"] == drain
