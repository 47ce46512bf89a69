# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which CPUs are exclusive and which are shared, by the checkpoint of whoever assigns them."""

from __future__ import annotations

from ...cpuset import CPUSet
from ..exclusive import has_promise, read_exclusive
from ..node import Node


def assigned_cpus(node: Node) -> tuple[CPUSet, CPUSet] | None:
    """The exclusive CPUs and the shared pool; None where there is no checkpoint. Raises RefusedError for a damaged one.

    Under the policies dynamic and isolated of this collection, by their own checkpoint in place of the kubelet's.
    """
    recorded = read_exclusive(node, node.found()[0] if has_promise(node) else None)
    if recorded.problem is not None:
        raise recorded.problem
    if recorded.state is None:
        return None
    return recorded.state.exclusive_cpus(), recorded.state.default_cpu_set
