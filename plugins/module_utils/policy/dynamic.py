# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The policy dynamic: exclusive CPUs as the static policy gives them, and more to elastic containers that use theirs.

decide() is one pass of it: a pure function of what there is, what was promised before, and the time. The laws:

- A container never has fewer CPUs than it was admitted with. What it gets is added to what it has.
- It comes to a further NUMA node only if no CPU that it could get is free in those that it has.
- Reserved CPUs are never given out, and no two containers share exclusive CPUs.
- The shared pool keeps its floor: as many CPUs as are reserved, and `shared_minimum` more.
- Growing and shrinking leave a CPU alone that changed hands within `settle`. A container's first set and the end of a
  container are not held back by this, but a first set waits for CPUs that another has grown into and cannot give yet.
- What leaves a container is announced `delay` before.
- The same containers, use and times in the same order give the same answer.

Source: the design of the CPU manager (its policy dynamic was never written); the rules of growth are those of KEP-5554,
those of announcing of KEP-6122.
"""

from __future__ import annotations

from typing import AbstractSet, Iterable, NamedTuple, Sequence

from ..cpuset import count_bits
from ..quantity import counted
from .dynamic_pass import Pass
from .dynamic_rules import Rules, Use, Wanted
from .dynamic_state import DynamicState, Key
from .moves import Move, moves_between, view_of
from .packed import SAFE
from .policy import AllocationError
from .running_state import RunningState
from .static import StaticPolicy

DYNAMIC = "dynamic"


class Decision(NamedTuple):
    """What a pass comes to: the promise, the steps to it, and the containers that wait for their first set."""

    state: DynamicState
    moves: Sequence[Move]
    waiting: Sequence[Key]


def first_state(rules: Rules) -> DynamicState:
    """That of a node without containers."""
    return DynamicState(rules.topology.cpus)


def decide(
    rules: Rules,
    containers: Sequence[Wanted],
    use: Use,
    former: DynamicState,
    now: float,
    answered: AbstractSet[Key] = frozenset(),
) -> Decision:
    """One pass.

    containers: those that are on the node, in the order in which they came. now: seconds of the clock of all passes.
    answered: containers that have left already what was announced to leave. Raises InputError.
    """
    pass_ = Pass(rules.checked(), containers, use, former, now)
    pass_.give_first_sets()
    pass_.return_what_is_beyond()
    pass_.refill_pool()
    pass_.level()
    if pass_.release(answered):
        pass_.give_first_sets()
    pass_.grow()
    state = pass_.state()
    before = view_of(former)
    present = {container.key for container in containers if container.cpus}
    kept = {key: mask for key, mask in before.exclusive.items() if key in present}
    moves = moves_between(before._replace(exclusive=kept), state)
    return Decision(state, moves, tuple(pass_.waiting))


class DynamicPolicy(StaticPolicy):
    """The policy in the events of a CPU manager: a container's first set, and its end. decide() is the rest of it."""

    name = DYNAMIC

    def __init__(self, rules: Rules, minor: int) -> None:
        super().__init__(rules.topology, rules.options, rules.reserved, minor, SAFE)
        self.rules = rules.checked()
        self.shared_minimum = rules.shared_minimum

    def _take(self, state: RunningState, count: int, affinity: int | None, reusable: int) -> int:
        """A pass keeps a container waiting whose first set the shared pool cannot spare."""
        mask = super()._take(state, count, affinity, reusable)
        if count_bits((state.default | self._reserved) & ~mask) < self.rules.floor:
            raise AllocationError(
                "not enough cpus available to satisfy request: the shared pool keeps %s"
                % counted(self.rules.floor, "CPU")
            )
        return mask

    def decide(
        self,
        containers: Iterable[Wanted],
        use: Use,
        former: DynamicState,
        now: float,
        answered: AbstractSet[Key] = frozenset(),
    ) -> Decision:
        """One pass, see decide()."""
        return decide(self.rules, tuple(containers), use, former, now, answered)
