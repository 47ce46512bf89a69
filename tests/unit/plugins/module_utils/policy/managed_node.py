# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A CPU manager on a machine of a name, pods for it, and what they and the shared pool have then."""

from __future__ import annotations

from typing import Any

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._containers.pods import APP, INIT, Container, Pod
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.hints import CONTAINER, NONE, TopologyManager
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.manager import CPUManager
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.options import StaticOptions
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.static import StaticPolicy
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.kubelet_view import kubelet_view
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import parse_name
from ansible_collections.kubenode.cpu_manager.tests.machines.values import SMT

MINOR = 35


def pod(uid: str, *cpus: float, init: float = 0) -> Pod:
    """Return a Guaranteed pod with containers a, b, ... of so many CPUs, and perhaps an init container."""

    def container(name: str, kind: str, count: float) -> Container:
        resources = {"cpu": round(1000 * count), "memory": 1000}
        return Container(name, kind, resources, resources)

    first = (container("init", INIT, init),) if init else ()
    return Pod(uid, "shop/" + uid, first + tuple(container("abc"[i], APP, count) for i, count in enumerate(cpus)))


def manager(
    name: str = SMT,
    policy: str = NONE,
    scope: str = CONTAINER,
    reserved: str = "0",
    state: State | None = None,
    **options: Any,
) -> CPUManager:
    topology = kubelet_view(parse_name(name).topology())
    static = StaticPolicy(topology, StaticOptions(**options), CPUSet.parse(reserved), MINOR)
    return CPUManager(static, TopologyManager(policy, scope, list(topology.numa_nodes)), state)


def cpus(node: CPUManager, uid: str) -> dict[str, str]:
    """Return what the containers of a pod have for themselves."""
    return {name: str(CPUSet.from_mask(mask)) for name, mask in node.state.assignments.get(uid, {}).items()}


def pool(node: CPUManager) -> str:
    return str(CPUSet.from_mask(node.state.default))
