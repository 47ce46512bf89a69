# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The device manager: which devices of plugins do pods get, and on which NUMA nodes are these? Pure.

A plugin may prefer some of its devices, and where it does not the kubelet takes any: which, is not known here. It
matters only where those to choose from are of different NUMA nodes; such choices are noted.
Source: pkg/kubelet/cm/devicemanager (manager.go, topology_hints.go, pod_devices.go), Kubernetes 1.33 to 1.36.
"""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import Collection, Iterable, Mapping, NamedTuple, Sequence

from .._containers.pods import INIT, Container, Pod
from ..cpuset import count_bits
from .hints import Hint, HintProvider, numa_masks
from .static import AllocationError

_MILLI = 1000


class Device(NamedTuple):
    """A device of a plugin. nodes: the mask of its NUMA nodes, 0 where the plugin says none."""

    name: str
    nodes: int = 0


class Owned(NamedTuple):
    """Devices of a resource that a container has."""

    pod_uid: str
    container: str
    resource: str
    devices: Sequence[str]


class PluginChoice(NamedTuple):
    """A container for which the kubelet takes some of several devices that are not all of the same NUMA nodes."""

    pod: str
    container: str
    resource: str


class DeviceManager(HintProvider):
    """The device manager of one kubelet with its state."""

    is_first = True

    def __init__(
        self, devices: Mapping[str, Collection[Device]], nodes: Sequence[int], owned: Iterable[Owned] = ()
    ) -> None:
        """Make the device manager. devices: the healthy ones of each resource; nodes: the ids of all NUMA nodes;
        owned: what is taken."""
        self.devices = {
            resource: {device.name: device.nodes for device in group} for resource, group in devices.items()
        }
        self._nodes = nodes
        # {pod UID: {container: {resource: names}}}
        self.entries: dict[str, dict[str, dict[str, set[str]]]] = {}
        for entry in owned:
            if entry.resource in self.devices:
                self._own(entry.pod_uid, entry.container, entry.resource, set(entry.devices))
        # Of the last pod alone: what its app containers may take over from its init containers, by resource.
        self.reusable: dict[str, dict[str, set[str]]] = {}
        self.choices: list[PluginChoice] = []
        # (pod UID, container) of those that run while a kubelet starts: they have their devices, whatever the plugins.
        self.running: Collection[tuple[str, str]] = ()

    # Only where they are asked for: with many nodes there are more than can be gone through.
    @cached_property
    def _masks(self) -> list[int]:
        return numa_masks(self._nodes)

    def owners(self) -> Mapping[str, Mapping[str, object]]:
        return self.entries

    def remove(self, pod_uid: str, container: str) -> None:
        containers = self.entries.get(pod_uid, {})
        containers.pop(container, None)
        if not containers:
            self.entries.pop(pod_uid, None)

    def free(self, resource: str) -> list[Device]:
        """Return the devices that no container has."""
        taken = {
            name
            for containers in self.entries.values()
            for owned in containers.values()
            for name in owned.get(resource, ())
        }
        return [Device(name, nodes) for name, nodes in self.devices[resource].items() if name not in taken]

    # --- giving ----------------------------------------------------------------------------------

    def allocate(self, pod: Pod, container: str, affinity: Hint) -> None:
        """Allocate devices to a container. What it is given before one of its resources runs short stays its own
        until its pod is gone."""
        reusable = self.reusable.get(pod.uid, {})
        self.reusable = {pod.uid: reusable}
        member = next(member for member in pod.containers if member.name == container)
        for resource, count in self._requests(member).items():
            self._allocate(pod, container, resource, count, affinity.mask)
        for resource, names in self._owned_by(pod.uid, container).items():
            own = reusable.setdefault(resource, set())
            reusable[resource] = own | names if member.kind == INIT else own - names

    def _allocate(self, pod: Pod, container: str, resource: str, count: int, affinity: int | None) -> None:
        own = self._owned_by(pod.uid, container).get(resource, set())
        needed = count - len(own)
        if own and needed:
            raise AllocationError(
                'pod "%s" container "%s" changed request for resource "%s" from %d to %d'
                % (pod.uid, container, resource, len(own), count)
            )
        if (pod.uid, container) in self.running:
            return
        if not self.devices[resource]:
            raise AllocationError("no healthy devices present; cannot allocate unhealthy devices %s" % resource)
        if not own <= self.devices[resource].keys():
            raise AllocationError(
                "previously allocated devices are no longer healthy; cannot allocate unhealthy devices %s" % resource
            )
        if not needed:
            return
        taking = _Taking(needed)
        again = self.reusable[pod.uid].get(resource, set())
        taking.take([Device(name, self.devices[resource][name]) for name in sorted(again)])
        if taking.needed:
            free = self.free(resource)
            if len(free) < taking.needed:
                raise AllocationError(
                    "requested number of devices unavailable for %s. Requested: %d, Available: %d"
                    % (resource, taking.needed, len(free))
                )
            for group in self._by_affinity(resource, free, affinity):
                taking.take(group)
        if taking.is_choice:
            self.choices.append(PluginChoice(pod.name, container, resource))
        self._own(pod.uid, container, resource, set(taking.taken))

    def _by_affinity(self, resource: str, free: Sequence[Device], affinity: int | None) -> list[list[Device]]:
        """Return those in the affinity come first; of the others a plugin may choose before those come that have
        nodes."""
        if affinity is None or not self._has_nodes(resource):
            return [list(free)]
        aligned = [device for device in free if device.nodes & affinity]
        return [aligned, [device for device in free if not device.nodes & affinity]]

    def _own(self, pod_uid: str, container: str, resource: str, names: set[str]) -> None:
        self.entries.setdefault(pod_uid, {}).setdefault(container, {}).setdefault(resource, set()).update(names)

    def _owned_by(self, pod_uid: str, container: str) -> Mapping[str, set[str]]:
        return self.entries.get(pod_uid, {}).get(container, {})

    def _requests(self, member: Container) -> dict[str, int]:
        """Return how many devices of each resource that is known; a plugin's cannot be given in parts."""
        limits = member.limits.items()
        return {name: -(-amount // _MILLI) for name, amount in sorted(limits) if amount and name in self.devices}

    # --- hints -----------------------------------------------------------------------------------

    def hints(self, pod: Pod, container: str) -> Mapping[str, list[Hint] | None]:
        members = [member for member in pod.containers if container in ("", member.name)]
        return {
            resource: self._hints_for(pod, members, resource, count, bool(container))
            for resource, count in self.requested(pod, container).items()
        }

    def requested(self, pod: Pod, container: str) -> dict[str, int]:
        """Return how many devices of each known resource a container asks for, or with "" the pod as a whole at
        once."""
        requests = {member.name: self._requests(member) for member in pod.containers}
        if container:
            return requests[container]
        return {
            resource: pod.at_once({name: own.get(resource, 0) for name, own in requests.items()})
            for resource in sorted({resource for own in requests.values() for resource in own})
        }

    def _hints_for(
        self, pod: Pod, members: Sequence[Container], resource: str, count: int, takes_over: bool
    ) -> list[Hint] | None:
        if not self._has_nodes(resource):
            return None
        own = {name for member in members for name in self._owned_by(pod.uid, member.name).get(resource, ())}
        masks = self.devices[resource]
        if own:
            if len(own) != count:
                return []
            return self._masks_with(resource, (masks.get(name, 0) for name in own), (), count)
        free = {device.name for device in self.free(resource)}
        again = self.reusable.get(pod.uid, {}).get(resource, set()) if takes_over else set()
        if len(free | again) < count:
            return []
        return self._masks_with(resource, (masks[name] for name in free), (masks[name] for name in again), count)

    def _masks_with(self, resource: str, free: Iterable[int], again: Iterable[int], count: int) -> list[Hint]:
        """Return the sets of NUMA nodes that touch enough devices, and all those that are taken over."""
        fewest, found = len(self._nodes), []
        # How many are of which nodes: there may be thousands of devices, and they are of few sets of nodes.
        everywhere, taken_over = Counter(self.devices[resource].values()), Counter(again)
        usable = Counter(free) + taken_over
        for mask in self._masks:
            if count_bits(mask) < fewest and _touched(everywhere, mask) >= count:
                fewest = count_bits(mask)
            if any(nodes and not nodes & mask for nodes in taken_over):
                continue
            if _touched(usable, mask) >= count:
                found.append(mask)
        return [Hint(mask, count_bits(mask) == fewest) for mask in found]

    def _has_nodes(self, resource: str) -> bool:
        return any(self.devices[resource].values())


def _touched(devices: Mapping[int, int], mask: int) -> int:
    """Return of how many devices a set of NUMA nodes has one. devices: {their mask: how many}."""
    return sum(number for nodes, number in devices.items() if nodes & mask)


class _Taking:
    """Devices that are taken, group after group."""

    def __init__(self, needed: int) -> None:
        self.needed = needed
        self.taken: list[str] = []
        self.is_choice = False

    def take(self, group: Sequence[Device]) -> None:
        if 0 < self.needed < len(group) and len({device.nodes for device in group}) > 1:
            self.is_choice = True
        # Whichever: here by NUMA node, those without one last, so that the answer is always the same.
        chosen = sorted(group, key=lambda device: (not device.nodes, device.nodes, device.name))[: self.needed]
        self.taken += [device.name for device in chosen]
        self.needed -= len(chosen)
