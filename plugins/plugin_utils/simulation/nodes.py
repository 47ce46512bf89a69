# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How each policy serves the pods of a trace: who has which CPUs when, and what passes have done. Pure."""

from __future__ import annotations

from typing import Mapping, NamedTuple, Sequence

from ...module_utils._base.errors import InputError
from ...module_utils._base.versions import NEWEST_MINOR
from ...module_utils._containers.pods import APP, Container, Pod
from ...module_utils.policy.assignment import EndlessDistributionError
from ...module_utils.policy.dynamic import DYNAMIC, SharedPeak, decide, first_state
from ...module_utils.policy.dynamic_state import DynamicRules, Use, WantedContainer
from ...module_utils.policy.hints import CONTAINER as CONTAINER_SCOPE
from ...module_utils.policy.hints import NONE as NO_ALIGNMENT
from ...module_utils.policy.hints import TopologyManager
from ...module_utils.policy.manager import CPUManager
from ...module_utils.policy.moves import EXCLUSIVE, POOL
from ...module_utils.policy.static import NonePolicy, Policy, StaticPolicy
from ...module_utils.state.acceptance import NONE, STATIC
from .trace import TracePod

POLICIES = (NONE, STATIC, DYNAMIC)


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
        """A pod comes: empty, or the reason that it is refused with."""
        raise NotImplementedError

    def remove(self, pod: TracePod) -> None:
        """A pod has gone."""
        raise NotImplementedError

    def look(self, used: Mapping[str, float], shared: float) -> None:
        """A period has passed. used: how many CPUs each pod with exclusive ones used in it, shared: all others."""
        raise NotImplementedError

    def placement(self) -> Placement:
        """Who has which CPUs."""
        raise NotImplementedError


class KubeletNode(SimulatedNode):
    """One whose kubelet gives out the CPUs."""

    def __init__(self, rules: DynamicRules, name: str) -> None:
        super().__init__(rules)
        policy: Policy = NonePolicy()
        if name == STATIC:
            policy = StaticPolicy(rules.topology, rules.options, rules.reserved, NEWEST_MINOR)
        topology_manager = TopologyManager(NO_ALIGNMENT, CONTAINER_SCOPE, list(rules.topology.numa_nodes))
        self.manager = CPUManager(policy, topology_manager)
        self.is_static = name == STATIC

    def add(self, pod: TracePod) -> str:
        amounts = {"cpu": pod.cpu}
        whole = Pod(pod.name, pod.name, (Container(pod.name, APP, amounts, amounts),), pod.qos_class)
        try:
            admission = self.manager.add(whole)
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
        return Placement(state.default, {uid: mask for uid, own in state.assignments.items() for mask in own.values()})


class DynamicNode(SimulatedNode):
    """One whose CPUs the policy dynamic gives out: a pass each period, and whenever a pod comes or goes."""

    passes = True

    def __init__(self, rules: DynamicRules) -> None:
        super().__init__(rules)
        self.state = first_state(rules)
        self.pods: list[WantedContainer] = []
        self.use = Use()
        self._peak = SharedPeak()

    def add(self, pod: TracePod) -> str:
        self.pods.append(WantedContainer(pod.name, pod.name, pod.exclusive, pod.most))
        self._pass()
        return ""

    def remove(self, pod: TracePod) -> None:
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


def new_node(policy: str, rules: DynamicRules) -> SimulatedNode:
    """A node without pods. Raises InputError for rules that cannot be kept."""
    rules.checked()
    return DynamicNode(rules) if policy == DYNAMIC else KubeletNode(rules, policy)


def shares_of(weights: Sequence[float], wanted: Sequence[float], cpus: float) -> list[float]:
    """How much of so many CPUs each gets: by its weight, but no more than it wants; the others get the rest."""
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
