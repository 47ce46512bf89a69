# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The container runtime of a node's kubelet, and what its configuration becomes."""

from __future__ import annotations

from typing import Any, NamedTuple

from .._base.errors import CPUManagerError, NodeError
from .._base.files import FileChange
from .._base.tree import Tree
from .._cgroup.kubepods import CGROUPFS, SYSTEMD
from .._kubelet.start.findings import Finding, harmful
from .._runtime.runtime_files import (
    KIND,
    Runtime,
    find_runtime,
    plan,
    plan_absent,
    read_state,
    with_version,
)
from .cgroup_drivers import drivers_of
from .node import Node

PRESENT, ABSENT = "present", "absent"
# Of a new file.
_MODE = 0o644


class WantedRuntime(NamedTuple):
    """What is wanted of a runtime's configuration. version: the runtime's, where its program is not there to say it."""

    state: str = PRESENT
    nri: bool = True
    cdi: bool = True
    version: str | None = None


class RuntimeChange(NamedTuple):
    """A runtime, and the contents that its files get; none where they are as wanted."""

    runtime: Runtime
    contents: dict[str, bytes | None]
    found: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, as modules return it."""
        return {
            "kind": self.runtime.kind,
            "version": self.runtime.version_text(),
            "service": self.runtime.service,
            "files": sorted(self.contents),
            "found": self.found,
        }

    def file_changes(self, tree: Tree) -> list[FileChange]:
        """Return what is to be written. No backups are needed: the blocks say what was there, and CRI-O reads every
        file of its directory."""
        return [FileChange(tree.path(path), tree.content(path), new, _MODE) for path, new in self.contents.items()]


def runtime_of(node: Node, version: str | None = None) -> Runtime:
    """Return the runtime that the node's kubelet is configured to use. Raises RefusedError and InputError."""
    endpoint = node.runtime_endpoint(node.found()[0])
    distribution = "" if node.installation is None else node.installation.distribution.name
    return with_version(node.tree, find_runtime(node.tree, endpoint, distribution, version or node.runtime_version))


def version_of(node: Node) -> str:
    """Return the version of the node's runtime, as "2.1"; empty where it is not known."""
    try:
        return runtime_of(node).version_text()
    except CPUManagerError:
        return ""


_OUTCOMES = {
    SYSTEMD: "the runtime refuses the paths that the kubelet gives it, and no new container starts",
    CGROUPFS: "containers' cgroups are made behind systemd's back, which can move or reset them",
}


def driver_findings(node: Node) -> list[Finding]:
    """Return what is to be said of a runtime that makes cgroups by another driver than the kubelet does."""
    configuration = node.found()[0]
    endpoint = node.runtime_endpoint(configuration) or ""
    own = "" if configuration is None else str(configuration.given(("cgroupDriver",)).value)
    distribution = "" if node.installation is None else node.installation.distribution.name
    found = drivers_of(node.tree, node.minor, own, endpoint, distribution, node.runtime_version)
    theirs, takes_theirs = found.theirs, found.takes_theirs
    if theirs is None or theirs.name not in _OUTCOMES or not own or theirs.name == own or takes_theirs:
        return []
    cause = "the kubelet makes cgroups by the driver %s, and the container runtime by %s (%s): %s"
    remedy = "give both the same driver, on a host with systemd that one, then drain the node and restart both"
    return [harmful(cause % (own, theirs.name, theirs.origin, _OUTCOMES[theirs.name]), remedy, "cgroupDriver")]


def plan_runtime(node: Node, wanted: WantedRuntime) -> RuntimeChange:
    """Return what brings the runtime's configuration to what is wanted. Raises NodeError, RefusedError and
    InputError."""
    runtime = runtime_of(node, wanted.version)
    found = read_state(node.tree, runtime).to_dict()
    if wanted.state == PRESENT:
        contents = plan(node.tree, runtime, wanted.nri, wanted.cdi)
    else:
        contents = plan_absent(node.tree, runtime)
    for path in contents:
        check_regular(node.tree, path)
    return RuntimeChange(runtime, contents, found)


def check_regular(tree: Tree, path: str) -> None:
    """Raise NodeError where there is a link to nothing, which would be replaced by a file."""
    if tree.exists(path, follow=False) and not tree.exists(path):
        raise NodeError("is a link to nothing", where=tree.path(path), remedy="remove it", kind=KIND)
