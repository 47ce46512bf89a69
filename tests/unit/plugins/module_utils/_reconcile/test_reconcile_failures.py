# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a pass makes of containers that vanish, of writes that fail and of damaged files."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import NodeError, RefusedError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._cgroup import writer
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._cgroup.hierarchy import Hierarchy
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node import container_writes as settle
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._reconcile.reconcile import (
    reconcile_listed,
    reconcile_pods,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.options import StaticOptions
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.formats import Format1
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import write_checkpoint
from ansible_collections.kubenode.cpu_manager.tests.machines import cgroups as saved
from ansible_collections.kubenode.cpu_manager.tests.machines.reconciled import (
    BATCH,
    CHECKPOINT,
    EVERYBODY,
    OWN,
    SANDBOX,
    SHARED,
    STATE,
    STYLES,
    held,
    make_node,
    node,
    results,
    told,
    whys,
    write,
)


def test_a_container_that_vanishes_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_node(tmp_path, {OWN: "0", SHARED: "0", BATCH: "0"})
    top = tmp_path / saved.V1.mount[1:]

    def remove(container: str) -> None:
        shutil.rmtree(next(top.glob("**/*%s.scope" % container)))

    around, carry_out = Hierarchy.around, writer.carry_out

    def vanish_before(self: Hierarchy, *paths: Any) -> Any:
        monkeypatch.setattr(Hierarchy, "around", around)
        remove(OWN)
        return around(self, *paths)

    def vanish_at_the_write(hierarchy: Hierarchy, writes: Any, systemd: Any) -> None:
        monkeypatch.setattr(settle, "carry_out", carry_out)
        remove(SHARED if "web" in next(iter(writes)).path else BATCH)
        carry_out(hierarchy, writes, systemd)

    monkeypatch.setattr(Hierarchy, "around", vanish_before)
    monkeypatch.setattr(settle, "carry_out", vanish_at_the_write)
    answer = reconcile_pods(node(tmp_path), None, act=True)
    assert sorted(results(answer).values()) == ["skipped", "skipped", "written"]
    assert set(whys(answer).values()) == {"it ended meanwhile"}


@STYLES
def test_a_container_that_vanishes_while_it_is_read(tmp_path: Path, style: saved.Style) -> None:
    make_node(tmp_path, EVERYBODY, style)
    for file in next((tmp_path / style.mount[1:]).glob("**/*%s.scope" % OWN)).iterdir():
        file.unlink()
    answer = reconcile_pods(node(tmp_path), None, act=True)
    assert results(answer) == {"server": "skipped", "app": "kept", "job": "kept"}
    assert whys(answer) == {"server": "it ended meanwhile"}


def test_a_damaged_saved_file_is_named(tmp_path: Path) -> None:
    make_node(tmp_path, EVERYBODY)
    next((tmp_path / saved.V1.mount[1:]).glob("**/*%s.scope/cpuset.cpus" % OWN)).write_text("5-4\n")
    with pytest.raises(NodeError, match=r"scope/cpuset.cpus: .*save the node's files again"):
        reconcile_pods(node(tmp_path), None, act=True)


def test_an_interrupted_pass_is_finished_by_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_node(tmp_path, {OWN: "0", SHARED: "0", BATCH: "0"}, above="0")
    real, left = os.write, [7]

    def write_some(descriptor: int, content: bytes) -> int:
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt
        return real(descriptor, content)

    monkeypatch.setattr(os, "write", write_some)
    with pytest.raises(KeyboardInterrupt):
        reconcile_pods(node(tmp_path), None, act=True)
    monkeypatch.setattr(os, "write", real)
    assert "written" in results(reconcile_pods(node(tmp_path), None, act=True)).values()
    assert {container: held(tmp_path, container) for container in EVERYBODY} == EVERYBODY
    assert not reconcile_pods(node(tmp_path), None, act=True).changed


def test_the_failure_of_one_does_not_stop_the_others(tmp_path: Path) -> None:
    make_node(tmp_path, {OWN: "0-7", SHARED: "0-7", BATCH: "0-7"})
    nested = next((tmp_path / saved.V1.mount[1:]).glob("**/*%s.scope" % OWN)) / "nested"
    shutil.copytree(nested.parent, nested)
    check = reconcile_pods(node(tmp_path), None, act=False)
    run = reconcile_pods(node(tmp_path), None, act=True)
    assert told(check) == told(run)
    assert results(run) == {"server": "failed", "app": "written", "job": "written"}
    assert "its child" in whys(run)["server"]
    lines = ["shop/batch-2/job: 0-3,6-7", "shop/db-0/server: 0-7", "shop/web-1/app: 0-3,6-7"]
    assert sorted(run.after().splitlines()) == lines


def test_a_write_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_node(tmp_path, {OWN: "0", SHARED: "0"}, above="0")
    real = writer._put

    def put(hierarchy: Hierarchy, write: Any, value: CPUSet) -> None:
        if OWN in write.path:
            raise NodeError("the kernel refuses")
        real(hierarchy, write, value)

    monkeypatch.setattr(writer, "_put", put)
    run = reconcile_pods(node(tmp_path), None, act=True)
    assert results(run) == {"server": "failed", "app": "written"}
    # Undone with it: nothing that is above the other.
    pod = tmp_path / saved.V1.mount[1:] / "kubepods.slice/kubepods-poduid_db.slice"
    assert (pod / "cpuset.cpus").read_text() == "0\n"


def test_a_checkpoint_that_changes_meanwhile_ends_the_writing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_node(tmp_path, {OWN: "0", SHARED: "0"})
    around = Hierarchy.around

    def change(self: Hierarchy, *paths: Any) -> Any:
        write(tmp_path, write_checkpoint("static", STATE._replace(assignments={})))
        return around(self, *paths)

    monkeypatch.setattr(Hierarchy, "around", change)
    answer = reconcile_pods(node(tmp_path), None, act=True)
    assert set(whys(answer).values()) == {"the checkpoint was changed meanwhile; run again"}
    assert held(tmp_path, OWN) == "0"


def test_a_kernel_that_gives_something_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_node(tmp_path, {OWN: "0"})
    monkeypatch.setattr(settle, "carry_out", lambda *_arguments: None)
    answer = reconcile_pods(node(tmp_path), None, act=True)
    assert whys(answer)["server"].endswith(".scope: 0 is effective after 4-5 was written")


def test_a_node_without_cgroups_or_checkpoint_is_an_answer(tmp_path: Path) -> None:
    answer = reconcile_pods(node(tmp_path), None, act=True)
    assert (answer.rows, answer.changed, len(answer.notes)) == ((), False, 1)
    assert (answer.to_dict()["shared_pool"], answer.before(), answer.after()) == ("", "", "")
    assert "no cpuset controller" in answer.notes[0]
    assert reconcile_listed(node(tmp_path), [], StaticOptions(), CPUSet(), act=True).notes == answer.notes
    make_node(tmp_path, EVERYBODY)
    (tmp_path / CHECKPOINT).unlink()
    answer = reconcile_pods(node(tmp_path), None, act=True)
    assert (answer.rows, answer.changed) == ((), False)
    assert "no checkpoint there" in answer.notes[0]


@pytest.mark.parametrize(
    "content", [b"", b"{}", write_checkpoint("static", STATE).replace(b'"4-5"', b'"4-6"'), b'{"policyName":']
)
def test_a_damaged_checkpoint_is_refused(tmp_path: Path, content: bytes) -> None:
    make_node(tmp_path, {OWN: "0"})
    write(tmp_path, content)
    if content == b"{}":  # says nothing, and rightly so
        assert results(reconcile_pods(node(tmp_path), None, act=True)) == {"server": "skipped"}
        return
    with pytest.raises(RefusedError, match="is damaged, and no cpuset was written"):
        reconcile_pods(node(tmp_path), None, act=True)


def test_a_checkpoint_that_names_ids(tmp_path: Path) -> None:
    make_node(tmp_path, {OWN: "0", SANDBOX: "0"})
    old = Format1()
    old.policy_name, old.default_cpu_set, old.entries = "static", "0-1,6-7", {OWN: "4-5", SANDBOX: "2-3"}
    write(tmp_path, old.write())
    assert results(reconcile_pods(node(tmp_path), None, act=True)) == {"server": "written", "d": "written"}
    assert (held(tmp_path, OWN), held(tmp_path, SANDBOX)) == ("4-5", "2-3")
