# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The writing part of a pass: bring containers to the CPUs that were decided, and look at what came of it."""

from __future__ import annotations

from typing import Callable, Mapping, Sequence

from ...cgroup.hierarchy import Cgroup, Hierarchy, lineage
from ...cgroup.plan import Plan, Write, shown
from ...cgroup.writer import carry_out, systemd_of
from ...cpuset import CPUSet
from ...errors import CPUManagerError, NodeError, RefusedError
from ...workload.crictl import Crictl
from .decide import ENDED, FAILED, KEPT, SKIPPED, WRITE, WRITTEN, Row, Running
from .plan import above_of, after_writes, plan_container


class Settling:
    """The writing part of one pass.

    is_current: whether the checkpoint is still the one that was read; after a change of it, what is wanted may be
    somebody else's by now.
    """

    def __init__(
        self, hierarchy: Hierarchy, online: CPUSet, runtime: Crictl | None, is_current: Callable[[], bool], act: bool
    ) -> None:
        self.hierarchy = hierarchy
        self.online = online
        self.runtime = runtime
        self.is_current = is_current
        self.act = act
        self.widened: list[Write] = []
        # {a container's cgroup: why it cannot be written}
        self.failures: dict[str, CPUManagerError] = {}
        # Until the next boot: the kubelet and the runtime make them anew.
        self.systemd = systemd_of(hierarchy, runtime=True)
        self.cgroups: dict[str, Cgroup] = {}
        self.mems = CPUSet()

    def settle(self, running: Sequence[Running], rows: Sequence[Row]) -> list[Row]:
        """Carry the decisions out, one container after the other: the failure of one is not that of the next."""
        settled = list(rows)
        pending = [number for number, row in enumerate(rows) if row.result == WRITE]
        if not pending:
            return settled
        self.mems = self.hierarchy.memory_nodes()
        # On v2 a cgroup gets what those above it let through: to widen one may change what others have.
        met = [row.result == WRITE or (row.result == KEPT and self.hierarchy.version == 2) for row in rows]
        self.cgroups = self._around([container for container, is_met in zip(running, met) if is_met])
        # Those first that give something up, which another may be waiting for.
        queue = sorted(pending, key=lambda number: rows[number].effective <= rows[number].wanted)
        for number in queue:
            widened = len(self.widened)
            settled[number] = self._settle(running[number], settled[number])
            if self.hierarchy.version == 2 and len(self.widened) > widened:
                for changed in self._changed(running, settled):
                    settled[changed] = settled[changed]._replace(result=WRITE)
                    queue.append(changed)
        return settled

    def _changed(self, running: Sequence[Running], rows: Sequence[Row]) -> list[int]:
        """The containers that had the right CPUs, and have not after what was written for another."""
        found = []
        for number, row in enumerate(rows):
            if row.result == KEPT and any(cpus != row.wanted for cpus in self._effective(running[number])):
                found.append(number)
        return found

    def _effective(self, container: Running) -> list[CPUSet]:
        """What is effective in a container's cgroups, of those that are there."""
        paths = (container.cgroup, container.process_cgroup)
        return [self.cgroups[path].effective_cpus for path in paths if path in self.cgroups]

    def _around(self, running: Sequence[Running]) -> dict[str, Cgroup]:
        """The cgroups of these containers and all around them, of those that are still there."""
        while True:
            try:
                return self.hierarchy.around(
                    (path for container in running for path in (container.cgroup, container.process_cgroup)),
                    (path for container in running for path in above_of(self.hierarchy.version, container)),
                )
            except NodeError:
                left = [self._present(container) for container in running if not self._has_ended(container)]
                if left == running:
                    raise
                running = left

    def _has_ended(self, container: Running) -> bool:
        return self.hierarchy.effective_cpus(container.cgroup) is None

    def _present(self, container: Running) -> Running:
        """A container without the cgroup below its own, where that is gone: the container itself may remove it."""
        is_there = self.hierarchy.effective_cpus(container.process_cgroup) is not None
        return container if is_there else container._replace(process_cgroup=container.cgroup)

    def _settle(self, container: Running, row: Row) -> Row:
        if any(path not in self.cgroups for path in lineage(container.cgroup)):
            return row._replace(result=SKIPPED, why=ENDED)
        if container.process_cgroup not in self.cgroups:
            container = container._replace(process_cgroup=container.cgroup)
        try:
            plan = plan_container(self.hierarchy.version, self.cgroups, container, row.wanted, self.online, self.mems)
            if self.runtime is not None:
                self.runtime.check()
            if self.act:
                self._write(container, row, plan)
        except (NodeError, RefusedError) as error:
            if self._has_ended(container):
                return row._replace(result=SKIPPED, why=ENDED)
            if self.act:
                self._read_again(container)
            self.failures[row.cgroup] = error
            return row._replace(result=FAILED, why=str(error))
        if not self.act:
            self.widened += _above(container, plan)
        self.cgroups = after_writes(self.hierarchy.version, self.cgroups, plan.writes)
        return row._replace(result=WRITTEN)

    def _write(self, container: Running, row: Row, plan: Plan) -> None:
        self._check_current()
        above = _above(container, plan)
        through_runtime = self.runtime is not None and self.runtime.serves(container.id)
        carry_out(self.hierarchy, above if through_runtime else plan.writes, self.systemd)
        # Also where the runtime then fails: what is above stays wide, and the next pass needs it.
        self.widened += above
        if self.runtime is not None and through_runtime and len(above) < len(plan.writes):
            self.runtime.set_cpus(container.id, row.wanted)
        for path in dict.fromkeys((container.cgroup, container.process_cgroup)):
            now = self.hierarchy.effective_cpus(path)
            if now != row.wanted:
                raise NodeError(
                    "%s is effective after %s was written" % (shown(now or CPUSet()), row.wanted),
                    where=self.hierarchy.place(path),
                )
        # The runtime takes its time.
        self._check_current()

    def _check_current(self) -> None:
        if not self.is_current():
            raise RefusedError("the checkpoint was changed meanwhile", remedy="run again")

    def _read_again(self, container: Running) -> None:
        """What a failure has left in a container's cgroup and above it."""
        for path in lineage(container.process_cgroup):
            try:
                self.cgroups[path] = self.hierarchy.read(path)
            except NodeError:
                self.cgroups.pop(path, None)


def rehearse(
    hierarchy: Hierarchy, online: CPUSet, running: Sequence[Running], rows: Sequence[Row]
) -> Mapping[str, CPUManagerError]:
    """Which containers a pass could not write, and why: {a container's cgroup: the error}. Nothing is written."""
    pass_ = Settling(hierarchy, online, None, lambda: True, act=False)
    pass_.settle(running, rows)
    return pass_.failures


def _above(container: Running, plan: Plan) -> list[Write]:
    """The writes of what is above a container."""
    return [write for write in plan.writes if write.path not in (container.cgroup, container.process_cgroup)]
