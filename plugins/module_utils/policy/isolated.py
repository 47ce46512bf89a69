# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The policy isolated: exclusive CPUs are those that the kernel isolates, and nobody shares these. Pure.

Source of what "isolated" means: isolcpus= in Linux's Documentation/admin-guide/kernel-parameters.txt and
cpuset.cpus.partition in Documentation/admin-guide/cgroup-v2.rst. The kernel balances no load over isolated CPUs, so
a container whose set has several of them and shares them gets little of them but the one its threads are on.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Sequence

from .._base.errors import InputError
from .._cgroup.kubepods import GUARANTEED
from .._containers.pods import APP, Container, Pod
from ..cpuset import CPUSet
from ..state.acceptance import StateError
from ..topology.kubelet_view import CPUTopology
from .assignment import SAFE
from .dynamic import Decision
from .dynamic_state import DynamicState, Held, Key, WantedContainer, moves_between, view_of
from .hints import Hint
from .options import StaticOptions
from .static import AllocationError, PolicySummary, RunningState, StaticPolicy

ISOLATED = "isolated"


class IsolatedPolicy(StaticPolicy):
    """Gives exclusive CPUs out as the static policy does, all of them of the isolated ones.

    The shared pool is what is not isolated, whoever comes and goes. Raises InputError where that is not possible.
    """

    name = ISOLATED

    def __init__(
        self, topology: CPUTopology, options: StaticOptions, reserved: CPUSet, isolated: CPUSet, minor: int
    ) -> None:
        isolated &= topology.all_cpus()
        shared = topology.all_cpus() - isolated
        if not isolated:
            raise InputError(
                "the kernel isolates no CPU", remedy="boot with isolcpus=, or use the policy static or dynamic"
            )
        if not shared:
            raise InputError("the kernel isolates all CPUs, and the shared pool would be empty")
        if reserved - shared:
            raise InputError(
                "the reserved CPUs %s are isolated or not there" % (reserved - shared),
                remedy="reserve some of %s" % shared,
            )
        super().__init__(topology, options, reserved, minor, SAFE)
        self.isolated, self.shared = isolated, shared
        self.summary = PolicySummary(reserved, topology.physical_cpus(reserved), isolated)

    def start(self, state: RunningState) -> None:
        """Raise StateError where the state is that of other CPUs."""
        if not state.default and not state.assignments:
            state.set_default(self.shared.mask)
        found = state.snapshot()
        if found.default_cpu_set != self.shared:
            raise StateError("the shared pool is %s, and not isolated are %s" % (found.default_cpu_set, self.shared))
        seen = CPUSet()
        for pod, container, cpus in found.owners():
            if cpus - self.isolated or not cpus.isdisjoint(seen):
                raise StateError(
                    "pod %s, container %s: CPUs %s are not isolated, or two containers have them"
                    % (pod, container, cpus - self.isolated | cpus & seen)
                )
            seen |= cpus

    def allocate(self, state: RunningState, pod: Pod, container: str, affinity: int | None) -> None:
        free = self._free(state)
        super().allocate(free, pod, container, affinity)
        state.stored = state.stored or free.stored

    def remove(self, state: RunningState, pod_uid: str, container: str) -> None:
        if state.get(pod_uid, container) is not None:
            state.delete(pod_uid, container)

    def hints(self, state: RunningState, pod: Pod, container: str) -> list[Hint] | None:
        return super().hints(self._free(state), pod, container)

    def pod_hints(self, state: RunningState, pod: Pod) -> list[Hint] | None:
        return super().pod_hints(self._free(state), pod)

    def _free(self, state: RunningState) -> RunningState:
        """Return the state's assignments, with the free isolated CPUs in the place of the shared pool."""
        free = RunningState()
        free.assignments = state.assignments
        free.default = self.isolated.mask & ~state.snapshot().exclusive_cpus().mask
        return free


class StaticWithIsolated(NamedTuple):
    """What the kubelet's static policy makes of isolated CPUs.

    shared: isolated CPUs that are in the shared pool of a node without pods, until a container has them to itself.
    reserved: isolated CPUs that no container can get to itself. not_isolated: CPUs that a container may get to itself
    though they are not isolated. reserve: the reservation with which both are empty; empty where no CPU is isolated.
    strict: whether the shared pool has isolated CPUs alone, because strict-cpu-reservation keeps all others out of it.
    """

    shared: CPUSet
    reserved: CPUSet
    not_isolated: CPUSet
    reserve: CPUSet
    strict: bool

    def is_harmless(self) -> bool:
        """Return whether exclusive CPUs are isolated, and isolated ones are shared only until a container has them."""
        return not self.reserved and not self.not_isolated and not self.strict

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {**{name: str(value) for name, value in self._asdict().items()}, "strict": self.strict}


def static_with_isolated(
    topology: CPUTopology, reserved: CPUSet, isolated: CPUSet, strict_reservation: bool = False
) -> StaticWithIsolated:
    """Return what would be on a node whose kubelet has the static policy: its shared pool is what no container has to
    itself.

    No reservation keeps isolated CPUs out of it before a container has them; the policy isolated does. With
    strict-cpu-reservation the pool has no reserved CPUs, so that the right reservation leaves it only isolated ones.
    """
    everything = topology.all_cpus()
    isolated &= everything
    pool = everything - reserved if strict_reservation else everything
    rest = everything - isolated
    return StaticWithIsolated(
        shared=pool & isolated,
        reserved=reserved & isolated,
        not_isolated=everything - reserved - isolated if isolated else CPUSet(),
        reserve=rest if isolated else CPUSet(),
        strict=bool(isolated) and strict_reservation and not pool - isolated,
    )


# One pass of the policy isolated: first sets out of the isolated CPUs, and nothing moves afterwards. Pure.


def first_isolated_state(policy: IsolatedPolicy) -> DynamicState:
    """Return that of a node without containers."""
    return DynamicState(policy.shared.mask)


def decide_isolated(policy: IsolatedPolicy, containers: Sequence[WantedContainer], former: DynamicState) -> Decision:
    """Return one pass over the containers that are on the node, in the order in which they came.

    Who has a set keeps it, unless a CPU of it is not isolated any more.
    """
    state = RunningState()
    state.set_default(policy.shared.mask)
    taken = 0
    for container in containers:
        held = former.containers.get(container.key)
        if container.cpus and held is not None and not held.cpus & (~policy.isolated.mask | taken):
            state.set(*container.key, held.cpus)
            taken |= held.cpus
    waiting: list[Key] = []
    for container in containers:
        if not container.cpus or state.get(*container.key) is not None:
            continue
        cpu = {"cpu": 1000 * container.cpus}
        pod = Pod(container.pod, container.pod, (Container(container.name, APP, cpu, cpu),), GUARANTEED)
        try:
            policy.allocate(state, pod, container.name, None)
        except AllocationError:
            waiting.append(container.key)
    found: dict[Key, Held] = {}
    for container in containers:
        mask = state.get(*container.key)
        if mask:
            found[container.key] = Held(mask, mask)
    after = DynamicState(policy.shared.mask, found)
    before = view_of(former)
    kept = {key: mask for key, mask in before.exclusive.items() if key in found}
    return Decision(after, moves_between(before._replace(exclusive=kept), after), tuple(waiting))
