# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One benchmark at a time: a node takes no second one, and the tests run in several processes."""

from __future__ import annotations

import fcntl
import os
import tempfile
from contextlib import contextmanager
from typing import Iterator

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import CPUManagerError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._benchmark.benchmark_cgroups import BenchmarkCgroups
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._cgroup.hierarchy import Hierarchy

_LOCK = os.path.join(tempfile.gettempdir(), "kubenode-test-one-benchmark")


def why_not() -> str:
    """Why no benchmark can run here; empty when it can."""
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


@contextmanager
def alone() -> Iterator[None]:
    """While no other test runs a benchmark."""
    descriptor = os.open(_LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
