# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How many PCI devices of a vendor and class a node has on which NUMA node.

Source: the kernel's Documentation/ABI/testing/sysfs-bus-pci.
"""

from __future__ import annotations

from typing import Any, Mapping, Sequence

from .._base.errors import InputError
from .._base.startup import Pattern
from .._base.tree import Tree, is_number

_DEVICES = "/sys/bus/pci/devices"
_VENDOR = Pattern(r"(?:0x)?([0-9a-f]{4})")
# The class alone, or with the subclass and the programming interface.
_CLASS = Pattern(r"(?:0x)?((?:[0-9a-f]{2}){1,3})")
_ID = Pattern(r"0x([0-9a-f]+)")


def with_pci_devices(rows: Sequence[Mapping[str, Any]], tree: Tree | None, where: str) -> list[dict[str, Any]]:
    """The rows of devices; in place of one with `pci_vendor`, perhaps `pci_class`, those that the node has of them.

    tree: None for a machine that is only described. where: what the rows are called. Raises InputError.
    """
    found: list[dict[str, Any]] = []
    for number, row in enumerate(rows):
        place = "%s[%d]" % (where, number)
        if row["pci_vendor"] is None:
            if row["count"] is None:
                raise InputError("neither count nor pci_vendor is given", place, "say how many devices there are")
            found.append({name: row[name] for name in ("resource", "count", "numa_nodes")})
            continue
        if row["count"] is not None or row["numa_nodes"]:
            raise InputError("count and numa_nodes do not go with pci_vendor", place, "give one of the two")
        if tree is None:
            raise InputError("a machine that is described has no PCI devices", place, "give count and numa_nodes")
        vendor, kind = _hexadecimal(row, "pci_vendor", _VENDOR, place), _hexadecimal(row, "pci_class", _CLASS, place)
        if not tree.exists(_DEVICES):
            # As on a saved node, of which they are not known.
            continue
        counts: dict[int, int] = {}
        for name in tree.names(_DEVICES):
            path = "%s/%s" % (_DEVICES, name)
            if _id_of(tree, path + "/vendor") == vendor and _id_of(tree, path + "/class").startswith(kind):
                node = _node_of(tree, path)
                counts[node] = counts.get(node, 0) + 1
        # A resource of which there is none is known, too.
        for node, count in sorted(counts.items()) or [(-1, 0)]:
            found.append({"resource": row["resource"], "count": count, "numa_nodes": [] if node < 0 else [node]})
    return found


def _hexadecimal(row: Mapping[str, Any], name: str, pattern: Pattern, where: str) -> str:
    """The digits of an id, empty where it is not given."""
    text = row[name]
    if text is None:
        return ""
    match = pattern.fullmatch(str(text).lower())
    if not match:
        raise InputError("%r is no id of PCI" % text, "%s.%s" % (where, name), "write it as 10de, or 0302 for a class")
    return str(match.group(1))


def _id_of(tree: Tree, path: str) -> str:
    match = _ID.fullmatch(tree.read_value(path) or "")
    return str(match.group(1)) if match else ""


def _node_of(tree: Tree, path: str) -> int:
    """-1 where the firmware does not say it."""
    text = tree.read_value(path + "/numa_node") or ""
    return int(text) if is_number(text) else -1
