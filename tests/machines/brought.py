# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Saved nodes that housekeeping brings to a wish and back."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Sequence

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._host.kernel_line import wanted_arguments
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping import (
    carry_out as run,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping import (
    housekeeping as bring,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping.at_boot import AtBoot
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping.housekeeping import Extras
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping.housekeeping_journal import (
    HousekeepingWish,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet

from . import housekept

LAYERS = ("interrupts", "workqueues", "rps", "slices", "irqbalance", "watchdog", "manager")
DROP_IN = "etc/systemd/system/%s.d/50-kubenode-housekeeping.conf"
IRQ = "proc/irq/24/smp_affinity_list"
SLICE = "sys/fs/cgroup/system.slice/cpuset.cpus"


class Brought:
    """A saved node, the commands that housekeeping has run on it, and its files as they were before."""

    def __init__(self, root: Path) -> None:
        self.root, self.tree = root, Tree(str(root))
        self.before = self.contents()
        self.commands: list[Sequence[str]] = []

    def back(self, act: bool = True) -> run.HousekeepingResult:
        return bring.absent(self.tree, act, run=self.run)

    def run(self, words: Sequence[str]) -> str:
        self.commands.append(words)
        return ""

    def contents(self) -> dict[str, tuple[int, bytes]]:
        return {
            str(path.relative_to(self.root)): (
                path.lstat().st_mode,
                os.readlink(path).encode() if path.is_symlink() else path.read_bytes() if path.is_file() else b"",
            )
            for path in sorted(self.root.rglob("*"))
        }

    def put(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)


class Node(Brought):
    """The node with every layer."""

    def __init__(self, root: Path) -> None:
        super().__init__(housekept.write_node(root))

    def bring(
        self, reserved: str = "0-1", layers: Sequence[str] = LAYERS, act: bool = True, **more: Any
    ) -> run.HousekeepingResult:
        cpus = CPUSet.parse(reserved)
        arguments = wanted_arguments(cpus, CPUSet.parse("0-15")) if "kernel_line" in layers else None
        at_boot = AtBoot(b"\x00program", "/usr/bin/python3") if more.pop("persistent", True) else None
        extras = Extras(arguments, at_boot, more.pop("runs", False))
        return bring.present(self.tree, HousekeepingWish(cpus, tuple(layers), **more), extras, act, self.run)

    def held(self, path: str) -> str:
        return (self.root / path).read_text().rstrip("\n")


def paths(answer: run.HousekeepingResult) -> list[str]:
    return [change["path"] for change in answer.to_dict()["changes"]]
