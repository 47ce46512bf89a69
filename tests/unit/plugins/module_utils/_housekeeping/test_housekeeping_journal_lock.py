# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Two runs on one node: one waits for the other, and goes by what that has left."""

from __future__ import annotations

import fcntl
import os
from functools import partial
from pathlib import Path
from typing import Iterator

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import NodeError, RefusedError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.journal_file import DIRECTORY
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping import carry_out as program
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping import (
    carry_out as run,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping import (
    housekeeping as bring,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping import (
    housekeeping_journal as lock,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping.housekeeping import Extras
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping.housekeeping_journal import (
    PATH,
    HousekeepingWish,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.tests.machines import housekept

LAYERS = ("interrupts", "workqueues", "slices")


def wish(cpus: str = "0-1") -> HousekeepingWish:
    return HousekeepingWish(CPUSet.parse(cpus), LAYERS)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(str(housekept.write_node(tmp_path / "node")))


@pytest.fixture
def held(tree: Tree) -> Iterator[int]:
    """Yield the lock of a different run, which has made the directory."""
    os.makedirs(tree.path(DIRECTORY), exist_ok=True)
    descriptor = os.open(tree.path(DIRECTORY), os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    yield descriptor
    os.close(descriptor)


def paths(tree: Tree) -> set[str]:
    return {str(path) for path in Path(tree.root).rglob("*")}


def test_a_run_while_another_one_has_the_lock(
    tree: Tree, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bring.present(tree, wish(), Extras(), act=True)
    journal = Path(tree.path(PATH)).read_bytes()
    housekept.boot(Path(tree.root))
    for module in (bring, run):
        monkeypatch.setattr(module, "locked", lambda tree, *_patience: lock.locked(tree, 0))
    descriptor = os.open(tree.path(DIRECTORY), os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    for work in (
        partial(bring.present, tree, wish("0-2"), Extras(), True),
        partial(bring.absent, tree, True),
        partial(run.after_boot, tree),
    ):
        with pytest.raises(NodeError, match="a different process has held its lock") as refused:
            work()
        assert refused.value.kind == "locked"
    assert program.main([tree.root]) == 1
    assert "a different process has held its lock" in capsys.readouterr().out
    assert Path(tree.path(PATH)).read_bytes() == journal
    # What only looks needs no lock.
    assert bring.present(tree, wish("0-2"), Extras(), act=False).changed
    assert bring.absent(tree, act=False).changed
    os.close(descriptor)
    assert bring.absent(tree, act=True).changed


def test_a_run_that_waits(tree: Tree, held: int) -> None:
    """The other run has ended meanwhile, and has taken the directory with it."""
    pauses = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        os.rmdir(tree.path(DIRECTORY))
        fcntl.flock(held, fcntl.LOCK_UN)

    with lock.locked(tree, 5, sleep):
        second = os.open(tree.path(DIRECTORY), os.O_RDONLY)
        with pytest.raises(BlockingIOError):
            fcntl.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(second)
    assert len(pauses) == 1
    assert not os.path.exists(tree.path(DIRECTORY))


def test_what_is_refused_leaves_nothing(tree: Tree) -> None:
    before = paths(tree)
    with pytest.raises(RefusedError):
        bring.present(tree, wish("0-7"), Extras(), act=True)
    bring.absent(tree, act=True)
    assert run.after_boot(tree) is None
    assert paths(tree) == before
    os.rmdir(tree.path("/var/lib"))
    before = paths(tree)
    with pytest.raises(RefusedError):
        bring.present(tree, wish("0-7"), Extras(), act=True)
    assert paths(tree) == before


def test_a_directory_that_cannot_be_one(tree: Tree) -> None:
    os.makedirs(tree.path("/var/lib"), exist_ok=True)
    Path(tree.path(DIRECTORY)).write_text("", encoding="utf-8")
    with pytest.raises(NodeError, match="cannot be made: Not a directory"):
        bring.present(tree, wish(), Extras(), act=True)
    os.unlink(tree.path(DIRECTORY))
    os.rmdir(tree.path("/var/lib"))
    Path(tree.path("/var/lib")).write_text("", encoding="utf-8")
    with pytest.raises(NodeError, match="cannot be made: Not a directory"):
        bring.present(tree, wish(), Extras(), act=True)
