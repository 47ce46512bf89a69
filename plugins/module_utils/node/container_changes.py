# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which containers with exclusive CPUs ended or began while a node was sampled. It only reads."""

from __future__ import annotations

from typing import Iterable, Mapping, NamedTuple, Sequence

from ..cgroup.hierarchy import Hierarchy, lineage, name_of, parent_of
from ..cgroup.kubepods import Kubepods, container_id
from ..cpuset import CPUSet
from ..isolation.sample import Sample
from ..isolation.verdict import Exclusive
from .reconcile.decide import Running


class PodContainers(NamedTuple):
    """A pod's cgroup, and the ids of the containers that have cgroups in it."""

    path: str
    ids: frozenset[str]


def pods_of(running: Iterable[Running]) -> dict[str, PodContainers]:
    """{UID: the pod}, by the containers that were seen."""
    found: dict[str, PodContainers] = {}
    for container in running:
        path, ids = found.get(container.pod_uid, PodContainers(parent_of(container.cgroup), frozenset()))
        found[container.pod_uid] = PodContainers(path, ids | {container.id})
    return found


def read_pods(hierarchy: Hierarchy, cgroup_root: str, uids: Iterable[str]) -> dict[str, PodContainers]:
    """The same of some pods, by their cgroups."""
    pods, found = Kubepods(hierarchy, cgroup_root).pods(), {}
    for uid in set(uids).intersection(pods):
        path = pods[uid].path
        names = map(name_of, hierarchy.children(path))
        found[uid] = PodContainers(path, frozenset(filter(None, map(container_id, names))))
    return found


def changed(
    exclusives: Sequence[Exclusive],
    before: Mapping[str, PodContainers],
    after: Mapping[str, PodContainers],
    sample: Sample,
) -> list[Exclusive]:
    """Those that ended, or began, or did both, while the sample was taken.

    before, after: the pods when the sample had not begun, and when it had ended.
    """
    ended = {container_id(name_of(path)) for path in sample.ended}
    ran = {cgroup.path for cgroup in sample.cgroups or () if cgroup.shares} | {task.cgroup for task in sample.tasks}
    nothing = PodContainers("", frozenset())
    found = []
    for exclusive in exclusives:
        then, now = (pods.get(exclusive.pod_uid, nothing) for pods in (before, after))
        if exclusive.ids:
            has_changed = not exclusive.ids <= now.ids or not exclusive.ids.isdisjoint(ended)
        else:
            has_changed = not now.ids <= then.ids or _came_and_went(then.path or now.path, then.ids, ran)
        if has_changed:
            found.append(exclusive)
    return found


def _came_and_went(pod: str, ids: frozenset[str], ran: Iterable[str]) -> bool:
    """Whether a container that is in none of the lists ran in a pod, which has no processes of its own."""
    for path in ran if pod else ():
        if path == pod:
            return True
        if path.startswith(pod + "/"):
            found = container_id(path[len(pod) + 1 :].partition("/")[0])
            if found and found not in ids:
                return True
    return False


def cgroups_above(
    exclusives: Iterable[Exclusive], before: Mapping[str, PodContainers], after: Mapping[str, PodContainers]
) -> dict[str, CPUSet]:
    """{cgroup: CPUs}: where v1 counts the time of a container that has ended or is new, and the container's CPUs."""
    found: dict[str, CPUSet] = {}
    for exclusive in exclusives:
        pod = before.get(exclusive.pod_uid) or after.get(exclusive.pod_uid)
        # Where the whole pod has ended, it is the cgroup of all pods; that has no processes of its own either.
        for path in () if pod is None else lineage(pod.path):
            found[path] = found.get(path, CPUSet()) | exclusive.cpus
    return found
