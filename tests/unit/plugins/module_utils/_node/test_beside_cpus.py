# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_node/beside_cpus.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.beside_cpus import (
    beside_cpus,
    given_memory,
    memory_for_plan,
    with_pci_devices,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.restored import DEVICES
from ansible_collections.kubenode.cpu_manager.tests.machines.device_checkpoint import device_state
from ansible_collections.kubenode.cpu_manager.tests.machines.layered import write
from ansible_collections.kubenode.cpu_manager.tests.machines.tree import write_machine
from ansible_collections.kubenode.cpu_manager.tests.machines.troubles import CONFIG

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
    """Return three GPUs, the audio of one, a bridge of another vendor, and a GPU of which the firmware says no NUMA
    node."""
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


# --- what the module admission_info returns -----------------------------------------------------------


GIB = 1 << 30
CHECKPOINT = "var/lib/kubelet/" + DEVICES
CONFIGURATION = """apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
evictionHard: {memory.available: 500Mi}
featureGates: {MemoryManager: true}
cpuManagerPolicy: static
"""


def node_with(root: Path, registered: dict[str, list[str]], *entries: Any) -> Node:
    write_machine(root, "2s1n8c2t")
    write(root, CONFIG[1:], CONFIGURATION)
    write(root, CHECKPOINT, device_state(registered, *entries).decode("ascii"))
    return Node(Tree(str(root)), CONFIG, minor=36)


def test_all_that_decides_beside_cpus(tmp_path: Path) -> None:
    node = node_with(tmp_path, {GPU: ["x", "y"], "vendor.com/nic": ["z"]}, ("u1", {"1": ["x"]}), ("u2", {"0": ["y"]}))
    found = beside_cpus(node, [], "devices")
    # Of the NIC that no container has it is not known where it is.
    assert found["devices"] == [counted(1, 0), counted(1, 1)]
    assert found["configuration"] == {
        "evictionHard": {"memory.available": "500Mi"},
        "featureGates": {"MemoryManager": True},
    }
    assert [row["numa_node"] for row in found["numa_memory"]] == [0, 1]
    # It can be given to allocation_plan.
    assert given_memory(found["numa_memory"], "numa_memory") == memory_for_plan(node.tree, node.topology)
    assert found["numa_distances"] == node.topology.to_dict()["numa_distances"]
    # What is said of a resource is all.
    row = {"resource": GPU, "count": 4, "numa_nodes": [], "pci_vendor": None, "pci_class": None}
    assert beside_cpus(node, [row], "devices")["devices"] == [counted(4)]


def test_a_resource_of_which_there_is_none_is_known(tmp_path: Path) -> None:
    assert beside_cpus(node_with(tmp_path, {GPU: []}), [], "devices")["devices"] == [counted(0)]


def test_a_checkpoint_of_devices_that_is_damaged_says_nothing(tmp_path: Path) -> None:
    node = node_with(tmp_path, {GPU: []})
    write(tmp_path, CHECKPOINT, "{")
    assert beside_cpus(node, [], "devices")["devices"] == []
