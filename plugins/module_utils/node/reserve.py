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
    if request.get("count") is not None:
        count = int(request["count"])
    else:
        steps = [Step(None, request["fraction"])] if ways == ["fraction"] else _steps(request["curve"])
        count = count_by_curve(usable, steps)
    return plan_reservation(
        topology,
        count,
        request.get("strategy") or PACKED,
        smt,
        bool(request.get("allow_split_core")),
        numa_node_of_device(tree, topology, request["near_device"]) if request.get("near_device") else None,
        at_least=ways != ["count"],
    )


def _steps(curve: list[Mapping[str, Any]]) -> list[Step]:
    if not curve:
        raise InputError("reservation: the curve has no step")
    return [Step(step.get("cpus"), step["fraction"]) for step in curve]


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
    if text is not None and text.isdigit():
        return int(text)
    if len(topology.numa_nodes) == 1:
        return topology.numa_nodes[0].id
    raise InputError(
        "near_device: %s does not tell its NUMA node (%s); leave near_device away" % (tree.path(path), text)
    )
