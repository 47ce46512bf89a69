# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Bring the files that say which CPUs each container has up to date."""

from __future__ import annotations

import json
import math
import os
import re
import stat
import time
from contextlib import contextmanager, suppress
from functools import partial
from typing import Callable, Iterable, Iterator, Mapping, NamedTuple, Sequence

from .._base.errors import MALFORMED, CPUManagerError, NodeError, RefusedError
from .._base.files import cannot_write
from .._base.tree import Tree, Writable, why_others_write
from .._base.untrusted import DIRECTORY, put_file, read_file
from .._cgroup.hierarchy import Hierarchy
from .._cgroup.kubepods import Kubepods
from .._containers.crictl import names_of
from .._node.container_cpus import SKIPPED, WRITTEN, ContainerRow, Running, read_running
from .._node.node import Node, cgroup_root_of
from ..cpuset import CPUSet
from ..state.acceptance import readable
from ..state.assignments import State
from ..topology.model import Group, Topology

# What the file of a container says of its CPUs. Pure.
#
# The members that a pass can compare without the machine's topology come first; `since` is the last. One stands on each
# line, so that a shell finds it without a parser of JSON. docs/docsite/rst/dynamic.rst explains them.


# Who gave a container its CPUs, beside the ids in _owners/owners.py.
KUBELET, OURS = "kubelet", "reconcile"

# Longer names are none of Kubernetes: a UID has 36 characters, a container's name at most 63.
_NAME = re.compile("[A-Za-z0-9]([-._A-Za-z0-9]{0,98}[A-Za-z0-9])?", re.ASCII)

_HEAD = """\
{
  "version": 1,
  "pod": "%s",
  "container": "%s",
  "cpus": "%s",
  "exclusive": %s,
  "by": "%s",
  "effective": "%s",
  "leaving": "%s",
  "until": %s,
  "online": "%s",
"""
_TAIL = """\
  "siblings": %s,
  "numa_nodes": %s,
  "l3_caches": %s,
  "since": %.3f
}
"""


# How a whole file ends.
LAST = b"\n}\n"


class PublishedCPUs(NamedTuple):
    """The CPUs of one container.

    cpus: those that it is to use. exclusive: whether no other container has them. by: who says so. effective: what the
    kernel lets it use. leaving: what the kernel takes at the time `until`, seconds since 1970; both are empty where
    nothing leaves.
    """

    pod_uid: str
    container: str
    cpus: CPUSet
    exclusive: bool
    by: str
    effective: CPUSet
    leaving: CPUSet = CPUSet()
    until: float | None = None


class PublishedBefore(NamedTuple):
    """What a file said at the last pass."""

    cpus: CPUSet
    exclusive: bool
    by: str
    until: float | None
    since: float


def is_name(text: str) -> bool:
    """Return whether a pod's UID or a container's name can be that of a file: the runtime may give any."""
    return _NAME.fullmatch(text) is not None


def head_of(entry: PublishedCPUs, online: CPUSet) -> bytes:
    """Return the beginning of a file, which is the same as long as there is nothing new to say."""
    return (
        _HEAD
        % (
            entry.pod_uid,
            entry.container,
            entry.cpus,
            "true" if entry.exclusive else "false",
            entry.by,
            entry.effective,
            entry.leaving,
            "null" if entry.until is None else "%.3f" % entry.until,
            online,
        )
    ).encode("ascii")


def content_of(entry: PublishedCPUs, online: CPUSet, topology: Topology, since: float) -> bytes:
    """Return the whole file. since: when the container got these CPUs, seconds since 1970."""
    cores = [str(core.cpus) for core in topology.cores if core.cpus & entry.cpus]
    parts = (cores, _shared_out(topology.numa_nodes, entry.cpus), _shared_out(topology.caches, entry.cpus))
    return head_of(entry, online) + (_TAIL % (*map(json.dumps, parts), since)).encode("ascii")


def _shared_out(groups: Iterable[Group], cpus: CPUSet) -> dict[str, str]:
    """Return {id of a group: the CPUs in it}"""
    return {str(group.id): str(group.cpus & cpus) for group in groups if group.cpus & cpus}


def read_said(content: bytes) -> PublishedBefore | None:
    """Return what a file said; None for one that is none of ours."""
    try:
        data = json.loads(content)
        until = data["until"]
        return PublishedBefore(
            CPUSet.parse(data["cpus"]),
            data["exclusive"] is True,
            str(data["by"]),
            None if until is None else _time(until),
            _time(data["since"]),
        )
    except MALFORMED:
        return None


def _time(value: float) -> float:
    seconds = float(value)
    if not math.isfinite(seconds):
        raise ValueError("%r is no time" % (value,))
    return seconds


# Whose the CPUs of each container are where they are not given out here: the kubelet's, or another owner's. Pure.
#
# The kubelet's checkpoint and the claims of the DRA driver name CPUs, of a container, or of a pod or claim that several
# containers may share; NRI policies name none. So, wherever they come from, CPUs are exclusive to a container only if
# the kernel lets no other container use one of them.


def entries_of_kubelet(
    running: Iterable[Running], wanted: Mapping[str, CPUSet], effective: Mapping[str, CPUSet], state: State | None
) -> list[PublishedCPUs]:
    """Return what a kubelet's checkpoint gives the named ones of these containers.

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
        entries.append(PublishedCPUs(container.pod_uid, container.name, cpus, exclusive, KUBELET, now))
    return _with_one_user(entries)


def with_claims(entries: Iterable[PublishedCPUs], claimed: CPUSet, by: str) -> list[PublishedCPUs]:
    """Return what containers have on a node of the DRA driver, whose claims have these CPUs."""
    return _with_one_user(
        [
            entry._replace(cpus=entry.effective, exclusive=True, by=by)
            if entry.effective and entry.effective <= claimed
            else entry
            for entry in entries
        ]
    )


def by_kernel(entries: Iterable[PublishedCPUs], online: CPUSet, by: str) -> list[PublishedCPUs]:
    """Return what containers have on a node of an NRI policy: what the kernel lets each use."""
    return _with_one_user(
        [
            entry._replace(cpus=entry.effective, exclusive=bool(entry.effective) and entry.effective < online, by=by)
            for entry in entries
        ]
    )


def _with_one_user(entries: Sequence[PublishedCPUs]) -> list[PublishedCPUs]:
    """Return the entries; those are no longer exclusive whose CPUs the kernel lets another container use, too."""
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


# The files in /run/kubenode/cpus: a directory for each pod, in which is a file for each of its containers.
#
# A pod that has its directory mounted for writing may put anything into it.


PLACE = "/run/kubenode/cpus"

_END = ".json"
# Everybody may read what a container's CPUs are, and no secret is in it.
_OPEN, _READABLE = 0o755, 0o644
# No file of ours is longer.
_MOST = 1 << 18


class Directory:
    """The open directory; opened() makes one. Its methods raise NodeError."""

    def __init__(self, place: str, descriptor: int) -> None:
        self.place = place
        self._descriptor = descriptor

    def pods(self) -> list[str]:
        """Return the names of the pods' directories."""
        return os.listdir(self._descriptor)

    def read(self, pod: str) -> dict[str, bytes]:
        """Return {container: the content of its file}, empty for what is no file. What a killed run has left is
        removed."""
        try:
            directory = os.open(pod, DIRECTORY, dir_fd=self._descriptor)
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise cannot_write("%s/%s" % (self.place, pod), error) from error
        try:
            found = {}
            for name in os.listdir(directory):
                if name.endswith(_END):
                    found[name[: -len(_END)]] = _content(directory, name)
                else:
                    with suppress(OSError):
                        os.unlink(name, dir_fd=directory)
            return found
        finally:
            os.close(directory)

    def write(self, pod: str, container: str, content: bytes) -> None:
        """Put a container's file in place of the one before."""
        name = container + _END
        try:
            directory = self._made(pod)
            try:
                put_file(directory, name, content, _READABLE)
            finally:
                os.close(directory)
        except OSError as error:
            raise cannot_write("%s/%s/%s" % (self.place, pod, name), error) from error

    def _made(self, pod: str) -> int:
        """Return a descriptor of a pod's directory, which is made if need be. Raises OSError."""
        with suppress(FileExistsError):
            os.mkdir(pod, _OPEN, dir_fd=self._descriptor)
            made = os.open(pod, DIRECTORY, dir_fd=self._descriptor)
            os.fchmod(made, _OPEN)
            return made
        return os.open(pod, DIRECTORY, dir_fd=self._descriptor)

    def remove(self, pod: str, container: str) -> None:
        """Remove a container's file. The pod keeps its directory, which it may have mounted."""
        try:
            directory = os.open(pod, DIRECTORY, dir_fd=self._descriptor)
            try:
                os.unlink(container + _END, dir_fd=directory)
            finally:
                os.close(directory)
        except FileNotFoundError:
            return
        except OSError as error:
            raise cannot_write("%s/%s/%s%s" % (self.place, pod, container, _END), error) from error

    def remove_pod(self, pod: str) -> None:
        """Remove the directory of a pod that has ended, and the files in it."""
        try:
            if not stat.S_ISDIR(os.stat(pod, dir_fd=self._descriptor, follow_symlinks=False).st_mode):
                os.unlink(pod, dir_fd=self._descriptor)
                return
            directory = os.open(pod, DIRECTORY, dir_fd=self._descriptor)
            try:
                for name in os.listdir(directory):
                    # A directory is none of ours; the next call says that it is in the way.
                    with suppress(IsADirectoryError, PermissionError):
                        os.unlink(name, dir_fd=directory)
            finally:
                os.close(directory)
            os.rmdir(pod, dir_fd=self._descriptor)
        except FileNotFoundError:
            return
        except OSError as error:
            raise cannot_write("%s/%s" % (self.place, pod), error) from error


@contextmanager
def opened(tree: Tree) -> Iterator[Directory]:
    """Yield the directory, made if need be.

    Raises NodeError, RefusedError for one that somebody else could have put there.
    """
    place = tree.path(PLACE)
    try:
        _make(place)
        descriptor = os.open(place, DIRECTORY)
    except OSError as error:
        raise cannot_write(place, error) from error
    try:
        why = why_others_write(descriptor, os.fstat(descriptor))
        if why:
            raise Writable(place, why).refusal("nothing was written", "remove it: the next pass makes it anew")
        yield Directory(place, descriptor)
    finally:
        os.close(descriptor)


def _make(place: str) -> None:
    for directory in (os.path.dirname(os.path.dirname(place)), os.path.dirname(place), place):
        with suppress(FileExistsError):
            os.mkdir(directory, _OPEN)
            os.chmod(directory, _OPEN)


def _content(directory: int, name: str) -> bytes:
    try:
        return read_file(directory, name, _MOST)
    except (NodeError, OSError):
        return b""


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

    def said(self, pod: str, container: str) -> PublishedBefore | None:
        """Return what the file of a container says. Raises NodeError."""
        content = self._read(pod).get(container) if is_name(pod) else None
        return read_said(content) if content else None

    def put(self, entry: PublishedCPUs) -> None:
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

    def finish(self, entries: Iterable[PublishedCPUs], pods: Callable[[], Iterable[str]]) -> list[str]:
        """Bring all files up to date: these are the containers that are on the node.

        pods: reads the UIDs of all pods that are on the node. Gives what is to be said of it, such as of names that no
        file can have.
        """
        wanted: dict[str, list[PublishedCPUs]] = {}
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

    def _bring(self, pod: str, entries: Sequence[PublishedCPUs]) -> None:
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
    """Return the failure of one pod is not that of the next."""
    try:
        work()
    except (NodeError, RefusedError) as error:
        return [str(error)]
    return []


# --- where the CPUs are not given out here -------------------------------------------------------------


def publish_node(
    node: Node, running: Sequence[Running] = (), rows: Sequence[ContainerRow] = (), state: State | None = None
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
    node: Node, hierarchy: Hierarchy, running: Sequence[Running], rows: Sequence[ContainerRow], state: State | None
) -> list[PublishedCPUs]:
    wanted = {row.id: row.wanted for row in rows if row.result != SKIPPED}
    effective = {row.id: row.wanted for row in rows if row.result == WRITTEN}
    entries = entries_of_kubelet(running, wanted, effective, state)
    if not node.may_have_owners():
        return entries
    # Imported here: on most nodes there is the kubelet alone.
    from .._node.owners_found import owners_of
    from .._owners.owners import BALLOONS, CLAIM, DRA_CPU, TOPOLOGY_AWARE, claims_of

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
    """Return the CPUs of a claim; none for what is not a list."""
    try:
        return CPUSet.parse(text)
    except CPUManagerError:
        return CPUSet()
