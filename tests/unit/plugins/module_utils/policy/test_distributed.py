# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import math
from itertools import combinations
from typing import Sequence

from hypothesis import assume, example, given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.distributed import _Distribution


def rounded(number: float) -> float:
    """To three decimals, half up."""
    return math.floor(number * 1000 + 0.5) / 1000


def deviation(numbers: Sequence[int]) -> float:
    """The kubelet's: in floating point, the mean rounded too."""
    mean = rounded(sum(numbers) / len(numbers))
    return rounded(math.sqrt(sum((number - mean) ** 2 for number in numbers) / len(numbers)))


def first_most_even(free: Sequence[int], size: int, share: int) -> tuple[int, ...]:
    """The positions of the first `size` nodes that give a share each and leave all nodes most even."""
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
