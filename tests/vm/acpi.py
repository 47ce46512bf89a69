# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The firmware's table of CPUs (ACPI's MADT), in whose order Linux numbers them.

QEMU lists the threads of a core one after the other; the firmware of most real machines does not. Linux takes a table
of a higher revision from an uncompressed archive in front of the initrd.
"""

from __future__ import annotations

import struct

from . import cpio
from .shape import ADJACENT, Place, Shape

_ENABLED = 1
_LOCAL_APIC_ADDRESS = 0xFEE00000
_IO_APIC_ADDRESS = 0xFEC00000
# QEMU's is 1.
_REVISION_OF_ORIGIN = 0x100

# The kinds of entries.
_LOCAL_APIC, _IO_APIC, _INTERRUPT_OVERRIDE, _LOCAL_APIC_NMI = 0, 1, 2, 4

_ACTIVE_HIGH_LEVEL = 0xD
# The timer's ISA interrupt 0 arrives at 2; those of PCI are by level.
_OVERRIDES = ((0, 2, 0), *((irq, irq, _ACTIVE_HIGH_LEVEL) for irq in (5, 9, 10, 11)))
_ALL_CPUS = 0xFF


def initrd_prefix(shape: Shape) -> bytes:
    """Return what stands before the initrd of this machine; nothing where QEMU's own order is wanted."""
    if shape.numbering == ADJACENT:
        return b""
    return cpio.archive({"kernel/firmware/acpi/madt.aml": cpio.File(madt(shape))})


def madt(shape: Shape) -> bytes:
    """Return the table with the CPUs in the order of the shape."""
    order_of_qemu = {place: number for number, place in enumerate(shape.places())}
    entries = [
        struct.pack("<BBBBI", _LOCAL_APIC, 8, order_of_qemu[place], apic_id(shape, place), _ENABLED)
        for place in shape.numbered_places()
    ]
    entries.append(struct.pack("<BBBBII", _IO_APIC, 12, 0, 0, _IO_APIC_ADDRESS, 0))
    entries += [
        struct.pack("<BBBBIH", _INTERRUPT_OVERRIDE, 10, 0, source, target, flags)
        for source, target, flags in _OVERRIDES
    ]
    entries.append(struct.pack("<BBBHB", _LOCAL_APIC_NMI, 6, _ALL_CPUS, 0, 1))
    has_8259 = 1
    body = struct.pack("<II", _LOCAL_APIC_ADDRESS, has_8259) + b"".join(entries)
    head = struct.Struct("<4sIBB6s8sI4sI")
    names = (b"BOCHS ", b"BXPC    ", _REVISION_OF_ORIGIN, b"BXPC", 1)
    table = bytearray(head.pack(b"APIC", head.size + len(body), 3, 0, *names) + body)
    table[9] = -sum(table) & 0xFF  # the sum of all bytes is 0
    return bytes(table)


def apic_id(shape: Shape, place: Place) -> int:
    """Return the number that the hardware has for a thread: each level has the bits that its count needs."""
    number = place.socket
    for count, position in (
        (shape.dies, place.die),
        (shape.cores, place.core),
        (shape.threads, place.thread),
    ):
        number = number << (count - 1).bit_length() | position
    return number
