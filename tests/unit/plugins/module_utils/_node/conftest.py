# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The saved node of the tests of a kubelet's start; tests of something else have their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.tests.machines.started import write_static


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_static(tmp_path)
