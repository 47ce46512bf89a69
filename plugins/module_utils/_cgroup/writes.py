# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""In which order to write the cpusets of cgroups. Pure: it reads and writes nothing.

On v1 the kernel checks each write by itself: a cgroup has only what its parent has, and keeps what its children
have; one with processes is never empty; siblings of which one is exclusive have nothing in common. Sources:
validate_change() in Linux's kernel/cgroup/cpuset.c and cpuset-v1.c.

On v2 it takes any set, only no empty one in place of another where processes are in the cgroup or below it. What counts
is the effective set: the part that the parent's effective set has, or all of that where there is no such part.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Iterable, Iterator, Mapping, NamedTuple, Sequence

from .._base.errors import InputError, RefusedError
from ..cpuset import CPUSet
from .hierarchy import CPUS, MEMS, ROOT, Cgroup, parent_of


class WantedCpuset(NamedTuple):
    """What one cgroup is to have; None: what it has."""

    path: str
    cpus: CPUSet | None = None
    mems: CPUSet | None = None


class Write(NamedTuple):
    """One write of one cgroup's file."""

    path: str
    file: str
    old: CPUSet
    new: CPUSet

    def to_dict(self) -> dict[str, str]:
        """Return plain data, as modules return it."""
        return {"path": self.path, "file": self.file, "old": str(self.old), "new": str(self.new)}


class WritePlan(NamedTuple):
    """The writes in their order, and what they make of each file that was asked for."""

    writes: tuple[Write, ...]
    files: tuple[Write, ...]
    # What is not as somebody might expect afterwards.
    notes: tuple[str, ...]

    def before(self) -> str:
        """Return each file's content before, as lines."""
        return "".join("%s %s: %s\n" % (write.path, write.file, write.old) for write in self.files)

    def after(self) -> str:
        """Return each file's content afterwards, as lines."""
        return "".join("%s %s: %s\n" % (write.path, write.file, write.new) for write in self.files)


# Paths with what is to be written there, in order.
_Steps = Sequence["tuple[str, CPUSet]"]


def plan_writes(
    version: int, cgroups: Mapping[str, Cgroup], wanted: Iterable[WantedCpuset], cpus: CPUSet, mems: CPUSet
) -> WritePlan:
    """Return the fewest writes that give each cgroup what is wanted.

    cgroups: those wanted and all around them, as Hierarchy.around() gives them.
    cpus, mems: what the node has online.
    Raises RefusedError with the kernel's reason when there are no such writes, InputError for contradictions.
    """
    wanted = tuple(wanted)
    asked_cpus = _asked(CPUS, ((cgroup.path, cgroup.cpus) for cgroup in wanted))
    asked_mems = _asked(MEMS, ((cgroup.path, cgroup.mems) for cgroup in wanted))
    kind = _V1 if version == 1 else _V2
    files = (kind(CPUS, cgroups, asked_cpus, cpus), kind(MEMS, cgroups, asked_mems, mems))
    writes: list[Write] = []
    changes: list[Write] = []
    notes: list[str] = []
    for file in files:
        writes += file.writes()
        changes += file.changes()
        notes += file.notes()
    return WritePlan(tuple(writes), tuple(changes), tuple(notes))


def _asked(file: str, pairs: Iterable[tuple[str, CPUSet | None]]) -> dict[str, CPUSet]:
    asked: dict[str, CPUSet] = {}
    for path, value in pairs:
        if value is None:
            continue
        if asked.setdefault(path, value) != value:
            raise InputError("two values of %s are wanted, %s and %s" % (file, asked[path], value), where=path)
    return asked


class _File:
    """One of the two files in all cgroups: what it holds and is to hold."""

    def __init__(self, name: str, cgroups: Mapping[str, Cgroup], asked: Mapping[str, CPUSet], online: CPUSet) -> None:
        self.name = name
        self.cgroups = cgroups
        self.asked = asked
        self.old: dict[str, CPUSet] = {}
        for path, cgroup in cgroups.items():
            cpus = cgroup.cpus if name == CPUS else cgroup.mems
            if cpus is not None:
                self.old[path] = cpus
        self.children: dict[str, list[str]] = {}
        for path in sorted(cgroups):
            if path:
                self.children.setdefault(parent_of(path), []).append(path)
        self._check(online)
        self.new = {**self.old, **asked}

    def _check(self, online: CPUSet) -> None:
        for path, cpus in self.asked.items():
            if path == ROOT:
                raise RefusedError(
                    "is what the node has online, and the kernel allows no write (EACCES)",
                    where="the topmost cgroup's %s" % self.name,
                )
            if path not in self.old:
                raise RefusedError(
                    "has no %s, because the controller is not enabled there" % self.name,
                    where=path,
                    remedy="write +cpuset into the cgroup.subtree_control of the cgroup above",
                )
            if cpus != self.old[path] and not cpus <= online:
                what = "CPUs %s are" if self.name == CPUS else "memory nodes %s are"
                raise self.refused(path, cpus, "%s not online" % (what % (cpus - online)))

    def refused(self, path: str, value: CPUSet, why: str, remedy: str = "") -> RefusedError:
        """Return what to say of a value that the kernel would not take."""
        return RefusedError("%s cannot be %s: %s" % (self.name, shown(value), why), where=path, remedy=remedy)

    def changes(self) -> list[Write]:
        """Return what becomes of each file that was asked for."""
        return [Write(path, self.name, self.old[path], value) for path, value in self.asked.items()]

    def differing(self) -> list[str]:
        """Return the cgroups that are to change, each before those below it."""
        return sorted((path for path in self.asked if self.old[path] != self.new[path]), key=_depth_first)

    def writes(self) -> list[Write]:
        """Return the writes in their order. Raises RefusedError."""
        now = dict(self.old)
        writes = []
        for path, value in self.steps():
            writes.append(Write(path, self.name, now[path], value))
            now[path] = value
        return writes

    def steps(self) -> _Steps:
        """Return what is to be written, in order. Raises RefusedError."""
        raise NotImplementedError

    def notes(self) -> list[str]:
        """Return what the kernel does not report and a person needs."""
        raise NotImplementedError


class _V1(_File):
    def __init__(self, name: str, cgroups: Mapping[str, Cgroup], asked: Mapping[str, CPUSet], online: CPUSet) -> None:
        super().__init__(name, cgroups, asked, online)
        self.exclusive = {
            path for path, cgroup in cgroups.items() if (cgroup.cpu_exclusive if name == CPUS else cgroup.mem_exclusive)
        }

    def steps(self) -> _Steps:
        if not self.differing():
            return ()
        # What the result itself breaks, no order can help. The lowest first: the child is too big, not the parent
        # too small.
        for path in sorted(self.asked, key=_depth_first, reverse=True):
            why = self.objection(self.new, path, self.old[path], self.new[path])
            if why:
                holders = " and ".join(self._holders(self.new, path, self.new[path]))
                remedy = holders and "take them from %s first, or end that it is exclusive" % holders
                raise self.refused(path, self.new[path], why, remedy)
        growing = list(self._grow_first(ROOT))
        objection = self._first_objection(growing)
        if objection is None:
            return growing
        # Only an exclusive sibling stands against that. What all give up first is nobody's when others take it.
        shrinking = self._shrink_first()
        if self._first_objection(shrinking) is None:
            return shrinking
        path, value, why = objection
        raise self.refused(path, value, "%s, and no order of writes avoids it" % why, "do it in two runs")

    def notes(self) -> list[str]:
        return []

    def objection(self, sets: Mapping[str, CPUSet], path: str, old: CPUSet, new: CPUSet) -> str:
        """Return why the kernel does not take this write while all have these sets; empty when it does."""
        for child in self.children.get(path, ()):
            if not sets[child] <= new:
                return "its child %s has %s (EBUSY)" % (child, sets[child])
        parent = parent_of(path)
        if not new <= sets[parent]:
            has = shown(sets[parent])
            return "it is not within what its parent %s has, %s (EACCES)" % (parent or "/", has)
        holders = self._holders(sets, path, new)
        if holders:
            told = "its sibling %s has %s, and %s is exclusive"
            who = ((holder, sets[holder], holder if holder in self.exclusive else path) for holder in holders)
            return " and ".join(told % held for held in who) + " (EINVAL)"
        if old and not new:
            if self.cgroups[path].has_processes:
                return "processes are in it (ENOSPC)"
            if path in self.exclusive:
                return "it is exclusive (EBUSY)"
        return ""

    def _holders(self, sets: Mapping[str, CPUSet], path: str, new: CPUSet) -> list[str]:
        """Return the siblings that have some of a set, where one of both is exclusive."""
        siblings = (sibling for sibling in self.children[parent_of(path)] if sibling != path)
        return [held for held in siblings if self._exclude(path, held) and not new.isdisjoint(sets[held])]

    def _exclude(self, path: str, sibling: str) -> bool:
        return path in self.exclusive or sibling in self.exclusive

    def _first_objection(self, steps: _Steps) -> tuple[str, CPUSet, str] | None:
        now = dict(self.old)
        for path, value in steps:
            why = self.objection(now, path, now[path], value)
            if why:
                return path, value, why
            now[path] = value
        return None

    def _grow_first(self, path: str) -> Iterator[tuple[str, CPUSet]]:
        """Yield the writes of a cgroup and all below it, one each, and two where a child stands against one.

        A child that cannot come before its parent, because the parent has not yet what it is to have, nor after it,
        because it has what the parent is to give up, lies between two writes: the parent first gets both.
        """
        old, new = self.old[path], self.new[path]
        children = list(self._in_order(self.children.get(path, ())))
        late = [child for child in children if self.old[child] <= new]
        early = [child for child in children if child not in late]
        both = any(not self.new[child] <= old for child in early)
        if both:
            yield path, old | new
            early, late = children, []
        for child in early:
            yield from self._grow_first(child)
        if old != new:
            yield path, new
        for child in late:
            yield from self._grow_first(child)

    def _in_order(self, siblings: Iterable[str]) -> Iterator[str]:
        """Yield those first that take nothing of what an exclusive sibling has, or they themselves exclude."""
        left = list(siblings)
        if self.exclusive.isdisjoint(left):
            yield from left
            return
        while left:
            free = (path for path in left if not any(self._takes(path, holder) for holder in left))
            path = next(free, left[0])
            left.remove(path)
            yield path

    def _takes(self, path: str, holder: str) -> bool:
        return path != holder and self._exclude(path, holder) and not self.new[path].isdisjoint(self.old[holder])

    def _shrink_first(self) -> _Steps:
        """Return the steps bottom-up to what each keeps, then top-down to what it is to have."""
        paths = self.differing()
        kept = {path: self.old[path] & self.new[path] for path in paths}
        return [(path, kept[path]) for path in reversed(paths) if kept[path] != self.old[path]] + [
            (path, self.new[path]) for path in paths if kept[path] != self.new[path]
        ]


class _V2(_File):
    def __init__(self, name: str, cgroups: Mapping[str, Cgroup], asked: Mapping[str, CPUSet], online: CPUSet) -> None:
        super().__init__(name, cgroups, asked, online)
        self._changed = set(self.differing())
        self.effective = lru_cache(maxsize=None)(self._effective)

    def steps(self) -> _Steps:
        differing = self.differing()
        for path in differing:
            if not self.new[path] and self.cgroups[path].populated:
                has = shown(self.effective(parent_of(path)))
                why = "processes are in it or below it (ENOSPC)"
                raise self.refused(path, CPUSet(), why, "what its parent has is %s" % has)
        return [(path, self.new[path]) for path in differing]

    def notes(self) -> list[str]:
        return [*self._cut(), *self._narrowed(), *(self._partitions() if self.name == CPUS else ())]

    def _effective(self, path: str) -> CPUSet:
        """Return the effective set after the writes. What no write reaches is as the kernel has it."""
        if not self._is_reached(path):
            return self._effective_now(path)
        parent = self.effective(parent_of(path))
        return self.new.get(path, parent) & parent or parent

    def _effective_now(self, path: str) -> CPUSet:
        cgroup = self.cgroups[path]
        return cgroup.effective_cpus if self.name == CPUS else cgroup.effective_mems

    def _is_reached(self, path: str) -> bool:
        return path in self._changed or (path != ROOT and self._is_reached(parent_of(path)))

    def _cut(self) -> Iterator[str]:
        """Yield wanted sets of which the kernel gives only a part, or something else."""
        for path in sorted(self.asked):
            value = self.asked[path]
            if value and value != self.effective(path) and not self.cgroups[path].is_partition():
                yield "%s: of its %s %s, %s; its parent has %s" % (
                    path,
                    self.name,
                    value,
                    "only %s is effective" % (value & self.effective(path))
                    if value & self.effective(path)
                    else "nothing is effective, so it gets all of its parent's",
                    self.effective(parent_of(path)),
                )

    def _narrowed(self) -> Iterator[str]:
        """Yield cgroups that nobody asked for and that lose something."""
        losers = [
            path
            for path in sorted(self.cgroups)
            if path not in self.asked and self._is_reached(path) and self.effective(path) < self._effective_now(path)
        ]
        if losers:
            first = losers[0]
            yield "%d other cgroups below get fewer %s, such as %s: %s in place of %s" % (
                len(losers),
                "CPUs" if self.name == CPUS else "memory nodes",
                first,
                self.effective(first),
                self._effective_now(first),
            )

    def _partitions(self) -> Iterator[str]:
        for path in self.differing():
            cgroup = self.cgroups[path]
            if cgroup.is_partition():
                yield "%s: is a partition (%s), which ends where it cannot have these CPUs" % (path, cgroup.partition)
            for sibling in self.children[parent_of(path)]:
                overlap = self.new.get(sibling, CPUSet()) & self.new[path]
                if sibling != path and self.cgroups[sibling].is_partition() and overlap:
                    yield (
                        "%s: its sibling %s is a partition with CPUs %s of these, which may end or be refused"
                        % (
                            path,
                            sibling,
                            overlap,
                        )
                    )


def shown(cpus: CPUSet) -> str:
    """Return a set in a sentence."""
    return str(cpus) or "empty"


def _depth_first(path: str) -> tuple[int, str]:
    return path.count("/"), path
