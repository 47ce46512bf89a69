# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Of a saved node, the next boot's arguments about CPUs are read as on the node, and no more is saved."""

from __future__ import annotations

from pathlib import Path
from typing import Callable

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._host.kernel_line import compare
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping.loaders import (
    configured_line,
    find_loader,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._saved.collector import Collector
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._saved.files_of_machine import save_loader
from ansible_collections.kubenode.cpu_manager.tests.machines import loaders

LINE = "quiet token=SECRET nohz_full=2-7 rcu_nocbs=2-7 isolcpus=managed_irq,2-7 rd.luks.key=SECRET"


def _grub(root: Path) -> Tree:
    tree = loaders.grub(root, directory={}, line=LINE)
    place = root / "boot/grub/grub.cfg"
    place.write_text('set superusers="x"\npassword_pbkdf2 x grub.pbkdf2.SECRET\n' + place.read_text())
    return tree


def _bls(root: Path) -> Tree:
    environment = "saved_entry=\nkernelopts=root=/dev/vda %s\n" % LINE
    return loaders.bls(root, {"6.1": "$kernelopts key=SECRET", "5.9": "nohz_full=1"}, environment)


def _systemd_boot(root: Path) -> Tree:
    return loaders.systemd_boot(root, {"6.1": LINE, "6.2": "rcu_nocbs=3"}, loader="timeout 3\ndefault *6.1.conf\n")


def _nothing(root: Path) -> Tree:
    root.mkdir(exist_ok=True)
    return Tree(str(root))


@pytest.mark.parametrize("make", [_grub, _bls, _systemd_boot, _nothing])
def test_the_next_boot_of_a_saved_node(tmp_path: Path, make: Callable[[Path], Tree]) -> None:
    tree = make(tmp_path / "node")
    collector = Collector(tree)
    save_loader(collector)
    copy = tmp_path / "copy"
    for path, member in collector.members.items():
        if member.content is not None:
            loaders.write(copy, path, member.content.decode("latin-1"))
            assert b"SECRET" not in member.content
    copy.mkdir(exist_ok=True)
    saved = Tree(str(copy))
    answers = []
    for place in (tree, saved):
        loader = find_loader(place)
        configured = configured_line(place, loader)
        answers.append((loader.kind, configured.where, configured.problem, compare("", configured.text, ())))
    assert answers[0] == answers[1]
    assert (answers[0][0] == "none") is (make is _nothing)
