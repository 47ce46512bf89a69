# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the API server can be told of a node's plan: a NodeResourceTopology, and labels. Pure.

Source: the API topology.node.k8s.io/v1alpha2 (github.com/k8stopologyawareschedwg/noderesourcetopology-api), and the
names of zones and attributes that its exporters use. The scheduler's plugin NodeResourceTopologyMatch reads them.
"""

from __future__ import annotations

import re
from typing import Any, Mapping

from ...module_utils._base.errors import InputError, option
from ...module_utils.cpuset import CPUSet
from ...module_utils.topology.model import Topology
from ..report.answers import FAILED, NO_KUBELET, UNREACHABLE, WRONG, collected, line
from .groups import NodeGroup

LABELS, TOPOLOGIES = "labels", "node_resource_topologies"
FORMS = (LABELS, TOPOLOGIES)

_LABEL_PREFIX = "cpu-manager.kubenode/"
# An RFC 1123 subdomain, as the API server has it for names.
_NODE_NAME = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")
_LONGEST_NAME = 253


def node_resource_topology(name: str, plan: Mapping[str, Any]) -> dict[str, Any]:
    """The object of one node, by its answer to rollout_info: as it will be with what is wanted there.

    The resource is cpu. A zone is a NUMA node: capacity are its online CPUs, allocatable those that are not reserved,
    and available those of them that no container has as its own now. Raises InputError.
    """
    check_node_name(name)
    try:
        topology = Topology.from_dict(plan["topology"])
        settings = {**plan["found"], **plan["wanted"]}
        # The kubelet's own choice, where it was given no CPUs but an amount.
        reserved = CPUSet.parse(settings["reserved_system_cpus"] or plan["cpus"]["reserved_wanted"])
        exclusive = CPUSet.parse(plan["cpus"]["exclusive"])
        attributes = {
            "topologyManagerPolicy": str(settings["topology_manager_policy"]),
            "topologyManagerScope": str(settings["topology_manager_scope"]),
        }
        zones = []
        for node in topology.numa_nodes:
            allocatable = node.cpus - reserved
            amounts = {"capacity": node.cpus, "allocatable": allocatable, "available": allocatable - exclusive}
            row = topology.numa_distances.get(node.id, {})
            costs = [{"name": _zone(target), "value": distance} for target, distance in sorted(row.items())]
            zones.append(
                {
                    "name": _zone(node.id),
                    "type": "Node",
                    **({"costs": costs} if costs else {}),
                    "resources": [{"name": "cpu", **{key: str(len(cpus)) for key, cpus in amounts.items()}}],
                }
            )
    except WRONG as error:
        raise InputError("the plan of %s cannot be read: %s" % (name, line(str(error)))) from error
    return {
        "apiVersion": "topology.node.k8s.io/v1alpha2",
        "kind": "NodeResourceTopology",
        "metadata": {"name": name},
        "attributes": [{"name": key, "value": value} for key, value in attributes.items()],
        "zones": zones,
    }


def labelled_node(name: str, group: NodeGroup) -> dict[str, object]:
    """The labels of a node, as the part of a Node that a server-side apply or a merge patch takes."""
    check_node_name(name)
    settings = {row.variable: row.value for row in group.lines}
    labels = {
        "policy": settings["kubelet_cpu_manager_policy"],
        "topology-policy": settings["kubelet_topology_manager_policy"],
        "workload": group.workload,
        "shape": group.shape.name,
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {_LABEL_PREFIX + key: value for key, value in labels.items()}},
    }


def objects(
    form: str, groups: list[NodeGroup], plans: Mapping[str, Any], names: Mapping[str, str]
) -> list[dict[str, Any]]:
    """The objects of all nodes in one of FORMS, by the names of the hosts. names: {host: its name in the cluster}."""
    found = {}
    for group in groups:
        for host in group.hosts:
            if form == LABELS:
                found[host] = labelled_node(names[host], group)
            elif collected(host, plans.get(host))["status"] not in (FAILED, UNREACHABLE, NO_KUBELET):
                found[host] = node_resource_topology(names[host], plans[host])
    return [found[host] for host in sorted(found)]


def check_node_name(name: str) -> None:
    """Raise InputError for what is no name of a node."""
    if len(name) > _LONGEST_NAME or not _NODE_NAME.fullmatch(name):
        raise InputError("%r is no name of a node" % name, option("node_name"), "set it to the name in the cluster")


def _zone(node: int) -> str:
    return "node-%d" % node
