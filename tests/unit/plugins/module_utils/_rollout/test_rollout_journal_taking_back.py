# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What becomes of a file that others have changed since the change that is taken back."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.journal_file import LAST, OPEN
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._rollout.rollout_journal import (
    CHANGING,
    FileBack,
    RolloutJournal,
    SavedFile,
    files_back,
    restore,
    write_journal,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._rollout.rollout_plan import (
    ChangeTerms,
    rollout_report,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.kubelets import HEADER
from ansible_collections.kubenode.cpu_manager.tests.machines.planned import configure
from ansible_collections.kubenode.cpu_manager.tests.machines.troubles import CHECKPOINT, CONFIG, STATIC

OTHER = "/etc/default/kubelet"
KEPT, REPLACED = "only what the change made of it is taken back", "it is replaced as a whole"


def yaml(text: str) -> bytes:
    return (HEADER + text).encode("utf-8")


BEFORE, AFTER = yaml("maxPods: 20\n"), yaml("maxPods: 20\n" + STATIC)


def back(
    tree: Tree,
    now: bytes | None,
    before: bytes | None = BEFORE,
    after: bytes | None = AFTER,
    path: str = CONFIG,
    overwrite: bool = False,
) -> FileBack:
    """Return what becomes of a file that a change found and left so."""
    here = Path(tree.path(path))
    here.parent.mkdir(parents=True, exist_ok=True)
    here.unlink(missing_ok=True)
    if now is not None:
        here.write_bytes(now)
    journal = RolloutJournal(CHANGING, {path: SavedFile(before, 0o644)}, {}, "run", {path: after})
    return files_back(tree, journal, overwrite=overwrite)[path]


@pytest.mark.parametrize("now", [BEFORE, AFTER, None])
def test_what_nobody_has_changed_goes_back_to_the_byte(tree: Tree, now: bytes | None) -> None:
    found = back(tree, now)
    assert (found.content, found.backup, found.note, found.problem) == (BEFORE, False, "", None)


@pytest.mark.parametrize(
    ("now", "content"),
    [
        (yaml("# mine\nmaxPods: 20\n" + STATIC), yaml("# mine\nmaxPods: 20\n")),
        (yaml("maxPods: 99\n" + STATIC + "podPidsLimit: 7\n"), yaml("maxPods: 99\npodPidsLimit: 7\n")),
        # Of what the change has set, what it was before is back, whatever others have made of it.
        (yaml("maxPods: 20\ncpuManagerPolicy: none\n"), yaml("maxPods: 20\n")),
        (yaml("maxPods: 20\ncpuManagerPolicy: static\nreservedSystemCPUs: 0-1,4-5\n"), yaml("maxPods: 20\n")),
    ],
)
def test_what_others_wrote_stays_in_the_file(tree: Tree, now: bytes, content: bytes) -> None:
    found = back(tree, now)
    assert (found.content, found.backup, found.problem) == (content, True, None)
    assert KEPT in found.note


def test_others_have_taken_the_change_back_themselves(tree: Tree) -> None:
    now = yaml("maxPods: 99\n")
    found = back(tree, now)
    assert (found.content, found.backup) == (now, False)


def test_members_that_others_added_to_a_mapping_of_the_change_stay(tree: Tree) -> None:
    before = yaml("systemReserved: {memory: 1Gi}\n")
    after = yaml("systemReserved: {memory: 1Gi, cpu: 500m}\nkubeReserved:\n  cpu: 1\nfeatureGates: {A: true}\n")
    now = after.replace(b"  cpu: 1\n", b"  cpu: 1\n  memory: 2Gi\n").replace(b"{A: true}", b"{A: true, B: false}")
    found = back(tree, now, before, after)
    assert found.content == yaml(
        "systemReserved: {memory: 1Gi}\nkubeReserved:\n  memory: 2Gi\nfeatureGates: {B: false}\n"
    )


def test_what_the_change_has_removed_is_back(tree: Tree) -> None:
    before, after = yaml(STATIC + "cpuManagerPolicyOptions: {strict-cpu-reservation: 'true'}\n"), yaml("maxPods: 1\n")
    found = back(tree, yaml("maxPods: 1\npodPidsLimit: 7\n"), before, after)
    assert b"podPidsLimit: 7\n" in (found.content or b"")
    assert b"strict-cpu-reservation" in (found.content or b"")
    assert b"maxPods" not in (found.content or b"")


def test_json(tree: Tree) -> None:
    head = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}
    before, after = json.dumps(head).encode(), json.dumps({**head, "cpuManagerPolicy": "static"}).encode()
    now = json.dumps({**head, "maxPods": 9, "cpuManagerPolicy": "static"}, indent=2).encode()
    assert json.loads(back(tree, now, before, after).content or b"") == {**head, "maxPods": 9}


def test_a_file_that_the_change_has_made(tree: Tree) -> None:
    found = back(tree, yaml(STATIC + "maxPods: 7\n"), None, yaml(STATIC))
    assert found.content == yaml("maxPods: 7\n")
    assert back(tree, yaml(STATIC), None, yaml(STATIC)).content is None


REFUSED = {
    "damaged": (BEFORE, AFTER, b"cpuManagerPolicy: [\n", CONFIG, "line 1"),
    "no text": (BEFORE, AFTER, b"\xff", CONFIG, "not UTF-8"),
    "empty": (BEFORE, AFTER, b"", CONFIG, "the file is empty"),
    "repeated": (BEFORE, AFTER, yaml("x: &a {b: 1}\ncpuManagerPolicy: &b static\ny: *b\n"), CONFIG, "anchor"),
    "removed": (BEFORE, None, BEFORE + b"#\n", CONFIG, "the change has removed it"),
    "flags": (b"A=1\n", b"A=1 --cpu-manager-policy=static\n", b"A=2 --cpu-manager-policy=static\n", OTHER, ""),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_kept_is_refused_unless_it_may_be_overwritten(tree: Tree, case: str) -> None:
    before, after, now, path, said = REFUSED[case]
    found = back(tree, now, before, after, path)
    assert found.problem is not None
    assert (found.problem.kind, found.problem.where) == ("edited", tree.path(path))
    assert said in found.problem.what
    assert "(from line " in found.problem.what
    assert "overwrite_edited: true" in found.problem.remedy
    found = back(tree, now, before, after, path, overwrite=True)
    assert (found.content, found.backup, found.problem) == (before, True, None)
    assert REPLACED in found.note


def test_a_file_that_the_change_has_left_alone_stays_as_it_is(tree: Tree) -> None:
    configure(Path(tree.root), "maxPods: 99\n")
    journal = RolloutJournal(CHANGING, {CONFIG: SavedFile(BEFORE, 0o644)}, {}, "run", {})
    (found,) = files_back(tree, journal).values()
    assert (found.content, found.backup) == (yaml("maxPods: 99\n"), False)


def test_where_it_is_not_known_what_the_change_wrote(tree: Tree) -> None:
    """As of a change by hand: what is there may be of others, and is kept as a backup."""
    configure(Path(tree.root), "maxPods: 99\n")
    (found,) = files_back(tree, RolloutJournal(CHANGING, {CONFIG: SavedFile(BEFORE, 0o644)}, {})).values()
    assert (found.content, found.backup, found.problem) == (BEFORE, True, None)
    assert "not known" in found.note


def test_states_are_the_kubelets_and_go_back_with_a_backup(tree: Tree) -> None:
    for written, backup in ((b"ours", True), (b"now", False)):
        Path(tree.path(CHECKPOINT)).write_bytes(b"now")
        journal = RolloutJournal(CHANGING, {CHECKPOINT: SavedFile(b"old", 0o600)}, {}, "run", {CHECKPOINT: written})
        (found,) = files_back(tree, journal).values()
        assert (found.content, found.backup, found.problem) == (b"old", backup, None)


def test_a_backup_is_not_where_a_program_reads_each_file(tree: Tree) -> None:
    """CRI-O would take the settings from it that are taken back."""
    path = "/etc/crio/crio.conf.d/99-ours.conf"
    found = back(tree, b"[theirs]\n", None, b"[ours]\n", path, overwrite=True)
    os.mkdir(tree.path("/var/lib/kubenode-cpu-manager"))
    backups = restore(tree, {path: found}, keep=3, elsewhere=[path])
    assert os.listdir(os.path.dirname(tree.path(path))) == []
    assert Path(backups[path]).read_bytes() == b"[theirs]\n"
    assert backups[path].startswith(tree.path("/var/lib/kubenode-cpu-manager/99-ours.conf."))


@pytest.mark.parametrize("last", [True, False], ids=["rollback", "interrupted"])
def test_the_plan_says_what_is_kept_and_what_is_refused(tree: Tree, last: bool) -> None:
    saved = {CONFIG: SavedFile(BEFORE, 0o644)}
    write_journal(tree, RolloutJournal(CHANGING, saved, {}, "run", {CONFIG: AFTER}), LAST if last else OPEN)
    terms = ChangeTerms("rollback" if last else "rollout", discard=True)
    for overwrite in (False, True):
        Path(tree.path(CONFIG)).write_bytes(b"cpuManagerPolicy: [\n")
        answer = rollout_report(Node(tree), {}, terms._replace(overwrite=overwrite))
        assert [refusal["kind"] for refusal in answer["refusals"]] == ([] if overwrite else ["edited"])
        assert (REPLACED in str(answer["notes"])) == overwrite
    Path(tree.path(CONFIG)).write_bytes(AFTER + b"podPidsLimit: 7\n")
    answer = rollout_report(Node(tree), {}, terms)
    assert answer["refusals"] == []
    assert KEPT in str(answer["notes"])
