# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The partitions of cgroup v2: cgroups that own CPUs, from which the scheduler may keep its balancing of load.

They are read, and what would be in the way of one. The order of writes is in _housekeeping/at_boot.py.

Sources: "Cpuset Interface Files" in Linux's Documentation/admin-guide/cgroup-v2.rst, and kernel/cgroup/cpuset.c.
"""

from __future__ import annotations

import errno
import os
from typing import Iterable, Iterator, NamedTuple

from .._base.errors import NodeError, RefusedError
from .._base.tree import Tree
from .._cgroup.hierarchy import CPUS, ROOT, Hierarchy, joined, lineage
from .._cgroup.kubepods import Kubepods
from ..cpuset import CPUSet

EXCLUSIVE = "cpuset.cpus.exclusive"
EFFECTIVE = EXCLUSIVE + ".effective"
PARTITION = "cpuset.cpus.partition"
MEMBER, KINDS = "member", ("isolated", "root")
_INVALID = " invalid"
ISOLATED = "cpuset.cpus.isolated"


class Partition(NamedTuple):
    """A cgroup that is a partition, or would be. kind: "root" or "isolated". problem: why it is none, as the kernel
    says it."""

    path: str
    kind: str
    problem: str
    cpus: CPUSet | None
    exclusive: CPUSet | None
    effective: CPUSet | None


class TopCgroup(NamedTuple):
    """A cgroup right below the topmost one as it is: its files' texts, empty where they are not there.

    path: where the node has it. is_there: whether it has cpusets. has_processes: in it or below it.
    """

    name: str
    path: str
    is_there: bool
    cpus: str = ""
    exclusive: str = ""
    partition: str = ""
    has_processes: bool = False


def read_partitions(hierarchy: Hierarchy) -> tuple[Partition, ...]:
    """Return those of a node; none with cgroup v1, and on kernels without them. Raises NodeError for an unreadable
    file."""
    if hierarchy.version != 2:
        return ()
    return tuple(_partition(hierarchy, path, text) for path, text in _candidates(hierarchy))


def _candidates(hierarchy: Hierarchy) -> Iterator[tuple[str, str]]:
    """Yield the cgroups that are no plain members, and can take CPUs from others.

    A node has thousands of cgroups. A partition further down needs exclusive CPUs, or a partition, at each step above
    it, so that most need no look.
    """
    waiting = hierarchy.children(ROOT)[::-1]
    while waiting:
        path = waiting.pop()
        text = _text(hierarchy, path, PARTITION)
        is_partition = text not in (None, "", MEMBER)
        if is_partition or _text(hierarchy, path, EXCLUSIVE):
            waiting += hierarchy.children(path)[::-1]
        if is_partition:
            yield path, text or ""


def owned_cpus(partitions: Iterable[Partition]) -> CPUSet:
    """Return the CPUs that these have for themselves."""
    return CPUSet(cpu for part in partitions if not part.problem for cpu in part.effective or part.cpus or ())


def usable_cpus(hierarchy: Hierarchy, roots: Iterable[str], online: CPUSet) -> CPUSet:
    """Return the CPUs that containers can have. Raises NodeError for an unreadable file.

    roots: the cgroups of all pods. Where one of them is in a partition, or is one, its pods have the CPUs of that
    partition and no others. Everywhere, the CPUs of other partitions are no container's.
    """
    valid = [part for part in read_partitions(hierarchy) if not part.problem]
    lineages = [set(lineage(root)) for root in roots]
    around = [[part for part in valid if part.path in paths] for paths in lineages]
    nearest = [max(parts, key=lambda part: len(part.path)) for parts in around if parts]
    above = {part.path for parts in around for part in parts}
    others = owned_cpus(part for part in valid if part.path not in above)
    return ((owned_cpus(nearest) & online) if nearest else online) - others


def owned_on(tree: Tree) -> CPUSet:
    """Return the CPUs that all partitions of a node own; none where that cannot be read."""
    try:
        return owned_cpus(read_partitions(Hierarchy(tree)))
    except (NodeError, RefusedError):
        return CPUSet()


def read_place(hierarchy: Hierarchy, name: str) -> TopCgroup:
    """Return one cgroup right below the topmost. Raises NodeError for an unreadable file."""
    path = joined(hierarchy.mount, name)
    partition = _text(hierarchy, name, PARTITION)
    if partition is None:
        return TopCgroup(name, path, False)
    cpus, exclusive = (_text(hierarchy, name, file) or "" for file in (CPUS, EXCLUSIVE))
    return TopCgroup(name, path, True, cpus, exclusive, partition, not hierarchy.is_empty(name))


def why_none(hierarchy: Hierarchy) -> str:
    """Return why a node can have no partition whose CPUs nobody else takes; empty where it can.

    Without cpuset.cpus.exclusive, which came with Linux 6.7, any cgroup beside it that gets one of its CPUs ends it.
    """
    if hierarchy.version != 2:
        return "its cgroups are of version 1, which has none"
    with_cpusets = [path for path in hierarchy.children(ROOT) if hierarchy.read_set(path, CPUS) is not None]
    if any(_text(hierarchy, path, EXCLUSIVE) is not None for path in with_cpusets):
        return ""
    # No cgroup has the controller yet.
    if not with_cpusets and _text(hierarchy, ROOT, ISOLATED) is not None:
        return ""
    release = hierarchy.tree.read_value("/proc/sys/kernel/osrelease") or "of this node"
    return "the kernel %s is too old: it has no %s, as Linux has from 6.7 on" % (release, EXCLUSIVE)


def pods_on(hierarchy: Hierarchy, pods: Kubepods, cpus: CPUSet) -> list[str]:
    """Return the cgroups of pods, and those above and below them, that have some of these CPUs by name."""
    paths = [path for root in pods.roots for path in (root, *hierarchy.cgroups(root))]
    return [path for path, has in hierarchy.cpus_of(paths).items() if has and has & cpus]


def _partition(hierarchy: Hierarchy, path: str, text: str) -> Partition:
    kind, problem = kind_and_problem(text)
    cpus, exclusive, effective = (hierarchy.read_set(path, name) for name in (CPUS, EXCLUSIVE, EFFECTIVE))
    return Partition(path, kind, problem, cpus, exclusive, effective)


def kind_and_problem(text: str) -> tuple[str, str]:
    """Return what the file of a partition says: its kind, and why the kernel takes it for none, empty where it does."""
    kind, invalid, reason = text.partition(_INVALID)
    return kind.strip(), (reason.strip().strip("()") or "no reason is given") if invalid else ""


def _text(hierarchy: Hierarchy, path: str, name: str) -> str | None:
    """Return a file's text; None where it, or the cgroup, is not there."""
    try:
        descriptor = hierarchy.open_file(path, name, os.O_RDONLY)
        try:
            return os.read(descriptor, 1 << 16).decode("ascii", "replace").strip()
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ENODEV):
            return None
        raise hierarchy.unreadable(path, name, error) from error
