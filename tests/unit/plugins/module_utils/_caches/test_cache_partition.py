# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_caches/cache_partition.py: divided, followed and put back, on the model of resctrl."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any, Callable, Iterator

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import (
    InputError,
    NodeError,
    RefusedError,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.journal_file import PROMISE
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import OverlaidTree, Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._caches import cache_partition as following
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._caches import cache_partition as partition
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._caches.cache_info import cache_answer, cache_report
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._caches.cache_partition import (
    CacheJournal,
    CacheTerms,
    caches_follow,
    follow,
    former_masks,
    pool_of,
    present,
    text_of,
    wish_of,
    with_masks,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._caches.ways import Pool
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._saved.collector import Collector
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._saved.files_of_machine import save_cache
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.tests.machines.promises import promise, take_over
from ansible_collections.kubenode.cpu_manager.tests.machines.resctrl.mounted import Mounted, mounted
from ansible_collections.kubenode.cpu_manager.tests.machines.resctrl.node import (
    BOOT_ID,
    CONFIG,
    JOURNAL,
    divide,
    give,
    node_at,
    take_back,
    write,
    write_node,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.resctrl.platforms import PLATFORMS, record
from ansible_collections.kubenode.cpu_manager.tests.machines.resctrl.shapes import Shape

SHAPE = PLATFORMS["xeon-l3-mba-mbm"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mounted]:
    yield from mounted(tmp_path_factory.mktemp("node"))


def begin(model: Mounted, shape: Shape = SHAPE, reserved: str = "0,8") -> dict[str, str]:
    model.load(shape)
    write_node(model.root, shape, reserved)
    give(model.root, {1, 9}, set(shape.online) - {1, 9})
    model.writes()
    return model.state()


def test_both_groups_and_back(model: Mounted) -> None:
    before = begin(model)
    answer = divide(model.root, exclusive_share=4, shared_share=3, shared_bandwidth=45)
    assert [step.kind for step in answer.steps].count("make") == 2
    state = model.state()
    assert state["schemata"].startswith("L3:0=780;1=780\n")
    assert state["kubenode.shared/schemata"] == "L3:0=070;1=070\nMB:0=  50;1=  50\n"
    assert (state["cpus_list"], state["kubenode.shared/cpus_list"]) == ("0,8\n", "2-7,10-15\n")
    # Without the wish for a limit, there is none; without both, no group.
    divide(model.root, exclusive_share=4, shared_share=3)
    assert "MB:0= 100" in model.state()["kubenode.shared/schemata"]
    divide(model.root, exclusive_share=4)
    assert "kubenode.shared/mode" not in model.state()
    assert take_back(model.root, act=False).changed
    assert take_back(model.root).to_dict()["level"] == ""
    assert model.state() == before


def test_follow_and_what_is_lost(model: Mounted) -> None:
    begin(model)
    assert follow(node_at(model.root)) == []
    divide(model.root, exclusive_share="60%", mode="exclusive")
    give(model.root, {2, 10}, {0})
    (finding,) = cache_report(node_at(model.root), 0)["findings"]
    assert (finding["check"], finding["found"]) == (
        "cache-partition-differs",
        "to write: kubenode.exclusive, cpus_list: 2,10",
    )
    assert len(follow(node_at(model.root))) == 1
    model.load(SHAPE)
    (finding,) = cache_report(node_at(model.root), 0)["findings"]
    assert finding["check"] == "cache-partition-lost"
    assert len(follow(node_at(model.root))) == 5
    (model.root / "proc/mounts").write_text("")
    (finding,) = cache_report(node_at(model.root), 0)["findings"]
    assert finding["found"].endswith("resctrl is not mounted")
    with pytest.raises(NodeError, match="is not mounted"):
        follow(node_at(model.root))
    assert take_back(model.root).changed
    assert not (model.root / JOURNAL).exists()


def saved_pool(root: Path) -> Pool | None:
    """Return what a saved node says of who has CPUs."""
    tree = Tree(str(root))
    collector = Collector(tree)
    save_cache(collector, redact=True)
    saved = collector.members.get(PROMISE)
    content = None if saved is None else saved.content
    assert b"database" not in (content or b"")
    return pool_of(Node(OverlaidTree(tree, {PROMISE: content})), wish_of({"exclusive_share": 4}), [])


def test_under_the_policy_dynamic_its_own_checkpoint_counts(model: Mounted) -> None:
    begin(model)
    lines: list[str] = []
    # Nothing is divided yet.
    assert caches_follow(node_at(model.root), (), lines.append)
    divide(model.root, exclusive_share=4)
    configuration = (model.root / CONFIG).read_text()
    # What is left of it beside a kubelet that gives CPUs out says nothing.
    place = promise(model.root, {("pod-1", "database"): "2-3,10-11"}, "0-1,8-9")
    try:
        assert caches_follow(node_at(model.root), (), lines.append)
        assert lines == []
        take_over(model.root, {("pod-1", "database"): "2-3,10-11"}, "0-1,8-9", requested=2)
        assert caches_follow(node_at(model.root), (), lines.append)
        assert lines == ["cache: kubenode.exclusive, cpus_list: 2-3,10-11"]
        report = cache_report(node_at(model.root), 0)
        assert (report["exclusive"], report["caches"][0]["ids"]["0"]["exclusive"]) == ("2-3,10-11", "2-3,10-11")
        assert saved_pool(model.root) == Pool(CPUSet([2, 3, 10, 11]), CPUSet([0, 1, 8, 9]))
        place.write_text("{")
        assert saved_pool(model.root) == Pool(CPUSet(), CPUSet())
        assert not caches_follow(node_at(model.root), (), lines.append)
        assert "is damaged" in lines[-1]
    finally:
        place.unlink()
        place.parent.rmdir()
    write(model.root / CONFIG, configuration)
    give(model.root, {1, 9}, set(SHAPE.online) - {1, 9})
    assert caches_follow(node_at(model.root), (), lines.append)
    assert model.state()["kubenode.exclusive/cpus_list"] == "1,9\n"
    take_back(model.root)


# --- two at a time, and one that is killed -------------------------------------------------------------------


def waiting(monkeypatch: pytest.MonkeyPatch, module: ModuleType, meanwhile: Callable[[], object]) -> None:
    """Let somebody else do something while this module waits for the lock."""
    locked = module.locked

    @contextmanager
    def late(tree: Tree, exclusive: bool) -> Iterator[int]:
        monkeypatch.undo()
        meanwhile()
        with locked(tree, exclusive) as directory:
            yield directory

    monkeypatch.setattr(module, "locked", late)


def test_a_pass_that_waits_for_the_end_of_the_partition(model: Mounted, monkeypatch: pytest.MonkeyPatch) -> None:
    before = begin(model)
    divide(model.root, exclusive_share=4)
    give(model.root, {2, 10}, {0})
    waiting(monkeypatch, following, lambda: take_back(model.root))
    assert follow(node_at(model.root)) == []
    assert model.state() == before
    assert not (model.root / JOURNAL).exists()


def test_a_pass_that_waits_for_a_new_wish(model: Mounted, monkeypatch: pytest.MonkeyPatch) -> None:
    begin(model)
    divide(model.root, exclusive_share=4)
    give(model.root, {2, 10}, {0})
    waiting(monkeypatch, following, lambda: divide(model.root, exclusive_share=8))
    assert follow(node_at(model.root)) == []
    assert json.loads((model.root / JOURNAL).read_text())["wish"]["exclusive_share"] == "8"
    assert model.state()["kubenode.exclusive/schemata"].startswith("L3:0=0ff;1=0ff\n")
    take_back(model.root)


def test_an_end_that_waits_for_a_pass(model: Mounted, monkeypatch: pytest.MonkeyPatch) -> None:
    before = begin(model)
    divide(model.root, exclusive_share="proportional")
    give(model.root, {1, 2, 4, 9, 10}, {0})
    waiting(monkeypatch, partition, lambda: follow(node_at(model.root)))
    take_back(model.root)
    assert model.state() == before


class Mounting:
    """resctrl that is not mounted until a run of the partition mounts it; of the model, as the node sees it."""

    def __init__(self, model: Mounted, monkeypatch: pytest.MonkeyPatch) -> None:
        self.file = model.root / "proc/mounts"
        self.mounts = self.file.read_text()
        self.file.write_text("")
        self.runs: list[Any] = []
        monkeypatch.setattr(partition, "check_mountable", lambda _tree: None)
        monkeypatch.setattr(partition, "mount_it", lambda _tree, _run: self.file.write_text(self.mounts))

    def run(self, words: Any) -> str:
        self.runs.append(words)
        if words[0] == "umount":
            self.file.write_text("")
        return ""

    def divide(self, model: Mounted, **wish: Any) -> Any:
        return present(node_at(model.root), wish_of(wish), CacheTerms(mount=True), True, self.run)


UMOUNT = ["umount", "/sys/fs/resctrl"]


def test_a_run_that_is_killed_after_the_mount_is_undone(model: Mounted, monkeypatch: pytest.MonkeyPatch) -> None:
    before = begin(model)
    mounting = Mounting(model, monkeypatch)
    with monkeypatch.context() as killed:
        killed.setattr(partition, "locked", _killed)
        with pytest.raises(KeyboardInterrupt):
            mounting.divide(model, exclusive_share=4)
    (finding,) = cache_report(node_at(model.root), 0)["findings"]
    assert finding["check"] == "cache-partition-lost"
    assert mounting.divide(model, exclusive_share=4).changed
    assert not mounting.divide(model, exclusive_share=4).changed
    assert absent_of(model, mounting).mounts == "umount"
    assert mounting.runs == [UMOUNT]
    mounting.file.write_text(mounting.mounts)
    assert model.state() == before
    # Killed again, and put back at once.
    mounting.file.write_text("")
    with monkeypatch.context() as killed:
        killed.setattr(partition, "locked", _killed)
        with pytest.raises(KeyboardInterrupt):
            mounting.divide(model, exclusive_share=4)
    assert absent_of(model, mounting).mounts == "umount"
    mounting.file.write_text(mounting.mounts)
    assert not (model.root / JOURNAL).exists()


def _killed(*_arguments: Any, **_more: Any) -> Any:
    raise KeyboardInterrupt


def absent_of(model: Mounted, mounting: Mounting) -> Any:
    return partition.absent(node_at(model.root), True, mounting.run)


def test_a_refusal_after_the_mount_leaves_the_node_as_it_was(model: Mounted, monkeypatch: pytest.MonkeyPatch) -> None:
    begin(model)
    mounting = Mounting(model, monkeypatch)
    with pytest.raises(InputError):
        mounting.divide(model, exclusive_share=400)
    assert mounting.runs == [UMOUNT]
    assert not (model.root / JOURNAL).exists()
    # With the journal of an earlier boot, this one stays.
    journal = CacheJournal(wish_of({"exclusive_share": 4}), "earlier", "L3", {0: 0x7FF}, {0: (0x7F0,)})
    write(model.root / JOURNAL, text_of(journal))
    with pytest.raises(InputError):
        mounting.divide(model, exclusive_share=400)
    assert mounting.runs == [UMOUNT] * 2
    assert (model.root / JOURNAL).read_text() == text_of(journal)
    mounting.file.write_text(mounting.mounts)
    (model.root / JOURNAL).unlink()


def test_resctrl_stays_mounted_while_others_count(tmp_path: Path) -> None:
    write_node(tmp_path, SHAPE)
    record(tmp_path, SHAPE)
    give(tmp_path, {1}, {0})
    boot = (tmp_path / BOOT_ID).read_text().strip()
    journal = CacheJournal(wish_of({"exclusive_share": 4}), boot, "L3", {0: 0x7FF}, {0: (0x7F0,)}, True)
    write(tmp_path / JOURNAL, text_of(journal))
    assert take_back(tmp_path, act=False).mounts == "umount"
    (tmp_path / "sys/fs/resctrl/mon_groups/pqos").mkdir(parents=True)
    answer = take_back(tmp_path, act=False)
    assert answer.mounts == ""
    assert "resctrl stays mounted, as others use it: 1 monitoring group" in answer.notes


def test_a_pass_beside_an_owner_that_came_later(model: Mounted) -> None:
    begin(model)
    divide(model.root, exclusive_share=4)
    give(model.root, {2, 10}, {0})
    config = model.root / "etc/containerd/config.toml"
    write(config, 'rdt_config_file = "/etc/rdt.yaml"\n')
    with pytest.raises(RefusedError, match="goresctrl"):
        follow(node_at(model.root))
    # Allowed for the partition, it is allowed for each pass.
    divide(model.root, exclusive_share=4, allow_owners=["goresctrl"])
    give(model.root, {3, 11}, {0})
    assert len(follow(node_at(model.root))) == 1
    config.unlink()
    take_back(model.root)


def test_a_pass_reads_the_kubelet_of_the_partition(model: Mounted) -> None:
    begin(model)
    second = model.root / "var/lib/kubelet-2"
    (model.root / "var/lib/kubelet").rename(second)
    divide(model.root, exclusive_share=4, kubelet_root="/var/lib/kubelet-2")
    (second / "cpu_manager_state").rename(model.root / "state")
    give(model.root, {2, 10}, {0})
    (model.root / "var/lib/kubelet/cpu_manager_state").rename(second / "cpu_manager_state")
    assert follow(node_at(model.root)) == ["cache: kubenode.exclusive, cpus_list: 2,10"]
    take_back(model.root)


def test_a_refusal_of_the_kernel_in_the_first_run(model: Mounted) -> None:
    before = begin(model, replace(PLATFORMS["xeon-l3-only"], rmids=1))
    with pytest.raises(NodeError, match=r"Out of RMIDs.*everything is as it was before"):
        divide(model.root, exclusive_share=4)
    assert model.state() == before
    assert not (model.root / JOURNAL).exists()


def test_without_a_journal_the_root_gets_the_ways_of_our_groups(model: Mounted) -> None:
    before = begin(model)
    divide(model.root, exclusive_share=4)
    (model.root / JOURNAL).unlink()
    answer = take_back(model.root)
    assert "there is no journal" in answer.notes[0]
    assert model.state() == before
    assert not take_back(model.root).changed


def test_ways_that_somebody_has_taken_since_are_not_given_back(model: Mounted) -> None:
    begin(model)
    divide(model.root, exclusive_share=4)
    (model.place / "db").mkdir()
    for path, text in (
        ("schemata", "L3:0=0f0;1=0f0\n"),
        ("db/schemata", "L3:0=100;1=100\n"),
        ("db/mode", "exclusive\n"),
    ):
        (model.place / path).write_text(text)
    answer = take_back(model.root)
    assert answer.notes == []
    assert model.state()["schemata"].startswith("L3:0=0f0;1=0f0\n"), "what somebody gave the root since stays"


def test_without_a_checkpoint_the_groups_keep_their_cpus(model: Mounted) -> None:
    begin(model)
    divide(model.root, exclusive_share=4)
    (model.root / "var/lib/kubelet/cpu_manager_state").unlink()
    answer = divide(model.root, exclusive_share=5)
    assert "no checkpoint there" in answer.notes[0]
    assert model.state()["kubenode.exclusive/cpus_list"] == "1,9\n"
    (model.root / "var/lib/kubelet/cpu_manager_state").write_text("{")
    with pytest.raises(RefusedError, match="is damaged, so the exclusive CPUs are unknown"):
        divide(model.root, exclusive_share=5)


def test_nothing_is_mounted_in_saved_files(tmp_path: Path) -> None:
    write_node(tmp_path, SHAPE)
    give(tmp_path, {1}, {0})
    (tmp_path / "sys/fs/resctrl").mkdir(parents=True)
    runs: list[Any] = []

    def runner(words: Any) -> str:
        runs.append(words)
        return ""

    wish = wish_of({"exclusive_share": 4})
    planned = present(node_at(tmp_path), wish, CacheTerms(mount=True), False, runner)
    assert (planned.mounts, planned.changed) == ("mount", True)
    with pytest.raises(RefusedError, match="nothing can be mounted in saved files"):
        present(node_at(tmp_path), wish, CacheTerms(mount=True), True, runner)
    assert runs == []
    assert not (tmp_path / JOURNAL).exists()
    answer = cache_answer(node_at(tmp_path).tree, lambda: node_at(tmp_path), 0)
    assert (answer["supported"], answer["mounted"], answer["partition"]) == (True, False, None)


def test_what_counts_as_before() -> None:
    journal = CacheJournal(
        wish_of({"exclusive_share": 4}), "boot", "L3", {0: 0x7FF, 1: 0x7FF}, {0: (0x7F0,), 1: (0x7F0,)}
    )
    assert former_masks(None, "boot", "L3", {0: 0x3FF}) == {0: 0x3FF}
    # One is ours, the other is what somebody has given it since.
    assert former_masks(journal, "boot", "L3", {0: 0x7F0, 1: 0xFF}) == {0: 0x7FF, 1: 0xFF}
    assert former_masks(journal, "next", "L3", {0: 0x7F0}) == {0: 0x7F0}
    assert former_masks(journal, "boot", "L2", {0: 0x7F0}) == {0: 0x7F0}
    assert with_masks(journal, {0: 0x7C0, 1: 0x7F0}).ours == {0: (0x7F0, 0x7C0), 1: (0x7F0,)}
