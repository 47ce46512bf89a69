# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which CPUs of a machine no process of the node can run on: those that the node's topmost cgroup lacks.

That is so where the node is a container: /sys shows all CPUs of the machine there, and the kubelet counts them.
Source: "Cpuset Interface Files" in Linux's Documentation/admin-guide/cgroup-v2.rst, and cgroup-v1/cpusets.rst.
"""

from __future__ import annotations

from .._base.errors import CPUManagerError, Note, RefusedError
from .._base.tree import Tree
from ..cpuset import CPUSet

OUT_OF_REACH = "cpus-out-of-reach"
REMEDY = (
    "give the container all CPUs of the machine (LXD: limits.cpu; Proxmox: cores; Docker, kind and k3d: --cpuset-cpus;"
    " systemd-nspawn: AllowedCPUs=), or run the kubelet in a virtual machine"
)
_ONLINE = "/sys/devices/system/cpu/online"
# In both versions of cgroups.
_TOPMOST = tuple(
    "/sys/fs/cgroup/" + name for name in ("cpuset.cpus.effective", "cpuset/cpuset.effective_cpus", "cpuset/cpuset.cpus")
)


def out_of_reach(tree: Tree) -> tuple[CPUSet, CPUSet]:
    """Return the online CPUs, and those of them that the topmost cgroup lacks, but for those of partitions.

    Both are empty where that is not known.
    """
    try:
        online = CPUSet.parse(tree.read_value(_ONLINE) or "")
        text = next(filter(None, map(tree.read_value, _TOPMOST)), None)
        lacking = CPUSet() if text is None else online - CPUSet.parse(text)
    except CPUManagerError:
        return CPUSet(), CPUSet()
    if lacking:
        # Imported here: on hardly any node is one lacking.
        from .partitions import owned_on

        lacking -= owned_on(tree)
    return online, lacking


def reach_notes(tree: Tree) -> list[str]:
    """Return a note on the CPUs that are out of reach, if there are any."""
    online, lacking = out_of_reach(tree)
    return [Note(OUT_OF_REACH, "%s; %s" % (_problem(lacking, online), REMEDY))] if lacking else []


def check_reach(tree: Tree, asked_of: CPUSet) -> None:
    """Raise RefusedError where the kubelet would give containers CPUs on which nothing can run.

    asked_of: the online CPUs of the machine in question, which may be another one than the node.
    """
    online, lacking = out_of_reach(tree)
    if lacking and online == asked_of:
        raise RefusedError(_problem(lacking, online), remedy=REMEDY, kind=OUT_OF_REACH)


def _problem(lacking: CPUSet, online: CPUSet) -> str:
    text = "this node is a container that has the CPUs %s alone, and its kubelet counts and assigns the CPUs %s, too"
    return text % (online - lacking, lacking)
