# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which CPUs are exclusive and which are shared, by the checkpoint of whoever assigns them."""

from __future__ import annotations

from ...cpuset import CPUSet
from ...errors import RefusedError
from ...state.verdict import ABSENT, readable
from ..change.places import PROMISE
from ..node import Node


def assigned_cpus(node: Node) -> tuple[CPUSet, CPUSet] | None:
    """The exclusive CPUs and the shared pool; None where there is no checkpoint. Raises RefusedError for a damaged one.

    Under the policies dynamic and isolated of this collection, by their own checkpoint in place of the kubelet's.
    """
    if node.tree.exists(PROMISE, follow=False):
        # Imported here: on most nodes the kubelet gives CPUs out.
        from ..dynamic.promise import read_promise

        promise, _content = read_promise(node.tree)
        if promise is not None:
            return CPUSet.from_mask(promise.state.exclusive()), CPUSet.from_mask(promise.state.shared)
    said = readable(node.checkpoint())
    if said.verdict == ABSENT:
        return None
    if said.state is None or not said.checksum_right:
        raise RefusedError(
            "is damaged, so the exclusive CPUs are unknown",
            where=node.tree.path(node.checkpoint_path),
            remedy="repair it first, with the module checkpoint",
        )
    return said.state.exclusive_cpus(), said.state.default_cpu_set
