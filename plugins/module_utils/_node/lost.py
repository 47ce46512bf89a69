# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""CPUs that are assigned to containers that do not run, and to none that runs in their pods. Pure.

An init container that has ended keeps its CPUs until its pod ends: those that no later container has reused are
nobody's, and no request counts them. Source: GetAllocatableCPUs, allocateCPUs and updateCPUsToReuse in
pkg/kubelet/cm/cpumanager/policy_static.go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Collection, Iterable, Mapping, NamedTuple, Sequence

from .._base.errors import Note
from ..cpuset import CPUSet
from ..state.assignments import State

if TYPE_CHECKING:
    from .container_cpus import Running
    from .observation import Observed


class Lost(NamedTuple):
    """What one container keeps. pod: its namespace and name, or its UID where these are not known."""

    pod: str
    container: str
    cpus: CPUSet

    def to_dict(self) -> dict[str, str]:
        """Plain data, as modules return it."""
        return {**self._asdict(), "cpus": str(self.cpus)}


def lost_of(pod: str, containers: Mapping[str, CPUSet], ended: Collection[str]) -> list[Lost]:
    """What these containers of a pod, which have ended, keep beside all that its others have."""
    used = CPUSet(cpu for name, cpus in containers.items() if name not in ended for cpu in cpus)
    kept = ((name, cpus - used) for name, cpus in sorted(containers.items()) if name in ended)
    return [Lost(pod, name, cpus) for name, cpus in kept if cpus]


def lost_cpus(running: Sequence[Running], state: State) -> list[Lost]:
    """What containers that have ended keep, of all pods of which something with CPUs of its own runs.

    running: all that runs, with its name.
    """
    here = running_names(running)
    names = {container.pod_uid: container.pod or container.pod_uid for container in running if container.name}
    return [
        lost
        for uid, containers in sorted(state.assignments.items())
        # What a whole pod has, it divides itself.
        if uid not in state.pod_assignments and not here.get(uid, set()).isdisjoint(containers)
        for lost in lost_of(names[uid], containers, containers.keys() - here[uid])
    ]


def lost_in(observed: Observed | None, state: State | None) -> Sequence[Lost]:
    """What containers of a node that have ended keep; nothing where it is not known what runs."""
    if observed is None or state is None or not observed.all_named:
        return ()
    return lost_cpus(observed.running, state)


def running_names(running: Iterable[Running]) -> dict[str, set[str]]:
    """{pod UID: the names of its containers that run}"""
    here: dict[str, set[str]] = {}
    for container in running:
        if container.name and container.effective is not None:
            here.setdefault(container.pod_uid, set()).add(container.name)
    return here


def lost_notes(found: Sequence[Lost]) -> list[str]:
    """One note on all of them; none where there is nothing."""
    if not found:
        return []
    cpus = CPUSet(cpu for lost in found for cpu in lost.cpus)
    owners = ", ".join("%s/%s (%s)" % lost for lost in found)
    text = (
        "no container that runs has CPUs %s, which are assigned: %s; an init container that has ended keeps them until"
        " its pod ends, and the scheduler counts them as free: to get them back, delete the pod"
    )
    return [Note("init-cpus-lost", text % (cpus, owners))]
