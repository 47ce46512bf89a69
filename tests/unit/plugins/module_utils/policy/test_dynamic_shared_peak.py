# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/policy/dynamic.py."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.dynamic import SECONDS, SharedPeak


def test_a_use_counts_for_a_minute() -> None:
    peak = SharedPeak()
    assert [peak.add(*use) for use in ((0.0, 3.0), (10.0, 1.0), (59.9, 2.0), (60.0, 0.5), (119.9, 0.1))] == [
        3.0,
        3.0,
        3.0,
        2.0,
        0.5,
    ]


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 9)), max_size=40))
def test_it_is_the_highest_of_all_that_were_added(steps: list[tuple[int, int]]) -> None:
    peak, now = SharedPeak(), 0.0
    uses: list[tuple[float, float]] = []
    for seconds, cpus in steps:
        now += seconds
        uses.append((now, float(cpus)))
        assert peak.add(now, float(cpus)) == max(use for at, use in uses if at > now - SECONDS)
