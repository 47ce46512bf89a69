# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._isolation.sample import (
    Ticks,
    counted,
    parse_schedstat,
    parse_ticks,
)
from ansible_collections.kubenode.cpu_manager.tests.support.numbers import examples

HEADER = b"            CPU0       CPU2       \n"
BEFORE = (
    HEADER
    + b" 24:          1          0  IO-APIC   5-edge      ACPI:Ged\n"
    + b" 25:          7          7  PCI-MSI 524288-edge      nvme0q0, nvme0q1\n"
    + b"LOC:       1000       2000   Local timer interrupts\n"
    + b"ERR:          0\n"
)


def test_counts_are_by_cpu_and_name() -> None:
    after = (
        HEADER
        + b" 24:          1          0  IO-APIC   5-edge      ACPI:Ged\n"
        + b" 25:          7         17  PCI-MSI 524288-edge      nvme0q0, nvme0q1\n"
        + b" 26:          0          3  PCI-MSI 524289-edge\n"
        + b"LOC:       1004       2005   Local timer interrupts\n"
        + b"ERR:          2\n"
    )
    found = counted(BEFORE, after)
    assert found.counts == {
        0: {"LOC (Local timer interrupts)": 4},
        2: {"25 nvme0q0, nvme0q1": 10, "26 PCI-MSI 524289-edge": 3, "LOC (Local timer interrupts)": 5},
    }
    assert found.unread == ()


def test_softirqs() -> None:
    header = b"                    CPU0       CPU1\n"
    before, after = (header + b"      NET_RX:     %d          5\n" % count for count in (354070, 354170))
    assert counted(before, after).counts == {0: {"NET_RX": 100}}


@pytest.mark.parametrize(
    ("before", "after", "unread"),
    [
        (b"", b"", ("the columns",)),
        (BEFORE, b"", ("the columns",)),
        (BEFORE, BEFORE.replace(b"CPU2", b"CPU3"), ("the columns",)),
        (BEFORE, BEFORE.replace(b"CPU2", b"XPU2"), ("the columns",)),
        (BEFORE, HEADER + b"LOC:       1000       20x0   Local timer interrupts\n", ("LOC",)),
        (BEFORE, HEADER + b"no colon 1 2\n", ()),
    ],
)
def test_what_cannot_be_read_is_said(before: bytes, after: bytes, unread: Sequence[str]) -> None:
    found = counted(before, after)
    assert (found.counts, found.unread) == ({}, unread)


def test_a_line_whose_device_is_another_begins_anew() -> None:
    after = HEADER + b" 25:          2          0  PCI-MSI 524288-edge      eth0\n"
    assert counted(BEFORE, after).counts == {0: {"25 eth0": 2}}


@given(st.integers(0, 299), st.integers(0, 399), st.integers(1, 2**31))
@settings(max_examples=examples(10))
def test_hundreds_of_columns_and_rows(column: int, row: int, more: int) -> None:
    header = b" ".join(b"CPU%d" % cpu for cpu in range(300)) + b"\n"
    rows = [[number] * 300 for number in range(400)]
    before = _table(header, rows)
    rows[row][column] += more
    assert counted(before, _table(header, rows)).counts == {column: {"%d dev%d" % (row, row): more}}


def _table(header: bytes, rows: Sequence[Sequence[int]]) -> bytes:
    return header + b"".join(
        b"%3d: %s  chip 1-edge  dev%d\n" % (number, _text(row), number) for number, row in enumerate(rows)
    )


def _text(row: Sequence[int]) -> bytes:
    return b" ".join(b"%10d" % value for value in row)


@given(st.binary(max_size=300), st.binary(max_size=300))
def test_any_bytes_are_taken(before: bytes, after: bytes) -> None:
    counted(before, after)
    counted(HEADER + before, HEADER + after)
    parse_ticks(b"cpu0 " + before)
    parse_schedstat(b"version 15\ncpu0 " + after)


def test_ticks() -> None:
    content = (
        b"cpu  9 9 9 9\ncpu0 1 2 3 4 5 6 7 8 0 0\ncpu1 1 2 x 4 5 6 7 8\ncpu2 1 2\nintr 5 5\ncpu3 1 1 1 1 1 1 1 1\n"
    )
    assert parse_ticks(content) == {0: Ticks(1, 2, 3, 4, 5, 6, 7, 8)}


def test_time_that_went_back_is_none() -> None:
    assert Ticks(1, 1, 1, 5, 9, 0, 0, 0).since(Ticks(0, 1, 1, 9, 9, 0, 0, 0)) == Ticks(1, 0, 0, 0, 0, 0, 0, 0)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"version 15\ntimestamp 1\ncpu0 0 0 0 0 0 0 123 4 5\ndomain0 3 1 2\ncpu1 0 0 0 0 0 0 7 4 5\n", {0: 123, 1: 7}),
        (b"version 17\ncpu0 0 0 0 0 0 0 123 4 5\n", {0: 123}),
        (b"version 99\ncpu0 0 0 0 0 0 0 123 4 5\n", {}),
        (b"", {}),
        (b"version 15\ncpu0 1 2\n", {}),
    ],
)
def test_schedstat(content: bytes, expected: Mapping[int, int]) -> None:
    assert parse_schedstat(content) == expected
