# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nodes that the playbooks run on, with stand-ins for their kubelets."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType
from typing import Any, Iterator, Mapping

import pytest

from ansible_collections.kubenode.cpu_manager.tests.playbooks.conftest import Run, ansible_playbook, play
from ansible_collections.kubenode.cpu_manager.tests.playbooks.init import SERVICE_MANAGER, private_init

from .control_plane import ControlPlane
from .kubelet_node import STARTED, KubeletNode

ROLLOUT = "kubenode.cpu_manager.rollout"
JOURNAL = "/var/lib/kubenode-cpu-manager/change.json"
LAST = "/var/lib/kubenode-cpu-manager/last-change.json"
NONE = {"cpuManagerPolicy": "none", "reservedSystemCPUs": "0,4", "cpuManagerReconcilePeriod": "500ms"}
TO_STATIC = {"kubelet_cpu_manager_policy": "static"}


class Fleet:
    """Nodes with stand-ins for their kubelets, in a cluster or without one."""

    def __init__(self, directory: Path, control_plane: ControlPlane | None = None) -> None:
        self.directory, self.control_plane = directory, control_plane
        self.nodes: dict[str, KubeletNode] = {}
        # What comes before the command of a run.
        self.around: tuple[str, ...] = ()

    def add(self, name: str) -> KubeletNode:
        """Return a node whose kubelet runs."""
        node = KubeletNode(self.directory / name, "1s4c2t", NONE, control_plane=self.control_plane)
        self.nodes[name] = node
        node.start()
        node.wait_for(STARTED)
        self.wait_until_ready(name)
        return node

    def wait_until_ready(self, name: str) -> None:
        """Wait until the cluster counts on a node."""
        if self.control_plane:
            self.control_plane.wait_for("node/" + name, "Ready")

    def run(self, playbook: str, *arguments: str, **variables: Any) -> Run:
        """Run a playbook on all of them."""
        return self.run_on({name: self.variables(name, **variables) for name in self.nodes}, playbook, *arguments)

    def run_on(
        self,
        hosts: Mapping[str, Mapping[str, Any]],
        playbook: str,
        *arguments: str,
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> Run:
        """Run a playbook on these hosts, with variables of each."""
        text = Path(__file__).parent.parent.parent / "playbooks" / (playbook.rpartition(".")[2] + ".yml")
        plays = [*play(SERVICE_MANAGER), {"name": playbook, "ansible.builtin.import_playbook": str(text)}]
        place, prefix = self.directory / "run", (*self.around, *self.prefix())
        return ansible_playbook(place, plays, hosts, *arguments, prefix=prefix, environment=environment)

    def variables(self, name: str, **variables: Any) -> dict[str, Any]:
        """Return those of a host."""
        cluster = {"kubelet_kubeconfig": str(self.control_plane.admin)} if self.control_plane else {}
        return {
            "kubelet_node_root": str(self.nodes[name].root),
            "kubelet_service": "kubelet-" + name,
            "kubelet_manage_service": True,
            "kubelet_drain": bool(cluster),
            # Longer than the stand-in of a fault lives, where a test has one.
            "kubelet_verify_seconds": 4 if cluster else 1,
            "kubelet_verify_timeout": 40,
            **cluster,
            **TO_STATIC,
            **variables,
        }

    def prefix(self) -> tuple[str, ...]:
        """Return the services of these nodes, for one command."""
        return private_init(
            self.directory, {"kubelet-" + name: node.init_script() for name, node in self.nodes.items()}
        )

    def policy(self, name: str) -> str:
        """Return that of the node's checkpoint."""
        checkpoint = self.nodes[name].checkpoint()
        assert checkpoint is not None
        return checkpoint.policy_name

    def is_open(self, name: str) -> bool:
        """Return whether the node can get pods."""
        assert self.control_plane is not None
        (node,) = self.control_plane.objects("nodes", "--field-selector=metadata.name=" + name)
        return not node["spec"].get("unschedulable", False)

    def stop(self) -> None:
        """End the kubelets, and forget the nodes."""
        for node in self.nodes.values():
            node.stop()
        if self.control_plane and self.nodes:
            self.control_plane.kubectl("delete", "nodes", *self.nodes)


@pytest.fixture
def fleet(control_plane: ControlPlane, tmp_path: Path, private_services: None) -> Iterator[Fleet]:
    fleet_of_nodes = Fleet(tmp_path, control_plane)
    yield fleet_of_nodes
    fleet_of_nodes.stop()


@pytest.fixture
def alone(tmp_path: Path, private_services: None) -> Iterator[Fleet]:
    lone_fleet = Fleet(tmp_path)
    yield lone_fleet
    lone_fleet.stop()
