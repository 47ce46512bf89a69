# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A saved node on which housekeeping makes a partition."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Mapping, Sequence

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping import housekeeping as bring
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping.at_boot import AtBoot
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping.housekeeping import Extras
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping.housekeeping_journal import (
    HousekeepingWish,
    OwnCPUs,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet

from . import housekept
from .layered import write
from .values import cpus

ONLINE = CPUSet.parse("0-7")
TOP = "/sys/fs/cgroup/"
OWN = "isolated.slice"


class Saved:
    """A saved node on which the commands of systemd make and remove the slice."""

    def __init__(self, root: Path) -> None:
        self.root = housekept.write_node(root)
        for name in (*housekept.UNITS, "kubepods.slice"):
            self.make(name)
        self.tree = Tree(str(root))
        self.commands: list[Sequence[str]] = []

    def make(self, name: str, **files: str) -> None:
        texts = {"cpuset.cpus": "", "cpuset.cpus.exclusive": "", "cpuset.cpus.partition": "member"}
        texts.update({"cpuset.cpus." + file: text for file, text in files.items()})
        for file, text in {**texts, "cgroup.events": "populated 0\nfrozen 0"}.items():
            write(self.root, TOP + name + "/" + file, text + "\n")

    def run(self, words: Sequence[str]) -> str:
        self.commands.append(words)
        if words[1] == "start":
            self.make(words[2])
        elif words[1] == "stop":
            for path in (self.root / TOP[1:] / words[2]).iterdir():
                path.unlink()
            (self.root / TOP[1:] / words[2]).rmdir()
        return ""

    def bring(self, own: str = "2-3", kind: str = "isolated", act: bool = True, **more: Any) -> Any:
        partition = OwnCPUs(cpus(own), kind, OWN) if own else None
        wish = HousekeepingWish(cpus("0-1"), ("slices",), partition=partition)
        extras = Extras(boot=AtBoot(b"\x00program", "/usr/bin/python3"), runs=more.pop("runs", True))
        return bring.present(self.tree, wish, extras, act, self.run)

    def files(self) -> Mapping[str, bytes]:
        return {str(path): path.read_bytes() for path in sorted(self.root.rglob("*")) if path.is_file()}

    def held(self, file: str) -> str:
        return (self.root / TOP[1:] / OWN / file).read_text().rstrip("\n")
