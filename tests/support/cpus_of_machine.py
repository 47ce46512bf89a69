# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The CPUs of this machine: whether a benchmark can have them, and one test at a time that takes some from others."""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager
from typing import Iterator

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import CPUManagerError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._benchmark.benchmark_cgroups import BenchmarkCgroups
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._cgroup.hierarchy import Hierarchy


def why_not() -> str:
    """Return why no benchmark can run here; empty when it can."""
    if os.geteuid():
        return "only root can make cgroups"
    try:
        cgroups = BenchmarkCgroups(Tree("/"))
        online = Hierarchy(Tree("/")).online_cpus()
    except CPUManagerError as error:
        return str(error)
    if not os.access(cgroups.mounts[0], os.W_OK):
        return "%s is read-only" % cgroups.mounts[0]
    return "" if len(online) > 1 else "this machine has one CPU"


# The locks of this process. While it has one, it enters the context again without waiting.
_held: list[int] = []


@contextmanager
def alone() -> Iterator[None]:
    """Keep all other processes out of this context: beside an exclusive cgroup, nobody can have its CPUs.

    The tests run in several processes, and a node takes no second benchmark.
    """
    lock = os.open("/sys/fs/cgroup", os.O_RDONLY | os.O_DIRECTORY)
    try:
        if not _held:
            fcntl.flock(lock, fcntl.LOCK_EX)
        _held.append(lock)
        try:
            yield
        finally:
            _held.pop()
    finally:
        os.close(lock)
