# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import math
from itertools import combinations
from typing import Sequence

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.assignment import (
    PACKED,
    EndlessDistributionError,
    _Distribution,
    take_distributed_mask,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.kubelet_view import CPUTopology


def rounded(number: float) -> float:
    """Return a number rounded to three decimals, half up."""
    return math.floor(number * 1000 + 0.5) / 1000


def deviation(numbers: Sequence[int]) -> float:
    """Return the kubelet's: in floating point, the mean rounded too."""
    mean = rounded(sum(numbers) / len(numbers))
    return rounded(math.sqrt(sum((number - mean) ** 2 for number in numbers) / len(numbers)))


def first_most_even(free: Sequence[int], size: int, share: int) -> tuple[int, ...]:
    """Return the positions of the first `size` nodes that give a share each and leave all nodes most even."""
    able = [position for position, number in enumerate(free) if number >= share]
    return min(
        combinations(able, size),
        key=lambda chosen: deviation([number - share * (at in chosen) for at, number in enumerate(free)]),
    )


# Two choices are told apart by their rounded deviations where nodes * (most free CPUs + 1) <= 2000.
usual = st.lists(st.integers(1, 128), min_size=1, max_size=10)
unusual = st.lists(st.sampled_from([64, 4095, 4096]), min_size=6, max_size=10)


@given(st.one_of(usual, unusual), st.integers(1, 3), st.integers(1, 32), st.integers(1, 2))
@example([4095, 4096, 4096, 4096, 64, 64, 64, 64], 1, 1, 1)  # the first two leave the same rounded deviation
def test_nodes_are_chosen_by_the_rounded_deviation(free: list[int], size: int, groups: int, group_size: int) -> None:
    share = groups * group_size
    assume(sum(number >= share for number in free) >= size)
    distribution = _Distribution([(number, at, 0) for at, number in enumerate(free)], size * share, group_size)
    assert distribution.choose(size)
    assert tuple(at for _free, at, _mask in distribution.nodes) == first_most_even(free, size, share)
    assert not distribution.givers
    assert not distribution.choose(len(free) + 1)


@given(st.lists(st.integers(1, 24), min_size=1, max_size=7), st.integers(1, 7), st.integers(1, 40), st.integers(1, 2))
@example([2, 2, 4, 4, 4, 4], 4, 10, 1)  # two of the nodes with the most left give one group each
@example([3, 3, 4, 9], 3, 11, 1)  # one gives both groups
@example([3, 3, 3, 3], 4, 8, 1)  # no remainder, all are left alike: the kubelet stops its search
def test_the_nodes_with_the_most_free_cpus_are_what_the_comparison_of_all_finds(
    free: list[int], size: int, groups: int, group_size: int
) -> None:
    nodes = [(number * group_size, at, 0) for at, number in enumerate(free)]
    count = groups * group_size
    assume(size <= min(groups, len(nodes)))
    quick, thorough = (_Distribution(nodes, count, group_size) for _way in range(2))
    assume(quick.choose(size))
    thorough.share, thorough.remainder = quick.share, quick.remainder
    assert thorough._search([node for node in nodes if node[0] >= thorough.share], size)
    assert (tuple(quick.nodes), tuple(quick.givers)) == (tuple(thorough.nodes), tuple(thorough.givers))


def test_of_nodes_that_differ_too_little_the_first_is_taken() -> None:
    """The kubelet lists the node with the fewest free CPUs first, and its rounding takes the others for as good."""
    most = 4096
    topology = CPUTopology([(cpu, cpu, 0, cpu // most, 0) for cpu in range(8 * most)])
    free = 0
    for node, number in enumerate([most, most, most, most - 1, 64, 64, 64, 64]):
        free |= ((1 << number) - 1) << node * most
    assert take_distributed_mask(topology, free, 1, 1, PACKED) == 1 << 3 * most


def test_a_node_in_two_sockets_is_listed_twice() -> None:
    """Node 2 has a CPU in each. Choices with the same free CPUs are then not alike: one has this node twice."""
    socket_and_node = [(1, 1), (1, 0), (1, 2), (1, 1), (0, 3), (1, 3), (1, 4), (0, 2), (0, 3)]
    topology = CPUTopology([(cpu, cpu, socket, node, node) for cpu, (socket, node) in enumerate(socket_and_node)])
    with pytest.raises(EndlessDistributionError, match=r"over NUMA nodes \[2, 3, 2\]: 1 are still to be given"):
        take_distributed_mask(topology, topology.cpus, 9, 1, PACKED)
