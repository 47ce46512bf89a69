# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.host.names import shown
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.isolation import tasks
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.isolation.tasks import (
    Stat,
    Watch,
    parse_cgroup,
    parse_run_time,
    parse_stat,
)

CPUS = frozenset(range(os.cpu_count() or 1))


def stat_text(name: bytes, flags: int = 0, user: int = 3, system: int = 4, start: int = 77, cpu: int = 1) -> bytes:
    rest = ["0"] * 50
    for place, value in ((6, flags), (11, user), (12, system), (19, start), (36, cpu)):
        rest[place] = str(value)
    rest[0] = "S"
    return b"12 (" + name + b") " + " ".join(rest).encode("ascii") + b"\n"


@given(st.binary(max_size=64))
def test_a_name_may_be_anything(name: bytes) -> None:
    assert parse_stat(stat_text(name)) == Stat(name, False, 7, 77, 1)
    assert shown(name).isprintable()


@pytest.mark.parametrize("name", [b") S 1 2 3", b"a b", b"((", b"))) R 9", b"<b>\n", b"\x1b[31m"])
def test_a_hostile_name(name: bytes) -> None:
    found = parse_stat(stat_text(name, flags=0x00208040))
    assert found == Stat(name, True, 7, 77, 1)
    assert "\n" not in shown(name)
    assert "\x1b" not in shown(name)


@pytest.mark.parametrize("content", [b"", b"12", b"12 (a) S", b"12 (a) " + b"x " * 50, b") (" + b" 1" * 50])
def test_what_is_no_stat(content: bytes) -> None:
    assert parse_stat(content) is None


@pytest.mark.parametrize(("content", "expected"), [(b"12 3 4\n", 12), (b"0 0 0", 0), (b"", None), (b"-1 2 3", None)])
def test_run_time(content: bytes, expected: int | None) -> None:
    assert parse_run_time(content) == expected


@pytest.mark.parametrize(
    ("content", "controller", "expected"),
    [
        (b"3:cpuset:/a\n2:cpu,cpuacct:/b:c\n0::/d\n", "cpuacct", "b:c"),
        (b"3:cpuset:/a\n2:cpu,cpuacct:/b\n0::/d\n", "", "d"),
        (b"0::/\n", "", ""),
        (b"", "", ""),
        (b"garbage", "cpuacct", ""),
    ],
)
def test_the_cgroup_of_a_task(content: bytes, controller: str, expected: str) -> None:
    assert parse_cgroup(content, controller) == expected


def burn(seconds: float) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def of_this_process(watch: Watch) -> float:
    """Its share of one CPU."""
    return sum(sum(task.shares.values()) for task in watch.results() if task.pid == os.getpid())


@pytest.mark.parametrize("descriptors", [100_000, 0])
def test_who_burns_is_found(monkeypatch: pytest.MonkeyPatch, descriptors: int) -> None:
    """With a descriptor that is kept for each task, and without."""
    monkeypatch.setattr(tasks, "_most_descriptors", lambda: descriptors)
    watch = Watch(CPUS)
    watch.begin(0)
    begun, before = time.monotonic(), time.process_time()
    burn(0.2)
    watch.look(last=True)
    used, lasted = time.process_time() - before, time.monotonic() - begun
    assert of_this_process(watch) == pytest.approx(used / lasted, abs=0.15)


def test_a_thread_that_began_meanwhile_counts() -> None:
    watch = Watch(CPUS)
    watch.begin(0)
    begun, before = time.monotonic(), time.process_time()
    is_seen = threading.Event()

    def burn_until_seen() -> None:
        while not is_seen.is_set():
            burn(0.01)

    thread = threading.Thread(target=burn_until_seen)
    thread.start()
    for is_last in (False, True):
        # However busy the machine is, it has run for so long by then.
        while time.process_time() < before + 0.1:
            time.sleep(0.01)
        before = time.process_time()
        watch.look(last=is_last)
    is_seen.set()
    thread.join()
    share = of_this_process(watch)
    assert share * (time.monotonic() - begun) > 0.05


def test_without_schedstat_ticks_count(tmp_path: Path) -> None:
    """As on a kernel that has none; the files are those of this process, with other contents."""
    proc, own = tmp_path, os.getpid()
    task = proc / str(own) / "task" / str(own)
    task.mkdir(parents=True)
    (proc / "loadavg").write_bytes(b"0 0 0 1/2 3\n")
    watch = Watch(CPUS, proc=str(proc))
    assert not watch.exact
    assert watch.hidden
    (task / "stat").write_bytes(stat_text(b"me", user=10))
    watch.begin(0)
    (task / "stat").write_bytes(stat_text(b"me", user=110, cpu=5))
    watch.look(last=True)
    (found,) = watch.results()
    assert (found.name, found.pid, list(found.shares), found.cgroup) == ("me", own, [5], "")


def test_a_number_that_another_task_has_now(tmp_path: Path) -> None:
    own = os.getpid()
    task = tmp_path / str(own) / "task" / str(own)
    task.mkdir(parents=True)
    watch = Watch(CPUS, proc=str(tmp_path))
    (task / "stat").write_bytes(stat_text(b"old", user=10, start=5))
    watch.begin(0)
    (task / "stat").write_bytes(stat_text(b"old", user=20, start=5))
    watch.look()
    # It has run longer than the first, so only its start shows that it is another.
    (task / "stat").write_bytes(stat_text(b"new", user=90000, start=6))
    watch.look()
    assert len(watch) == 0
    found = {task.name: task for task in watch.results()}
    assert set(found) == {"old"}


def test_an_empty_proc(tmp_path: Path) -> None:
    watch = Watch(CPUS, proc=str(tmp_path / "nothing"))
    watch.begin(10)
    watch.look(last=True)
    assert (watch.results(), watch.hidden) == ([], True)


def test_tasks_that_cannot_run_there_are_left_out_when_there_are_too_many() -> None:
    watch = Watch(frozenset({max(CPUS) + 100}))
    watch.begin(3)
    assert len(watch) <= 3
    assert watch.truncated
    watch.results()
