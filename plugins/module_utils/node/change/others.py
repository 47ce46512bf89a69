# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Others who keep a node from being changed: those who manage its CPUs, and a kubelet that nobody stops."""

from __future__ import annotations

from typing import TYPE_CHECKING, Iterable, Mapping, Sequence

from ...errors import CPUManagerError, RefusedError, option
from ..drift import RECONCILE

if TYPE_CHECKING:
    from ..node import Node

_POLICY, _STATIC = "cpu_manager_policy", "static"


def other_owners(
    node: Node, actions: Sequence[str], drift: Iterable[Mapping[str, object]], allowed: Iterable[str]
) -> list[CPUManagerError]:
    """Why a change with these actions for this drift would make a second owner of this node's CPUs.

    A node that has the static policy beside others already may stay so: that is a note.
    """
    becomes_static = any(row["subject"] == _POLICY and row["wanted"] == _STATIC for row in drift)
    if not becomes_static and RECONCILE not in actions:
        return []
    # Imported here: few changes take it.
    from ...host.owner import owners
    from ...host.owner.conflicts import refusals
    from ..owners import owners_of

    wanted = owners.KUBELET_STATIC if becomes_static else owners.RECONCILE
    return [*refusals(owners_of(node), wanted, allowed)]


def running_kubelet(node: Node) -> list[CPUManagerError]:
    """Why its files cannot be changed while nobody stops it."""
    if node.installation is None or node.installation.pid is None:
        return []
    return [
        RefusedError(
            "the kubelet runs (process %d) and would overwrite its checkpoint" % node.installation.pid,
            remedy="stop it first, or set %s: true" % option("manage_service"),
            kind="kubelet_runs",
        )
    ]
