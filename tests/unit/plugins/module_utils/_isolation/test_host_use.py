# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_isolation/host_use.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._isolation.throttling_info import throttling
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.tests.machines import throttled
from ansible_collections.kubenode.cpu_manager.tests.machines.cgroups import V2
from ansible_collections.kubenode.cpu_manager.tests.machines.layered import write

CGROUPS = "sys/fs/cgroup/"
FILES = {
    "proc/sys/kernel/random/boot_id": "3b0c\n",
    "proc/uptime": "100.5 3000.0\n",
    CGROUPS + "cpu.stat": "usage_usec 9000\nuser_usec 1\n",
    CGROUPS + "kubepods.slice/cpu.stat": "usage_usec 8000\nuser_usec 1\n",
    CGROUPS + "system.slice/cpu.pressure": "some avg10=0.00 avg60=0.00 avg300=0.00 total=77\nfull avg10=0.00 total=1\n",
    CGROUPS + "system.slice/memory.current": "4096\n",
    CGROUPS + "init.scope/memory.current": "1024\n",
    CGROUPS + "kubepods.slice/memory.current": "999999\n",
}


def host_of(root: Path, **changed: str | None) -> object:
    throttled.write_node(root, V2)
    for path, text in {**FILES, **changed}.items():
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
        "memory_bytes": 5120,
    }


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("proc/uptime", None),
        ("proc/uptime", "soon\n"),
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
