# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Give everything back: after this, no container has CPUs of its own, and each has its quota again."""

from __future__ import annotations

from ...cgroup.hierarchy import Hierarchy
from ...cgroup.kubepods import Kubepods
from ...errors import RefusedError
from ...host.partitions import usable_cpus
from ...tree import Tree
from ..node import Node, cgroup_root_of
from ..observation import read_running
from ..published.directory import opened
from ..reconcile.decide import FAILED, WRITE, row_of
from ..reconcile.settle import Settling
from .agent import cpu_hierarchy
from .owner import check_owner
from .promise import forget_promise, read_promise
from .quotas import Quotas
from .settings import Settings


def release(tree: Tree, settings: Settings) -> list[str]:
    """Release the containers of a node, if the program has given any of them CPUs. Gives what could not be done.

    Where another owner gives CPUs out by now, their cpusets are left to it.
    """
    promise, _content = read_promise(tree)
    if promise is None:
        return []
    node = Node(tree, settings.config_path, settings.kubelet_root)
    configuration = node.configuration()
    quotas = Quotas(cpu_hierarchy(tree), promise.quotas)
    refused = quotas.put_back()
    try:
        check_owner(node, configuration, settings.allow_owners)
    except RefusedError:
        pass
    else:
        refused += _all_cpus(Kubepods(Hierarchy(tree), cgroup_root_of(configuration)))
    unpublish(tree)
    if not refused:
        forget_promise(tree)
    return refused


def unpublish(tree: Tree) -> None:
    """Remove what was published of containers, which nobody keeps up to date any more."""
    with opened(tree) as directory:
        # The directories stay: a pod may have its own mounted, and the next pass of whatever policy writes there.
        for pod in directory.pods():
            for container in directory.read(pod):
                directory.remove(pod, container)


def _all_cpus(kubepods: Kubepods) -> list[str]:
    hierarchy = kubepods.hierarchy
    usable = usable_cpus(hierarchy, kubepods.roots, hierarchy.online_cpus())
    running = [
        container
        for container in read_running(kubepods, {})
        if container.effective is not None and container.found(usable) != usable
    ]
    rows = [row_of(container, usable, container.effective or usable, WRITE) for container in running]
    settled = Settling(hierarchy, usable, None, lambda: True, True).settle(running, rows)
    return ["%s: %s" % (row.cgroup, row.why) for row in settled if row.result == FAILED]
