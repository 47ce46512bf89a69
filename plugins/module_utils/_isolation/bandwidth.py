# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What cgroups have of the cpu controller: quota, period, burst, weight and statistics. It only reads.

All times are in microseconds, as v2 has them; v1 counts throttled time in nanoseconds. Source: Linux's
Documentation/scheduler/sched-bwc.rst, admin-guide/cgroup-v2.rst, and kernel/sched/core.c for the names in the files.
"""

from __future__ import annotations

import errno
import math
import os
import re
from functools import lru_cache
from typing import Iterable, Mapping, NamedTuple, Sequence

from .._cgroup.hierarchy import Hierarchy

# The weights of cgroup v2 that shares of v1 become, by the old formula and by the new one. Pure.
#
# Kubernetes counts a request in shares (1024 a CPU, 2 to 262144), and cgroup v2 has weights (1 to 10000). Who writes a
# cgroup converts: the kubelet those of pods, the container runtime those of containers.
#
#     old    1 + (shares - 2) * 9999 / 262142, cut off
#     new    10 ^ ((log2(shares)^2 + 125 log2(shares)) / 612 - 7/34), rounded up; 1024 shares are a weight of 100
#
# Its source: the old one is in KEP-2254 (cgroup v2), the new one came with runc 1.3.2 and crun in 2025.


OLD, NEW, BOTH, NEITHER = "old", "new", "both", "neither"

MIN_SHARES, MAX_SHARES = 2, 262144
MIN_WEIGHT, MAX_WEIGHT = 1, 10000
SHARES_PER_CPU = 1024

# Where the new formula gives nearly a whole number, the rounding differs from machine to machine.
_TOLERANCE = 1


def old_weight(shares: int) -> int:
    """Return what the old formula makes of shares."""
    return MIN_WEIGHT + (_valid(shares) - MIN_SHARES) * (MAX_WEIGHT - MIN_WEIGHT) // (MAX_SHARES - MIN_SHARES)


def new_weight(shares: int) -> int:
    """Return what the new formula makes of shares."""
    if shares <= MIN_SHARES:
        return MIN_WEIGHT
    if shares >= MAX_SHARES:
        return MAX_WEIGHT
    power = math.log2(shares)
    return math.ceil(10 ** ((power * power + 125 * power) / 612 - 7 / 34))


_FORMULAS = {OLD: old_weight, NEW: new_weight}


def classify(weight: int, shares: int) -> str:
    """Return by which formula the weight was made of these shares: OLD, NEW, BOTH or NEITHER; one more or less is
    the same."""
    found = [name for name, formula in _FORMULAS.items() if abs(formula(shares) - weight) <= _TOLERANCE]
    return BOTH if len(found) > 1 else found[0] if found else NEITHER


@lru_cache(maxsize=None)
def shares_of(weight: int, formula: str) -> tuple[int, int]:
    """Return the least and the most shares of which OLD or NEW makes this weight, or one more or less.

    Raises ValueError for a number that is no weight.
    """
    if not MIN_WEIGHT <= weight <= MAX_WEIGHT:
        raise ValueError("%d is no weight" % weight)
    return _first(weight - _TOLERANCE, formula), _first(weight + _TOLERANCE + 1, formula) - 1


def formulas_of(pod: int, containers: Sequence[tuple[int, int | None]]) -> set[tuple[str, str]]:
    """Return by which formulas the weights of a pod and of all its containers can be: {(the pod's, the containers')}.

    containers: (weight, shares where they are known). The pod's shares are the sum of its containers', as far as the
    pod has no overhead and no init container that requests more; a pod of which that does not hold fits nothing, or
    seldom something wrong. Two formulas are certain only where none of the pairs has the same one twice.
    """
    if not containers or not _are_weights([pod, *(weight for weight, _shares in containers)]):
        return set()
    found = set()
    for inner in _FORMULAS:
        if not all(shares is None or classify(weight, shares) in (inner, BOTH) for weight, shares in containers):
            continue
        low, high = 0, 0
        for weight, shares in containers:
            least, most = shares_of(weight, inner) if shares is None else (shares, shares)
            # Also without a request a container has the least shares; a pod counts nothing for it.
            low += 0 if least <= MIN_SHARES else least
            # Each is cut off to whole shares, and the pod's sum only once.
            high += most + 1
        for outer in _FORMULAS:
            least, most = shares_of(pod, outer)
            if max(low, MIN_SHARES) <= most and least <= high:
                found.add((outer, inner))
    return found


def _are_weights(weights: Iterable[int]) -> bool:
    # The largest weight says only that there are many shares.
    return all(MIN_WEIGHT <= weight < MAX_WEIGHT - _TOLERANCE for weight in weights)


def _first(weight: int, formula: str) -> int:
    """Return the least shares with at least this weight; one more than all shares where there are none."""
    low, high = MIN_SHARES, MAX_SHARES + 1
    while low < high:
        middle = (low + high) // 2
        if _FORMULAS[formula](middle) >= weight:
            high = middle
        else:
            low = middle + 1
    return low


def _valid(shares: int) -> int:
    return min(max(shares, MIN_SHARES), MAX_SHARES)


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
    """Return these cgroups, of those that are there. The paths must be such as the hierarchy has just listed.

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
    """Return a file of an open directory. Raises OSError."""
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
        """Note one more problem: what a file has is no `what`."""
        found = self.texts[name]
        shown = repr(found[:_SHOWN]) + ("..." if len(found) > _SHOWN else "")
        self.problems.append("%s/%s is %s, which is no %s" % (self.place, name, shown, what))

    def number(self, name: str, least: int, most: int, what: str) -> int | None:
        """Return the one number in a file; None where there is no such file, or another text in it."""
        if name not in self.texts:
            return None
        value = _number(self.texts[name].strip())
        if value is None or not least <= value <= most:
            self.wrong(name, what)
            return None
        return value

    def members(self, name: str) -> dict[str, int]:
        """Return the numbers in a file of lines with a name and a number."""
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
    """Return one cgroup by what is in its files. Pure.

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
    """Return a number as the kernel writes one, of 64 bits; None for any other text."""
    value = int(text) if _NUMBER.fullmatch(text) else None
    return None if value is None or value > _MOST else value
