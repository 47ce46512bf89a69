# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The partitions of cgroup v2: cgroups that own CPUs, from which the scheduler may keep its balancing of load.

Sources: "Cpuset Interface Files" in Linux's Documentation/admin-guide/cgroup-v2.rst, and kernel/cgroup/cpuset.c.
"""

from __future__ import annotations

import errno
import os
from typing import Iterator, NamedTuple

from ..cgroup.hierarchy import ROOT, Hierarchy
from ..cgroup.mounts import CPUS
from ..cpuset import CPUSet

EXCLUSIVE = "cpuset.cpus.exclusive"
EFFECTIVE = EXCLUSIVE + ".effective"
PARTITION = "cpuset.cpus.partition"
_MEMBER, _INVALID = "member", " invalid"


class Partition(NamedTuple):
    """A cgroup that is a partition, or would be. kind: "root" or "isolated". problem: why it is none, as the kernel
    says it."""

    path: str
    kind: str
    problem: str
    cpus: CPUSet | None
    exclusive: CPUSet | None
    effective: CPUSet | None


def read_partitions(hierarchy: Hierarchy) -> tuple[Partition, ...]:
    """Those of a node; none with cgroup v1, and on kernels without them. Raises NodeError for an unreadable file."""
    if hierarchy.version != 2:
        return ()
    return tuple(_partition(hierarchy, path, text) for path, text in _candidates(hierarchy))


def _candidates(hierarchy: Hierarchy) -> Iterator[tuple[str, str]]:
    """The cgroups that are no plain members, and can take CPUs from others.

    A node has thousands of cgroups. A partition further down needs exclusive CPUs, or a partition, at each step above
    it, so that most need no look.
    """
    waiting = hierarchy.children(ROOT)[::-1]
    while waiting:
        path = waiting.pop()
        text = _text(hierarchy, path, PARTITION)
        is_partition = text not in (None, "", _MEMBER)
        if is_partition or _text(hierarchy, path, EXCLUSIVE):
            waiting += hierarchy.children(path)[::-1]
        if is_partition:
            yield path, text or ""


def _partition(hierarchy: Hierarchy, path: str, text: str) -> Partition:
    kind, invalid, reason = text.partition(_INVALID)
    problem = (reason.strip().strip("()") or "no reason is given") if invalid else ""
    cpus, exclusive, effective = (hierarchy.read_set(path, name) for name in (CPUS, EXCLUSIVE, EFFECTIVE))
    return Partition(path, kind.strip(), problem, cpus, exclusive, effective)


def _text(hierarchy: Hierarchy, path: str, name: str) -> str | None:
    """A file's text; None where it, or the cgroup, is not there."""
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
