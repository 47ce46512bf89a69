# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the kernel counted on each CPU between two readings: interrupts by name, and time by kind. Pure.

Source: /proc/interrupts, /proc/softirqs, /proc/stat (Linux's Documentation/filesystems/proc.rst), /proc/schedstat
(Documentation/scheduler/sched-stats.rst).
"""

from __future__ import annotations

from typing import Mapping, NamedTuple

from ..host.names import shown

# The columns of a CPU in /proc/stat; those of guests are in user and nice, too.
_COLUMNS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
# Of a CPU in /proc/schedstat: the time in which tasks ran, in nanoseconds, as far as they have left the CPU.
_RUN_TIME = 7


class Counts(NamedTuple):
    """Interrupts: {CPU: {name: count}}, and lines that could not be read, by their beginning."""

    counts: Mapping[int, Mapping[str, int]]
    unread: tuple[str, ...]


class Ticks(NamedTuple):
    """A CPU's time by kind, in ticks of 1/100 s."""

    user: int
    nice: int
    system: int
    idle: int
    iowait: int
    irq: int
    softirq: int
    steal: int

    def since(self, before: Ticks) -> Ticks:
        """What was added. The kernel does not promise that idle time only grows."""
        return Ticks(*(max(now - then, 0) for now, then in zip(self, before)))


def counted(before: bytes, after: bytes) -> Counts:
    """What was added between two readings of /proc/interrupts or /proc/softirqs.

    A row that is new counts from 0. Rows that have the same text are not read; most of a large machine have.
    """
    rows, header = _rows(before), _header(after)
    if header is None or header != _header(before):
        return Counts({}, ("the columns",))
    found: dict[int, dict[str, int]] = {}
    unread = []
    for line in after.splitlines()[1:]:
        label, _colon, rest = line.partition(b":")
        before_rest = rows.get(label, b"")
        if rest == before_rest:
            continue
        numbers = _numbers(rest, len(header))
        old = _numbers(before_rest, len(header)) if before_rest else [0] * len(header)
        if numbers is None or old is None:
            # Such as ERR, which has one number for the machine.
            if len(rest.split(None, 1)) != 1:
                unread.append(shown(label.strip())[:20])
            continue
        name = _name(label, rest, len(header))
        for cpu, now, then in zip(header, numbers, old):
            # A line whose device is another now begins anew.
            added = now - then if now >= then else now
            if added:
                of_cpu = found.setdefault(cpu, {})
                of_cpu[name] = of_cpu.get(name, 0) + added
    return Counts(found, tuple(unread))


def _header(content: bytes) -> list[int] | None:
    """The CPUs of the columns."""
    names = content.partition(b"\n")[0].split()
    if not names or not all(name.startswith(b"CPU") and name[3:].isdigit() for name in names):
        return None
    return [int(name[3:]) for name in names]


def _rows(content: bytes) -> dict[bytes, bytes]:
    return {label: rest for label, _colon, rest in (line.partition(b":") for line in content.splitlines()[1:])}


def _numbers(rest: bytes, count: int) -> list[int] | None:
    fields = rest.split(None, count)[:count]
    return list(map(int, fields)) if len(fields) == count and all(map(bytes.isdigit, fields)) else None


def _name(label: bytes, rest: bytes, count: int) -> str:
    """What a row is called: its number and who handles it, or what the kernel says of it."""
    fields = rest.split(None, count)
    text = fields[count].strip() if len(fields) > count else b""
    number = label.strip()
    if number.isdigit():
        # Chip, number in it and kind of trigger; then, after two blanks, the names of the handlers.
        handlers = text.rpartition(b"  ")[2].strip() if b"  " in text else text
        return "%s %s" % (shown(number), shown(handlers)) if handlers else shown(number)
    return "%s (%s)" % (shown(number), shown(text)) if text else shown(number)


def parse_ticks(content: bytes) -> dict[int, Ticks]:
    """{CPU: time by kind} of /proc/stat; without the lines that cannot be read."""
    found = {}
    for line in content.splitlines():
        if not line.startswith(b"cpu"):
            # All lines of CPUs come first, and that of interrupts is long.
            break
        name, *fields = line.split()
        number, numbers = name[3:], fields[: len(_COLUMNS)]
        if number.isdigit() and len(numbers) == len(_COLUMNS) and all(map(bytes.isdigit, numbers)):
            found[int(number)] = Ticks(*map(int, numbers))
    return found


def parse_schedstat(content: bytes) -> dict[int, int]:
    """{CPU: how long tasks ran there, in nanoseconds} of /proc/schedstat; empty for a version that is not known."""
    lines = content.splitlines()
    version = lines[0].split() if lines else []
    if len(version) != 2 or version[0] != b"version" or not version[1].isdigit() or not 15 <= int(version[1]) <= 17:
        return {}
    found = {}
    for line in lines:
        fields = line.split()
        number = fields[0][3:] if fields and fields[0].startswith(b"cpu") else b""
        if number.isdigit() and len(fields) > _RUN_TIME and fields[_RUN_TIME].isdigit():
            found[int(number)] = int(fields[_RUN_TIME])
    return found
