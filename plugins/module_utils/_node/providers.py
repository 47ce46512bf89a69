# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What decides beside CPUs on the pods of a plan: the memory manager, devices, and what is not known of them. Pure.

Source: pkg/kubelet/cm/container_manager_linux.go: the device manager and the memory manager give the topology manager
hints as the CPU manager does, the DRA manager gives none. pkg/apis/core/v1/helper: which names are those of devices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator, Mapping, Sequence

from .._base.errors import InputError, option
from .._base.quantity import counted
from .._containers.pods import Pod
from .._kubelet.start.amount import BINARY, Amount
from ..cpuset import iterate_bits
from ..policy.devices import Device, DeviceManager, Owned
from ..policy.hints import NONE, HintProvider, OtherManagers
from ..policy.memory import StaticMemory, has_own_memory, is_memory, requested_memory
from ..state.memory_manager import MEMORY, REFUSED, STATIC, MemoryConfig, judge_memory, restore_memory
from ..state.restored import DamageError, DeviceState, read_devices
from .beside_cpus import all_in_use, device_masks, devices_in_use, rows_of

if TYPE_CHECKING:
    from .._kubelet.start.findings import Checked

# Whose names no device plugin may have.
_NATIVE = "kubernetes.io/"
_MEMORY = "memory (memory manager Static)"
# Above what any node has, so that a typing error cannot ask for a billion devices.
_MOST_DEVICES = 10000
_NO_DEVICES = DeviceState([], {})


class BesideCPUs:
    """The providers of hints of one plan beside the CPU manager, and what is said of them."""

    def __init__(self, others: OtherManagers, checked: Checked, minor: int, nodes: Sequence[int], policy: str) -> None:
        """Make the providers of hints beside the CPU manager. policy: the topology manager's.

        Raises InputError for memory or devices on other NUMA nodes than `nodes`, which are all.
        """
        self.policy = policy
        self.minor = minor
        self.notes: list[str] = []
        self.has_memory_manager = checked.memory_manager_policy == STATIC
        self._sizes = others.memory or {}
        if others.memory is not None and sorted(others.memory) != sorted(nodes):
            raise InputError(
                "there are the NUMA nodes %s, and the machine has %s" % (_listed(others.memory), _listed(nodes)),
                where=option("numa_memory"),
                remedy="give the memory of each NUMA node of the machine",
            )
        self.memory: StaticMemory | None = None
        if self.has_memory_manager and others.memory is not None:
            config = MemoryConfig(STATIC, checked.reserved_memory, minor, checked.pod_level, others.memory)
            self.memory = self._memory(config, others.memory_state)
        self.devices = self._devices(others, nodes)

    def _memory(self, config: MemoryConfig, content: bytes | None) -> StaticMemory:
        if content is None:
            return StaticMemory(config)
        judgement = judge_memory(content, config)
        if judgement.verdict != REFUSED:
            return StaticMemory(config, restore_memory(content, config))
        self.notes.append(
            "the kubelet would refuse the memory manager's state (%s); in this plan no pod has memory at first"
            % judgement.reason
        )
        return StaticMemory(config)

    def _devices(self, others: OtherManagers, nodes: Sequence[int]) -> DeviceManager:
        state = _NO_DEVICES
        if others.device_state is not None:
            try:
                state = read_devices(others.device_state)
            except DamageError as error:
                self.notes.append(
                    "the kubelet passes over its checkpoint of devices (%s); in this plan no pod has one at first"
                    % error
                )
        return device_manager(others.devices, nodes, state)

    @property
    def providers(self) -> list[HintProvider]:
        """The managers of which enough is known."""
        return [self.devices] if self.memory is None else [self.devices, self.memory]

    def owners(self) -> Iterator[tuple[str, Iterable[str]]]:
        """Yield (pod UID, containers) of those that have memory or devices."""
        for provider in self.providers:
            yield from provider.owners().items()

    def has_all(self, pod: Pod) -> bool:
        """Return whether the pod has memory and devices of its own, where it asks for them."""
        wants_memory = self.memory is not None and has_own_memory(pod, self.minor)
        if wants_memory and self.memory is not None and pod.uid not in self.memory.entries:
            return False
        names = self.devices.devices.keys() & set(pod.further_resources())
        return not names or pod.uid in self.devices.entries

    def memory_of(self, pod_uid: str) -> int:
        """Return the bytes of memory that a pod has of its own."""
        return sum(size for uid, _container, kind, size, _nodes in self._blocks() if (uid, kind) == (pod_uid, MEMORY))

    def capacity(self) -> dict[str, int]:
        """Return {huge pages of a size: thousandths of the bytes that the machine has}, as far as that is known."""
        found: dict[str, int] = {}
        for sizes in self._sizes.values():
            for kind, size in sizes.items():
                if kind != MEMORY:
                    found[kind] = found.get(kind, 0) + 1000 * size
        return found

    # --- what is not known -----------------------------------------------------------------------

    def limits(self, pods: Sequence[Pod], is_moved: bool) -> tuple[str, list[str]]:
        """Return from which pod on the plan is not exact, by its name, and why; "" and no reason where it is exact for
        all.

        is_moved: whether the topology manager decides on which NUMA nodes a pod gets its CPUs. Devices have to have
        been given out.
        """
        hints: set[str] = set()
        uncounted: set[str] = set()
        choices = {choice.pod: choice for choice in self.devices.choices} if self.policy != NONE else {}
        has_claims, first = False, ""
        for pod in pods:
            with_memory = self.has_memory_manager and has_own_memory(pod, self.minor)
            asked = {_MEMORY} if with_memory and self.memory is None else set()
            for name in filter(self._is_unknown, pod.further_resources()):
                gives_hints = with_memory if is_memory(name) else "/" in name and _NATIVE not in name
                (asked if gives_hints else uncounted).add(name)
                first = first or pod.name
            hints |= asked
            has_claims = has_claims or bool(pod.claims)
            if asked or pod.claims or pod.name in choices:
                first = first or pod.name
        if not is_moved:
            uncounted, hints = uncounted | hints, set()
        reasons = []
        if hints:
            reasons.append(
                "the topology manager (%s) also goes by the NUMA nodes of %s, which are not known here: a pod that asks"
                " for %s, and those after it, can get other CPUs or be refused"
                % (self.policy, _list(hints), _them(hints))
            )
        if uncounted:
            reasons.append(
                "%s %s not counted: the kubelet refuses a pod that cannot have %s, and then those after it can get"
                " other CPUs" % (_list(uncounted), "is" if len(uncounted) == 1 else "are", _them(uncounted))
            )
        if has_claims:
            reasons.append(
                "resourceClaims are not looked at: their drivers choose devices, and CPUs where one manages them"
            )
        reasons += [
            "container %s of pod %s gets some of several devices %s of different NUMA nodes, and their plugin or chance"
            " decides which" % (choice.container, choice.pod, choice.resource)
            for choice in choices.values()
        ]
        return (first, reasons) if reasons else ("", [])

    def _is_unknown(self, resource: str) -> bool:
        if is_memory(resource):
            return not any(resource in sizes for sizes in self._sizes.values())
        return resource not in self.devices.devices

    # --- what is said of a refusal, and of the end -------------------------------------------------

    def why(self, pod: Pod, container: str, resource: str, least: Callable[[Sequence[int], int], int]) -> str:
        """Return what was wanted of a resource, or of all kinds of memory, and what is free of it.

        container: "" for the pod as a whole; least: of how many NUMA nodes, by what each has in all, it could be.
        """
        who = "container %s" % container if container else "the pod"
        if is_memory(resource):
            return "%s wants %s" % (who, self._why_of_memory(requested_memory(pod, container), least))
        wanted = self.devices.requested(pod, container)[resource]
        masks = self.devices.devices[resource].values()
        free = [device.nodes for device in self.devices.free(resource)]
        nodes = sorted({node for nodes in masks for node in iterate_bits(nodes)})
        number = least([sum(1 for nodes in masks if nodes >> node & 1) for node in nodes], wanted)
        parts = ["%d of node %d" % (sum(1 for nodes in free if nodes >> node & 1), node) for node in nodes]
        amounts = wanted, resource, counted(number, "NUMA node"), ", ".join(parts)
        return "%s wants %d of %s of %s, and free are %s" % (who, *amounts)

    def _why_of_memory(self, wanted: Mapping[str, int], least: Callable[[Sequence[int], int], int]) -> str:
        machine = sorted({} if self.memory is None else self.memory.machine.items())

        def amounts(name: str, kind: str) -> list[int]:
            return [place["memoryMap"].get(kind, {}).get(name, 0) for _node, place in machine]

        number = max(least(amounts("allocatable", kind), size) for kind, size in wanted.items())
        free = [
            "%s of node %d" % (_amounts({kind: amounts("free", kind)[place] for kind in wanted}, len(wanted) > 1), node)
            for place, (node, _state) in enumerate(machine)
        ]
        groups = sorted({tuple(place["cells"]) for _node, place in machine if len(place["cells"]) > 1})
        together = "".join("; nodes %s serve together" % _listed(group) for group in groups)
        return "%s of %s, and free are %s%s" % (
            _amounts(wanted),
            counted(number, "NUMA node"),
            ", ".join(free),
            together,
        )

    def memory_report(self, names: Mapping[str, str]) -> dict[str, Any]:
        """Return what each NUMA node has left, and who has which blocks, as plain data; empty without the policy
        Static.

        names: {pod UID: name}
        """
        if self.memory is None:
            return {}
        return {
            "numa_nodes": [
                {
                    "node": node,
                    "group": sorted(place["cells"]),
                    **{
                        name: {kind: table[name] for kind, table in sorted(place["memoryMap"].items())}
                        for name in ("allocatable", "free")
                    },
                }
                for node, place in sorted(self.memory.machine.items())
            ],
            "containers": [
                {
                    "pod": names.get(uid, uid),
                    "uid": uid,
                    "container": container,
                    "type": kind,
                    "size": size,
                    "numa_nodes": nodes,
                }
                for uid, container, kind, size, nodes in self._blocks()
            ],
        }

    def devices_report(self, names: Mapping[str, str]) -> dict[str, Any]:
        """Return which devices are left, and who has which, as plain data; empty where none is known. names: as
        above."""
        manager = self.devices
        if not manager.devices:
            return {}
        return {
            "free": [
                {"resource": resource, **row}
                for resource in sorted(manager.devices)
                for row in rows_of(device.nodes for device in manager.free(resource))
            ],
            "containers": [
                {"pod": names.get(uid, uid), "uid": uid, "container": container, "resource": resource, **row}
                for uid, containers in sorted(manager.entries.items())
                for container, resources in sorted(containers.items())
                for resource, owned in sorted(resources.items())
                for row in rows_of(manager.devices[resource].get(name, 0) for name in owned)
            ],
        }

    def to_text(self) -> str:
        """Return a line for each container's memory and devices, to compare one state with another."""
        lines = [
            "pod %s, container %s: %s of %s, NUMA nodes %s" % (uid, container, _bytes(size), kind, _listed(nodes))
            for uid, container, kind, size, nodes in self._blocks()
        ]
        lines += [
            "pod %s, container %s: %d of %s, NUMA nodes %s"
            % (row["uid"], row["container"], row["count"], row["resource"], _listed(row["numa_nodes"]) or "none")
            for row in self.devices_report({}).get("containers", ())
        ]
        return "".join(line + "\n" for line in lines)

    def _blocks(self) -> list[tuple[str, str, str, int, list[int]]]:
        """Return (pod UID, container, kind of memory, bytes, NUMA nodes) of all blocks, sorted."""
        entries = {} if self.memory is None else self.memory.entries
        return sorted(
            (uid, container, block["type"], block["size"], list(block["numaAffinity"]))
            for uid, containers in entries.items()
            for container, blocks in containers.items()
            for block in blocks
        )


def device_manager(
    rows: Sequence[Mapping[str, Any]], nodes: Sequence[int], state: DeviceState = _NO_DEVICES
) -> DeviceManager:
    """Return the device manager of a node with these devices, as OtherManagers has them. state: what containers have of
    them.

    Raises InputError.
    """
    used = devices_in_use(state, nodes)
    found = {resource: _all_of(resource, given, used) for resource, given in _groups(rows, nodes).items()}
    for resource, masks in all_in_use(state, nodes).items():
        found.setdefault(resource, [Device(name, mask) for name, mask in masks.items()])
    owned = [
        Owned(pod_uid, container, resource, sorted(device_masks(places, nodes)))
        for pod_uid, container, resource, places in state.owned
    ]
    return DeviceManager(found, nodes, owned)


def _groups(rows: Sequence[Mapping[str, Any]], nodes: Sequence[int]) -> dict[str, dict[int, int]]:
    """Return {resource: {mask of NUMA nodes: how many devices}}. Raises InputError."""
    found: dict[str, dict[int, int]] = {}
    for number, row in enumerate(rows):
        where = option("devices[%d]" % number)
        if not 0 <= row["count"] <= _MOST_DEVICES:
            raise InputError("%d is no count from 0 to %d" % (row["count"], _MOST_DEVICES), where + ".count")
        unknown = sorted(set(row["numa_nodes"]) - set(nodes))
        if unknown:
            raise InputError(
                "NUMA node %d does not exist" % unknown[0], where + ".numa_nodes", "there are %s" % _listed(nodes)
            )
        groups = found.setdefault(row["resource"], {})
        mask = sum(1 << node for node in set(row["numa_nodes"]))
        groups[mask] = groups.get(mask, 0) + row["count"]
    return found


def _all_of(resource: str, groups: Mapping[int, int], used: Mapping[str, Mapping[str, int]]) -> list[Device]:
    """Return so many devices of each mask, those that containers have among them. Raises InputError where there are
    more."""
    found = [Device(name, mask) for name, mask in used.get(resource, {}).items()]
    for mask in sorted({*groups, *(device.nodes for device in found)}):
        taken = sum(1 for device in found if device.nodes == mask)
        if taken > groups.get(mask, 0):
            raise InputError(
                "containers have %d of %s of NUMA nodes %s, and %d are given"
                % (taken, resource, _listed(iterate_bits(mask)) or "none", groups.get(mask, 0)),
                option("devices"),
                "give all devices of the resource, also those that are in use",
            )
        found += [Device("%s#%d.%d" % (resource, mask, number), mask) for number in range(groups.get(mask, 0) - taken)]
    return found


def _amounts(sizes: Mapping[str, int], with_kinds: bool = True) -> str:
    """Return `90Gi of memory and 2Gi of hugepages-1Gi`, or without the kinds."""
    kinds = sorted(sizes, key=lambda kind: (kind != MEMORY, kind))
    return " and ".join(_bytes(sizes[kind]) + (" of " + kind if with_kinds else "") for kind in kinds)


def _bytes(size: int) -> str:
    return str(Amount(size, 0, BINARY))


def _listed(nodes: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(nodes)))


def _list(names: set[str]) -> str:
    *others, last = sorted(names)
    return "%s and %s" % (", ".join(others), last) if others else last


def _them(names: set[str]) -> str:
    return "it" if len(names) == 1 else "them"
