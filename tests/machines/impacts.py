# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plans of nodes, and what an API server says of nodes and pods, for tests of what a change does to workloads."""

from __future__ import annotations

from typing import Any, Mapping

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.settings import found_settings
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.allocation import default_configuration
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.description import describe_machine

NONE = {"reserved_system_cpus": "0,4"}
STATIC = {**NONE, "cpu_manager_policy": "static"}
WHOLE_CORES = {**STATIC, "cpu_manager_policy_options": {"full-pcpus-only": "true"}}
# What admission_info says of a node of which nothing but its CPUs is known.
BESIDE: dict[str, Any] = {"memory": None, "huge_pages": 0, "numa_memory": None, "devices": [], "configuration": {}}
# Eight CPUs: the threads of a core are 0 and 4, 1 and 5, and so on.
MACHINE = "1 socket x 4 cores x 2 threads"


def plan_of(
    wanted: Mapping[str, Any] | None = None,
    found: Mapping[str, Any] | None = None,
    machine: str = MACHINE,
    version: str = "1.34.1",
    beside: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return what rollout_info says of a node that goes from some settings, NONE, to others, WHOLE_CORES.

    Nothing is done where both are equal.
    """
    wanted, found = WHOLE_CORES if wanted is None else wanted, NONE if found is None else found
    topology = describe_machine(machine).to_dict()
    distances = topology.pop("numa_distances")
    settings = {**found_settings(default_configuration()), **found}
    drift = [
        {"subject": name, "wanted": value, "found": settings[name]}
        for name, value in {**settings, **wanted}.items()
        if settings[name] != value
    ]
    actions = ["stop_kubelet", "write_configuration", "start_kubelet"] if drift else []
    return {
        "status": "drift" if drift else "clean",
        "topology": topology,
        "found": settings,
        "drift": drift,
        "actions": actions,
        "kubelet": {"version": version},
        "beside_cpus": {**BESIDE, **(beside or {}), "numa_distances": distances},
    }


def node_of(name: str, labels: Mapping[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    """Return a node as the API server has it."""
    return {"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}}, "spec": spec}


def pod_of(
    name: str, node: str, cpu: str = "", owner: tuple[str, str] | None = None, created: str = "", **spec: Any
) -> dict[str, Any]:
    """Return a Guaranteed pod as the API server has it; without CPUs, one that asks for nothing."""
    resources = {"limits": {"cpu": cpu, "memory": "1Gi"}} if cpu else {}
    return {
        "metadata": {
            "name": name,
            "namespace": "shop",
            "uid": "uid-" + name,
            "creationTimestamp": created or "2026-11-01T00:00:00Z",
            "ownerReferences": [{"kind": owner[0], "name": owner[1], "controller": True}] if owner else [],
        },
        "spec": {"nodeName": node, "containers": [{"name": "app", "resources": resources}], **spec},
        "status": {"phase": "Running"},
    }


def replica_set(name: str, deployment: str) -> dict[str, Any]:
    """Return a ReplicaSet as the API server has it."""
    owners = [{"kind": "Deployment", "name": deployment, "controller": True}]
    return {"metadata": {"name": name, "namespace": "shop", "ownerReferences": owners}}


def only_on(*names: str) -> dict[str, Any]:
    """Return the affinity of a pod of a DaemonSet."""
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]} for name in names]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
