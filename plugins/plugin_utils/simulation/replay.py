# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Replays a trace on a machine under a policy: how many of each pod's threads run, and how many wait. Pure.

The model, between two changes of anything:

1. A pod with exclusive CPUs runs as many threads as it has CPUs, if so many want to run.
2. All others share the pool by the CPU that they request (the kernel's weights): what one does not want is the others'.
3. A Guaranteed pod runs on the pool no more than it requests, because that is its limit. Exclusive CPUs have no quota:
   the kubelet sets none for them from Kubernetes 1.33, and where the policy dynamic gives them out there must be none.
4. A thread that wants to run and does not is waiting.

A CPU is a CPU: what threads of a core, caches, NUMA nodes, interrupts and moving cost is not in it. All of that is in
favour of exclusive CPUs, and the model leaves it out.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Sequence

from ...module_utils._cgroup.kubepods import GUARANTEED
from ...module_utils.cpuset import count_bits
from ...module_utils.policy.dynamic_state import DynamicRules
from .nodes import Placement, SimulatedNode, new_node, shares_of
from .trace import Trace, TracePod

# The kernel's least share, in thousandths of a CPU.
_LEAST_WEIGHT = 2
# Of several changes at a time: who goes makes room, and a pass sees them all.
_LEAVE, _ARRIVE, _LOAD, _LOOK = range(4)


class Served(NamedTuple):
    """What became of a pod; wanted, ran, waited in seconds of threads, owned in seconds of exclusive CPUs.

    first_set: how many seconds after it came it had its exclusive CPUs; None where it never had. refused: the reason.
    """

    pod: TracePod
    wanted: float = 0.0
    ran: float = 0.0
    owned: float = 0.0
    first_set: float | None = None
    refused: str = ""

    @property
    def waited(self) -> float:
        """How long its threads waited."""
        return max(0.0, self.wanted - self.ran)

    def to_dict(self) -> dict[str, Any]:
        """Plain data; times to the millisecond."""
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
            "utilisation": round(self.ran / self.owned, 4) if self.owned else None,
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


def replay(trace: Trace, policy: str, rules: DynamicRules, period: float = 10.0) -> Replay:
    """Replay a trace; a policy with passes has one each `period` seconds. Raises InputError."""
    return _Replay(trace, new_node(policy, rules), rules).run(policy, period)


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
        """All that happens in the trace: (seconds, what, to which pod, its threads from then on), in order."""
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
        """Who runs from now on."""
        placement = self.node.placement()
        if placement != self.placement:
            self.placement = placement
            self.timeline.append((self.now, placement))
        self.rates, pooled = {}, []
        for name, pod in self.present.items():
            served, mask = self.served[name], placement.exclusive.get(name)
            if mask is None:
                pooled += [] if served.refused else [pod]
                continue
            self.rates[name] = min(self.wanted.get(name, 0.0), count_bits(mask))
            if served.first_set is None:
                self.served[name] = served._replace(first_set=self.now - pod.arrives)
        wanted = [self._pooled(pod) for pod in pooled]
        shares = shares_of([max(_LEAST_WEIGHT, pod.cpu) for pod in pooled], wanted, count_bits(placement.shared))
        self.rates.update(zip((pod.name for pod in pooled), shares))

    def _pooled(self, pod: TracePod) -> float:
        threads = self.wanted.get(pod.name, 0.0)
        return min(threads, pod.cpu / 1000) if pod.qos_class == GUARANTEED else threads
