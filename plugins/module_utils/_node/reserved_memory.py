# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plan reservedMemory: how much of which NUMA node, so that a kubelet with the Static memory manager starts.

The kubelet wants the sum over the NUMA nodes to be, to the byte, the memory in kubeReserved, systemReserved and
evictionHard, which cannot have huge pages. It does not look at whether a NUMA node has so much.
Source: pkg/kubelet/cm/memorymanager/memory_manager.go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping, Sequence

from .._base.errors import ConfigurationError, InputError, NodeError, option
from .._kubelet.settings import STATIC_MEMORY, plan_settings
from .._kubelet.start.amount import BINARY, Amount
from .._kubelet.start.predict import predict_values
from .._kubelet.start.reservations import Reservations
from ..state.memory_manager import MEMORY
from .beside_cpus import machine_memory

if TYPE_CHECKING:
    from .node import Node

_MEBIBYTE = 1 << 20
_BY_HAND = "give %s a list" % option("reserved_memory")


def memory_settings(node: Node, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Return reserved_memory for what is wanted; nothing where no memory manager needs it, or the file cannot be read.

    Raises InputError.
    """
    where = option("reservation.memory")
    if "reserved_memory" in wanted:
        raise InputError("memory is planned and given, too: %s" % option("reserved_memory"), where, "omit one of them")
    try:
        plan = plan_settings(wanted, node.needed_configuration(), node.minor)
    except (ConfigurationError, NodeError):
        return {}  # who asks reports it
    if plan.settings["memory_manager_policy"] != STATIC_MEMORY:
        return {}
    values = predict_values(plan.configuration.values, node.machine(), plan.configuration.source).values
    try:
        return {"reserved_memory": planned_memory(node, values)}
    except InputError as error:
        raise error.within(where) from error


def planned_memory(node: Node, values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return reservedMemory for a kubelet of this node with the configuration `values`, flags included.

    It is of the NUMA nodes of the reserved CPUs, by how many each has. Raises InputError where it cannot be had.
    """
    reservations = Reservations(values, node.machine())
    total, (machine, unknown) = reservations.memory(), machine_memory(node.tree, node.topology)
    if total is None:
        raise InputError(
            "it is not known how much memory is reserved, as evictionHard is a share of the node's memory, or refused",
            remedy=_BY_HAND,
        )
    if machine is None or not node.topology.numa:
        raise InputError(unknown or "the kernel does not give the memory of NUMA nodes", remedy=_BY_HAND)
    exact = total.exact()
    if exact.denominator != 1 or not exact:
        what = "%s of memory is reserved, which reservedMemory cannot be" % (total,)
        remedy = "set %s to whole bytes" % option("system_reserved_memory")
        raise InputError(what, remedy=remedy)
    # The kubelet takes huge pages from a NUMA node's memory, too.
    room = {
        number: sizes[MEMORY] - sum(size for kind, size in sizes.items() if kind != MEMORY)
        for number, sizes in machine.items()
    }
    cpus = reservations.cpus or ()
    weights = {group.id: sum(1 for cpu in cpus if cpu in group.cpus) for group in node.topology.numa_nodes}
    shares = shared_memory(int(exact), room, weights)
    return [{"numaNode": number, "limits": {MEMORY: _text(size)}} for number, size in sorted(shares.items())]


def shared_memory(total: int, room: Mapping[int, int], weights: Mapping[int, int]) -> dict[int, int]:
    """Return {NUMA node: bytes}, `total` together: by weight, in whole mebibytes as far as it goes, and never beyond
    `room`.

    What nodes with a weight do not have is taken of the others, the first of them first. Raises InputError.
    """
    heaviest_first = sorted(room, key=lambda number: (not weights.get(number), number))
    whole = sum(weights.get(number, 0) for number in room)
    shares = {}
    for number in heaviest_first:
        share = total * weights.get(number, 0) // whole if whole else 0
        shares[number] = max(0, min(share // _MEBIBYTE * _MEBIBYTE, room[number]))
    rest = total - sum(shares.values())
    for number in heaviest_first:
        more = max(0, min(rest, room[number] - shares[number]))
        shares[number] += more
        rest -= more
    if rest:
        raise InputError(
            "%s of memory is reserved, and the NUMA nodes have %s beside huge pages"
            % (_text(total), _text(max(0, total - rest))),
            remedy="reserve less with kubeReserved and systemReserved",
        )
    return {number: share for number, share in shares.items() if share}


def memory_list(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the rows in one line of YAML."""
    return "[%s]" % ", ".join(
        "{numaNode: %d, limits: {memory: %s}}" % (row["numaNode"], row["limits"][MEMORY]) for row in rows
    )


def _text(size: int) -> str:
    return str(Amount(size, 0, BINARY))
