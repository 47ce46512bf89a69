# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What holds of the CPUs that are taken on any machine: they are free, as many as were asked for, the same again."""

from __future__ import annotations

from typing import Callable

from hypothesis import example, given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.assignment import (
    PACKED,
    SPREAD,
    EndlessDistributionError,
    TakeError,
    take_distributed,
    take_packed,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.kubelet_view import kubelet_view
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import Shape, parse_name
from ansible_collections.kubenode.cpu_manager.tests.machines.strategies import shapes


@st.composite
def cases(draw: st.DrawFn, hybrid: bool | None = None, offline: bool = True) -> tuple[Shape, CPUSet, int]:
    shape = draw(shapes(hybrid=hybrid))
    if not offline:
        shape = shape._replace(offline=CPUSet())
    online = shape.topology().online
    free = draw(st.frozensets(st.sampled_from(list(online)), min_size=1).map(CPUSet))
    # Mostly nearly free, as a node is.
    free = draw(st.sampled_from([free, online - free or free, online]))
    return shape, free, draw(st.integers(1, len(free)))


@given(cases(hybrid=False, offline=False), st.sampled_from([PACKED, SPREAD]), st.booleans())
def test_packed_gives_free_cpus_in_the_number_that_was_asked_for(
    case: tuple[Shape, CPUSet, int], strategy: str, prefer_uncore: bool
) -> None:
    shape, free, count = case
    taken = take_packed(kubelet_view(shape.topology()), free, count, strategy, prefer_uncore)
    assert len(taken) == count
    assert taken <= free


@given(cases(hybrid=False, offline=False), st.sampled_from([PACKED, SPREAD]), st.integers(1, 4))
def test_distributed_gives_free_cpus_in_the_number_that_was_asked_for(
    case: tuple[Shape, CPUSet, int], strategy: str, group_size: int
) -> None:
    shape, free, count = case
    try:
        taken = take_distributed(kubelet_view(shape.topology()), free, count, group_size, strategy)
    except (TakeError, EndlessDistributionError) as error:
        failure = str(error)
    else:
        assert len(taken) == count
        assert taken <= free
        return
    assert failure.startswith(("accounting error, ", "the kubelet would never return"))
    assert group_size > 1 or failure.startswith("accounting error, ")


@given(cases(), st.sampled_from([PACKED, SPREAD]), st.booleans())
@example((parse_name("1s4c2t+offline7"), CPUSet.parse("1-6"), 2), PACKED, False)
def test_packed_on_any_machine(case: tuple[Shape, CPUSet, int], strategy: str, prefer_uncore: bool) -> None:
    """Perhaps busy ones, as the kubelet does, but CPUs of this machine, in the right number, or its own error."""
    shape, free, count = case
    topology = kubelet_view(shape.topology())
    try:
        taken = take_packed(topology, free, count, strategy, prefer_uncore)
    except TakeError as error:
        failure = str(error)
    else:
        assert len(taken) == count
        assert taken <= topology.all_cpus()
        return
    assert failure == "failed to allocate cpus"


@given(cases(), st.integers(1, 3))
def test_the_same_question_has_the_same_answer(case: tuple[Shape, CPUSet, int], group_size: int) -> None:
    shape, free, count = case

    def answers() -> list[object]:
        topology = kubelet_view(shape.topology())
        calls: list[Callable[[], CPUSet]] = [
            lambda: take_packed(topology, free, count),
            lambda: take_packed(topology, free, count, SPREAD),
            lambda: take_packed(topology, free, count, prefer_uncore=True),
            lambda: take_distributed(topology, free, count, group_size),
        ]
        return [answer(call) for call in calls]

    def answer(call: Callable[[], CPUSet]) -> object:
        try:
            return call()
        except (TakeError, EndlessDistributionError) as error:
            return str(error)

    assert answers() == answers()


@given(cases())
def test_cpus_that_do_not_exist_change_nothing(case: tuple[Shape, CPUSet, int]) -> None:
    shape, free, count = case
    topology = kubelet_view(shape.topology())
    more = free | CPUSet([max(topology.all_cpus()) + 1, 60000])
    try:
        expected = take_packed(topology, free, count)
    except TakeError:
        return
    assert take_packed(topology, more, count) == expected


@given(shapes(hybrid=False), st.data())
def test_distributed_over_one_numa_node_takes_as_packed(shape: Shape, data: st.DataObject) -> None:
    shape = shape._replace(
        groups=tuple((letter, count) for letter, count in shape.groups if letter != "n"),
        memory_nodes=0,
        node_ids=(),
        offline=CPUSet(),
        isolated=CPUSet(),
        nohz_full=CPUSet(),
    )
    topology = kubelet_view(shape.topology())
    free = data.draw(st.frozensets(st.sampled_from(list(topology.all_cpus())), min_size=1).map(CPUSet))
    count = data.draw(st.integers(1, len(free)))
    assert take_distributed(topology, free, count) == take_packed(topology, free, count)
