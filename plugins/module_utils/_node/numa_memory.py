# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The memory and huge pages of each NUMA node, as the kubelet sees them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Mapping, Sequence

from .._base.errors import InputError
from .._base.quantity import millis
from .._base.tree import Tree
from .._kubelet.start.amount import BINARY, Amount
from ..topology.model import Topology

if TYPE_CHECKING:
    from ..state.memory_manager import Amounts

_NODES = "/sys/devices/system/node"
# As cAdvisor reads them (utils/sysinfo/sysinfo.go).
_TOTAL = re.compile(r"MemTotal:\s*([0-9]{1,18}) kB")
_PAGES = re.compile(r"hugepages-([0-9]{1,18})kB")
_PAGES_OF = re.compile(r"hugepages-[0-9]{1,18}[KMGT]i")
_COUNT = re.compile(r"\s*([0-9]{1,18})")


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
    found = {}
    for name in names:
        size = _PAGES.fullmatch(name)
        count = _COUNT.match(tree.read_value("%s/%s/nr_hugepages" % (path, name)) or "")
        if size is None or count is None:
            return None
        bytes_each = int(size.group(1)) * 1024
        found["hugepages-" + str(Amount(bytes_each, 0, BINARY))] = int(count.group(1)) * bytes_each
    return found


def memory_for_plan(tree: Tree, topology: Topology) -> Amounts | None:
    """The same for a plan: None where it is not known, as of a kernel without NUMA, which does not say it by node."""
    return machine_memory(tree, topology)[0] if topology.numa else None


def given_memory(rows: Sequence[Mapping[str, Any]], where: str) -> dict[int, dict[str, int]]:
    """The same of a machine that is described: [{"numa_node", "amounts": {resource: quantity}}].

    where: what the rows are called. Raises InputError.
    """
    found: dict[int, dict[str, int]] = {}
    for number, row in enumerate(rows):
        place = "%s[%d]" % (where, number)
        if row["numa_node"] in found:
            raise InputError("NUMA node %d is there twice" % row["numa_node"], place)
        sizes = {"memory": 0}
        for name, quantity in row["amounts"].items():
            if name != "memory" and not _PAGES_OF.fullmatch(str(name)):
                raise InputError("%s is no memory" % name, place + ".amounts", "give memory, or such as hugepages-2Mi")
            try:
                sizes[str(name)] = millis(quantity) // 1000
            except InputError as error:
                raise error.within("%s.amounts.%s" % (place, name)) from error
        if min(sizes.values()) < 0 or 2 * sizes["memory"] < sum(sizes.values()):
            raise InputError("an amount is below 0, or more is huge pages than there is memory", place + ".amounts")
        found[row["numa_node"]] = sizes
    return found
