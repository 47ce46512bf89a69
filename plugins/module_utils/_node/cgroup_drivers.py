# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""By which driver a kubelet and its container runtime make cgroups, and which pods are where the kubelet makes none."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .._base.errors import CPUManagerError, Note
from .._base.quantity import counted
from .._base.tree import Tree
from .._cgroup.kubepods import Kubepods
from .._runtime.runtime_files import CgroupDriver, cgroup_driver, docker_driver, find_runtime, with_version

if TYPE_CHECKING:
    from .container_cpus import Observed

# The first containerd, and the first kubelet, of which the latter takes the driver from the former.
_TELLS_DRIVER, _ASKS_DRIVER = (2, 0), 31
# Of pods, in a note.
_NAMED = 3


class Drivers(NamedTuple):
    """The driver of the kubelet's own configuration, and what is known of the runtime's.

    takes_theirs: whether the kubelet takes the runtime's driver in place of its own.
    """

    own: str
    theirs: CgroupDriver | None
    takes_theirs: bool


def drivers_of(
    tree: Tree, minor: int, own: str, endpoint: str, distribution: str, runtime_version: str | None
) -> Drivers:
    """Return the drivers of a node.

    own: what the kubelet is configured to. endpoint: the socket of its runtime, empty where that is not known.
    """
    try:
        if "docker" in endpoint:
            return Drivers(own, docker_driver(tree), False)
        runtime = with_version(tree, find_runtime(tree, endpoint or None, distribution, runtime_version))
        theirs = cgroup_driver(tree, runtime)
    except CPUManagerError:  # such as a file that cannot be read, which is said elsewhere
        return Drivers(own, None, minor >= _ASKS_DRIVER)
    tells = runtime.version is None or runtime.version >= _TELLS_DRIVER
    return Drivers(own, theirs, minor >= _ASKS_DRIVER and tells)


def moved_notes(drivers: Drivers, cgroup_root: str, observed: Observed) -> list[str]:
    """Return a note on the pods whose cgroups are not where this kubelet makes them: of another driver, or another
    root.

    It kills and makes anew what runs in a pod whose cgroup it does not find. Source: SyncPod in pkg/kubelet/kubelet.go.
    """
    theirs = "" if drivers.theirs is None else drivers.theirs.name
    driver = theirs if drivers.takes_theirs else drivers.own
    hierarchy = observed.hierarchy
    pods = {row.cgroup: row.pod or row.pod_uid for row in observed.running if driver not in ("", row.driver)}
    if cgroup_root:
        others = Kubepods(hierarchy).containers().values()
        pods.update({found.path: found.pod_uid for found in others})
    running = {path: pod for path, pod in pods.items() if not hierarchy.is_empty(path)}
    if not running:
        return []
    names = sorted(set(running.values()))
    text = (
        "the cgroups of %s (%s%s; one is /%s) are not where this kubelet makes them (%s): when it starts, it ends"
        " their containers and makes them anew; drain the node before, or set %s back"
    )
    more = "" if len(names) <= _NAMED else " and %d more" % (len(names) - _NAMED)
    field, value = ("cgroupRoot", cgroup_root) if cgroup_root else ("cgroupDriver", driver)
    where = "%s %s" % (field, value)
    what = (counted(len(names), "pod"), ", ".join(names[:_NAMED]), more, next(iter(running)), where, field)
    return [Note("pods-lost-at-restart", text % what)]
