# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A proposal as files: variables of each group, an inventory of the groups, a table, objects of the API. Pure.

The same proposal gives the same bytes. A file begins with the sum of what comes after, so that one that was edited is
known. What the API server can be told of a node's plan is a NodeResourceTopology, and labels.

Source: the API topology.node.k8s.io/v1alpha2 (github.com/k8stopologyawareschedwg/noderesourcetopology-api), and the
names of zones and attributes that its exporters use. The scheduler's plugin NodeResourceTopologyMatch reads them.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any, Iterable, Mapping, Sequence

from ...module_utils._base.errors import InputError, option
from ...module_utils.cpuset import CPUSet
from ...module_utils.topology.model import Topology
from ..report.answers import FAILED, NO_KUBELET, UNREACHABLE, WRONG, collected, line
from .groups import NodeGroup
from .settings import Line

LABELS, TOPOLOGIES = "labels", "node_resource_topologies"
FORMS = (LABELS, TOPOLOGIES)
_LABEL_PREFIX = "cpu-manager.kubenode/"
# An RFC 1123 subdomain, as the API server has it for names.
_NODE_NAME = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")
_LONGEST_NAME = 253

INVENTORY, TABLE = "inventory.yml", "shapes.md"
OBJECTS = {LABELS: "node-labels.yml", TOPOLOGIES: "node-resource-topologies.yml"}
# Directly below the directory, and beside the inventory, where Ansible looks for them.
_VARIABLES = "group_vars"

_WIDTH = 118
_SUM = re.compile(r"sha256 of what follows: ([0-9a-f]{64})")
_HEADER = "Proposed. An edited file is not overwritten. sha256 of what follows: %s"
# Words that YAML 1.1 takes for something else.
_NOT_TEXTS = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null"))
# Of groups at the same depth the one with the highest number wins. Ansible takes it from an inventory alone.
_PRIORITY = 10


def proposal_files(
    groups: Sequence[NodeGroup], plans: Mapping[str, object], objects: Mapping[str, Sequence[Mapping[str, object]]]
) -> dict[str, str]:
    """Return {path below the directory: text}. plans: the nodes' answers with the proposal. objects: by their form."""
    files = {"%s/%s.yml" % (_VARIABLES, group.name): _yaml_file(_variables(group, plans)) for group in groups}
    for form, members in objects.items():
        files[OBJECTS[form]] = _yaml_file("---\n".join(["", *(_block(member, 0) for member in members)]))
    # After the variables: a group is there with what it stands for, or not at all.
    files.update({INVENTORY: _yaml_file(_inventory(groups)), TABLE: _table(groups)})
    return files


def is_edited(text: str) -> bool:
    """Return whether a file is not as it was written: its sum is missing, or of something else."""
    header, _newline, body = text.partition("\n")
    found = _SUM.search(header)
    return found is None or found[1] != _sum(body)


def table_rows(groups: Iterable[NodeGroup]) -> list[tuple[str, str, str, str]]:
    """Return (group, machine, what is proposed in short, nodes) of each group."""
    rows = []
    for group in groups:
        value = {row.variable: row.value for row in group.lines}
        reserved = value.get("kubelet_reservation", {"count": 0})["count"]
        short = "%s, %d reserved" % (value["kubelet_cpu_manager_policy"], reserved)
        rows.append((group.name, str(group.shape), short, ", ".join(group.hosts)))
    return rows


# --- the files ----------------------------------------------------------------------------------------


def _inventory(groups: Iterable[NodeGroup]) -> str:
    lines = [
        "---",
        "# To be given beside your own inventory: -i INVENTORY -i %s" % INVENTORY,
        "all:",
        "  children:",
    ]
    for group in groups:
        lines += ["    %s:" % group.name, "      vars:", "        ansible_group_priority: %d" % _PRIORITY]
        lines += ["      hosts:", *("        %s:" % _scalar(host) for host in group.hosts)]
    return "\n".join(lines) + "\n"


def _variables(group: NodeGroup, plans: Mapping[str, object]) -> str:
    minors = group.minors
    versions = "1.%d" % minors[0] if len(minors) == 1 else "1.%d to 1.%d" % (minors[0], minors[-1])
    assumed = "; where a node does not say, the newest that is known" if group.is_assumed else ""
    lines = ["---"]
    lines += _comment("%d node%s: %s." % (len(group.hosts), "" if len(group.hosts) == 1 else "s", group.shape))
    lines += _comment("Kubelets: %s%s. All of them would start with this." % (versions, assumed))
    lines += _comment(_reserved(group, plans))
    for row in group.lines:
        lines += ["", *_comment(row.reason), *_assignment(row)]
    return "\n".join(lines) + "\n"


def _reserved(group: NodeGroup, plans: Mapping[str, Any]) -> str:
    """Return which CPUs that makes on the nodes, as they planned it."""
    sets = {str(CPUSet.parse(plans[host]["wanted"]["reserved_system_cpus"])) for host in group.hosts}
    if sets == {""}:
        return "No CPU is reserved."
    if len(sets) == 1:
        return "Reserved: CPUs %s." % sets.pop()
    return "Which CPUs are reserved differs: the CPUs of these nodes are numbered in %d ways." % len(sets)


def _table(groups: Iterable[NodeGroup]) -> str:
    rows = [("group", "machine", "settings", "nodes"), ("---",) * 4, *table_rows(groups)]
    body = "\n# Shapes\n\n" + "".join("| %s |\n" % " | ".join(row) for row in rows)
    return "<!-- %s -->\n%s" % (_HEADER % _sum(body), body)


def _yaml_file(body: str) -> str:
    return "# %s\n%s" % (_HEADER % _sum(body), body)


def _sum(body: str) -> str:
    return hashlib.sha256(body.encode("utf-8")).hexdigest()


# --- objects of the API --------------------------------------------------------------------------------


def node_resource_topology(name: str, plan: Mapping[str, Any]) -> dict[str, Any]:
    """Return the object of one node, by its answer to rollout_info: as it will be with what is wanted there.

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
    """Return the labels of a node, as the part of a Node that a server-side apply or a merge patch takes."""
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


def api_objects(
    form: str, groups: list[NodeGroup], plans: Mapping[str, Any], names: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Return the objects of all nodes in one of FORMS, by the names of the hosts. names: {host: its name in the
    cluster}."""
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


# --- YAML ---------------------------------------------------------------------------------------------


def _assignment(row: Line) -> list[str]:
    return _block({row.variable: row.value}, 0).splitlines()


def _block(value: Any, depth: int) -> str:
    """Return plain data as block YAML; what is empty, and lists of scalars, on one line."""
    indent = "  " * depth
    if isinstance(value, Mapping):
        text = ""
        for key, member in value.items():
            if isinstance(member, (Mapping, list, tuple)) and member and not _is_flat(member):
                text += "%s%s:\n%s" % (indent, _scalar(key), _block(member, depth + 1))
            else:
                text += "%s%s: %s\n" % (indent, _scalar(key), _inline(member))
        return text
    # The first key of a mapping stands on the line of its dash.
    return "".join("%s- %s" % (indent, _block(member, depth + 1).lstrip(" ")) for member in value)


def _is_flat(value: object) -> bool:
    return isinstance(value, (list, tuple)) and not any(isinstance(member, (Mapping, list)) for member in value)


def _inline(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return "[%s]" % ", ".join(map(_scalar, value))
    return "{}" if isinstance(value, Mapping) else _scalar(value)


def _scalar(value: object) -> str:
    """Return a word as it is, any other text in quotes, and everything else as JSON, which is YAML, too."""
    if not isinstance(value, str):
        return json.dumps(value)
    if re.fullmatch(r"[A-Za-z][\w./-]*", value, re.ASCII) and value.lower() not in _NOT_TEXTS:
        return value
    return '"%s"' % "".join(map(_quoted, value))


def _quoted(character: str) -> str:
    """Return a character within double quotes. JSON would have two escapes for some, which YAML reads as two
    characters."""
    if " " <= character <= "~" and character not in '"\\':
        return character
    return "\\U%08x" % ord(character)


def _comment(text: str) -> list[str]:
    """Return a text as lines of a comment."""
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > _WIDTH:
            lines.append("")
        lines[-1] += (" " if lines[-1] else "") + word
    return ["# " + row for row in lines]
