# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who ran on the running machine's CPUs for some seconds: all readings, from the first to the last.

A reading takes time, and each has its own: what it says is a share of the time between its own two readings.
"""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from typing import AbstractSet, Container, Iterable, Iterator, Mapping, NamedTuple, Sequence

from ..cgroup.mounts import CPUACCT, mounted
from ..cpuset import CPUSet
from ..tree import Tree
from .interrupts import Counts, Ticks, counted, parse_schedstat, parse_ticks
from .tasks import TaskTime
from .usage import LAG, CgroupTime, PerCpu, Totals
from .watch import Watch

_SECOND = 1_000_000_000
_STAT, _SCHEDSTAT = "/proc/stat", "/proc/schedstat"
_INTERRUPTS, _SOFTIRQS = "/proc/interrupts", "/proc/softirqs"
_POSSIBLE, _ONLINE = "/sys/devices/system/cpu/possible", "/sys/devices/system/cpu/online"
# So many looks at the tasks between the first and the last, or fewer, as all must not take more than this share of a
# CPU; where nothing is left of it after the first readings, one.
_LOOKS = 20
_LEAST_LOOKS = 1
_MOST_SHARE = 0.006
# By so many seconds a sample may be late before it is said.
_MOST_LATE = 2
# Single threads are read at first while this part of the share is not used up; and what the last readings take, as a
# multiple of the first.
_FIRST_THREADS = 0.25
_LAST_READINGS = 1


class Observer(NamedTuple):
    """What the sample itself took. cpu_seconds: of its process; cpus: where it ran, empty: anywhere."""

    pid: int
    cpus: CPUSet
    cpu_seconds: float
    looks: int
    tasks: int
    cgroups: int


class Sample(NamedTuple):
    """What was read. Shares are of one CPU's time.

    elapsed: seconds. busy: {CPU: share in which tasks ran}, and whether the kernel counts it in nanoseconds; else it is
    counted in ticks. slack: by how much a sum of several sources may be wrong, as they were not read at once.
    cgroups: of v1; None for v2, where `totals` has {cgroup: CPUs used} of those that were asked for.
    ended: cgroups that were not there any more at the end, as far as they had been read.
    idle: {CPU: share}. ticks: what was added, in units of `tick` seconds. problems: why something is missing.
    """

    elapsed: float
    tick: float
    online: CPUSet
    watched: CPUSet
    busy: Mapping[int, float]
    busy_exact: bool
    slack: float
    tasks: Sequence[TaskTime]
    cgroups: Sequence[CgroupTime] | None
    totals: Mapping[str, float]
    ended: AbstractSet[str]
    idle: Mapping[int, float]
    ticks: Mapping[int, Ticks]
    interrupts: Counts
    softirqs: Counts
    observer: Observer
    problems: Sequence[str]


class _Readings(NamedTuple):
    when: int
    ticks: dict[int, Ticks]
    schedstat: dict[int, int]
    interrupts: bytes
    softirqs: bytes


def take(
    tree: Tree,
    seconds: float,
    exclusive: CPUSet,
    cgroups: Iterable[str] = (),
    whole: Container[str] = (),
) -> Sample:
    """Look for some seconds. exclusive: the CPUs that matter; none: all do. cgroups: of v2, whose own count is wanted.

    whole: see PerCpu. tree: the running machine. Raises NodeError where /proc/stat or the list of CPUs cannot be read.
    """
    online = CPUSet.parse(tree.read_text(_ONLINE).strip())
    watched = (exclusive & online) or online
    with _elsewhere(frozenset(watched)) as own:
        return _take(tree, seconds, online, watched, own, cgroups, whole)


def _take(
    tree: Tree,
    seconds: float,
    online: CPUSet,
    watched: CPUSet,
    own: AbstractSet[int],
    cgroups: Iterable[str],
    whole: Container[str],
) -> Sample:
    cost = time.process_time()
    mounts = mounted(tree, CPUACCT) or {}
    of_v1, of_v2 = mounts.get(1), mounts.get(2)
    per_cpu: PerCpu | None = None
    if of_v1:
        per_cpu = PerCpu(of_v1[0], tuple(CPUSet.parse(tree.read_value(_POSSIBLE) or str(online))), whole)
    begun = time.monotonic_ns()
    per_cpu = per_cpu if per_cpu is not None and per_cpu.begin() else None
    totals = Totals(of_v2[0], cgroups) if of_v2 and per_cpu is None else None
    most = _MOST_SHARE * seconds
    watch = Watch(frozenset(watched))
    if per_cpu is not None:
        watch = Watch(frozenset(watched), CPUACCT, per_cpu)
    watch.begin(cost + _FIRST_THREADS * most)
    before = _read(tree)
    spread = time.monotonic_ns() - begun
    budget = most - (1 + _LAST_READINGS) * (time.process_time() - cost)
    looks = _look_on(watch, begun + int(seconds * _SECOND), seconds, budget)
    ending = time.monotonic_ns()
    busy, found = ({}, None) if per_cpu is None else per_cpu.end()
    used = {} if totals is None else totals.end()
    watch.end(cost + most)
    after = _read(tree)
    spread = max(spread, time.monotonic_ns() - ending)
    lasted = max(after.when - before.when, 1)
    tick = 1 / os.sysconf("SC_CLK_TCK")
    added = {cpu: ticks.since(before.ticks[cpu]) for cpu, ticks in after.ticks.items() if cpu in before.ticks}
    share = tick * _SECOND / lasted
    if per_cpu is None:
        busy = {cpu: _busy(ticks, share, before, after, cpu) for cpu, ticks in added.items()}
    count = len(watch)
    tasks = watch.results()
    interrupts = counted(before.interrupts, after.interrupts)
    softirqs = counted(before.softirqs, after.softirqs)
    observer = Observer(
        os.getpid(),
        CPUSet(own),
        time.process_time() - cost,
        looks,
        count,
        0 if per_cpu is None else len(per_cpu),
    )
    return Sample(
        lasted / _SECOND,
        tick,
        online,
        watched,
        busy,
        per_cpu is not None,
        (spread + LAG * _SECOND) / lasted,
        tasks,
        found,
        used,
        frozenset(per_cpu.ended if per_cpu is not None else () if totals is None else totals.ended),
        {cpu: min((ticks.idle + ticks.iowait) * share, 1.0) for cpu, ticks in added.items()},
        added,
        interrupts,
        softirqs,
        observer,
        [
            *_problems(watch, before, interrupts, softirqs, online - CPUSet(added)),
            *_imprecisions(per_cpu is not None or bool(before.schedstat), seconds, lasted / _SECOND),
        ],
    )


def _look_on(watch: Watch, until: int, seconds: float, budget: float) -> int:
    """Look at the tasks until it is time, as often as the budget of CPU seconds allows; how often that was."""
    looks, pause = 0, seconds / _LOOKS
    while True:
        left = (until - time.monotonic_ns()) / _SECOND
        if left < 1.5 * pause:
            time.sleep(max(left, 0))
            return looks
        time.sleep(pause)
        before = time.process_time()
        watch.look()
        cost = time.process_time() - before
        looks += 1
        budget -= cost
        most = max(budget / max(cost, 1e-6), _LEAST_LOOKS - looks, 0)
        pause = max(seconds / _LOOKS, left / (most + 1))


@contextmanager
def _elsewhere(watched: AbstractSet[int]) -> Iterator[AbstractSet[int]]:
    """Keep this process off the watched CPUs, where it has others; those where it is, none where it could not."""
    before = os.sched_getaffinity(0)
    rest = before - watched
    if not rest:
        yield frozenset()
        return
    try:
        os.sched_setaffinity(0, rest)
    except OSError:
        yield frozenset()
        return
    try:
        yield rest
    finally:
        os.sched_setaffinity(0, before)


def _read(tree: Tree) -> _Readings:
    schedstat = tree.content(_SCHEDSTAT) or b""
    interrupts, softirqs = tree.content(_INTERRUPTS) or b"", tree.content(_SOFTIRQS) or b""
    when = time.monotonic_ns()
    return _Readings(when, parse_ticks(tree.read_bytes(_STAT)), parse_schedstat(schedstat), interrupts, softirqs)


def _busy(ticks: Ticks, share: float, before: _Readings, after: _Readings, cpu: int) -> float:
    """In which share of the time tasks ran on a CPU, where no cgroup counts it; never more than is sure."""
    counted_for_tasks = (ticks.user + ticks.nice + ticks.system) * share
    rest = 1 - (ticks.idle + ticks.iowait + ticks.irq + ticks.softirq + ticks.steal) * share
    # The kernel adds what a task ran when it leaves the CPU: all of it, also what was before the first reading.
    run = after.schedstat.get(cpu, 0) - before.schedstat.get(cpu, 0) if cpu in before.schedstat else 0
    return max(min(max(counted_for_tasks, run / max(after.when - before.when, 1)), rest), 0.0)


def _imprecisions(is_exact: bool, seconds: float, elapsed: float) -> list[str]:
    """What makes the numbers of a sample worth less. is_exact: whether the kernel counts busy time in nanoseconds."""
    problems = []
    if not is_exact:
        problems.append(
            "how busy the CPUs were is counted in ticks of 1/100 s: cgroups do not count it for each CPU, and %s is"
            " missing or of an unknown version" % _SCHEDSTAT
        )
    if elapsed > seconds + _MOST_LATE:
        problems.append(
            "the sample took %.1f s in place of %g s, as the machine was busy or stood still, or its clock jumped; all"
            " shares are of the longer time" % (elapsed, seconds)
        )
    return problems


def _problems(watch: Watch, read: _Readings, interrupts: Counts, softirqs: Counts, silent: CPUSet) -> list[str]:
    problems = []
    if watch.hidden:
        problems.append("the tasks of other users cannot be seen, as /proc is mounted with hidepid; run it as root")
    if not watch.exact:
        problems.append(
            "this kernel has no /proc/PID/schedstat: the time of single threads is counted in ticks of 1/100 s"
        )
    if watch.truncated:
        problems.append(
            "there are too many processes: some that cannot run on exclusive CPUs were left out, and their time on the"
            " other CPUs is unattributed; sample for more seconds"
        )
    for path, content, counts in (
        (_INTERRUPTS, read.interrupts, interrupts),
        (_SOFTIRQS, read.softirqs, softirqs),
    ):
        if not content:
            problems.append("there is no %s: interrupts of this kind are not counted" % path)
        elif counts.unread:
            problems.append("%s: cannot be read: %s" % (path, ", ".join(counts.unread[:5])))
    if silent:
        problems.append("%s has nothing of CPUs %s" % (_STAT, silent))
    return problems
