# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The program as the one file that a service runs, on every Python that a node may have."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.zipapp import build
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping import housekeeping as bring
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping.housekeeping import Extras
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping.housekeeping_journal import (
    PATH,
    HousekeepingWish,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.modules import housekeeping as module
from ansible_collections.kubenode.cpu_manager.tests.machines import housekept
from ansible_collections.kubenode.cpu_manager.tests.support import pythons

LAYERS = ("interrupts", "workqueues", "rps", "slices")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("program") / "housekeeping.pyz"
    file.write_bytes(build(module.PROGRAM, sys.executable))
    return file


@pytest.mark.parametrize("python", [sys.executable, *map(str, pythons.installed().values())])
def test_it_runs_alone(tmp_path: Path, program: Path, python: str) -> None:
    root = housekept.write_node(tmp_path / "node")
    arguments = [python, "-I", str(program), str(root)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "")
    bring.present(Tree(str(root)), HousekeepingWish(CPUSet.parse("0-1"), LAYERS), Extras(), act=True)
    housekept.boot(root)
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "workqueues: queue000: ff to 3" in done.stdout.splitlines()
    housekept.boot(root)
    # Each service brings back its own part, in any order, and nothing is left.
    layers = []
    for part in (["network"], ["kernel"], []):
        done = subprocess.run([*arguments, *part], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        layers.append({line.partition(":")[0] for line in done.stdout.splitlines()} - {"note"})
    assert layers == [{"rps"}, {"interrupts", "workqueues"}, set()]
    (root / PATH[1:]).write_text("{")
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith("error: ")
