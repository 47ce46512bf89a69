# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The playbook propose applies labels at a real API server.

NodeResourceTopology objects are applied in tests/playbooks/test_node_objects.py, at a server of the tests: this API
server ends at the first custom resource, as the Kubernetes that is built here has a JSON library that today's Go
breaks.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Iterator

import pytest

from ansible_collections.kubenode.cpu_manager.tests.machines.kubelets import HEADER, Kubelet, write_kubelet
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import parse_name
from ansible_collections.kubenode.cpu_manager.tests.machines.tree import write_tree
from ansible_collections.kubenode.cpu_manager.tests.playbooks.conftest import Run, ansible_playbook

from .control_plane import ControlPlane

PROPOSE = "kubenode.cpu_manager.propose"
NODE = "proposed.example.org"


@pytest.fixture
def api(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """Yield an API server that has the node."""
    control_plane.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}})
    yield control_plane
    control_plane.kubectl("delete", "node/" + NODE)


def propose(tmp_path: Path, api: ControlPlane, *arguments: str) -> Run:
    hosts = {"worker": {"kubelet_node_root": str(tmp_path / "worker"), "kubelet_target_version": "1.36"}}
    hosts["worker"].update(cpu_manager_workload="latency", kubelet_node_name=NODE)
    variables = {
        "cpu_manager_node_objects": ["labels"],
        "cpu_manager_apply_node_objects": True,
        "kubelet_kubeconfig": str(api.admin),
    }
    return ansible_playbook(tmp_path / "run", PROPOSE, hosts, "-e", json.dumps(variables), *arguments)


def labels_of(api: ControlPlane) -> dict[str, str]:
    (node,) = (node for node in api.objects("nodes") if node["metadata"]["name"] == NODE)
    labels = node["metadata"].get("labels", {}).items()
    return {name.partition("/")[2]: value for name, value in labels if name.startswith("cpu-manager.kubenode/")}


def has_set_labels(run: Run) -> bool:
    (result,) = (found for found in run.results["worker"] if "Apply the objects" in found["task"])
    return bool(result["changed"])


def test_labels_are_applied_once(tmp_path: Path, api: ControlPlane) -> None:
    shape = parse_name("2s1n4c2t")
    write_tree(shape.topology(), tmp_path / "worker", shape.whole())
    write_kubelet(tmp_path / "worker", Kubelet({"/var/lib/kubelet/config.yaml": HEADER}, "1.36"))

    check = propose(tmp_path, api, "--check")
    assert check.status == 0, check.account()
    assert labels_of(api) == {}

    run = propose(tmp_path, api)
    assert run.status == 0, run.account()
    assert has_set_labels(run)
    assert labels_of(api) == {
        "policy": "static",
        "topology-policy": "single-numa-node",
        "workload": "latency",
        "shape": "cpus16_sockets2_numa2_caches2_threads2",
    }

    again = propose(tmp_path, api)
    assert again.status == 0, again.account()
    assert not has_set_labels(again)
