# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What taking back an interrupted change restores, where containers have got CPUs since."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._rollout.recovery import recovery_of
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._rollout.rollout_journal import (
    CHANGING,
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
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.tests.machines.kubelets import HEADER
from ansible_collections.kubenode.cpu_manager.tests.machines.planned import configure, plan
from ansible_collections.kubenode.cpu_manager.tests.machines.troubles import (
    CHECKPOINT,
    CONFIG,
    MEMORY_STATE,
    STATIC,
    state,
)

STATES = [CHECKPOINT, MEMORY_STATE]


def save(tree: Tree) -> RolloutJournal:
    """Return the journal of a change that saved what is there now."""
    return RolloutJournal(CHANGING, save_files(tree, [CONFIG, *STATES]), {})


def write_state(tree: Tree, content: bytes) -> None:
    (Path(tree.root) / CHECKPOINT[1:]).write_bytes(content)


@pytest.fixture
def journal(tree: Tree) -> RolloutJournal:
    """Return the change of a node on which the pod uid-db has the CPUs 1 and 5."""
    write_state(tree, state(db="1,5"))
    return save(tree)


def test_no_change_restores_nothing(tree: Tree, journal: RolloutJournal) -> None:
    assert not recovery_of(Node(tree), None).files
    assert not recovery_of(Node(tree), journal._replace(phase=STOPPING)).files


@pytest.mark.parametrize("now", [state(db="1,5"), state("static", "0,1,3-5,7", db="2,6"), state(), b"{", b""])
def test_everything_is_restored_where_no_container_came(tree: Tree, journal: RolloutJournal, now: bytes) -> None:
    """Also where one has got other CPUs, has ended, or where the file is damaged."""
    write_state(tree, now)
    recovery = recovery_of(Node(tree), journal)
    assert sorted(recovery.files) == sorted([CONFIG, *STATES])
    assert recovery.files[CHECKPOINT] == state(db="1,5")
    assert not recovery.lost


def test_the_states_stay_where_the_kubelet_starts_with_them(tree: Tree, journal: RolloutJournal) -> None:
    configure(Path(tree.root), STATIC + "cpuManagerReconcilePeriod: 5s\n")
    write_state(tree, state("static", "0,3,4,7", db="1,5", web="2,6"))
    recovery = recovery_of(Node(tree), journal)
    assert (list(recovery.files), recovery.lost) == ([CONFIG], CPUSet())
    write_journal(tree, journal)
    answer = plan(tree, cpu_manager_policy="static")
    assert (answer["refusals"], answer["journal"]["restores"]) == ([], [CONFIG])
    # The plan is for the node as it will be: with the pod that came.
    assert answer["cpus"]["exclusive"] == "1-2,5-6"


def test_a_change_is_not_taken_back_from_containers_that_came(tree: Tree, journal: RolloutJournal) -> None:
    """The saved configuration reserves CPUs that a container has got since."""
    configure(Path(tree.root), "cpuManagerPolicy: static\nreservedSystemCPUs: 1,5\n")
    write_state(tree, state("static", "1-3,5-7", web="0,4"))
    write_journal(tree, journal)
    assert recovery_of(Node(tree), journal).lost == CPUSet([0, 4])
    (refusal,) = plan(tree)["refusals"]
    assert (refusal["kind"], "0,4" in refusal["text"]) == ("assignments", True)
    assert "forget the change" in refusal["remedy"]
    answer = rollout_report(Node(tree), {}, ChangeTerms(discard=True))
    assert (answer["refusals"], len(answer["journal"]["restores"])) == ([], 3)
    # Of a node that was drained, the cluster says whether others can have come.
    write_journal(tree, journal._replace(facts={"node": "worker-1"}))
    assert plan(tree)["refusals"] == []


def test_containers_that_came_under_a_policy_that_is_taken_back(tree: Tree) -> None:
    configure(Path(tree.root), "")
    write_state(tree, state("none", ""))
    journal = save(tree)
    configure(Path(tree.root), STATIC)
    write_state(tree, state(web="1,5"))
    assert recovery_of(Node(tree), journal).lost == CPUSet([1, 5])


def test_a_checkpoint_that_the_change_does_not_save(tree: Tree, journal: RolloutJournal) -> None:
    files = {CONFIG: SavedFile(HEADER.encode("ascii"), 0o644)}
    assert list(recovery_of(Node(tree), journal._replace(files=files)).files) == [CONFIG]
