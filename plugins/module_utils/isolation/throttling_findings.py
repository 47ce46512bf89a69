# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is wrong with the quotas and weights of containers, and what to do about it. Pure.

One cause is one finding: a quota on exclusive CPUs is either too small for them (limit-below-request) or not to be
there at all (exclusive-cpus-with-quota), and what it throttled stands in that finding and in no other. A quota above
the pods is one finding for all the CPUs below it.
"""

from __future__ import annotations

from typing import Iterable, Iterator, Mapping, NamedTuple, Sequence

from ..cpuset import CPUSet
from ..quantity import counted
from .bandwidth import Level, Statistics
from .throttling import CONTAINER, POD, Sample, Watched, throttled_percent
from .weights import NEW, SHARES_PER_CPU, formulas_of

WITH_QUOTA = "exclusive-cpus-with-quota"
BELOW_REQUEST = "limit-below-request"
TWO_FORMULAS = "weights-by-two-formulas"
THROTTLED = "container-throttled"

# Fewer periods say nothing: with the usual ones of 100 ms, these are two seconds of work.
LEAST_PERIODS = 20
# A pod with an init container that requests more than the others can fit two formulas by chance, so more than this part
# of the pods that show something must.
_LEAST_PART = 0.2

Finding = Mapping[str, str]


class Enforcer(NamedTuple):
    """The kubelet that sets the quotas, 1.`minor`; None for what is not known of it."""

    # The feature gate with which kubelets leave exclusive CPUs without a quota, and the first version that has it.
    gate: str
    first: int
    minor: int | None = None
    # Whether it is on, and whether the kubelet sets quotas at all (cpuCFSQuota).
    lifts: bool | None = None
    sets_quotas: bool | None = None
    # Whether it gives the exclusive CPUs out; else the policies dynamic and isolated do, and it has the policy none.
    gives_cpus: bool = True


def findings_of(
    watched: Sequence[Watched], levels: Mapping[str, Level], sample: Sample, enforcer: Enforcer, percent: int
) -> list[Finding]:
    """All findings. percent: in which part of its periods a container may be throttled."""
    quotas = _Quotas([container for container in watched if container.exclusive], levels, sample, enforcer)
    findings = [*quotas.of_containers(), *quotas.above_pods()]
    findings += _throttled(watched, levels, sample, percent, quotas.limited)
    return findings + list(_formulas(watched, levels))


def _finding(check: str, subject: str, wanted: str, found: str, remedy: str) -> Finding:
    return {"check": check, "subject": subject, "wanted": wanted, "found": found, "remedy": remedy}


def _quota(level: Level) -> str:
    return "%s us in %s us (%s) at %s" % (
        level.quota_us,
        level.period_us,
        counted("%.4g" % (level.cpus or 0), "CPU"),
        level.path or "/",
    )


def _effect(path: str, sample: Sample) -> str:
    """What a quota did, for people; empty where nothing was counted."""
    counted = sample.counted.get(path)
    percent = throttled_percent(counted)
    if counted is None or percent is None:
        return ""
    over = "since the cgroup was made" if sample.seconds is None else "in %.1f s" % sample.seconds
    return "throttled in %d of %d periods (%.4g %%), %.4g s summed over CPUs, %s" % (
        counted.throttled_periods,
        counted.periods,
        percent,
        counted.throttled_us / 1000000,
        over,
    )


# --- quotas on exclusive CPUs ----------------------------------------------------------------------------


class _Quotas:
    """The quotas on the paths of containers with exclusive CPUs.

    Attributes:
        limited: the cgroups that have one, by their paths.
    """

    def __init__(
        self, exclusive: Sequence[Watched], levels: Mapping[str, Level], sample: Sample, enforcer: Enforcer
    ) -> None:
        self._exclusive = exclusive
        self._sample, self._enforcer = sample, enforcer
        # The exclusive CPUs of what runs below each cgroup: as a set, since containers that run one after the other in
        # a pod have the same.
        self._needs: dict[str, CPUSet] = {}
        self._above: list[str] = []
        self._grown = {path for container in exclusive if container.has_grown for path in container.levels}
        for container in exclusive:
            for path in container.levels:
                if path not in self._needs and container.kind(path) not in (CONTAINER, POD):
                    self._above.append(path)
                self._needs[path] = self._needs.get(path, CPUSet()) | container.exclusive
        self.limited = {path: levels[path] for path in self._needs if path in levels and levels[path].cpus is not None}

    def of_containers(self) -> Iterator[Finding]:
        """One for each container with a quota of its own or its pod's."""
        for container in self._exclusive:
            own = [path for path in container.levels if path in self.limited and path not in self._above]
            if not own:
                continue
            found = "; ".join(self._shown(path) for path in own)
            small = next((path for path in own if self._is_small(path)), None)
            if small is None:
                wanted, remedy = "no quota on the exclusive CPUs %s" % container.exclusive, remedy_for(self._enforcer)
                yield _finding(WITH_QUOTA, container.label, wanted, found, remedy)
            else:
                cpus = self._needs[small]
                wanted = "no quota, or at least one of %s, as CPUs %s are exclusive" % (counted(len(cpus), "CPU"), cpus)
                remedy = _NOT_LIFTED if small in self._grown else _FIND_WRITER
                yield _finding(BELOW_REQUEST, container.label, wanted, found, remedy)

    def above_pods(self) -> Iterator[Finding]:
        """One for each quota that is above pods, where the kubelet sets none."""
        for path in self._above:
            if path in self.limited:
                yield _finding(
                    BELOW_REQUEST if self._is_small(path) else WITH_QUOTA,
                    "CPUs %s" % self._needs[path],
                    "no quota above pods with exclusive CPUs",
                    self._shown(path),
                    "take it off, with CPUQuota= of the unit where systemd has one; the kubelet sets none there",
                )

    def _is_small(self, path: str) -> bool:
        return (self.limited[path].cpus or 0) < len(self._needs[path])

    def _shown(self, path: str) -> str:
        effect = _effect(path, self._sample)
        return "%s%s" % (_quota(self.limited[path]), ": " + effect if effect else "")


_AGAIN = "then delete the pod, so that its cgroups are made anew"
_FIND_WRITER = (
    "no manifest has a limit below its request: look for what wrote the quota, such as a resize of the pod in place or"
    " a tool on the node; %s" % _AGAIN
)

_NOT_LIFTED = (
    "the program of the role reconcile lifts the quotas of a container that has more CPUs than it requests, and of its"
    " pod: look in its journal for why it did not (journalctl -u kubenode-cpu-manager-reconcile)"
)


def remedy_for(enforcer: Enforcer) -> str:
    """What to do about a quota of a container with exclusive CPUs, by what its kubelet does."""
    if enforcer.sets_quotas is False:
        return "the kubelet sets no quotas (cpuCFSQuota: false), so an earlier one or something else did: %s" % (
            "delete the pod, and if the quota comes back, look for what else writes it"
        )
    if not enforcer.gives_cpus:
        return (
            "with its policy none, the kubelet sets one on every container with a limit: set cpuCFSQuota: false, which"
            " lifts the quotas of all containers of the node; %s" % _AGAIN
        )
    if enforcer.minor is None:
        return (
            "kubelets from 1.%d on set none, unless the feature gate %s is off; with an older one, set cpuCFSQuota:"
            " false, which lifts the quotas of all containers of the node; %s (give kubelet_version for one of both)"
            % (enforcer.first, enforcer.gate, _AGAIN)
        )
    if enforcer.minor < enforcer.first:
        return (
            "the kubelet 1.%d sets one on every container with a limit: bring it to 1.%d or later, or set cpuCFSQuota:"
            " false, which lifts the quotas of all containers of the node; %s"
            % (enforcer.minor, enforcer.first, _AGAIN)
        )
    if enforcer.lifts is False:
        return "take the feature gate %s: false out of the kubelet's configuration and restart the kubelet; %s" % (
            enforcer.gate,
            _AGAIN,
        )
    return (
        "the kubelet 1.%d sets none, so an older one or something else did: delete the pod, and if the quota comes"
        " back, look for what else writes it" % enforcer.minor
    )


# --- throttled containers --------------------------------------------------------------------------------


def _throttled(
    watched: Iterable[Watched], levels: Mapping[str, Level], sample: Sample, percent: int, explained: Iterable[str]
) -> Iterator[Finding]:
    """One for each cgroup that was throttled too often: of a container, or of what is above some."""
    causes: dict[str, list[Watched]] = {}
    skipped = set(explained)
    for container in watched:
        for path in container.levels:
            if _is_throttled(sample.counted.get(path), percent) and (
                container.kind(path) == CONTAINER or _is_hit(container, sample)
            ):
                causes.setdefault(path, []).append(container)
                # What limits it from further above comes after this.
                break
    for path, hit in causes.items():
        if path in skipped:
            continue
        level = levels[path]
        by = "" if level.cpus is None else ", by %s" % _quota(level)
        others = len(hit) - 1
        more = " (and %d other container%s below that limit)" % (others, "s" if others > 1 else "") if others else ""
        if hit[0].kind(path) != CONTAINER and _local(hit[0], sample) is None:
            more += "; this kernel does not count which of the containers below it was"
        yield _finding(
            THROTTLED,
            hit[0].label,
            "throttled in at most %d %% of the periods" % percent,
            _effect(path, sample) + by + more,
            "raise the limit, or let the container run fewer threads at once; see docs/docsite/rst/throttling.rst",
        )


def _is_throttled(counted: Statistics | None, percent: int) -> bool:
    if counted is None or counted.periods < LEAST_PERIODS:
        return False
    return 100 * counted.throttled_periods > percent * counted.periods


def _local(container: Watched, sample: Sample) -> int | None:
    counted = sample.counted.get(container.cgroup)
    return None if counted is None else counted.local_us


def _is_hit(container: Watched, sample: Sample) -> bool:
    """Whether a limit above a container throttled it, as far as the kernel counts that."""
    return container.cgroup in sample.counted and _local(container, sample) != 0


# --- weights ---------------------------------------------------------------------------------------------


def _formulas(watched: Iterable[Watched], levels: Mapping[str, Level]) -> Iterator[Finding]:
    """One for a node whose kubelet and container runtime make weights of shares by different formulas."""
    pods: dict[str, list[Watched]] = {}
    for container in watched:
        pods.setdefault(container.pod_cgroup, []).append(container)
    same = 0
    mixed: dict[tuple[str, str], list[Watched]] = {}
    for path, members in pods.items():
        pairs = _pairs(path, members, levels)
        if any(outer == inner for outer, inner in pairs):
            same += 1
        elif len(pairs) == 1:
            mixed.setdefault(pairs.pop(), []).append(members[0])
    for (outer, inner), examples in sorted(mixed.items()):
        if len(examples) <= _LEAST_PART * (same + len(examples)):
            continue
        first = examples[0]
        yield _finding(
            TWO_FORMULAS,
            first.label,
            "weights by the same formula for pods and containers",
            "of %d pod%s the weight is by the %s formula and the containers' by the %s: here %s at the pod, %s at the"
            " container"
            % (
                len(examples),
                "s" if len(examples) > 1 else "",
                outer,
                inner,
                levels[first.pod_cgroup].weight,
                levels[first.cgroup].weight,
            ),
            "bring the %s to a version with the new formula (runc 1.3.2, crun of 2025 or later), then delete the pods"
            % ("kubelet" if inner == NEW else "container runtime"),
        )


def _pairs(path: str, members: Iterable[Watched], levels: Mapping[str, Level]) -> set[tuple[str, str]]:
    """By which formulas the weights of a pod and its containers can be; none where one is not known."""
    found = []
    for container in members:
        level = levels.get(container.cgroup)
        if level is None or level.weight is None:
            return set()
        # By the manifest a container that was given n exclusive CPUs requests n CPUs.
        cpus = len(container.exclusive) if container.requested is None else container.requested
        found.append((level.weight, cpus * SHARES_PER_CPU or None))
    pod = levels.get(path)
    return set() if pod is None or pod.weight is None else formulas_of(pod.weight, found)
