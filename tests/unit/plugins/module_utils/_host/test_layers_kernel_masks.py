# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._host.layers import (
    UNREADABLE,
    KernelSetting,
    read_rps,
    read_watchdog,
    read_workqueues,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.layered import write, write_layers

QUEUES = "/sys/devices/virtual/workqueue/"


def shown(settings: list[KernelSetting]) -> list[tuple[str, str, str, str | None]]:
    return [
        (setting.name, setting.path, str(setting.cpus), None if setting.effective is None else str(setting.effective))
        for setting in settings
    ]


def test_workqueues(tmp_path: Path) -> None:
    write_layers(tmp_path, "0-3", "0-1")
    write(tmp_path, QUEUES + "queue000/cpumask", "c\n")
    write(tmp_path, QUEUES + "writeback/cpumask", "e\n")
    (tmp_path / (QUEUES + "power").lstrip("/")).mkdir()
    write(tmp_path, QUEUES + "uevent", "x\n")
    assert shown(read_workqueues(Tree(str(tmp_path)))) == [
        ("all unbound workqueues", QUEUES + "cpumask", "0-1", None),
        # Of CPUs that none may have, the kernel makes all that may be.
        ("queue000", QUEUES + "queue000/cpumask", "2-3", "0-1"),
        ("writeback", QUEUES + "writeback/cpumask", "1-3", "1"),
    ]


def test_what_was_wanted_of_all_workqueues_is_what_can_be_undone(tmp_path: Path) -> None:
    write(tmp_path, QUEUES + "cpumask", "3\n")
    write(tmp_path, QUEUES + "cpumask_requested", "f\n")
    write(tmp_path, QUEUES + "cpumask_isolated", "c\n")
    write(tmp_path, QUEUES + "writeback/cpumask", "f\n")
    first, second = read_workqueues(Tree(str(tmp_path)))
    assert (first.text, str(first.cpus), str(first.effective), first.path) == ("f", "0-3", "0-1", QUEUES + "cpumask")
    assert str(second.effective) == "0-1"


@pytest.mark.parametrize("read", [read_workqueues, read_rps, read_watchdog])
def test_a_kernel_without_the_layer(tmp_path: Path, read: object) -> None:
    assert callable(read)
    assert read(Tree(str(tmp_path))) == []


def test_only_a_queue_of_its_own(tmp_path: Path) -> None:
    write(tmp_path, QUEUES + "writeback/cpumask", "3\n")
    assert shown(read_workqueues(Tree(str(tmp_path)))) == [("writeback", QUEUES + "writeback/cpumask", "0-1", "0-1")]


def test_queues_of_network_devices(tmp_path: Path) -> None:
    write_layers(tmp_path, "0-39", "0-33")
    # Devices are links.
    write(tmp_path, "/sys/devices/virtual/net/lo/queues/rx-0/rps_cpus", "00,00000000\n")
    (tmp_path / "sys/class/net/lo").symlink_to("../../devices/virtual/net/lo")
    write(tmp_path, "/sys/class/net/bonding_masters", "\n")
    assert shown(read_rps(Tree(str(tmp_path)))) == [
        ("new queues", "/proc/sys/net/core/rps_default_mask", "", None),
        ("eth0 rx-0", "/sys/class/net/eth0/queues/rx-0/rps_cpus", "0-33", None),
        ("eth0 rx-1", "/sys/class/net/eth0/queues/rx-1/rps_cpus", "", None),
        ("lo rx-0", "/sys/class/net/lo/queues/rx-0/rps_cpus", "", None),
    ]


def test_a_device_that_leads_out_is_not_followed(tmp_path: Path) -> None:
    root = tmp_path / "node"
    write(root, "/sys/class/net/eth0/queues/rx-0/rps_cpus", "1\n")
    write(tmp_path, "/other/queues/rx-0/rps_cpus", "3\n")
    (root / "sys/class/net/eth1").symlink_to(tmp_path / "other")
    assert [setting.name for setting in read_rps(Tree(str(root)))] == ["eth0 rx-0"]


def test_the_watchdog(tmp_path: Path) -> None:
    write_layers(tmp_path, "0-3")
    assert shown(read_watchdog(Tree(str(tmp_path)))) == [("watchdog", "/proc/sys/kernel/watchdog_cpumask", "0-3", None)]


@pytest.mark.parametrize("content", [b"", b"zz", b"1,,2", b"\xff", b"1" * 70000])
def test_what_is_damaged_is_named(tmp_path: Path, content: bytes) -> None:
    for path in (QUEUES + "cpumask", QUEUES + "writeback/cpumask", "/sys/class/net/eth0/queues/rx-0/rps_cpus"):
        write(tmp_path, path, content)
    tree = Tree(str(tmp_path))
    assert [(setting.problem, setting.cpus) for setting in (*read_workqueues(tree), *read_rps(tree))] == [
        (UNREADABLE, None)
    ] * 3
