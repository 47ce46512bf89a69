# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Bring the files that say which CPUs each container has up to date."""

from __future__ import annotations

import time
from functools import partial
from typing import Callable, Iterable, Sequence

from ...cgroup.hierarchy import Hierarchy
from ...cgroup.kubepods import Kubepods
from ...cpuset import CPUSet
from ...errors import CPUManagerError, NodeError, RefusedError
from ...state.assignments import State
from ...state.verdict import readable
from ...topology.model import Topology
from ..node import Node, cgroup_root_of
from ..observation import names_of, read_running
from ..reconcile.decide import SKIPPED, WRITTEN, Row, Running
from .content import LAST, Entry, Said, content_of, head_of, is_name, read_said
from .directory import Directory, opened
from .entries import by_kernel, entries_of_kubelet, with_claims

# Of strange names, how many are shown, and how much of each.
_MOST_SHOWN, _SHOWN = 3, 40


class Publishing:
    """One pass's dealings with the files.

    online, topology: the machine; it is read only where a file is written.
    """

    def __init__(self, directory: Directory, online: CPUSet, topology: Callable[[], Topology], now: float) -> None:
        self._directory, self._online, self._topology, self._now = directory, online, topology, now
        # Read before the pods: the kubelet makes a pod's cgroup before it makes what the pod mounts.
        self._there = directory.pods()
        # {pod: {container: its file}}, of those that were read.
        self._files: dict[str, dict[str, bytes]] = {}

    def said(self, pod: str, container: str) -> Said | None:
        """What the file of a container says. Raises NodeError."""
        content = self._read(pod).get(container) if is_name(pod) else None
        return read_said(content) if content else None

    def put(self, entry: Entry) -> None:
        """Bring the file of one container up to date. Raises NodeError."""
        if not (is_name(entry.pod_uid) and is_name(entry.container)):
            return
        files = self._read(entry.pod_uid)
        old = files.get(entry.container, b"")
        if old.startswith(head_of(entry, self._online)) and old.endswith(LAST):
            return
        said = read_said(old) if old else None
        same = said is not None and (said.cpus, said.exclusive, said.by) == (entry.cpus, entry.exclusive, entry.by)
        since = said.since if said is not None and same else self._now
        content = content_of(entry, self._online, self._topology(), since)
        self._directory.write(entry.pod_uid, entry.container, content)
        files[entry.container] = content

    def finish(self, entries: Iterable[Entry], pods: Callable[[], Iterable[str]]) -> list[str]:
        """Bring all files up to date: these are the containers that are on the node.

        pods: reads the UIDs of all pods that are on the node. Gives what is to be said of it, such as of names that no
        file can have.
        """
        wanted: dict[str, list[Entry]] = {}
        strange = []
        for entry in entries:
            if is_name(entry.pod_uid) and is_name(entry.container):
                wanted.setdefault(entry.pod_uid, []).append(entry)
            else:
                strange.append("%s/%s" % (entry.pod_uid, entry.container))
        notes = [
            "the CPUs of container %r are not published: its name can be that of no file" % name[:_SHOWN]
            for name in strange[:_MOST_SHOWN]
        ]
        present = {*pods(), *wanted}
        for pod in self._there:
            if pod not in present:
                notes += _tried(partial(self._directory.remove_pod, pod))
        for pod in sorted(present.intersection(self._there).union(wanted)):
            notes += _tried(partial(self._bring, pod, wanted.get(pod, ())))
        return notes

    def _bring(self, pod: str, entries: Sequence[Entry]) -> None:
        for entry in entries:
            self.put(entry)
        names = {entry.container for entry in entries}
        for container in [name for name in self._read(pod) if name not in names]:
            self._directory.remove(pod, container)
            del self._files[pod][container]

    def _read(self, pod: str) -> dict[str, bytes]:
        if pod not in self._files:
            self._files[pod] = self._directory.read(pod) if pod in self._there else {}
        return self._files[pod]


def _tried(work: Callable[[], None]) -> list[str]:
    """The failure of one pod is not that of the next."""
    try:
        work()
    except (NodeError, RefusedError) as error:
        return [str(error)]
    return []


# --- where the CPUs are not given out here -------------------------------------------------------------


def publish_node(
    node: Node, running: Sequence[Running] = (), rows: Sequence[Row] = (), state: State | None = None
) -> list[str]:
    """Publish what a kubelet's containers have. Gives what is to be said of it.

    running, rows, state: what a reconcile pass has read and done; without them, this reads the node.
    """
    cgroup_root = cgroup_root_of(node.found()[0])
    if not running and not node.runs_pods(cgroup_root):
        return []
    try:
        hierarchy = Hierarchy(node.tree)
        kubepods = Kubepods(hierarchy, cgroup_root)
        if not running:
            running = read_running(kubepods, names_of(node.tree)[0])
            state = readable(node.checkpoint()).state
        entries = _entries(node, hierarchy, running, rows, state)
        with opened(node.tree) as directory:
            publishing = Publishing(directory, hierarchy.online_cpus(), lambda: node.topology, time.time())
            return publishing.finish(entries, kubepods.pods)
    except CPUManagerError as error:
        return ["the CPUs of containers are not published: %s" % error]


def _entries(
    node: Node, hierarchy: Hierarchy, running: Sequence[Running], rows: Sequence[Row], state: State | None
) -> list[Entry]:
    wanted = {row.id: row.wanted for row in rows if row.result != SKIPPED}
    effective = {row.id: row.wanted for row in rows if row.result == WRITTEN}
    entries = entries_of_kubelet(running, wanted, effective, state)
    if not node.may_have_owners():
        return entries
    # Imported here: on most nodes there is the kubelet alone.
    from ...host.owner.owners import BALLOONS, CLAIM, DRA_CPU, TOPOLOGY_AWARE, claims_of
    from ..owners import owners_of

    active = {owner.id for owner in owners_of(node) if owner.is_active}
    for policy in (BALLOONS, TOPOLOGY_AWARE):
        if policy in active:
            return by_kernel(entries, hierarchy.online_cpus(), policy)
    if DRA_CPU in active:
        claimed = CPUSet()
        for line in claims_of(node.tree):
            claimed |= _parsed(line[len(CLAIM) :].partition("=")[2])
        return with_claims(entries, claimed, DRA_CPU)
    return entries


def _parsed(text: str) -> CPUSet:
    """The CPUs of a claim; none for what is no list."""
    try:
        return CPUSet.parse(text)
    except CPUManagerError:
        return CPUSet()
