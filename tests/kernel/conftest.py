# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Cgroups of the machine that the tests run on, below one of their own, which is removed in the end."""

from __future__ import annotations

from typing import Iterator

import pytest

from .cgroups import Cgroups, why_not


@pytest.fixture
def cgroups() -> Iterator[Cgroups]:
    """A cgroup with two CPUs and what a test makes below it."""
    reason = why_not()
    if reason:
        pytest.skip(reason)
    with Cgroups() as made:
        yield made
