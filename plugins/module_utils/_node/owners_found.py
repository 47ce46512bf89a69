# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who manages the CPUs of a node: what its files show, its kubelet, and those of its processes that count.

Any user may name a process as he likes, and whoever may make a pod gives it what environment he likes. So on a live
node only such a process counts that root has started: a service of the system, a program of root's, or in a pod one
that has the host's directory of NRI, which only an administrator of the cluster gives to a pod.
Sources: proc(5), cgroups(7); the mounts of the DaemonSets of dra-driver-cpu and nri-plugins.
"""

from __future__ import annotations

import os
import posixpath
from typing import TYPE_CHECKING, Iterable, Iterator

from .._base.errors import CPUManagerError, Note
from .._base.tree import Tree
from .._base.untrusted import opened_below
from .._cgroup.hierarchy import unescaped
from .._kubelet.installation import cgroups_of, in_pod, is_in_container, trusted_program, trusted_users
from .._owners.conflicts import contradictions, refusals, refuse
from .._owners.owners import (
    CLAIM,
    POD_PROGRAMS,
    PROGRAMS,
    RECONCILE,
    Facts,
    Owner,
    claims_of,
    find_owners,
)

if TYPE_CHECKING:
    from .._kubelet.configuration import Configuration
    from .node import Node

# A script is the third word of its process: "/usr/bin/python3 -Es /usr/sbin/tuned -l -P".
_FIRST_WORDS = 3
_ROOT = 0
_POLICY = "cpuManagerPolicy"
# Of the host, by which a pod's process can set cpusets: by the runtime, and by itself.
_OF_RUNTIME = ("/run/nri", "/run", "/run/containerd", "/run/crio")
_OF_CGROUPS = ("/sys/fs/cgroup", "/sys/fs/cgroup/cpuset")
# Enough to go by.
_MOST_CLAIMS = 3
_CLAIM = CLAIM.encode("ascii")


def owners_of(node: Node, configuration: Configuration | None = None) -> list[Owner]:
    """Return who manages CPUs on this node. configuration: the kubelet's, where it was read already."""
    if configuration is None:
        configuration = node.found()[0]
    policy, origin = ("", None) if configuration is None else configuration.given((_POLICY,))
    claims = claims_of(node.tree)
    facts = Facts(
        str(policy),
        _kubelet(node, origin),
        posixpath.dirname(node.checkpoint_path),
        _processes(node.tree),
        _claimants(node.tree, claims) if claims else (),
    )
    return find_owners(node.tree, facts)


def contradiction_notes(node: Node, configuration: Configuration | None, to_reconcile: bool = False) -> list[str]:
    """Return a note for each two owners of this node that contradict each other.

    to_reconcile: containers have other CPUs than the checkpoint, and a reconcile would write these back: so, whose
    they are, and that it would be refused beside them.
    """
    owners = owners_of(node, configuration)
    notes = ["%s; %s" % (found.text(), found.remedy) for found in contradictions(owners)]
    if to_reconcile and not any(owner.id == RECONCILE for owner in owners):
        notes += ["%s; %s" % (error.what, error.remedy) for error in refusals(owners, RECONCILE)]
    return [Note("two-owners", note) for note in notes]


def refuse_beside(node: Node, wanted: str, allowed: Iterable[str]) -> None:
    """Raise RefusedError where this owner may not come to those of this node. allowed: ids that are let be."""
    refuse(owners_of(node), wanted, allowed)


def _kubelet(node: Node, origin: str | None) -> tuple[str, ...]:
    """Return where the kubelet's policy shows: the file, or the flag in a file, and its process."""
    if origin is not None and not node.tree.live and origin.startswith(node.tree.root + "/"):
        origin = node.tree.node_path(origin)
    pid = None if node.installation is None else node.installation.pid
    return (*([origin] if origin is not None else []), *(["process %d" % pid] if pid is not None else []))


# --- processes ------------------------------------------------------------------------------------------------


def _processes(tree: Tree) -> dict[str, list[int]]:
    """Return {name of a program: the processes of it that count}."""
    found: dict[str, list[int]] = {}
    for pid in tree.numbered("/proc", ""):
        try:
            line = tree.read_value("/proc/%d/cmdline" % pid) or ""
        except CPUManagerError:
            continue  # it ended meanwhile
        for name in _names_in(line):
            if not tree.live or _counts(pid, name):
                found.setdefault(name, []).append(pid)
    return found


def _names_in(line: str) -> Iterator[str]:
    """Yield the programs of which a command line can be."""
    if not any(name in line for name in PROGRAMS):
        return
    words = {posixpath.basename(word) for word in line.split("\0")[:_FIRST_WORDS]}
    yield from (name for name in PROGRAMS if name in words)


def _counts(pid: int, name: str) -> bool:
    try:
        if not trusted_users(pid):
            return False
        groups = cgroups_of(str(pid))
        if is_in_container(pid) or in_pod(groups):
            return name in POD_PROGRAMS and _can_set_cpusets(pid)
        if any(_is_service(path, name) for path in groups):
            return True
        return name in os.path.basename(trusted_program(pid))
    except PermissionError:
        # Only root with all powers sees what belongs to root's processes.
        return os.geteuid() != _ROOT
    except (OSError, ValueError):
        return False  # it ended meanwhile


def _is_service(path: list[str], name: str) -> bool:
    """Return whether a cgroup is of the system's service of this name; a user's own manager is a service itself."""
    unit = "%s.service" % name
    return unit in path and all(above.endswith(".slice") for above in path[: path.index(unit)])


def _can_set_cpusets(pid: int) -> bool:
    """Return whether a process has such a directory of the host mounted, and not one of another place or of its own."""
    wanted = [(_stat(path), False) for path in _OF_RUNTIME] + [(_stat(path), True) for path in _OF_CGROUPS]
    with open("/proc/%d/mountinfo" % pid, encoding="utf-8", errors="surrogateescape") as file:
        # The third word is the device, the fifth the place, and the sixth has the options of the mount.
        mounts = [line.split(" ", 6)[2:6] for line in file]
    return any(
        device == "%d:%d" % (os.major(found.st_dev), os.minor(found.st_dev))
        and ("rw" in options.split(",") or not is_written)
        and _is_at(pid, unescaped(place), found)
        for found, is_written in wanted
        if found is not None
        for device, _root, place, options in mounts
    )


def _stat(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except OSError:
        return None


def _is_at(pid: int, place: str, wanted: os.stat_result) -> bool:
    """Return whether a process sees this directory at a place."""
    try:
        with opened_below("/proc/%d/root" % pid, place) as directory:
            return os.path.samestat(os.fstat(directory), wanted)
    except OSError:
        return False


def _claimants(tree: Tree, claims: frozenset[str]) -> list[int]:
    """Return some processes with an environment as the DRA driver gives it: containers that have CPUs of its claims."""
    found: list[int] = []
    for pid in tree.numbered("/proc", "") if tree.live else ():
        try:
            with open("/proc/%d/environ" % pid, "rb") as file:
                content = file.read()
        except OSError:
            continue
        if _CLAIM in content and not claims.isdisjoint(os.fsdecode(content).split("\0")):
            found.append(pid)
            if len(found) == _MOST_CLAIMS:
                break
    return found
