# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_isolation/host_use.py."""

from __future__ import annotations

from pathlib import Path
from typing import Mapping

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._isolation.throttling_info import throttling
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.tests.machines import throttled
from ansible_collections.kubenode.cpu_manager.tests.machines.cgroups import V1, V2, Style
from ansible_collections.kubenode.cpu_manager.tests.machines.layered import write

CGROUPS = "sys/fs/cgroup/"
FILES = {
    "proc/sys/kernel/random/boot_id": "3b0c\n",
    "proc/uptime": "100.5 3000.0\n",
    CGROUPS + "cpu.stat": "usage_usec 9000\nuser_usec 1\n",
    CGROUPS + "kubepods.slice/cpu.stat": "usage_usec 8000\nuser_usec 1\n",
    CGROUPS + "system.slice/cpu.pressure": "some avg10=0.00 avg60=0.00 avg300=0.00 total=77\nfull avg10=0.00 total=1\n",
    "proc/meminfo": "MemTotal: 8000 kB\nMemFree:   1000 kB\nInactive(file): 77 kB\nHugetlb:       2048 kB\n",
    CGROUPS + "cgroup.controllers": "cpuset cpu memory\n",
    CGROUPS + "memory.stat": "anon 1\ninactive_file 409600\n",
    CGROUPS + "kubepods.slice/memory.current": "3072000\n",
    CGROUPS + "kubepods.slice/memory.stat": "anon 1\ninactive_file 1024000\n",
}
V1_CGROUPS = {
    "cpuacct/cpuacct.usage": "9000000\n",
    "cpuacct/kubepods.slice/cpuacct.usage": "8000000\n",
    "memory/memory.limit_in_bytes": "9223372036854771712\n",
    "memory/memory.usage_in_bytes": "9000\n",
    "memory/memory.stat": "inactive_file 1\ntotal_inactive_file 2000\n",
    "memory/kubepods.slice/memory.usage_in_bytes": "5000\n",
    "memory/kubepods.slice/memory.stat": "inactive_file 1\ntotal_inactive_file 4000\n",
}


def host_of(root: Path, **changed: str | None) -> object:
    return read(root, V2, {**FILES, **changed})


def read(root: Path, style: Style, files: Mapping[str, str | None]) -> object:
    throttled.write_node(root, style)
    for path, text in files.items():
        if text is not None:
            write(root, path, text)
        elif (root / path).exists():
            (root / path).unlink()
    return throttling(Node(Tree(str(root))), 0, 25)["host"]


def test_what_runs_in_no_pod(tmp_path: Path) -> None:
    assert host_of(tmp_path) == {
        "boot": "3b0c",
        "uptime": 100.5,
        "total_us": 9000,
        "pods_us": 8000,
        "pressure_us": 77,
        "memory_bytes": (8000 - 1000 - 2048) * 1024 - 409600 - (3072000 - 1024000),
    }


@pytest.mark.parametrize("together", [True, False])
def test_the_controllers_of_version_1_are_together_or_apart(tmp_path: Path, together: bool) -> None:
    name = "cpu,cpuacct" if together else "cpuacct"
    files = {CGROUPS + path.replace("cpuacct/", name + "/", 1): text for path, text in V1_CGROUPS.items()}
    mounts = V1.mounts
    if not together:
        apart = [
            mount.replace("cpu,cpuacct", controller)
            for mount in mounts
            if "cpu,cpuacct" in mount
            for controller in ("cpu", "cpuacct")
        ]
        mounts = (*(mount for mount in mounts if "cpu,cpuacct" not in mount), *apart)
    read(tmp_path, V1, {})
    if not together:
        (tmp_path / CGROUPS / "cpu,cpuacct").rename(tmp_path / CGROUPS / "cpu")
    more = {path: text for path, text in FILES.items() if not path.startswith(CGROUPS)}
    for path, text in {**more, **files, "proc/mounts": "\n".join(mounts) + "\n"}.items():
        write(tmp_path, path, text)
    found = throttling(Node(Tree(str(tmp_path))), 0, 25)["host"]
    assert (found["total_us"], found["pods_us"], found["memory_bytes"]) == (9000, 8000, 7000 - 1000)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("proc/uptime", None),
        ("proc/uptime", "soon\n"),
        ("proc/uptime", "nan 1\n"),
        ("proc/uptime", "-5.0 1\n"),
        ("proc/uptime", "1" * 10**6 + " 1\n"),
        ("proc/sys/kernel/random/boot_id", None),
        (CGROUPS + "cpu.stat", None),
        (CGROUPS + "cpu.stat", "usage_usec -1\n"),
        (CGROUPS + "kubepods.slice/cpu.stat", "nothing\n"),
    ],
)
def test_what_cannot_be_read_is_none(tmp_path: Path, path: str, text: str | None) -> None:
    assert host_of(tmp_path, **{path: text}) is None


def test_a_kernel_without_pressure(tmp_path: Path) -> None:
    found = host_of(tmp_path, **{CGROUPS + "system.slice/cpu.pressure": None})
    assert isinstance(found, dict)
    assert found["pressure_us"] is None


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("proc/meminfo", None),
        # Before Linux 4.18 it does not say what huge pages have.
        ("proc/meminfo", "MemTotal: 8000 kB\nMemFree: 1000 kB\n"),
        ("proc/meminfo", "MemTotal: 8000 kB\nMemFree: -1 kB\nHugetlb: 0 kB\n"),
        ("proc/meminfo", "MemTotal: 8000 kB\n" * 10**5),
        (CGROUPS + "memory.stat", None),
        (CGROUPS + "memory.stat", "inactive_file " + "9" * 10**6 + "\n"),
        (CGROUPS + "kubepods.slice/memory.stat", "inactive_file nan\n"),
        (CGROUPS + "kubepods.slice/memory.current", "max\n"),
        # More than there is.
        (CGROUPS + "kubepods.slice/memory.current", "307200000\n"),
        (CGROUPS + "cgroup.controllers", "cpuset cpu\n"),
    ],
)
def test_memory_that_cannot_be_read_takes_nothing_from_the_rest(tmp_path: Path, path: str, text: str | None) -> None:
    found = host_of(tmp_path, **{path: text})
    assert isinstance(found, dict)
    assert (found["memory_bytes"], found["total_us"]) == (None, 9000)
