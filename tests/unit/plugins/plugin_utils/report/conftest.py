# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The directory of results that the tests of their files share."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(name="nodes")
def nodes_fixture(tmp_path: Path) -> Path:
    nodes = tmp_path / "nodes"
    nodes.mkdir()
    return nodes
