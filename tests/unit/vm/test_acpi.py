# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of tests/vm/acpi.py."""

from __future__ import annotations

import struct

import pytest

from ansible_collections.kubenode.cpu_manager.tests.vm import acpi
from ansible_collections.kubenode.cpu_manager.tests.vm.shape import Place, Shape, find_shape, read_shapes

HEAD = 44


def local_apics(table: bytes) -> list[tuple[int, int]]:
    """Return (QEMU's number, APIC id) of each CPU, in the table's order."""
    found, at = [], HEAD
    while at < len(table):
        kind, length = table[at], table[at + 1]
        if kind == 0:
            found.append((table[at + 2], table[at + 3]))
        at += length
    assert at == len(table)
    return found


@pytest.mark.parametrize("name", read_shapes())
def test_a_table_is_whole(name: str) -> None:
    table = acpi.madt(find_shape(name))
    assert table[:4] == b"APIC"
    assert struct.unpack_from("<I", table, 4) == (len(table),)
    assert sum(table) % 256 == 0
    assert len(set(local_apics(table))) == find_shape(name).cpus


def test_the_order_of_a_dell() -> None:
    apics = local_apics(acpi.madt(find_shape("xeon-2s12c2t")))
    # The first thread of each core, sockets in turn: a socket has 12 cores, which need 4 bits, and a thread 1.
    assert apics[:4] == [(0, 0), (24, 32), (2, 2), (26, 34)]
    assert apics[24:26] == [(1, 1), (25, 33)]


def test_each_level_has_the_bits_that_it_needs() -> None:
    shape = Shape("", cores=3, numa_nodes=(), sockets=2, dies=2, threads=2)
    assert acpi.apic_id(shape, Place(socket=1, die=1, core=2, thread=1)) == 0b1_1_10_1
    assert acpi.apic_id(Shape("", cores=1, numa_nodes=(), sockets=3), Place(2, 0, 0, 0)) == 2


def test_the_order_of_qemu_needs_no_table() -> None:
    assert acpi.initrd_prefix(find_shape("hotplug-1s8c")) == b""
    assert acpi.initrd_prefix(find_shape("small-2s2c2t"))[:6] == b"070701"
