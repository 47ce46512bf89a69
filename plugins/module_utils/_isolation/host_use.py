# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the host's part of a node has used: all that runs in no pod. Counters, of which two readings give a rate.

Source: Linux's admin-guide/cgroup-v2.rst (cpu.stat, memory.current), accounting/psi.rst, cgroup-v1/cpuacct.rst.
"""

from __future__ import annotations

import re
from typing import Any, Sequence

from .._base.errors import CPUManagerError
from .._base.tree import is_number
from .._cgroup.hierarchy import ROOT, Hierarchy

_BOOT, _UPTIME = "/proc/sys/kernel/random/boot_id", "/proc/uptime"
_USAGE = re.compile(r"^usage_usec ([0-9]{1,18})$", re.MULTILINE)
_SOME = re.compile(r"^some .*total=([0-9]{1,18})$", re.MULTILINE)
_SYSTEM = "system.slice"


def host_use(hierarchy: Hierarchy, roots: Sequence[str]) -> dict[str, Any] | None:
    """The counters as the module throttling_info has them; None where they cannot be read. roots: those of pods."""
    tree = hierarchy.tree
    try:
        boot, uptime = tree.read_value(_BOOT) or "", (tree.read_value(_UPTIME) or "").split()
        total, pods = _usage(hierarchy, ROOT), [_usage(hierarchy, root) for root in roots]
        if not boot or not uptime or total is None or None in pods:
            return None
        found = {
            "boot": boot.strip()[:40],
            "uptime": float(uptime[0]),
            # Apart: a counter that begins anew would make the other one's part larger.
            "total_us": total,
            "pods_us": sum(part or 0 for part in pods),
            "pressure_us": _matched(_SOME, hierarchy, _SYSTEM, "cpu.pressure"),
            "memory_bytes": _memory(hierarchy, roots),
        }
    except (CPUManagerError, ValueError):
        return None
    return found


def _usage(hierarchy: Hierarchy, path: str) -> int | None:
    if hierarchy.version == 2:
        return _matched(_USAGE, hierarchy, path, "cpu.stat")
    text = hierarchy.value(path, "cpuacct.usage") or ""
    return int(text) // 1000 if is_number(text) else None


def _memory(hierarchy: Hierarchy, roots: Sequence[str]) -> int | None:
    """Of the cgroups beside those of pods; None with version 1, which has it elsewhere."""
    if hierarchy.version != 2:
        return None
    beside = [path for path in hierarchy.children(ROOT) if path not in roots]
    texts = [hierarchy.value(path, "memory.current") or "" for path in beside]
    return sum(int(text) for text in texts if is_number(text))


def _matched(pattern: re.Pattern[str], hierarchy: Hierarchy, path: str, name: str) -> int | None:
    found = pattern.search(hierarchy.value(path, name) or "")
    return None if found is None else int(found[1])
