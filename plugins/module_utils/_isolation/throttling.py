# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which container is limited by which cgroup, and what the kernel counted meanwhile, as plain data. Pure."""

from __future__ import annotations

import re
from typing import Iterable, Iterator, Mapping, NamedTuple, Sequence

from .._base.quantity import counted
from .._cgroup.hierarchy import ROOT, lineage
from ..cpuset import CPUSet
from .bandwidth import NEW, SHARES_PER_CPU, Level, Statistics, formulas_of

# What a level of a container's path is.
CONTAINER, POD, QOS, PODS, ABOVE, TOP = "container", "pod", "qos", "pods", "above", "root"

# The kernel from which on a throttled task runs on until it returns to user space, and the time is counted anew.
_TASK_BASED = (6, 18)
_RELEASE = re.compile(r"([0-9]{1,4})\.([0-9]{1,4})")


class Watched(NamedTuple):
    """A container whose cgroups are looked at."""

    pod_uid: str
    # The namespace and name; empty where they are not known.
    pod: str
    # None where it is not known; then it may be a sandbox.
    name: str | None
    id: str
    qos_class: str
    # Its own, its pod's, and that of all pods.
    cgroup: str
    pod_cgroup: str
    top: str
    # Where its processes are: in its cgroup or, with crun, in one below.
    process_cgroup: str
    # The CPUs that it has for itself, and how many it requests where it may have more.
    exclusive: CPUSet = CPUSet()
    requested: int | None = None
    # What it has of the CPUs that its pod has as a whole, alone or not.
    of_pod: CPUSet = CPUSet()

    @property
    def has_grown(self) -> bool:
        """Whether it has more CPUs than it requests."""
        return self.requested is not None and len(self.exclusive) > self.requested

    @property
    def label(self) -> str:
        """Its name for people: namespace/pod/container."""
        return "%s/%s" % (self.pod or self.pod_uid, self.name or self.id[:12])

    @property
    def levels(self) -> tuple[str, ...]:
        """The cgroup of its processes and all above, the topmost last."""
        return (*lineage(self.process_cgroup), ROOT)

    def kind(self, path: str) -> str:
        """Return what a cgroup of its path is."""
        if path in (self.pod_cgroup, self.top):
            return POD if path == self.pod_cgroup else PODS
        if path.startswith(self.pod_cgroup + "/"):
            return CONTAINER
        if path.startswith(self.top + "/"):
            return QOS
        return ABOVE if path else TOP


class ThrottlingSample(NamedTuple):
    """What was counted: {cgroup: its statistics}, of those of which it is known.

    seconds: over how long; None: since each cgroup was made.
    """

    counted: Mapping[str, Statistics]
    seconds: float | None = None
    # The cgroups that were made anew meanwhile, or whose counters went backwards.
    restarted: Sequence[str] = ()


def since_boot(levels: Mapping[str, Level]) -> ThrottlingSample:
    """Return what was counted since the cgroups were made."""
    return ThrottlingSample({path: level.statistics for path, level in levels.items() if level.statistics is not None})


def between(before: Mapping[str, Level], after: Mapping[str, Level], seconds: float) -> ThrottlingSample:
    """Return what was counted between two readings. A cgroup that is not in both has nothing."""
    counted, restarted = {}, []
    for path, level in after.items():
        if path not in before or level.statistics is None:
            continue
        earlier = before[path].statistics
        spent = None if earlier is None else _difference(earlier, level.statistics)
        if level.identity != before[path].identity or (earlier is not None and spent is None):
            restarted.append(path)
        elif spent is not None:
            counted[path] = spent
    return ThrottlingSample(counted, seconds, restarted)


def _difference(before: Statistics, after: Statistics) -> Statistics | None:
    """Return what was counted meanwhile; None where a counter went backwards."""
    spent = [None if old is None or new is None else new - old for old, new in zip(before, after)]
    if any(value is not None and value < 0 for value in spent):
        return None
    return Statistics(*spent)  # type: ignore[arg-type]  # the first three are in each reading


def throttled_percent(counted: Statistics | None) -> float | None:
    """Return in which part of the periods a cgroup was throttled; None where it had none."""
    if counted is None or not counted.periods:
        return None
    return round(100 * counted.throttled_periods / counted.periods, 1)


def limit_of(container: Watched, levels: Mapping[str, Level]) -> Level | None:
    """Return the level of a container's path with the smallest quota, the nearest of equal ones; None without any."""
    limited = [level for path in container.levels if (level := levels.get(path)) is not None and level.cpus is not None]
    return min(limited, key=lambda level: level.cpus or 0.0, default=None)


# --- as plain data ---------------------------------------------------------------------------------------


def container_rows(
    watched: Iterable[Watched], levels: Mapping[str, Level], sample: ThrottlingSample
) -> list[dict[str, object]]:
    """Return what each container has; see the module throttling_info for the shape."""
    return [_row(container, levels, sample) for container in watched]


def _row(container: Watched, levels: Mapping[str, Level], sample: ThrottlingSample) -> dict[str, object]:
    limit = limit_of(container, levels)
    counted = sample.counted.get(container.cgroup)
    return {
        "pod_uid": container.pod_uid,
        "pod": container.pod,
        "container": container.name or "",
        "id": container.id,
        "qos_class": container.qos_class,
        "cgroup": container.cgroup,
        "exclusive": str(container.exclusive),
        "of_pod": str(container.of_pod),
        "levels": [_key(path) for path in container.levels if path in levels],
        "limit": None if limit is None else {"cgroup": _key(limit.path), "cpus": _rounded(limit.cpus)},
        "counted": _counted(counted),
        "throttled_percent": throttled_percent(counted),
    }


def cgroup_rows(
    watched: Iterable[Watched], levels: Mapping[str, Level], sample: ThrottlingSample
) -> dict[str, dict[str, object]]:
    """Return {path: what a cgroup has}, of all cgroups that containers are in or below; "/" is the topmost."""
    kinds: dict[str, str] = {}
    for container in watched:
        for path in container.levels:
            if path not in kinds:
                kinds[path] = container.kind(path)
    return {
        _key(path): {
            "kind": kinds[path],
            "has_quota": level.has_quota,
            "quota_us": level.quota_us,
            "period_us": level.period_us,
            "burst_us": level.burst_us,
            "cpus": _rounded(level.cpus),
            "shares": level.shares,
            "weight": level.weight,
            "counted": _counted(sample.counted.get(path)),
            "problems": list(level.problems),
        }
        for path, level in levels.items()
        if path in kinds
    }


def _counted(counted: Statistics | None) -> dict[str, int | None] | None:
    return None if counted is None else counted._asdict()


def _key(path: str) -> str:
    return path or "/"


def _rounded(cpus: float | None) -> float | None:
    return None if cpus is None else round(cpus, 3)


# --- what the numbers mean -------------------------------------------------------------------------------


def meaning_of(kernel: str, version: int, levels: Mapping[str, Level]) -> list[str]:
    """Return what the numbers mean with this kernel, for people. kernel: its release; empty where it is not known."""
    found = [
        "periods counts only those in which the cgroup wanted to run",
        "throttled_us is summed over all CPUs, so it can be longer than the time that went by",
    ]
    release = _RELEASE.match(kernel)
    if release is None:
        found.append(
            "the release of the kernel is not known: before 6.18 whole queues were throttled, from then on each task as"
            " it returns to user space, and throttled_us differs"
        )
    elif tuple(map(int, release.groups())) >= _TASK_BASED:
        found.append(
            "kernel %s throttles tasks, each as it returns to user space (since 6.18): throttled_us is not to be"
            " compared with that of older kernels" % kernel
        )
    else:
        found.append(
            "kernel %s throttles the whole queue of a CPU at once (before 6.18): throttled_us is not to be compared"
            " with that of newer kernels" % kernel
        )
    counted = [level.statistics for level in levels.values() if level.statistics is not None]
    if version == 1:
        found.append("version 1 of cgroups counts nanoseconds, which were divided: all times are microseconds")
    if counted and all(statistics.local_us is None for statistics in counted):
        found.append(
            "this kernel has no cpu.stat.local (before 6.6): what the limit of a pod did to each of its containers is"
            " not counted"
        )
    elif counted:
        found.append("local_us is what the limits of the cgroup and of those above it did to its own tasks together")
    limited = [level for level in levels.values() if level.has_quota]
    if limited and all(level.burst_us is None for level in limited):
        found.append("this kernel has no bursts (before 5.14)")
    return found


# What is wrong with the quotas and weights of containers, and what to do about it. Pure.
#
# One cause is one finding: a quota on exclusive CPUs is either too small for them (limit-below-request) or not to be
# there at all (exclusive-cpus-with-quota), and what it throttled stands in that finding and in no other. A quota above
# the pods is one finding for all the CPUs below it.


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
    watched: Sequence[Watched], levels: Mapping[str, Level], sample: ThrottlingSample, enforcer: Enforcer, percent: int
) -> list[Finding]:
    """Return all findings. percent: in which part of its periods a container may be throttled."""
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


def _effect(path: str, sample: ThrottlingSample) -> str:
    """Return what a quota did, for people; empty where nothing was counted."""
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
        self, exclusive: Sequence[Watched], levels: Mapping[str, Level], sample: ThrottlingSample, enforcer: Enforcer
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
        """Yield one for each container with a quota of its own or its pod's."""
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
        """Yield one for each quota that is above pods, where the kubelet sets none."""
        for path in self._above:
            if path in self.limited:
                yield _finding(
                    BELOW_REQUEST if self._is_small(path) else WITH_QUOTA,
                    "CPUs %s" % self._needs[path],
                    "no quota above pods with exclusive CPUs",
                    self._shown(path),
                    "take it off, with CPUQuota= of the unit where systemd has one, or in the settings of the container"
                    " that is the node; the kubelet sets none there",
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
    """Return what to do about a quota of a container with exclusive CPUs, by what its kubelet does."""
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
    watched: Iterable[Watched],
    levels: Mapping[str, Level],
    sample: ThrottlingSample,
    percent: int,
    explained: Iterable[str],
) -> Iterator[Finding]:
    """Yield one for each cgroup that was throttled too often: of a container, or of what is above some."""
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
            "raise the limit, or let the container run fewer threads at once; see the guide throttling of this"
            " collection",
        )


def _is_throttled(counted: Statistics | None, percent: int) -> bool:
    if counted is None or counted.periods < LEAST_PERIODS:
        return False
    return 100 * counted.throttled_periods > percent * counted.periods


def _local(container: Watched, sample: ThrottlingSample) -> int | None:
    counted = sample.counted.get(container.cgroup)
    return None if counted is None else counted.local_us


def _is_hit(container: Watched, sample: ThrottlingSample) -> bool:
    """Return whether a limit above a container throttled it, as far as the kernel counts that."""
    return container.cgroup in sample.counted and _local(container, sample) != 0


# --- weights ---------------------------------------------------------------------------------------------


def _formulas(watched: Iterable[Watched], levels: Mapping[str, Level]) -> Iterator[Finding]:
    """Yield one for a node whose kubelet and container runtime make weights of shares by different formulas."""
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
    """Return by which formulas the weights of a pod and its containers can be; none where one is not known."""
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
