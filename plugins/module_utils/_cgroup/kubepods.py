# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The cgroups that the kubelet makes for pods and containers, by its names for them and for QoS classes.

Source: pkg/kubelet/cm/cgroup_manager_linux.go.
"""

from __future__ import annotations

import re
from typing import Iterator, NamedTuple

from .._base.errors import InputError
from .hierarchy import ROOT, Hierarchy, joined, name_of, parent_of

# The QoS classes of pods, apart from all else about pods: the code of cgroups needs only their names.


GUARANTEED = "Guaranteed"
BURSTABLE = "Burstable"
BEST_EFFORT = "BestEffort"


# The kubelet's drivers.
SYSTEMD, CGROUPFS = "systemd", "cgroupfs"

_SLICE = ".slice"
_KUBEPODS = "kubepods"
_QOS_NAMES = (("burstable", BURSTABLE), ("besteffort", BEST_EFFORT))
_CONTAINER = re.compile(r"(?:(cri-containerd|crio|docker)-)?([0-9a-f]{64})(?:\.scope)?")
# A name that is the id alone says nothing about the runtime.
_RUNTIMES = {"cri-containerd": "containerd", "crio": "cri-o", "docker": "docker", None: ""}
# In a scope, crun makes a cgroup of this name for the processes.
_CRUN_INNER = "container"


class PodCgroup(NamedTuple):
    """The cgroup of one pod."""

    pod_uid: str
    qos_class: str
    path: str


class ContainerCgroup(NamedTuple):
    """The cgroup of one container, or of a pod's sandbox, which has the same kind of name."""

    pod_uid: str
    qos_class: str
    id: str
    # "containerd", "cri-o", "docker"; empty where the name does not show it.
    runtime: str
    path: str
    # Where its processes are: a cgroup below, or the same.
    process_path: str


class Kubepods:
    """The cgroups of a kubelet's pods.

    Attributes:
        hierarchy: where they are.
        roots: the cgroups of all pods: of the systemd driver, then of cgroupfs. There can be both after a change of the
            driver.
        tops: the names, right below the topmost cgroup, of those that the roots are in, or will be: a kubelet that has
            not started yet makes them in a cgroup that is there already.

    `cgroup_root` is the kubelet's --cgroup-root: its name ("/a/b", of which the systemd driver makes
    a.slice/a-b.slice) or the path of the cgroup itself. Raises InputError where it leads out of the hierarchy.
    """

    def __init__(self, hierarchy: Hierarchy, cgroup_root: str = ROOT) -> None:
        self.hierarchy = hierarchy
        places = _places(cgroup_root)
        self.roots = [path for path in places if path in hierarchy.children(parent_of(path))]
        self.tops = frozenset(path.partition("/")[0] for path in places)

    def pods(self) -> dict[str, PodCgroup]:
        """Return the cgroups of pods by the pods' UIDs."""
        found: dict[str, PodCgroup] = {}
        for root in self.roots:
            for pod in self._pods_below(root):
                found.setdefault(pod.pod_uid, pod)
        return found

    def containers(self) -> dict[str, ContainerCgroup]:
        """Return the cgroups of containers and sandboxes by their ids."""
        found: dict[str, ContainerCgroup] = {}
        for pod in self.pods().values():
            for path in self.hierarchy.listed_children(pod.path):
                name = _CONTAINER.fullmatch(name_of(path))
                if name is None:
                    continue
                runtime, inner = _RUNTIMES[name.group(1)], joined(path, _CRUN_INNER)
                has_inner = name.group(1) is not None and self.hierarchy.has_child(inner)
                found[name.group(2)] = ContainerCgroup(
                    pod.pod_uid, pod.qos_class, name.group(2), runtime, path, inner if has_inner else path
                )
        return found

    def qos_cgroups(self, root: str) -> list[str]:
        """Return the cgroup of all pods, one of the roots, and those of the QoS classes right below it."""
        children = self.hierarchy.children(root)
        return [root, *(place for place, _before, _qos_class in _qos_places(root) if place in children)]

    def _pods_below(self, root: str) -> Iterator[PodCgroup]:
        systemd = root.endswith(_SLICE)
        end = _SLICE if systemd else ""
        for place, before, qos_class in _qos_places(root):
            for path in self.hierarchy.children(place):
                name = name_of(path)
                start = before + "pod"
                if name.startswith(start) and name.endswith(end):
                    uid = name[len(start) : len(name) - len(end)]
                    yield PodCgroup(uid.replace("_", "-") if systemd else uid, qos_class, path)


def driver_of(path: str) -> str:
    """Return by which driver the kubelet made a cgroup of a pod, or of all pods."""
    return SYSTEMD if path.endswith(_SLICE) else CGROUPFS


def container_id(name: str) -> str:
    """Return the id in the name of a container's or sandbox's cgroup; empty for any other name."""
    found = _CONTAINER.fullmatch(name)
    return found.group(2) if found else ""


def _places(cgroup_root: str) -> list[str]:
    """Return where the cgroup of all pods can be: of the systemd driver, then of cgroupfs."""
    names = [name for name in cgroup_root.split("/") if name]
    if ".." in names:
        raise InputError("leads out of the hierarchy", where="cgroup root %r" % cgroup_root)
    # The systemd driver: a dash in a name would begin another slice.
    slices = [name.replace("-", "_") for name in names] + [_KUBEPODS]
    expanded = ["-".join(slices[: end + 1]) + _SLICE for end in range(len(slices))]
    # The cgroup itself was given, and it may be a slice.
    stem = names[-1][: -len(_SLICE)] + "-" if names and names[-1].endswith(_SLICE) else ""
    places = [expanded, names + [stem + _KUBEPODS + _SLICE], names + [_KUBEPODS]]
    return list(dict.fromkeys("/".join(place) for place in places))


def _qos_places(root: str) -> list[tuple[str, str, str]]:
    """Return where the pods of each QoS class are, what their names begin with, and the class."""
    systemd = root.endswith(_SLICE)
    stem = name_of(root)[: -len(_SLICE)] + "-" if systemd else ""
    end = _SLICE if systemd else ""
    places = [(root, stem, GUARANTEED)]
    for name, qos_class in _QOS_NAMES:
        places.append((joined(root, stem + name + end), stem + name + "-" if systemd else "", qos_class))
    return places
