# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What of a node decides, beside what its kubelet is given, whether that starts: memory, cgroups, disk, swap."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from .._base.errors import NodeError
from .._base.tree import is_number
from .._kubelet.start.findings import Host
from ..topology.kubelet_view import kubelet_view

if TYPE_CHECKING:
    from .._base.tree import Tree
    from ..topology.model import Topology
    from .node import Node

_CGROUP = "/sys/fs/cgroup"
_CONTROLLERS = ("cpu", "cpuacct", "cpuset", "memory", "pids", "systemd")
_MEMINFO, _SWAPS = "/proc/meminfo", "/proc/swaps"
_SYSTEMD, _RUN = "/run/systemd/system", "/run"


def host_of(node: Node) -> Host:
    """What of the node's files decides whether its kubelet starts."""
    topology, tree = node.topology, node.tree
    has_cgroups = tree.exists(_CGROUP)
    cgroup_v1 = has_cgroups and not tree.exists(_CGROUP + "/cgroup.controllers")

    def lacks_cgroup(path: str) -> bool | None:
        if not has_cgroups:
            return None
        roots = [_CGROUP]
        try:
            if cgroup_v1:
                roots = [
                    place
                    for place in ("%s/%s" % (_CGROUP, controller) for controller in _CONTROLLERS)
                    if tree.exists(place)
                ]
            return not all(tree.exists("%s/%s" % (root, path)) for root in roots) if roots else None
        except NodeError:  # such as a name that no file can have
            return None

    memory = _memory_of(tree)
    return Host(
        kubelet_view(topology),
        node.minor,
        tuple(group.id for group in topology.numa_nodes),
        topology.numa_distances,
        memory.get("MemTotal"),
        cgroup_v1,
        _storage_of(node),
        lacks_cgroup,
        # Of a saved node it is not known where nothing below /run is saved.
        tree.exists(_SYSTEMD) if tree.exists(_RUN) else None,
        len(_lines(tree, _SWAPS)) > 1,
        lambda flag: _number("".join(_lines(tree, "/proc/sys/" + flag))),
        node.version is None,
        memory.get("Hugetlb", 0),
    )


def other_host(topology: Topology, minor: int) -> Host:
    """A machine of which only the CPUs and NUMA nodes are known."""
    nodes = tuple(group.id for group in topology.numa_nodes)
    return Host(kubelet_view(topology), minor, nodes, topology.numa_distances)


def _memory_of(tree: Tree) -> dict[str, int]:
    """What the machine's memory is divided into, in bytes, as far as its files tell."""
    rows = [line.partition(":")[::2] for line in _lines(tree, _MEMINFO)]
    sizes = {name: _number("".join(rest.split()[:1])) for name, rest in rows}
    return {name: 1024 * size for name, size in sizes.items() if size is not None}


def _lines(tree: Tree, path: str) -> list[str]:
    """The lines of a file; none where it cannot be read."""
    try:
        return tree.read_text(path).splitlines()
    except NodeError:
        return []


def _number(text: str) -> int | None:
    return int(text) if is_number(text) and len(text) < 19 else None


def _storage_of(node: Node) -> int | None:
    """The bytes of the file system of the kubelet's directory, which only a live node has."""
    if not node.tree.live:
        return None
    try:
        system = os.statvfs(os.path.dirname(node.checkpoint_path))
    except OSError:
        return None
    return system.f_blocks * system.f_frsize
