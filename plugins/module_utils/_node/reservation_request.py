# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plan a node's reservation from what an operator asks for: a count, a fraction or a curve, near a device."""

from __future__ import annotations

from typing import Any, Mapping

from .._base.arguments import Arguments
from .._base.errors import InputError, call_more_options, option
from .._base.tree import Tree, is_number
from .._host.reach import check_reach
from ..cpuset import CPUSet
from ..policy.reservation import PACKED, SPREAD, CurveStep, Reservation, count_by_curve, named_cpus, plan_reservation
from ..topology.model import Topology
from .node import Node

PLANNER: dict[str, Any] = {
    "count": {"type": "int"},
    "fraction": {"type": "float"},
    "curve": {
        "type": "list",
        "elements": "dict",
        "options": {"cpus": {"type": "int"}, "fraction": {"type": "float", "required": True}},
    },
    "strategy": {"type": "str", "choices": [PACKED, SPREAD], "default": PACKED},
    "allow_split_core": {"type": "bool", "default": False},
    "near_device": {"type": "str"},
}

# One way to say how many CPUs.
_WAYS = ("count", "fraction", "curve")

# In one option, with what is planned beside CPUs.
AUTO = "auto"
WITH_MEMORY: dict[str, Any] = {**PLANNER, "memory": {"type": "str", "choices": [AUTO]}}

RESERVATION = Arguments(
    {**PLANNER, "smt": {"type": "str", "choices": ["keep", "off"], "default": "keep"}}, mutually_exclusive=[_WAYS]
)

# Which CPUs are reserved: named, or planned.
RESERVED_ARGUMENTS = Arguments(
    # Raw as in the table of settings.
    {"reserved_system_cpus": {"type": "raw"}, "reservation": {"type": "dict", "options": WITH_MEMORY}},
    mutually_exclusive=[("reserved_system_cpus", "reservation")],
)


def wanted_reservation(node: Node, parameters: Mapping[str, Any]) -> CPUSet | None:
    """Return the CPUs that RESERVED_ARGUMENTS name, or that are planned by them; None where there are none such.

    Raises InputError.
    """
    if parameters["reservation"] is not None:
        return planned_reservation(node, parameters["reservation"])
    named = parameters["reserved_system_cpus"]
    return None if named is None else named_cpus(named) or None


def planned_reservation(node: Node, request: Mapping[str, Any]) -> CPUSet | None:
    """Return the CPUs for a request in the option `reservation`; None where it asks for memory alone. Raises
    InputError."""
    if request.get("memory") and all(request.get(way) is None for way in _WAYS):
        return None
    call_more_options({name: "%s.%s" % (option("reservation"), name) for name in PLANNER})
    return reserve(node.tree, node.topology, request).reserved


def reserve(tree: Tree, topology: Topology, request: Mapping[str, Any]) -> Reservation:
    """Return the reservation for a request with one of `count`, `fraction`, `curve`, and the planner's other options.

    A count is taken to the letter; the share that a fraction or a curve gives is rounded up to whole cores.
    Raises InputError, and RefusedError for a node that is a container without all CPUs.
    """
    check_reach(tree, topology.online)
    ways = [way for way in _WAYS if request.get(way) is not None]
    if len(ways) != 1:
        what = "says in several ways how many CPUs" if ways else "does not say how many CPUs"
        remedy = "give one of count, fraction and curve%s" % (", not " + " and ".join(ways) if ways else "")
        raise InputError(what, where=option("reservation"), remedy=remedy)
    smt = request.get("smt") != "off"
    usable = len(topology.online) if smt else len(topology.cores)
    near = numa_node_of_device(tree, topology, request["near_device"]) if request.get("near_device") else None
    strategy, allow_split_core = request.get("strategy") or PACKED, bool(request.get("allow_split_core"))
    try:
        count = request["count"] if ways == ["count"] else count_by_curve(usable, _steps(ways[0], request))
        return plan_reservation(topology, count, strategy, smt, allow_split_core, near, at_least=ways != ["count"])
    except InputError as error:
        raise error.within(option(ways[0])) from error


def _steps(way: str, request: Mapping[str, Any]) -> list[CurveStep]:
    if way == "fraction":
        return [CurveStep(None, request["fraction"])]
    if not request["curve"]:
        raise InputError("the curve has no step", remedy="give one with a fraction")
    return [CurveStep(step.get("cpus"), step["fraction"]) for step in request["curve"]]


def numa_node_of_device(tree: Tree, topology: Topology, device: str) -> int:
    """Return the NUMA node that a network device is attached to. Raises InputError where there is none such."""
    if "/" in device or device in (".", ".."):
        raise InputError(
            "%r is a path" % device, where=option("near_device"), remedy="give the name of a network device"
        )
    path = "/sys/class/net/%s" % device
    if not tree.exists(path):
        raise InputError(
            "no such network device",
            where="%s: %s" % (option("near_device"), tree.path(path)),
            remedy="there are %s" % (", ".join(tree.names("/sys/class/net")) or "none"),
        )
    text = tree.read_value(path + "/device/numa_node")
    node_ids = [node.id for node in topology.numa_nodes]
    if text is not None and is_number(text):
        if int(text) not in node_ids:
            raise InputError(
                "NUMA node %s does not exist" % text,
                where="%s: %s" % (option("near_device"), tree.path(path + "/device/numa_node")),
                remedy="there are %s; omit %s" % (", ".join(map(str, node_ids)), option("near_device")),
            )
        return int(text)
    if len(node_ids) == 1:
        return node_ids[0]
    raise InputError(
        "does not give its NUMA node (%s)" % text,
        where="%s: %s" % (option("near_device"), tree.path(path)),
        remedy="omit %s" % option("near_device"),
    )
