# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Fixtures with a control plane, for every test that wants one: a conftest.py imports them."""

from __future__ import annotations

import os
import subprocess
from contextlib import ExitStack
from pathlib import Path
from typing import Callable, Iterator, Sequence

import pytest

from ansible_collections.kubenode.cpu_manager.tests.running.lacking import KUBERNETES, lacking

from .api import API
from .binaries import CONTROL_PLANE, KUBELET, RUNTIME, binaries
from .control_plane import ControlPlane
from .debian import UnavailableError
from .node import Description, NodeAgent
from .pods import Pods

# Makes a node without a machine, by its name.
MakeNode = Callable[[str], NodeAgent]


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Yield one for all tests of the session. The first on a machine waits until it is built, some minutes."""
    directory = tmp_path_factory.mktemp("cluster") / "control-plane"
    with ControlPlane(directory, _programs(CONTROL_PLANE)) as up:
        yield up


@pytest.fixture(scope="session")
def real_kubelet() -> Path:
    """Return the directory of the programs with which a KubeletNode can have the real kubelet."""
    if os.geteuid() != 0:
        pytest.skip("a kubelet needs root")
    if subprocess.run(["unshare", "--mount", "true"], check=False).returncode != 0:
        pytest.skip("there can be no mounts of a kubelet's own here")
    return _programs(KUBELET + RUNTIME)


def _programs(names: Sequence[str]) -> Path:
    try:
        return binaries(names)
    except UnavailableError as error:
        lacking(KUBERNETES, "no Kubernetes: %s" % error)


@pytest.fixture
def namespace(control_plane: ControlPlane, request: pytest.FixtureRequest) -> Iterator[str]:
    """Yield a namespace of the test's own; what is in it goes with it."""
    name = request.node.name.replace("_", "-").lower()[:63].rstrip("-")
    control_plane.kubectl("create", "namespace", name)
    yield name
    # From now on nobody makes pods there, and nobody waits for those that are there.
    control_plane.kubectl("delete", "namespace", name, "--wait=false")
    control_plane.kubectl("delete", "pods", "--all", "--force", "--grace-period=0", "--namespace=" + name)


@pytest.fixture
def pods(control_plane: ControlPlane, namespace: str) -> Pods:
    """Return the pods in the test's namespace."""
    return Pods(control_plane, namespace)


@pytest.fixture
def make_node(control_plane: ControlPlane) -> Iterator[MakeNode]:
    """Yield a function that makes nodes on which pods can run, and remove these nodes in the end."""
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
