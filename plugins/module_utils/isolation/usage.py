# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How long cgroups ran, as they count it themselves: of v1 on each CPU, of v2 on all CPUs together.

Source: Linux's Documentation/admin-guide/cgroup-v1/cpuacct.rst and cgroup-v2.rst.
"""

from __future__ import annotations

import os
import time
from typing import Container, Iterable, Mapping, NamedTuple, Sequence

from ..cgroup.kubepods import container_id

_PER_CPU = "/cpuacct.usage_percpu"
_CPU_STAT = "cpu.stat"
_SECOND, _MICROSECOND = 1_000_000_000, 1000
# The count of a CPU grows by what runs there with each tick, of 10 ms at most. So a difference of two may be wrong by
# this many seconds.
LAG = 0.02
# In what has such a name, the cgroups below are its own affair.
_LEAVES = (".service", ".scope")
# Of cgroups in one another. What is further below counts as what is above it.
_DEEPEST = 100
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
_DIRECTORY = os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY
# The kernel gives a file of a cgroup whole, where it has room for it; this is enough for all but large machines.
_USUAL = 1 << 12
_MOST = 1 << 18


class CgroupTime(NamedTuple):
    """How a cgroup, without those below it that are listed too, used CPUs: {CPU: share of the time}."""

    path: str
    shares: Mapping[int, float]


class PerCpu:
    """All cgroups of v1 between two readings. possible: the CPUs that the columns belong to.

    whole: cgroups of which those below are not read; a large machine has a thousand pods.
    ended: after the last reading, the cgroups that are not there any more, without those above which nothing ran.
    """

    def __init__(self, mount: str, possible: Sequence[int], whole: Container[str] = ()) -> None:
        self._mount, self._possible, self._whole = mount, possible, whole
        # Paths that begin there are shorter, which the kernel needs less time for.
        self._directory = -1
        self.ended: list[str] = []
        # {path: (when, its text)}; a parent comes before its children.
        self._before: dict[str, tuple[int, bytes]] = {}
        self._children: dict[str, list[str]] = {}

    def __len__(self) -> int:
        return len(self._before)

    def __contains__(self, path: object) -> bool:
        """Whether a cgroup, which is not the topmost, is read."""
        return path in self._before

    def begin(self) -> bool:
        """Read all; False where the topmost cannot be read as it should be."""
        try:
            self._directory = os.open(self._mount, _DIRECTORY)
        except OSError:
            return False
        self._walk("", "")
        first = self._before.get("")
        if first is not None and len(_numbers(first[1])) == len(self._possible):
            return True
        os.close(self._directory)
        return False

    def end(self) -> tuple[dict[int, float], list[CgroupTime]]:
        """{CPU: share of the time in which any task ran}, and the cgroups in which some did."""
        found: list[CgroupTime] = []
        busy = self._ended("", found) or {}
        os.close(self._directory)
        return busy, found

    def _walk(self, path: str, name: str) -> None:
        content = _content(path + _PER_CPU if path else _PER_CPU[1:], self._directory)
        if content is None:
            return
        self._before[path] = (time.monotonic_ns(), content)
        if path in self._whole or name.endswith(_LEAVES) or container_id(name) or path.count("/") > _DEEPEST:
            return
        try:
            with os.scandir("%s/%s" % (self._mount, path)) as entries:
                names = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
        except OSError:
            return
        if names:
            children = ["%s/%s" % (path, inner) if path else inner for inner in names]
            self._children[path] = children
            for inner, child in zip(names, children):
                self._walk(child, inner)

    def _ended(self, path: str, found: list[CgroupTime]) -> dict[int, float] | None:
        """The shares of a cgroup with all below it; None where it does not count."""
        if path not in self._before:
            return None
        then, before = self._before[path]
        content = _content(path + _PER_CPU if path else _PER_CPU[1:], self._directory)
        if content is None:
            self.ended.append(path)
            return None  # its time is its parent's
        lasted = max(time.monotonic_ns() - then, 1)
        if content == before:
            return {}  # nor did any below it
        old, new = _numbers(before), _numbers(content)
        if not len(old) == len(new) == len(self._possible):
            return None
        whole = {cpu: (now - last) / lasted for cpu, last, now in zip(self._possible, old, new) if now > last}
        own = dict(whole)
        for child in self._children.get(path, ()):
            for cpu, share in (self._ended(child, found) or {}).items():
                own[cpu] = own.get(cpu, 0.0) - share
        # What is left of a cgroup with others below it is mostly what was counted between their readings.
        least = LAG * _SECOND / lasted if path in self._children and path else 0.0
        found.append(CgroupTime(path, {cpu: share for cpu, share in own.items() if share > least}))
        return whole


class Totals:
    """Some cgroups of v2 between two readings. ended: after the last, those that are not there any more."""

    def __init__(self, mount: str, paths: Iterable[str]) -> None:
        self._mount = mount
        self.ended: list[str] = []
        self._before = {path: read for path in paths if (read := self._read(path)) is not None}

    def end(self) -> dict[str, float]:
        """{cgroup: how many CPUs it used}, of those that are still there."""
        found = {}
        for path, (then, before) in self._before.items():
            read = self._read(path)
            if read is None:
                self.ended.append(path)
            else:
                found[path] = max(read[1] - before, 0) / max(read[0] - then, 1)
        return found

    def _read(self, path: str) -> tuple[int, int] | None:
        """When it was read, and the nanoseconds."""
        for line in (_content("%s/%s/%s" % (self._mount, path, _CPU_STAT)) or b"").splitlines():
            name, _blank, value = line.partition(b" ")
            if name == b"usage_usec" and value.isdigit():
                return time.monotonic_ns(), int(value) * _MICROSECOND
        return None


def _numbers(content: bytes) -> list[int]:
    fields = content.split()
    return list(map(int, fields)) if all(map(bytes.isdigit, fields)) else []


def _content(path: str, directory: int | None = None) -> bytes | None:
    try:
        descriptor = os.open(path, _READ, dir_fd=directory)
    except OSError:
        return None
    try:
        content = os.read(descriptor, _USUAL)
        while _USUAL <= len(content) < _MOST:
            more = os.read(descriptor, _MOST)
            content += more
            if not more:
                break
        return content
    except OSError:
        return None
    finally:
        os.close(descriptor)
