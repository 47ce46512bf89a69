# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whose the CPUs of each container are where they are not given out here: the kubelet's, or another owner's. Pure.

The DRA driver names the CPUs of its claims; NRI policies name none. There, CPUs are exclusive that no other container
of the node has.
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
            whole = state.pod_assignments.get(container.pod_uid)
            exclusive = bool(state.assignments.get(container.pod_uid, {}).get(container.name)) or whole is not None
        entries.append(Entry(container.pod_uid, container.name, cpus, exclusive, KUBELET, now))
    return entries


def with_claims(entries: Iterable[Entry], claimed: CPUSet, by: str) -> list[Entry]:
    """The same on a node of the DRA driver, whose claims have these CPUs."""
    return [
        entry._replace(exclusive=True, by=by) if entry.effective and entry.effective <= claimed else entry
        for entry in entries
    ]


def by_kernel(entries: Sequence[Entry], online: CPUSet, by: str) -> list[Entry]:
    """The same on a node of an NRI policy: what the kernel lets each container use."""
    once, twice = 0, 0
    for entry in entries:
        twice |= once & entry.effective.mask
        once |= entry.effective.mask
    return [
        entry._replace(
            cpus=entry.effective,
            exclusive=bool(entry.effective) and entry.effective < online and not entry.effective.mask & twice,
            by=by,
        )
        for entry in entries
    ]
