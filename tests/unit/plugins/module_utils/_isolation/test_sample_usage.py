# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import time
from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._isolation.sample import PerCpu, Totals
from ansible_collections.kubenode.cpu_manager.tests.machines.nested import nested

SECOND = 1_000_000_000


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a clock that the test moves."""
    now = [0]
    monkeypatch.setattr(time, "monotonic_ns", lambda: now[0])
    return now


def write(root: Path, path: str, *numbers: int) -> None:
    directory = root / path
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "cpuacct.usage_percpu").write_text(" ".join(map(str, numbers)) + " \n")


def test_what_each_cgroup_used_without_those_below(tmp_path: Path, clock: list[int]) -> None:
    for path in ("", "pods", "pods/a", "pods/b", "idle", "idle/in"):
        write(tmp_path, path, 0, 0)
    per_cpu = PerCpu(str(tmp_path), (0, 2))
    assert per_cpu.begin()
    clock[0] = 10 * SECOND
    write(tmp_path, "pods/a", SECOND, 0)
    write(tmp_path, "pods/b", 0, 2 * SECOND)
    write(tmp_path, "pods", SECOND, 5 * SECOND)
    write(tmp_path, "", 4 * SECOND, 5 * SECOND)
    total, cgroups = per_cpu.end()
    assert total == {0: 0.4, 2: 0.5}
    shares = {cgroup.path: cgroup.shares for cgroup in cgroups}
    assert shares["pods/a"] == {0: 0.1}
    assert shares["pods/b"] == {2: 0.2}
    assert shares["pods"] == pytest.approx({2: 0.3})
    assert shares[""] == pytest.approx({0: 0.3})
    assert set(shares) == {"", "pods", "pods/a", "pods/b"}


def test_what_is_counted_between_two_readings_is_nobodys(tmp_path: Path, clock: list[int]) -> None:
    for path in ("", "pods", "pods/a"):
        write(tmp_path, path, 0)
    per_cpu = PerCpu(str(tmp_path), (0,))
    per_cpu.begin()
    clock[0] = SECOND
    write(tmp_path, "pods/a", SECOND // 2)
    write(tmp_path, "pods", SECOND // 2 + SECOND // 100)
    write(tmp_path, "", SECOND // 2 + SECOND // 100)
    shares = {cgroup.path: cgroup.shares for cgroup in per_cpu.end()[1]}
    assert (shares["pods"], shares["pods/a"]) == ({}, {0: 0.5})


def test_cgroups_that_come_and_go(tmp_path: Path, clock: list[int]) -> None:
    for path in ("", "pods", "pods/gone"):
        write(tmp_path, path, 0)
    per_cpu = PerCpu(str(tmp_path), (0,))
    per_cpu.begin()
    clock[0] = SECOND
    (tmp_path / "pods/gone/cpuacct.usage_percpu").unlink()
    write(tmp_path, "pods/new", SECOND // 4)
    write(tmp_path, "pods", SECOND // 2)
    write(tmp_path, "", SECOND // 2)
    shares = {cgroup.path: cgroup.shares for cgroup in per_cpu.end()[1]}
    assert shares["pods"] == {0: 0.5}
    assert set(shares) == {"", "pods"}
    assert per_cpu.ended == ["pods/gone"]


@pytest.mark.parametrize("text", ["", "1", "1 2 3", "a b", "-1 2"])
def test_columns_that_are_not_the_cpus(tmp_path: Path, text: str) -> None:
    write(tmp_path, "")
    (tmp_path / "cpuacct.usage_percpu").write_text(text)
    assert not PerCpu(str(tmp_path), (0, 1)).begin()


@pytest.mark.parametrize("leaf", ["a.service", "b.scope", "ab" * 32])
def test_what_is_within_a_unit_or_a_container_is_its_time(tmp_path: Path, clock: list[int], leaf: str) -> None:
    for path in ("", leaf, leaf + "/inner"):
        write(tmp_path, path, 0)
    (tmp_path / "no-cgroup").mkdir()
    per_cpu = PerCpu(str(tmp_path), (0,))
    assert per_cpu.begin()
    clock[0] = SECOND
    for path in ("", leaf, leaf + "/inner"):
        write(tmp_path, path, SECOND // 2)
    total, cgroups = per_cpu.end()
    assert total == {0: 0.5}
    assert {cgroup.path: cgroup.shares for cgroup in cgroups if cgroup.shares} == {leaf: {0: 0.5}}


def test_columns_that_change(tmp_path: Path, clock: list[int]) -> None:
    for path in ("", "pods"):
        write(tmp_path, path, 0)
    per_cpu = PerCpu(str(tmp_path), (0,))
    assert per_cpu.begin()
    clock[0] = SECOND
    write(tmp_path, "pods", SECOND, SECOND)
    write(tmp_path, "", SECOND // 2)
    total, cgroups = per_cpu.end()
    assert total == {0: 0.5}
    assert [cgroup.path for cgroup in cgroups] == [""]


def test_no_link_is_followed(tmp_path: Path) -> None:
    write(tmp_path / "here", "", 0)
    write(tmp_path / "there", "", 0)
    (tmp_path / "here/link").symlink_to(tmp_path / "there")
    per_cpu = PerCpu(str(tmp_path / "here"), (0,))
    per_cpu.begin()
    assert len(per_cpu) == 1


def test_what_is_below_a_whole_one_is_its_time(tmp_path: Path, clock: list[int]) -> None:
    for path in ("", "pods", "pods/a", "pods/a/in"):
        write(tmp_path, path, 0)
    per_cpu = PerCpu(str(tmp_path), (0,), {"pods/a"})
    assert per_cpu.begin()
    assert [path for path in ("pods", "pods/a", "pods/a/in") if path in per_cpu] == ["pods", "pods/a"]
    clock[0] = SECOND
    for path in ("", "pods", "pods/a", "pods/a/in"):
        write(tmp_path, path, SECOND // 2)
    assert {cgroup.path: cgroup.shares for cgroup in per_cpu.end()[1] if cgroup.shares} == {"pods/a": {0: 0.5}}


def test_no_such_directory(tmp_path: Path) -> None:
    assert not PerCpu(str(tmp_path / "missing"), (0,)).begin()


def test_a_file_that_the_kernel_gives_in_parts(tmp_path: Path, clock: list[int]) -> None:
    """That of a machine with many CPUs."""
    numbers = [10**15 + cpu for cpu in range(600)]
    write(tmp_path, "", *numbers)
    per_cpu = PerCpu(str(tmp_path), range(600))
    assert per_cpu.begin()
    clock[0] = SECOND
    write(tmp_path, "", *numbers[:-1], numbers[-1] + SECOND)
    assert per_cpu.end()[0] == {599: 1.0}


def test_totals_of_v2(tmp_path: Path, clock: list[int]) -> None:
    for path in ("a", "b", "broken"):
        (tmp_path / path).mkdir()
        (tmp_path / path / "cpu.stat").write_text("usage_usec 1000000\nuser_usec 5\n")
    (tmp_path / "broken/cpu.stat").write_text("usage_usec many\n")
    totals = Totals(str(tmp_path), ("a", "b", "broken", "missing"))
    clock[0] = 2 * SECOND
    (tmp_path / "a/cpu.stat").write_text("usage_usec 4000000\n")
    (tmp_path / "b/cpu.stat").unlink()
    assert totals.end() == {"a": 1.5}
    assert totals.ended == ["b"]


def test_cgroups_nested_deeply_count_as_those_above(tmp_path: Path, clock: list[int]) -> None:
    write(tmp_path, "", 0)
    per_cpu = PerCpu(str(tmp_path), (0,))
    with nested(tmp_path, file="cpuacct.usage_percpu", content="0 \n"):
        assert per_cpu.begin()
        assert 10 < len(per_cpu) < 200
        clock[0] = SECOND
        for level in (0, 1, 2):
            write(tmp_path, "d/" * level, SECOND)
        total, cgroups = per_cpu.end()
    assert total == {0: 1.0}
    assert {cgroup.path: cgroup.shares for cgroup in cgroups}["d/d"] == {0: 1.0}
