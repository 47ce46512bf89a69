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


def out_of_reach(tree: Tree, online: CPUSet) -> CPUSet:
    """Return the online CPUs that the topmost cgroup lacks, but for those of partitions; none where it is not known.

    Nor of a machine that is only asked about, whose cgroups are not those of the node.
    """
    try:
        if CPUSet.parse(tree.read_value(_ONLINE) or "") != online:
            return CPUSet()
        text = next(filter(None, map(tree.read_value, _TOPMOST)), None)
        lacking = CPUSet() if text is None else online - CPUSet.parse(text)
    except CPUManagerError:
        return CPUSet()
    if not lacking:
        return lacking
    # Imported here: on hardly any node is one lacking.
    from .partitions import owned_on

    return lacking - owned_on(tree)


def reach_notes(tree: Tree, online: CPUSet) -> list[str]:
    """Return a note on these CPUs, if there are any."""
    lacking = out_of_reach(tree, online)
    return [Note(OUT_OF_REACH, "%s; %s" % (_problem(lacking, online), REMEDY))] if lacking else []


def check_reach(tree: Tree, online: CPUSet) -> None:
    """Raise RefusedError where the kubelet would give containers CPUs on which nothing can run."""
    lacking = out_of_reach(tree, online)
    if lacking:
        raise RefusedError(_problem(lacking, online), where=tree.root, remedy=REMEDY, kind=OUT_OF_REACH)


def _problem(lacking: CPUSet, online: CPUSet) -> str:
    text = "this node is a container that has the CPUs %s alone, and its kubelet counts and assigns the CPUs %s, too"
    return text % (online - lacking, lacking)
