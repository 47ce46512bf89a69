# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which container is limited by which cgroup, and what the kernel counted meanwhile, as plain data. Pure."""

from __future__ import annotations

import re
from typing import Iterable, Mapping, NamedTuple, Sequence

from ..cgroup.hierarchy import ROOT, lineage
from ..cpuset import CPUSet
from .bandwidth import Level, Statistics

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
        """What a cgroup of its path is."""
        if path in (self.pod_cgroup, self.top):
            return POD if path == self.pod_cgroup else PODS
        if path.startswith(self.pod_cgroup + "/"):
            return CONTAINER
        if path.startswith(self.top + "/"):
            return QOS
        return ABOVE if path else TOP


class Sample(NamedTuple):
    """What was counted: {cgroup: its statistics}, of those of which it is known.

    seconds: over how long; None: since each cgroup was made.
    """

    counted: Mapping[str, Statistics]
    seconds: float | None = None
    # The cgroups that were made anew meanwhile, or whose counters went backwards.
    restarted: Sequence[str] = ()


def since_boot(levels: Mapping[str, Level]) -> Sample:
    """What was counted since the cgroups were made."""
    return Sample({path: level.statistics for path, level in levels.items() if level.statistics is not None})


def between(before: Mapping[str, Level], after: Mapping[str, Level], seconds: float) -> Sample:
    """What was counted between two readings. A cgroup that is not in both has nothing."""
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
    return Sample(counted, seconds, restarted)


def _difference(before: Statistics, after: Statistics) -> Statistics | None:
    """What was counted meanwhile; None where a counter went backwards."""
    spent = [None if old is None or new is None else new - old for old, new in zip(before, after)]
    if any(value is not None and value < 0 for value in spent):
        return None
    return Statistics(*spent)  # type: ignore[arg-type]  # the first three are in each reading


def throttled_percent(counted: Statistics | None) -> float | None:
    """In which part of the periods a cgroup was throttled; None where it had none."""
    if counted is None or not counted.periods:
        return None
    return round(100 * counted.throttled_periods / counted.periods, 1)


def limit_of(container: Watched, levels: Mapping[str, Level]) -> Level | None:
    """The level of a container's path with the smallest quota, the nearest of equal ones; None without any."""
    limited = [level for path in container.levels if (level := levels.get(path)) is not None and level.cpus is not None]
    return min(limited, key=lambda level: level.cpus or 0.0, default=None)


# --- as plain data ---------------------------------------------------------------------------------------


def container_rows(watched: Iterable[Watched], levels: Mapping[str, Level], sample: Sample) -> list[dict[str, object]]:
    """What each container has; see the module throttling_info for the shape."""
    return [_row(container, levels, sample) for container in watched]


def _row(container: Watched, levels: Mapping[str, Level], sample: Sample) -> dict[str, object]:
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
        "levels": [_key(path) for path in container.levels if path in levels],
        "limit": None if limit is None else {"cgroup": _key(limit.path), "cpus": _rounded(limit.cpus)},
        "counted": _counted(counted),
        "throttled_percent": throttled_percent(counted),
    }


def cgroup_rows(
    watched: Iterable[Watched], levels: Mapping[str, Level], sample: Sample
) -> dict[str, dict[str, object]]:
    """{path: what a cgroup has}, of all cgroups that containers are in or below; "/" is the topmost."""
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
    """What the numbers mean with this kernel, for people. kernel: its release; empty where it is not known."""
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
