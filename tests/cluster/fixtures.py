# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Fixtures with a control plane, for every test that wants one: a conftest.py imports them."""

from __future__ import annotations

from typing import Iterator

import pytest

from .binaries import CONTROL_PLANE, binaries
from .control_plane import ControlPlane
from .debian import UnavailableError


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """One for all tests of the session. The first on a machine waits until it is built, some minutes."""
    try:
        programs = binaries(CONTROL_PLANE)
    except UnavailableError as error:
        pytest.skip("there can be no control plane here: %s" % error)
    with ControlPlane(tmp_path_factory.mktemp("cluster") / "control-plane", programs) as up:
        yield up
