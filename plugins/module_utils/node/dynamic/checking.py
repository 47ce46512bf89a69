# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether the program can work on a node with its settings, before it is installed there."""

from __future__ import annotations

from typing import Sequence

from ...cgroup.hierarchy import Hierarchy
from ...cgroup.kubepods import Kubepods
from ...errors import NodeError
from ...host.partitions import usable_cpus
from ...topology.kubelet_view import kubelet_view
from ..node import Node, cgroup_root_of
from .owner import check_owner
from .rules import Machine, check_rules
from .settings import Settings


def check_node(node: Node, settings: Settings, allow_owners: Sequence[str]) -> None:
    """Raise RefusedError where another owner gives CPUs out, InputError where each pass would fail over its rules."""
    configuration = node.configuration()
    check_owner(node, configuration, allow_owners)
    if configuration is None:
        # Without a kubelet there are no pods, and what it will reserve is not known.
        return
    topology = node.topology
    try:
        hierarchy = Hierarchy(node.tree)
    except NodeError:
        usable = topology.online
    else:
        usable = usable_cpus(hierarchy, Kubepods(hierarchy, cgroup_root_of(configuration)).roots, topology.online)
    machine = Machine(topology, kubelet_view(topology), topology.online - usable, node.minor)
    check_rules(settings, configuration, machine)
