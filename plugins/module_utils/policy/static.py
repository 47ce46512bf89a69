# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The policies static and none: who has CPUs to itself. Others would be further classes like these.

Source: pkg/kubelet/cm/cpumanager/policy_static.go, Kubernetes 1.33 to 1.36, its oddities included. Pods that have CPUs
as a whole, of which their containers have parts (gate PodLevelResourceManagers): AllocatePod there, of 1.36.3.
"""

from __future__ import annotations

from typing import Mapping, NamedTuple

from .._base.errors import KubeletError
from .._containers.pods import INIT, Pod
from ..cpuset import CPUSet, count_bits
from ..state.acceptance import STATIC, CPUManagerConfig, check_state, first_state
from ..state.assignments import State
from ..topology.kubelet_view import CPUTopology
from .assignment import EXACT, TakeError, take_mask
from .hints import Hint, numa_masks
from .options import StaticOptions, check_machine
from .reservation import kubelet_reservation

# Before, a kubelet that starts does not look whether a pod has CPUs as a whole: it gives it others, and those that it
# had are nobody's. Source: the changelog of 1.38.0-alpha.1, pull request 141041; not replayed.
KEEPS_PODS_SINCE = 38

# The CPU manager's state while it runs: masks that change.


class RunningState:
    """`default` is the mask of the shared pool, `assignments` {pod UID: {container: mask}}; only methods change them.

    `pods` {pod UID: mask} has what pods were given as a whole, of which their containers have parts.
    `stored`: a method that changes the state was called. The kubelet then writes its file, even if nothing differs.
    """

    def __init__(self, state: State | None = None) -> None:
        self.default = 0
        self.stored = False
        self.assignments: dict[str, dict[str, int]] = {}
        self.pods: dict[str, int] = {}
        if state is not None:
            self.default = state.default_cpu_set.mask
            self.pods = {pod: cpus.mask for pod, cpus in state.pod_assignments.items()}
            for pod, containers in state.assignments.items():
                self.assignments[pod] = {container: cpus.mask for container, cpus in containers.items()}

    def set_default(self, mask: int) -> None:
        """Set the shared pool."""
        self.default = mask
        self.stored = True

    def get(self, pod_uid: str, container: str) -> int | None:
        """Return the mask that a container has for itself; None when it has none."""
        containers = self.assignments.get(pod_uid)
        return None if containers is None else containers.get(container)

    def set(self, pod_uid: str, container: str, mask: int) -> None:
        """Give a container a mask for itself; the shared pool is the caller's."""
        self.assignments.setdefault(pod_uid, {})[container] = mask
        self.stored = True

    def set_pod(self, pod_uid: str, mask: int) -> None:
        """Give a pod a mask as a whole; the shared pool is the caller's."""
        self.pods[pod_uid] = mask
        self.stored = True

    def delete(self, pod_uid: str, container: str) -> None:
        """Forget a container, and a pod without one."""
        containers = self.assignments[pod_uid]
        del containers[container]
        if not containers:
            del self.assignments[pod_uid]
        self.stored = True

    def snapshot(self) -> State:
        """Return the state as a value."""
        assignments = {
            pod: {container: CPUSet.from_mask(mask) for container, mask in containers.items()}
            for pod, containers in self.assignments.items()
        }
        pods = {pod: CPUSet.from_mask(mask) for pod, mask in self.pods.items()}
        return State(CPUSet.from_mask(self.default), assignments, pods)


# What a CPU manager policy is: another one is another file with a class like these.
#
# A policy holds no state of the node but what it remembers in memory; State is handed to it.


class AllocationError(Exception):
    """The policy cannot give a container its CPUs; the message is the kubelet's."""

    # The reason that the pod is refused with.
    reason = "UnexpectedAdmissionError"
    # The resources whose NUMA nodes do not fit, where the message does not say which.
    not_aligned: tuple[str, ...] = ()


class SMTAlignmentError(AllocationError):
    """Not a whole number of cores, or not enough of them."""

    reason = "SMTAlignmentError"


class EmptyPodPoolError(AllocationError):
    """The containers of a pod that have something for themselves leave nothing to those that share the rest."""

    reason = "EmptyPodSharedPoolError"


def check_pool(pod: Pod, budget: int, sizes: Mapping[str, int], resource: str = "cpu") -> None:
    """Raise EmptyPodPoolError where a pod with so much as a whole leaves nothing to a container that shares it.

    sizes: {container: what it is to have for itself} without those that share.
    Source: validatePodScopeResources in pkg/kubelet/cm/cpumanager/policy_static.go of 1.36.
    """
    used, is_shared = 0, False
    for container in pod.containers:
        size = sizes.get(container.name)
        if container.kind != INIT:
            used += size or 0
            is_shared = is_shared or size is None
        elif size is None and used >= budget:
            kind = "cpus" if resource == "cpu" else resource
            raise EmptyPodPoolError("pod rejected, pod has shared init containers but no %s available for them" % kind)
    if is_shared and used >= budget:
        rest = "cpus" if resource == "cpu" else "memory"
        raise EmptyPodPoolError(
            "pod rejected, sum of exclusive container %s requests equals pod budget, leaving no %s for shared"
            " containers" % (resource, rest)
        )


class PolicySummary(NamedTuple):
    """What a policy decided on at its start."""

    reserved: CPUSet = CPUSet()
    # All CPUs of the cores that have a reserved one.
    reserved_physical: CPUSet = CPUSet()
    # What can ever be given to containers for themselves.
    allocatable: CPUSet = CPUSet()


class Policy:
    """The interface. `affinity` is a mask of NUMA node ids, None for no preference."""

    name = ""
    summary = PolicySummary()

    def start(self, state: RunningState) -> None:
        """Check a restored state and make a new one complete. Raises StateError where the kubelet would not start."""
        raise NotImplementedError

    def allocate(self, state: RunningState, pod: Pod, container: str, affinity: int | None) -> None:
        """Give a container its CPUs, if it is to have any. Raises AllocationError, and nothing has changed."""
        raise NotImplementedError

    def allocate_pod(self, state: RunningState, pod: Pod, affinity: int | None) -> None:
        """Give a pod that is divided its CPUs as a whole, if it is to have any, and its containers their parts.

        Raises AllocationError; what the pod was given until then stays its own.
        """

    def remove(self, state: RunningState, pod_uid: str, container: str) -> None:
        """Take a container's CPUs back."""
        raise NotImplementedError

    def hints(self, state: RunningState, pod: Pod, container: str) -> list[Hint] | None:
        """Return the NUMA nodes that could serve a container. None: no preference; empty: it cannot be served."""
        raise NotImplementedError

    def pod_hints(self, state: RunningState, pod: Pod) -> list[Hint] | None:
        """Return the NUMA nodes that could serve a pod as a whole. None: no preference; empty: it cannot be served."""
        raise NotImplementedError


# The policy none: the kernel's scheduler has all CPUs for all containers.


class NonePolicy(Policy):
    """The policy none: no container has a CPU for itself."""

    name = "none"

    def start(self, state: RunningState) -> None:
        """Accept every state."""

    def allocate(self, state: RunningState, pod: Pod, container: str, affinity: int | None) -> None:
        """Give the container nothing."""

    def remove(self, state: RunningState, pod_uid: str, container: str) -> None:
        """Take nothing from the container."""

    def hints(self, state: RunningState, pod: Pod, container: str) -> list[Hint] | None:
        """Return no preference."""
        return None

    def pod_hints(self, state: RunningState, pod: Pod) -> list[Hint] | None:
        """Return no preference."""
        return None


def new_static_policy(
    topology: CPUTopology,
    options: StaticOptions,
    millicores: int,
    reserved_system_cpus: CPUSet,
    topology_manager_policy: str,
    minor: int,
    exact: bool = EXACT,
) -> StaticPolicy:
    """Return the policy as a kubelet makes it at its start. Raises KubeletError where it would not."""
    check_machine(options, topology, topology_manager_policy)
    reserved = kubelet_reservation(topology, millicores, options, reserved_system_cpus)
    unknown = reserved - topology.all_cpus()
    if unknown:
        raise KubeletError(
            "[cpumanager] unable to build the reserved physical CPUs from the reserved set: unknown CPU ID: %d"
            % unknown.first()
        )
    return StaticPolicy(topology, options, reserved, minor, exact)


class StaticPolicy(Policy):
    """The static policy of one kubelet."""

    name = STATIC
    # How many CPUs the shared pool keeps beside the reserved ones; the kubelet has no such rule.
    shared_minimum = 0

    def __init__(
        self, topology: CPUTopology, options: StaticOptions, reserved: CPUSet, minor: int, exact: bool = EXACT
    ) -> None:
        self.topology = topology
        self.options = options
        self.minor = minor
        self.exact = exact
        all_cpus = topology.all_cpus()
        self.config = CPUManagerConfig(STATIC, all_cpus, reserved, options.strict_cpu_reservation)
        self.summary = PolicySummary(reserved, topology.physical_cpus(reserved), all_cpus - reserved)
        self._reserved = reserved.mask
        self._numa_masks: list[tuple[int, int, int]] | None = None
        # What app containers of a pod may take over from its init containers. Only the last pod has such CPUs.
        self.reusable: dict[str, int] = {}
        self._counts: tuple[Pod | None, dict[str, int]] = (None, {})

    def start(self, state: RunningState) -> None:
        check_state(state.snapshot(), self.config)
        if not state.default and not state.assignments:
            state.set_default(first_state(self.config).default_cpu_set.mask)

    # --- giving and taking -----------------------------------------------------------------------

    def allocate(self, state: RunningState, pod: Pod, container: str, affinity: int | None) -> None:
        count = self._exclusive_counts(pod)[container]
        if not count:
            return
        # Before it is looked whether the container has its CPUs already, as in the kubelet: so a running pod can be
        # refused after a restart.
        if self.options.full_pcpus_only:
            self._check_whole_cores(state, count)
        mask = state.get(pod.uid, container)
        if mask is None:
            mask = self._take(state, count, affinity, self.reusable.get(pod.uid, 0))
            state.set_default(state.default & ~mask)
            state.set(pod.uid, container, mask)
        self._update_reusable(pod, container, mask)

    def allocate_pod(self, state: RunningState, pod: Pod, affinity: int | None) -> None:
        count, counts = pod.count_as_whole(self.minor), self._exclusive_counts(pod)
        if not count:
            return
        self._check_pool(pod, count)
        mask, kept = self._kept(state, pod), state.assignments.get(pod.uid, {})
        if not mask:
            if self.options.full_pcpus_only:
                self._check_whole_cores(state, count)
            mask, kept = self._take(state, count, affinity, 0), {}
            state.set_default(state.default & ~mask)
            state.set_pod(pod.uid, mask)
        for container, own in self._divided(pod, mask, counts).items():
            if container not in kept:
                state.set(pod.uid, container, own)

    def _kept(self, state: RunningState, pod: Pod) -> int:
        """Return what a pod keeps that has CPUs as a whole and is admitted anew; 0 where it is given others."""
        return state.pods.get(pod.uid, 0) if self.minor >= KEEPS_PODS_SINCE else 0

    def _check_pool(self, pod: Pod, budget: int) -> None:
        check_pool(pod, budget, {name: count for name, count in self._exclusive_counts(pod).items() if count})

    def _divided(self, pod: Pod, mask: int, counts: Mapping[str, int]) -> dict[str, int]:
        """Return {container: its part of the pod's CPUs}. Neither whole cores nor NUMA nodes are looked at within a
        pod."""
        parts: dict[str, int] = {}
        # What is left by sidecars and app containers; init containers before these have it once more.
        pool = mask
        for container in pod.containers:
            count = counts[container.name]
            try:
                part = parts[container.name] = self._take_by_topology(pool, count) if count else pool
            except TakeError as error:
                raise AllocationError(str(error)) from error
            if count and container.kind != INIT:
                pool &= ~part
        shared = [member.name for member in pod.containers if member.kind != INIT and not counts[member.name]]
        return {**parts, **dict.fromkeys(shared, pool)}

    def _check_whole_cores(self, state: RunningState, count: int) -> None:
        per_core = self.topology.cpus_per_core
        if count % per_core:
            raise SMTAlignmentError(
                "SMT Alignment Error: requested %d cpus not multiple cpus per core = %d" % (count, per_core)
            )
        available = count_bits(state.default & ~self.summary.reserved_physical.mask)
        if count > available:
            raise SMTAlignmentError(
                "SMT Alignment Error: not enough free physical CPUs: available physical CPUs = %d,"
                " requested CPUs = %d, CPUs per core = %d" % (available, count, per_core)
            )

    def _take(self, state: RunningState, count: int, affinity: int | None, reusable: int) -> int:
        allocatable = (state.default & ~self._reserved) | reusable
        try:
            result = 0
            if affinity is not None:
                aligned = allocatable & self._cpus_of_nodes(affinity)
                result = self._take_by_topology(aligned, min(count, count_bits(aligned)))
            return result | self._take_by_topology(allocatable & ~result, count - count_bits(result))
        except TakeError as error:
            raise AllocationError(str(error)) from error

    def _take_by_topology(self, available: int, count: int) -> int:
        return take_mask(self.topology, available, count, self.options, self.exact)

    def _cpus_of_nodes(self, nodes: int) -> int:
        cpus = self.topology.cpus_of_nodes(nodes)
        if self.options.align_by_socket:
            cpus = sum(socket for socket in self.topology.sockets.values() if socket & cpus)
        return cpus

    def _update_reusable(self, pod: Pod, container: str, mask: int) -> None:
        reusable = self.reusable.get(pod.uid, 0)
        kind = next(member.kind for member in pod.containers if member.name == container)
        self.reusable = {pod.uid: reusable | mask if kind == INIT else reusable & ~mask}

    def remove(self, state: RunningState, pod_uid: str, container: str) -> None:
        mask = state.get(pod_uid, container)
        if mask is None:
            return
        state.delete(pod_uid, container)
        if pod_uid in state.pods:
            # It goes back as a whole, with the last container.
            mask = 0 if pod_uid in state.assignments else state.pods.pop(pod_uid)
        for others in state.assignments.get(pod_uid, {}).values():
            mask &= ~others
        state.set_default(state.default | mask)

    def _exclusive_counts(self, pod: Pod) -> dict[str, int]:
        """Return how many CPUs each container is to have; remembered, because all containers of a pod come in turn."""
        counted, counts = self._counts
        if counted is not pod:
            counts = pod.exclusive_counts(self.minor)
            self._counts = (pod, counts)
        return counts

    # --- hints -----------------------------------------------------------------------------------

    def hints(self, state: RunningState, pod: Pod, container: str) -> list[Hint] | None:
        count = self._exclusive_counts(pod)[container]
        if not count:
            return None
        mask = state.get(pod.uid, container)
        if mask is not None:
            return self._hints_for(mask, 0, count) if count_bits(mask) == count else []
        return self._hints_for(state.default & ~self._reserved, self.reusable.get(pod.uid, 0), count)

    def pod_hints(self, state: RunningState, pod: Pod) -> list[Hint] | None:
        counts = self._exclusive_counts(pod)
        count = pod.count_as_whole(self.minor) if pod.is_divided else pod.at_once(counts)
        if not count:
            return None
        if pod.is_divided:
            try:
                self._check_pool(pod, count)
            except EmptyPodPoolError:
                return []
            if self._kept(state, pod):
                return self._hints_for(self._kept(state, pod), 0, count)
        assigned = 0
        for container in pod.containers:
            mask = state.get(pod.uid, container.name)
            if mask is not None:
                if count_bits(mask) != counts[container.name]:
                    return []
                assigned |= mask
        if count_bits(assigned) == count:
            return self._hints_for(assigned, 0, count)
        return self._hints_for(state.default & ~self._reserved, self.reusable.get(pod.uid, 0) | assigned, count)

    def _hints_for(self, available: int, reusable: int, count: int) -> list[Hint]:
        if self._numa_masks is None:
            # (mask of nodes, how many nodes, their CPUs), once: there can be 255 of them and more.
            self._numa_masks = [
                (nodes, count_bits(nodes), self.topology.cpus_of_nodes(nodes))
                for nodes in numa_masks(list(self.topology.numa_nodes))
            ]
        minimum = self.topology.num_numa_nodes
        found = []
        for nodes, size, cpus in self._numa_masks:
            if size < minimum and count_bits(cpus) >= count:
                minimum = size
            if reusable & ~cpus:
                continue
            # A CPU that is available and reusable counts twice, as in the kubelet.
            if count_bits(reusable & cpus) + count_bits(available & cpus) >= count:
                found.append((nodes, size))
        return [Hint(nodes, self._is_preferred(nodes, size, minimum)) for nodes, size in found]

    def _is_preferred(self, nodes: int, size: int, minimum: int) -> bool:
        if size == minimum:
            return True
        topology = self.topology
        if not self.options.align_by_socket or not topology.num_sockets:
            return False
        nodes_per_socket = topology.num_numa_nodes // topology.num_sockets
        if not nodes_per_socket:
            return False
        cpus = topology.cpus_of_nodes(nodes)
        touched = sum(1 for socket in topology.sockets.values() if socket & cpus)
        return touched == -(-minimum // nodes_per_socket)
