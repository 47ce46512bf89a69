# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._host.layers import shown
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._isolation.watch import (
    Stat,
    parse_cgroup,
    parse_run_time,
    parse_stat,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.samples import stat_text


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
