# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read a topology from /proc/cpuinfo, for machines of which nothing else is known.

It tells online CPUs only, and neither NUMA nodes nor caches. Of the architectures x86, ia64 and s390 tell sockets
and cores; where the text does not, there is no socket and each CPU is a core by itself.
"""

from __future__ import annotations

from .._base.errors import InputError
from .._base.quantity import counted
from .._base.tree import is_number
from ..cpuset import MAX_CPUS, CPUSet
from .model import Topology, numbered, sets_by

HINT = "give the whole content of /proc/cpuinfo"

SOCKET = ("drawer id", "book id", "physical id")
CORE = "core id"
CORES_OF_SOCKET = "cpu cores"
CPUS_OF_SOCKET = "siblings"
FIELDS = frozenset(SOCKET + (CORE, CORES_OF_SOCKET, CPUS_OF_SOCKET))


def read_cpuinfo(text: str) -> Topology:
    """Return the topology in the content of /proc/cpuinfo.

    Raises InputError, which names the line or CPU, for a text that is no cpuinfo or contradicts itself.
    """
    rows = _rows(text)
    for field in (SOCKET[-1], CORE):
        _check_complete(rows, field)
    sockets = sets_by(rows, lambda cpu: _socket(rows[cpu]))
    return Topology(
        online=CPUSet(rows),
        cores=[core for cpus in sockets.values() for core in _cores_of_socket(cpus, rows)],
        sockets=numbered((cpus, rows[cpus.first()][SOCKET[-1]]) for cpus in sockets.values()),
    )


def _rows(text: str) -> dict[int, dict[str, int]]:
    """Return {CPU: {field: number}} of the fields that say where a CPU is."""
    rows: dict[int, dict[str, int]] = {}
    row: dict[str, int] = {}
    is_s390 = False
    for line_number, line in enumerate(text.splitlines(), 1):
        field, colon, value = line.partition(":")
        field = field.strip()
        if not colon:
            continue
        if field == "processor":
            row = _new_row(rows, value, line_number)
        elif field.startswith("processor "):
            # s390 lists its processors first ("processor 3: version = 00, ..."), then tells of each "cpu number".
            is_s390 = True
            _new_row(rows, field[len("processor ") :], line_number)
        elif field == "cpu number" and is_s390:
            cpu = _number(field, value, line_number)
            if cpu not in rows:
                raise _error(line_number, "CPU %d is not among the processors above" % cpu)
            row = rows[cpu]
        elif field in FIELDS:
            row[field] = _number(field, value, line_number)
    if not rows:
        raise InputError("no line 'processor : NUMBER' found", "cpuinfo", HINT)
    return rows


def _new_row(rows: dict[int, dict[str, int]], value: str, line_number: int) -> dict[str, int]:
    cpu = _number("processor", value, line_number)
    if cpu >= MAX_CPUS:
        raise _error(line_number, "processor %d is out of range: CPU ids go from 0 to %d" % (cpu, MAX_CPUS - 1))
    if cpu in rows:
        raise _error(line_number, "processor %d comes twice" % cpu)
    rows[cpu] = {}
    return rows[cpu]


def _number(field: str, value: str, line_number: int) -> int:
    value = value.strip()
    if not (is_number(value) and len(value) < 10):
        raise _error(line_number, "%s is a number, not %r" % (field, value))
    return int(value)


def _check_complete(rows: dict[int, dict[str, int]], field: str) -> None:
    """Check that all CPUs have a field, or none has it: one that only some have is a damaged text."""
    without = [cpu for cpu, row in rows.items() if field not in row]
    if without and len(without) < len(rows):
        raise InputError("processor %d has no %r, unlike others" % (without[0], field), "cpuinfo", HINT)


def _socket(row: dict[str, int]) -> object:
    return tuple(row.get(field) for field in SOCKET) if SOCKET[-1] in row else None


def _cores_of_socket(cpus: CPUSet, rows: dict[int, dict[str, int]]) -> list[CPUSet]:
    """Return the cores of one socket; none where the text tells none, so that each CPU is one by itself.

    Core ids alone are not to be trusted: some machines give an id twice in a socket, and a container may see a part
    of its host's CPUs, with new numbers. The socket's counts of CPUs and cores show it.
    """
    cores = sets_by(cpus, lambda cpu: rows[cpu].get(CORE))
    row = rows[cpus.first()]
    cpu_count, core_count = row.get(CPUS_OF_SOCKET), row.get(CORES_OF_SOCKET)
    if cpu_count not in (None, len(cpus)):
        raise _contradiction(cpus, "has %s, and %r says %d" % (counted(len(cpus), "CPU"), CPUS_OF_SOCKET, cpu_count))
    if cpu_count is not None and cpu_count == core_count:
        return []  # as many cores as CPUs
    if cores and core_count not in (None, len(cores)):
        raise _contradiction(
            cpus, "has %d different core ids, and %r says %d" % (len(cores), CORES_OF_SOCKET, core_count)
        )
    return list(cores.values())


def _contradiction(cpus: CPUSet, what: str) -> InputError:
    return InputError(
        "the socket of CPUs %s %s" % (cpus, what),
        "cpuinfo",
        "this text does not give the cores, read the machine's /sys",
    )


def _error(line_number: int, what: str) -> InputError:
    return InputError(what, "cpuinfo, line %d" % line_number)
