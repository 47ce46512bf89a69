# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""On which CPUs systemd's slices, and whatever else is at the top of the cgroups, may run, and what systemd is
configured to give them.

Source: Linux's Documentation/admin-guide/cgroup-v2.rst, systemd.resource-control(5), systemd-system.conf(5).
"""

from __future__ import annotations

from typing import Collection

from ..cgroup.hierarchy import EFFECTIVE, ROOT, Hierarchy, joined
from ..cgroup.mounts import CPUS
from ..cpuset import CPUSet
from ..errors import InputError, NodeError, RefusedError
from ..tree import Tree
from .layers import FIXED, LIST, SLICES, UNREADABLE, Setting
from .names import shown
from .reading import parsed, read_cpus
from .units import Configured, manager_settings, merged_cpus, unit_settings

_COMMAND_LINE = "/proc/cmdline"
_PARTITION = "cpuset.cpus.partition"
# What systemd can give CPUs.
UNITS = (".slice", ".scope", ".service")
# Those of systemd itself: the first is there from the start, the others while something runs in them.
SYSTEM_SLICE = "system.slice"
SYSTEMD_SLICES = (SYSTEM_SLICE, "machine.slice", "user.slice")
# The kernel's work for them takes a moment, and no process stays.
_WITHOUT_PROCESSES = (".mount", ".automount", ".swap", ".device")


def read_slices(tree: Tree, hierarchy: Hierarchy, above_pods: Collection[str]) -> list[Setting]:
    """The CPUs of each cgroup right below the topmost one, without those that lead to pods and without partitions.

    above_pods: the names of those that lead to pods, as Kubepods.tops has them. A cgroup without a file of its own, as
    the controller is not enabled there, has what the topmost one has. On v1 the topmost cgroup keeps the processes that
    nobody has moved, and so its children are FIXED.
    """
    found = []
    for child in _children(hierarchy):
        if child in above_pods or child.endswith(_WITHOUT_PROCESSES) or _is_partition(tree, hierarchy, child):
            continue
        found.append(_setting(tree, hierarchy, child))
    return found


def read_later_slices(tree: Tree, hierarchy: Hierarchy, above_pods: Collection[str]) -> list[Setting]:
    """Systemd's own slices that are not there, as it makes them: with the CPUs that its files will give them.

    None where systemd has no slices, and on v1, where it gives them no CPUs. above_pods: as for read_slices().
    """
    there = _children(hierarchy)
    if hierarchy.version == 1 or SYSTEM_SLICE not in there:
        return []
    later = [name for name in SYSTEMD_SLICES if name not in there and name not in above_pods]
    return [_later(tree, hierarchy, name) for name in later]


def _later(tree: Tree, hierarchy: Hierarchy, name: str) -> Setting:
    configured = allowed_cpus(tree, name)
    cpus = None if configured is None else configured.cpus
    return Setting(SLICES, name, joined(joined(hierarchy.mount, name), CPUS), "", cpus)


def _children(hierarchy: Hierarchy) -> list[str]:
    try:
        return hierarchy.children(ROOT)
    except (NodeError, RefusedError):
        return []


def _setting(tree: Tree, hierarchy: Hierarchy, child: str) -> Setting:
    place = joined(hierarchy.mount, child)
    path = joined(place, CPUS)
    name = shown(child.encode("utf-8", "surrogateescape"))
    problem = FIXED if hierarchy.version == 1 else ""
    try:
        text = tree.read_value(path) or ""
        # Only in v2 an empty one is no limit.
        cpus = parsed(text) if text or hierarchy.version == 1 else None
    except (InputError, NodeError, RefusedError):
        return Setting(SLICES, name, path, "", None, problem=UNREADABLE)
    effective = read_cpus(tree, joined(place, EFFECTIVE[hierarchy.version, CPUS]))
    if effective is None and cpus is None:
        effective = _all(hierarchy)
    return Setting(SLICES, name, path, text, cpus, LIST, effective, problem)


def _all(hierarchy: Hierarchy) -> CPUSet | None:
    try:
        return hierarchy.online_cpus()
    except (NodeError, RefusedError):
        return None


def _is_partition(tree: Tree, hierarchy: Hierarchy, child: str) -> bool:
    """Whether its CPUs are its own alone: nobody is kept off others there."""
    try:
        kind = tree.read_value("%s/%s/%s" % (hierarchy.mount, child, _PARTITION)) or ""
    except (NodeError, RefusedError):
        return False
    return kind in ("root", "isolated")


def allowed_cpus(tree: Tree, unit: str) -> Configured | None:
    """The AllowedCPUs= that the files of a unit give it; None where they give none."""
    return merged_cpus(unit_settings(tree, unit, "AllowedCPUs"))


def manager_affinity(tree: Tree) -> Configured | None:
    """The CPUAffinity= with which systemd and what it starts run; None where files and command line give none."""
    found = merged_cpus(manager_settings(tree, "CPUAffinity"))
    try:
        line = tree.read_value(_COMMAND_LINE) or ""
    except (NodeError, RefusedError):
        return found
    if "systemd.cpu_affinity" not in line:
        return found
    # Imported here: hardly any command line has it.
    from .kernel_line import parse_line

    values = [(_COMMAND_LINE, word.value) for word in parse_line(line) if word.name == "systemd.cpu_affinity"]
    return merged_cpus([(path, value) for path, value in values if value]) or found
