# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What cgroups have of the cpu controller: quota, period, burst, weight and statistics. It only reads.

All times are in microseconds, as v2 has them; v1 counts throttled time in nanoseconds. Source: Linux's
Documentation/scheduler/sched-bwc.rst, admin-guide/cgroup-v2.rst, and kernel/sched/core.c for the names in the files.
"""

from __future__ import annotations

import errno
import os
import re
from typing import Iterable, Mapping, NamedTuple

from ..cgroup.hierarchy import Hierarchy

# By version: the files that are read. The last is there in every cgroup, whatever the kernel was built with: one that
# vanishes while it is read lacks it, and not only some of the others.
FILES = {
    1: ("cpu.cfs_quota_us", "cpu.cfs_period_us", "cpu.cfs_burst_us", "cpu.stat", "cpu.stat.local", "cpu.shares"),
    2: ("cpu.max", "cpu.max.burst", "cpu.weight", "cpu.stat.local", "cpu.stat"),
}

# The kernel takes periods from 1 ms to 1 s.
_SHORTEST, _LONGEST = 1000, 1000000
_MOST_SHARES, _MOST_WEIGHT = 262144, 10000
_NUMBER = re.compile("[0-9]{1,20}")
_MOST = (1 << 64) - 1
_NO_QUOTA = "-1"
_BURSTS = {1: "cpu.cfs_burst_us", 2: "cpu.max.burst"}
# How much of a wrong text is shown.
_SHOWN = 40
# By version: the members of cpu.stat with throttled time and with that of bursts, and how many make a microsecond.
_TIMES = {1: ("throttled_time", "burst_time", 1000), 2: ("throttled_usec", "burst_usec", 1)}

_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
# The files of a cgroup that is being removed are there, and cannot be read any more.
_GONE = (errno.ENOENT, errno.ENODEV, errno.ENOTDIR)


class Statistics(NamedTuple):
    """What the kernel has counted of one cgroup; times in microseconds. None for what this kernel does not count."""

    # Only those in which the cgroup wanted to run.
    periods: int
    throttled_periods: int
    # Summed over all CPUs, so it can be longer than the time that went by.
    throttled_us: int
    bursts: int | None = None
    burst_us: int | None = None
    # What the limits of this cgroup and of those above it did to its own tasks.
    local_us: int | None = None


class Level(NamedTuple):
    """What one cgroup has of the cpu controller. `path` is relative to the hierarchy; times in microseconds."""

    path: str
    # A cgroup that was made anew under the same name has another one.
    identity: int = 0
    # Whether it has quotas at all: where it has not, nothing limits it.
    has_quota: bool = False
    # None: no limit.
    quota_us: int | None = None
    period_us: int | None = None
    burst_us: int | None = None
    # v1 has shares, v2 has weights.
    shares: int | None = None
    weight: int | None = None
    statistics: Statistics | None = None
    # What its files have that is not as the kernel writes it.
    problems: tuple[str, ...] = ()

    @property
    def cpus(self) -> float | None:
        """How many CPUs the quota is worth; None without one."""
        return None if self.quota_us is None or self.period_us is None else self.quota_us / self.period_us


def read_levels(hierarchy: Hierarchy, paths: Iterable[str]) -> dict[str, Level]:
    """These cgroups, of those that are there. The paths must be such as the hierarchy has just listed.

    Raises NodeError where reading takes more rights. What is wrong in a file is in the level's problems.
    """
    found = {}
    for path in paths:
        level = _read_level(hierarchy, path)
        if level is not None:
            found[path] = level
    return found


def _read_level(hierarchy: Hierarchy, path: str) -> Level | None:
    problems: list[str] = []
    try:
        directory = os.open(hierarchy.place(path), os.O_DIRECTORY | _FLAGS)
    except OSError as error:
        if error.errno in _GONE or error.errno == errno.ELOOP:
            return None
        raise hierarchy.unreadable(path, "", error) from error
    try:
        identity = os.fstat(directory).st_ino
        texts: dict[str, str] = {}
        for name in FILES[hierarchy.version]:
            try:
                texts[name] = _text(directory, name)
            except OSError as error:
                if isinstance(error, PermissionError):
                    raise hierarchy.unreadable(path, name, error) from error
                if error.errno == errno.ENODEV:
                    return None
                if error.errno != errno.ENOENT:
                    problems.append("%s cannot be read: %s" % (hierarchy.place(path, name), error.strerror))
    finally:
        os.close(directory)
    if FILES[hierarchy.version][-1] not in texts and not problems:
        return None
    return parse_level(hierarchy.version, path, identity, texts, hierarchy.place(path), problems)


def _text(directory: int, name: str) -> str:
    """A file of an open directory. Raises OSError."""
    descriptor = os.open(name, _FLAGS, dir_fd=directory)
    try:
        return os.read(descriptor, 1 << 14).decode("ascii", "replace")
    finally:
        os.close(descriptor)


# --- what is in the files --------------------------------------------------------------------------------


class _Reader:
    """The texts of one cgroup's files as values; what cannot be one becomes a problem, and never a guess."""

    def __init__(self, texts: Mapping[str, str], place: str, problems: Iterable[str]) -> None:
        self.texts = texts
        self.place = place
        self.problems = list(problems)

    def wrong(self, name: str, what: str) -> None:
        """One more problem: what a file has is no `what`."""
        found = self.texts[name]
        shown = repr(found[:_SHOWN]) + ("..." if len(found) > _SHOWN else "")
        self.problems.append("%s/%s is %s, which is no %s" % (self.place, name, shown, what))

    def number(self, name: str, least: int, most: int, what: str) -> int | None:
        """The one number in a file; None where there is no such file, or another text in it."""
        if name not in self.texts:
            return None
        value = _number(self.texts[name].strip())
        if value is None or not least <= value <= most:
            self.wrong(name, what)
            return None
        return value

    def members(self, name: str) -> dict[str, int]:
        """The numbers in a file of lines with a name and a number."""
        found: dict[str, int] = {}
        for line in self.texts.get(name, "").splitlines():
            key, _blank, text = line.partition(" ")
            value = _number(text.strip())
            if value is None:
                self.wrong(name, "list of counters")
                return {}
            found[key] = value
        return found


def parse_level(
    version: int, path: str, identity: int, texts: Mapping[str, str], place: str, problems: Iterable[str] = ()
) -> Level:
    """One cgroup by what is in its files. Pure.

    texts: {name of a file: what is in it}. place: the cgroup's directory, for messages. problems: those found already.
    """
    reader = _Reader(texts, place, problems)
    quota, period = (_limit_of_v1 if version == 1 else _limit_of_v2)(reader)
    return Level(
        path,
        identity,
        FILES[version][0] in texts,
        quota if period is not None else None,
        period,
        reader.number(_BURSTS[version], 0, _MOST, "burst"),
        reader.number("cpu.shares", 0, _MOST_SHARES, "number of shares") if version == 1 else None,
        # An idle cgroup has weight 0.
        reader.number("cpu.weight", 0, _MOST_WEIGHT, "weight") if version == 2 else None,
        _statistics(version, reader),
        tuple(reader.problems),
    )


def _limit_of_v1(reader: _Reader) -> tuple[int | None, int | None]:
    period = reader.number(FILES[1][1], _SHORTEST, _LONGEST, "period")
    if reader.texts.get(FILES[1][0], "").strip() == _NO_QUOTA:
        return None, period
    return reader.number(FILES[1][0], _SHORTEST, _MOST, "quota"), period


def _limit_of_v2(reader: _Reader) -> tuple[int | None, int | None]:
    if "cpu.max" not in reader.texts:
        return None, None
    words = reader.texts["cpu.max"].split()
    quota, period = map(_number, words) if len(words) == 2 else (None, None)
    is_quota = len(words) == 2 and (words[0] == "max" or (quota is not None and quota >= _SHORTEST))
    if not is_quota or period is None or not _SHORTEST <= period <= _LONGEST:
        reader.wrong("cpu.max", "quota with a period")
        return None, None
    return quota, period


def _statistics(version: int, reader: _Reader) -> Statistics | None:
    throttled, burst, unit = _TIMES[version]
    stat, local = reader.members("cpu.stat"), reader.members("cpu.stat.local")
    needed = ("nr_periods", "nr_throttled", throttled)
    if not all(name in stat for name in needed):
        return None
    return Statistics(
        stat["nr_periods"],
        stat["nr_throttled"],
        stat[throttled] // unit,
        stat.get("nr_bursts"),
        stat[burst] // unit if burst in stat else None,
        local[throttled] // unit if throttled in local else None,
    )


def _number(text: str) -> int | None:
    """A number as the kernel writes one, of 64 bits; None for any other text."""
    value = int(text) if _NUMBER.fullmatch(text) else None
    return None if value is None or value > _MOST else value
