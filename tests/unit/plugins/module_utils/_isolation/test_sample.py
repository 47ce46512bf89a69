# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Samples of the machine that the tests run on."""

from __future__ import annotations

import os
import time
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import OverlaidTree, Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._isolation import sample as sampling
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._isolation.sample import parse_ticks, take
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._isolation.verdict import CGROUP, Runner, accounts
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._isolation.watch import TaskWatch
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet

ALLOWED = os.sched_getaffinity(0)


def take_here(seconds: float = 0.4, exclusive: CPUSet | None = None, **files: bytes | None) -> sampling.Sample:
    contents = {"/proc/" + name: content for name, content in files.items()}
    return take(OverlaidTree(Tree(), contents), seconds, exclusive or CPUSet())


@pytest.mark.parametrize("with_v1", [True, False])
def test_what_is_busy_is_accounted_for(monkeypatch: pytest.MonkeyPatch, with_v1: bool) -> None:
    if not with_v1:
        monkeypatch.setattr(sampling, "mounted", lambda _tree, _controller: None)
    seen = take_here()
    assert seen.elapsed == pytest.approx(0.4, abs=0.3)
    assert seen.watched == seen.online
    for cpu, account in accounts(seen, lambda path: Runner(CGROUP, path), {}).items():
        parts = sum(part.share for part in account.parts.values())
        assert -0.01 <= parts <= 1.3, (cpu, account)
        assert 0 <= account.idle <= 1
    assert any(seen.interrupts.counts.values())
    assert seen.observer.pid == os.getpid()
    assert seen.observer.tasks > 0


def test_the_observer_leaves_the_exclusive_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    if len(ALLOWED) < 2:
        pytest.skip("this machine has one CPU")
    meanwhile = []
    pause = time.sleep

    def look_and_pause(seconds: float) -> None:
        meanwhile.append(os.sched_getaffinity(0))
        pause(seconds)

    monkeypatch.setattr(time, "sleep", look_and_pause)
    last = max(ALLOWED)
    seen = take_here(0.1, CPUSet((last,)))
    assert all(allowed == ALLOWED - {last} for allowed in meanwhile)
    assert meanwhile
    assert (set(seen.observer.cpus), os.sched_getaffinity(0)) == (ALLOWED - {last}, ALLOWED)
    assert not any(task.pid == os.getpid() and last in task.shares for task in seen.tasks)


def test_it_stays_where_all_cpus_are_exclusive() -> None:
    seen = take_here(0.1, CPUSet(ALLOWED))
    assert (seen.observer.cpus, os.sched_getaffinity(0)) == (CPUSet(), ALLOWED)


@pytest.mark.parametrize(
    ("files", "word"),
    [
        ({"interrupts": None}, "there is no /proc/interrupts"),
        ({"interrupts": b"garbage\n"}, "/proc/interrupts: cannot be read: the columns"),
        ({"softirqs": b""}, "there is no /proc/softirqs"),
        ({"stat": b"cpu 1 2 3\n"}, "/proc/stat has nothing of CPUs"),
    ],
)
def test_what_cannot_be_read_is_said(files: dict[str, Any], word: str) -> None:
    assert any(word in problem for problem in take_here(0.05, **files).problems)


@pytest.mark.parametrize("schedstat", [None, b"version 99\n"])
def test_busy_time_in_ticks_is_said(monkeypatch: pytest.MonkeyPatch, schedstat: bytes | None) -> None:
    word = "how busy the CPUs were is counted in ticks of 1/100 s"
    with monkeypatch.context() as patch:
        patch.setattr(sampling, "mounted", lambda _tree, _controller: None)
        assert any(word in problem for problem in take_here(0.05, schedstat=schedstat).problems)
        usual = b"version 15\ncpu0 0 0 0 0 0 0 5 0 0\n"
        assert not any(word in problem for problem in take_here(0.05, schedstat=usual).problems)
    if take_here(0.05).cgroups is not None:
        # Of v1, cgroups count it in nanoseconds.
        assert not any(word in problem for problem in take_here(0.05, schedstat=schedstat).problems)


def test_a_clock_that_jumps_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """As that of a virtual machine that stood still; nothing is out of range for it."""
    clock, pause, jumps = time.monotonic_ns, time.sleep, [0]

    def jump(seconds: float) -> None:
        pause(seconds)
        jumps[0] = 30 * 10**9

    monkeypatch.setattr(time, "monotonic_ns", lambda: clock() + jumps[0])
    monkeypatch.setattr(time, "sleep", jump)
    seen = take_here(0.1)
    assert seen.elapsed > 30
    assert [problem for problem in seen.problems if problem.startswith("the sample took 30.")]
    for account in accounts(seen, lambda path: Runner(CGROUP, path), {}).values():
        assert sum(part.share for part in account.parts.values()) < 0.5


def test_tasks_that_cannot_be_seen_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    class Blind(TaskWatch):
        def begin(self, until: float) -> None:
            super().begin(until)
            self.hidden, self.exact, self.truncated = True, False, True

    monkeypatch.setattr(sampling, "TaskWatch", Blind)
    text = "\n".join(take_here(0.05).problems)
    for words in ("mounted with hidepid", "in ticks of 1/100 s", "there are too many processes"):
        assert words in text


def test_nothing_is_wrong_here() -> None:
    if os.geteuid() != 0:
        pytest.skip("who is not root may not see all tasks")
    assert take_here(0.05).problems == []


def test_busy_by_ticks_is_what_is_sure() -> None:
    before = parse_ticks(b"cpu0 0 0 0 0 0 0 0 0\n")
    first = sampling._Readings(0, before, {0: 0}, b"", b"")
    last = sampling._Readings(10**9, before, {0: 5 * 10**8}, b"", b"")
    ticks = parse_ticks(b"cpu0 30 0 10 50 0 0 0 0\n")[0]
    # By /proc/schedstat half of the time, by ticks 40 %.
    assert sampling._busy(ticks, 0.01, first, last, 0) == 0.5
    # A task that has left the CPU had run for a second before the first reading, too.
    assert sampling._busy(ticks, 0.01, first, last._replace(schedstat={0: 15 * 10**8}), 0) == 0.5
    ticks = parse_ticks(b"cpu0 30 0 10 50 0 0 10 0\n")[0]
    bare = first._replace(schedstat={})
    assert sampling._busy(ticks, 0.01, bare, bare, 0) == pytest.approx(0.4)
    # Nor more than what is not idle.
    assert sampling._busy(ticks._replace(idle=80), 0.01, bare, bare, 0) == pytest.approx(0.1)
