# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whose the CPUs of each container are where they are not given out here: the kubelet's, or another owner's. Pure.

The kubelet's checkpoint and the claims of the DRA driver name CPUs, of a container, or of a pod or claim that several
containers may share; NRI policies name none. So, wherever they come from, CPUs are exclusive to a container only if the
kernel lets no other container use one of them.
"""

from __future__ import annotations

from typing import Iterable, Mapping, Sequence

from ...cpuset import CPUSet
from ...state.assignments import State
from ..reconcile.decide import Running
from .content import KUBELET, Entry


def entries_of_kubelet(
    running: Iterable[Running], wanted: Mapping[str, CPUSet], effective: Mapping[str, CPUSet], state: State | None
) -> list[Entry]:
    """What a kubelet's checkpoint gives the named ones of these containers.

    wanted: {container id: the CPUs that it is to have}, as far as they are known. effective: {container id: what is
    effective after this pass}, of those of which that has changed.
    """
    entries = []
    for container in running:
        if container.name is None or container.effective is None:
            continue
        now = effective.get(container.id, container.effective)
        cpus, exclusive = wanted.get(container.id, now), False
        if state is not None:
            own = state.assignments.get(container.pod_uid, {}).get(container.name)
            # What a whole pod has may be that of one container.
            whole = state.pod_assignments.get(container.pod_uid, CPUSet())
            exclusive = bool(own) or bool(cpus and cpus <= whole)
        entries.append(Entry(container.pod_uid, container.name, cpus, exclusive, KUBELET, now))
    return _with_one_user(entries)


def with_claims(entries: Iterable[Entry], claimed: CPUSet, by: str) -> list[Entry]:
    """The same on a node of the DRA driver, whose claims have these CPUs."""
    return _with_one_user(
        [
            entry._replace(cpus=entry.effective, exclusive=True, by=by)
            if entry.effective and entry.effective <= claimed
            else entry
            for entry in entries
        ]
    )


def by_kernel(entries: Iterable[Entry], online: CPUSet, by: str) -> list[Entry]:
    """The same on a node of an NRI policy: what the kernel lets each container use."""
    return _with_one_user(
        [
            entry._replace(cpus=entry.effective, exclusive=bool(entry.effective) and entry.effective < online, by=by)
            for entry in entries
        ]
    )


def _with_one_user(entries: Sequence[Entry]) -> list[Entry]:
    """The same, of which those are no longer exclusive whose CPUs the kernel lets another container use, too."""
    # A container that restarts may be there twice.
    users: dict[tuple[str, str], int] = {}
    for entry in entries:
        key = (entry.pod_uid, entry.container)
        users[key] = users.get(key, 0) | entry.effective.mask | (entry.cpus.mask if entry.exclusive else 0)
    once, twice = 0, 0
    for mask in users.values():
        twice |= once & mask
        once |= mask
    return [entry._replace(exclusive=entry.exclusive and not entry.cpus.mask & twice) for entry in entries]
