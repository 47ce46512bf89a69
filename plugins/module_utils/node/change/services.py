# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Services that are about to be stopped and started: whether they are the node's. Pure but for its files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import CPUManagerError, RefusedError, option
from ...host.units import has_unit

if TYPE_CHECKING:
    from ..node import Node

_SYSTEMD = "/run/systemd/system"


def service_refusals(node: Node, service: str | None, of: str) -> list[CPUManagerError]:
    """Why this service is not to be stopped for a change of the node.

    service: None for that of the node's distribution. of: the option that has its name. Whoever gives the files of a
    node at another place may run its kubelet by a service of this machine, and has to name that.
    """
    if not node.tree.live:
        return [] if service is not None else [_foreign(node, of)]
    if not service or not node.tree.exists(_SYSTEMD) or has_unit(node.tree, service):
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
