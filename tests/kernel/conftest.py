# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Cgroups of the machine that the tests run on, which are removed in the end, and a model of resctrl."""

from __future__ import annotations

from typing import Iterator

import pytest

from ansible_collections.kubenode.cpu_manager.tests.machines.resctrl.mounted import Mounted, mounted

from .cgroups import Cgroups, why_not


@pytest.fixture
def cgroups() -> Iterator[Cgroups]:
    """Yield a cgroup with two CPUs and what a test makes below it."""
    reason = why_not()
    if reason:
        pytest.skip(reason)
    with Cgroups() as made:
        yield made


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mounted]:
    """Yield a model of resctrl, mounted in the tree of a saved node."""
    yield from mounted(tmp_path_factory.mktemp("node"))
