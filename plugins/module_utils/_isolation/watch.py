# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The tasks of the running machine: how long each ran, and on which CPU it was seen.

The kernel says how long a task ran, and on which CPU it ran last, but not how long on which. A task that may use one
CPU only has run there; for all others the CPU is sampled.

Most processes of a large machine sleep all the time. So each is asked for its CPU clock (man 3 clock_getcpuclockid),
which is one system call and has the time of all its threads; only what ran is looked at any further. The time of
single threads is in their files, and it takes two readings of these.
"""

from __future__ import annotations

import os
import time
from typing import AbstractSet, Callable, Container, Iterable, Mapping, NamedTuple

from .._base.tree import is_number
from .._cgroup.hierarchy import lineage
from .._host.layers import shown

# What the kernel says of a task: how long it ran, and on which CPU last.
#
# Its source: /proc/PID/task/TID/schedstat (Linux's Documentation/scheduler/sched-stats.rst) and stat (man 5
# proc_pid_stat).


# Of the field flags in stat. Source: include/linux/sched.h.
_KERNEL_THREAD = 0x00200000


def cpu_clock(pid: int) -> int:
    """Return how long all threads of a process ran, also those that have ended, in nanoseconds. Raises OSError.

    Source: the numbers of clocks in include/linux/posix-timers.h, which are part of the kernel's interface.
    """
    return time.clock_gettime_ns(~pid << 3 | 2)


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
    """Return, from a task's schedstat, how long it ran, in nanoseconds. None for what is no schedstat."""
    fields = content.split(None, 1)
    return int(fields[0]) if fields and fields[0].isdigit() else None


def parse_cgroup(content: bytes, controller: str) -> str:
    """Return the path of the cgroup that a task is in, by its file cgroup; empty for the topmost, or where there is
    none.

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


_PROC = "/proc"
_READ = os.O_RDONLY | os.O_CLOEXEC
_SECOND = 1_000_000_000
# A comm has 15 bytes; that of a kernel worker in stat has up to 64. All fields together stay far below.
_MOST = 4096
# What ran for less nanoseconds waits for a later look.
_LEAST = 100_000
# The threads of a process are read from this share of a CPU on. What it ran without that is given to so many of them.
_THREADS_FROM = 0.002
_MOST_GUESSED = 8
# From this share of a CPU on, it is said that somebody was left out.
_MISSED = 0.01


class _Thread:
    """A thread that ran, or one of a process with several."""

    __slots__ = ("allowed", "processor", "ran", "since", "stat", "sure", "tid")

    def __init__(self, tid: int, allowed: AbstractSet[int], since: int = 0) -> None:
        self.tid, self.allowed = tid, allowed
        # Nanoseconds: its run time when it was last looked at. Not used for the only thread of a process.
        self.since = since
        self.stat: Stat | None = None
        # None: not known.
        self.processor: int | None = None
        # Nanoseconds, by CPU.
        self.ran: dict[int, int] = {}
        self.sure = True


class _Process:
    """A process that is looked at again and again."""

    __slots__ = ("cgroup", "clock", "ended", "first", "last", "pending", "pid", "threads")

    def __init__(self, pid: int, clock: int, first: int | None) -> None:
        self.pid, self.clock = pid, clock
        # When its clock was first and last read. None, of what is new or ended: the whole sample counts.
        self.first, self.last = first, 0
        # None: not read.
        self.cgroup: str | None = None
        self.threads: dict[int, _Thread] | None = None
        self.ended: list[_Thread] = []
        # Nanoseconds of threads before their first reading.
        self.pending = 0


class TaskWatch:
    """All tasks over some time.

    watched: the CPUs that count. Processes that may not run there are looked at only at the end.
    controller: of the hierarchy of v1 whose paths count; empty for v2. counted: its cgroups that have counters of their
    own for each CPU; processes in them, but for this one, are not looked at. Attributes:
        exact: whether the kernel counts the run time of single threads in nanoseconds, and not in ticks.
        hidden: whether the tasks of others cannot be seen.
        truncated: whether processes that may not run on the watched CPUs and took time were left out.
    """

    def __init__(
        self,
        watched: AbstractSet[int],
        controller: str = "",
        counted: Container[str] = (),
        proc: str = _PROC,
        clock: Callable[[int], int] = cpu_clock,
    ) -> None:
        self._watched, self._controller, self._counted = watched, controller, counted
        self._proc, self._clock = proc, clock
        self._tick = _SECOND // os.sysconf("SC_CLK_TCK")
        self._processes: dict[int, _Process] = {}
        self._rest: dict[int, _Process] = {}
        self._done: list[_Process] = []
        # Numbers of processes whose time is known from their cgroups.
        self._left_out: set[int] = set()
        self._last_pid = b""
        self.exact = self._counts_nanoseconds()
        self.truncated = False
        # Others' tasks cannot be seen by who is not root, where /proc is mounted with hidepid.
        self.hidden = self._read("1/stat") is None
        self._begun = self._lasted = self._begun_ticks = 0

    def __len__(self) -> int:
        """Return how many processes were asked for their time, and threads of those that have several."""
        processes = [*self._processes.values(), *self._rest.values()]
        return len(self._left_out) + sum(max(len(process.threads or ()), 1) for process in processes)

    # --- looking ---------------------------------------------------------------------------------

    def begin(self, until: float) -> None:
        """Look at all processes for the first time.

        until: up to this time of its own process, in seconds of CPU, it reads all threads of those that have several.
        Of others, the time until they are first seen to run is given to the threads that run later.
        """
        self._begun = time.monotonic_ns()
        self._begun_ticks = time.clock_gettime_ns(time.CLOCK_BOOTTIME) // self._tick
        self._last_pid = self._newest()
        for pid in self._numbers(self._proc):
            try:
                self._processes[pid] = _Process(pid, self._clock(pid), time.monotonic_ns())
            except OSError:
                continue  # it has ended
        for process in list(self._processes.values()):
            if time.process_time() >= until:
                break
            if self._count_threads(process.pid) > 1 and not self._is_counted(process):
                self._take_up(process)

    def look(self) -> None:
        """Look at the processes again, and at those that are new."""
        self._advance_all(is_last=False)

    def end(self, until: float) -> None:
        """Look for the last time, also at those that may not run on the watched CPUs.

        until: of these, the ones that ran most, up to this time of its own process, in seconds of CPU.
        """
        self._advance_all(is_last=True)
        self._lasted = time.monotonic_ns() - self._begun
        ran = [(self._spent(process), process.pid) for process in list(self._rest.values())]
        for spent, pid in sorted(ran, reverse=True):
            process = self._rest.get(pid)
            if process is None or not spent + process.pending:
                continue
            if time.process_time() < until:
                self._advance(process, spent, is_last=True)
            elif spent >= _MISSED * self._lasted:
                self.truncated = True

    def results(self) -> list[TaskTime]:
        """Return who ran, after the end."""
        found = []
        for process in [*self._processes.values(), *self._rest.values(), *self._done]:
            lasted = max(self._lasted if process.first is None else process.last - process.first, 1)
            for thread in [*(process.threads or {}).values(), *process.ended]:
                if thread.ran and thread.stat is not None:
                    shares = {cpu: spent / lasted for cpu, spent in thread.ran.items()}
                    name, kernel = shown(thread.stat.name), thread.stat.kernel
                    place = process.cgroup or ""
                    found.append(TaskTime(name, kernel, process.pid, thread.tid, place, shares, thread.sure))
        return found

    # --- one process -----------------------------------------------------------------------------

    def _advance_all(self, is_last: bool) -> None:
        for process in list(self._processes.values()):
            spent = self._spent(process)
            if spent >= _LEAST or (is_last and spent + process.pending):
                self._advance(process, spent, is_last)
        newest = self._newest()
        if newest != self._last_pid or is_last:
            self._last_pid = newest
            for pid in self._numbers(self._proc):
                if not (pid in self._processes or pid in self._rest or pid in self._left_out):
                    self._take_up_new(pid, is_last)

    def _spent(self, process: _Process) -> int:
        """Return how long a process ran since it was last accounted for; it is dropped where it has ended."""
        try:
            spent = self._clock(process.pid) - process.clock
        except OSError:
            spent = -1
        if spent < 0:
            self._drop(process)
            return 0
        process.last = time.monotonic_ns()
        return spent

    def _drop(self, process: _Process) -> None:
        for processes in (self._processes, self._rest):
            if processes.get(process.pid) is process:
                del processes[process.pid]
        if process.threads or process.ended:
            process.first = None
            self._done.append(process)

    def _take_up_new(self, pid: int, is_last: bool) -> None:
        """Take up a process; of one that began after the first look, all counts."""
        process = _Process(pid, 0, None)
        stat = self._stat(pid, pid)
        if stat is not None and stat.start >= self._begun_ticks:
            self._processes[pid] = process
            if self._count_threads(pid) > 1 and not self._is_counted(process):
                self._take_up(process, is_new=True)
            spent = self._spent(process)
            if spent:
                self._advance(process, spent, is_last)

    def _advance(self, process: _Process, spent: int, is_last: bool) -> None:
        """Take account of what a process ran."""
        if self._is_counted(process):
            return
        count = self._count_threads(process.pid)
        if process.threads is None and count == 1:
            try:
                process.threads = {process.pid: _Thread(process.pid, os.sched_getaffinity(process.pid))}
            except OSError:
                self._drop(process)
                return
            if self._set_aside(process) and not is_last:
                return
        if count > 1 and not is_last and spent < _THREADS_FROM * (process.last - self._begun):
            return
        process.clock += spent
        if count == 1 and process.threads is not None and process.threads.keys() == {process.pid}:
            pending, process.pending = process.pending, 0
            if not self._account(process, process.threads[process.pid], spent + pending):
                self._drop(process)
            return
        if process.threads is not None:
            self._advance_threads(process, count)
        else:
            process.pending = spent
            if not is_last:
                self._take_up(process)
        if is_last and process.pending:
            self._guess(process)

    def _is_counted(self, process: _Process) -> bool:
        """Return whether its cgroup counts the time of a process on each CPU; then it is looked at no longer."""
        if process.cgroup is None:
            content = self._read("%d/cgroup" % process.pid)
            process.cgroup = "" if content is None else parse_cgroup(content, self._controller)
        if process.pid == os.getpid() or not any(path in self._counted for path in lineage(process.cgroup)):
            return False
        self._left_out.add(process.pid)
        process.threads = None
        self._drop(process)
        return True

    def _set_aside(self, process: _Process) -> bool:
        """Return whether a process may not run on the watched CPUs; then it is looked at again at the end only."""
        if any(not self._watched.isdisjoint(thread.allowed) for thread in (process.threads or {}).values()):
            return False
        self._processes.pop(process.pid, None)
        self._rest[process.pid] = process
        return True

    # --- several threads -------------------------------------------------------------------------

    def _take_up(self, process: _Process, is_new: bool = False) -> None:
        """Read the threads of a process for the first time. is_new: their time counts from their begin."""
        process.threads = {}
        for tid in self._numbers("%s/%d/task" % (self._proc, process.pid)):
            self._take_up_thread(process.threads, process.pid, tid, is_new)
        self._set_aside(process)

    def _take_up_thread(self, threads: dict[int, _Thread], pid: int, tid: int, is_new: bool) -> None:
        try:
            allowed = os.sched_getaffinity(tid)
        except OSError:
            return  # it has ended
        since = 0 if is_new else self._run_time(pid, tid)
        if since is not None:
            threads[tid] = _Thread(tid, allowed, since)

    def _advance_threads(self, process: _Process, count: int) -> None:
        threads = process.threads if process.threads is not None else {}
        ran = []
        for thread in list(threads.values()):
            run_time = self._run_time(process.pid, thread.tid)
            if run_time is None or run_time < thread.since:
                process.ended.append(threads.pop(thread.tid))
            elif run_time > thread.since:
                ran.append((thread, run_time - thread.since))
                thread.since = run_time
        if len(threads) != count:
            for tid in self._numbers("%s/%d/task" % (self._proc, process.pid)):
                if tid not in threads:
                    self._take_up_thread(threads, process.pid, tid, is_new=True)
                    if tid in threads:
                        threads[tid].since = self._run_time(process.pid, tid) or 0
                        ran.append((threads[tid], threads[tid].since))
        whole = sum(spent for _thread, spent in ran)
        pending = process.pending if whole else 0
        process.pending -= pending
        for thread, spent in ran:
            if pending and len(ran) > 1:
                thread.sure = False
            if spent and not self._account(process, thread, spent + pending * spent // whole):
                process.ended.append(threads.pop(thread.tid))

    def _guess(self, process: _Process) -> None:
        """Give the time of threads of which none was seen to run to where some were seen."""
        if process.threads is None:
            tids = list(self._numbers("%s/%d/task" % (self._proc, process.pid)))
            process.threads = {tid: _Thread(tid, frozenset()) for tid in tids[:_MOST_GUESSED]}
        threads = list(process.threads.values())[:_MOST_GUESSED]
        for thread in threads:
            thread.sure = False
            self._account(process, thread, process.pending // len(threads))
        process.pending = 0

    # --- one thread ------------------------------------------------------------------------------

    def _account(self, process: _Process, thread: _Thread, spent: int) -> bool:
        """Put down how long a thread ran, and where it was seen; False where it has ended."""
        stat = self._stat(process.pid, thread.tid)
        # Where another has its number now, that has begun later.
        is_other = stat is not None and (
            thread.stat.start != stat.start
            if thread.stat is not None
            else process.first is not None and thread.tid == process.pid and stat.start > self._begun_ticks
        )
        if stat is None or is_other:
            return False
        try:
            allowed = os.sched_getaffinity(thread.tid)
        except OSError:
            return False
        before, thread.processor, thread.stat = thread.processor, stat.processor, stat
        if not (len(allowed) == 1 and allowed == thread.allowed):
            thread.sure = False
        thread.allowed = allowed
        # Where it was seen first and last; in between it may have been elsewhere.
        places = [stat.processor] if before is None or before == stat.processor else [before, stat.processor]
        for cpu in places:
            thread.ran[cpu] = thread.ran.get(cpu, 0) + spent // len(places)
        return True

    def _run_time(self, pid: int, tid: int) -> int | None:
        if self.exact:
            content = self._read("%d/task/%d/schedstat" % (pid, tid))
            return None if content is None else parse_run_time(content)
        stat = self._stat(pid, tid)
        return None if stat is None else stat.ticks * self._tick

    # --- files -----------------------------------------------------------------------------------

    def _stat(self, pid: int, tid: int) -> Stat | None:
        content = self._read("%d/task/%d/stat" % (pid, tid))
        return None if content is None else parse_stat(content)

    def _count_threads(self, pid: int) -> int:
        """Return 0 where the process has ended."""
        try:
            # Of each thread one link more.
            return os.stat("%s/%d/task" % (self._proc, pid)).st_nlink - 2
        except OSError:
            return 0

    def _numbers(self, directory: str) -> Iterable[int]:
        try:
            return [int(name) for name in os.listdir(directory) if is_number(name)]
        except OSError:
            return ()

    def _newest(self) -> bytes:
        """Return what changes when a process or thread begins: the number that the last one was given."""
        return (self._read("loadavg") or b"").rpartition(b" ")[2]

    def _counts_nanoseconds(self) -> bool:
        """Return kernels without CONFIG_SCHED_INFO have no schedstat, or one of zeros."""
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
