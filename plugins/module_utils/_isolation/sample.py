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

from .._base.tree import Tree
from .._cgroup.hierarchy import CPUACCT, mounted
from .._cgroup.kubepods import container_id
from .._host.layers import shown
from ..cpuset import CPUSet
from .watch import TaskTime, TaskWatch

# How long cgroups ran, as they count it themselves: of v1 on each CPU, of v2 on all CPUs together.
#
# Its source: Linux's Documentation/admin-guide/cgroup-v1/cpuacct.rst and cgroup-v2.rst.


_PER_CPU = "/cpuacct.usage_percpu"
_CPU_STAT = "cpu.stat"
_NANOSECONDS, _MICROSECOND = 1_000_000_000, 1000
# The count of a CPU grows by what runs there with each tick, of 10 ms at most. So a difference of two may be wrong by
# this many seconds.
LAG = 0.02
# In what has such a name, the cgroups below are its own affair.
_LEAVES = (".service", ".scope")
# Of cgroups in one another. What is further below counts as what is above it.
_DEEPEST = 100
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
_DIRECTORY = os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY
# The kernel gives a file of a cgroup whole, where it has room for it; this is enough for all but large machines.
_USUAL = 1 << 12
_MOST = 1 << 18


class CgroupTime(NamedTuple):
    """How a cgroup, without those below it that are listed too, used CPUs: {CPU: share of the time}."""

    path: str
    shares: Mapping[int, float]


class PerCpu:
    """All cgroups of v1 between two readings. possible: the CPUs that the columns belong to.

    whole: cgroups of which those below are not read; a large machine has a thousand pods.
    ended: after the last reading, the cgroups that are not there any more, without those above which nothing ran.
    """

    def __init__(self, mount: str, possible: Sequence[int], whole: Container[str] = ()) -> None:
        self._mount, self._possible, self._whole = mount, possible, whole
        # Paths that begin there are shorter, which the kernel needs less time for.
        self._directory = -1
        self.ended: list[str] = []
        # {path: (when, its text)}; a parent comes before its children.
        self._before: dict[str, tuple[int, bytes]] = {}
        self._children: dict[str, list[str]] = {}

    def __len__(self) -> int:
        return len(self._before)

    def __contains__(self, path: object) -> bool:
        """Return whether a cgroup, which is not the topmost, is read."""
        return path in self._before

    def begin(self) -> bool:
        """Read all; False where the topmost cannot be read as it should be."""
        try:
            self._directory = os.open(self._mount, _DIRECTORY)
        except OSError:
            return False
        self._walk("", "")
        first = self._before.get("")
        if first is not None and len(_counted_numbers(first[1])) == len(self._possible):
            return True
        os.close(self._directory)
        return False

    def end(self) -> tuple[dict[int, float], list[CgroupTime]]:
        """Return {CPU: share of the time in which any task ran}, and the cgroups in which some did."""
        found: list[CgroupTime] = []
        busy = self._ended("", found) or {}
        os.close(self._directory)
        return busy, found

    def _walk(self, path: str, name: str) -> None:
        content = _content(path + _PER_CPU if path else _PER_CPU[1:], self._directory)
        if content is None:
            return
        self._before[path] = (time.monotonic_ns(), content)
        if path in self._whole or name.endswith(_LEAVES) or container_id(name) or path.count("/") > _DEEPEST:
            return
        try:
            with os.scandir("%s/%s" % (self._mount, path)) as entries:
                names = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
        except OSError:
            return
        if names:
            children = ["%s/%s" % (path, inner) if path else inner for inner in names]
            self._children[path] = children
            for inner, child in zip(names, children):
                self._walk(child, inner)

    def _ended(self, path: str, found: list[CgroupTime]) -> dict[int, float] | None:
        """Return the shares of a cgroup with all below it; None where it does not count."""
        if path not in self._before:
            return None
        then, before = self._before[path]
        content = _content(path + _PER_CPU if path else _PER_CPU[1:], self._directory)
        if content is None:
            self.ended.append(path)
            return None  # its time is its parent's
        lasted = max(time.monotonic_ns() - then, 1)
        if content == before:
            return {}  # nor did any below it
        old, new = _counted_numbers(before), _counted_numbers(content)
        if not len(old) == len(new) == len(self._possible):
            return None
        whole = {cpu: (now - last) / lasted for cpu, last, now in zip(self._possible, old, new) if now > last}
        own = dict(whole)
        for child in self._children.get(path, ()):
            for cpu, share in (self._ended(child, found) or {}).items():
                own[cpu] = own.get(cpu, 0.0) - share
        # What is left of a cgroup with others below it is mostly what was counted between their readings.
        least = LAG * _NANOSECONDS / lasted if path in self._children and path else 0.0
        found.append(CgroupTime(path, {cpu: share for cpu, share in own.items() if share > least}))
        return whole


class Totals:
    """Some cgroups of v2 between two readings. ended: after the last, those that are not there any more."""

    def __init__(self, mount: str, paths: Iterable[str]) -> None:
        self._mount = mount
        self.ended: list[str] = []
        self._before = {path: read for path in paths if (read := self._read(path)) is not None}

    def end(self) -> dict[str, float]:
        """Return {cgroup: how many CPUs it used}, of those that are still there."""
        found = {}
        for path, (then, before) in self._before.items():
            read = self._read(path)
            if read is None:
                self.ended.append(path)
            else:
                found[path] = max(read[1] - before, 0) / max(read[0] - then, 1)
        return found

    def _read(self, path: str) -> tuple[int, int] | None:
        """Return when it was read, and the nanoseconds."""
        for line in (_content("%s/%s/%s" % (self._mount, path, _CPU_STAT)) or b"").splitlines():
            name, _blank, value = line.partition(b" ")
            if name == b"usage_usec" and value.isdigit():
                return time.monotonic_ns(), int(value) * _MICROSECOND
        return None


def _counted_numbers(content: bytes) -> list[int]:
    fields = content.split()
    return list(map(int, fields)) if all(map(bytes.isdigit, fields)) else []


def _content(path: str, directory: int | None = None) -> bytes | None:
    try:
        descriptor = os.open(path, _READ, dir_fd=directory)
    except OSError:
        return None
    try:
        content = os.read(descriptor, _USUAL)
        while _USUAL <= len(content) < _MOST:
            more = os.read(descriptor, _MOST)
            content += more
            if not more:
                break
        return content
    except OSError:
        return None
    finally:
        os.close(descriptor)


# What the kernel counted on each CPU between two readings: interrupts by name, and time by kind. Pure.
#
# Its source: /proc/interrupts, /proc/softirqs, /proc/stat (Linux's Documentation/filesystems/proc.rst),
# /proc/schedstat (Documentation/scheduler/sched-stats.rst).


# The columns of a CPU in /proc/stat; those of guests are in user and nice, too.
_COLUMNS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
# Of a CPU in /proc/schedstat: the time in which tasks ran, in nanoseconds, as far as they have left the CPU.
_RUN_TIME = 7


class Counts(NamedTuple):
    """Interrupts: {CPU: {name: count}}, and lines that could not be read, by their beginning."""

    counts: Mapping[int, Mapping[str, int]]
    unread: tuple[str, ...]


class Ticks(NamedTuple):
    """A CPU's time by kind, in ticks of 1/100 s."""

    user: int
    nice: int
    system: int
    idle: int
    iowait: int
    irq: int
    softirq: int
    steal: int

    def since(self, before: Ticks) -> Ticks:
        """Return what was added. The kernel does not promise that idle time only grows."""
        return Ticks(*(max(now - then, 0) for now, then in zip(self, before)))


def counted(before: bytes, after: bytes) -> Counts:
    """Return what was added between two readings of /proc/interrupts or /proc/softirqs.

    A row that is new counts from 0. Rows that have the same text are not read; most of a large machine have.
    """
    rows, header = _rows(before), _header(after)
    if header is None or header != _header(before):
        return Counts({}, ("the columns",))
    found: dict[int, dict[str, int]] = {}
    unread = []
    for line in after.splitlines()[1:]:
        label, _colon, rest = line.partition(b":")
        before_rest = rows.get(label, b"")
        if rest == before_rest:
            continue
        numbers = _numbers(rest, len(header))
        old = _numbers(before_rest, len(header)) if before_rest else [0] * len(header)
        if numbers is None or old is None:
            # Such as ERR, which has one number for the machine.
            if len(rest.split(None, 1)) != 1:
                unread.append(shown(label.strip())[:20])
            continue
        name = _name(label, rest, len(header))
        for cpu, now, then in zip(header, numbers, old):
            # A line whose device is another now begins anew.
            added = now - then if now >= then else now
            if added:
                of_cpu = found.setdefault(cpu, {})
                of_cpu[name] = of_cpu.get(name, 0) + added
    return Counts(found, tuple(unread))


def _header(content: bytes) -> list[int] | None:
    """Return the CPUs of the columns."""
    names = content.partition(b"\n")[0].split()
    if not names or not all(name.startswith(b"CPU") and name[3:].isdigit() for name in names):
        return None
    return [int(name[3:]) for name in names]


def _rows(content: bytes) -> dict[bytes, bytes]:
    return {label: rest for label, _colon, rest in (line.partition(b":") for line in content.splitlines()[1:])}


def _numbers(rest: bytes, count: int) -> list[int] | None:
    fields = rest.split(None, count)[:count]
    return list(map(int, fields)) if len(fields) == count and all(map(bytes.isdigit, fields)) else None


def _name(label: bytes, rest: bytes, count: int) -> str:
    """Return what a row is called: its number and who handles it, or what the kernel says of it."""
    fields = rest.split(None, count)
    text = fields[count].strip() if len(fields) > count else b""
    number = label.strip()
    if number.isdigit():
        # Chip, number in it and kind of trigger; then, after two blanks, the names of the handlers.
        handlers = text.rpartition(b"  ")[2].strip() if b"  " in text else text
        return "%s %s" % (shown(number), shown(handlers)) if handlers else shown(number)
    return "%s (%s)" % (shown(number), shown(text)) if text else shown(number)


def parse_ticks(content: bytes) -> dict[int, Ticks]:
    """Return {CPU: time by kind} of /proc/stat; without the lines that cannot be read."""
    found = {}
    for line in content.splitlines():
        if not line.startswith(b"cpu"):
            # All lines of CPUs come first, and that of interrupts is long.
            break
        name, *fields = line.split()
        number, numbers = name[3:], fields[: len(_COLUMNS)]
        if number.isdigit() and len(numbers) == len(_COLUMNS) and all(map(bytes.isdigit, numbers)):
            found[int(number)] = Ticks(*map(int, numbers))
    return found


def parse_schedstat(content: bytes) -> dict[int, int]:
    """Return {CPU: how long tasks ran there, in nanoseconds} of /proc/schedstat; empty for a version that is not
    known."""
    lines = content.splitlines()
    version = lines[0].split() if lines else []
    if len(version) != 2 or version[0] != b"version" or not version[1].isdigit() or not 15 <= int(version[1]) <= 17:
        return {}
    found = {}
    for line in lines:
        fields = line.split()
        number = fields[0][3:] if fields and fields[0].startswith(b"cpu") else b""
        if number.isdigit() and len(fields) > _RUN_TIME and fields[_RUN_TIME].isdigit():
            found[int(number)] = int(fields[_RUN_TIME])
    return found


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
    watch = TaskWatch(frozenset(watched))
    if per_cpu is not None:
        watch = TaskWatch(frozenset(watched), CPUACCT, per_cpu)
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


def _look_on(watch: TaskWatch, until: int, seconds: float, budget: float) -> int:
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
    """Return in which share of the time tasks ran on a CPU, where no cgroup counts it; never more than is sure."""
    counted_for_tasks = (ticks.user + ticks.nice + ticks.system) * share
    rest = 1 - (ticks.idle + ticks.iowait + ticks.irq + ticks.softirq + ticks.steal) * share
    # The kernel adds what a task ran when it leaves the CPU: all of it, also what was before the first reading.
    run = after.schedstat.get(cpu, 0) - before.schedstat.get(cpu, 0) if cpu in before.schedstat else 0
    return max(min(max(counted_for_tasks, run / max(after.when - before.when, 1)), rest), 0.0)


def _imprecisions(is_exact: bool, seconds: float, elapsed: float) -> list[str]:
    """Return what makes the numbers of a sample worth less. is_exact: whether the kernel counts busy time in
    nanoseconds."""
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


def _problems(watch: TaskWatch, read: _Readings, interrupts: Counts, softirqs: Counts, silent: CPUSet) -> list[str]:
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
