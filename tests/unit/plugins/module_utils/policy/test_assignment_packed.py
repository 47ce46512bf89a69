# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Callable, Tuple

from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import count_bits
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.assignment import (
    EXACT,
    PACKED,
    EndlessDistributionError,
    Take,
    TakeError,
    numbering_of,
    take_distributed_mask,
    take_packed_mask,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.kubelet_view import CPUTopology

Row = Tuple[int, int, int, int, int]


@st.composite
def machines(draw: st.DrawFn) -> list[Row]:
    """Draw equal cores, whose threads are neighbours or not, in any NUMA nodes and sockets, also across each other."""
    cores, threads = draw(st.integers(1, 12)), draw(st.integers(1, 4))
    neighbours = draw(st.booleans())
    sockets, nodes = draw(st.integers(1, 3)), draw(st.integers(1, 4))
    rows: list[Row] = []
    for core in range(cores):
        socket, node = draw(st.integers(0, sockets - 1)), draw(st.integers(0, nodes - 1))
        cpus = [core * threads + t if neighbours else t * cores + core for t in range(threads)]
        rows += [(cpu, cpus[0], socket, node, socket) for cpu in cpus]
    return rows


def answer(take: Callable[..., int], *case: object) -> int | str:
    try:
        return take(*case)
    except (TakeError, EndlessDistributionError) as error:
        return str(error)


@given(machines(), st.data())
def test_cores_that_are_numbered_alike_are_taken_as_any(rows: list[Row], data: st.DataObject) -> None:
    numbered, general = CPUTopology(rows), CPUTopology(rows)
    general.regular = False
    assert numbering_of(numbered) is not None
    assert numbering_of(general) is None
    free = data.draw(st.integers(1, numbered.cpus))
    count = data.draw(st.integers(1, count_bits(free)))
    for take, rest in ((take_packed_mask, (PACKED,)), (take_distributed_mask, (1, PACKED))):
        assert answer(take, numbered, free, count, *rest) == answer(take, general, free, count, *rest)


@given(machines(), st.data())
def test_the_freest_numa_node_is_the_first_of_these_in_the_list(rows: list[Row], data: st.DataObject) -> None:
    topology = CPUTopology(rows)
    take = Take(topology, data.draw(st.integers(1, topology.cpus)), 1, EXACT)
    nodes = take.sorted_numa_nodes()
    assert take.freest_numa_node() == max(nodes, key=lambda node: node[0])


def test_numbering() -> None:
    """Threads apart, threads side by side; not alike; a core in two NUMA nodes."""
    apart = numbering_of(CPUTopology([(0, 0, 0, 0, 0), (1, 1, 0, 0, 0), (2, 0, 0, 0, 0), (3, 1, 0, 0, 0)]))
    assert apart == (0b11, 0b101, (0, 2))
    beside = numbering_of(CPUTopology([(0, 0, 0, 0, 0), (1, 0, 0, 0, 0), (2, 2, 0, 0, 0), (3, 2, 0, 0, 0)]))
    assert beside == (0b101, 0b11, (0, 1))
    assert numbering_of(CPUTopology([(0, 0, 0, 0, 0), (3, 0, 0, 0, 0), (1, 1, 0, 0, 0), (2, 1, 0, 0, 0)])) is None
    assert numbering_of(CPUTopology([(0, 0, 0, 0, 0), (1, 0, 0, 1, 0)])) is None
