# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Carry the moves of a pass out, in their order: in the cpusets of cgroups, and in the files of containers.

What the kernel refuses one container is not given to another: before each gift, this looks who else has the CPUs.
"""

from __future__ import annotations

from typing import Iterable, Sequence

from ...cgroup.hierarchy import Hierarchy
from ...cpuset import CPUSet
from ...errors import NodeError, RefusedError
from ...policy.dynamic_state import DynamicState, Held, Key
from ...policy.moves import ANNOUNCE, EXCLUSIVE, REMOVE, SHARE, Move
from ..published.content import OURS, Entry
from ..published.publish import Publishing
from ..reconcile.decide import FAILED, SKIPPED, WRITE, Row, Running
from ..reconcile.settle import Settling
from .census import Present


class Acting:
    """The writing part of one pass.

    exclusive: {container: the mask that the kernel has for it alone}, before the pass. Attributes: done, the moves that
    were made; refused, what could not be done, for people.
    """

    def __init__(
        self,
        hierarchy: Hierarchy,
        online: CPUSet,
        present: Sequence[Present],
        state: DynamicState,
        exclusive: Iterable[Key],
        publishing: Publishing,
    ) -> None:
        self._hierarchy, self._online = hierarchy, online
        self._present, self._state, self._publishing = present, state, publishing
        self._exclusive = set(exclusive)
        self._effective = {container.running.id: container.running.effective or CPUSet() for container in present}
        self._narrowed = {container.running.id for container in present if container.running.inner is not None}
        self.done: list[Move] = []
        self.refused: list[str] = []

    def carry_out(self, moves: Iterable[Move]) -> None:
        """Make these moves."""
        for move in moves:
            if move.key is None:
                is_done = self._set_pool(move.cpus)
            elif move.what == EXCLUSIVE:
                is_done = self._give(move.key, move.cpus)
            elif move.what == SHARE:
                is_done = self._share(move.key)
            else:
                is_done = move.what in (ANNOUNCE, REMOVE) and self._announce(move)
            if is_done:
                self.done.append(move)

    def entries(self) -> list[Entry]:
        """What the file of each container is to say."""
        return [
            self._entry(container, self._state.containers.get(container.key))
            for container in self._present
            if container.key is not None
        ]

    # --- the kernel ------------------------------------------------------------------------------------------

    def _give(self, key: Key, mask: int) -> bool:
        """Let a container have these CPUs alone, if nobody else has any of them."""
        own = [container for container in self._present if container.key == key]
        # What it has alone already, it may keep, whoever else has come upon it.
        new = mask & ~self._held_by(own) if key in self._exclusive else mask
        taken = new & self._held_by(container for container in self._present if container.key != key)
        if taken:
            self.refused.append(
                "pod %s, container %s does not get CPUs %s: others still have %s"
                % (*key, CPUSet.from_mask(mask), CPUSet.from_mask(taken))
            )
            return False
        self._exclusive.add(key)
        return self._settle(own, mask)

    def _share(self, key: Key) -> bool:
        """Let a container run on the shared pool."""
        self._exclusive.discard(key)
        return self._settle(
            [container for container in self._present if container.key == key], self._pool(self._state.shared)
        )

    def _set_pool(self, mask: int) -> bool:
        """Set the shared pool."""
        return self._settle(
            [container for container in self._present if container.key not in self._exclusive], self._pool(mask)
        )

    def _pool(self, mask: int) -> int:
        """What of a pool nobody still has alone."""
        return mask & ~self._held_by(container for container in self._present if container.key in self._exclusive)

    def _held_by(self, present: Iterable[Present]) -> int:
        mask = 0
        for container in present:
            mask |= self._effective[container.running.id].mask
        return mask

    def _settle(self, present: Sequence[Present], mask: int) -> bool:
        """Bring containers to these CPUs; whether all are there."""
        wanted = CPUSet.from_mask(mask) & self._online
        pending = [
            container.running
            for container in present
            if self._effective[container.running.id] != wanted or container.running.id in self._narrowed
        ]
        if not pending:
            return True
        if not wanted:
            self.refused.append("%s: none of its CPUs is left for it" % pending[0].cgroup)
            return False
        settling = Settling(self._hierarchy, self._online, None, lambda: True, True)
        rows = [self._row(running, wanted) for running in pending]
        failed = False
        for running, row in zip(pending, settling.settle(pending, rows)):
            now = wanted
            if row.result in (FAILED, SKIPPED):
                now = self._hierarchy.effective_cpus(running.cgroup) or CPUSet()
            if row.result == FAILED:
                failed = True
                self.refused.append("pod %s, container %s: %s" % (row.pod or row.pod_uid, row.container, row.why))
            self._effective[running.id] = now
            self._narrowed.discard(running.id)
        return not failed

    def _row(self, running: Running, wanted: CPUSet) -> Row:
        now = self._effective[running.id]
        names = (running.pod_uid, running.pod, running.name or "", running.id, running.cgroup)
        return Row(*names, wanted, now, WRITE)

    # --- the files -------------------------------------------------------------------------------------------

    def _announce(self, move: Move) -> bool:
        """Say in a container's file what it is to use. A file that is to be removed is, in the end, that of one that
        shares the pool, or that has ended."""
        try:
            for container in self._present:
                if container.key == move.key:
                    held = Held(0, move.cpus) if move.what == ANNOUNCE else None
                    self._publishing.put(self._entry(container, held, move.until))
        except (NodeError, RefusedError) as error:
            self.refused.append(str(error))
            return False
        return True

    def _entry(self, container: Present, held: Held | None, until: float | None = None) -> Entry:
        running, effective = container.running, self._effective[container.running.id]
        name = running.name or ""
        if held is None or container.key not in self._exclusive:
            pool = CPUSet.from_mask(self._state.shared) & self._online
            return Entry(running.pod_uid, name, pool & effective or effective, False, OURS, effective)
        if until is None and held.leaving:
            until = held.until
        # Never more than the kernel has followed with.
        kept = CPUSet.from_mask(held.cpus & ~held.leaving)
        cpus = kept & effective or effective
        leaving = CPUSet() if until is None else effective - cpus
        return Entry(running.pod_uid, name, cpus, True, OURS, effective, leaving, until)
