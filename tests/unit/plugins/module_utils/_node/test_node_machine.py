# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_node/node.py."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.findings import Host, other_host
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node, host_of
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import parse_name
from ansible_collections.kubenode.cpu_manager.tests.machines.tree import write_machine

CONTROLLERS = "sys/fs/cgroup/cgroup.controllers"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write_machine(tmp_path, "2s1n2c2t+memory1")
    return tmp_path


def write(root: Path, path: str, content: str | bytes) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)


def host(root: Path, minor: int | None = None) -> Host:
    return host_of(Node(Tree(str(root)), minor=minor))


def test_the_machine(root: Path) -> None:
    found = host(root, 35)
    assert str(found.topology.all_cpus()) == "0-7"
    # Also the one with memory alone.
    assert found.numa_nodes == found.nodes() == (0, 1, 2)
    assert found.distances[0][1] == 21
    assert found.minor == 35
    assert host(root).minor == 36


def test_what_a_saved_node_does_not_tell(root: Path) -> None:
    found = host(root)
    assert (found.memory, found.storage, found.has_systemd, found.swap_on) == (None, None, None, False)
    assert (found.cgroup_v1, found.lacks_cgroup("a"), found.kernel_flag("kernel/panic")) == (False, None, None)


def test_another_machine(root: Path) -> None:
    """Nothing of this one is said of that one."""
    write(root, "proc/meminfo", "MemTotal: 16384 kB\n")
    write(root, CONTROLLERS, "cpuset\n")
    node = Node(Tree(str(root)), minor=34)
    assert node.machine().memory == 16 << 20
    assert node.machine() is node.machine()
    topology = parse_name("1s4c").topology()
    node.topology = topology
    found = node.machine()
    assert found == other_host(topology, 34)._replace(topology=found.topology)
    assert str(found.topology.all_cpus()) == "0-3"
    assert (found.minor, found.nodes(), found.memory, found.lacks_cgroup("a")) == (34, (0,), None, None)


@pytest.mark.parametrize(
    ("meminfo", "memory"),
    [
        ("MemTotal:       16384 kB\nMemFree: 1 kB\n", 16 << 20),
        ("MemFree: 1 kB\nMemTotal: 1 kB\n", 1024),
        ("MemFree: 1 kB\n", None),
        ("MemTotal:\n", None),
        ("MemTotal: unknown\n", None),
        ("MemTotal: \u00b2 kB\n", None),
        ("MemTotal: -1 kB\n", None),
        ("MemTotal: %s kB\n" % ("9" * 5000), None),
        ("", None),
        (b"MemTotal: 1 kB\xff\n", None),
    ],
)
def test_memory(root: Path, meminfo: str | bytes, memory: int | None) -> None:
    write(root, "proc/meminfo", meminfo)
    assert host(root).memory == memory


def test_huge_pages_are_a_part_of_the_memory(root: Path) -> None:
    write(root, "proc/meminfo", "MemTotal: 16384 kB\nHugetlb: 4096 kB\n")
    assert (host(root).memory, host(root).huge_pages) == (16 << 20, 4 << 20)


def test_what_is_no_file_is_not_known(root: Path) -> None:
    for path in ("proc/meminfo", "proc/swaps", "proc/sys/kernel/panic"):
        (root / path).mkdir(parents=True)
    found = host(root)
    assert (found.memory, found.swap_on, found.kernel_flag("kernel/panic")) == (None, False, None)


SWAPS = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"


@pytest.mark.parametrize(("swaps", "swap_on"), [("", False), (SWAPS, False), (SWAPS + "/swapfile file 1 0 -2\n", True)])
def test_swap(root: Path, swaps: str, swap_on: bool) -> None:
    write(root, "proc/swaps", swaps)
    assert host(root).swap_on is swap_on


@pytest.mark.parametrize(
    ("paths", "has_systemd"), [([], None), (["run"], False), (["run/systemd/system"], True), (["run/systemd"], False)]
)
def test_systemd(root: Path, paths: list[str], has_systemd: bool | None) -> None:
    for path in paths:
        (root / path).mkdir(parents=True)
    assert host(root).has_systemd is has_systemd


@pytest.mark.parametrize(
    ("text", "value"), [("10\n", 10), ("0", 0), ("-1\n", None), ("", None), ("a\n", None), ("1 2\n", None)]
)
def test_kernel_flags(root: Path, text: str, value: int | None) -> None:
    write(root, "proc/sys/kernel/panic", text)
    assert host(root).kernel_flag("kernel/panic") == value
    assert host(root).kernel_flag("vm/panic_on_oom") is None


V2 = "/sys/fs/cgroup"


def test_cgroups_of_version_2(root: Path) -> None:
    write(root, CONTROLLERS, "cpuset cpu\n")
    (root / "sys/fs/cgroup/system.slice/a.slice").mkdir(parents=True)
    found = host(root)
    assert not found.cgroup_v1
    paths = ["", "system.slice", "system.slice/a.slice", "a.slice", "system.slice/b"]
    assert [bool(found.lacks_cgroup(path)) for path in paths] == [False, False, False, True, True]


def test_cgroups_of_version_1(root: Path) -> None:
    """One has to be in all of the hierarchies that the kubelet uses, as far as the node has them."""
    for path in ("cpu/both", "hugetlb/both", "cpu/one", "freezer/both", "freezer/one", "hugetlb/other"):
        (root / "sys/fs/cgroup" / path).mkdir(parents=True)
    found = host(root)
    assert found.cgroup_v1
    lacking = [found.lacks_cgroup(path) for path in ("both", "one", "other", "none")]
    cpu, hugetlb = "/sys/fs/cgroup/cpu", "/sys/fs/cgroup/hugetlb"
    assert lacking == [[], [hugetlb], [cpu], [cpu, hugetlb]]


def test_controllers_that_real_time_processes_keep_from_the_pods(root: Path) -> None:
    write(root, CONTROLLERS, "cpuset cpu io memory pids rdma\n")
    write(root, "sys/fs/cgroup/kubepods.slice/cgroup.controllers", "cpuset io memory pids\n")
    write(root, "sys/fs/cgroup/other.slice/cgroup.controllers", "cpuset cpu memory pids\n")
    found = host(root)
    paths = ["kubepods.slice", "other.slice", "nothing.slice", "a\0b"]
    assert [list(found.cgroup_lacks(path)) for path in paths] == [["cpu"], [], [], []]


def test_cgroups_without_a_hierarchy(root: Path) -> None:
    (root / "sys/fs/cgroup").mkdir(parents=True)
    assert (host(root).cgroup_v1, host(root).lacks_cgroup("a")) == (True, None)


@pytest.mark.parametrize(("path", "lacks"), [("a\0b", None), ("a/" * 5000, [V2]), ("../../../../etc/nothing", [V2])])
def test_a_name_that_no_cgroup_has(root: Path, path: str, lacks: list[str] | None) -> None:
    write(root, CONTROLLERS, "cpuset\n")
    assert host(root).lacks_cgroup(path) == lacks


def test_the_disk_of_a_live_node(monkeypatch: pytest.MonkeyPatch) -> None:
    node = Node(Tree("/"), kubelet_root="/var/lib/nothing-here")
    asked = []

    def statvfs(path: str) -> object:
        asked.append(path)
        return SimpleNamespace(f_blocks=1000, f_frsize=4096)

    monkeypatch.setattr(os, "statvfs", statvfs)
    assert host_of(node).storage == 4096000
    assert asked == ["/var/lib/nothing-here"]
    monkeypatch.undo()
    assert host_of(node).storage is None
