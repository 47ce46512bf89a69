# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the kernel says of a task: how long it ran, and on which CPU last.

Source: /proc/PID/task/TID/schedstat (Linux's Documentation/scheduler/sched-stats.rst) and stat (man 5 proc_pid_stat).
"""

from __future__ import annotations

import os
import time
from typing import Mapping, NamedTuple

# Of the field flags in stat. Source: include/linux/sched.h.
_KERNEL_THREAD = 0x00200000


def cpu_clock(pid: int) -> int:
    """How long all threads of a process ran, also those that have ended, in nanoseconds. Raises OSError.

    Source: the numbers of clocks in include/linux/posix-timers.h, which are part of the kernel's interface.
    """
    return time.clock_gettime_ns(~pid << 3 | 2)


class Stat(NamedTuple):
    """Of a task's stat: name, whether the kernel made it, user and system time in ticks, start in ticks, last CPU."""

    name: bytes
    kernel: bool
    ticks: int
    start: int
    processor: int


def parse_stat(content: bytes) -> Stat | None:
    """Read a task's stat; None for what is none. The name may have any byte in it, also ")"."""
    begin, end = content.find(b" ("), content.rfind(b") ")
    fields = content[end + 2 :].split()
    if begin < 0 or end < begin or len(fields) < 37:
        return None
    try:
        kernel = bool(int(fields[6]) & _KERNEL_THREAD)
        return Stat(
            content[begin + 2 : end], kernel, int(fields[11]) + int(fields[12]), int(fields[19]), int(fields[36])
        )
    except ValueError:
        return None


def parse_run_time(content: bytes) -> int | None:
    """Of a task's schedstat: how long it ran, in nanoseconds. None for what is no schedstat."""
    fields = content.split(None, 1)
    return int(fields[0]) if fields and fields[0].isdigit() else None


def parse_cgroup(content: bytes, controller: str) -> str:
    """The path of the cgroup that a task is in, by its file cgroup; empty for the topmost, or where there is none.

    controller: of v1; empty for v2.
    """
    for line in content.splitlines():
        number, _colon, rest = line.partition(b":")
        controllers, _colon, path = rest.partition(b":")
        if controller.encode() in controllers.split(b",") if controller else (number == b"0" and not controllers):
            return os.fsdecode(path.strip(b"/"))
    return ""


class TaskTime(NamedTuple):
    """How a task used CPUs: {CPU: share of the time}, and whether it is sure that it ran there."""

    name: str
    kernel: bool
    pid: int
    tid: int
    # Relative to the hierarchy; empty for the topmost.
    cgroup: str
    shares: Mapping[int, float]
    sure: bool
