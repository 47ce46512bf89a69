# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whose the time of each CPU was, and whether each container had its exclusive CPUs to itself. Pure."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Callable, Iterable, Mapping, NamedTuple

from .._cgroup.hierarchy import lineage
from ..cpuset import CPUSet

if TYPE_CHECKING:
    from .sample import Sample
    from .watch import TaskTime


# Whose each CPU's time was, made of one sample. Pure.
#
# What is busy and belongs to nobody that was seen is unattributed: it is neither dropped nor given to anybody.


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


class Runner(NamedTuple):
    """Who ran: a container by namespace, pod and name, a cgroup by its path, a process or kernel thread by its comm.

    id: of a container; else empty.
    """

    kind: str
    name: str
    id: str = ""


class RunnerShare(NamedTuple):
    """An owner's share of a CPU's time. sure: counted there by the kernel; else the CPU was sampled."""

    share: float
    sure: bool


class Account(NamedTuple):
    """One CPU's time, in shares of it. irq, softirq and steal are counted in ticks."""

    parts: Mapping[Runner, RunnerShare]
    unattributed: float
    idle: float
    irq: float
    softirq: float
    steal: float


# The owner that a cgroup's path means.
Named = Callable[[str], Runner]


def accounts(
    sample: Sample, named: Named, confined: Mapping[str, CPUSet], changed: Mapping[str, CPUSet] = MappingProxyType({})
) -> dict[int, Account]:
    """Return {CPU: its account}, of all that are online.

    confined: {cgroup of v2: its CPUs}, of those in `sample.totals` that may use no other CPUs: the time that its tasks
    do not account for, as they are too short-lived, was there all the same.
    changed: {cgroup of v1: CPUs}, of those below which a container of these CPUs ended or began: what it counted there
    itself is unattributed, as it has the time of such containers, too.
    """
    sure: dict[int, dict[Runner, float]] = {cpu: {} for cpu in sample.online}
    sampled: dict[int, dict[Runner, float]] = {cpu: {} for cpu in sample.online}
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
    sample: Sample, cpu: int, sure: Mapping[Runner, float], sampled: Mapping[Runner, float], room: float, left: float
) -> Account:
    """Return one CPU's. room: for those that were sampled there; left: what is still unattributed."""
    parts = {owner: RunnerShare(share, True) for owner, share in sure.items() if share > 0}
    wanted = sum(sampled.values())
    # Of what was seen on this CPU, some ran elsewhere: the kernel's count of the CPU is right.
    most = max(room if sample.busy_exact else _most(sample, cpu) - sum(sure.values()), 0.0)
    factor = min(most / wanted, 1.0) if wanted else 0.0
    for owner, share in sampled.items():
        if share * factor > 0:
            parts[owner] = RunnerShare(sure.get(owner, 0.0) + share * factor, False)
    ticks, unit = sample.ticks.get(cpu), sample.tick / sample.elapsed
    return Account(
        dict(sorted(parts.items(), key=lambda item: -item[1].share)),
        left if left > _NOTHING else 0.0,
        sample.idle.get(cpu, 0.0),
        *((ticks.irq * unit, ticks.softirq * unit, ticks.steal * unit) if ticks else (0.0, 0.0, 0.0)),
    )


def _room(
    sample: Sample, sure: dict[int, dict[Runner, float]], named: Named, changed: Mapping[str, CPUSet]
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
    """Return how much tasks can have run on a CPU at most, where that is counted in ticks."""
    return max(1 - sample.idle.get(cpu, 0.0), sample.busy.get(cpu, 0.0)) + 2 * sample.tick / sample.elapsed


def _complete(
    sample: Sample,
    named: Named,
    confined: Mapping[str, CPUSet],
    sure: dict[int, dict[Runner, float]],
    sampled: dict[int, dict[Runner, float]],
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


def _move(sure: dict[int, dict[Runner, float]], cgroup: Runner, owner: Runner, task: TaskTime) -> None:
    """Take a task out of its cgroup's account."""
    for cpu, share in task.shares.items():
        part = min(share, sure.get(cpu, {}).get(cgroup, 0.0))
        if part > 0:
            sure[cpu][cgroup] -= part
            sure[cpu][owner] = sure[cpu].get(owner, 0.0) + part


def _owner(task: TaskTime, sample: Sample, named: Named) -> Runner:
    if task.pid == sample.observer.pid:
        return Runner(OBSERVER, task.name)
    if task.kernel:
        name = task.name
        return Runner(KERNEL_THREAD, name.replace("+", "-", 1) if name.startswith(_KERNEL_WORKER) else name)
    return named(task.cgroup) if task.cgroup else Runner(PROCESS, task.name)


ALONE = "alone"
DISTURBED = "disturbed"
IDLE = "idle"

CHECK = "exclusive-cpus-disturbed"

# What is counted in ticks counts from so many on: the first can be the rest of one before.
_LEAST_TICKS = 2
# Of disturbers below the threshold, so many are shown; of interrupts, so many names.
_MOST_SHOWN = 8
_MOST_NAMES = 3

_REMEDIES = {
    CONTAINER: "give the containers their cpusets back with the playbook repair or the role reconcile",
    CGROUP: "keep the cgroup off these CPUs: AllowedCPUs= of its slice (cgroup v2) or CPUAffinity= in systemd",
    PROCESS: "move the process to a systemd service, with CPUAffinity= or AllowedCPUs= of the reserved CPUs",
    KERNEL_THREAD: "keep kernel threads off: isolcpus=, nohz_full= and rcu_nocbs= on the kernel's command line, and the"
    " masks in /sys/devices/virtual/workqueue; a thread bound to a CPU works for what runs there, or was bound by hand",
    INTERRUPTS: "keep interrupts off: /proc/irq/*/smp_affinity, irqbalance with IRQBALANCE_BANNED_CPULIST, and"
    " rps_cpus of network devices; they may come from the container's own traffic, too",
    STEAL: "the hypervisor took the CPU: give the virtual machine dedicated CPUs",
    UNATTRIBUTED: "look for short-lived processes that may use all CPUs of the machine, such as probes and cron jobs",
}


class Exclusive(NamedTuple):
    """A container with CPUs to itself, by the checkpoint. ids: of its cgroups; empty where it does not run."""

    pod_uid: str
    # Namespace and name; empty where these are not known.
    pod: str
    # Empty for what a whole pod has and none of its containers.
    container: str
    cpus: CPUSet
    ids: frozenset[str]

    def subject(self) -> str:
        """Return what findings are about."""
        return "/".join(filter(None, (self.pod or self.pod_uid, self.container)))

    def to_dict(self) -> dict[str, str]:
        """Return plain data: whose CPUs these are."""
        return {
            "pod_uid": self.pod_uid,
            "pod": self.pod,
            "container": self.container,
            "id": min(self.ids, default=""),
            "cpus": str(self.cpus),
        }


class Disturber(NamedTuple):
    """Who used CPUs that are not its own. shares: {CPU: share}. enough: whether it alone makes the CPUs disturbed."""

    owner: Runner
    shares: Mapping[int, float]
    sure: bool
    enough: bool

    @property
    def share(self) -> float:
        """Of one CPU."""
        return sum(self.shares.values())

    def to_dict(self, elapsed: float) -> dict[str, Any]:
        """Return plain data, as the module returns it."""
        return {
            "kind": self.owner.kind,
            "name": self.owner.name,
            "cpus": str(CPUSet(self.shares)),
            "percent": percent(self.share),
            "seconds": round(self.share * elapsed, 4),
            "sure": self.sure,
            "disturbs": self.enough,
        }

    def text(self) -> str:
        """Return a text for people, on one line."""
        return "%s%s: %s %% of a CPU, on CPUs %s" % (
            self.owner.kind,
            " " + self.owner.name if self.owner.name else "",
            percent(self.share),
            CPUSet(self.shares),
        )


def percent(share: float) -> float:
    """Return a share as it is shown."""
    return round(100 * share, 2)


def rows(
    exclusives: Iterable[Exclusive], found: Mapping[int, Account], sample: Sample, threshold: float
) -> tuple[list[dict[str, Any]], list[dict[str, str]]]:
    """Return a row for each container with exclusive CPUs, and the findings; see the module isolation_info for their
    shapes.

    threshold: the share of a CPU's time from which somebody else on it counts.
    """
    told, findings = [], []
    for exclusive in exclusives:
        cpus = exclusive.cpus & CPUSet(found)
        disturbers = _disturbers(exclusive, cpus, found, sample, threshold)
        verdict = _verdict(exclusive, cpus, found, disturbers, threshold)
        own = sum(_own(exclusive, found[cpu]) for cpu in cpus)
        whole = max(len(cpus), 1)
        foreign = sum(disturber.share for disturber in disturbers)
        shown = [disturber for disturber in disturbers if disturber.enough]
        shown += [disturber for disturber in disturbers if not disturber.enough][: max(_MOST_SHOWN - len(shown), 0)]
        told.append(
            {
                **exclusive.to_dict(),
                "verdict": verdict,
                "own_percent": percent(own / whole),
                "foreign_percent": percent(foreign / whole),
                "interrupts": sum(sum(sample.interrupts.counts.get(cpu, {}).values()) for cpu in cpus),
                "by": [disturber.to_dict(sample.elapsed) for disturber in shown],
            }
        )
        if verdict == DISTURBED:
            findings.append(_finding(exclusive, disturbers, sample.elapsed))
    return told, findings


def _own(exclusive: Exclusive, account: Account) -> float:
    return sum(part.share for owner, part in account.parts.items() if _is_own(exclusive, owner))


def _is_own(exclusive: Exclusive, owner: Runner) -> bool:
    return bool(owner.id) and owner.id in exclusive.ids


def _disturbers(
    exclusive: Exclusive, cpus: CPUSet, found: Mapping[int, Account], sample: Sample, threshold: float
) -> list[Disturber]:
    """Return everybody else on the CPUs, the most first; which of them are enough for a verdict."""
    shares: dict[Runner, dict[int, float]] = {}
    unsure: set[Runner] = set()
    for cpu in cpus:
        account = found[cpu]
        for owner, part in account.parts.items():
            if owner.kind != OBSERVER and not _is_own(exclusive, owner):
                shares.setdefault(owner, {})[cpu] = part.share
                if not part.sure:
                    unsure.add(owner)
    # Many small owners together are as bad as a large one. Beside a large one, a small one disturbs nobody.
    on_cpu = {cpu: [of.get(cpu, 0.0) for of in shares.values()] for cpu in cpus}
    crowded = {cpu for cpu, parts in on_cpu.items() if sum(parts) >= threshold > max(parts, default=0.0)}
    disturbers = [
        Disturber(owner, of, owner not in unsure, sum(of.values()) >= threshold or not crowded.isdisjoint(of))
        for owner, of in shares.items()
    ]
    least = max(threshold, (_LEAST_TICKS - 0.5) * sample.tick / sample.elapsed)
    for kind, counted in (
        (INTERRUPTS, {cpu: found[cpu].irq + found[cpu].softirq for cpu in cpus}),
        (STEAL, {cpu: found[cpu].steal for cpu in cpus}),
    ):
        of = {cpu: share for cpu, share in counted.items() if share > 0}
        if of:
            name = _most_frequent(sample, CPUSet(of)) if kind == INTERRUPTS else ""
            disturbers.append(Disturber(Runner(kind, name), of, True, max(of.values()) >= least))
    of = {cpu: found[cpu].unattributed for cpu in cpus if found[cpu].unattributed > 0}
    if of:
        enough = max(of.values()) >= threshold + sample.slack
        disturbers.append(Disturber(Runner(UNATTRIBUTED, ""), of, False, enough))
    return sorted(disturbers, key=lambda disturber: -disturber.share)


def _most_frequent(sample: Sample, cpus: CPUSet) -> str:
    counts: dict[str, int] = {}
    for source in (sample.softirqs, sample.interrupts):
        for cpu in cpus:
            for name, count in source.counts.get(cpu, {}).items():
                counts[name] = counts.get(name, 0) + count
    most = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:_MOST_NAMES]
    return ", ".join("%d %s" % (count, name) for name, count in most)


def _verdict(
    exclusive: Exclusive, cpus: CPUSet, found: Mapping[int, Account], disturbers: list[Disturber], threshold: float
) -> str:
    if any(disturber.enough for disturber in disturbers):
        return DISTURBED
    return ALONE if any(_own(exclusive, found[cpu]) >= threshold for cpu in cpus) else IDLE


def _finding(exclusive: Exclusive, disturbers: list[Disturber], elapsed: float) -> dict[str, str]:
    guilty = [disturber for disturber in disturbers if disturber.enough]
    kinds = dict.fromkeys(disturber.owner.kind for disturber in guilty)
    text = "; ".join(disturber.text() for disturber in guilty[:_MOST_SHOWN])
    more = len(guilty) - _MOST_SHOWN
    return {
        "check": CHECK,
        "subject": exclusive.subject(),
        "wanted": "CPUs %s for itself" % exclusive.cpus,
        "found": "in %.1f s: %s%s" % (elapsed, text, "; and %d more" % more if more > 0 else ""),
        "remedy": "; ".join(_REMEDIES[kind] for kind in kinds),
    }
