# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What runs on a node, in which cgroups and on which CPUs. It only reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Iterable, Mapping, NamedTuple, Sequence

from .._base.errors import InputError, NodeError, Note
from .._base.tree import Tree
from .._cgroup.hierarchy import Hierarchy, lineage
from .._cgroup.kubepods import Kubepods
from .._containers.crictl import LoggedContainer, find_names
from ..cpuset import CPUSet
from ..state.assignments import State
from .container_cpus import (
    Lost,
    Running,
    lost_cpus,
)

if TYPE_CHECKING:
    pass


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

    def pod_names(self) -> dict[str, str]:
        """{pod UID: its namespace and name}, of those whose name is known."""
        return {container.pod_uid: container.pod for container in self.running if container.pod}

    def above(self, path: str) -> Sequence[str]:
        """The cgroups above one, but for the topmost, which holds nothing."""
        return tuple(lineage(path))[1:]

    def held(self, path: str) -> CPUSet:
        """What a cgroup holds itself; empty where it has no such file."""
        return self.cpus.get(path) or CPUSet()


def observe(
    tree: Tree, cgroup_root: str, endpoint: str | None = None, hide_names: bool = False
) -> tuple[Observed | None, list[str]]:
    """What runs on a node with a kubelet; None and the reason where it has no cpusets. See find_names()."""
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
        ),
        [],
    )


def find_hierarchy(tree: Tree) -> tuple[Hierarchy | None, list[str]]:
    """The cgroups of a node; None and the reason where it has no cpusets."""
    try:
        return Hierarchy(tree), []
    except NodeError as error:
        return None, [Note("cgroups-unreadable", str(error))]


def read_running(kubepods: Kubepods, names: Mapping[str, LoggedContainer]) -> list[Running]:
    """The containers and sandboxes that have cgroups, with their names where these are known."""
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
    """The CPUs that a process may use; None where it has ended, or its files were not saved."""
    try:
        status = tree.read_value("/proc/%d/status" % process) or ""
        return next((CPUSet.parse(line.split()[1]) for line in status.splitlines() if line.startswith(_ALLOWED)), None)
    except (NodeError, InputError):
        return None


def lost_in(observed: Observed | None, state: State | None) -> Sequence[Lost]:
    """What containers of a node that have ended keep; nothing where it is not known what runs."""
    if observed is None or state is None or not observed.all_named:
        return ()
    return lost_cpus(observed.running, state)
