# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A saved node around a resctrl: its machine, a kubelet, and a checkpoint."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, Iterable

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._caches.cache_partition import (
    PartitionResult,
    absent,
    present,
    terms_of,
    wish_of,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import write_checkpoint

from ..kubelets import HEADER
from .platforms import write_machine
from .shapes import Shape

CHECKPOINT = "var/lib/kubelet/cpu_manager_state"
CONFIG = "var/lib/kubelet/config.yaml"
JOURNAL = "var/lib/kubenode-cpu-manager/cache.json"
BOOT_ID = "proc/sys/kernel/random/boot_id"


def write_node(root: Path, shape: Shape, reserved: str = "") -> None:
    """Write the node's files but those of resctrl, and remove those of the machine that was there before."""
    for name in ("sys/devices", "var"):
        shutil.rmtree(root / name, ignore_errors=True)
    write_machine(root, shape)
    line = "reservedSystemCPUs: '%s'\n" % reserved if reserved else ""
    write(root / CONFIG, HEADER + "cpuManagerPolicy: static\n" + line)
    write(root / "etc/hostname", "worker-1\n")
    write(root / BOOT_ID, "11111111-2222-4333-8444-555555555555\n")


def give(root: Path, exclusive: Iterable[int], shared: Iterable[int]) -> None:
    """Write the kubelet's account: one container with the exclusive CPUs, and the pool of the shared ones."""
    cpus = CPUSet(exclusive)
    assignments = {"pod-1": {"app": cpus}} if cpus else {}
    content = write_checkpoint("static", State(CPUSet(shared), assignments))
    (root / CHECKPOINT).parent.mkdir(parents=True, exist_ok=True)
    (root / CHECKPOINT).write_bytes(content)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def node_at(root: Path) -> Node:
    return Node(Tree(str(root)))


def divide(root: Path, act: bool = True, **wish: Any) -> PartitionResult:
    """Return what cache_partition does with these options."""
    return present(node_at(root), wish_of(wish), terms_of(wish), act)


def take_back(root: Path, act: bool = True) -> PartitionResult:
    return absent(node_at(root), act)
