# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a plan for the caches needs of a node beside resctrl: its CPUs, its caches, and who has CPUs to himself."""

from __future__ import annotations

from ...cache.plan import Machine, Pool, Wish
from ...cache.read import read_cores, read_domains, read_online
from ...cache.resctrl import SHARED_GROUP, UNMEASURED
from ...cpuset import CPUSet
from ...errors import CPUManagerError, Note, RefusedError
from ...state.verdict import ABSENT, readable
from ..change.places import PROMISE
from ..node import Node


def machine_of(node: Node, level: str) -> Machine:
    """The node's CPUs, and which share a cache of this level. Raises NodeError."""
    online = read_online(node.tree)
    return Machine(online, read_cores(node.tree, online), read_domains(node.tree, level, online))


def pool_of(node: Node, wish: Wish, notes: list[str]) -> Pool | None:
    """Who has CPUs by the checkpoint; None where there is no checkpoint. Raises RefusedError for a damaged one.

    Under the policies dynamic and isolated of this collection, by their own checkpoint in place of the kubelet's.
    """
    # Without a group of the shared pool, nobody needs to know what is reserved.
    reserved = _reserved(node, notes) if SHARED_GROUP in wish.groups else CPUSet()
    if node.tree.exists(PROMISE, follow=False):
        # Imported here: on most nodes the kubelet gives CPUs out.
        from ..dynamic.promise import read_promise

        promise, _content = read_promise(node.tree)
        if promise is not None:
            state = promise.state
            return Pool(CPUSet.from_mask(state.exclusive()), CPUSet.from_mask(state.shared), reserved)
    place = node.tree.path(node.checkpoint_path)
    said = readable(node.checkpoint())
    if said.verdict == ABSENT:
        text = "%s: no checkpoint there, so it is not known which CPUs are exclusive; the groups keep their CPUs"
        notes.append(Note(UNMEASURED, text % place))
        return None
    if said.state is None or not said.checksum_right:
        raise RefusedError(
            "is damaged, and no group was changed", where=place, remedy="repair it first, with the module checkpoint"
        )
    return Pool(said.state.exclusive_cpus(), said.state.default_cpu_set, reserved)


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
