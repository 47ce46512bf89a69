# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plan a node's reservation from what an operator asks for: a count, a fraction or a curve, near a device."""

from __future__ import annotations

from typing import Any, Mapping

from ..errors import InputError
from ..policy.reservation import PACKED, Reservation, Step, count_by_curve, plan_reservation
from ..topology.model import Topology
from ..tree import Tree


def reserve(tree: Tree, topology: Topology, request: Mapping[str, Any]) -> Reservation:
    """The reservation for a request with one of `count`, `fraction`, `curve`, and the planner's other options.

    A count is taken to the letter; the share that a fraction or a curve gives is rounded up to whole cores.
    Raises InputError.
    """
    ways = [way for way in ("count", "fraction", "curve") if request.get(way) is not None]
    if len(ways) != 1:
        raise InputError("reservation: give one of count, fraction and curve, not %s" % (" and ".join(ways) or "none"))
    smt = request.get("smt") != "off"
    usable = len(topology.online) if smt else len(topology.cores)
    near = numa_node_of_device(tree, topology, request["near_device"]) if request.get("near_device") else None
    strategy, allow_split_core = request.get("strategy") or PACKED, bool(request.get("allow_split_core"))
    try:
        count = request["count"] if ways == ["count"] else count_by_curve(usable, _steps(ways[0], request))
        return plan_reservation(topology, count, strategy, smt, allow_split_core, near, at_least=ways != ["count"])
    except InputError as error:
        raise InputError("%s: %s" % (ways[0], error)) from error


def _steps(way: str, request: Mapping[str, Any]) -> list[Step]:
    if way == "fraction":
        return [Step(None, request["fraction"])]
    if not request["curve"]:
        raise InputError("the curve has no step; give one with a fraction")
    return [Step(step.get("cpus"), step["fraction"]) for step in request["curve"]]


def numa_node_of_device(tree: Tree, topology: Topology, device: str) -> int:
    """The NUMA node that a network device is attached to. Raises InputError where there is none such."""
    if "/" in device or device in (".", ".."):
        raise InputError("near_device: %r is not the name of a network device" % device)
    path = "/sys/class/net/%s" % device
    if not tree.exists(path):
        raise InputError(
            "near_device: %s: no such network device; there are %s"
            % (tree.path(path), ", ".join(tree.names("/sys/class/net")) or "none")
        )
    text = tree.read_value(path + "/device/numa_node")
    known = [node.id for node in topology.numa_nodes]
    if text is not None and text.isdigit():
        if int(text) not in known:
            raise InputError(
                "near_device: %s: NUMA node %s does not exist; there are %s; leave near_device away"
                % (tree.path(path + "/device/numa_node"), text, ", ".join(map(str, known)))
            )
        return int(text)
    if len(known) == 1:
        return known[0]
    raise InputError(
        "near_device: %s does not tell its NUMA node (%s); leave near_device away" % (tree.path(path), text)
    )
