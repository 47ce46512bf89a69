# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_node/pci_devices.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.pci_devices import with_pci_devices
from ansible_collections.kubenode.cpu_manager.tests.machines.layered import write

GPU = "nvidia.com/gpu"


def asked(count: int | None = None, numa_nodes: Any = (), vendor: Any = None, class_: Any = None) -> dict[str, Any]:
    return {
        "resource": GPU,
        "count": count,
        "numa_nodes": list(numa_nodes),
        "pci_vendor": vendor,
        "pci_class": class_,
    }


def counted(count: int, *nodes: int) -> dict[str, Any]:
    return {"resource": GPU, "count": count, "numa_nodes": list(nodes)}


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """Three GPUs, the audio of one, a bridge of another vendor, and a GPU of which the firmware says no NUMA node."""
    for name, vendor, class_, node in (
        ("0000:25:00.0", "0x10de", "0x030200", "0"),
        ("0000:25:00.1", "0x10de", "0x040300", "0"),
        ("0000:81:00.0", "0x10de", "0x030200", "1"),
        ("0000:e2:00.0", "0x10de", "0x030000", "1"),
        ("0000:e3:00.0", "0x8086", "0x060400", "1"),
        ("0000:f1:00.0", "0x1002", "0x038000", "-1"),
    ):
        for file, text in (("vendor", vendor), ("class", class_), ("numa_node", node)):
            write(tmp_path, "sys/bus/pci/devices/%s/%s" % (name, file), text + "\n")
    return Tree(str(tmp_path))


@pytest.mark.parametrize("text", ["9" * 5000, "-1", "²", "one"])
def test_a_node_that_is_no_number_is_none(text: str, tmp_path: Path) -> None:
    for file, content in (("vendor", "0x10de"), ("class", "0x030200"), ("numa_node", text)):
        write(tmp_path, "sys/bus/pci/devices/0000:25:00.0/" + file, content + "\n")
    assert with_pci_devices([asked(vendor="10de")], Tree(str(tmp_path)), "devices") == [counted(1)]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (asked(vendor="10de", class_="0302"), [counted(1, 0), counted(1, 1)]),
        (asked(vendor="0x10DE", class_="0x03"), [counted(1, 0), counted(2, 1)]),
        (asked(vendor="10de"), [counted(2, 0), counted(2, 1)]),
        (asked(vendor="1002", class_="03"), [counted(1)]),
        (asked(vendor="15b3"), [counted(0)]),
        (asked(4, [0, 1]), [counted(4, 0, 1)]),
    ],
)
def test_count(tree: Tree, row: dict[str, Any], expected: list[dict[str, Any]]) -> None:
    assert with_pci_devices([row], tree, "devices") == expected


def test_of_a_saved_node_they_are_not_known(tmp_path: Path) -> None:
    rows = [asked(vendor="10de"), asked(1, [0])]
    assert with_pci_devices(rows, Tree(str(tmp_path)), "devices") == [counted(1, 0)]


@pytest.mark.parametrize(
    ("row", "is_described", "what"),
    [
        (asked(), False, r"devices\[0\]: neither count nor pci_vendor is given"),
        (asked(1, vendor="10de"), False, r"devices\[0\]: count and numa_nodes do not go with pci_vendor"),
        (asked(None, [0], vendor="10de"), False, r"devices\[0\]: count and numa_nodes do not go with pci_vendor"),
        (asked(vendor="nvidia"), False, r"devices\[0\].pci_vendor: 'nvidia' is no id of PCI"),
        (asked(vendor="10de", class_="302"), False, r"devices\[0\].pci_class: '302' is no id of PCI"),
        (asked(vendor="10de"), True, r"devices\[0\]: a machine that is described has no PCI devices"),
    ],
)
def test_bad_input(tree: Tree, row: dict[str, Any], is_described: bool, what: str) -> None:
    with pytest.raises(InputError, match=what):
        with_pci_devices([row], None if is_described else tree, "devices")
