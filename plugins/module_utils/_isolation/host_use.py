# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the host's part of a node has used: all that runs in no pod. Counters, of which two readings give a rate.

Source: Linux's admin-guide/cgroup-v2.rst (cpu.stat, memory.current), accounting/psi.rst, cgroup-v1/cpuacct.rst,
filesystems/proc.rst (meminfo). Memory is counted as by the kubelet, whose files of a cache count while they are in use:
pkg/kubelet/eviction, WorkingSet of cadvisor.
"""

from __future__ import annotations

import re
from typing import Any, Sequence

from .._base.errors import CPUManagerError
from .._base.tree import Tree, is_number
from .._cgroup.hierarchy import CPUACCT, MEMORY, ROOT, Hierarchy

_BOOT, _UPTIME, _MEMINFO = "/proc/sys/kernel/random/boot_id", "/proc/uptime", "/proc/meminfo"
_SECONDS = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,9})?) ")
_USAGE = re.compile(r"^usage_usec ([0-9]{1,18})$", re.MULTILINE)
_SOME = re.compile(r"^some .*total=([0-9]{1,18})$", re.MULTILINE)
_KIBIBYTES = re.compile(r"^(MemTotal|MemFree|Hugetlb): +([0-9]{1,15}) kB$", re.MULTILINE)
# By the version of cgroups: the memory of one, and what of it nobody has read for a while.
_USED = {1: "memory.usage_in_bytes", 2: "memory.current"}
_INACTIVE = {
    1: re.compile(r"^total_inactive_file ([0-9]{1,18})$", re.MULTILINE),
    2: re.compile(r"^inactive_file ([0-9]{1,18})$", re.MULTILINE),
}
_SYSTEM = "system.slice"


def host_use(hierarchy: Hierarchy, roots: Sequence[str]) -> dict[str, Any] | None:
    """Return the counters as the module throttling_info has them; None where they cannot be read. roots: those of
    pods."""
    tree = hierarchy.tree
    try:
        boot, uptime = tree.read_value(_BOOT) or "", _SECONDS.match(tree.read_value(_UPTIME) or "")
        # Version 1 may have it elsewhere.
        counting = hierarchy if hierarchy.version == 2 else Hierarchy(tree, CPUACCT)
        total, pods = _usage(counting, ROOT), [_usage(counting, root) for root in roots]
        if not boot or uptime is None or total is None or None in pods:
            return None
        found = {
            "boot": boot.strip()[:40],
            "uptime": float(uptime[1]),
            # Apart: a counter that begins anew would make the other one's part larger.
            "total_us": total,
            "pods_us": sum(part or 0 for part in pods),
            "pressure_us": _matched(_SOME, hierarchy, _SYSTEM, "cpu.pressure"),
            "memory_bytes": _memory(tree, roots),
        }
    except CPUManagerError:
        return None
    return found


def _usage(hierarchy: Hierarchy, path: str) -> int | None:
    if hierarchy.version == 2:
        return _matched(_USAGE, hierarchy, path, "cpu.stat")
    text = hierarchy.value(path, "cpuacct.usage") or ""
    return int(text) // 1000 if is_number(text) else None


def _memory(tree: Tree, roots: Sequence[str]) -> int | None:
    """Return what is in use, by the kernel too, without what is of pods; None where it cannot be read."""
    try:
        hierarchy = Hierarchy(tree, MEMORY)
        total, *pods = [_working_set(hierarchy, path) for path in (ROOT, *roots)]
    except CPUManagerError:
        return None
    if total is None or None in pods:
        return None
    found = total - sum(part or 0 for part in pods)
    return found if found >= 0 else None


def _working_set(hierarchy: Hierarchy, path: str) -> int | None:
    if path == ROOT and hierarchy.version == 2:
        # The topmost cgroup has no memory.current. Huge pages are kept from pods apart.
        sizes = {name: int(size) for name, size in _KIBIBYTES.findall(hierarchy.tree.read_value(_MEMINFO) or "")}
        used = 1024 * (sizes["MemTotal"] - sizes["MemFree"] - sizes["Hugetlb"]) if len(sizes) == 3 else None
    else:
        text = hierarchy.value(path, _USED[hierarchy.version]) or ""
        used = int(text) if is_number(text) else None
    inactive = _matched(_INACTIVE[hierarchy.version], hierarchy, path, "memory.stat")
    return None if used is None or inactive is None else used - inactive


def _matched(pattern: re.Pattern[str], hierarchy: Hierarchy, path: str, name: str) -> int | None:
    found = pattern.search(hierarchy.value(path, name) or "")
    return None if found is None else int(found[1])
