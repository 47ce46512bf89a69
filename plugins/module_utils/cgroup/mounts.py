# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where a node has the hierarchy of cgroups with a controller: cpuset, or cpu and cpuacct, which may be elsewhere."""

from __future__ import annotations

import re
from typing import Callable, Iterable, Mapping

from ..errors import NodeError
from ..tree import Tree

CPUSET, CPU, CPUACCT = "cpuset", "cpu", "cpuacct"
CPUS = "cpuset.cpus"

# By controller: the file by which v1 shows it.
_V1_FILES = {CPUSET: CPUS, CPU: "cpu.shares", CPUACCT: "cpuacct.usage"}

_USUAL = "/sys/fs/cgroup"
_V1_PLACES = {
    CPUSET: (_USUAL + "/cpuset",),
    CPU: (_USUAL + "/cpu,cpuacct", _USUAL + "/cpu"),
    CPUACCT: (_USUAL + "/cpu,cpuacct", _USUAL + "/cpuacct"),
}
_V2_PLACES = (_USUAL, _USUAL + "/unified")
# The second is what the first leads to, but a saved tree may have only one.
_MOUNTS = ("/proc/mounts", "/proc/self/mounts")


def find_controller(tree: Tree, controller: str = CPUSET) -> tuple[int, str]:
    """The version and the mount of the hierarchy with a controller, which is in one only. Raises NodeError."""
    mounts = mounted(tree, controller)
    places: Mapping[int, Iterable[str]] = {1: _V1_PLACES[controller], 2: _V2_PLACES} if mounts is None else mounts
    has_controller: dict[int, Callable[[str], bool]] = {
        1: lambda place: tree.exists("%s/%s" % (place, _V1_FILES[controller])),
        2: lambda place: controller in (tree.read_value(place + "/cgroup.controllers") or "").split(),
    }
    for version, candidates in places.items():
        for place in candidates:
            if has_controller[version](place):
                return version, place
    raise NodeError(
        "no %s controller in either version of cgroups" % controller,
        where=tree.path(_USUAL),
        remedy="is this a node's root directory, with its /sys, and has its kernel %s?"
        % ("cpusets" if controller == CPUSET else "the controller"),
    )


def mounted(tree: Tree, controller: str) -> dict[int, list[str]] | None:
    """{version: where its hierarchies are mounted}: of v1 those with the controller, of v2 all; the usual places first.

    None where the node has no list of mounts.
    """
    return next((_mounts(tree, path, controller) for path in _MOUNTS if tree.exists(path)), None)


def _mounts(tree: Tree, path: str, controller: str) -> dict[int, list[str]]:
    """As mounted() gives them, of one list of mounts."""
    found: dict[int, list[str]] = {1: [], 2: []}
    for line in tree.read_bytes(path).decode("utf-8", "surrogateescape").splitlines():
        fields = line.split(" ")
        if len(fields) < 4:
            continue
        place, kind, options = unescaped(fields[1]), fields[2], fields[3].split(",")
        # With noprefix, the files have other names.
        if kind == "cgroup" and controller in options and "noprefix" not in options:
            found[1].append(place)
        elif kind == "cgroup2":
            found[2].append(place)
    for places in found.values():
        places.sort(key=lambda place: not place.startswith(_USUAL))
    return found


def unescaped(text: str) -> str:
    """A mount point as the kernel escapes it: blanks and backslashes as three octal digits."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match.group(1), 8)), text)
