# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Replays a trace on a node under each policy: who has which CPUs when, how many threads run and how many wait. Pure.

The model, between two changes of anything:

1. A pod with exclusive CPUs runs as many threads as it has CPUs, if so many want to run.
2. All others share the pool by the CPU that they request (the kernel's weights): what one does not want is the others'.
3. A Guaranteed pod runs on the pool no more than it requests, because that is its limit. Exclusive CPUs have no quota:
   the kubelet sets none for them from Kubernetes 1.33, and where the policy dynamic gives them out there must be none.
4. A thread that wants to run and does not is waiting.
5. A pod that requests CPUs as a whole (gate PodLevelResourceManagers) runs on all of these that a container of it has.
   Where the topology manager does not give it such, with the scope container or the policy none, its threads run first
   on the CPUs that its containers have for themselves, and the others on the pool, up to the rest of its limit.

Memory and devices, and the kubelet's topology manager, say which pods are admitted, and nothing of how they run.

A CPU is a CPU: what threads of a core, caches, NUMA nodes, interrupts and moving cost is not in it. All of that is in
favour of exclusive CPUs, and the model leaves it out.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from types import MappingProxyType
from typing import Any, Mapping, NamedTuple, Sequence

from ...module_utils._base.errors import InputError, option
from ...module_utils._base.versions import NEWEST_MINOR
from ...module_utils._cgroup.kubepods import GUARANTEED
from ...module_utils._containers.pods import APP, Container, Pod
from ...module_utils._node.providers import device_manager
from ...module_utils.cpuset import count_bits
from ...module_utils.policy.assignment import EndlessDistributionError
from ...module_utils.policy.dynamic import DYNAMIC, SharedPeak, decide, first_state
from ...module_utils.policy.dynamic_state import EXCLUSIVE, POOL, DynamicRules, Use, WantedContainer
from ...module_utils.policy.hints import CONTAINER as CONTAINER_SCOPE
from ...module_utils.policy.hints import NONE as NO_ALIGNMENT
from ...module_utils.policy.hints import HintProvider, TopologyManager
from ...module_utils.policy.manager import CPUManager
from ...module_utils.policy.memory import StaticMemory
from ...module_utils.policy.static import NonePolicy, Policy, StaticPolicy
from ...module_utils.state.acceptance import NONE, STATIC
from ...module_utils.state.memory_manager import MEMORY, MemoryConfig
from ...module_utils.state.memory_manager import STATIC as STATIC_MEMORY
from .trace import Trace, TracePod

POLICIES = (NONE, STATIC, DYNAMIC)


class Beside(NamedTuple):
    """What decides on a pod beside its CPUs, under each policy: the kubelet's topology manager, memory and devices.

    numa_memory: the memory of each NUMA node in bytes, of which the Static memory manager gives each Guaranteed pod its
    own; None without that one. reserved_memory: what it keeps of them. devices: as hints.OtherManagers has them.
    """

    topology_policy: str = NO_ALIGNMENT
    topology_scope: str = CONTAINER_SCOPE
    numa_memory: Mapping[int, Mapping[str, int]] | None = None
    reserved_memory: Mapping[int, Mapping[str, int]] = MappingProxyType({})
    devices: Sequence[Mapping[str, Any]] = ()

    def providers(self, nodes: Sequence[int]) -> list[HintProvider]:
        """Return those of an empty node. Raises InputError."""
        found: list[HintProvider] = [device_manager(self.devices, nodes)]
        if self.numa_memory is not None:
            if sorted(self.numa_memory) != sorted(nodes):
                of_memory, of_machine = (", ".join(map(str, sorted(some))) for some in (self.numa_memory, nodes))
                what = "there are the NUMA nodes %s, and the machine has %s" % (of_memory, of_machine)
                raise InputError(what, option("numa_memory"), "give the memory of each NUMA node of the machine")
            config = MemoryConfig(STATIC_MEMORY, self.reserved_memory, NEWEST_MINOR, True, self.numa_memory)
            found.append(StaticMemory(config))
        return found


CPUS_ALONE = Beside()


class Placement(NamedTuple):
    """The mask of the shared pool, and of the containers with exclusive CPUs, by pod; all others use the pool."""

    shared: int
    exclusive: Mapping[str, int]


class SimulatedNode:
    """A node with a policy, to which pods come. `passes` is whether it is called every period."""

    passes = False

    def __init__(self, rules: DynamicRules) -> None:
        self.rules = rules
        # How often passes gave a container or the shared pool other CPUs.
        self.moves = 0
        # Seconds from the trace's beginning, set by who replays it.
        self.now = 0.0

    def add(self, pod: TracePod) -> str:
        """Return a pod comes: empty, or the reason that it is refused with."""
        raise NotImplementedError

    def remove(self, pod: TracePod) -> None:
        """Remove a pod that has gone."""
        raise NotImplementedError

    def look(self, used: Mapping[str, float], shared: float) -> None:
        """Look at the use, as a period has passed. used: how many CPUs each pod with exclusive ones used in it,
        shared: all others."""
        raise NotImplementedError

    def placement(self) -> Placement:
        """Return who has which CPUs."""
        raise NotImplementedError


class KubeletNode(SimulatedNode):
    """One whose kubelet gives out the CPUs."""

    def __init__(self, rules: DynamicRules, name: str, beside: Beside = CPUS_ALONE) -> None:
        super().__init__(rules)
        policy: Policy = NonePolicy()
        if name == STATIC:
            policy = StaticPolicy(rules.topology, rules.options, rules.reserved, NEWEST_MINOR)
        nodes = list(rules.topology.numa_nodes)
        topology_manager = TopologyManager(beside.topology_policy, beside.topology_scope, nodes)
        others = () if beside == CPUS_ALONE else beside.providers(nodes)
        self.manager = CPUManager(policy, topology_manager, None, others)
        self.is_static = name == STATIC

    def add(self, pod: TracePod) -> str:
        try:
            admission = self.manager.add(_pod_of(pod))
        except EndlessDistributionError as error:
            raise InputError("pod %s: %s" % (pod.name, error), remedy="choose other policy options") from error
        return "" if admission.admitted else admission.reason

    def remove(self, pod: TracePod) -> None:
        self.manager.delete(pod.name)
        self.manager.remove_stale()

    def placement(self) -> Placement:
        state = self.manager.state
        if not self.is_static:
            return Placement(self.rules.topology.cpus, {})
        own = {uid: reduce(or_, masks.values()) for uid, masks in state.assignments.items()}
        return Placement(state.default, {**own, **state.pods})


def _pod_of(pod: TracePod) -> Pod:
    """Return the pod, as a kubelet is given it."""
    amounts = {**pod.resources, "cpu": pod.cpu}
    if not pod.containers:
        return Pod(pod.name, pod.name, (Container(pod.name, APP, amounts, amounts),), pod.qos_class)

    def resources(count: int) -> dict[str, int]:
        # A byte: one that asks for no memory has no CPUs of its own.
        return {"cpu": 1000 * count, MEMORY: 1000} if count else {}

    own = tuple(Container(name, APP, resources(count), resources(count)) for name, count in pod.containers.items())
    amounts[MEMORY] = max(amounts.get(MEMORY, 0), 1000 * (len(own) + 1))
    whole = Pod(pod.name, pod.name, own, pod.qos_class, (amounts, amounts))
    return whole._replace(has_pod_level_gate=True, has_managers_gate=True)


class DynamicNode(SimulatedNode):
    """One whose CPUs the policy dynamic gives out: a pass each period, and whenever a pod comes or goes."""

    passes = True

    def __init__(self, rules: DynamicRules, beside: Beside = CPUS_ALONE) -> None:
        super().__init__(rules)
        # It gives out no CPUs, and admits pods by all else.
        self.kubelet = None if beside == CPUS_ALONE else KubeletNode(rules, NONE, beside)
        self.state = first_state(rules)
        self.pods: list[WantedContainer] = []
        self.use = Use()
        self._peak = SharedPeak()

    def add(self, pod: TracePod) -> str:
        if pod.containers:
            what = "pod %s: the policy dynamic gives no CPUs to pods as a whole" % pod.name
            raise InputError(what, remedy="leave it out of %s" % option("policies"))
        reason = "" if self.kubelet is None else self.kubelet.add(pod)
        if reason:
            return reason
        self.pods.append(WantedContainer(pod.name, pod.name, pod.exclusive, pod.most))
        self._pass()
        return ""

    def remove(self, pod: TracePod) -> None:
        if self.kubelet is not None:
            self.kubelet.remove(pod)
        self.pods = [wanted for wanted in self.pods if wanted.pod != pod.name]
        self._pass()

    def look(self, used: Mapping[str, float], shared: float) -> None:
        self.use = Use({(name, name): cpus for name, cpus in used.items()}, self._peak.add(self.now, shared))
        self._pass()

    def _pass(self) -> None:
        decision = decide(self.rules, self.pods, self.use, self.state, self.now)
        self.moves += sum(1 for move in decision.moves if move.what in (EXCLUSIVE, POOL))
        self.state = decision.state

    def placement(self) -> Placement:
        return Placement(self.state.shared, {key[0]: held.cpus for key, held in self.state.containers.items()})


def new_node(policy: str, rules: DynamicRules, beside: Beside = CPUS_ALONE) -> SimulatedNode:
    """Return a node without pods. Raises InputError for rules that cannot be kept."""
    rules.checked()
    return DynamicNode(rules, beside) if policy == DYNAMIC else KubeletNode(rules, policy, beside)


def shares_of(weights: Sequence[float], wanted: Sequence[float], cpus: float) -> list[float]:
    """Return how much of so many CPUs each gets: by its weight, but no more than it wants; the others get the rest."""
    shares = [0.0] * len(weights)
    unmet = [number for number, want in enumerate(wanted) if want > 0]
    while unmet:
        total = sum(weights[number] for number in unmet)
        full = [number for number in unmet if wanted[number] * total <= cpus * weights[number] * (1 + 1e-12)]
        if not full:
            for number in unmet:
                shares[number] = cpus * weights[number] / total
            break
        for number in full:
            shares[number] = wanted[number]
            cpus -= wanted[number]
        unmet = [number for number in unmet if shares[number] == 0.0]
        cpus = max(cpus, 0.0)
    return shares


# The kernel's least share, in thousandths of a CPU.
_LEAST_WEIGHT = 2
# Of several changes at a time: who goes makes room, and a pass sees them all.
_LEAVE, _ARRIVE, _LOAD, _LOOK = range(4)


class Served(NamedTuple):
    """What became of a pod; wanted, ran, waited in seconds of threads, owned in seconds of exclusive CPUs.

    on_own: what of it ran on these. first_set: how many seconds after it came it had its exclusive CPUs; None where it
    never had. refused: the reason.
    """

    pod: TracePod
    wanted: float = 0.0
    ran: float = 0.0
    owned: float = 0.0
    on_own: float = 0.0
    first_set: float | None = None
    refused: str = ""

    @property
    def waited(self) -> float:
        """How long its threads waited."""
        return max(0.0, self.wanted - self.ran)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data; times to the millisecond."""
        return {
            "pod": self.pod.name,
            "qos_class": self.pod.qos_class,
            "exclusive": self.pod.exclusive,
            "most": self.pod.most,
            "refused": self.refused,
            "thread_seconds_wanted": round(self.wanted, 3),
            "thread_seconds_run": round(self.ran, 3),
            "thread_seconds_waited": round(self.waited, 3),
            "exclusive_cpu_seconds": round(self.owned, 3),
            "utilisation": round(self.on_own / self.owned, 4) if self.owned else None,
            "first_set_after": self.first_set,
        }


class Replay(NamedTuple):
    """A trace under a policy. timeline: (seconds, who has which CPUs from then on), where it changes.

    capacity: seconds of all CPUs. moves: how often passes gave a container or the pool other CPUs.
    """

    policy: str
    served: Sequence[Served]
    timeline: Sequence[tuple[float, Placement]]
    capacity: float
    moves: int

    @property
    def ran(self) -> float:
        """How many seconds all threads ran."""
        return sum(served.ran for served in self.served)

    @property
    def waited(self) -> float:
        """How many seconds all threads waited."""
        return sum(served.waited for served in self.served)


def replay(trace: Trace, policy: str, rules: DynamicRules, period: float = 10.0, beside: Beside = CPUS_ALONE) -> Replay:
    """Replay a trace; a policy with passes has one each `period` seconds. Raises InputError."""
    return _Replay(trace, new_node(policy, rules, beside), rules).run(policy, period)


class _Replay:
    """A replay in progress."""

    def __init__(self, trace: Trace, node: SimulatedNode, rules: DynamicRules) -> None:
        self.trace, self.node, self.rules = trace, node, rules
        self.served = {pod.name: Served(pod) for pod in trace.pods}
        self.present: dict[str, TracePod] = {}
        self.wanted: dict[str, float] = {}
        self.rates: dict[str, float] = {}
        # What ran since the last period began.
        self.used: dict[str, float] = {}
        self.placement = node.placement()
        self.timeline = [(0.0, self.placement)]
        self.now = self.looked = 0.0

    def run(self, policy: str, period: float) -> Replay:
        events = self._events(period)
        for number, (at, kind, pod, threads) in enumerate(events):
            self._pass_time(at)
            self._happen(kind, pod, threads)
            if number + 1 == len(events) or events[number + 1][0] > at:
                self._settle()
        self._pass_time(self.trace.duration)
        capacity = self.rules.topology.num_cpus * self.trace.duration
        return Replay(policy, tuple(self.served.values()), self.timeline, capacity, self.node.moves)

    def _events(self, period: float) -> list[tuple[float, int, TracePod | None, float]]:
        """Return all that happens in the trace: (seconds, what, to which pod, its threads from then on), in order."""
        events: list[tuple[float, int, TracePod | None, float]] = []
        for pod in self.trace.pods:
            events += [(pod.arrives, _ARRIVE, pod, 0.0), (pod.leaves, _LEAVE, pod, 0.0)]
            events += [
                (pod.arrives + at, _LOAD, pod, threads) for at, threads in pod.load if at + pod.arrives < pod.leaves
            ]
        if self.node.passes:
            events += [(at * period, _LOOK, None, 0.0) for at in range(1, int(self.trace.duration / period) + 1)]
        # A pod that comes and goes at once comes first: the order of equals is that of the list.
        events.sort(
            key=lambda event: (event[0], event[1] if event[2] is None or event[2].leaves > event[0] else _ARRIVE)
        )
        return events

    def _pass_time(self, at: float) -> None:
        seconds = at - self.now
        self.now = self.node.now = at
        if not seconds:
            return
        for name in self.present:
            served, rate = self.served[name], self.rates.get(name, 0.0)
            owned = count_bits(self.placement.exclusive.get(name, 0))
            self.served[name] = served._replace(
                wanted=served.wanted + self.wanted.get(name, 0.0) * seconds,
                ran=served.ran + rate * seconds,
                owned=served.owned + owned * seconds,
                on_own=served.on_own + min(rate, owned) * seconds,
            )
            self.used[name] = self.used.get(name, 0.0) + rate * seconds

    def _happen(self, kind: int, pod: TracePod | None, threads: float) -> None:
        if pod is None:
            self._look()
        elif kind == _ARRIVE:
            self.present[pod.name] = pod
            reason = self.node.add(pod)
            if reason:
                self.served[pod.name] = self.served[pod.name]._replace(refused=reason)
        elif kind == _LEAVE:
            del self.present[pod.name]
            self.used.pop(pod.name, None)
            if not self.served[pod.name].refused:
                self.node.remove(pod)
        else:
            self.wanted[pod.name] = threads

    def _look(self) -> None:
        seconds = self.now - self.looked
        used = {name: ran / seconds for name, ran in self.used.items()}
        own = {name: used.get(name, 0.0) for name in self.placement.exclusive}
        self.node.look(own, sum(cpus for name, cpus in used.items() if name not in own))
        self.looked, self.used = self.now, {}

    def _settle(self) -> None:
        """Work out who runs from now on."""
        placement = self.node.placement()
        if placement != self.placement:
            self.placement = placement
            self.timeline.append((self.now, placement))
        # Of those on the pool: (pod, thousandths of a CPU that it requests of it, how many threads want to run).
        pooled: list[tuple[TracePod, int, float]] = []
        self.rates = {}
        for name, pod in self.present.items():
            served, mask = self.served[name], placement.exclusive.get(name)
            if mask is None:
                pooled += [] if served.refused else [(pod, pod.cpu, self._pooled(pod))]
                continue
            cpus, wanted = count_bits(mask), self.wanted.get(name, 0.0)
            usable = cpus if pod.is_shared else sum(pod.containers.values()) or cpus
            self.rates[name] = min(wanted, usable)
            rest = pod.cpu - 1000 * cpus
            if pod.is_shared and rest > 0:
                pooled.append((pod, rest, min(wanted - self.rates[name], rest / 1000)))
            if served.first_set is None:
                self.served[name] = served._replace(first_set=self.now - pod.arrives)
        weights = [max(_LEAST_WEIGHT, milli) for _pod, milli, _wanted in pooled]
        shares = shares_of(weights, [wanted for _pod, _milli, wanted in pooled], count_bits(placement.shared))
        for (pod, _milli, _wanted), share in zip(pooled, shares):
            self.rates[pod.name] = self.rates.get(pod.name, 0.0) + share

    def _pooled(self, pod: TracePod) -> float:
        threads = self.wanted.get(pod.name, 0.0)
        return min(threads, pod.cpu / 1000) if pod.qos_class == GUARANTEED else threads
