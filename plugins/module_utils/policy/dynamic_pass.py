# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One pass of the policy dynamic in progress; its laws are in dynamic.py. Pure."""

from __future__ import annotations

from typing import AbstractSet, Sequence

from ..cpuset import count_bits, lowest_bits
from .assignment import take_mask
from .dynamic_rules import Rules, Use, Wanted
from .dynamic_state import DynamicState, Held, Key
from .near import Near, groups_of
from .packed import SAFE, TakeError

# A container that uses this part of its CPUs is busy, and grows.
_BUSY = 0.9
# The shared pool gets CPUs back when more than this part of it is used, so many that it uses no more than the other.
_PRESSED, _CONTENT = 0.75, 0.5


class Pass:
    """One pass in progress."""

    def __init__(self, rules: Rules, containers: Sequence[Wanted], use: Use, former: DynamicState, now: float) -> None:
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
        """What a container has, but for CPUs that were switched off or reserved since."""
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
        """How many CPUs the shared pool has once all is done that is announced and claimed."""
        return count_bits((self.pool | self._leaving()) & ~self.claimed)

    def _kept(self) -> int:
        """How many CPUs the shared pool is to have, so that it keeps its floor and is not pressed soon."""
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
        """Whether the shared pool would be pressed with so many CPUs left, and others give some back soon.

        A container that starts has less to lose than those that run.
        """
        lacking = _rounded_up(self.use.shared / _PRESSED) - left
        if lacking <= 0:
            return False
        self._take_back(lacking - count_bits(self._leaving() & ~self.claimed))
        return bool(self._leaving() & ~self.claimed)

    def _first_set(self, held: Held, missing: int, free: int, leaving: int) -> int:
        """The CPUs to complete a first set with; 0 where there never are as many, as things are.

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
        """What can be announced to leave: what has settled. One announcement at a time, so that each has its delay."""
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
        """Whether it would not be busy with a unit less."""
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
        """Where nothing is free for a busy container: have one give a unit that is idle, or has grown by two more."""
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
        """The elastic containers that are busy and may have more, those first that have grown least."""
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
        """How many CPUs another container could be given within the delay."""
        settled = self._grown() & ~self.unsettled
        return count_bits(self.pool) - self.rules.floor + count_bits(settled)

    def _largest(self) -> int:
        """How many CPUs another container may request: as many as the largest of those that have theirs."""
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
        """The promise."""
        moved = self._moved()
        changed = {at: mask & ~moved for at, mask in self.changed.items()}
        changed[self.now] |= moved
        # In the order in which they came, also for one that got its set late.
        held = {key: self.held[key] for key in self.wanted if key in self.held}
        return DynamicState(self.pool, held, {at: mask for at, mask in sorted(changed.items()) if mask})


def _rounded_up(number: float) -> int:
    return -int(-number // 1)
