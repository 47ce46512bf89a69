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

Source: the design of the CPU manager (its policy dynamic was never written); the rules of growth are those of
KEP-5554, those of announcing of KEP-6122.
"""

from __future__ import annotations

from collections import deque
from typing import AbstractSet, Iterable, Mapping, NamedTuple, Sequence

from .._base.quantity import counted
from ..cpuset import count_bits, iterate_bits, lowest_bits
from ..topology.kubelet_view import CPUTopology
from .assignment import SAFE, TakeError, take_mask
from .dynamic_state import DynamicRules, DynamicState, Held, Key, Move, Use, WantedContainer, moves_between, view_of
from .static import AllocationError, RunningState, StaticPolicy

# How much the shared pool has used in the last minute, for the policy dynamic. Pure.


SECONDS = 60.0


class SharedPeak:
    """The highest use of the last minute: what the shared pool gives to a growing container, it gets back late."""

    def __init__(self) -> None:
        # (seconds, CPUs), each with fewer CPUs than the one before: no other is the highest of any minute to come.
        self._uses: deque[tuple[float, float]] = deque()

    def add(self, now: float, cpus: float) -> float:
        """Add what is used now; the highest use since a minute ago. now: seconds that never go back."""
        uses = self._uses
        while uses and uses[-1][1] <= cpus:
            uses.pop()
        uses.append((now, cpus))
        while uses[0][0] <= now - SECONDS:
            uses.popleft()
        return uses[0][1]


# Which CPUs to add to a container's set, and which to take from it: near what it has. Pure.
#
# A unit is what is added or taken at a time: a CPU, or with whole cores the threads of a core.


class Near(NamedTuple):
    """What is near what on a machine.

    distances: {NUMA node: {NUMA node: distance}}, may be empty. whole_cores: a unit is a core.
    """

    topology: CPUTopology
    distances: Mapping[int, Mapping[int, int]]
    whole_cores: bool

    def unit_to_add(self, held: int, free: int, most: int) -> int:
        """Return the mask of the next unit, of at most so many of the free CPUs; 0 where there is none.

        1. In the NUMA nodes that the set is in; in others only if these have none, the nearest first.
        2. A thread of a core that it has a part of, then a core that is free as a whole, then any.
        3. In an L3 cache that it is in.
        4. The lowest id.
        """
        if not free or most < 1:
            return 0
        nodes = self.topology.numa_nodes
        own = groups_of(nodes, held)
        unit = self._unit_in(self._nodes(own), held, free, most)
        if unit:
            return unit
        for node in sorted((node for node in nodes if not own >> node & 1), key=lambda node: self._way(own, node)):
            unit = self._unit_in((node,), held, free, most)
            if unit:
                return unit
        return 0

    def unit_to_take(self, admitted: int, given: int) -> int:
        """Return the mask of the next unit of the CPUs that were added to a first set; 0 where there is none.

        1. In the NUMA node that is farthest from the first set.
        2. Of a core that has no CPU of the first set, and as few others as possible.
        3. The highest id.
        """
        if not given:
            return 0
        nodes, home = self.topology.numa_nodes, groups_of(self.topology.numa_nodes, admitted)
        found = [node for node, mask in nodes.items() if mask & given]
        found.sort(key=lambda node: (not home >> node & 1, self._way(home, node)))
        here = nodes[found[-1]]
        cores = [
            (not mask & admitted, -count_bits(mask & given), number, mask & given & here)
            for number, mask in self.topology.inside("numa_nodes", "cores")[found[-1]]
            if mask & given & here and not (self.whole_cores and mask & ~given)
        ]
        if not cores:
            return 0
        unit = max(cores)[3]
        return unit if self.whole_cores else 1 << unit.bit_length() - 1

    def _nodes(self, numbers: int) -> list[int]:
        return [node for node in self.topology.numa_nodes if numbers >> node & 1]

    def _way(self, own: int, node: int) -> tuple[int, bool, int]:
        """Return how far a NUMA node is from others."""
        topology = self.topology
        rows = [self.distances.get(number, {}).get(node, 0) for number in self._nodes(own)]
        sockets = groups_of(topology.sockets, mask_of(topology.numa_nodes, own))
        shares_socket = bool(groups_of(topology.sockets, topology.numa_nodes[node]) & sockets)
        return min(rows, default=0), not shares_socket, node

    def _unit_in(self, nodes: Iterable[int], held: int, free: int, most: int) -> int:
        topology, best = self.topology, None
        caches = mask_of(topology.uncore_caches, groups_of(topology.uncore_caches, held))
        for node in nodes:
            here = free & topology.numa_nodes[node]
            if not here:
                continue
            for number, core in topology.inside("numa_nodes", "cores")[node]:
                usable = core & here
                if not usable or (self.whole_cores and (usable != core or count_bits(core) > most)):
                    continue
                rank = 0 if core & held else 1 if usable == core else 2
                order = (rank, not core & caches, number, usable)
                if best is None or order < best:
                    best = order
        if best is None:
            return 0
        return best[3] if self.whole_cores else best[3] & -best[3]


def groups_of(groups: Mapping[int, int], mask: int) -> int:
    """Return which groups of CPUs, such as NUMA nodes, a mask touches: a mask of their ids."""
    return sum(1 << number for number, cpus in groups.items() if cpus & mask)


def mask_of(groups: Mapping[int, int], numbers: int) -> int:
    """Return the CPUs of the groups whose ids are the bits of `numbers`."""
    mask = 0
    for number in iterate_bits(numbers):
        mask |= groups[number]
    return mask


# One pass of the policy dynamic in progress; its laws are in dynamic.py. Pure.


# A container that uses this part of its CPUs is busy, and grows.
_BUSY = 0.9
# The shared pool gets CPUs back when more than this part of it is used, so many that it uses no more than the other.
_PRESSED, _CONTENT = 0.75, 0.5


class Pass:
    """One pass in progress."""

    def __init__(
        self, rules: DynamicRules, containers: Sequence[WantedContainer], use: Use, former: DynamicState, now: float
    ) -> None:
        self.rules, self.use, self.former, self.now = rules, use, former, now
        self.near = Near(rules.topology, rules.distances, rules.options.full_pcpus_only)
        self.wanted = {container.key: container for container in containers if container.cpus}
        self.given = rules.topology.cpus & ~rules.reserved.mask
        # A clock that was set back holds nothing up for longer than usual.
        self.changed = {at: mask for at, mask in former.changed.items() if now - rules.settle < at <= now}
        self.changed[now] = self.changed.get(now, 0)
        for at, mask in former.changed.items():
            self.changed[now] |= mask if at > now else 0
        self.unsettled = 0
        for mask in self.changed.values():
            self.unsettled |= mask if rules.settle else 0
        self.held: dict[Key, Held] = {}
        for key, container in self.wanted.items():
            if key in former.containers:
                self._keep(key, former.containers[key], container.cpus)
        self.waiting: list[Key] = []
        # What first sets wait for, of the pool and of what is leaving.
        self.claimed = 0
        # Those that have an announcement of this pass, and those that something was taken from.
        self.announced: set[Key] = set()
        self.shrunk: set[Key] = set()

    def _keep(self, key: Key, held: Held, count: int) -> None:
        """Take up what a container has, but for CPUs that were switched off or reserved since."""
        cpus = held.cpus & self.given
        if not cpus:
            return
        admitted, leaving = held.admitted & cpus, held.leaving & cpus
        # What it has lost of its first set, it replaces by what it has grown into.
        admitted |= lowest_bits(cpus & ~admitted & ~leaving, max(0, count - count_bits(admitted)))
        until = min(held.until, self.now + self.rules.delay) if leaving else 0.0
        self.held[key] = Held(admitted, cpus, leaving, until)

    @property
    def pool(self) -> int:
        """The mask of the shared pool."""
        mask = self.rules.topology.cpus
        for held in self.held.values():
            mask &= ~held.cpus
        return mask

    def _leaving(self) -> int:
        mask = 0
        for held in self.held.values():
            mask |= held.leaving
        return mask

    def _size_to_come(self) -> int:
        """Return how many CPUs the shared pool has once all is done that is announced and claimed."""
        return count_bits((self.pool | self._leaving()) & ~self.claimed)

    def _kept(self) -> int:
        """Return how many CPUs the shared pool is to have, so that it keeps its floor and is not pressed soon."""
        return max(self.rules.floor, _rounded_up(self.use.shared / _CONTENT))

    def _grown(self) -> int:
        mask = 0
        for held in self.held.values():
            mask |= held.grown
        return mask

    # --- first sets ------------------------------------------------------------------------------

    def give_first_sets(self) -> None:
        """Give each container its first set, or make room for it; in the order in which they came."""
        self.waiting, self.claimed = [], 0
        floor = self.rules.floor
        for key, container in self.wanted.items():
            held = self.held.get(key, Held(0, 0))
            missing = container.cpus - count_bits(held.admitted)
            if missing <= 0:
                continue
            pool = self.pool & ~self.claimed
            mask = self._first_set(held, missing, pool & self.given, self._leaving() & ~self.claimed)
            left = count_bits(pool) - missing
            if mask and not mask & ~pool and left >= floor and not self._is_worth_waiting(left):
                self.held[key] = held._replace(admitted=held.admitted | mask, cpus=held.cpus | mask)
                continue
            self.waiting.append(key)
            if mask:
                self.claimed |= mask
                self._announce(mask)
                self._take_back(floor - self._size_to_come())

    def _is_worth_waiting(self, left: int) -> bool:
        """Return whether the shared pool would be pressed with so many CPUs left, and others give some back soon.

        A container that starts has less to lose than those that run.
        """
        lacking = _rounded_up(self.use.shared / _PRESSED) - left
        if lacking <= 0:
            return False
        self._take_back(lacking - count_bits(self._leaving() & ~self.claimed))
        return bool(self._leaving() & ~self.claimed)

    def _first_set(self, held: Held, missing: int, free: int, leaving: int) -> int:
        """Return the CPUs to complete a first set with; 0 where there never are as many, as things are.

        Those that can be had sooner, if they are in no more NUMA nodes than all that could be had.
        """
        grown = self._grown() & ~held.cpus
        floor = self.rules.floor - len(self.rules.reserved)
        if count_bits(free | leaving | grown) - floor < missing:
            return 0
        settled = grown & ~self.unsettled
        best = self._take(held, missing, free | leaving | grown)
        nodes = self._nodes(best)
        for mask in (free, free | leaving, free | leaving | settled):
            sooner = self._take(held, missing, mask)
            if sooner and self._nodes(sooner) <= nodes:
                return sooner
        return best

    def _take(self, held: Held, count: int, available: int) -> int:
        if not held.admitted:
            try:
                return take_mask(self.rules.topology, available, count, self.rules.options, SAFE)
            except TakeError:
                return 0
        # It has lost a part of its first set: the rest is near it.
        mask = 0
        while count > 0:
            unit = self.near.unit_to_add(held.cpus | mask, available & ~mask, count)
            if not unit:
                return 0
            mask |= unit
            count -= count_bits(unit)
        return mask

    def _nodes(self, mask: int) -> int:
        return count_bits(groups_of(self.rules.topology.numa_nodes, mask))

    # --- shrinking -------------------------------------------------------------------------------

    def _giveable(self, key: Key) -> int:
        """Return what can be announced to leave: what has settled. One announcement at a time, so that each has its
        delay."""
        held = self.held[key]
        return held.grown & ~self.unsettled if not held.leaving or key in self.announced else 0

    def _announce(self, mask: int) -> None:
        """Announce that these CPUs leave who has grown into them, as far as they can be announced now."""
        for key, held in self.held.items():
            leaving = mask & self._giveable(key)
            if leaving:
                self.announced.add(key)
                self.held[key] = held._replace(leaving=held.leaving | leaving, until=self.now + self.rules.delay)

    def _take_back(self, count: int) -> None:
        """Announce so many CPUs of those that have grown: of the idle ones first, then of those that have most."""
        donors = [key for key in self.held if self._giveable(key)]
        while count > 0 and donors:
            key = self._donor(donors)
            unit = self._unit_of(key)
            if unit:
                self._announce(unit)
                count -= count_bits(unit)
            else:
                donors.remove(key)

    def _donor(self, donors: Sequence[Key]) -> Key:
        return max(donors, key=lambda key: (self._is_idle(key), count_bits(self.held[key].grown)))

    def _unit_of(self, key: Key) -> int:
        return self.near.unit_to_take(self.held[key].admitted, self._giveable(key))

    def _is_idle(self, key: Key) -> bool:
        """Return whether it would not be busy with a unit less."""
        per_unit = self.rules.topology.cpus_per_core if self.near.whole_cores else 1
        kept = count_bits(self.held[key].cpus & ~self.held[key].leaving) - per_unit
        return self.use.containers.get(key, 0.0) < _BUSY * kept

    def return_what_is_beyond(self) -> None:
        """Announce what a container has beyond its range, which may have been changed."""
        for key, container in self.wanted.items():
            if key not in self.held:
                continue
            held = self.held[key]
            beyond = count_bits(held.admitted | held.grown) - max(container.most, count_bits(held.admitted))
            while beyond > 0:
                unit = self._unit_of(key)
                if not unit:
                    break
                self._announce(unit)
                beyond -= count_bits(unit)

    def refill_pool(self) -> None:
        """Give the shared pool CPUs back when it is pressed, or below its floor."""
        size = self._size_to_come()
        is_pressed = self.use.shared > _PRESSED * size
        self._take_back((self._kept() if is_pressed else self.rules.floor) - size)

    def level(self) -> None:
        """Have a container that is idle, or has grown by two more, give a unit where nothing is free for a busy one."""
        hungry = self._hungry()
        if self.claimed or not hungry or (count_bits(self.pool) > self._kept() and self.pool & self.given):
            return
        # What is leaving anyway is for the first of them.
        for key in hungry[count_bits(self._leaving()) :]:
            donors = [donor for donor in self.held if donor != key and self._giveable(donor)]
            if not donors:
                return
            donor = self._donor(donors)
            difference = count_bits(self.held[donor].grown) - count_bits(self.held[key].grown)
            if not self._is_idle(donor) and difference < 2:
                # Nor is there anybody to give to those that have grown more.
                return
            self._announce(self._unit_of(donor))

    def release(self, answered: AbstractSet[Key]) -> bool:
        """Take what has been announced long enough, or was left already: whether there was any."""
        for key, held in self.held.items():
            if held.leaving and (held.until <= self.now or (key in answered and key not in self.announced)):
                self.held[key] = Held(held.admitted, held.cpus & ~held.leaving)
                self.shrunk.add(key)
        return bool(self.shrunk)

    # --- growing ---------------------------------------------------------------------------------

    def _hungry(self) -> list[Key]:
        """Return the elastic containers that are busy and may have more, those first that have grown least."""
        found = []
        for key, container in self.wanted.items():
            held = self.held.get(key)
            if held is None or held.leaving or key in self.shrunk or count_bits(held.admitted) < container.cpus:
                continue
            size = count_bits(held.cpus)
            if size < container.most and self.use.containers.get(key, 0.0) >= _BUSY * size:
                found.append(key)
        return sorted(found, key=lambda key: count_bits(self.held[key].grown))

    def _moved(self) -> int:
        mask = 0
        nothing = Held(0, 0)
        for key in {**self.former.containers, **self.held}:
            mask |= self.former.containers.get(key, nothing).cpus ^ self.held.get(key, nothing).cpus
        return mask

    def _soon(self) -> int:
        """Return how many CPUs another container could be given within the delay."""
        settled = self._grown() & ~self.unsettled
        return count_bits(self.pool) - self.rules.floor + count_bits(settled)

    def _largest(self) -> int:
        """Return how many CPUs another container may request: as many as the largest of those that have theirs."""
        return max((count_bits(held.admitted) for held in self.held.values()), default=0)

    def grow(self) -> None:
        """Give what is free to the busy ones, a unit to each in turn, at most half as much again as each has.

        What is just given cannot be taken back before it has settled: so much is left that a further container need
        not wait for it.
        """
        if self.claimed:
            return
        pool = self.pool
        free = pool & self.given & ~self.unsettled
        spare = min(count_bits(pool) - self._kept(), self._soon() - self._largest())
        rooms = {}
        for key in self._hungry():
            size = count_bits(self.held[key].cpus)
            step = max(self.rules.topology.cpus_per_core if self.near.whole_cores else 1, size // 2)
            rooms[key] = min(step, self.wanted[key].most - size)
        while rooms and free and spare > 0:
            for key in list(rooms):
                held = self.held[key]
                unit = self.near.unit_to_add(held.cpus, free, min(rooms[key], spare))
                if not unit:
                    del rooms[key]
                    continue
                self.held[key] = held._replace(cpus=held.cpus | unit)
                free &= ~unit
                spare -= count_bits(unit)
                rooms[key] -= count_bits(unit)

    # --- the answer ------------------------------------------------------------------------------

    def state(self) -> DynamicState:
        """Return the promise."""
        moved = self._moved()
        changed = {at: mask & ~moved for at, mask in self.changed.items()}
        changed[self.now] |= moved
        # In the order in which they came, also for one that got its set late.
        held = {key: self.held[key] for key in self.wanted if key in self.held}
        return DynamicState(self.pool, held, {at: mask for at, mask in sorted(changed.items()) if mask})


def _rounded_up(number: float) -> int:
    return -int(-number // 1)


DYNAMIC = "dynamic"


class Decision(NamedTuple):
    """What a pass comes to: the promise, the steps to it, and the containers that wait for their first set."""

    state: DynamicState
    moves: Sequence[Move]
    waiting: Sequence[Key]


def first_state(rules: DynamicRules) -> DynamicState:
    """Return that of a node without containers."""
    return DynamicState(rules.topology.cpus)


def decide(
    rules: DynamicRules,
    containers: Sequence[WantedContainer],
    use: Use,
    former: DynamicState,
    now: float,
    answered: AbstractSet[Key] = frozenset(),
) -> Decision:
    """Return one pass.

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

    def __init__(self, rules: DynamicRules, minor: int) -> None:
        super().__init__(rules.topology, rules.options, rules.reserved, minor, SAFE)
        self.rules = rules.checked()
        self.shared_minimum = rules.shared_minimum

    def _take(self, state: RunningState, count: int, affinity: int | None, reusable: int) -> int:
        """Return a pass keeps a container waiting whose first set the shared pool cannot spare."""
        mask = super()._take(state, count, affinity, reusable)
        if count_bits((state.default | self._reserved) & ~mask) < self.rules.floor:
            raise AllocationError(
                "not enough cpus available to satisfy request: the shared pool keeps %s"
                % counted(self.rules.floor, "CPU")
            )
        return mask

    def decide(
        self,
        containers: Iterable[WantedContainer],
        use: Use,
        former: DynamicState,
        now: float,
        answered: AbstractSet[Key] = frozenset(),
    ) -> Decision:
        """Return one pass, see decide()."""
        return decide(self.rules, tuple(containers), use, former, now, answered)
