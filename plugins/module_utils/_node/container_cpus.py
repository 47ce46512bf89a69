# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which containers run on a node, in which cgroups and on which CPUs, and which CPUs each of them is to have.

It reads, and decides, and writes nothing. The kubelet writes a container's cpuset when the wanted set changes, and
never reads it back: what somebody else writes there stays until the kubelet restarts. Source: reconcileState in
pkg/kubelet/cm/cpumanager/cpu_manager.go.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Collection, Iterable, Mapping, NamedTuple, Sequence

from .._base.errors import InputError, NodeError, Note
from .._base.tree import Tree
from .._cgroup.hierarchy import ROOT, Hierarchy, lineage, parent_of
from .._cgroup.kubepods import Kubepods, driver_of
from .._containers.crictl import LoggedContainer, find_names
from .._host.partitions import Partition, read_partitions
from ..cpuset import CPUSet
from ..state.acceptance import STATIC
from ..state.assignments import State
from ..state.formats import NAMELESS

KEPT = "kept"
WRITE = "write"
WRITTEN = "written"
FAILED = "failed"
SKIPPED = "skipped"

ENDED = "it ended meanwhile"
ABSENT = "there is no such cgroup"


class Running(NamedTuple):
    """A running container: its names as far as they are known, its cgroup, and what is effective there.

    A container may make cgroups in its own, and move its processes between them. So what counts is its own cgroup, and
    that in which crun has the processes counts beside it.
    """

    pod_uid: str
    pod: str
    # None: it is not known, as that of a sandbox.
    name: str | None
    id: str
    cgroup: str
    # Where its processes are: a cgroup below, or the same.
    process_cgroup: str
    # The highest cgroup above it that is the kubelet's to widen; empty: none is.
    top: str
    # None: the cgroup is not there any more.
    effective: CPUSet | None
    # What is effective where its processes are, if that is another cgroup and another set.
    inner: CPUSet | None = None

    @property
    def driver(self) -> str:
        """By which driver the kubelet made the cgroup of its pod."""
        return driver_of(parent_of(self.cgroup))

    def found(self, wanted: CPUSet) -> CPUSet:
        """Return what it has in place of a set; the set itself where it has that."""
        has = (self.effective or CPUSet(), wanted if self.inner is None else self.inner)
        return next((cpus for cpus in has if cpus != wanted), wanted)


class ContainerRow(NamedTuple):
    """What becomes of one container. `effective` is what it had before."""

    pod_uid: str
    pod: str
    container: str
    id: str
    cgroup: str
    wanted: CPUSet
    effective: CPUSet
    result: str
    why: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, as modules return it."""
        wanted = str(self.wanted)
        effective = wanted if self.effective == self.wanted else str(self.effective)
        return {**self._asdict(), "wanted": wanted, "effective": effective}


def decide(
    running: Iterable[Running],
    policy_name: str | None,
    state: State,
    online: CPUSet,
    all_named: bool = False,
    absent: str = ENDED,
) -> list[ContainerRow]:
    """Keep, write or skip each container's cpuset, in the order of the containers.

    all_named: the names of all containers are known, so what has none is no container.
    absent: what to say of a container whose cgroup is not there.
    """
    rows = []
    for container in running:
        wanted, why = _wanted(container, policy_name, state, all_named)
        present = wanted & online
        if container.effective is None:
            why = absent
        elif not why and not present:
            why = "none of its CPUs %s is online" % wanted if wanted else "its wanted set is empty"
        effective = (container.effective or CPUSet()) if why else container.found(present)
        result = SKIPPED if why else KEPT if effective == present else WRITE
        if result != SKIPPED and wanted != present:
            why = "CPUs %s are not online" % (wanted - present)
        rows.append(row_of(container, present, effective, result, why))
    return rows


def row_of(container: Running, wanted: CPUSet, effective: CPUSet, result: str, why: str = "") -> ContainerRow:
    """Return what becomes of a container that runs, with what is known of it."""
    return ContainerRow(
        container.pod_uid,
        container.pod,
        container.name or "",
        container.id,
        container.cgroup,
        wanted,
        effective,
        result,
        why,
    )


def _wanted(container: Running, policy_name: str | None, state: State, all_named: bool) -> tuple[CPUSet, str]:
    """Return the set that a container is to have, or why that cannot be determined."""
    own = state.assignments.get(container.pod_uid, {})
    # What a checkpoint of format 1 says of a container whose name is not known.
    by_id = state.assignments.get(container.id, {}).get(NAMELESS)
    if policy_name != STATIC:
        return CPUSet(), "the policy is %s" % policy_name
    if container.pod_uid in state.pod_assignments and not own:
        return CPUSet(), "its pod has CPUs as a whole, and none of its containers has any of them"
    if by_id is not None:
        return by_id, ""
    if container.name is None and own:
        return CPUSet(), "its name is not known, and its pod has exclusive CPUs: a sandbox, or a container without logs"
    if container.name is None and all_named:
        return CPUSet(), "neither the runtime nor a log names it: a sandbox, or a container that has ended"
    return own.get(container.name or "", state.default_cpu_set), ""


# --- what is above them -------------------------------------------------------------------------------


def widened(version: int, cpus: CPUSet, effective: CPUSet, wanted: CPUSet) -> CPUSet | None:
    """Return what a cgroup above a container is to hold, so that the wanted set gets through; None where it does.

    cpus, effective: what it holds, and what of that is effective.
    """
    # A set of v2 that has nothing of its parent's lets all of that through; beside the new CPUs it would no more.
    needed = effective | wanted
    return cpus | needed if cuts(version, cpus, needed) else None


def cuts(version: int, cpus: CPUSet, wanted: CPUSet) -> bool:
    """Return whether less than the wanted set gets through. On v2 an empty set stands for all that the parent has."""
    return not wanted <= cpus if version == 1 or cpus else False


# What has the topmost cgroup, where that lacks CPUs and no partition has them.
NODE_ITSELF = "the container that this node is"


def ways_out(missing: CPUSet, narrow: Sequence[str] = ()) -> str:
    """Return what can be done where containers are given CPUs that a cgroup above the kubelet's own does not have."""
    reserve = "reserve CPUs %s, too, with strict-cpu-reservation (from 1.32 on), so that no container is given them"
    return ("widen %s, or " % " and ".join(narrow) if narrow else "") + reserve % missing


# CPUs that are assigned to containers that do not run, and to none that runs in their pods.
#
# An init container that has ended keeps its CPUs until its pod ends: those that no later container has reused are
# nobody's, and no request counts them. Source: GetAllocatableCPUs, allocateCPUs and updateCPUsToReuse in
# pkg/kubelet/cm/cpumanager/policy_static.go.


class Lost(NamedTuple):
    """What one container keeps. pod: its namespace and name, or its UID where these are not known."""

    pod: str
    container: str
    cpus: CPUSet

    def to_dict(self) -> dict[str, str]:
        """Return plain data, as modules return it."""
        return {**self._asdict(), "cpus": str(self.cpus)}


def lost_of(pod: str, containers: Mapping[str, CPUSet], ended: Collection[str]) -> list[Lost]:
    """Return what these containers of a pod, which have ended, keep beside all that its others have."""
    used = CPUSet(cpu for name, cpus in containers.items() if name not in ended for cpu in cpus)
    kept = ((name, cpus - used) for name, cpus in sorted(containers.items()) if name in ended)
    return [Lost(pod, name, cpus) for name, cpus in kept if cpus]


def lost_cpus(running: Sequence[Running], state: State) -> list[Lost]:
    """Return what containers that have ended keep, of all pods of which something with CPUs of its own runs.

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


def running_names(running: Iterable[Running]) -> dict[str, set[str]]:
    """Return {pod UID: the names of its containers that run}"""
    here: dict[str, set[str]] = {}
    for container in running:
        if container.name and container.effective is not None:
            here.setdefault(container.pod_uid, set()).add(container.name)
    return here


def sharing_in(whole: CPUSet, own: Mapping[str, CPUSet], here: Collection[str]) -> set[str]:
    """Return the containers of a pod with CPUs as a whole that share these, as far as its state shows.

    here: those that run. An init container that had all that sidecars leave is taken for one that shared it, unless one
    that runs has just that. A single one that shares what is left cannot be told from one that has it for itself.
    """
    running = {name: cpus for name, cpus in own.items() if name in here} or own
    found = {name for name, cpus in running.items() if [*running.values()].count(cpus) > 1}
    alone = [cpus for name, cpus in running.items() if name not in found]
    for name in own.keys() - running.keys():
        sidecars = CPUSet(cpu for cpus in alone if cpus.isdisjoint(own[name]) for cpu in cpus)
        if own[name] == whole - sidecars and own[name] not in alone:
            found.add(name)
    return found


def lost_notes(found: Sequence[Lost]) -> list[str]:
    """Return one note on all of them; none where there is nothing."""
    if not found:
        return []
    cpus = CPUSet(cpu for lost in found for cpu in lost.cpus)
    owners = ", ".join("%s/%s (%s)" % lost for lost in found)
    text = (
        "no container that runs has CPUs %s, which are assigned: %s; an init container that has ended keeps them until"
        " its pod ends, and the scheduler counts them as free: to get them back, delete the pod"
    )
    return [Note("init-cpus-lost", text % (cpus, owners))]


def unowned_notes(state: State, names: Mapping[str, str] = MappingProxyType({})) -> list[str]:
    """Return a note on the CPUs of pods as a whole of which no container has any, so that no removal frees them.

    names: {pod UID: name}. Source: RemoveContainer in pkg/kubelet/cm/cpumanager/policy_static.go of 1.36.
    """
    lost = {uid: cpus for uid, cpus in sorted(state.pod_assignments.items()) if not state.assignments.get(uid) and cpus}
    if not lost:
        return []
    owners = ", ".join("%s (%s)" % (names.get(uid, uid), cpus) for uid, cpus in lost.items())
    text = (
        "CPUs of pods as a whole are nobody's, as no container of these pods has any: %s; the kubelet never takes them"
        " back: stop it, and repair the checkpoint (module checkpoint, state: valid, with the pods of the node)"
    )
    return [Note("pod-cpus-lost", text % owners)]


# What runs on a node, in which cgroups and on which CPUs. It only reads.


_ALLOWED = "Cpus_allowed_list:"


class Observed(NamedTuple):
    """The containers of a node, and the cgroups that they and the host's processes are in."""

    # Of the hierarchy: 1 or 2, and where it is mounted.
    version: int
    mount: str
    online: CPUSet
    running: Sequence[Running]
    # Whether the names of all containers are known.
    all_named: bool
    # The cgroups of all pods and of the QoS classes; those beside them, in which the host's own processes are.
    kubelets: Sequence[str]
    hosts: Sequence[str]
    # {cgroup: CPUs}, also of pods and containers: what each holds itself, and what is effective there.
    cpus: Mapping[str, CPUSet | None]
    effective: Mapping[str, CPUSet | None]
    # {container id: the CPUs that its first process may use}, as far as the node shows it.
    affinities: Mapping[str, CPUSet]
    # Where more can be read of them.
    hierarchy: Hierarchy
    # All partitions of the node, and the CPUs of its topmost cgroup; None where it shows none.
    partitions: Sequence[Partition] = ()
    topmost: CPUSet | None = None
    # {what binds processes to CPUs: which}, where that was looked for: binders.py.
    binders: Mapping[str, CPUSet] = MappingProxyType({})

    @property
    def is_bound(self) -> bool:
        """Whether a container's first process may use fewer CPUs than are online."""
        return any(self.online - cpus for cpus in self.affinities.values())

    def pod_names(self) -> dict[str, str]:
        """Return {pod UID: its namespace and name}, of those whose name is known."""
        return {container.pod_uid: container.pod for container in self.running if container.pod}

    def container_names(self) -> dict[str, set[str]]:
        """Return {pod UID: the names of its containers that run}"""
        return running_names(self.running)

    def above(self, path: str) -> Sequence[str]:
        """Return the cgroups above one, but for the topmost, which holds nothing."""
        return tuple(lineage(path))[1:]

    def held(self, path: str) -> CPUSet:
        """Return what a cgroup holds itself; empty where it has no such file."""
        return self.cpus.get(path) or CPUSet()


def observe(
    tree: Tree, cgroup_root: str, endpoint: str | None = None, hide_names: bool = False
) -> tuple[Observed | None, list[str]]:
    """Return what runs on a node with a kubelet; None and the reason where it has no cpusets. See find_names()."""
    hierarchy, notes = find_hierarchy(tree)
    if hierarchy is None:
        return None, notes
    names, all_named = find_names(tree, endpoint, hide_names)
    kubepods = Kubepods(hierarchy, cgroup_root)
    running = read_running(kubepods, names)
    kubelets = [path for root in kubepods.roots for path in kubepods.qos_cgroups(root)]
    above = {path for cgroup in (*kubelets, *(container.cgroup for container in running)) for path in lineage(cgroup)}
    # Mounts, say, are units with cgroups in which nothing runs.
    hosts = [path for path in hierarchy.children("") if path not in above and not hierarchy.is_empty(path)]
    paths = sorted(above.union(hosts))
    online = hierarchy.online_cpus()
    return (
        Observed(
            hierarchy.version,
            hierarchy.mount,
            online,
            running,
            all_named,
            kubelets,
            hosts,
            hierarchy.cpus_of(paths),
            hierarchy.effective_cpus_of(paths),
            _affinities(hierarchy, running),
            hierarchy,
            read_partitions(hierarchy),
            hierarchy.effective_cpus(ROOT),
        ),
        [],
    )


def find_hierarchy(tree: Tree) -> tuple[Hierarchy | None, list[str]]:
    """Return the cgroups of a node; None and the reason where it has no cpusets."""
    try:
        return Hierarchy(tree), []
    except NodeError as error:
        return None, [Note("cgroups-unreadable", str(error))]


def read_running(kubepods: Kubepods, names: Mapping[str, LoggedContainer]) -> list[Running]:
    """Return the containers and sandboxes that have cgroups, with their names where these are known."""
    containers = kubepods.containers().values()
    places = {path for container in containers for path in (container.path, container.process_path)}
    effective = kubepods.hierarchy.effective_cpus_of(places)
    running = []
    for container in containers:
        pod, name = names.get(container.id, ("", None))
        top = next(top for top in kubepods.roots if container.path.startswith(top + "/"))
        inner = effective[container.process_path]
        running.append(
            Running(
                container.pod_uid,
                pod,
                name,
                container.id,
                container.path,
                # The container may have removed it meanwhile.
                container.path if inner is None else container.process_path,
                top,
                effective[container.path],
                None if inner == effective[container.path] else inner,
            )
        )
    return running


def _affinities(hierarchy: Hierarchy, running: Iterable[Running]) -> dict[str, CPUSet]:
    named = [container for container in running if container.name is not None]
    processes = hierarchy.first_processes(container.process_cgroup for container in named)
    found = {}
    for container in named:
        if container.process_cgroup in processes:
            cpus = _allowed(hierarchy.tree, processes[container.process_cgroup])
            if cpus is not None:
                found[container.id] = cpus
    return found


def _allowed(tree: Tree, process: int) -> CPUSet | None:
    """Return the CPUs that a process may use; None where it has ended, or its files were not saved."""
    try:
        status = tree.read_value("/proc/%d/status" % process) or ""
        return next((CPUSet.parse(line.split()[1]) for line in status.splitlines() if line.startswith(_ALLOWED)), None)
    except (NodeError, InputError):
        return None


def lost_in(observed: Observed | None, state: State | None) -> Sequence[Lost]:
    """Return what containers of a node that have ended keep; nothing where it is not known what runs."""
    if observed is None or state is None or not observed.all_named:
        return ()
    return lost_cpus(observed.running, state)
