# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a plan for the caches needs of a node beside resctrl: its CPUs, its caches, and who has CPUs to himself."""

from __future__ import annotations

from ...cache.plan import Machine, Pool, Wish
from ...cache.read import read_cores, read_domains, read_online
from ...cache.resctrl import SHARED_GROUP, UNMEASURED
from ...cpuset import CPUSet
from ...errors import CPUManagerError, Note
from ..node import Node
from .assigned import assigned_cpus


def machine_of(node: Node, level: str) -> Machine:
    """The node's CPUs, and which share a cache of this level. Raises NodeError."""
    online = read_online(node.tree)
    return Machine(online, read_cores(node.tree, online), read_domains(node.tree, level, online))


def pool_of(node: Node, wish: Wish, notes: list[str]) -> Pool | None:
    """The CPUs by their use; None where there is no checkpoint. Raises RefusedError for a damaged one."""
    # Without a group of the shared pool, nobody needs to know what is reserved.
    reserved = _reserved(node, notes) if SHARED_GROUP in wish.groups else CPUSet()
    assigned = assigned_cpus(node)
    if assigned is None:
        text = "%s: no checkpoint there, so it is not known which CPUs are exclusive; the groups keep their CPUs"
        notes.append(Note(UNMEASURED, text % node.tree.path(node.checkpoint_path)))
        return None
    return Pool(*assigned, reserved)


def _reserved(node: Node, notes: list[str]) -> CPUSet:
    """What the kubelet is configured to reserve; none where that is not known, with a note."""
    from ..housekeeping.reserved import kubelet_reservation

    try:
        configuration = node.configuration()
        return CPUSet() if configuration is None else kubelet_reservation(node, configuration).cpus
    except CPUManagerError as error:
        text = "what the kubelet reserves is not known, so the shared group has these CPUs, too: %s"
        notes.append(Note(UNMEASURED, text % error))
        return CPUSet()
