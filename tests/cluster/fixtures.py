# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Fixtures with a control plane, for every test that wants one: a conftest.py imports them."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Callable, Iterator

import pytest

from .api import API
from .binaries import CONTROL_PLANE, binaries
from .control_plane import ControlPlane
from .debian import UnavailableError
from .node import Description, NodeAgent

# Makes a node without a machine, by its name.
MakeNode = Callable[[str], NodeAgent]


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """One for all tests of the session. The first on a machine waits until it is built, some minutes."""
    try:
        programs = binaries(CONTROL_PLANE)
    except UnavailableError as error:
        pytest.skip("there can be no control plane here: %s" % error)
    with ControlPlane(tmp_path_factory.mktemp("cluster") / "control-plane", programs) as up:
        yield up


@pytest.fixture
def namespace(control_plane: ControlPlane, request: pytest.FixtureRequest) -> Iterator[str]:
    """A namespace of the test's own; what is in it goes with it."""
    name = request.node.name.replace("_", "-").lower()[:63].rstrip("-")
    control_plane.kubectl("create", "namespace", name)
    yield name
    # From now on nobody makes pods there, and nobody waits for those that are there.
    control_plane.kubectl("delete", "namespace", name, "--wait=false")
    control_plane.kubectl("delete", "pods", "--all", "--force", "--grace-period=0", "--namespace=" + name)


@pytest.fixture
def make_node(control_plane: ControlPlane) -> Iterator[MakeNode]:
    """Makes nodes on which pods can run, and removes them in the end."""
    amounts = {"cpu": "8", "memory": "16Gi", "pods": "110"}
    made: list[str] = []
    with ExitStack() as stack:

        def make(name: str) -> NodeAgent:
            api = API(control_plane.node_kubeconfig(name))
            agent = stack.enter_context(NodeAgent(api, Description(name, "v1.36.0", amounts, amounts)))
            agent.start()
            made.append(name)
            control_plane.wait_for("node/" + name, "Ready")
            return agent

        yield make
    control_plane.kubectl("delete", "nodes", *made)
