# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The memory manager's policy Static: of which NUMA nodes do Guaranteed pods get memory and huge pages? Pure.

A node serves containers that need it alone, or as one of a group those that need the whole group, never both. With the
policy None there is no such provider. Sizes are in bytes, and the state has the form of the kubelet's file.
Source: pkg/kubelet/cm/memorymanager/policy_static.go, Kubernetes 1.33 to 1.36, its oddities included. Pods that have
memory as a whole, of which their containers have parts (gate PodLevelResourceManagers): AllocatePod there, of 1.36.3.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Iterable, Iterator, Mapping, Sequence

from .._base.errors import KubeletError
from .._cgroup.kubepods import GUARANTEED
from .._containers.pods import APP, INIT, Container, Pod, Resources
from ..cpuset import count_bits, iterate_bits
from ..state.memory_manager import MEMORY, MemoryConfig, MemoryState, first_machine, write_memory
from .hints import Hint, HintProvider, numa_masks
from .static import KEEPS_PODS_SINCE, AllocationError, check_pool

_HUGE_PAGES = "hugepages-"
_MILLI = 1000
# Before, a container that shares its pod's memory has an entry without blocks.
_NO_SHARED_SINCE = 37

# Resource -> bytes.
Sizes = Mapping[str, int]


def is_memory(resource: str) -> bool:
    """Return whether the memory manager looks at a resource."""
    return resource == MEMORY or resource.startswith(_HUGE_PAGES)


def has_own_memory(pod: Pod, minor: int) -> bool:
    """Return whether the policy Static of the kubelet 1.`minor` serves the pod. A Guaranteed one always asks for
    memory."""
    return pod.qos(minor) == GUARANTEED and not pod.has_pod_level_resources(minor)


class StaticMemory(HintProvider):
    """The policy Static of one kubelet with its state.

    machine: {NUMA node: its part of the file}; entries: {pod UID: {container: [block]}}; pods: {pod UID: [block]}, of
    those that have some as a whole.
    """

    def __init__(self, config: MemoryConfig, state: MemoryState | None = None) -> None:
        """Make the policy. `state` is one that the kubelet accepts; without one, no memory is given. config.machine has
        to be known.

        Raises KubeletError where the kubelet would not start.
        """
        if not any(amounts.get(MEMORY) for amounts in config.reserved.values()):
            raise KubeletError("[memorymanager] you should specify the system reserved memory")
        self.config = config
        self.machine: dict[int, Any] = first_machine(config.machine or {}, config.reserved)
        self.entries: dict[str, dict[str, list[dict[str, Any]]]] = {}
        self.pods: dict[str, list[dict[str, Any]]] = {}
        if state is not None and state.machine:
            self.machine = state.machine
            self.entries = state.entries or {}
            self.pods = {uid: entry["memoryBlocks"] or [] for uid, entry in (state.pod_entries or {}).items()}
        # Of the last pod alone: {mask of nodes: what app containers may take over from its init containers of it}.
        self.reusable: dict[str, dict[int, dict[str, int]]] = {}

    @cached_property
    def _groups(self) -> dict[int, list[int]]:
        """{mask of nodes: these nodes}, small sets first."""
        return {mask: list(iterate_bits(mask)) for mask in numa_masks(list(self.machine))}

    def owners(self) -> Mapping[str, Mapping[str, object]]:
        return self.entries

    def state(self) -> bytes:
        """Return the file that the kubelet writes."""
        pods = {uid: {"memoryBlocks": blocks} for uid, blocks in self.pods.items()}
        return write_memory(self.config, self.machine, pods, self.entries)

    # --- giving and taking -----------------------------------------------------------------------

    def allocate(self, pod: Pod, container: str, affinity: Hint) -> None:
        if not has_own_memory(pod, self.config.minor):
            return
        member = next(member for member in pod.containers if member.name == container)
        blocks = self.entries.get(pod.uid, {}).get(container)
        if blocks is not None:
            self._update_reusable(pod, member, blocks)
            return
        requests = requested_memory(pod, container)
        # A Guaranteed container asks for memory; what is not known of it is not counted. What shares memory has none.
        if not requests and (not pod.is_divided or self.config.minor >= _NO_SHARED_SINCE):
            return
        nodes = self._groups[self._mask_for(pod, requests, affinity)]
        blocks = _blocks(nodes, requests)
        for kind, size in requests.items():
            self._reserve(nodes, kind, max(0, size - self._reusable(pod, _mask(nodes), kind)))
        self._update_reusable(pod, member, blocks)
        self.entries.setdefault(pod.uid, {})[container] = blocks
        self._take_over(pod, container, blocks)

    def allocate_pod(self, pod: Pod, affinity: Hint) -> None:
        if not has_own_memory(pod, self.config.minor):
            return
        if self._keeps(pod):
            return
        requests = requested_memory(pod, "")
        own = {member.name: requested_memory(pod, member.name) for member in pod.containers}
        for kind, size in requests.items():
            sizes = {member.name: own[member.name].get(kind, 0) for member in pod.containers if member.is_guaranteed}
            check_pool(pod, size, sizes, kind)
        nodes = list(self._groups[self._mask_for(pod, requests, affinity)])
        # It is not looked whether the pod has memory already: at a restart it is charged once more.
        self.pods[pod.uid] = _blocks(nodes, requests)
        for kind, size in requests.items():
            self._reserve(nodes, kind, size)
        left = dict(requests)
        parts: dict[str, Sizes] = {}
        for member in pod.containers:
            parts[member.name] = own[member.name] or dict(left)
            if member.kind != INIT:
                for kind, size in own[member.name].items():
                    left[kind] = left.get(kind, 0) - size
        for member in pod.containers:
            if member.kind != INIT and not own[member.name]:
                parts[member.name] = left
        self.entries[pod.uid] = {name: _blocks(nodes, sizes) for name, sizes in parts.items()}

    def _mask_for(self, pod: Pod, requests: Sizes, affinity: Hint) -> int:
        """Return the nodes that a container gets its memory from. Raises AllocationError."""
        best = affinity
        if best.mask is None:
            hints = self._hints_for(pod, requests)
            if not hints:
                text = "failed to get the default NUMA affinity, no NUMA nodes with enough memory is available"
                raise _refusal(text, requests)
            best = _best(hints)
            if affinity.preferred and not best.preferred:
                raise _refusal("failed to find the default preferred hint", requests)
        mask = best.mask or 0
        # What the pod could take over does not count here, as in the kubelet.
        if any(self._sum(self._groups[mask], kind, "free") < size for kind, size in requests.items()):
            wider = [hint for hint in self._hints_for(pod, requests) if not mask & ~(hint.mask or 0)]
            if not wider:
                raise _refusal("failed to find NUMA nodes to extend the current topology hint", requests)
            found = _best(wider)
            if best.preferred and not found.preferred:
                raise _refusal("failed to find the extended preferred hint", requests)
            mask = found.mask or 0
        if self._is_mixed(self._groups[mask]):
            raise _refusal("preferred hint violates NUMA node allocation", requests)
        return mask

    def _reserve(self, nodes: Sequence[int], kind: str, size: int) -> None:
        """Take so much of the nodes, of the first first."""
        for node in nodes:
            place = self.machine[node]
            place["numberOfAssignments"] += 1
            place["cells"] = list(nodes)
            if size:
                taken = min(size, place["memoryMap"][kind]["free"])
                _move(place["memoryMap"][kind], taken)
                size -= taken

    def _take_over(self, pod: Pod, container: str, blocks: Sequence[Mapping[str, Any]]) -> None:
        """Make the blocks of earlier init containers smaller by what this one has of the same nodes.

        So the sizes of a pod's blocks add up to what is reserved for it, though it is taken for reused more than once.
        """
        own = self.entries[pod.uid]
        for block in blocks:
            size = block["size"]
            for earlier in _init_containers_before(pod, container):
                for older in own.get(earlier, ()):
                    if older["type"] == block["type"] and sorted(older["numaAffinity"]) == block["numaAffinity"]:
                        taken = min(size, older["size"])
                        older["size"] -= taken
                        size -= taken

    def _update_reusable(self, pod: Pod, member: Container, blocks: Sequence[Mapping[str, Any]]) -> None:
        reusable = self.reusable.get(pod.uid, {})
        self.reusable = {pod.uid: reusable}
        for block in blocks:
            sizes = reusable.setdefault(_mask(block["numaAffinity"]), {})
            before = sizes.get(block["type"], 0)
            after = max(before, block["size"]) if member.kind == INIT else max(0, before - block["size"])
            sizes[block["type"]] = after

    def _keeps(self, pod: Pod) -> bool:
        """Return whether the pod has memory as a whole, and this is looked for."""
        return self.config.minor >= KEEPS_PODS_SINCE and pod.uid in self.pods

    def remove(self, pod_uid: str, container: str) -> None:
        containers = self.entries.get(pod_uid, {})
        if container not in containers:
            return
        blocks = containers.pop(container)
        if pod_uid in self.pods:
            # It goes back as a whole, with the last container.
            blocks = [] if containers else self.pods.pop(pod_uid)
        for block in blocks:
            size = block["size"]
            for node in block["numaAffinity"]:
                place = self.machine[node]
                place["numberOfAssignments"] -= 1
                if not place["numberOfAssignments"]:
                    place["cells"] = [node]
                if size:
                    given = min(size, place["memoryMap"][block["type"]]["reserved"])
                    _move(place["memoryMap"][block["type"]], -given)
                    size -= given
        if not containers:
            del self.entries[pod_uid]

    # --- hints -----------------------------------------------------------------------------------

    def hints(self, pod: Pod, container: str) -> Mapping[str, list[Hint] | None] | None:
        if not has_own_memory(pod, self.config.minor):
            return None
        try:
            requests = requested_memory(pod, container)
        except AllocationError:
            # A request that cannot be read: no preference, and then the allocation fails.
            return None
        own = self.entries.get(pod.uid, {})
        if not container and self._keeps(pod):
            return _again(self.pods[pod.uid], requests)
        for member in pod.containers:
            if container in ("", member.name) and member.name in own:
                return _again(own[member.name], requests)
        found = self._hints_for(pod, requests)
        # Where nothing fits the kubelet takes it for no preference, admits, and fails to allocate.
        return dict.fromkeys(sorted(requests, key=lambda kind: kind != MEMORY), found) if found else {}

    def _hints_for(self, pod: Pod, requests: Sizes) -> list[Hint]:
        """Return the groups of nodes that have enough; of all kinds of memory the same ones."""
        if not requests:
            return []
        fewest, found = len(self.machine), []
        for mask, nodes in self._groups.items():
            if any(self._sum(nodes, kind, "allocatable") < size for kind, size in requests.items()):
                continue
            # Also where this group is taken: that is how few could do.
            fewest = min(fewest, len(nodes))
            if self._is_mixed(nodes) or (len(nodes) == 1 and len(self.machine[nodes[0]]["cells"]) > 1):
                continue
            if all(
                self._sum(nodes, kind, "free") + self._reusable(pod, mask, kind) >= size
                for kind, size in requests.items()
            ):
                found.append(mask)
        return [Hint(mask, count_bits(mask) == fewest) for mask in found]

    def _is_mixed(self, nodes: Sequence[int]) -> bool:
        """Return whether a node of a group serves alone, or with others than these."""
        return len(nodes) > 1 and any(
            self.machine[node]["numberOfAssignments"] and sorted(self.machine[node]["cells"]) != nodes for node in nodes
        )

    def _sum(self, nodes: Sequence[int], kind: str, name: str) -> int:
        """Return the sum over the nodes. A node without pages of a size has none of them; a kubelet that is asked
        for them panics."""
        tables = (self.machine[node]["memoryMap"].get(kind) for node in nodes)
        return sum(table[name] for table in tables if table is not None)

    def _reusable(self, pod: Pod, mask: int, kind: str) -> int:
        return self.reusable.get(pod.uid, {}).get(mask, {}).get(kind, 0)


def _refusal(text: str, kinds: Iterable[str]) -> AllocationError:
    error = AllocationError("[memorymanager] " + text)
    error.not_aligned = tuple(sorted(kinds))
    return error


def _blocks(nodes: Sequence[int], sizes: Sizes) -> list[dict[str, Any]]:
    return [{"numaAffinity": list(nodes), "type": kind, "size": size} for kind, size in sorted(sizes.items())]


def _requests(amounts: Resources) -> dict[str, int]:
    """Raise AllocationError for a part of a byte, which the API accepts."""
    found = {}
    for kind, amount in amounts.items():
        if is_memory(kind):
            if amount % _MILLI:
                raise _refusal("failed to represent quantity as int64", ())
            found[kind] = amount // _MILLI
    return found


def requested_memory(pod: Pod, container: str) -> dict[str, int]:
    """Return {kind of memory: bytes} that a container asks for, or with "" the pod as a whole at once.

    Of a pod only what its app containers ask for counts, or what it asks for as a whole, where it is divided: then a
    container that shares this asks for nothing. Raises AllocationError for a part of a byte.
    """
    if container:
        member = next(member for member in pod.containers if member.name == container)
        return {} if pod.is_divided and not member.is_guaranteed else _requests(member.requests)
    if pod.is_divided and pod.pod_level is not None:
        return _requests(pod.pod_level[0])
    requests = {member.name: _requests(member.requests) for member in pod.containers}
    of_apps = [kind for member in pod.containers if member.kind == APP for kind in requests[member.name]]
    return {
        kind: pod.at_once({name: own.get(kind, 0) for name, own in requests.items()}) for kind in dict.fromkeys(of_apps)
    }


def _again(blocks: Sequence[Mapping[str, Any]], requests: Sizes) -> dict[str, list[Hint] | None] | None:
    """Return the hints of a container that has its memory already: those nodes, or no preference where it asks for
    more."""
    if {block["type"]: block["size"] for block in blocks} != dict(requests) or len(blocks) != len(requests):
        return None
    return {block["type"]: [Hint(_mask(block["numaAffinity"]), True)] for block in blocks}


def _init_containers_before(pod: Pod, container: str) -> Iterator[str]:
    for member in pod.containers:
        if member.name == container or member.kind == APP:
            return
        if member.kind == INIT:
            yield member.name


def _best(hints: Sequence[Hint]) -> Hint:
    return min(hints, key=lambda hint: (not hint.preferred, count_bits(hint.mask or 0), hint.mask or 0))


def _mask(nodes: Sequence[int]) -> int:
    return sum({1 << node for node in nodes})


def _move(table: dict[str, int], size: int) -> None:
    table["reserved"] += size
    table["free"] -= size
