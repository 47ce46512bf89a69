# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Two runs at one node: what a run does with the journal of another."""

from __future__ import annotations

import base64
import json
import os
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import RefusedError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._rollout.journal_steps import JournalStep, note
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._rollout.rollout_journal import read_journal
from ansible_collections.kubenode.cpu_manager.tests.faults.changing import Change
from ansible_collections.kubenode.cpu_manager.tests.support.others import as_root, place, put_acl, writes_as_nobody

from .conftest import CopyOf, ansible_playbook, fingerprint, play, task

__all__ = ("place",)

CONFIG = "/var/lib/kubelet/config.yaml"
JOURNAL = "var/lib/kubenode-cpu-manager/change.json"
TAKEN = "another run (second) is changing this node or was interrupted, and this one (first) goes no further"
GONE = "another run has ended the change that this one (first) had begun"


def step(state: str, run: str = "first", **parameters: Any) -> JournalStep:
    """Return a step of a change."""
    return JournalStep(state, run, **parameters)


# {story: its calls, and how the last ends: the journal's phase and run, or what the refusal says}
STORIES: dict[str, tuple[list[JournalStep], tuple[str, str] | str | None]] = {
    "whole": (
        [step("draining"), step("stopping", begin=False), step("changing", files=[CONFIG]), step("done")],
        None,
    ),
    "without_drain": ([step("stopping")], ("stopping", "first")),
    "of_nobody": ([step("draining", run=""), step("stopping", run="")], ("stopping", "")),
    "taken_of_nobody": ([step("draining", run=""), step("taken")], ("draining", "first")),
    "taken_of_nothing": ([step("taken")], None),
    "taken_and_read": ([step("draining"), step("taken", "second"), step("read")], TAKEN),
    "taken_and_gone_on": ([step("draining"), step("taken", "second"), step("stopping", begin=False)], TAKEN),
    "taken_and_saved": ([step("stopping"), step("taken", "second"), step("changing", files=[CONFIG])], TAKEN),
    "taken_and_put_back": ([step("stopping"), step("taken", "second"), step("restored")], TAKEN),
    "taken_and_ended": ([step("stopping"), step("taken", "second"), step("done")], TAKEN),
    "taken_and_forgotten": ([step("stopping"), step("taken", "second"), step("absent")], TAKEN),
    "begun_twice": ([step("draining", "second"), step("draining")], TAKEN),
    "gone_while_drained": ([step("draining"), step("absent", run=""), step("stopping", begin=False)], GONE),
    "gone_while_stopped": ([step("stopping"), step("absent", run=""), step("changing", files=[CONFIG])], GONE),
    "gone_at_the_end": ([step("stopping"), step("absent", run=""), step("done")], GONE),
    "gone_and_forgotten": ([step("stopping"), step("absent", run=""), step("absent")], None),
    "by_hand": ([step("stopping"), step("absent", run="")], None),
}


def test_a_run_does_nothing_with_the_change_of_another(copy_of: CopyOf, tmp_path: Path) -> None:
    roots = {name: copy_of("edge", name) for name in STORIES}
    ends: dict[str, tuple[str, str] | str | None] = {}
    for name, (steps, _expected) in STORIES.items():
        tree = Tree(str(roots[name]))
        for before in steps[:-1]:
            note(tree, before)
        try:
            journal = note(tree, steps[-1]).journal
            ends[name] = journal and (journal.phase, journal.run)
        except RefusedError as error:
            ends[name] = str(error)
    hosts = {name: {"root": str(root)} for name, root in roots.items()}
    run = ansible_playbook(tmp_path / "run", play(task("drift_info", root="{{ root }}")), hosts)
    for name, (_steps, expected) in STORIES.items():
        if isinstance(expected, str):
            assert expected in str(ends[name]), name
        else:
            assert ends[name] == expected, name
        # Who is refused has changed nothing.
        is_open = (roots[name] / JOURNAL).exists()
        assert is_open == (expected not in (None, GONE)), name
        assert any("a change of this node" in text for text in run.last(name)["notes"]) == is_open


@pytest.mark.parametrize(
    ("meanwhile", "end"), [(step("taken", "second"), TAKEN), (step("absent", run=""), GONE)], ids=["taken", "ended"]
)
def test_a_run_writes_nothing_into_the_change_of_another(meanwhile: JournalStep, end: str, copy_of: CopyOf) -> None:
    """Another run comes before each of its steps but the first."""
    wanted: dict[str, Any] = {
        "cpu_manager_policy": "static",
        "reserved_system_cpus": "0",
        "cpu_manager_reconcile_period": "7s",
    }
    # It saves what is changed, writes the configuration and the checkpoint, starts the kubelet, and ends.
    for number in range(1, 6):
        root = copy_of("edge", "node-%d" % number)
        change = Change(str(root), "first", discard=True, **wanted)
        found: list[dict[str, str]] = []
        answer = change.carry_out(number, partial(other_run, root, meanwhile, found))
        assert end in answer["msg"], (number, answer)
        assert answer["failure"]["kind"] == "another_run"
        assert answer["msg"].endswith("; nothing more was done here")
        assert [files_of(root)] == found
        journal = read_journal(Tree(str(root)))
        assert (journal and journal.run) == (meanwhile.run or None)


def other_run(root: Path, noted: JournalStep, found: list[dict[str, str]]) -> None:
    """Note a step of another run at this moment, and add the node's files as they are."""
    note(Tree(str(root)), noted)
    found.append(files_of(root))


def files_of(root: Path) -> dict[str, str]:
    """Return a node's files, the journal left out."""
    return {path: what for path, what in fingerprint(root).items() if "kubenode-cpu-manager" not in path}


# What another user would have root write.
EVIL = "/etc/cron.d/evil"
ROLLOUT = "2026-11-20T10:00:00.000001"
LAST = "var/lib/kubenode-cpu-manager/last-change.json"


def evil_journal(run: str = "") -> bytes:
    saved = {"content": base64.b64encode(b"* * * * * root id\n").decode("ascii"), "mode": 0o755, "uid": 0, "gid": 0}
    facts = {"rollout": ROLLOUT}
    journal = {"format": 1, "phase": "changing", "run": run, "facts": facts, "files": {EVIL: saved}}
    return json.dumps({**journal, "written": {EVIL: None}}).encode("ascii")


@as_root
@pytest.mark.parametrize("way", ["mode", "owner", "acl"])
def test_root_does_nothing_of_a_journal_that_another_user_wrote(way: str, copy_of: CopyOf, place: Path) -> None:
    """Neither a rollback of the last change nor a repair, which takes back one that is open; and the report says so."""
    root = place / "node"
    shutil.copytree(copy_of("edge", "given"), root, symlinks=True)
    (root / EVIL[1:]).parent.mkdir(parents=True)
    directory = (root / JOURNAL).parent
    directory.mkdir(parents=True)
    if way == "mode":
        directory.chmod(0o777)
    elif way == "owner":
        os.chown(directory, 65534, 65534)
    else:
        put_acl(directory)
    variables = {"kubelet_manage_service": False, "kubelet_drain": False, "kubelet_discard_assignments": True}
    hosts = {"edge": {**variables, "kubelet_node_root": str(root), "kubelet_trial": "never"}}
    for path, run, playbook in ((LAST, "", "rollback"), (JOURNAL, "x", "repair")):
        assert writes_as_nobody(root / path, evil_journal(run))
        before = fingerprint(root)
        done = ansible_playbook(place / "run", "kubenode.cpu_manager." + playbook, hosts)
        assert done.status != 0, done.output
        assert "root would do what they write into %s" % (root / path) in " ".join(done.output.split())
        assert fingerprint(root) == before
        looked = ansible_playbook(place / "look", play(task("drift_info", root=str(root))), hosts)
        assert "program-not-roots" in looked.last("edge")["note_checks"]
        (root / path).unlink()


@as_root
def test_root_writes_nothing_of_a_journal_that_came_with_a_saved_node(copy_of: CopyOf, tmp_path: Path) -> None:
    """Whoever has unpacked it owns it, so it is read; it names a file that no change writes."""
    root = copy_of("edge", "node")
    (root / LAST).parent.mkdir(parents=True, mode=0o700)
    (root / LAST).write_bytes(evil_journal())
    hosts = {"edge": {"kubelet_node_root": str(root), "kubelet_manage_service": False, "kubelet_trial": "never"}}
    before = fingerprint(root)
    done = ansible_playbook(tmp_path / "run", "kubenode.cpu_manager.rollback", hosts)
    assert done.status != 0
    assert "the journal would put it back, and no change writes this file" in " ".join(done.output.split())
    assert fingerprint(root) == before
