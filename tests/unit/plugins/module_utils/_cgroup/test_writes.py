# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_cgroup/writes.py: the writes of cgroup v1, and what is the same for v2.

The rules of v2 are in test_writes_v2.py.
"""

from __future__ import annotations

import re
from collections import deque
from typing import Iterable, Mapping, NamedTuple

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError, RefusedError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._cgroup.hierarchy import CPUS, MEMS, Cgroup
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._cgroup.writes import (
    WantedCpuset,
    Write,
    WritePlan,
    plan_writes,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.tests.machines.values import cpus
from ansible_collections.kubenode.cpu_manager.tests.support.numbers import examples

from .cgroup_sets import NODES, ONLINE, PATHS, sets_of, steps, wants

# --- the kernel's rules ---------------------------------------------------------------------------


class Kernel(NamedTuple):
    """One file of v1 in all cgroups, by the rules that cpuset(7) gives: each is one of a state, not of a write."""

    exclusive: frozenset[str] = frozenset()
    populated: frozenset[str] = frozenset()

    def is_legal(self, sets: Mapping[str, CPUSet]) -> bool:
        for path, value in sets.items():
            if not path:
                continue
            parent = path.rpartition("/")[0]
            if not value <= sets[parent]:
                return False
            if not value and path in (self.populated | self.exclusive):
                return False
            siblings = [cgroup for cgroup in sets if cgroup and cgroup != path and cgroup.rpartition("/")[0] == parent]
            if path in self.exclusive and any(not value.isdisjoint(sets[sibling]) for sibling in siblings):
                return False
        return True

    def fewest_writes(self, start: Mapping[str, CPUSet], end: Mapping[str, CPUSet], values: Iterable[CPUSet]) -> int:
        """Return how many writes the shortest legal way has, found by trying all; -1: there is none."""
        paths = sorted(path for path in start if path)
        target = tuple(end[path].mask for path in paths)
        first = tuple(start[path].mask for path in paths)
        seen, waiting = {first}, deque([(first, 0)])
        while waiting:
            state, count = waiting.popleft()
            if state == target:
                return count
            for at in range(len(paths)):
                for value in values:
                    new = (*state[:at], value.mask, *state[at + 1 :])
                    if new not in seen:
                        seen.add(new)
                        sets = {path: CPUSet.from_mask(mask) for path, mask in zip(paths, new)}
                        if self.is_legal({"": start[""], **sets}):
                            waiting.append((new, count + 1))
        return -1


class Case(NamedTuple):
    kernel: Kernel
    old: dict[str, CPUSet]
    wanted: dict[str, CPUSet]

    def plan(self, old: Mapping[str, CPUSet] | None = None) -> WritePlan:
        return plan_v1(old or self.old, self.wanted, self.kernel.exclusive, self.kernel.populated)


def plan_v1(
    old: Mapping[str, CPUSet],
    wanted: Mapping[str, CPUSet],
    exclusive: Iterable[str] = (),
    populated: Iterable[str] = (),
    online: CPUSet = ONLINE,
) -> WritePlan:
    cgroups = {
        path: Cgroup(path, value, value, NODES, NODES, path in populated, path in populated, path in exclusive)
        for path, value in old.items()
    }
    return plan_writes(1, cgroups, [WantedCpuset(path, value) for path, value in wanted.items()], online, NODES)


@st.composite
def cases(
    draw: st.DrawFn, most_paths: int = 9, top: str = "0-4", with_exclusive: bool = True, all_wanted: bool = False
) -> Case:
    """Draw trees in a legal state, and a wish of which the result may or may not be legal."""
    paths = PATHS[: draw(st.integers(1, most_paths))]
    available = cpus(top)

    def state() -> dict[str, CPUSet]:
        sets = {"": available}
        for path in paths:
            above = sets[path.rpartition("/")[0]]
            sets[path] = CPUSet(draw(st.sets(st.sampled_from(list(above))))) if above else above
        return sets

    old, new = state(), state()
    wanted = {path: new[path] for path in paths if all_wanted or draw(st.integers(0, 3))}
    exclusive = {path for path in paths if with_exclusive and not draw(st.integers(0, 3))}
    # What the state at the start does not allow is not there.
    for path in sorted(exclusive):
        if not Kernel(frozenset([path])).is_legal(old):
            exclusive.discard(path)
    populated = frozenset(path for path in paths if old[path] and draw(st.booleans()))
    return Case(Kernel(frozenset(exclusive), populated), old, wanted)


# --- v1: laws -------------------------------------------------------------------------------------


@given(cases())
@settings(max_examples=examples(400))
def test_every_write_is_legal_and_so_is_its_undoing(case: Case) -> None:
    end = {**case.old, **case.wanted}
    try:
        plan = case.plan()
    except RefusedError:
        # Never without reason: the result is illegal, or only an exclusive sibling stands in the way.
        event("refused")
        assert not case.kernel.is_legal(end) or case.kernel.exclusive
        return
    event("%d writes" % len(plan.writes))
    sets = dict(case.old)
    for write in plan.writes:
        assert write.file == CPUS
        assert write.old == sets[write.path] != write.new
        sets[write.path] = write.new
        # The rules are those of a state, so the way back is legal where the way there is.
        assert case.kernel.is_legal(sets)
    assert sets == end
    again = case.plan(sets)
    assert again.writes == ()
    assert again.before() == again.after() == plan.after()
    for write in reversed(plan.writes):
        assert sets[write.path] == write.new
        sets[write.path] = write.old
        assert case.kernel.is_legal(sets)
    assert sets == case.old


@given(cases(with_exclusive=False))
def test_nothing_legal_is_refused(case: Case) -> None:
    end = {**case.old, **case.wanted}
    if case.kernel.is_legal(end):
        case.plan()
    elif end != case.old:
        with pytest.raises(RefusedError):
            case.plan()


@given(cases(most_paths=4, top="0-2", with_exclusive=False, all_wanted=True))
@settings(max_examples=examples(100))
def test_there_are_no_fewer_writes(case: Case) -> None:
    end = {**case.old, **case.wanted}
    if case.kernel.is_legal(end):
        values = [CPUSet.from_mask(mask) for mask in range(8)]
        assert len(case.plan().writes) == case.kernel.fewest_writes(case.old, end, values)


# --- v1: examples ---------------------------------------------------------------------------------

EXAMPLES = [
    (sets_of(a="0", a_b="0"), wants(a="0-1", a_b="0-1"), [("a", "0-1"), ("a/b", "0-1")]),  # grows top-down
    (sets_of(a="0-1", a_b="0-1"), wants(a_b="0", a="0"), [("a/b", "0"), ("a", "0")]),  # shrinks bottom-up
    (sets_of(a="0", a_b="0"), wants(a="1", a_b="1"), [("a", "0-1"), ("a/b", "1"), ("a", "1")]),  # moves
    (sets_of(a="0-1", a_b="0", a_c="1"), wants(a="1-2", a_b="1"), [("a/b", "1"), ("a", "1-2")]),  # nobody in the way
    (
        sets_of(a="0", a_b="0", a_b_c="0"),
        wants(a="1", a_b="1", a_b_c="1"),
        [("a", "0-1"), ("a/b", "0-1"), ("a/b/c", "1"), ("a/b", "1"), ("a", "1")],
    ),
    (sets_of(a="0", b="0-1"), wants(b="0", a="0-1"), [("a", "0-1"), ("b", "0")]),  # strangers
    (sets_of(a="", a_b=""), wants(a_b="3", a="3"), [("a", "3"), ("a/b", "3")]),  # new cgroups
    (sets_of(a="0-3"), wants(a="0-3"), []),
]


@pytest.mark.parametrize(("old", "wanted", "writes"), EXAMPLES)
def test_v1(old: dict[str, CPUSet], wanted: dict[str, CPUSet], writes: list[tuple[str, str]]) -> None:
    plan = plan_v1(old, wanted)
    assert steps(plan) == writes
    assert plan.notes == ()


EXCLUSIVE = [
    # The one that gives comes first, whatever its name.
    (sets_of(a="0", b="1"), wants(a="1", b="2"), "a", "a b", [("b", "2"), ("a", "1")]),
    (
        sets_of(a="0-1", b="2-3"),
        wants(a="1-2", b="0,3"),
        "a",
        "a b",
        [("b", "3"), ("a", "1"), ("a", "1-2"), ("b", "0,3")],
    ),
    (sets_of(a="0", b="1"), wants(a="1", b="0"), "b", "a", None),
    (sets_of(a="0", b="1"), wants(a="1", b="0"), "a", "b", None),
]


@pytest.mark.parametrize(("old", "wanted", "exclusive", "populated", "writes"), EXCLUSIVE)
def test_v1_with_exclusive_siblings(
    old: dict[str, CPUSet],
    wanted: dict[str, CPUSet],
    exclusive: str,
    populated: str,
    writes: list[tuple[str, str]] | None,
) -> None:
    if writes is not None:
        assert steps(plan_v1(old, wanted, exclusive.split(), populated.split())) == writes
        return
    with pytest.raises(RefusedError, match=r"is exclusive \(EINVAL\), and no order of writes avoids it; do it in two"):
        plan_v1(old, wanted, exclusive.split(), populated.split())


REFUSED = [
    (sets_of(a="0"), wants(a="7-9"), "", "a: cpuset.cpus cannot be 7-9: CPUs 8-9 are not online"),
    (sets_of(a="0"), wants(a=""), "a", "a: cpuset.cpus cannot be empty: processes are in it (ENOSPC)"),
    (
        sets_of(a="0-1", a_b="1"),
        wants(a="0"),
        "",
        "a: cpuset.cpus cannot be 0: its child a/b has 1 (EBUSY)",
    ),
    (
        sets_of(a="0-1", a_b="1"),
        wants(a_b="1-2"),
        "",
        "a/b: cpuset.cpus cannot be 1-2: it is not within what its parent a has, 0-1 (EACCES)",
    ),
    (  # its final set counts, and the child is too big rather than the parent too small
        sets_of(a="0-1", a_b="1"),
        wants(a="0", a_b="1"),
        "",
        "a/b: cpuset.cpus cannot be 1: it is not within what its parent a has, 0 (EACCES)",
    ),
    (
        sets_of(a="", a_b=""),
        wants(a_b="1"),
        "",
        "a/b: cpuset.cpus cannot be 1: it is not within what its parent a has, empty (EACCES)",
    ),
    (
        sets_of(a="0", b="1"),
        wants(b="0-1"),
        "",
        "b: cpuset.cpus cannot be 0-1: its sibling a has 0, and a is exclusive (EINVAL)",
    ),
    (
        sets_of(a="0", b="1"),
        wants(a="0-1"),
        "",
        "a: cpuset.cpus cannot be 0-1: its sibling b has 1, and a is exclusive (EINVAL)",
    ),
    (sets_of(a="0"), wants(a=""), "", "a: cpuset.cpus cannot be empty: it is exclusive (EBUSY)"),
    (
        {**sets_of(a="0"), "": cpus("0-3")},
        {"": cpus("0-1")},
        "",
        "the topmost cgroup's cpuset.cpus: is what the node has online, and the kernel allows no write (EACCES)",
    ),
    ({"": cpus("0-3")}, {"a": cpus("4")}, "", "a: has no cpuset.cpus, because the controller is not enabled there"),
]


@pytest.mark.parametrize(("old", "wanted", "populated", "message"), REFUSED)
def test_v1_refuses(old: dict[str, CPUSet], wanted: dict[str, CPUSet], populated: str, message: str) -> None:
    with pytest.raises(RefusedError) as caught:
        plan_v1(old, wanted, ["a"], populated.split())
    assert str(caught.value).startswith(message)


def test_v1_within_a_topmost_cgroup_that_has_not_all() -> None:
    with pytest.raises(
        RefusedError, match=re.escape("a: cpuset.cpus cannot be 4: it is not within what its parent / has, 0-3")
    ):
        plan_v1({"": cpus("0-3"), "a": cpus("0")}, wants(a="4"))


def test_what_does_not_change_is_not_refused() -> None:
    """Whatever it is: what was found is what is accepted."""
    old = sets_of(a="0-9", a_b="0-9")
    assert plan_v1(old, wants(a="0-9", a_b="0-9")).writes == ()


def test_cpus_and_mems() -> None:
    cgroups = {
        path: Cgroup(path, ONLINE, ONLINE, cpus(mems), cpus(mems), True, True, False, path == "a")
        for path, mems in {"": "0-1", "a": "0", "a/b": "0", "c": ""}.items()
    }
    plan = plan_writes(
        1,
        cgroups,
        [WantedCpuset("a", cpus("0-7"), cpus("1")), WantedCpuset("a/b", cpus("1"), cpus("1"))],
        ONLINE,
        NODES,
    )
    assert plan.writes == (
        Write("a/b", CPUS, ONLINE, cpus("1")),
        Write("a", MEMS, cpus("0"), cpus("0-1")),
        Write("a/b", MEMS, cpus("0"), cpus("1")),
        Write("a", MEMS, cpus("0-1"), cpus("1")),
    )
    assert plan.before() == "a cpuset.cpus: 0-7\na/b cpuset.cpus: 0-7\na cpuset.mems: 0\na/b cpuset.mems: 0\n"
    assert plan.after() == "a cpuset.cpus: 0-7\na/b cpuset.cpus: 1\na cpuset.mems: 1\na/b cpuset.mems: 1\n"
    assert plan.writes[0].to_dict() == {"path": "a/b", "file": "cpuset.cpus", "old": "0-7", "new": "1"}
    with pytest.raises(RefusedError, match=r"^a: cpuset.mems cannot be 2: memory nodes 2 are not online$"):
        plan_writes(1, cgroups, [WantedCpuset("a", mems=cpus("2"))], ONLINE, NODES)
    with pytest.raises(RefusedError, match=r"^c: cpuset.mems cannot be 0: its sibling a has 0, and a is exclusive"):
        plan_writes(1, cgroups, [WantedCpuset("c", mems=cpus("0"))], ONLINE, NODES)


@pytest.mark.parametrize("version", [1, 2])
def test_a_cgroup_is_named_twice(version: int) -> None:
    cgroups = {path: Cgroup(path, ONLINE, ONLINE, NODES, NODES, False, False) for path in ("", "a")}
    same = [WantedCpuset("a", cpus("1")), WantedCpuset("a", cpus("1"), cpus("0"))]
    assert len(plan_writes(version, cgroups, same, ONLINE, NODES).writes) == 2
    with pytest.raises(InputError, match=r"^a: two values of cpuset.cpus are wanted, 1 and 2$"):
        plan_writes(version, cgroups, [WantedCpuset("a", cpus("1")), WantedCpuset("a", cpus("2"))], ONLINE, NODES)
