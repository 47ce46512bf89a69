# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One pass of the policy isolated: first sets out of the isolated CPUs, and nothing moves afterwards. Pure."""

from __future__ import annotations

from typing import Sequence

from ..workload.pods import APP, Container, Pod
from ..workload.qos import GUARANTEED
from .dynamic import Decision
from .dynamic_rules import Wanted
from .dynamic_state import DynamicState, Held, Key
from .isolated import IsolatedPolicy
from .moves import moves_between, view_of
from .policy import AllocationError
from .running_state import RunningState


def first_isolated_state(policy: IsolatedPolicy) -> DynamicState:
    """That of a node without containers."""
    return DynamicState(policy.shared.mask)


def decide_isolated(policy: IsolatedPolicy, containers: Sequence[Wanted], former: DynamicState) -> Decision:
    """One pass over the containers that are on the node, in the order in which they came.

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
