# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A saved node with tuned: it is given its CPUs and keeps its layers, and all goes back to the byte."""

from __future__ import annotations

from pathlib import Path
from typing import Sequence

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import NodeError, RefusedError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping import (
    carry_out as run,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping import (
    housekeeping as bring,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping import (
    tuned_profile as tuned,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping.housekeeping import (
    Extras,
    differences,
    needs_of,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping.housekeeping_journal import (
    HousekeepingWish,
    read_journal,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping.steps import (
    CommandStep,
    FileStep,
    ValueStep,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping.tuned_profile import (
    isolated_before,
    layers_beside,
    needed_tuned,
    tuned_waits_for_boot,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._owners.owners import (
    ACTIVE_PROFILE,
    Facts,
    find_owners,
    read_tuned,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.tests.machines import housekept
from ansible_collections.kubenode.cpu_manager.tests.machines.brought import Brought
from ansible_collections.kubenode.cpu_manager.tests.machines.owned import (
    TUNED_FILES,
    TUNED_PROFILE,
    TUNED_VARIABLES,
    write_owned,
)

LAYERS = ("interrupts", "workqueues", "rps", "slices", "irqbalance", "manager")
APPLY = ("tuned-adm", "profile", "cpu-partitioning")
RELOAD, RESTART = ("systemctl", "daemon-reload"), ("systemctl", "try-restart", "irqbalance.service")
WRITTEN = TUNED_FILES[TUNED_VARIABLES].replace("=6-7", "=2-7")
TUNED_FACTS = Facts(processes={"tuned": [3]})


class Node(Brought):
    """The node with every layer, on which tuned runs."""

    def __init__(self, root: Path) -> None:
        housekept.write_node(root)
        write_owned(root, TUNED_FILES)
        (root / TUNED_VARIABLES).chmod(0o640)
        super().__init__(root)

    def bring(
        self,
        reserved: str = "0-1",
        layers: Sequence[str] = LAYERS,
        act: bool = True,
        runs: bool = False,
        with_tuned: bool = True,
    ) -> run.HousekeepingResult:
        owners = find_owners(self.tree, TUNED_FACTS)
        tuned = needed_tuned(self.tree, owners, with_arguments=False) if with_tuned else None
        wish = HousekeepingWish(CPUSet.parse(reserved), layers_beside(layers, tuned))
        return bring.present(self.tree, wish, Extras(runs=runs, tuned=tuned), act, self.run)

    def held(self, path: str) -> str:
        return (self.root / path).read_text()


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path / "node")


def layers_of(answer: run.HousekeepingResult) -> list[str]:
    return list(dict.fromkeys(step.layer for step in answer.steps if not isinstance(step, CommandStep)))


def test_brought_again_and_back(node: Node) -> None:
    check = node.bring(act=False)
    assert node.contents() == node.before
    first = node.bring()
    assert first.to_dict() == check.to_dict()
    assert first.changed
    assert node.held(TUNED_VARIABLES) == WRITTEN
    assert (node.root / TUNED_VARIABLES).stat().st_mode & 0o777 == 0o640
    # Its own layers are left to tuned, all others are ours.
    assert layers_of(first) == ["tuned", "rps", "slices"]
    assert node.held(housekept.IRQBALANCE) == housekept.VARIABLES
    assert node.held("proc/irq/24/smp_affinity_list") == "0-7\n"
    assert node.held("sys/fs/cgroup/system.slice/cpuset.cpus") == "0-1\n"
    assert first.commands == [APPLY, RELOAD]
    assert needs_of(first.needs)["apply_tuned"] == [list(APPLY)]
    assert needs_of(first.needs)["update_loader"] == needs_of(first.needs)["slices"] == []
    shown = {path: (before, after) for path, before, after in differences(first)}
    assert shown["/" + TUNED_VARIABLES] == (TUNED_FILES[TUNED_VARIABLES], WRITTEN)
    brought = node.contents()
    assert not node.bring().changed
    assert node.contents() == brought
    back = node.back()
    assert back.commands == [RELOAD, APPLY]
    assert node.contents() == node.before
    assert not node.back().changed


def test_the_order(node: Node) -> None:
    answer = node.bring(runs=True)
    kinds = [
        " ".join(step.words) if isinstance(step, CommandStep) else "%s %s" % (type(step).__name__, step.layer)
        for step in answer.steps
    ]
    assert list(dict.fromkeys(kinds)) == [
        "FileStep tuned",
        "tuned-adm profile cpu-partitioning",
        "ValueStep rps",
        "FileStep slices",
        "systemctl daemon-reload",
        "ValueStep slices",
    ]
    assert node.commands == [APPLY, RELOAD]
    node.commands.clear()
    assert not node.bring(runs=True).changed
    assert node.commands == []


def test_layers_that_were_ours_are_put_back_before_tuned_takes_them_over(node: Node) -> None:
    node.bring(with_tuned=False, runs=True)
    assert node.held(housekept.IRQBALANCE) != housekept.VARIABLES
    node.commands.clear()
    answer = node.bring(runs=True)
    assert node.commands == [RESTART, APPLY, RELOAD]
    steps = list(answer.steps)
    at = steps.index(CommandStep(APPLY))
    values = [number for number, step in enumerate(steps) if isinstance(step, ValueStep)]
    assert {steps[number].layer for number in values} == {"interrupts", "workqueues"}  # type: ignore[union-attr]
    assert max(values) < at
    assert node.held(housekept.IRQBALANCE) == housekept.VARIABLES
    assert node.held("proc/irq/24/smp_affinity_list") == "0-7\n"
    # And again ours, where somebody answers for tuned.
    node.commands.clear()
    answer = node.bring(with_tuned=False, runs=True)
    assert node.commands == [RESTART, APPLY, RELOAD]
    assert node.held(TUNED_VARIABLES) == TUNED_FILES[TUNED_VARIABLES]
    steps = list(answer.steps)
    values = [number for number, step in enumerate(steps) if isinstance(step, ValueStep)]
    assert min(values) > steps.index(CommandStep(APPLY))
    assert node.held("proc/irq/24/smp_affinity_list") == "0-1\n"
    node.back()
    assert node.contents() == node.before


def test_other_cpus(node: Node) -> None:
    node.bring()
    answer = node.bring("0,4")
    assert answer.commands == [APPLY, RELOAD]
    assert node.held(TUNED_VARIABLES) == TUNED_FILES[TUNED_VARIABLES].replace("=6-7", "=1-3,5-7")
    node.back()
    assert node.contents() == node.before


@pytest.mark.parametrize("text", ["isolated_cores=2-7\n", "isolated_cores = 2,3-5,6,7 # all\n"])
def test_cpus_that_tuned_has_already(node: Node, text: str) -> None:
    node.put(TUNED_VARIABLES, text)
    before = node.contents()
    answer = node.bring()
    assert (layers_of(answer), answer.commands) == (["rps", "slices"], [RELOAD])
    assert node.held(TUNED_VARIABLES) == text
    assert not node.bring().changed
    node.back()
    assert node.contents() == before


def test_a_file_of_variables_that_is_not_there(node: Node) -> None:
    (node.root / TUNED_VARIABLES).unlink()
    node.bring()
    assert node.held(TUNED_VARIABLES) == "isolated_cores=2-7\n"
    node.back()
    assert not (node.root / TUNED_VARIABLES).exists()


def test_what_others_have_changed_since(node: Node) -> None:
    node.bring()
    node.put(TUNED_VARIABLES, WRITTEN + "no_balance_cores=7\n")
    assert not node.bring().steps
    back = node.back()
    assert node.held(TUNED_VARIABLES) == TUNED_FILES[TUNED_VARIABLES] + "no_balance_cores=7\n"
    assert back.commands == [RELOAD, APPLY]


def test_another_profile(node: Node) -> None:
    node.bring()
    site = node.held(TUNED_PROFILE).replace(TUNED_VARIABLES, "etc/tuned/site-variables.conf")
    node.put("etc/tuned/site/tuned.conf", site)
    node.put("etc/tuned/site-variables.conf", "isolated_cores=7\n")
    node.put(ACTIVE_PROFILE[1:], "site\n")
    answer = node.bring()
    assert answer.commands == [("tuned-adm", "profile", "site")]
    assert node.held(TUNED_VARIABLES) == TUNED_FILES[TUNED_VARIABLES]
    assert node.held("etc/tuned/site-variables.conf") == "isolated_cores=2-7\n"


def test_what_tuned_did_not_come_to(node: Node) -> None:
    def fail(words: Sequence[str]) -> str:
        if words == APPLY:
            raise NodeError("Error changing profile", where=" ".join(words))
        return node.run(words)

    tuned = read_tuned(node.tree)
    wish = HousekeepingWish(CPUSet.parse("0-1"), layers_beside(LAYERS, tuned))
    with pytest.raises(NodeError, match="Error changing profile"):
        bring.present(node.tree, wish, Extras(runs=True, tuned=tuned), act=True, run=fail)
    journal = read_journal(node.tree)
    assert journal is not None
    assert (journal.is_done, "apply_tuned" in journal.pending) == (False, True)
    # Slices are as they were: tuned comes first.
    assert node.held("sys/fs/cgroup/system.slice/cpuset.cpus") == "\n"
    # By now it has another profile, or chooses its profile itself.
    node.put("etc/tuned/profile_mode", "auto\n")
    answer = node.bring(runs=True)
    assert answer.changed
    assert node.commands == [("tuned-adm", "auto_profile"), RELOAD]
    assert not node.bring(runs=True).changed


def test_tuned_that_was_removed_since(node: Node) -> None:
    node.bring()
    (node.root / ACTIVE_PROFILE[1:]).unlink()
    back = node.back()
    assert back.commands == [RELOAD]
    assert node.held(TUNED_VARIABLES) == TUNED_FILES[TUNED_VARIABLES]


def set_profile(text: str) -> dict[str, str]:
    return {TUNED_PROFILE: text}


@pytest.mark.parametrize(
    ("files", "gone", "active", "arguments", "where", "message"),
    [
        ({}, "etc/tuned/active_profile", True, False, "active_profile", "tuned has no active profile"),
        (
            {"etc/tuned/active_profile": "balanced\n"},
            "",
            True,
            False,
            "active_profile",
            "tuned's profile balanced isolates no CPUs",
        ),
        ({}, "", False, False, "active_profile", "tuned does not run, nor does it start"),
        (
            {TUNED_VARIABLES: "isolated_cores=${f:calc_isolated_cores:1}\n"},
            "",
            True,
            False,
            TUNED_VARIABLES,
            "works its isolated CPUs out itself: isolated_cores=${f:calc_isolated_cores:1}",
        ),
        (
            set_profile("[variables]\nisolated_cores=${f:exec:x}\n[scheduler]\nisolated_cores=${isolated_cores}\n"),
            "",
            True,
            False,
            TUNED_PROFILE,
            "works its isolated CPUs out itself",
        ),
        (
            set_profile("[variables]\nisolated_cores=2-7\n[scheduler]\nisolated_cores=${isolated_cores}\n"),
            "",
            True,
            False,
            TUNED_PROFILE,
            "does not take its isolated CPUs from a file of variables",
        ),
        (
            {},
            TUNED_PROFILE,
            True,
            False,
            "active_profile",
            "does not take its isolated CPUs from a file of variables",
        ),
        ({}, "", True, True, TUNED_PROFILE, "gives the kernel nohz_full, rcu_nocbs itself"),
    ],
)
def test_what_is_refused(
    node: Node, files: dict[str, str], gone: str, active: bool, arguments: bool, where: str, message: str
) -> None:
    write_owned(node.root, files)
    if gone:
        (node.root / gone).unlink()
    owners = find_owners(node.tree, TUNED_FACTS)
    owners = [owner._replace(is_active=active) for owner in owners]
    with pytest.raises(RefusedError) as refused:
        needed_tuned(node.tree, owners, arguments)
    assert message in str(refused.value)
    assert "nothing was written" in str(refused.value)
    assert str(refused.value.where).endswith(where)
    assert "tuned on this node" in refused.value.remedy


def test_what_tuned_has_left(node: Node) -> None:
    """On this node nothing runs, so that all is left as it is."""
    answer = node.bring(runs=True)
    assert [note.partition(":")[0] for note in answer.notes] == ["interrupts", "workqueues"]
    assert all("tuned has left " in note for note in answer.notes)
    assert answer.to_dict()["note_checks"] == ["housekeeping-left-to-tuned"] * 2
    assert node.bring(runs=True).notes == answer.notes
    assert node.bring(runs=True, act=False).notes == []
    for path, text in (("proc/irq/24/smp_affinity_list", "0-1\n"), ("proc/irq/default_smp_affinity", "3\n")):
        node.put(path, text)
    for mask in node.root.glob("sys/devices/virtual/workqueue/**/cpumask"):
        mask.write_text("3\n")
    assert [note for note in node.bring(runs=True).notes if "24 eth0-0" in note or "workqueues" in note] == []


def test_what_nobody_can_move(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []

    def refuse(_tree: Tree, step: ValueStep) -> str | None:
        tried.append(step.path)
        assert (step.before, step.layer) == (step.after, "interrupts")
        return {"24 eth0-0": "EIO", "26 eth0-2": "", "new interrupts": run.NOT_TAKEN}.get(step.name)

    for mask in node.root.glob("sys/devices/virtual/workqueue/**/cpumask"):
        mask.write_text("3\n")
    monkeypatch.setattr(tuned, "set_value", refuse)
    answer = node.bring(runs=True)
    refused = [note for note in answer.notes if "the kernel refuses tuned to move 24 eth0-0 (EIO)" in note]
    assert len(refused) == 1
    assert not any("26 eth0-2" in note for note in answer.notes)
    journal = read_journal(node.tree)
    assert journal is not None
    assert journal.refused == {"/proc/irq/24/smp_affinity_list": "EIO"}
    # It is remembered, as long as the machine runs.
    tried.clear()
    again = node.bring(runs=True)
    assert not again.changed
    assert again.notes == answer.notes
    assert "/proc/irq/24/smp_affinity_list" not in tried
    node.put(housekept.BOOT[1:], "another\n")
    assert node.bring(runs=True).notes == answer.notes
    assert "/proc/irq/24/smp_affinity_list" in tried


@pytest.mark.parametrize(
    ("line", "isolated", "waiting"),
    [
        ("quiet", "2-7", "nohz_full, rcu_nocbs"),
        ("nohz_full=2-7 rcu_nocbs=2-5", "2-7", "rcu_nocbs"),
        ("nohz_full=2-7 rcu_nocbs=2,3-7", "2-7", ""),
        ("nohz_full rcu_nocbs=all", "2-7", "nohz_full, rcu_nocbs"),
        ("quiet", "", ""),
    ],
)
def test_what_waits_for_a_boot(node: Node, line: str, isolated: str, waiting: str) -> None:
    node.put("proc/cmdline", line + "\n")
    cpus = CPUSet.parse(isolated) if isolated else None
    found = tuned_waits_for_boot(node.tree, cpus)
    text = "tuned gives the kernel %s for CPUs %s, which count from the next boot on"
    assert found == ([text % (waiting, isolated)] if waiting else [])


def test_the_cpus_of_an_argument_are_behind_its_flags(node: Node) -> None:
    node.put(TUNED_PROFILE, node.held(TUNED_PROFILE) + "cmdline_more=+isolcpus=managed_irq,${isolated_cores}\n")
    node.put("proc/cmdline", "nohz_full=2-7 rcu_nocbs=2-7 isolcpus=managed_irq,domain,2-7\n")
    assert tuned_waits_for_boot(node.tree, CPUSet.parse("2-7")) == []
    node.put("etc/tuned/active_profile", "balanced\n")
    assert tuned_waits_for_boot(node.tree, CPUSet.parse("2-7")) == []


def test_the_cpus_before(node: Node) -> None:
    node.bring()
    journal = read_journal(node.tree)
    assert journal is not None
    assert isolated_before(journal) == CPUSet.parse("6-7")
    assert isolated_before(journal._replace(files={})) is None
    assert {kept.layer for kept in journal.files.values()} == {"tuned", "slices"}


def test_files_are_written_as_steps(node: Node) -> None:
    (step,) = (step for step in node.bring().steps if isinstance(step, FileStep) and step.layer == "tuned")
    assert (step.path, step.keep_mode) == ("/" + TUNED_VARIABLES, True)
