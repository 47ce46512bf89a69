# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whose each CPU's time was, made of one sample. Pure.

What is busy and belongs to nobody that was seen is unattributed: it is neither dropped nor given to anybody.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Callable, Mapping, NamedTuple

from ..cgroup.hierarchy import lineage
from ..cpuset import CPUSet

if TYPE_CHECKING:
    from .sample import Sample
    from .tasks import TaskTime

CONTAINER = "container"
CGROUP = "cgroup"
PROCESS = "process"
KERNEL_THREAD = "kernel thread"
INTERRUPTS = "interrupts"
STEAL = "steal"
UNATTRIBUTED = "unattributed"
OBSERVER = "observer"

# A kernel worker's name ends in what it works on just now, kworker/1:2+events, or worked on last, kworker/1:2-events.
_KERNEL_WORKER = "kworker/"

# What is less comes of sums of fractions.
_NOTHING = 1e-9


class Owner(NamedTuple):
    """Who ran: a container by namespace, pod and name, a cgroup by its path, a process or kernel thread by its comm.

    id: of a container; else empty.
    """

    kind: str
    name: str
    id: str = ""


class Part(NamedTuple):
    """An owner's share of a CPU's time. sure: counted there by the kernel; else the CPU was sampled."""

    share: float
    sure: bool


class Account(NamedTuple):
    """One CPU's time, in shares of it. irq, softirq and steal are counted in ticks."""

    parts: Mapping[Owner, Part]
    unattributed: float
    idle: float
    irq: float
    softirq: float
    steal: float


# The owner that a cgroup's path means.
Named = Callable[[str], Owner]


def accounts(
    sample: Sample, named: Named, confined: Mapping[str, CPUSet], changed: Mapping[str, CPUSet] = MappingProxyType({})
) -> dict[int, Account]:
    """{CPU: its account}, of all that are online.

    confined: {cgroup of v2: its CPUs}, of those in `sample.totals` that may use no other CPUs: the time that its tasks
    do not account for, as they are too short-lived, was there all the same.
    changed: {cgroup of v1: CPUs}, of those below which a container of these CPUs ended or began: what it counted there
    itself is unattributed, as it has the time of such containers, too.
    """
    sure: dict[int, dict[Owner, float]] = {cpu: {} for cpu in sample.online}
    sampled: dict[int, dict[Owner, float]] = {cpu: {} for cpu in sample.online}
    # What `sampled` and the unattributed time of a CPU are within.
    room, lost = _room(sample, sure, named, changed)
    counted = frozenset(cgroup.path for cgroup in sample.cgroups or () if cgroup.path)
    for task in sample.tasks:
        owner = _owner(task, sample, named)
        within = next((path for path in lineage(task.cgroup) if path in counted), "")
        if within and owner.kind != OBSERVER:
            continue  # its cgroup has counted it
        if within:
            _move(sure, named(within), owner, task)
            continue
        parts = sure if task.sure else sampled
        for cpu, share in task.shares.items():
            if cpu in parts:
                parts[cpu][owner] = parts[cpu].get(owner, 0.0) + share
                if task.sure:
                    room[cpu] -= share
    left = {cpu: room[cpu] - sum(parts.values()) for cpu, parts in sampled.items()}
    if sample.cgroups is None:
        _complete(sample, named, confined, sure, sampled, left)
    return {
        cpu: _account(sample, cpu, sure[cpu], sampled[cpu], room[cpu], max(left[cpu], 0.0) + lost[cpu])
        for cpu in sample.online
    }


def _account(
    sample: Sample, cpu: int, sure: Mapping[Owner, float], sampled: Mapping[Owner, float], room: float, left: float
) -> Account:
    """One CPU's. room: for those that were sampled there; left: what is still unattributed."""
    parts = {owner: Part(share, True) for owner, share in sure.items() if share > 0}
    wanted = sum(sampled.values())
    # Of what was seen on this CPU, some ran elsewhere: the kernel's count of the CPU is right.
    most = max(room if sample.busy_exact else _most(sample, cpu) - sum(sure.values()), 0.0)
    factor = min(most / wanted, 1.0) if wanted else 0.0
    for owner, share in sampled.items():
        if share * factor > 0:
            parts[owner] = Part(sure.get(owner, 0.0) + share * factor, False)
    ticks, unit = sample.ticks.get(cpu), sample.tick / sample.elapsed
    return Account(
        dict(sorted(parts.items(), key=lambda item: -item[1].share)),
        left if left > _NOTHING else 0.0,
        sample.idle.get(cpu, 0.0),
        *((ticks.irq * unit, ticks.softirq * unit, ticks.steal * unit) if ticks else (0.0, 0.0, 0.0)),
    )


def _room(
    sample: Sample, sure: dict[int, dict[Owner, float]], named: Named, changed: Mapping[str, CPUSet]
) -> tuple[dict[int, float], dict[int, float]]:
    """Put the cgroups of v1 down; of each CPU's busy time, what is left for single tasks, and what no owner has."""
    room = {cpu: sample.busy.get(cpu, 0.0) for cpu in sample.online}
    lost = dict.fromkeys(sample.online, 0.0)
    for cgroup in sample.cgroups or ():
        if not cgroup.path:
            continue
        owner, unknown = named(cgroup.path), changed.get(cgroup.path, ())
        for cpu, share in cgroup.shares.items():
            if cpu not in sure:
                continue
            room[cpu] -= share
            if cpu in unknown:
                lost[cpu] += share
            else:
                sure[cpu][owner] = sure[cpu].get(owner, 0.0) + share
    return room, lost


def _most(sample: Sample, cpu: int) -> float:
    """How much tasks can have run on a CPU at most, where that is counted in ticks."""
    return max(1 - sample.idle.get(cpu, 0.0), sample.busy.get(cpu, 0.0)) + 2 * sample.tick / sample.elapsed


def _complete(
    sample: Sample,
    named: Named,
    confined: Mapping[str, CPUSet],
    sure: dict[int, dict[Owner, float]],
    sampled: dict[int, dict[Owner, float]],
    left: dict[int, float],
) -> None:
    """Give a cgroup that may use no other CPUs what it counted itself and its tasks did not account for."""
    for path, cpus in confined.items():
        owner = named(path)
        seen = sum(parts[cpu].get(owner, 0.0) for parts in (sure, sampled) for cpu in sample.online)
        missing = sample.totals.get(path, 0.0) - seen
        there = {cpu: left[cpu] for cpu in cpus & sample.online if left[cpu] > 0}
        part = min(missing / sum(there.values()), 1.0) if there else 0.0
        for cpu, share in there.items() if part > 0 else ():
            sampled[cpu][owner] = sampled[cpu].get(owner, 0.0) + share * part
            left[cpu] -= share * part


def _move(sure: dict[int, dict[Owner, float]], cgroup: Owner, owner: Owner, task: TaskTime) -> None:
    """Take a task out of its cgroup's account."""
    for cpu, share in task.shares.items():
        part = min(share, sure.get(cpu, {}).get(cgroup, 0.0))
        if part > 0:
            sure[cpu][cgroup] -= part
            sure[cpu][owner] = sure[cpu].get(owner, 0.0) + part


def _owner(task: TaskTime, sample: Sample, named: Named) -> Owner:
    if task.pid == sample.observer.pid:
        return Owner(OBSERVER, task.name)
    if task.kernel:
        name = task.name
        return Owner(KERNEL_THREAD, name.replace("+", "-", 1) if name.startswith(_KERNEL_WORKER) else name)
    return named(task.cgroup) if task.cgroup else Owner(PROCESS, task.name)
