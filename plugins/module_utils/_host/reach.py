# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which CPUs of a machine no process of the node can run on, and how much of their time it has, by its topmost cgroup.

It says less than /sys where the node is a container: /sys shows all CPUs of the machine there, and the kubelet counts
them. The topmost cgroup of a machine has no quota.
Source: "Cpuset Interface Files" and "CPU Interface Files" in Linux's Documentation/admin-guide/cgroup-v2.rst,
cgroup-v1/cpusets.rst, and scheduler/sched-bwc.rst.
"""

from __future__ import annotations

from .._base.errors import CPUManagerError, Note, RefusedError
from .._base.tree import Tree, is_number
from ..cpuset import CPUSet

OUT_OF_REACH = "cpus-out-of-reach"
REMEDY = (
    "give the container all CPUs of the machine (LXD: limits.cpu; Proxmox: cores; Docker, kind and k3d: --cpuset-cpus;"
    " systemd-nspawn: AllowedCPUs=), or run the kubelet in a virtual machine"
)
_QUOTA_REMEDY = (
    "take the quota off the container (Docker, kind and minikube: --cpus; LXD: limits.cpu.allowance; Proxmox: cpulimit;"
    " systemd-nspawn: CPUQuota=), or give no container exclusive CPUs there"
)
_ONLINE = "/sys/devices/system/cpu/online"
# In both versions of cgroups.
_TOPMOST = tuple(
    "/sys/fs/cgroup/" + name for name in ("cpuset.cpus.effective", "cpuset/cpuset.effective_cpus", "cpuset/cpuset.cpus")
)

# Of version 2, and the two files of version 1.
QUOTA_FILES = (
    "/sys/fs/cgroup/cpu.max",
    *(
        "/sys/fs/cgroup/%s/cpu.cfs_%s_us" % (place, name)
        for place in ("cpu", "cpu,cpuacct")
        for name in ("quota", "period")
    ),
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
    """Return a note on the CPUs that are out of reach, if there are any, and on a quota of all CPUs' time."""
    online, lacking = out_of_reach(tree)
    notes = ["%s; %s" % (_problem(lacking, online), REMEDY)] if lacking else []
    cpus = quota_of_all(tree)
    if cpus is not None and cpus < len(online - lacking):
        text = (
            "this node is a container that has the time of %g CPUs alone, by a quota, and its kubelet counts %d CPUs:"
            " also containers with exclusive CPUs wait for that quota; %s"
        )
        notes.append(text % (cpus, len(online), _QUOTA_REMEDY))
    return [Note(OUT_OF_REACH, note) for note in notes]


def quota_of_all(tree: Tree) -> float | None:
    """Return how many CPUs' time the node's topmost cgroup has; None without a quota."""
    version_2, *version_1 = (tree.read_value(path) for path in QUOTA_FILES)
    old = [value or "" for value in version_1]
    for pair in ((version_2 or "").split(), old[:2], old[2:]):
        if len(pair) == len(("quota", "period")) and all(map(is_number, pair)) and int(pair[1]):
            return int(pair[0]) / int(pair[1])
    return None


def check_reach(tree: Tree, asked_of: CPUSet, reserved: CPUSet | None = None) -> None:
    """Raise RefusedError where the kubelet would give containers CPUs on which nothing can run.

    asked_of: the online CPUs of the machine in question, which may be another one than the node. reserved: those that
    it gives to none, where they are chosen already.
    """
    online, lacking = out_of_reach(tree)
    if lacking - (reserved or CPUSet()) and online == asked_of:
        raise RefusedError(_problem(lacking, online), remedy=REMEDY, kind=OUT_OF_REACH)


def _problem(lacking: CPUSet, online: CPUSet) -> str:
    text = "this node is a container that has the CPUs %s alone, and its kubelet counts and assigns the CPUs %s, too"
    return text % (online - lacking, lacking)
