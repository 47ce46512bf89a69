# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What of a node decides on its pods beside CPUs: the memory and huge pages of its NUMA nodes, and its devices.

Memory is as the kubelet sees it. Which devices there are is said by whoever asks, who may have PCI devices of a vendor
and class counted, and by the kubelet's checkpoint of devices where containers have all of a resource.
Sources: cAdvisor's utils/sysinfo/sysinfo.go; the kernel's Documentation/ABI/testing/sysfs-bus-pci.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Iterable, Mapping, Sequence

from .._base.errors import InputError
from .._base.quantity import millis
from .._base.startup import Pattern
from .._base.tree import LARGEST_OF_KUBELET, Tree, is_number
from .._kubelet.configuration import HARD
from .._kubelet.distributions import KUBELET_ROOT
from .._kubelet.start.amount import BINARY, Amount
from ..cpuset import iterate_bits
from ..state.restored import DEVICES, DamageError, DeviceState, read_devices
from ..topology.model import Topology

if TYPE_CHECKING:
    from ..state.memory_manager import Amounts
    from .node import Node

_NODES = "/sys/devices/system/node"
# As cAdvisor reads them (utils/sysinfo/sysinfo.go).
_TOTAL = re.compile(r"MemTotal:\s*([0-9]{1,18}) kB")
_PAGES = re.compile(r"hugepages-([0-9]{1,18})kB")
_PAGES_OF = re.compile(r"hugepages-[0-9]{1,18}[KMGT]i")
_COUNT = re.compile(r"\s*([0-9]{1,18})")


def machine_memory(tree: Tree, topology: Topology) -> tuple[Amounts | None, str]:
    """Return the memory and huge pages of each NUMA node as the kubelet sees them, in bytes; else None, and why.

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
    """Return {resource: bytes}; none on a kernel without huge pages; None where the files are not as Linux has them."""
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
    """Return the same for a plan: None where it is not known, as of a kernel without NUMA, which does not say it by
    node."""
    return machine_memory(tree, topology)[0] if topology.numa else None


def given_memory(rows: Sequence[Mapping[str, Any]], where: str) -> dict[int, dict[str, int]]:
    """Return the same of a machine that is described: [{"numa_node", "amounts": {resource: quantity}}].

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


# The devices of a node, and all that is beside CPUs.


# Where the kernel lists PCI devices, and the files that are read of each.
PCI_DEVICES = "/sys/bus/pci/devices"
PCI_FILES = ("vendor", "class", "numa_node")
# What of its configuration decides beside the settings.
_FIELDS = (HARD, "mergeDefaultEvictionSettings", "featureGates")
_NO_DEVICES = DeviceState([], {})
_NOTHING = {"count": 0, "numa_nodes": []}
_VENDOR = Pattern(r"(?:0x)?([0-9a-f]{4})")
# The class alone, or with the subclass and the programming interface.
_CLASS = Pattern(r"(?:0x)?((?:[0-9a-f]{2}){1,3})")
_ID = Pattern(r"0x([0-9a-f]+)")


def beside_cpus(node: Node, devices: Sequence[Mapping[str, Any]], where: str) -> dict[str, Any]:
    """Return what is beside the CPUs as plain data; see the module admission_info. devices: as of
    with_pci_devices(). Raises InputError."""
    machine, nodes = node.machine(), [group.id for group in node.topology.numa_nodes]
    configuration, _problem = node.found()
    values = {} if configuration is None else configuration.values
    memory = memory_for_plan(node.tree, node.topology)
    found = with_pci_devices(devices, node.tree, where)
    named = {row["resource"] for row in found}
    for resource, masks in sorted(all_in_use(_device_state(node.tree), nodes).items()):
        if resource not in named:
            found += [{"resource": resource, **row} for row in rows_of(masks.values()) or [_NOTHING]]
    return {
        "memory": machine.memory,
        "huge_pages": machine.huge_pages,
        "numa_memory": None
        if memory is None
        else [{"numa_node": number, "amounts": dict(sizes)} for number, sizes in sorted(memory.items())],
        "numa_distances": node.topology.to_dict()["numa_distances"],
        "devices": found,
        "configuration": {name: values[name] for name in _FIELDS if values.get(name) is not None},
    }


def device_checkpoint(tree: Tree) -> bytes | None:
    """Return the kubelet's checkpoint of devices, which is there whatever its root directory is; None without one."""
    return tree.content("%s/%s" % (KUBELET_ROOT, DEVICES), LARGEST_OF_KUBELET)


def _device_state(tree: Tree) -> DeviceState:
    content = device_checkpoint(tree)
    try:
        return _NO_DEVICES if content is None else read_devices(content)
    except DamageError:
        # The kubelet passes over it, too.
        return _NO_DEVICES


def all_in_use(state: DeviceState, nodes: Sequence[int]) -> dict[str, dict[str, int]]:
    """Return {resource: {device: the mask of its NUMA nodes}} of those of which containers have all.

    Of a device that no container has, the checkpoint does not say where it is.
    """
    used = devices_in_use(state, nodes)
    return {
        resource: {name: used[resource][name] for name in names}
        for resource, names in state.registered.items()
        if set(names) <= set(used.get(resource, ()))
    }


def devices_in_use(state: DeviceState, nodes: Sequence[int]) -> dict[str, dict[str, int]]:
    """Return {resource: {device: the mask of its NUMA nodes}} of those that containers have."""
    used: dict[str, dict[str, int]] = {}
    for _pod_uid, _container, resource, places in state.owned:
        used.setdefault(resource, {}).update(device_masks(places, nodes))
    return used


def device_masks(places: Mapping[int, Iterable[str]], nodes: Sequence[int]) -> dict[str, int]:
    """Return {device: the mask of its NUMA nodes}, of those that the machine has."""
    found: dict[str, int] = {}
    for node, names in places.items():
        for name in names:
            found[name] = found.get(name, 0) | (1 << node if node in nodes else 0)
    return found


def rows_of(masks: Iterable[int]) -> list[dict[str, Any]]:
    """Return how many devices of each mask, as in the option `devices`."""
    counts: dict[int, int] = {}
    for mask in masks:
        counts[mask] = counts.get(mask, 0) + 1
    return [{"count": count, "numa_nodes": list(iterate_bits(mask))} for mask, count in sorted(counts.items())]


def with_pci_devices(rows: Sequence[Mapping[str, Any]], tree: Tree | None, where: str) -> list[dict[str, Any]]:
    """Return the rows of devices; in place of one with `pci_vendor`, perhaps `pci_class`, those that the node has of
    them.

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
        if not tree.exists(PCI_DEVICES):
            # As on a node that was saved before they were saved, too.
            continue
        counts: dict[int, int] = {}
        for name in tree.names(PCI_DEVICES):
            path = "%s/%s" % (PCI_DEVICES, name)
            if _id_of(tree, path + "/vendor") == vendor and _id_of(tree, path + "/class").startswith(kind):
                node = _node_of(tree, path)
                counts[node] = counts.get(node, 0) + 1
        # A resource of which there is none is known, too.
        for node, count in sorted(counts.items()) or [(-1, 0)]:
            found.append({"resource": row["resource"], "count": count, "numa_nodes": [] if node < 0 else [node]})
    return found


def _hexadecimal(row: Mapping[str, Any], name: str, pattern: Pattern, where: str) -> str:
    """Return the digits of an id, empty where it is not given."""
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
    """Return the NUMA node, -1 where the firmware does not say it."""
    text = tree.read_value(path + "/numa_node") or ""
    return int(text) if is_number(text) else -1
