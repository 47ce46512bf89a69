# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A new directory is on the disk in the one above it before anything is written into it, whoever makes it."""

from __future__ import annotations

import ast
import os
from pathlib import Path
from typing import Any, Callable

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base import files
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base import files as file_changes
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import NodeError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping import (
    carry_out as run,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping import (
    housekeeping_journal as lock,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping.steps import FileStep, Link
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._rollout.rollout_journal import (
    RolloutJournal,
    write_journal,
)
from ansible_collections.kubenode.cpu_manager.plugins.modules import reconcile_program

PLUGINS = Path(__file__).parents[5] / "plugins"
# Those that make directories in another way, and why they may.
MAKERS = {
    "module_utils/_base/archive.py": "what an archive is unpacked to, on the controller",
    "module_utils/_benchmark/benchmark_cgroups.py": "cgroups are not on a disk",
    "module_utils/_caches/write.py": "groups of resctrl are not on a disk",
    "module_utils/_base/files.py": "make_directory() itself",
    "plugin_utils/packing.py": "of a run of Ansible, on the controller",
    "plugin_utils/report/results.py": "reports, on the controller",
    "module_utils/_published/publish.py": "what is below /run ends with the machine",
    "module_utils/_trial/trial_cgroups.py": "cgroups are not on a disk",
    "module_utils/_trial/trial_sandbox.py": "what a trial sees is in memory, and ends with it",
}


def change(root: Path) -> None:
    changes = [file_changes.FileChange(str(root / "a/b/kubelet.conf"), None, b"new", 0o644)]
    file_changes.make_changes(changes, backup=True, keep=0)


def journal(root: Path) -> None:
    write_journal(Tree(str(root)), RolloutJournal("begun", {}, {}, ""))


def locked(root: Path) -> None:
    with lock.locked(Tree(str(root))):
        pass


def housekeeping(root: Path) -> None:
    tree = Tree(str(root))
    run._do(tree, FileStep("boot", "/usr/local/lib/a.pyz", None, b"new"), lambda _words: "")
    run._do(tree, Link("boot", "/etc/systemd/a.wants/a.service", "/a", is_made=True), lambda _words: "")


def program(root: Path) -> None:
    (root / "sys").mkdir()
    parameters: dict[str, Any] = {
        **dict.fromkeys(("interpreter", "config_path", "kubelet_root")),
        **{name: [] for name in ("hidden", "needed", "obeyed", "allow_owners")},
        "path": "/usr/local/lib/a.pyz",
        "settings": {},
        "state": "present",
    }
    reconcile_program.work(Tree(str(root)), parameters, False)


@pytest.mark.parametrize("act", [change, journal, locked, housekeeping, program])
def test_a_new_directory_is_synchronized(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, act: Callable[[Path], None]
) -> None:
    calls: list[tuple[str, str]] = []

    def mkdir(path: str, *more: int) -> None:
        made(path, *more)
        calls.append(("mkdir", str(path)))

    def fsync(descriptor: int) -> None:
        synced(descriptor)
        calls.append(("fsync", os.readlink("/proc/self/fd/%d" % descriptor)))

    made, synced = os.mkdir, os.fsync
    monkeypatch.setattr(os, "mkdir", mkdir)
    monkeypatch.setattr(os, "fsync", fsync)
    act(tmp_path)
    of_node = [(name, path) for name, path in calls if path.startswith(str(tmp_path))]
    new = [number for number, (name, path) in enumerate(of_node) if name == "mkdir" and path != str(tmp_path / "sys")]
    assert new
    for number in new:
        assert of_node[number + 1] == ("fsync", os.path.dirname(of_node[number][1]))


def test_nobody_makes_directories_in_another_way() -> None:
    makers = set()
    for path in PLUGINS.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Attribute) and node.attr in ("mkdir", "makedirs"):
                makers.add(str(path.relative_to(PLUGINS)))
    assert makers == set(MAKERS)


def test_the_modes(tmp_path: Path) -> None:
    made = files.make_directory(str(tmp_path / "a/b"), 0o700)
    assert made == [str(tmp_path / "a"), str(tmp_path / "a/b")]
    assert [os.stat(path).st_mode & 0o777 for path in made] == [0o755, 0o700]
    assert files.make_directory(str(tmp_path / "a/b"), 0o755) == []
    assert os.stat(tmp_path / "a/b").st_mode & 0o777 == 0o700


def test_what_cannot_be_made_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    for place in ("file", "file/a"):
        with pytest.raises(NodeError, match="%s: cannot be made: Not a directory; put .*/file out" % place):
            files.make_directory(str(tmp_path / place))
    mkdir = os.mkdir

    def full(path: str, *more: int) -> None:
        if path.endswith("/b"):
            raise OSError(28, "No space left on device")
        mkdir(path, *more)

    monkeypatch.setattr(os, "mkdir", full)
    with pytest.raises(NodeError, match="a/b: cannot be made: No space left on device; make room"):
        files.make_directory(str(tmp_path / "a/b/c"))
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_second_run_that_makes_it_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mkdir = os.mkdir

    def both(path: str, *more: int) -> None:
        mkdir(path, *more)
        mkdir(path, *more)

    monkeypatch.setattr(os, "mkdir", both)
    assert files.make_directory(str(tmp_path / "a/b")) == []
    assert (tmp_path / "a/b").is_dir()
