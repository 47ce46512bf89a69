# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who really ran on a node's CPUs, and whether each container had its exclusive CPUs to itself. It only reads."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Iterable, Mapping, NamedTuple, Sequence

from .._base.errors import InputError, Note, noted, option
from .._base.quantity import counted
from .._cgroup.hierarchy import CPUACCT, Hierarchy, lineage, mounted, name_of, parent_of
from .._cgroup.kubepods import Kubepods, container_id
from .._host.layers import shown
from .._node.container_cpus import Running, running_names
from .._node.exclusive import read_exclusive
from .._node.node import cgroup_root_of
from ..cpuset import CPUSet
from .sample import Sample, take
from .verdict import CGROUP, CONTAINER, OBSERVER, Account, Exclusive, Runner, accounts, percent, rows

if TYPE_CHECKING:
    from .._kubelet.configuration import Configuration
    from .._node.container_cpus import Observed
    from .._node.node import Node


# Which containers with exclusive CPUs ended or began while a node was sampled. It only reads.


class PodContainers(NamedTuple):
    """A pod's cgroup, and the ids of the containers that have cgroups in it."""

    path: str
    ids: frozenset[str]


def pods_of(running: Iterable[Running]) -> dict[str, PodContainers]:
    """Return {UID: the pod}, by the containers that were seen."""
    found: dict[str, PodContainers] = {}
    for container in running:
        path, ids = found.get(container.pod_uid, PodContainers(parent_of(container.cgroup), frozenset()))
        found[container.pod_uid] = PodContainers(path, ids | {container.id})
    return found


def read_pods(hierarchy: Hierarchy, cgroup_root: str, uids: Iterable[str]) -> dict[str, PodContainers]:
    """Return {UID: the pod} of these pods, by their cgroups."""
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
    """Return those that ended, or began, or did both, while the sample was taken.

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
    """Return whether a container that is in none of the lists ran in a pod, which has no processes of its own."""
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
    """Return {cgroup: CPUs}: where v1 counts the time of a container that has ended or is new, and the container's
    CPUs."""
    found: dict[str, CPUSet] = {}
    for exclusive in exclusives:
        pod = before.get(exclusive.pod_uid) or after.get(exclusive.pod_uid)
        # Where the whole pod has ended, it is the cgroup of all pods; that has no processes of its own either.
        for path in () if pod is None else lineage(pod.path):
            found[path] = found.get(path, CPUSet()) | exclusive.cpus
    return found


UNMEASURED = "isolation-unmeasured"
# Longer than anybody waits for a task.
MOST_SECONDS = 3600
# Of CPUs that nobody has to itself, who had less of one is not shown, and no more than so many interrupts are.
_LEAST_SHOWN = 0.01
_MOST_INTERRUPTS = 8
# Of one CPU, what a measurement should take at most.
_MOST_COST = 0.01


def isolation_report(node: Node, seconds: int, threshold: float) -> dict[str, Any]:
    """Sample a node; see the module isolation_info for the answer's shape.

    threshold: in percent of one CPU's time. Raises InputError, NodeError.
    """
    if not 1 <= seconds <= MOST_SECONDS:
        raise InputError("is %d" % seconds, option("seconds"), "give 1 to %d" % MOST_SECONDS)
    if not 0 < threshold < 100:
        raise InputError("is %s" % threshold, option("threshold"), "give a percentage above 0 and below 100")
    notes: list[str] = []
    configuration = None
    try:
        configuration, problem = node.found()
        observed, more = node.observed(configuration)
        notes += more
        if problem is not None:
            notes.append(Note(UNMEASURED, "which containers run cannot be seen: %s" % problem))
    except InputError as error:  # such as a cgroup root that leads out of the hierarchy
        observed = None
        notes.append(Note(UNMEASURED, "which containers run cannot be seen: %s" % error))
    running = () if observed is None else observed.running
    exclusives = _exclusives(node, configuration, running, notes)
    if not node.tree.live:
        notes.append(
            Note(UNMEASURED, "who runs on which CPU can be seen on a running node only, and this one is saved")
        )
        return {
            "seconds": 0.0,
            "threshold": threshold,
            "containers": [_unmeasured(exclusive) for exclusive in exclusives],
            "cpus": [],
            "observer": None,
            "findings": [],
            **noted(notes),
        }
    owners = {cpu: exclusive.subject() for exclusive in exclusives for cpu in exclusive.cpus}
    every = CPUSet(owners)
    confined = _confined(exclusives, observed)
    whole = {} if observed is None else _whole_pods(exclusives, observed)
    sample = take(node.tree, seconds, every, confined, whole)
    changes, counted_above = _changes(node, configuration, exclusives, observed, sample)
    lasting = [exclusive for exclusive in exclusives if exclusive not in changes]
    found = accounts(sample, _Names(running, whole).owner, _confined(lasting, observed), counted_above)
    told, findings = rows(lasting, found, sample, threshold / 100)
    rows_of_lasting = iter(told)
    containers = [_unmeasured(exclusive) if exclusive in changes else next(rows_of_lasting) for exclusive in exclusives]
    notes += [Note(UNMEASURED, text) for text in (*sample.problems, *_strain(sample), *_split(node, observed, sample))]
    for exclusive, what in changes.items():
        text = "container %s %s during the sample: it has no verdict"
        notes.append(Note(UNMEASURED, text % (exclusive.subject(), what)))
    offline = every - sample.online
    if offline:
        notes.append(Note(UNMEASURED, "the exclusive CPUs %s are offline" % offline))
    return {
        "seconds": round(sample.elapsed, 3),
        "threshold": threshold,
        "containers": containers,
        "cpus": [_cpu(cpu, account, sample, owners.get(cpu, "")) for cpu, account in found.items()],
        "observer": _observer(sample),
        "findings": findings,
        **noted(notes),
    }


def _changes(
    node: Node,
    configuration: Configuration | None,
    exclusives: Sequence[Exclusive],
    observed: Observed | None,
    sample: Sample,
) -> tuple[Mapping[Exclusive, str], Mapping[str, CPUSet]]:
    """Return the containers that changed during the sample, and how; and the cgroups above those that ended or
    began, see accounts()."""
    # Under the policy dynamic, CPUs change hands.
    state = read_exclusive(node, configuration).state
    now = set() if state is None else set(state.owners({} if observed is None else observed.container_names()))
    moved = [found for found in exclusives if (found.pod_uid, found.container, found.cpus) not in now]
    changes = dict.fromkeys(moved, "got or lost CPUs")
    if observed is None:
        return changes, {}
    before = pods_of(observed.running)
    uids = [exclusive.pod_uid for exclusive in exclusives]
    after = read_pods(Hierarchy(node.tree), cgroup_root_of(configuration), uids)
    ended = changed(exclusives, before, after, sample)
    changes.update(dict.fromkeys(ended, "ended or began"))
    return changes, cgroups_above(ended, before, after)


class _Names:
    """What the cgroups of containers are called.

    whole: {cgroup of a pod: that of the container whose time it counts}.
    """

    def __init__(self, running: Sequence[Running], whole: Mapping[str, str]) -> None:
        self._running = {container.id: container for container in running}
        self._whole = whole

    def owner(self, path: str) -> Runner:
        """Return whose time a cgroup's is."""
        path = self._whole.get(path, path)
        ids = [found for found in map(container_id, path.split("/")) if found]
        if not ids:
            return Runner(CGROUP, shown(os.fsencode(path)))
        # What a container runs in cgroups of its own is its time, whatever names it gives them.
        found = next((found for found in ids if found in self._running), ids[0])
        return Runner(CONTAINER, self._name(found), found)

    def _name(self, found: str) -> str:
        container = self._running.get(found)
        if container is None:
            return found
        return "%s/%s" % (container.pod or container.pod_uid, container.name or found[:12])


def _exclusives(
    node: Node, configuration: Configuration | None, running: Sequence[Running], notes: list[str]
) -> list[Exclusive]:
    """Return the containers with CPUs to themselves, as it was written down; a note on a file that cannot be read."""
    state, where, problem, *_more = read_exclusive(node, configuration)
    if state is None:
        if problem is not None:
            notes.append(Note(UNMEASURED, "%s: cannot be read, so it is not known whose CPUs are whose" % where))
        return []
    names = {container.pod_uid: container.pod for container in running if container.pod}
    found = []
    for pod_uid, container, cpus in state.owners(running_names(running)):
        together = container.split(", ")
        others = state.assignments.get(pod_uid, {})
        # Of a container without a name, its CPUs tell; of a whole pod's, all that have no others.
        ids = frozenset(
            candidate.id
            for candidate in running
            if candidate.pod_uid == pod_uid
            and (
                (candidate.name in together if candidate.name is not None else candidate.effective == cpus)
                or (not container and not others.get(candidate.name or ""))
            )
        )
        found.append(Exclusive(pod_uid, names.get(pod_uid, ""), container, cpus, ids))
        if running and not ids:
            notes.append(Note(UNMEASURED, "%s has CPUs %s and does not run" % (found[-1].subject(), cpus)))
    return found


def _confined(exclusives: Sequence[Exclusive], observed: Observed | None) -> dict[str, CPUSet]:
    """Return {cgroup: its CPUs}, of containers that have the CPUs that are theirs, and no others."""
    found: dict[str, CPUSet] = {}
    for exclusive in exclusives:
        for container in () if observed is None else observed.running:
            if container.id in exclusive.ids and container.effective == exclusive.cpus:
                found[container.cgroup] = exclusive.cpus
    return found


def _whole_pods(exclusives: Sequence[Exclusive], observed: Observed) -> dict[str, str]:
    """Return {cgroup of a pod: that of its container}, of pods with one container, and a sandbox, which sleeps.

    Without those that have exclusive CPUs, where each cgroup counts.
    """
    if not observed.all_named:
        return {}
    exact = {exclusive.pod_uid for exclusive in exclusives}
    found: dict[str, list[str]] = {}
    for container in observed.running:
        if container.name is not None and container.pod_uid not in exact:
            found.setdefault(parent_of(container.cgroup), []).append(container.cgroup)
    return {pod: paths[0] for pod, paths in found.items() if len(paths) == 1}


def _unmeasured(exclusive: Exclusive) -> dict[str, object]:
    return {
        **exclusive.to_dict(),
        "verdict": None,
        "own_percent": None,
        "foreign_percent": None,
        "interrupts": None,
        "by": [],
    }


def _cpu(cpu: int, account: Account, sample: Sample, owner: str) -> dict[str, object]:
    least = 0.0 if owner else _LEAST_SHOWN
    counts = [
        (count, name)
        for source in (sample.interrupts, sample.softirqs)
        for name, count in source.counts.get(cpu, {}).items()
    ]
    shown = sorted(counts, key=lambda item: (-item[0], item[1]))[: None if owner else _MOST_INTERRUPTS]
    return {
        "cpu": cpu,
        "exclusive_to": owner,
        "idle_percent": percent(account.idle),
        "irq_percent": percent(account.irq),
        "softirq_percent": percent(account.softirq),
        "steal_percent": percent(account.steal),
        "unattributed_percent": percent(account.unattributed),
        "by": [
            {"kind": owner.kind, "name": owner.name, "percent": percent(part.share), "sure": part.sure}
            for owner, part in account.parts.items()
            if part.share >= least and owner.kind != OBSERVER
        ],
        "interrupts": {name: count for count, name in shown},
    }


def _strain(sample: Sample) -> list[str]:
    """Return what is to be said of a sample that took more of a CPU than it should."""
    observer, share = sample.observer, sample.observer.cpu_seconds / sample.elapsed
    if share <= _MOST_COST:
        return []
    text = "the measurement took %s %% of a CPU, not %s %% at most: there are %s and %s; give more seconds"
    return [
        text
        % (percent(share), percent(_MOST_COST), counted(observer.tasks, "task"), counted(observer.cgroups, "cgroup"))
    ]


def _split(node: Node, observed: Observed | None, sample: Sample) -> list[str]:
    """Return what is to be said where cpusets and the time of cgroups are in different versions of cgroups."""
    version = 2 if sample.cgroups is None else 1
    if observed is None or observed.version == version:
        return []
    mount = next(iter((mounted(node.tree, CPUACCT) or {}).get(version, ())), None)
    place = "counted for cgroups nowhere" if mount is None else "counted in version %d at %s" % (version, mount)
    text = "the controllers are split: cpusets are in version %d of cgroups at %s, and CPU time is %s"
    effect = "; what runs in a cgroup that only one of them has may have the wrong name"
    return [text % (observed.version, observed.mount, place) + effect]


def _observer(sample: Sample) -> dict[str, object]:
    observer = sample.observer
    return {
        "pid": observer.pid,
        "cpus": str(observer.cpus),
        "cpu_seconds": round(observer.cpu_seconds, 4),
        "looks": observer.looks,
        "tasks": observer.tasks,
        "cgroups": observer.cgroups,
    }
