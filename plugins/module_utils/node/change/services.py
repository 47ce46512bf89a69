# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Services that are about to be stopped and started: whether they are the node's. Pure but for its files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping, NamedTuple

from ...errors import CPUManagerError, RefusedError, option
from ...host.units import has_service, has_systemd
from ..drift import START_KUBELET
from .runtime import FACT

if TYPE_CHECKING:
    from ..node import Node


class Services(NamedTuple):
    """The services that whoever carries out a plan stops and starts; None for those of the node's distribution."""

    kubelet: str | None
    runtime: str | None


def with_service_refusals(report: Mapping[str, Any], node: Node, services: Services) -> dict[str, Any]:
    """The whole plan of a node, with the reasons why these services are not to be stopped for it.

    A change that was interrupted is taken back first, and then these are started again, too.
    """
    journal = report["journal"]
    refusals: list[CPUManagerError] = []
    if START_KUBELET in report["actions"] or journal is not None:
        refusals += service_refusals(node, services.kubelet, "service")
    if report[FACT] is not None or (journal is not None and FACT in journal["facts"]):
        refusals += service_refusals(node, services.runtime, "runtime_service")
    return {**report, "refusals": [*report["refusals"], *(refusal.to_row() for refusal in refusals)]}


def service_refusals(node: Node, service: str | None, of: str) -> list[CPUManagerError]:
    """Why this service is not to be stopped for a change of the node.

    service: None for that of the node's distribution. of: the option that has its name. Whoever gives the files of a
    node at another place may run its kubelet by a service of this machine, and has to name that.
    """
    if not node.tree.live:
        return [] if service is not None else [_foreign(node, of)]
    if not service or not has_systemd(node.tree) or has_service(node.tree, service):
        return []
    return [
        RefusedError(
            "systemd has no service %s here" % service, option(of), "correct it, or remove it", kind="no_service"
        )
    ]


def _foreign(node: Node, of: str) -> CPUManagerError:
    return RefusedError(
        "%s is a saved node, and the service would be one of the machine that has its files"
        % node.tree.path("").rstrip("/"),
        option("manage_service"),
        "remove it, or name the service in %s" % option(of),
        kind="saved_node",
    )
