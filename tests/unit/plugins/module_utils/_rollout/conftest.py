# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The node of the tests of plans."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import write_checkpoint
from ansible_collections.kubenode.cpu_manager.tests.machines.planned import configure
from ansible_collections.kubenode.cpu_manager.tests.machines.tree import write_machine
from ansible_collections.kubenode.cpu_manager.tests.machines.troubles import CHECKPOINT, STATIC


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """Return a node with the static policy and one pod with exclusive CPUs."""
    write_machine(tmp_path, "1s4c2t")
    (tmp_path / "var/lib/kubelet").mkdir(parents=True)
    configure(tmp_path, STATIC)
    state = State(CPUSet.parse("0,2-4,6-7"), {"pod": {"app": CPUSet.parse("1,5")}})
    (tmp_path / CHECKPOINT[1:]).write_bytes(write_checkpoint("static", state))
    return Tree(str(tmp_path))
