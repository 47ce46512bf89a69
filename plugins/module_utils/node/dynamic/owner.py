# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether somebody else gives the containers of a node their CPUs."""

from __future__ import annotations

from typing import Sequence

from ...errors import RefusedError
from ...host.owner.conflicts import OTHER_OWNER
from ...kubelet.file.configuration import Configuration
from ..exclusive import where_static
from ..node import Node
from ..reconcile.run import check_owners


def check_owner(node: Node, configuration: Configuration | None, allow_owners: Sequence[str]) -> None:
    """Raise RefusedError, of kind OTHER_OWNER, where the kubelet's static policy, a DRA driver, an NRI policy or CRI-O
    writes cpusets. The kubelet's own policy cannot be allowed: both would give out the same CPUs.
    """
    check_owners(node, allow_owners)
    where = where_static(node, configuration)
    if where:
        raise RefusedError(
            "the kubelet's CPU manager has the policy static, and only one of both can give out CPUs, so no cpuset"
            " was written",
            where=where,
            remedy="set cpuManagerPolicy to none (role kubelet), or reconcile_policy to static",
            kind=OTHER_OWNER,
        )
