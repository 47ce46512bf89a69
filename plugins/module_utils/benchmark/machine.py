# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What of a machine and its load belongs beside a measurement."""

from __future__ import annotations

import re

from ..node.node import Node
from ..tree import Tree

_CACHE = "/sys/devices/system/cpu/cpu%d/cache"
_SUFFIXES = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "": 1}
_LEAST, _MOST = 32 << 20, 256 << 20


def machine_of(node: Node) -> dict[str, object]:
    """Plain data: CPUs, their model, the kernel, and how busy the machine was before."""
    tree, topology = node.tree, node.topology
    cpuinfo = tree.read_bytes("/proc/cpuinfo").decode("utf-8", "replace") if tree.exists("/proc/cpuinfo") else ""
    model = re.search(r"^model name\s*:\s*(.+)$", cpuinfo, re.MULTILINE)
    flags = re.search(r"^flags\s*:(.*)$", cpuinfo, re.MULTILINE)
    return {
        "cpus": len(topology.online),
        "cores": len(topology.cores),
        "sockets": max(1, len(topology.sockets)),
        "numa_nodes": len(topology.numa_nodes),
        "threads_per_core": topology.threads_per_core,
        "model": model.group(1).strip()[:100] if model else "",
        "virtual": bool(flags and "hypervisor" in flags.group(1).split()),
        "kernel": node.kernel(),
        "load": (tree.read_value("/proc/loadavg") or "").partition(" ")[0],
        "governor": tree.read_value("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor") or "",
    }


def walked_memory(tree: Tree, cpu: int) -> int:
    """Bytes that do not fit into any cache of a CPU: twice its largest, within reason."""
    largest = 0
    for index in range(8):
        size = re.fullmatch(r"(\d+)([KMG]?)", tree.read_value("%s/index%d/size" % (_CACHE % cpu, index)) or "")
        if size:
            largest = max(largest, int(size.group(1)) * _SUFFIXES[size.group(2)])
    return min(max(2 * largest, _LEAST), _MOST)


def available_memory(tree: Tree) -> int | None:
    """Bytes that processes can get; None where the kernel does not say."""
    found = re.search(r"^MemAvailable:\s*(\d+) kB$", (tree.read_value("/proc/meminfo") or ""), re.MULTILINE)
    return int(found.group(1)) << 10 if found else None
