# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read a topology from the output of `lscpu -p`, described in lscpu(1): the header line names the columns.

It tells neither dies nor NUMA nodes without CPUs nor distances; offline CPUs with `lscpu --all -p=...,ONLINE` only.
"""

from __future__ import annotations

from typing import NamedTuple

from .._base.errors import InputError
from .._base.tree import is_number
from ..cpuset import MAX_CPUS, CPUSet
from .model import Group, Topology, numbered, sets_by

HINT = "give the whole output of 'lscpu -p' or 'lscpu -a -p=CPU,CORE,SOCKET,NODE,CACHE,ONLINE'"

REQUIRED = ("cpu", "core", "socket", "node")
# What a core is in: it cannot be in two, so cores of the same number in different ones are different cores.
PLACES = ("drawer", "book", "socket", "node")
NUMBERS = REQUIRED + ("drawer", "book", "l3")
CACHE_NAMES = frozenset(("l1", "l1d", "l1i", "l2", "l3", "l4"))


class _Row(NamedTuple):
    """One CPU: the numbers of NUMBERS that its line gives, and Y or N for online or not, "" where it does not tell."""

    numbers: dict[str, int]
    online: str


def read_lscpu(text: str) -> Topology:
    """Return the topology in an output of `lscpu -p`. Raises InputError, which names the line, for a bad one."""
    reader = _LscpuReader(text)
    rows = reader.rows()
    online = {cpu: row.numbers for cpu, row in rows.items() if row.online != "N"}
    if not online:
        raise InputError("no online CPU found", "lscpu", HINT)
    # An lscpu that is told nothing of NUMA nodes leaves the column empty.
    has_nodes = any("node" in numbers for numbers in online.values())
    cores = sets_by(online, lambda cpu: _place(online[cpu], "core", PLACES))
    caches = sets_by(online, lambda cpu: _place(online[cpu], "l3", ("socket",)))
    return Topology(
        online=CPUSet(online),
        cores=cores.values(),
        sockets=_groups(online, "socket"),
        numa_nodes=_groups(online, "node") if has_nodes else None,
        caches=numbered((cpus, place[0]) for place, cpus in caches.items()),
        offline=CPUSet(rows) - CPUSet(online),
        problems=reader.problems,
    )


def _groups(rows: dict[int, dict[str, int]], column: str) -> list[Group]:
    return [Group(number, cpus) for number, cpus in sets_by(rows, lambda cpu: rows[cpu].get(column)).items()]


def _place(numbers: dict[str, int], column: str, places: tuple[str, ...]) -> tuple[int | None, ...] | None:
    if column not in numbers:
        return None
    return (numbers[column],) + tuple(numbers.get(place) for place in places)


class _LscpuReader:
    def __init__(self, text: str) -> None:
        self.lines = text.splitlines()
        self.columns: list[str] = []
        self.problems: list[str] = []

    def rows(self) -> dict[int, _Row]:
        rows: dict[int, _Row] = {}
        comment = None
        for number, line in enumerate(self.lines, 1):
            if line.startswith("#"):
                comment = (number, line)
            elif line.strip():
                if not self.columns:
                    self.columns = self._header(comment)
                cpu, row = self._row(number, line)
                if cpu in rows:
                    raise _error(number, "CPU %d comes twice" % cpu)
                rows[cpu] = row
        if not rows:
            raise InputError("no line of a CPU found", "lscpu", HINT)
        self._refuse_hidden_offline(rows)
        return rows

    def _header(self, comment: tuple[int, str] | None) -> list[str]:
        """Return the columns' names, from the last comment before the first CPU."""
        if comment is None:
            raise InputError("the header line '# CPU,Core,...' is missing", "lscpu", HINT)
        number, line = comment
        columns = _split(line[1:].strip().lower())
        for name in REQUIRED:
            if name not in columns:
                raise _error(number, "the header names no column %s" % name.upper(), HINT)
        return columns

    def _row(self, number: int, line: str) -> tuple[int, _Row]:
        fields = self._fields(number, _split(line.strip()))
        numbers = {}
        for column in NUMBERS:
            value = fields.get(column, "")
            if value == "-":
                raise _error(number, "%s is '-', as 'lscpu --physical' prints it" % column.upper(), HINT)
            if value:
                if not (is_number(value) and len(value) < 10):
                    raise _error(number, "%s is a number, not %r" % (column.upper(), value))
                numbers[column] = int(value)
        if "cpu" not in numbers:
            raise _error(number, "the CPU has no number")
        if numbers["cpu"] >= MAX_CPUS:
            raise _error(number, "CPU %d is out of range: CPU ids go from 0 to %d" % (numbers["cpu"], MAX_CPUS - 1))
        online = fields.get("online", "")
        if online not in ("Y", "N", ""):
            raise _error(number, "ONLINE is Y or N, not %r" % online)
        return numbers["cpu"], _Row(numbers, online)

    def _fields(self, number: int, fields: list[str]) -> dict[str, str]:
        """Return {column: value}. lscpu leaves out the field of a cache that a CPU does not have, and moves up the
        rest."""
        columns = self.columns
        missing = len(columns) - len(fields)
        if not missing:
            return dict(zip(columns, fields))
        cache_columns = [index for index, name in enumerate(columns) if name in CACHE_NAMES]
        if not 0 < missing <= len(cache_columns):
            raise _error(number, "the header names %d columns, found %d" % (len(columns), len(fields)))
        before, after = cache_columns[0], len(columns) - cache_columns[-1] - 1
        columns_read = dict(zip(columns[:before], fields))
        columns_read.update(zip(columns[len(columns) - after :], fields[len(fields) - after :]))
        if "l3" in columns and columns_read.get("online") != "N":
            self.problems.append(
                "lscpu, line %d: CPU %s has fewer caches than the header; its L3 cache is not known"
                % (number, columns_read.get("cpu"))
            )
        return columns_read

    def _refuse_hidden_offline(self, rows: dict[int, _Row]) -> None:
        """Refuse CPUs that are offline and hidden: only `lscpu --all` without its ONLINE column shows CPUs without a
        core among others that have one."""
        without = [cpu for cpu, row in rows.items() if "core" not in row.numbers and not row.online]
        if without and any("core" in row.numbers for row in rows.values()):
            raise InputError("CPU %d has no core, perhaps as it is offline" % without[0], "lscpu", HINT)


def _split(line: str) -> list[str]:
    """Return the fields of a line; those of the caches stand together, as in L1d:L1i:L2, in one of lscpu's formats."""
    return line.replace(":", ",").split(",")


def _error(line_number: int, what: str, remedy: str = "") -> InputError:
    return InputError(what, "lscpu, line %d" % line_number, remedy)
