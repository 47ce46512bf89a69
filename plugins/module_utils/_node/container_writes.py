# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Bring containers to the CPUs that were decided: what to write in which order, and what came of it."""

from __future__ import annotations

import posixpath
from typing import Callable, Iterable, Mapping, NamedTuple, Sequence

from .._base.errors import CPUManagerError, InputError, NodeError, RefusedError, option
from .._cgroup.hierarchy import CPUS, Cgroup, Hierarchy, lineage, parent_of
from .._cgroup.kubepods import GUARANTEED
from .._cgroup.writer import carry_out, systemd_of
from .._cgroup.writes import WantedCpuset, Write, WritePlan, plan_writes, shown
from .._containers.crictl import Crictl
from .._containers.pods import APP, Container, Pod
from .._host.layers import allowed_cpus
from ..cpuset import CPUSet
from ..policy.options import StaticOptions
from ..state.acceptance import STATIC, CPUManagerConfig
from ..state.assignments import State
from ..state.repair import pins_of, repair
from ..topology.kubelet_view import CPUTopology
from .container_cpus import (
    ENDED,
    FAILED,
    KEPT,
    NODE_ITSELF,
    SKIPPED,
    WRITE,
    WRITTEN,
    ContainerRow,
    Running,
    cuts,
    ways_out,
    widened,
)

# What to write so that each container has its CPUs. Pure: it reads and writes nothing.


# --- one container's writes ---------------------------------------------------------------------------


def above_of(version: int, container: Running) -> list[str]:
    """Return the cgroups above a container beside which others may have its CPUs to themselves: those that may be
    widened, and on v1 all.
    """
    return list(lineage(parent_of(container.cgroup))) if version == 1 else _between(container)


def plan_container(
    version: int, cgroups: Mapping[str, Cgroup], container: Running, wanted: CPUSet, online: CPUSet, mems: CPUSet
) -> WritePlan:
    """Return the writes that make a set effective in a container's cgroup: those above it are widened where they cut
    it.

    cgroups: all around it and above_of() it, as they are when it is written.
    Raises RefusedError with the reason when there are no such writes.
    """
    above = _between(container)
    # A partition has CPUs of its own, which those above it do not have any more.
    partition = next((place for place, path in enumerate(above) if cgroups[path].is_valid_partition()), None)
    if partition is not None:
        outside, above = cgroups[above[partition]], above[:partition]
    else:
        outside = cgroups[parent_of(above[-1] if above else container.cgroup)]
    missing = wanted - outside.effective_cpus
    if missing:
        raise _lacking(version, cgroups, outside.path, missing)
    holders = _holders(cgroups, wanted, container.cgroup) if version != 1 else []
    if holders:
        where, owners = container.cgroup, ", ".join(holders)
        raise RefusedError("cannot have all of %s" % wanted, where, "partitions have them: " + owners)
    asked = []
    # A cgroup of v2 remembers CPUs that are offline.
    allowed = online
    for path in above:
        held = cgroups[path].cpus or CPUSet()
        wider = widened(version, held, cgroups[path].effective_cpus, wanted)
        if wider is not None:
            asked.append(WantedCpuset(path, wider))
            allowed = allowed | held if version != 1 else allowed
    asked.append(WantedCpuset(container.cgroup, wanted))
    own, inner = cgroups[container.cgroup], cgroups[container.process_cgroup]
    if inner.path != container.cgroup and (version == 1 or cuts(version, inner.cpus or CPUSet(), wanted)):
        asked.append(WantedCpuset(inner.path, wanted))
    plan = plan_writes(version, cgroups, asked, allowed, mems)
    # Else what was done for another container has widened what cut this one.
    cut = [cpus for cpus in (own.effective_cpus, inner.effective_cpus) if cpus != wanted]
    if not plan.writes and cut:
        raise RefusedError(
            "its %s is %s already, and the kernel makes only %s of it effective" % (CPUS, wanted, cut[0])
        )
    return plan


def after_writes(version: int, cgroups: Mapping[str, Cgroup], writes: Iterable[Write]) -> dict[str, Cgroup]:
    """Return what is in the cgroups after these writes of CPUs."""
    found = dict(cgroups)
    for write in writes:
        found[write.path] = found[write.path]._replace(cpus=write.new, effective_cpus=write.new)
        if version == 1:
            continue
        for path in sorted(found):
            if path == write.path or path.startswith(write.path + "/"):
                own, above = found[path].cpus or CPUSet(), found[parent_of(path)].effective_cpus
                found[path] = found[path]._replace(effective_cpus=own & above or above)
    return found


def _lacking(version: int, cgroups: Mapping[str, Cgroup], outside: str, missing: CPUSet) -> RefusedError:
    """Return what to say of the cgroup that the kubelet's are in, or a container that has no kubelet."""
    above = [cgroups[path] for path in reversed(list(lineage(outside)))]
    narrow = [cgroup.path for cgroup in above if cuts(version, cgroup.cpus or CPUSet(), missing)]
    holders = ", ".join(_holders(cgroups, missing, outside))
    owners = ("exclusive cgroups" if version == 1 else "partitions") + " have them: %s; " % holders if holders else ""
    wide = narrow if len(narrow) > 1 else ["it"] if narrow else [] if holders else [NODE_ITSELF]
    return RefusedError(
        "has no CPUs %s, and is not the kubelet's to widen" % missing,
        where=(narrow or [outside or "/"])[0],
        remedy=owners + ways_out(missing, wide),
    )


def _holders(cgroups: Mapping[str, Cgroup], cpus: CPUSet, path: str) -> list[str]:
    """Return the cgroups, none of them above this one, that have some of these CPUs to themselves."""
    above = set(lineage(path))
    return [
        "%s (%s)" % (holder, cgroup.effective_cpus & cpus)
        for holder, cgroup in sorted(cgroups.items())
        if holder
        and holder not in above
        and (cgroup.is_valid_partition() or cgroup.cpu_exclusive)
        and not cpus.isdisjoint(cgroup.effective_cpus)
    ]


def _between(container: Running) -> list[str]:
    """Return the cgroups above a container that may be widened, from below."""
    paths = []
    path = container.cgroup
    while container.top and path != container.top:
        path = parent_of(path)
        paths.append(path)
    return paths


# --- a node without a kubelet -------------------------------------------------------------------------


class Listed(NamedTuple):
    """A container of a node without a kubelet: its pod, its name, its cgroup, and how many CPUs are its own."""

    pod: str
    name: str
    cgroup: str
    cpus: int


class ReconcileRules(NamedTuple):
    """By what the CPUs are given out."""

    topology: CPUTopology
    options: StaticOptions
    reserved: CPUSet
    minor: int


def allocate(listed: Sequence[Listed], old: bytes | None, rules: ReconcileRules) -> tuple[State, list[str]]:
    """Return the state in which each listed container has its CPUs, and notes on those that could not keep theirs.

    What the checkpoint `old` gives is kept where it has the right count and harms nobody; what is not listed is
    taken back. Raises RefusedError when there are not enough CPUs, InputError for a container that is listed twice.
    """
    # A node with a kubelet does without them.
    from ..policy.assignment import SAFE
    from ..policy.static import AllocationError, RunningState, StaticPolicy

    policy = StaticPolicy(rules.topology, rules.options, rules.reserved, rules.minor, SAFE)
    counts = _counts(listed)
    unknown = rules.reserved - rules.topology.all_cpus()
    if unknown:
        raise InputError("the node has no CPUs %s online" % unknown, where=option("reserved_system_cpus"))
    config = CPUManagerConfig(
        STATIC, rules.topology.all_cpus(), rules.reserved, rules.options.strict_cpu_reservation, rules.minor
    )
    pods = list(dict.fromkeys(container.pod for container in listed))
    repaired = repair(pins_of(old), config, pods)
    notes = [loss.to_text() for loss in repaired.losses]
    state = RunningState(repaired.state)
    for pod, containers in repaired.state.assignments.items():
        for name, cpus in containers.items():
            if counts.get((pod, name), 0) != len(cpus) or not cpus:
                policy.remove(state, pod, name)
    for uid in pods:
        own = [container for container in listed if container.pod == uid]
        whole = Pod(uid, uid, tuple(_as_specified(container) for container in own), GUARANTEED)
        # Only those that have nothing: the kubelet would look first whether the node has room for all.
        for container in own:
            if state.get(uid, container.name) is not None:
                continue
            try:
                policy.allocate(state, whole, container.name, None)
            except AllocationError as error:
                where = "pod %s, container %s" % (uid, container.name)
                raise RefusedError("%s; nothing was written" % error, where) from error
    if not state.default:
        raise RefusedError("no CPU would be left for the shared pool; nothing was written", remedy="reserve fewer")
    return state.snapshot(), notes


def _counts(listed: Iterable[Listed]) -> dict[tuple[str, str], int]:
    counts: dict[tuple[str, str], int] = {}
    for container in listed:
        if (container.pod, container.name) in counts:
            raise InputError(
                "pod %s has two containers named %s" % (container.pod, container.name), where=option("containers")
            )
        if container.cpus < 0:
            where = "%s: pod %s, container %s" % (option("containers"), container.pod, container.name)
            raise InputError("%d CPUs are fewer than none" % container.cpus, where)
        counts[container.pod, container.name] = container.cpus
    return counts


def _as_specified(container: Listed) -> Container:
    cpu = {"cpu": 1000 * container.cpus}
    return Container(container.name, APP, cpu, cpu)


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

    def settle(self, running: Sequence[Running], rows: Sequence[ContainerRow]) -> list[ContainerRow]:
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

    def _changed(self, running: Sequence[Running], rows: Sequence[ContainerRow]) -> list[int]:
        """Return the containers that had the right CPUs, and have not after what was written for another."""
        found = []
        for number, row in enumerate(rows):
            if row.result == KEPT and any(cpus != row.wanted for cpus in self._effective(running[number])):
                found.append(number)
        return found

    def _effective(self, container: Running) -> list[CPUSet]:
        """Return what is effective in a container's cgroups, of those that are there."""
        paths = (container.cgroup, container.process_cgroup)
        return [self.cgroups[path].effective_cpus for path in paths if path in self.cgroups]

    def _around(self, running: Sequence[Running]) -> dict[str, Cgroup]:
        """Return the cgroups of these containers and all around them, of those that are still there."""
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
        """Return a container without the cgroup below its own, where that is gone: the container itself may remove
        it."""
        is_there = self.hierarchy.effective_cpus(container.process_cgroup) is not None
        return container if is_there else container._replace(process_cgroup=container.cgroup)

    def _settle(self, container: Running, row: ContainerRow) -> ContainerRow:
        if any(path not in self.cgroups for path in lineage(container.cgroup)):
            return row._replace(result=SKIPPED, why=ENDED)
        if container.process_cgroup not in self.cgroups:
            container = container._replace(process_cgroup=container.cgroup)
        try:
            plan = plan_container(self.hierarchy.version, self.cgroups, container, row.wanted, self.online, self.mems)
            self._check_units(_above(container, plan))
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

    def _check_units(self, above: Sequence[Write]) -> None:
        """Raise RefusedError where an administrator gives one of these cgroups, which are to be widened, its CPUs."""
        for write in above if self.hierarchy.version != 1 else ():
            given = allowed_cpus(self.hierarchy.tree, posixpath.basename(write.path))
            missing = CPUSet() if given is None or given.cpus is None else write.new & self.online - given.cpus
            # What is in /run was set for a while, perhaps by an earlier pass.
            if given is not None and missing and not given.path.startswith("/run/"):
                what = "has no CPUs %s, as AllowedCPUs= in %s gives it others" % (missing, given.path)
                raise RefusedError(what, where=write.path, remedy=ways_out(missing, ["it there"]))

    def _write(self, container: Running, row: ContainerRow, plan: WritePlan) -> None:
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
        """Read what a failure has left in a container's cgroup and above it."""
        for path in lineage(container.process_cgroup):
            try:
                self.cgroups[path] = self.hierarchy.read(path)
            except NodeError:
                self.cgroups.pop(path, None)


def rehearse(
    hierarchy: Hierarchy, online: CPUSet, running: Sequence[Running], rows: Sequence[ContainerRow]
) -> Mapping[str, CPUManagerError]:
    """Return which containers a pass could not write, and why: {a container's cgroup: the error}. Nothing is
    written."""
    pass_ = Settling(hierarchy, online, None, lambda: True, act=False)
    pass_.settle(running, rows)
    return pass_.failures


def _above(container: Running, plan: WritePlan) -> list[Write]:
    """Return the writes of what is above a container."""
    return [write for write in plan.writes if write.path not in (container.cgroup, container.process_cgroup)]
