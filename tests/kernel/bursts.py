# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Bursts of work in a real cgroup with a CPU limit, of v1 or v2: how long they take, and what the kernel counts.

Imports nothing of the collection, so that a virtual machine can run the file:

    bursts.py '[[20, 100, 70, 1, 1]]' 20 7   # quota, period, work in ms, threads, CPUs; how many bursts; seed
"""

from __future__ import annotations

import gc
import json
import os
import random
import signal
import sys
import time
from contextlib import suppress
from typing import Any, NamedTuple, Sequence

MS = 1_000_000

# Two readings of the clock that are further apart have something else between them: the process did not run. Whoever is
# throttled or preempted stands still for longer, and a tick or an interrupt takes less.
_GAP = 300_000

# How much all others may run from one burst to the next, in nanoseconds. The kernel counts in steps of 10 ms.
_OTHERS = 40 * MS

_CGROUPS = 5
_PREFIX = "kubenode-limited-"

# For the processes to be there, in nanoseconds.
_LEAD = 60 * MS


class Setting(NamedTuple):
    """A limit and a burst: milliseconds, and CPU time of all threads together. Threads are processes of one thread."""

    quota: int
    period: int
    work: int
    threads: int
    cpus: int

    @property
    def spacing(self) -> int:
        """How far apart bursts must begin so that two periods and more lie between them, in nanoseconds."""
        lost = max(0, -(-self.work // self.quota) - 1)
        stranded = 1 if self.cpus > 1 or self.threads > 1 else 0
        return ((lost + stranded + 2) * self.period + self.work + 5) * MS


class Measured(NamedTuple):
    """The latencies in ms, the share nr_throttled / nr_periods, and how many bursts were left out, because others ran
    meanwhile."""

    latencies: list[float]
    share: float
    disturbed: int
    # The CPU time that the kernel has counted for a burst, in ms.
    work: float


def controller() -> tuple[int, str]:
    """Return the version and the mount of the hierarchy with the cpu controller; (0, "") without one."""
    with open("/proc/mounts", encoding="utf-8") as file:
        mounts = [line.split() for line in file]
    for _device, place, kind, options, *_rest in mounts:
        if kind == "cgroup" and "cpu" in options.split(","):
            return 1, place
        if kind == "cgroup2":
            with open(place + "/cgroup.controllers", encoding="ascii") as file:
                if "cpu" in file.read().split():
                    return 2, place
    return 0, ""


class Limited:
    """A context: a cgroup of its own below the root, with a limit. Removed however it ends; killed, by the next one."""

    def __init__(self, setting: Setting) -> None:
        self.version, mount = controller()
        self.path = "%s/%s%d-%s" % (mount, _PREFIX, os.getpid(), os.urandom(4).hex())
        self.setting = setting
        self.processes: list[int] = []
        self._control = mount + "/cgroup.subtree_control"
        # Whether the cgroups below the root had no limits before.
        self._enabled = False

    def __enter__(self) -> Limited:
        if self.version == 2:
            with open(self._control, encoding="ascii") as file:
                self._enabled = "cpu" not in file.read().split()
            _write(self._control, "+cpu")
        _sweep(os.path.dirname(self.path))
        os.mkdir(self.path)
        quota, period = self.setting.quota * 1000, self.setting.period * 1000
        # Before all others on the machine: only the limit is to stop it.
        if self.version == 2:
            _write(self.path + "/cpu.weight", "10000")
            _write(self.path + "/cpu.max", "%d %d" % (quota, period))
        else:
            _write(self.path + "/cpu.shares", "262144")
            _write(self.path + "/cpu.cfs_period_us", str(period))
            _write(self.path + "/cpu.cfs_quota_us", str(quota))
        return self

    def __exit__(self, *_error: object) -> None:
        for process in self.processes:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
        try:
            self._remove()
        finally:
            if self._enabled:
                # Not while others of these are there.
                with suppress(OSError):
                    _write(self._control, "-cpu")

    def _remove(self) -> None:
        # A process that was killed leaves its cgroup a little later.
        for _attempt in range(200):
            try:
                os.rmdir(self.path)
                return
            except OSError:
                time.sleep(0.01)
        os.rmdir(self.path)

    def counted(self) -> tuple[int, int]:
        """Return (nr_periods, nr_throttled)."""
        with open(self.path + "/cpu.stat", encoding="ascii") as file:
            values = dict(line.split() for line in file)
        return int(values["nr_periods"]), int(values["nr_throttled"])

    def lost(self) -> int:
        """Return the nanoseconds that its CPUs were throttled, in sum."""
        with open(self.path + "/cpu.stat", encoding="ascii") as file:
            values = dict(line.split() for line in file)
        return int(values["throttled_time"]) if self.version == 1 else 1000 * int(values["throttled_usec"])

    def start(self, begins: Sequence[int], until: int, cpus: Sequence[int]) -> int:
        """Return a process that works a share of each burst, and answers at `until`; the end of the pipe with its
        answer."""
        answer, end = os.pipe()
        process = os.fork()
        if not process:
            status = 1
            try:
                os.close(answer)
                _write(self.path + "/cgroup.procs", str(os.getpid()))
                os.sched_setaffinity(0, cpus)
                text = json.dumps(_bursts(begins, self.setting.work * MS // self.setting.threads, until))
                os.write(end, text.encode("ascii"))
                status = 0
            finally:
                os._exit(status)
        self.processes.append(process)
        os.close(end)
        return answer


def _sweep(mount: str) -> None:
    """Remove the cgroups of processes like this one that were killed. Their children end by themselves."""
    for name in os.listdir(mount):
        if name.startswith(_PREFIX) and not os.path.exists("/proc/" + name[len(_PREFIX) :].split("-")[0]):
            with suppress(OSError):
                os.rmdir("%s/%s" % (mount, name))


def _write(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, text.encode("ascii"))
    finally:
        os.close(descriptor)


def _bursts(begins: Sequence[int], work: int, until: int) -> list[tuple[int, int]]:
    """Work at these times; (end, CPU time that the kernel has counted) of each."""
    gc.disable()
    rows = []
    for begin in begins:
        _sleep(begin)
        before = time.thread_time_ns()
        _spin(work)
        ended = time.monotonic_ns()
        rows.append((ended, time.thread_time_ns() - before))
    _sleep(until)
    return rows


def _sleep(until: int) -> None:
    time.sleep(max(0, until - time.monotonic_ns()) / 1e9)


def _spin(work: int) -> None:
    """Run for so long. No system call: reading the CPU time would let the kernel notice at once what a cgroup has used,
    and not at its next tick, as with any work."""
    clock = time.perf_counter_ns
    last = clock()
    while work > 0:
        now = clock()
        passed = now - last
        last = now
        if passed < _GAP:
            work -= passed


def _begins(setting: Setting, bursts: int, chance: random.Random) -> list[int]:
    """Return when the bursts begin: after random pauses, so that each part of a period gets as many of them.

    A pause that is always the same would lock the phase.
    """
    period = setting.period * MS
    parts = list(range(bursts))
    chance.shuffle(parts)
    begin = time.monotonic_ns() + _LEAD + 3 * period
    begins = []
    for part in parts:
        phase = int((part + chance.random()) * period / bursts)
        begin += (phase - begin) % period
        begins.append(begin)
        begin += setting.spacing
    return [*begins, begin]


def measure(setting: Setting, bursts: int, chance: random.Random, cpus: Sequence[int]) -> Measured:
    """Run so many bursts on the first of these CPUs, as many as the setting has, in several cgroups.

    A period is a multiple of a tick most times: one cgroup has the same ticks in each of its periods.
    """
    parts = [_in_one_cgroup(setting, -(-bursts // _CGROUPS), chance, cpus[: setting.cpus]) for _each in range(_CGROUPS)]
    periods, throttled = (sum(part[1][number] for part in parts) for number in (0, 1))
    rows = [row for part in parts for row in part[0]]
    quiet = [row for row in rows if row[2] <= _OTHERS]
    kept = quiet if 2 * len(quiet) >= len(rows) else rows
    return Measured(
        [row[0] / MS for row in kept],
        throttled / periods if periods else 0.0,
        len(rows) - len(quiet),
        sum(row[1] for row in rows) / len(rows) / MS,
    )


class Steady(NamedTuple):
    """Of threads that never rest: nr_periods, nr_throttled, and the part of their time that was lost."""

    periods: int
    throttled: int
    lost: float


def measure_steady(setting: Setting, seconds: float, cpus: Sequence[int]) -> Steady:
    """Run a busy thread on each of these CPUs for so long; the setting's work does not matter."""
    with Limited(setting) as cgroup:
        for cpu in cpus:
            process = os.fork()
            if not process:
                try:
                    _write(cgroup.path + "/cgroup.procs", str(os.getpid()))
                    os.sched_setaffinity(0, {cpu})
                    while True:
                        pass
                finally:
                    os._exit(1)
            cgroup.processes.append(process)
        time.sleep(_LEAD / 1e9 + 3 * setting.period / 1000)
        before, lost, begun = cgroup.counted(), cgroup.lost(), time.monotonic_ns()
        time.sleep(seconds)
        after, lasted = cgroup.counted(), time.monotonic_ns() - begun
        return Steady(after[0] - before[0], after[1] - before[1], (cgroup.lost() - lost) / lasted / len(cpus))


def _in_one_cgroup(
    setting: Setting, bursts: int, chance: random.Random, cpus: Sequence[int]
) -> tuple[list[tuple[int, int, int]], tuple[int, int]]:
    """Return of each burst the latency, its CPU time and that of all others until the next one; periods, throttled
    ones."""
    with Limited(setting) as cgroup:
        *begins, end = _begins(setting, bursts, chance)
        pipes = [cgroup.start(begins, end + 20 * MS, cpus) for _thread in range(setting.threads)]
        _sleep(begins[0] - 10 * MS)
        before = cgroup.counted()
        busy = []
        for begin in (*begins, end):
            _sleep(begin - MS)
            busy.append(_busy())
        after = cgroup.counted()
        answers = []
        for pipe in pipes:
            with os.fdopen(pipe, encoding="ascii") as answer:
                answers.append(json.load(answer))
    rows = []
    for number, (begin, parts) in enumerate(zip(begins, zip(*answers))):
        used = sum(part[1] for part in parts)
        rows.append((max(part[0] for part in parts) - begin, used, busy[number + 1] - busy[number] - used))
    return rows, (after[0] - before[0], after[1] - before[1])


def _busy() -> int:
    """Return the nanoseconds that the CPUs of this machine have run, or were kept from running by other machines."""
    with open("/proc/stat", encoding="ascii") as file:
        times = [int(field) for field in file.readline().split()[1:9]]
    return (sum(times) - times[3] - times[4]) * 10 * MS


def main(arguments: Sequence[str]) -> int:
    rows: list[dict[str, Any]] = []
    cpus = sorted(os.sched_getaffinity(0))
    for number, values in enumerate(json.loads(arguments[0])):
        chance = random.Random(int(arguments[2]) + number)
        measured = measure(Setting(*values), int(arguments[1]), chance, cpus)
        rows.append({"setting": values, **measured._asdict()})
    json.dump({"version": controller()[0], "kernel": os.uname().release, "rows": rows}, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
