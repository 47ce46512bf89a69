# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plans for cgroup v2: what is refused, what is written, and what is told of sets that are not effective."""

from __future__ import annotations

from itertools import accumulate
from typing import Iterable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import RefusedError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._cgroup.hierarchy import MEMS, Cgroup
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._cgroup.writes import (
    WantedCpuset,
    Write,
    WritePlan,
    plan_writes,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.tests.machines.values import cpus

from .cgroup_sets import NODES, NONE, ONLINE, PATHS, sets_of, steps, wants


def effective(sets: Mapping[str, CPUSet]) -> dict[str, CPUSet]:
    """Return the kernel's rule, from the top down."""
    found = {"": ONLINE}
    for path in sorted(path for path in sets if path):
        above = found[path.rpartition("/")[0]]
        found[path] = sets[path] & above or above
    return found


def plan_v2(
    old: Mapping[str, CPUSet],
    wanted: Mapping[str, CPUSet],
    partitions: Mapping[str, str] | None = None,
    processes: Iterable[str] = (),
) -> WritePlan:
    now = effective(old)
    populated = {above for path in processes for above in ("", *accumulate(path.split("/"), "{}/{}".format))}
    cgroups = {
        path: Cgroup(
            path,
            value if path else None,
            now[path],
            NODES if path else None,
            NODES,
            path in processes,
            path in populated,
            partition=(partitions or {}).get(path, "member"),
        )
        for path, value in old.items()
    }
    return plan_writes(2, cgroups, [WantedCpuset(path, value) for path, value in wanted.items()], ONLINE, NODES)


@st.composite
def free_cases(draw: st.DrawFn) -> tuple[dict[str, CPUSet], dict[str, CPUSet]]:
    """Draw any sets at all, also those that no parent has."""
    paths = PATHS[: draw(st.integers(1, len(PATHS)))]
    some = st.sets(st.integers(0, 7)).map(CPUSet)
    return (
        {"": ONLINE, **{path: draw(some) for path in paths}},
        {path: draw(some) for path in paths if draw(st.booleans())},
    )


@given(free_cases(), st.sets(st.sampled_from(PATHS)))
def test_v2_empties_nothing_with_processes(
    case: tuple[dict[str, CPUSet], dict[str, CPUSet]], processes: set[str]
) -> None:
    old, wanted = case
    processes = processes & set(old)
    emptied = [
        path
        for path, value in wanted.items()
        if old[path] and not value and any((cgroup + "/").startswith(path + "/") for cgroup in processes)
    ]
    if not emptied:
        plan_v2(old, wanted, processes=processes)
        return
    with pytest.raises(RefusedError) as caught:
        plan_v2(old, wanted, processes=processes)
    assert str(caught.value).partition(":")[0] in emptied


def test_v2_tells_what_to_write_instead_of_nothing() -> None:
    old = sets_of(a="0-3", a_b="1", a_b_c="1")
    with pytest.raises(RefusedError) as caught:
        plan_v2(old, wants(a_b=""), processes=["a/b/c"])
    assert str(caught.value) == (
        "a/b: cpuset.cpus cannot be empty: processes are in it or below it (ENOSPC); what its parent has is 0-3"
    )
    # What is empty may stay so, and what has no processes may become so.
    assert steps(plan_v2(sets_of(a="", b="1"), wants(a="", b=""), processes=["a"])) == [("b", "")]


@given(free_cases())
def test_v2_writes_what_differs_and_tells_what_is_not_effective(
    case: tuple[dict[str, CPUSet], dict[str, CPUSet]],
) -> None:
    old, wanted = case
    plan = plan_v2(old, wanted)
    assert {write.path: (write.old, write.new) for write in plan.writes} == {
        path: (old[path], value) for path, value in wanted.items() if value != old[path]
    }
    assert len({write.path for write in plan.writes}) == len(plan.writes)
    end = {**old, **wanted}
    before, after = effective(old), effective(end)
    cut = [path for path, value in sorted(wanted.items()) if value and value != after[path]]
    assert [note.split(":")[0] for note in plan.notes if " of its cpuset.cpus " in note] == cut
    narrowed = [path for path in old if path not in wanted and after[path] < before[path]]
    told = [note for note in plan.notes if "other cgroups below get fewer CPUs" in note]
    assert [note.split()[0] for note in told] == ([str(len(narrowed))] if narrowed else [])
    again = plan_v2(end, wanted)
    assert again.writes == ()
    assert [note for note in plan.notes if note not in told] == list(again.notes)


NOTES = [
    (
        sets_of(a="0-1", a_b=""),
        wants(a_b="1-2"),
        {},
        ["a/b: of its cpuset.cpus 1-2, only 1 is effective; its parent has 0-1"],
    ),
    (
        sets_of(a="0-1", a_b=""),
        wants(a_b="2"),
        {},
        ["a/b: of its cpuset.cpus 2, nothing is effective, so it gets all of its parent's; its parent has 0-1"],
    ),
    (
        sets_of(a="", a_b="", a_b_c="2-5"),
        wants(a="0-3"),
        {},
        ["2 other cgroups below get fewer CPUs, such as a/b: 0-3 in place of 0-7"],
    ),
    (sets_of(a="", a_b="1"), wants(a_b=""), {}, []),  # all that the parent has is what was asked for
    (
        sets_of(a="0-1", b="2"),
        wants(a="0-2"),
        {"a": "root", "b": "isolated"},
        [
            "a: is a partition (root), which ends where it cannot have these CPUs",
            "a: its sibling b is a partition with CPUs 2 of these, which may end or be refused",
        ],
    ),
]


@pytest.mark.parametrize(("old", "wanted", "partitions", "notes"), NOTES)
def test_v2_notes(
    old: dict[str, CPUSet], wanted: dict[str, CPUSet], partitions: dict[str, str], notes: list[str]
) -> None:
    assert list(plan_v2(old, wanted, partitions).notes) == notes


def test_v2_goes_top_down_and_refuses_what_is_not_online() -> None:
    old = sets_of(b="0", b_a="0", a="0")
    assert steps(plan_v2(old, wants(b_a="1", b="1", a="1"))) == [("a", "1"), ("b", "1"), ("b/a", "1")]
    with pytest.raises(RefusedError, match=r"^a: cpuset.cpus cannot be 8: CPUs 8 are not online$"):
        plan_v2(old, wants(a="8"))
    # A set outlives its CPUs, and what was found is what is accepted.
    assert plan_v2(sets_of(a="8"), wants(a="8")).writes == ()


def test_v2_memory_nodes() -> None:
    cgroups = {
        path: Cgroup(path, NONE, ONLINE, NONE, NODES, False, False, partition="member") for path in ("", "a", "a/b")
    }
    plan = plan_writes(2, cgroups, [WantedCpuset("a", mems=cpus("1"))], ONLINE, NODES)
    assert plan.writes == (Write("a", MEMS, NONE, cpus("1")),)
    assert plan.notes == ("1 other cgroups below get fewer memory nodes, such as a/b: 1 in place of 0-1",)
