# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Callable

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._isolation import watch as watching
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._isolation.watch import TaskWatch, cpu_clock
from ansible_collections.kubenode.cpu_manager.tests.machines.samples import stat_text

CPUS = frozenset(range(os.cpu_count() or 1))
NEVER, ALWAYS = 0.0, float("inf")
SECOND = 1_000_000_000
TICK = SECOND // os.sysconf("SC_CLK_TCK")


def burn(seconds: float) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def of_this_process(watch: TaskWatch) -> float:
    """Return its share of one CPU."""
    return sum(sum(task.shares.values()) for task in watch.results() if task.pid == os.getpid())


class Threads:
    """A context: threads of this process; the first burns when it is told to."""

    def __init__(self, count: int) -> None:
        self.go, self.stop = threading.Event(), threading.Event()
        self.threads = [threading.Thread(target=self.stop.wait) for _number in range(count - 1)]
        self.threads.append(threading.Thread(target=self.run))

    def run(self) -> None:
        self.go.wait()
        while not self.stop.is_set():
            burn(0.005)

    def __enter__(self) -> Threads:
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.go.set()
        self.stop.set()
        for thread in self.threads:
            thread.join()


@pytest.mark.parametrize("first_threads", [ALWAYS, NEVER])
@pytest.mark.parametrize("looks", [0, 2])
def test_who_burns_is_found(first_threads: float, looks: int) -> None:
    """Whether all threads are read at first or only of processes that run, and also where these run later only."""
    with Threads(3) as threads:
        watch = TaskWatch(CPUS)
        watch.begin(first_threads)
        begun, before = time.monotonic(), time.process_time()
        threads.go.set()
        for _look in range(looks):
            time.sleep(0.1)
            watch.look()
        while time.process_time() < before + 0.2:
            time.sleep(0.01)
        watch.end(ALWAYS)
        used, lasted = time.process_time() - before, time.monotonic() - begun
        assert of_this_process(watch) == pytest.approx(used / lasted, abs=0.15)


def test_the_clock_of_a_process_has_all_its_threads() -> None:
    before = cpu_clock(os.getpid())
    thread = threading.Thread(target=burn, args=(0.05,))
    thread.start()
    thread.join()
    assert cpu_clock(os.getpid()) - before > 0.045 * SECOND
    with subprocess.Popen([sys.executable, "-S", "-c", "pass"]) as process:
        process.wait()
        with pytest.raises(OSError, match="Invalid argument"):
            cpu_clock(process.pid)


def test_a_thread_that_began_meanwhile_counts() -> None:
    watch = TaskWatch(CPUS)
    begun = time.monotonic()
    watch.begin(ALWAYS)
    before = time.process_time()
    with Threads(1) as threads:
        threads.go.set()
        for is_last in (False, True):
            # However busy the machine is, it has run for so long by then.
            while time.process_time() < before + 0.1:
                time.sleep(0.01)
            before = time.process_time()
            if is_last:
                watch.end(ALWAYS)
            else:
                watch.look()
    assert of_this_process(watch) * (time.monotonic() - begun) > 0.05


def test_a_process_that_began_meanwhile_counts() -> None:
    watch = TaskWatch(CPUS)
    begun = time.monotonic()
    watch.begin(NEVER)
    with subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"]) as process:
        while cpu_clock(process.pid) < 0.1 * SECOND:
            time.sleep(0.01)
        watch.end(ALWAYS)
        lasted = time.monotonic() - begun
        process.kill()
    (found,) = (task for task in watch.results() if task.pid == process.pid)
    assert sum(found.shares.values()) * lasted > 0.05


# --- files of a process, with a clock that the test moves ------------------------------------------------------------


class Proc:
    """A directory like /proc with this process, whose threads have other contents."""

    def __init__(self, root: Path) -> None:
        self.root, self.pid, self.clock, self.reads = root, os.getpid(), 0, 0
        (root / "loadavg").write_bytes(b"0 0 0 1/2 3\n")
        self.write(self.pid, b"me")

    def write(self, tid: int, name: bytes, ticks: int = 0, cpu: int = 1, start: int = 0) -> None:
        task = self.root / str(self.pid) / "task" / str(tid)
        task.mkdir(parents=True, exist_ok=True)
        (task / "stat").write_bytes(stat_text(name, user=ticks, system=0, cpu=cpu, start=start))

    def watch(self, watched: frozenset[int] = CPUS, counted: Callable[[], tuple[str, ...]] = tuple) -> TaskWatch:
        return TaskWatch(watched, "", counted(), str(self.root), lambda _pid: self.clock)

    def run(self, watch: TaskWatch, nanoseconds: int, is_last: bool = False) -> None:
        self.clock += nanoseconds
        if is_last:
            watch.end(ALWAYS)
        else:
            watch.look()


@pytest.fixture
def proc(tmp_path: Path) -> Proc:
    return Proc(tmp_path)


@pytest.fixture
def sibling() -> int:
    """Return another task that the kernel has, which stands for a second thread."""
    return os.getppid()


def test_the_only_thread_of_a_process_has_its_clock(proc: Proc) -> None:
    watch = proc.watch()
    assert not watch.exact
    assert watch.hidden
    watch.begin(ALWAYS)
    proc.write(proc.pid, b"me", cpu=5)
    proc.run(watch, SECOND, is_last=True)
    (found,) = watch.results()
    assert (found.name, found.pid, list(found.shares), found.cgroup) == ("me", proc.pid, [5], "")


def test_without_schedstat_the_ticks_of_threads_count(proc: Proc, sibling: int) -> None:
    proc.write(sibling, b"second", ticks=10)
    watch = proc.watch()
    watch.begin(ALWAYS)
    proc.write(sibling, b"second", ticks=110, cpu=5)
    proc.run(watch, 100 * TICK, is_last=True)
    (found,) = watch.results()
    assert (found.name, found.pid, found.tid, list(found.shares)) == ("second", proc.pid, sibling, [5])


def test_time_before_the_threads_were_read_is_theirs_that_run_later(proc: Proc, sibling: int) -> None:
    proc.write(sibling, b"second", ticks=10)
    watch = proc.watch()
    # Before the first look, so that the sample cannot be longer than this.
    begun = time.monotonic_ns()
    watch.begin(NEVER)
    proc.run(watch, 50 * TICK)
    proc.write(sibling, b"second", ticks=20)
    proc.run(watch, 10 * TICK, is_last=True)
    (found,) = watch.results()
    assert found.name == "second"
    assert found.shares[1] * (time.monotonic_ns() - begun) >= 60 * TICK


@pytest.mark.parametrize("looks_between", [False, True])
def test_where_no_thread_runs_later_the_time_is_where_they_were_seen(
    proc: Proc, sibling: int, looks_between: bool
) -> None:
    proc.write(sibling, b"second", cpu=0)
    watch = proc.watch()
    watch.begin(NEVER)
    proc.run(watch, SECOND, is_last=not looks_between)
    if looks_between:
        proc.run(watch, 0, is_last=True)
    found = {task.name: task for task in watch.results()}
    assert {name: (list(task.shares), task.sure) for name, task in found.items()} == {
        "me": ([1], False),
        "second": ([0], False),
    }


def test_a_thread_that_ends_keeps_its_time(proc: Proc, sibling: int) -> None:
    proc.write(sibling, b"second", ticks=10)
    watch = proc.watch()
    watch.begin(ALWAYS)
    proc.write(sibling, b"second", ticks=30)
    proc.run(watch, 20 * TICK)
    (proc.root / str(proc.pid) / "task" / str(sibling) / "stat").unlink()
    (proc.root / str(proc.pid) / "task" / str(sibling)).rmdir()
    proc.write(proc.pid, b"me", ticks=5)
    proc.run(watch, 5 * TICK, is_last=True)
    assert {task.name for task in watch.results()} == {"me", "second"}


def test_a_number_that_another_task_has_now(proc: Proc) -> None:
    watch = proc.watch()
    watch.begin(ALWAYS)
    proc.write(proc.pid, b"old", start=5)
    watch._begun_ticks = 5
    proc.run(watch, SECOND)
    # It has run longer than the first, so only its start shows that it is another.
    proc.write(proc.pid, b"new", start=6)
    proc.run(watch, 90 * SECOND)
    assert len(watch) == 0
    assert {task.name for task in watch.results()} == {"old"}


def test_a_number_that_another_task_had_before_it_ran(proc: Proc) -> None:
    watch = proc.watch()
    watch.begin(ALWAYS)
    proc.write(proc.pid, b"new", start=watch._begun_ticks + 1)
    proc.run(watch, SECOND)
    assert (len(watch), watch.results()) == (0, [])


def test_an_empty_proc(tmp_path: Path) -> None:
    watch = TaskWatch(CPUS, proc=str(tmp_path / "nothing"))
    watch.begin(ALWAYS)
    watch.end(ALWAYS)
    assert (watch.results(), watch.hidden) == ([], True)


def test_what_its_cgroup_counts_is_not_looked_at(proc: Proc, monkeypatch: pytest.MonkeyPatch) -> None:
    (proc.root / str(proc.pid) / "cgroup").write_bytes(b"0::/kubepods/pod1/inner\n")
    monkeypatch.setattr(os, "getpid", lambda: 0)
    watch = proc.watch(counted=lambda: ("kubepods/pod1",))
    watch.begin(NEVER)
    proc.run(watch, SECOND)
    assert len(watch) == 1
    proc.run(watch, SECOND, is_last=True)
    assert watch.results() == []


def test_who_watches_is_looked_at_in_any_cgroup(proc: Proc) -> None:
    (proc.root / str(proc.pid) / "cgroup").write_bytes(b"0::/kubepods/pod1\n")
    watch = proc.watch(counted=lambda: ("kubepods/pod1",))
    watch.begin(NEVER)
    proc.run(watch, SECOND, is_last=True)
    assert [task.cgroup for task in watch.results()] == ["kubepods/pod1"]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("until", [ALWAYS, NEVER])
def test_who_cannot_run_there_is_looked_at_in_the_end(proc: Proc, sibling: int, threads: int, until: float) -> None:
    if threads > 1:
        proc.write(sibling, b"second")
    watch = proc.watch(frozenset({max(CPUS) + 100}))
    watch.begin(ALWAYS)
    proc.run(watch, SECOND)
    proc.write(proc.pid, b"me", ticks=100)
    proc.clock += SECOND
    watch.end(until)
    found = watch.results()
    assert [task.name for task in found] == ([] if until == NEVER else ["me"])
    assert watch.truncated is (until == NEVER)
    if found and threads == 1:
        # In both looks.
        (process,) = (process for process in watch._rest.values() if process.pid == proc.pid)
        assert process.first is not None
        assert sum(found[0].shares.values()) * (process.last - process.first) == pytest.approx(2 * SECOND, rel=0.3)


def test_the_threads_of_what_hardly_ran_are_not_read(proc: Proc, sibling: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large machine has thousands of them, and their processes' time is where some of them are."""
    proc.write(sibling, b"second", ticks=10)
    now = [0]
    monkeypatch.setattr(time, "monotonic_ns", lambda: now[0])
    watch = proc.watch()
    watch.begin(NEVER)
    monkeypatch.setattr(watch, "_run_time", None)
    for is_last in (False, True):
        now[0] += SECOND
        proc.run(watch, SECOND // 1000, is_last)
    assert sum(sum(task.shares.values()) for task in watch.results()) == pytest.approx(0.001)


def test_what_hardly_ran_waits(proc: Proc) -> None:
    watch = proc.watch()
    watch.begin(ALWAYS)
    (proc.root / str(proc.pid) / "task" / str(proc.pid) / "stat").unlink()
    proc.run(watch, watching._LEAST - 1)
    assert len(watch) == 1
