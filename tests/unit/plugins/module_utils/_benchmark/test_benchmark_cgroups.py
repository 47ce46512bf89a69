# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The cgroups of a benchmark in directories with the kernel's files; tests/kernel has those of a real one."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import NodeError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._benchmark import benchmark_cgroups as module
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._benchmark.benchmark_cgroups import (
    TOP,
    BenchmarkCgroups,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.tests.machines.cgroups import HYBRID_V2, V2, Files, Style, write_cgroups

VICTIM = TOP + "/victim"


def make(root: Path, style: Style = V2, paths: tuple[str, ...] = (TOP, VICTIM)) -> Path:
    """Return a node's cgroups; where they are."""
    write_cgroups(root, style, {path: Files("0-1", "0") for path in paths})
    mount = root / style.mount.lstrip("/")
    (mount / "cgroup.controllers").write_text("cpuset cpu memory\n")
    for path in ("", *paths):
        (mount / path / "cgroup.subtree_control").write_text("memory\n")
        (mount / path / "cgroup.procs").write_text("")
    return mount


def make_writable(mount: Path, path: str, *names: str) -> None:
    for name in names:
        (mount / path / name).write_text("")


def test_v2_gives_both_controllers_on_and_takes_them_back(tmp_path: Path) -> None:
    mount = make(tmp_path)
    cgroups = BenchmarkCgroups(Tree(str(tmp_path)))
    assert (cgroups.version, cgroups.mounts) == (2, [str(mount)])
    cgroups.enable()
    control = mount / "cgroup.subtree_control"
    assert control.read_text() == "+cpuset +cpu\n"
    cgroups.restore()
    assert control.read_text().startswith("-cpuset -cpu\n")
    control.write_text("")
    cgroups.restore()
    assert control.read_text() == ""


def test_what_is_enabled_already_stays(tmp_path: Path) -> None:
    mount = make(tmp_path)
    control = mount / "cgroup.subtree_control"
    control.write_text("cpu cpuset memory\n")
    cgroups = BenchmarkCgroups(Tree(str(tmp_path)))
    cgroups.enable()
    cgroups.restore()
    assert control.read_text() == "cpu cpuset memory\n"


@pytest.mark.parametrize(("quota", "text"), [(None, "max 100000\n"), (150000, "150000 100000\n")])
def test_what_a_cgroup_of_v2_gets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quota: int | None, text: str
) -> None:
    mount = make(tmp_path)
    mkdir = os.mkdir

    def make_as_the_kernel_does(place: str) -> None:
        mkdir(place)
        make_writable(Path(place), "", "cpuset.cpus", "cpuset.mems", "cpu.weight", "cpu.max")

    monkeypatch.setattr(os, "mkdir", make_as_the_kernel_does)
    BenchmarkCgroups(Tree(str(tmp_path))).make(VICTIM + "/inner", CPUSet((1,)), 1024, quota)
    made = mount / VICTIM / "inner"
    assert {path.name: path.read_text() for path in made.iterdir()} == {
        "cpuset.cpus": "1\n",
        "cpuset.mems": "0\n",
        "cpu.weight": "100\n",
        "cpu.max": text,
    }
    # The one above lets it have them.
    assert (mount / VICTIM / "cgroup.subtree_control").read_text() == "+cpuset +cpu\n"


@pytest.mark.parametrize("has_kill", [True, False])
def test_v2_kills_all_at_once_where_the_kernel_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_kill: bool
) -> None:
    mount = make(tmp_path)
    killed: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "kill", lambda *of: killed.append(of))
    kill = mount / TOP / "cgroup.kill"
    if has_kill:
        kill.write_text("")
    (mount / VICTIM / "cgroup.procs").write_text("4711\n")
    cgroups = BenchmarkCgroups(Tree(str(tmp_path)))
    with pytest.raises(NodeError, match="its processes do not end"):
        cgroups.clear(after=0)
    assert kill.exists() is has_kill
    if has_kill:
        assert kill.read_text() == "1\n"
    assert (4711, signal.SIGKILL) in killed


def test_it_does_not_kill_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mount = make(tmp_path)
    monkeypatch.setattr(os, "kill", None)
    (mount / TOP / "cgroup.kill").write_text("")
    (mount / VICTIM / "cgroup.procs").write_text("%d\n" % os.getpid())
    with pytest.raises(NodeError, match="its processes do not end"):
        BenchmarkCgroups(Tree(str(tmp_path))).clear(after=0)
    assert (mount / TOP / "cgroup.kill").read_text() == ""


def test_controllers_split_over_both_versions_are_refused(tmp_path: Path) -> None:
    make(tmp_path, HYBRID_V2, ())
    (tmp_path / "sys/fs/cgroup/unified/cgroup.controllers").write_text("cpuset\n")
    cpu = tmp_path / "sys/fs/cgroup/cpu,cpuacct"
    cpu.mkdir(exist_ok=True)
    (cpu / "cpu.shares").write_text("1024\n")
    with pytest.raises(NodeError, match=r"cpuset is of cgroup v2, and cpu of v1; .*unified_cgroup_hierarchy=1"):
        BenchmarkCgroups(Tree(str(tmp_path)))


def test_no_cfs_bandwidth_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_controller", lambda _tree, _controller: (1, "/sys/fs/cgroup/cpu"))
    with pytest.raises(NodeError, match="no CFS bandwidth"):
        BenchmarkCgroups(Tree(str(tmp_path)))
