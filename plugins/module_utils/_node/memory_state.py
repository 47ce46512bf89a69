# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The memory manager's state of a node: what the kubelet makes of it, and what is to become of it."""

from __future__ import annotations

import errno
import os
import re
import stat
from typing import TYPE_CHECKING, Any, NamedTuple, Sequence

from .._base.errors import NodeError, RefusedError, option
from .._base.tree import LARGEST_OF_KUBELET

if TYPE_CHECKING:
    # Most nodes have no such state, or one that is not read: what it takes is compiled where it is read.
    from .._base.tree import Tree
    from .._kubelet.start.findings import Checked
    from ..state.memory_manager import Amounts, MemoryConfig, MemoryStateError
    from ..topology.model import Topology
    from .node import Node

_NODES = "/sys/devices/system/node"
# As cAdvisor reads them (utils/sysinfo/sysinfo.go).
_TOTAL = re.compile(r"MemTotal:\s*([0-9]{1,18}) kB")
_PAGES = re.compile(r"hugepages-([0-9]{1,18})kB")
_COUNT = re.compile(r"\s*([0-9]{1,18})")


class MemoryPlan(NamedTuple):
    """The file as it is, and why it has to go."""

    old: bytes | None
    # Why the kubelet would refuse it; empty: it stays.
    reason: str
    # [(pod UID, container)] that lose the memory of their own.
    owners: Sequence[tuple[str, str]] = ()
    # Why it cannot be determined whether the kubelet would refuse it.
    unknown: str = ""

    @property
    def changed(self) -> bool:
        """Whether the file is to be removed, for the kubelet to write a new one."""
        return bool(self.reason)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as modules return it."""
        verdict = "refused" if self.reason else "not judged" if self.unknown else "accepted"
        return {
            "verdict": "absent" if self.old is None else verdict,
            "reason": self.reason or self.unknown,
            "lost": [{"pod": pod, "container": container} for pod, container in self.owners],
        }


def memory_loss_error(path: str, memory: MemoryPlan) -> RefusedError | None:
    """Why the file is not to be removed while containers run; None where none loses memory. path: the file."""
    if not memory.owners:
        return None
    owners = ", ".join("pod %s, container %s" % owner for owner in memory.owners)
    return RefusedError(
        "the kubelet would refuse it (%s), and these containers would lose their memory: %s; nothing was written"
        % (memory.reason, owners),
        path,
        "drain the node and set %s: true" % option("discard_assignments"),
        kind="assignments",
    )


def plan_memory_state(old: bytes | None, config: MemoryConfig | None) -> MemoryPlan:
    """Remove a state that the kubelet would refuse with this configuration: it cannot be repaired from outside.

    config: None where the kubelet has no memory manager of a known policy.
    """
    if old is None or config is None:
        return MemoryPlan(old, "")
    from ..state.memory_manager import NOT_JUDGED, REFUSED, judge_memory, memory_owners

    verdict, reason, _restored = judge_memory(old, config)
    if verdict == NOT_JUDGED:
        return MemoryPlan(old, "", unknown=reason)
    return MemoryPlan(old, reason, memory_owners(old) if verdict == REFUSED else ())


def stored_state(tree: Tree, path: str) -> bytes | MemoryStateError | None:
    """What the kubelet reads at its start from a state's file; None where it writes a new one; or why it cannot read.

    A link to nothing is taken for no file. Raises NodeError where the file cannot be read here.
    """
    try:
        return tree.content(path, LARGEST_OF_KUBELET)
    except NodeError:
        said = _said_of(path, tree.path(path))
        if said is None:
            raise
    if not said:
        return None
    from ..state.memory_manager import MemoryStateError

    return MemoryStateError(said)


def _said_of(path: str, here: str) -> str | None:
    """What the kubelet says when it reads this; empty where there is nothing to read; None where it is not known."""
    try:
        return "read %s: is a directory" % path if stat.S_ISDIR(os.stat(here).st_mode) else None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            return "open %s: %s" % (path, os.strerror(error.errno).lower())
        return "" if error.errno == errno.ENOENT else None


def memory_config(node: Node, checked: Checked) -> MemoryConfig | None:
    """What the memory manager starts with; None where there is none of a known policy."""
    if checked.memory_manager_policy is None:
        return None
    from ..state.memory_manager import STATIC, MemoryConfig

    config = MemoryConfig(checked.memory_manager_policy, checked.reserved_memory, node.minor, checked.pod_level)
    if config.policy != STATIC:
        return config
    machine, unknown = machine_memory(node.tree, node.topology)
    return config._replace(machine=machine, unknown=unknown)


def machine_memory(tree: Tree, topology: Topology) -> tuple[Amounts | None, str]:
    """The memory and huge pages of each NUMA node as the kubelet sees them, in bytes; else None, and why.

    Source: cAdvisor's utils/sysinfo/sysinfo.go.
    """
    if not topology.numa:
        # Then each socket is a NUMA node, and one without memory.
        return {socket.id: {"memory": 0} for socket in topology.sockets}, ""
    found = {}
    for node in topology.numa_nodes:
        path = "%s/node%d" % (_NODES, node.id)
        text = tree.read_value(path + "/meminfo")
        total = _TOTAL.search(text or "")
        if total is None:
            return None, "%s/meminfo does not give the memory of NUMA node %d" % (tree.path(path), node.id)
        pages = _huge_pages(tree, path + "/hugepages")
        if pages is None:
            return None, "%s/hugepages does not give the huge pages of NUMA node %d" % (tree.path(path), node.id)
        found[node.id] = {**pages, "memory": int(total.group(1)) * 1024}
    return found, ""


def _huge_pages(tree: Tree, path: str) -> dict[str, int] | None:
    """{resource: bytes}; none on a kernel without huge pages; None where the files are not as Linux has them."""
    names = tree.names(path)
    if not names:
        return {}
    from .._kubelet.start.amount import BINARY, Amount

    found = {}
    for name in names:
        size = _PAGES.fullmatch(name)
        count = _COUNT.match(tree.read_value("%s/%s/nr_hugepages" % (path, name)) or "")
        if size is None or count is None:
            return None
        bytes_each = int(size.group(1)) * 1024
        found["hugepages-" + str(Amount(bytes_each, 0, BINARY))] = int(count.group(1)) * bytes_each
    return found
