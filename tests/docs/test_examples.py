# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Examples of the guides of which the machine is in the test, computed once more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.reservation_request import RESERVATION
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.reserved_memory import memory_list
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.wanted_settings import (
    SETTINGS_ARGUMENTS,
    wanted_settings,
)
from ansible_collections.kubenode.cpu_manager.plugins.modules import reserved_cpus
from ansible_collections.kubenode.cpu_manager.tests.machines.kubelets import HEADER
from ansible_collections.kubenode.cpu_manager.tests.machines.layered import write
from ansible_collections.kubenode.cpu_manager.tests.machines.started import CONFIG, node
from ansible_collections.kubenode.cpu_manager.tests.machines.tree import write_machine

from .pages import GUIDES, blocks

ASKED: dict[str, Any] = {**dict.fromkeys(RESERVATION.options), "method": "plan", "cpu_manager_policy_options": {}}


def block_with(guide: str, words: str) -> str:
    (text,) = [block.text for block in blocks(GUIDES / guide) if words in block.text]
    return text.rstrip("\n")


def test_reserved_memory_is_planned_as_shown(tmp_path: Path) -> None:
    write_machine(tmp_path, "2s1n12c2t")
    write(tmp_path, CONFIG, HEADER.encode("ascii"))
    variables = yaml.safe_load(block_with("reserve_cpus.rst", "memory: auto"))
    asked = {name.removeprefix("kubelet_"): value for name, value in variables.items()}
    planned = wanted_settings(node(tmp_path), {**dict.fromkeys(SETTINGS_ARGUMENTS.options), **asked})
    assert block_with("reserve_cpus.rst", "reservedMemory: [") == "reservedMemory: " + memory_list(
        planned["reserved_memory"]
    )


def test_the_largest_pod_is_as_shown(tmp_path: Path) -> None:
    write_machine(tmp_path, "2s1n12c2t")
    asked = {**ASKED, "count": 4, "strategy": "spread"}
    found: Any = reserved_cpus.work(Tree(str(tmp_path)), asked, True).result["largest_pod"]
    shown = yaml.safe_load(block_with("reserve_cpus.rst", "largest_pod:"))
    assert shown == {"largest_pod": found}
    # The planned one first.
    assert list(found) == ["spread", "packed"]
