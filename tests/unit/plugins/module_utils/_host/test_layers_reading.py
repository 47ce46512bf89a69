# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._host.layers import (
    FIXED,
    LIST,
    MASK,
    UNREADABLE,
    read_cpus,
    read_setting,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.tests.machines.layered import write


@pytest.mark.parametrize(
    ("text", "form", "mode", "cpus", "problem"),
    [
        ("0-1\n", LIST, 0o644, "0-1", ""),
        ("3\n", MASK, 0o200, "0-1", ""),
        ("0-1\n", LIST, 0o444, "0-1", FIXED),
        ("\n", LIST, 0o644, "", ""),
        ("(null)\n", LIST, 0o644, None, UNREADABLE),
        ("0x\n", MASK, 0o444, None, UNREADABLE),
    ],
)
def test_a_setting(tmp_path: Path, text: str, form: str, mode: int, cpus: str | None, problem: str) -> None:
    write(tmp_path, "/x", text).chmod(mode)
    found = read_setting(Tree(str(tmp_path)), "layer", "name", "/x", form)
    assert found is not None
    assert (found.layer, found.name, found.path, found.form, found.problem) == ("layer", "name", "/x", form, problem)
    assert found.cpus == (None if cpus is None else CPUSet.parse(cpus))
    assert found.text == ("" if cpus is None else text.strip())


def test_what_is_not_there_and_what_is_no_file(tmp_path: Path) -> None:
    tree = Tree(str(tmp_path))
    assert read_setting(tree, "layer", "name", "/x") is None
    assert read_cpus(tree, "/x") is None
    write(tmp_path, "/x/y", "")
    (tmp_path / "z").symlink_to("/etc/hostname")
    for path in ("/x", "/z"):
        found = read_setting(tree, "layer", "name", path)
        assert found is not None
        assert found.problem == UNREADABLE
        assert read_cpus(tree, path) is None
    os.mkfifo(tmp_path / "fifo")
    assert read_cpus(tree, "/fifo") == CPUSet()
