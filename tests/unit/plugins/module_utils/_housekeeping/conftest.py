# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The saved nodes that tests bring in line, or make partitions on."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.tests.machines.brought import Node
from ansible_collections.kubenode.cpu_manager.tests.machines.partitioned import Saved


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path / "node")


@pytest.fixture
def saved(tmp_path: Path) -> Saved:
    return Saved(tmp_path / "node")
