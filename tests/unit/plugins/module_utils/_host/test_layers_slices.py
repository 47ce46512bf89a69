# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._cgroup.hierarchy import Hierarchy
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._host.layers import (
    FIXED,
    UNREADABLE,
    allowed_cpus,
    manager_affinity,
    read_later_slices,
    read_slices,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.layered import write, write_slices

PODS = ["kubepods.slice"]


def read(root: Path, pods: list[str] | None = None) -> list[tuple[str, str | None, str | None, str]]:
    tree = Tree(str(root))
    return [
        (
            setting.name,
            None if setting.cpus is None else str(setting.cpus),
            None if setting.effective is None else str(setting.effective),
            setting.problem,
        )
        for setting in read_slices(tree, Hierarchy(tree), PODS if pods is None else pods)
    ]


def test_what_is_at_the_top_and_leads_to_no_pods(tmp_path: Path) -> None:
    slices = {"system.slice": "0-1", "user.slice": "", "kubepods.slice": "", "init.scope": None, "docker": "3"}
    write_slices(tmp_path, "0-3", slices)
    assert read(tmp_path) == [
        ("docker", "3", "3", ""),
        # Without the controller, it has what the topmost cgroup has.
        ("init.scope", None, "0-3", ""),
        ("system.slice", "0-1", "0-1", ""),
        ("user.slice", None, "0-3", ""),
    ]
    found = read_slices(Tree(str(tmp_path)), Hierarchy(Tree(str(tmp_path))), PODS)[1]
    assert (found.path, found.text) == ("/sys/fs/cgroup/init.scope/cpuset.cpus", "")


@pytest.mark.parametrize(
    ("pods", "names"),
    [
        ([], ["a.slice", "kubepods", "kubepods.slice"]),
        (["kubepods.slice", "kubepods"], ["a.slice"]),
        (["a.slice"], ["kubepods", "kubepods.slice"]),
    ],
)
def test_what_leads_to_pods(tmp_path: Path, pods: list[str], names: list[str]) -> None:
    write_slices(tmp_path, "0-3", dict.fromkeys(("a.slice", "kubepods.slice", "kubepods"), "0"))
    assert [name for name, _cpus, _effective, _problem in read(tmp_path, pods)] == names


@pytest.mark.parametrize(
    ("kind", "is_shown"), [("member", True), ("root", False), ("isolated", False), ("isolated invalid (x)", True)]
)
def test_partitions_are_no_slices(tmp_path: Path, kind: str, is_shown: bool) -> None:
    write_slices(tmp_path, "0-3", {"own.slice": "2"})
    write(tmp_path, "/sys/fs/cgroup/own.slice/cpuset.cpus.partition", kind + "\n")
    assert bool(read(tmp_path)) is is_shown


def test_what_has_no_processes_is_left_out(tmp_path: Path) -> None:
    write_slices(tmp_path, "0-3", dict.fromkeys(("dev-hugepages.mount", "x.swap", "x.automount", "x.service"), ""))
    assert [row[0] for row in read(tmp_path)] == ["x.service"]


def test_what_is_damaged_is_named(tmp_path: Path) -> None:
    write_slices(tmp_path, "0-3", {"a.slice": "?", "b.slice": ""})
    write(tmp_path, "/sys/fs/cgroup/b.slice/cpuset.cpus.effective", b"\xff")
    assert read(tmp_path) == [("a.slice", None, None, UNREADABLE), ("b.slice", None, "0-3", "")]
    (tmp_path / "sys/fs/cgroup/\x1b[31m\n.slice").mkdir()
    assert [row[0] for row in read(tmp_path)] == ["\\x1b[31m\\n.slice", "a.slice", "b.slice"]


def test_links_are_no_cgroups(tmp_path: Path) -> None:
    write_slices(tmp_path, "0-3", {"a.slice": "0"})
    (tmp_path / "sys/fs/cgroup/b.slice").symlink_to("a.slice")
    assert [row[0] for row in read(tmp_path)] == ["a.slice"]


def test_version_1_is_only_for_reading(tmp_path: Path) -> None:
    for path, cpus in {"": "0-3", "/system.slice": "0-1", "/kubepods.slice": "0-3", "/empty": ""}.items():
        write(tmp_path, "/sys/fs/cgroup/cpuset%s/cpuset.cpus" % path, cpus + "\n")
        write(tmp_path, "/sys/fs/cgroup/cpuset%s/cpuset.effective_cpus" % path, cpus + "\n")
    assert read(tmp_path) == [("empty", "", "", FIXED), ("system.slice", "0-1", "0-1", FIXED)]


@pytest.mark.parametrize(
    ("there", "pods", "later"),
    [
        (["system.slice"], PODS, {"machine.slice": "0", "user.slice": None}),
        (["system.slice", "user.slice", "machine.slice"], PODS, {}),
        (["system.slice"], ["machine.slice"], {"user.slice": None}),
        # Something else than systemd has made the cgroups.
        (["init", "openrc.sshd"], PODS, {}),
    ],
)
def test_slices_that_systemd_makes_later(
    there: list[str], pods: list[str], later: dict[str, str | None], tmp_path: Path
) -> None:
    write_slices(tmp_path, "0-3", dict.fromkeys(there, ""))
    write(tmp_path, "/etc/systemd/system/machine.slice.d/10.conf", "[Slice]\nAllowedCPUs=0\n")
    tree = Tree(str(tmp_path))
    found = read_later_slices(tree, Hierarchy(tree), pods)
    assert {row.name: None if row.cpus is None else str(row.cpus) for row in found} == later
    assert {row.path for row in found} == {"/sys/fs/cgroup/%s/cpuset.cpus" % name for name in later}


def test_version_1_gives_later_slices_no_cpus(tmp_path: Path) -> None:
    write(tmp_path, "/sys/fs/cgroup/cpuset/cpuset.cpus", "0-3\n")
    write(tmp_path, "/sys/fs/cgroup/cpuset/system.slice/cpuset.cpus", "0-3\n")
    tree = Tree(str(tmp_path))
    assert read_later_slices(tree, Hierarchy(tree), PODS) == []


def test_what_systemd_is_configured_to(tmp_path: Path) -> None:
    tree = Tree(str(tmp_path))
    assert allowed_cpus(tree, "system.slice") is None
    path = "/etc/systemd/system/system.slice.d/10.conf"
    write(tmp_path, path, "[Slice]\nAllowedCPUs=\nAllowedCPUs=0-1 24\n[Service]\nAllowedCPUs=5\n")
    found = allowed_cpus(tree, "system.slice")
    assert found is not None
    assert (str(found.cpus), found.path) == ("0-1,24", path)
    assert allowed_cpus(tree, "system.service") is None
    write(tmp_path, "/run/systemd/system.control/system.slice.d/50-AllowedCPUs.conf", "[Slice]\nAllowedCPUs=\n")
    assert allowed_cpus(tree, "system.slice") is None


@pytest.mark.parametrize(
    ("line", "cpus", "path"),
    [
        (None, "0-1", "/etc/systemd/system.conf"),
        ("quiet", "0-1", "/etc/systemd/system.conf"),
        ("systemd.cpu_affinity=2,3 quiet", "2-3", "/proc/cmdline"),
        ("systemd.cpu_affinity= quiet", "0-1", "/etc/systemd/system.conf"),
        ("systemd.cpu_affinity=x", "0-1", "/etc/systemd/system.conf"),
        ("quiet -- systemd.cpu_affinity=2", "0-1", "/etc/systemd/system.conf"),
    ],
)
def test_the_affinity_of_the_manager(tmp_path: Path, line: str | None, cpus: str, path: str) -> None:
    tree = Tree(str(tmp_path))
    assert manager_affinity(tree) is None
    write(tmp_path, "/etc/systemd/system.conf", "[Manager]\nCPUAffinity=0 1\n")
    if line is not None:
        write(tmp_path, "/proc/cmdline", line + "\n")
    found = manager_affinity(tree)
    assert found is not None
    assert (str(found.cpus), found.path) == (cpus, path)
