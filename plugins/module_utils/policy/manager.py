# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The CPU manager of one kubelet in memory, with the kubelet's own events: start, add, remove, restart.

Beside it, where they are given, the managers of memory and devices: all have a say in the admission of a pod.
Source: pkg/kubelet/cm/cpumanager/cpu_manager.go and pkg/kubelet/cm/topologymanager/scope_*.go.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Collection, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from .._base.errors import InputError
from .._containers.pods import Pod
from ..cpuset import CPUSet
from ..state.assignments import State
from ..state.formats import Format1, Format2
from ..state.writing import write_checkpoint
from .hints import CONTAINER, NONE, POD, Hint, HintProvider, TopologyManager
from .static import AllocationError, Policy, RunningState

TOPOLOGY_AFFINITY_ERROR = "TopologyAffinityError"
CPU = "cpu"


Asked = Tuple[str, List[Optional[Mapping[str, Optional[List[Hint]]]]]]


class Admission(NamedTuple):
    """What the kubelet says of a pod: whether it runs, or the reason and message of its refusal."""

    admitted: bool
    reason: str = ""
    message: str = ""
    # {container: affinity}, of those that the topology manager came to; empty for its policy none.
    affinity: Mapping[str, Hint] = MappingProxyType({})
    # (container, {resource: its hints} of each manager) as they were asked for, that of CPUs first; the container is ""
    # for a pod as a whole.
    hints: tuple[Asked, ...] = ()
    # The resources, such as cpu, memory, nvidia.com/gpu, that could not be aligned, or not with each other.
    not_aligned: tuple[str, ...] = ()
    # The container that the pod was refused for; "" for the pod as a whole.
    container: str = ""


class CPUManager:
    """Policy, state and topology manager of a node."""

    def __init__(
        self,
        policy: Policy,
        topology_manager: TopologyManager,
        state: State | None = None,
        others: Sequence[HintProvider] = (),
        kind: type[Format1] = Format2,
    ) -> None:
        """Start with a restored state, or as new. Raises StateError where the kubelet would not start.

        kind: the format of the file that it writes.
        """
        self.policy = policy
        self.topology_manager = topology_manager
        self.state = RunningState(state)
        self.policy.start(self.state)
        self.others = others
        self.kind = kind
        self.active: dict[str, Pod] = {}
        # Whether all pods have been heard of. Until then, as at a start, nobody's CPUs are taken back.
        self.is_ready = True

    def add(self, pod: Pod) -> Admission:
        """Return a pod arrives: it is admitted with its CPUs, or refused."""
        if pod.uid in self.active:
            raise InputError("its UID %s is on the node already" % pod.uid, where="pod %s" % pod.name)
        self.active[pod.uid] = pod
        admission = self._admit(pod)
        if not admission.admitted:
            del self.active[pod.uid]
        return admission

    def _admit(self, pod: Pod) -> Admission:
        manager = self.topology_manager
        affinity: dict[str, Hint] = {}
        asked: list[Asked] = []
        best = Hint(None, False)
        not_aligned: tuple[str, ...] = ()

        def is_admitted(container: str) -> bool:
            """Ask for the hints of a container, or of the pod as a whole (""), and merge them."""
            nonlocal best, not_aligned
            self.remove_stale()
            of_cpus = (
                self.policy.hints(self.state, pod, container) if container else self.policy.pod_hints(self.state, pod)
            )
            named = {CPU: of_cpus}
            of_all = [provider.hints(pod, container) for provider in self.others]
            hints = [None if of_cpus is None else {CPU: of_cpus}, *of_all]
            asked.append((container, hints))
            for found in hints:
                named.update(found or {})
            best, admitted = manager.merge(list(named.values()))
            if not admitted:
                not_aligned = manager.not_aligned(named)
            return admitted

        aligned = manager.policy != NONE
        if aligned and manager.scope == POD and not is_admitted(""):
            return _refused(pod, manager.scope, affinity, asked, not_aligned)
        names = [container.name for container in pod.containers]
        for name in [""] if self.is_whole(pod) else names:
            if aligned and manager.scope == CONTAINER and not is_admitted(name):
                return _refused(pod, manager.scope, affinity, asked, not_aligned)
            if aligned:
                affinity.update(dict.fromkeys([name] if name else names, best))
            self.remove_stale()
            try:
                self._allocate(pod, name, best)
            except AllocationError as error:
                # What was given until then, to this container and to earlier ones, stays theirs until the pod is found
                # to be gone.
                message = str(error)
                if error.reason == AllocationError.reason:
                    message = "Allocate failed due to %s, which is unexpected" % error
                refused = Admission(False, error.reason, message, affinity, tuple(asked), error.not_aligned)
                return refused._replace(container=name)
        return Admission(True, "", "", affinity, tuple(asked))

    def is_whole(self, pod: Pod) -> bool:
        """Return whether managers give to the pod as a whole, and divide that among its containers."""
        return self.topology_manager.policy != NONE and self.topology_manager.scope == POD and pod.is_divided

    def _allocate(self, pod: Pod, container: str, affinity: Hint) -> None:
        """Give a container, or with "" the pod as a whole, what each manager has for it."""
        before = [provider for provider in self.others if provider.is_first]
        after = [provider for provider in self.others if not provider.is_first]
        for provider in (*before, None, *after):
            if provider is None and container:
                self.policy.allocate(self.state, pod, container, affinity.mask)
            elif provider is None:
                self.policy.allocate_pod(self.state, pod, affinity.mask)
            elif container:
                provider.allocate(pod, container, affinity)
            else:
                provider.allocate_pod(pod, affinity)

    def remove(self, pod_uid: str, container: str) -> None:
        """Remove a container. (In the kubelet nothing else but a stale pod frees CPUs.)"""
        self.policy.remove(self.state, pod_uid, container)
        for provider in self.others:
            provider.remove(pod_uid, container)

    def delete(self, pod_uid: str) -> None:
        """Forget a pod that is gone; its CPUs are free when the kubelet next looks."""
        self.active.pop(pod_uid, None)

    def remove_stale(self) -> None:
        """Take back what containers have that no active pod has."""
        if not self.is_ready:
            return
        for pod_uid, container in self._stale(self.state.assignments):
            self.policy.remove(self.state, pod_uid, container)
        for provider in self.others:
            for pod_uid, container in self._stale(provider.owners()):
                provider.remove(pod_uid, container)

    def _stale(self, owners: Mapping[str, Collection[str]]) -> list[tuple[str, str]]:
        stale = []
        for pod_uid, containers in owners.items():
            pod = self.active.get(pod_uid)
            names = {container.name for container in pod.containers} if pod else set()
            stale += [(pod_uid, container) for container in containers if container not in names]
        return stale

    def cpus_of(self, pod_uid: str, container: str) -> CPUSet:
        """Return the CPUs that a container runs on: its own, or the shared pool."""
        mask = self.state.get(pod_uid, container)
        return CPUSet.from_mask(self.state.default if mask is None else mask)

    def checkpoint(self) -> bytes:
        """Return the file that the kubelet writes."""
        return write_checkpoint(self.policy.name, self.state.snapshot(), self.kind)


def _refused(
    pod: Pod,
    scope: str,
    affinity: dict[str, Hint],
    asked: list[Asked],
    not_aligned: tuple[str, ...],
) -> Admission:
    rest = affinity, tuple(asked), not_aligned, asked[-1][0]
    if pod.is_divided and scope == POD:
        message = "Pod Scope pod with pod-level resources failed admission under pod-scope topology manager"
        return Admission(False, TOPOLOGY_AFFINITY_ERROR, message, *rest)
    if pod.is_divided:
        said = "Pod Scope pod with pod-level resources failed admission with a container-level topology manager"
        return Admission(False, TOPOLOGY_AFFINITY_ERROR, said, *rest)
    return Admission(False, TOPOLOGY_AFFINITY_ERROR, "Resources cannot be allocated with Topology locality", *rest)
