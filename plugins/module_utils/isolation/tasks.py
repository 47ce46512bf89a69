# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The tasks of the running machine: how long each ran, and on which CPU it was seen.

Source: /proc/PID/task/TID/schedstat (Linux's Documentation/scheduler/sched-stats.rst) and stat (man 5 proc_pid_stat).
The kernel says how long a task ran, and on which CPU it ran last, but not how long on which. A task that may use one
CPU only has run there; for all others the CPU is sampled.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import AbstractSet, Iterable, Mapping, NamedTuple

from ..host.names import shown

_PROC = "/proc"
_READ = os.O_RDONLY | os.O_CLOEXEC
# Of the field flags in stat. Source: include/linux/sched.h.
_KERNEL_THREAD = 0x00200000
# Descriptors that are left for all else.
_SPARE_DESCRIPTORS = 64
_SECOND = 1_000_000_000
# A comm has 15 bytes; that of a kernel worker in stat has up to 64. All fields together stay far below.
_MOST = 4096


class Stat(NamedTuple):
    """Of a task's stat: name, whether the kernel made it, user and system time in ticks, start in ticks, last CPU."""

    name: bytes
    kernel: bool
    ticks: int
    start: int
    processor: int


def parse_stat(content: bytes) -> Stat | None:
    """Read a task's stat; None for what is none. The name may have any byte in it, also ")"."""
    begin, end = content.find(b" ("), content.rfind(b") ")
    fields = content[end + 2 :].split()
    if begin < 0 or end < begin or len(fields) < 37:
        return None
    try:
        kernel = bool(int(fields[6]) & _KERNEL_THREAD)
        return Stat(
            content[begin + 2 : end], kernel, int(fields[11]) + int(fields[12]), int(fields[19]), int(fields[36])
        )
    except ValueError:
        return None


def parse_run_time(content: bytes) -> int | None:
    """Of a task's schedstat: how long it ran, in nanoseconds. None for what is no schedstat."""
    fields = content.split(None, 1)
    return int(fields[0]) if fields and fields[0].isdigit() else None


def parse_cgroup(content: bytes, controller: str) -> str:
    """The path of the cgroup that a task is in, by its file cgroup; empty for the topmost, or where there is none.

    controller: of v1; empty for v2.
    """
    for line in content.splitlines():
        number, _colon, rest = line.partition(b":")
        controllers, _colon, path = rest.partition(b":")
        if controller.encode() in controllers.split(b",") if controller else (number == b"0" and not controllers):
            return os.fsdecode(path.strip(b"/"))
    return ""


class TaskTime(NamedTuple):
    """How a task used CPUs: {CPU: share of the time}, and whether it is sure that it ran there."""

    name: str
    kernel: bool
    pid: int
    tid: int
    # Relative to the hierarchy; empty for the topmost.
    cgroup: str
    shares: Mapping[int, float]
    sure: bool


class _Task:
    """One task that is looked at again and again."""

    __slots__ = (
        "allowed",
        "cgroup",
        "descriptor",
        "first",
        "last",
        "pid",
        "processor",
        "ran",
        "since",
        "stat",
        "sure",
        "text",
        "tid",
    )
    # Without a time of its own, the time of the whole sample counts, as for a task that is new.
    WHOLE = -1

    def __init__(self, pid: int, tid: int, allowed: AbstractSet[int], descriptor: int) -> None:
        self.pid, self.tid, self.allowed, self.descriptor = pid, tid, allowed, descriptor
        # Nanoseconds: run time when it was last looked at; when it was first looked at.
        self.since = self.last = 0
        self.first = self.WHOLE
        self.stat: Stat | None = None
        # Of the CPUs, None: not known.
        self.processor: int | None = None
        self.cgroup: str | None = None
        # Nanoseconds, by CPU.
        self.ran: dict[int, int] = {}
        self.sure = True
        # Of its schedstat.
        self.text = b""


class Watch:
    """All tasks over some time.

    watched: the CPUs that count. Tasks that may not run there are looked at only at the begin and the end.
    controller: of the hierarchy of v1 whose paths count; empty for v2. Attributes:
        exact: whether the kernel counts run time in nanoseconds, and not in ticks.
        hidden: whether the tasks of others cannot be seen.
        truncated: whether tasks that may not run on the watched CPUs were left out.
    """

    def __init__(self, watched: AbstractSet[int], controller: str = "", proc: str = _PROC) -> None:
        self._watched, self._controller, self._proc = watched, controller, proc
        self._tick = _SECOND // os.sysconf("SC_CLK_TCK")
        self._tasks: dict[int, _Task] = {}
        self._rest: dict[int, _Task] = {}
        # {process: links of its directory of tasks}, by which a new thread shows.
        self._links: dict[int, int] = {}
        self._done: list[_Task] = []
        self._last_pid = b""
        self._kept = _most_descriptors() - _SPARE_DESCRIPTORS
        self.exact = self._counts_nanoseconds()
        self.truncated = False
        # Others' tasks cannot be seen by who is not root, where /proc is mounted with hidepid.
        self.hidden = self._read("1/stat") is None
        self._begun = self._lasted = self._begun_ticks = 0

    def __len__(self) -> int:
        return len(self._tasks) + len(self._rest)

    # --- looking ---------------------------------------------------------------------------------

    def begin(self, most_rest: int) -> None:
        """Look at all tasks for the first time. most_rest: so many that may not run on the watched CPUs."""
        self._begun = time.monotonic_ns()
        self._begun_ticks = time.clock_gettime_ns(time.CLOCK_BOOTTIME) // self._tick
        self._last_pid = self._newest()
        self._list(most_rest)

    def look(self, last: bool = False) -> None:
        """Look at the tasks again, and at those that are new. last: also at those that may not run there."""
        for tasks in (self._tasks, self._rest) if last else (self._tasks,):
            gone = [tid for tid, task in tasks.items() if not self._advance(task)]
            for tid in gone:
                self._end(tasks.pop(tid))
        newest = self._newest()
        if newest != self._last_pid or last:
            self._last_pid = newest
            self._list(0, begun=True)
        self._lasted = time.monotonic_ns() - self._begun

    def results(self) -> list[TaskTime]:
        """Who ran, after the last look. Closes all that is open."""
        found = []
        for task in [*self._tasks.values(), *self._rest.values(), *self._done]:
            if task.descriptor >= 0:
                os.close(task.descriptor)
            if task.ran and task.stat is not None:
                lasted = self._lasted if task.first == task.WHOLE else task.last - task.first
                shares = {cpu: spent / max(lasted, 1) for cpu, spent in task.ran.items()}
                name = shown(task.stat.name)
                found.append(TaskTime(name, task.stat.kernel, task.pid, task.tid, task.cgroup or "", shares, task.sure))
        self._tasks, self._rest, self._done = {}, {}, []
        return found

    # --- one task --------------------------------------------------------------------------------

    def _advance(self, task: _Task) -> bool:
        """Take account of what a task ran since the last look; False where it has ended."""
        if self.exact and task.descriptor >= 0:
            # Most tasks sleep all the time, and then the text is the same.
            try:
                text = os.pread(task.descriptor, 128, 0)
            except OSError:
                return False
            task.last = time.monotonic_ns()
            if text == task.text:
                return True
            task.text = text
            run_time = parse_run_time(text)
        else:
            run_time = self._run_time(task)
            task.last = time.monotonic_ns()
        if run_time is None or run_time < task.since:
            return False
        spent, task.since = run_time - task.since, run_time
        return True if spent == 0 else self._account(task, spent)

    def _account(self, task: _Task, spent: int) -> bool:
        stat = self._stat(task)
        if stat is None:
            return False
        try:
            allowed = os.sched_getaffinity(task.tid)
        except OSError:
            return False
        if task.cgroup is None:
            content = self._read("%d/cgroup" % task.pid)
            task.cgroup = "" if content is None else parse_cgroup(content, self._controller)
        before, task.processor, task.stat = task.processor, stat.processor, stat
        if not (len(allowed) == 1 and allowed == task.allowed):
            task.sure = False
        task.allowed = allowed
        # Where it was seen first and last; in between it may have been elsewhere.
        places = [stat.processor] if before is None or before == stat.processor else [before, stat.processor]
        for cpu in places:
            task.ran[cpu] = task.ran.get(cpu, 0) + spent // len(places)
        return True

    def _run_time(self, task: _Task) -> int | None:
        if not self.exact:
            stat = self._stat(task)
            return None if stat is None else stat.ticks * self._tick
        if task.descriptor < 0:
            content = self._read("%d/task/%d/schedstat" % (task.pid, task.tid))
            return None if content is None else parse_run_time(content)
        try:
            return parse_run_time(os.pread(task.descriptor, 128, 0))
        except OSError:
            return None

    def _stat(self, task: _Task) -> Stat | None:
        """None where the task has ended, also where another has its number now."""
        content = self._read("%d/task/%d/stat" % (task.pid, task.tid))
        stat = None if content is None else parse_stat(content)
        return None if stat is None or (task.stat is not None and task.stat.start != stat.start) else stat

    def _end(self, task: _Task) -> None:
        if task.descriptor >= 0:
            os.close(task.descriptor)
            task.descriptor = -1
        if task.ran:
            task.first = task.WHOLE
            self._done.append(task)

    # --- all tasks -------------------------------------------------------------------------------

    def _list(self, most_rest: int, begun: bool = False) -> None:
        """Take up the tasks that are not known."""
        known_tasks, rest, links = self._tasks, self._rest, self._links
        found: dict[int, int] = {}
        for name in self._numbers(self._proc):
            pid = int(name)
            # Of each thread one link more.
            try:
                found[pid] = count = os.stat("%s/%s/task" % (self._proc, name)).st_nlink
            except OSError:
                continue
            if links.get(pid) == count and (pid in known_tasks or pid in rest):
                continue
            for thread in self._numbers("%s/%s/task" % (self._proc, name)) if count != 3 else (name,):
                tid = int(thread)
                if tid not in known_tasks and tid not in rest:
                    self._take_up(pid, tid, most_rest, begun)
        self._links = found

    def _take_up(self, pid: int, tid: int, most_rest: int, begun: bool) -> None:
        try:
            allowed = os.sched_getaffinity(tid)
        except OSError:
            return  # it has ended
        watched = not self._watched.isdisjoint(allowed)
        if not watched and (begun or len(self._rest) >= most_rest):
            self.truncated = self.truncated or not begun
            return
        task = _Task(pid, tid, allowed, -1)
        if self.exact and len(self) < self._kept:
            with suppress(OSError):
                task.descriptor = os.open("%s/%d/task/%d/schedstat" % (self._proc, pid, tid), _READ)
        if not begun:
            task.first = time.monotonic_ns()
        run_time = self._run_time(task)
        if run_time is None:
            if task.descriptor >= 0:
                os.close(task.descriptor)
            return
        task.since = run_time
        (self._tasks if watched else self._rest)[tid] = task
        if begun and run_time:
            self._take_up_new(task, run_time)

    def _take_up_new(self, task: _Task, run_time: int) -> None:
        """Of a task that began after the first look, all counts."""
        stat = self._stat(task)
        if stat is not None and stat.start >= self._begun_ticks:
            self._account(task, run_time)

    def _numbers(self, directory: str) -> Iterable[str]:
        try:
            return [name for name in os.listdir(directory) if name.isdigit()]
        except OSError:
            return ()

    def _newest(self) -> bytes:
        """What changes when a process or thread begins: the number that the last one was given."""
        return (self._read("loadavg") or b"").rpartition(b" ")[2]

    def _counts_nanoseconds(self) -> bool:
        """Kernels without CONFIG_SCHED_INFO have no schedstat, or one of zeros."""
        own = self._read("self/schedstat")
        first = self._read("1/schedstat") or own
        return bool(first and own and first.split() != [b"0"] * 3)

    def _read(self, path: str) -> bytes | None:
        try:
            descriptor = os.open("%s/%s" % (self._proc, path), _READ)
        except OSError:
            return None
        try:
            return os.read(descriptor, _MOST)
        except OSError:
            return None
        finally:
            os.close(descriptor)


def _most_descriptors() -> int:
    """How many files this process may have open; it takes all that it may have."""
    # Imported here: only a sample needs it.
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65536), hard))
            return min(hard, 65536)
    return soft
