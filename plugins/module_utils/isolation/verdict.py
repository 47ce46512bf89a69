# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether each container had its exclusive CPUs to itself, by the accounts of these CPUs. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterable, Mapping, NamedTuple

from ..cpuset import CPUSet
from .accounts import CGROUP, CONTAINER, INTERRUPTS, KERNEL_THREAD, OBSERVER, PROCESS, STEAL, UNATTRIBUTED, Owner

if TYPE_CHECKING:
    from .accounts import Account
    from .sample import Sample

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
        """What findings are about."""
        return "/".join(filter(None, (self.pod or self.pod_uid, self.container)))

    def to_dict(self) -> dict[str, str]:
        """Plain data: whose CPUs these are."""
        return {
            "pod_uid": self.pod_uid,
            "pod": self.pod,
            "container": self.container,
            "id": min(self.ids, default=""),
            "cpus": str(self.cpus),
        }


class Disturber(NamedTuple):
    """Who used CPUs that are not its own. shares: {CPU: share}. enough: whether it alone makes the CPUs disturbed."""

    owner: Owner
    shares: Mapping[int, float]
    sure: bool
    enough: bool

    @property
    def share(self) -> float:
        """Of one CPU."""
        return sum(self.shares.values())

    def to_dict(self, elapsed: float) -> dict[str, Any]:
        """Plain data, as the module returns it."""
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
        """For people, on one line."""
        return "%s%s: %s %% of a CPU, on CPUs %s" % (
            self.owner.kind,
            " " + self.owner.name if self.owner.name else "",
            percent(self.share),
            CPUSet(self.shares),
        )


def percent(share: float) -> float:
    """A share as it is shown."""
    return round(100 * share, 2)


def rows(
    exclusives: Iterable[Exclusive], found: Mapping[int, Account], sample: Sample, threshold: float
) -> tuple[list[dict[str, Any]], list[dict[str, str]]]:
    """A row for each container with exclusive CPUs, and the findings; see the module isolation_info for their shapes.

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


def _is_own(exclusive: Exclusive, owner: Owner) -> bool:
    return bool(owner.id) and owner.id in exclusive.ids


def _disturbers(
    exclusive: Exclusive, cpus: CPUSet, found: Mapping[int, Account], sample: Sample, threshold: float
) -> list[Disturber]:
    """Everybody else on the CPUs, the most first; which of them are enough for a verdict."""
    shares: dict[Owner, dict[int, float]] = {}
    unsure: set[Owner] = set()
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
            disturbers.append(Disturber(Owner(kind, name), of, True, max(of.values()) >= least))
    of = {cpu: found[cpu].unattributed for cpu in cpus if found[cpu].unattributed > 0}
    if of:
        enough = max(of.values()) >= threshold + sample.slack
        disturbers.append(Disturber(Owner(UNATTRIBUTED, ""), of, False, enough))
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
