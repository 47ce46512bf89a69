# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/policy/isolated.py."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet, count_bits
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.dynamic_state import (
    DynamicState,
    Held,
    WantedContainer,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.isolated import (
    IsolatedPolicy,
    decide_isolated,
    first_isolated_state,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.options import StaticOptions
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.description import describe_machine
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.kubelet_view import kubelet_view

VIEW = kubelet_view(describe_machine("2 sockets x 4 cores x 2 threads"))
ISOLATED = CPUSet.parse("2-7,10-15")
POLICY = IsolatedPolicy(VIEW, StaticOptions(), CPUSet.parse("0"), ISOLATED, 36)


def test_first_sets_and_who_waits() -> None:
    decision = decide_isolated(
        POLICY, [WantedContainer("a", "x", 2), WantedContainer("b", "x", 0), WantedContainer("c", "x", 20)], first()
    )
    assert decision.state.shared == CPUSet.parse("0-1,8-9").mask
    assert set(decision.state.containers) == {("a", "x")}
    assert decision.waiting == (("c", "x"),)
    assert [move.what for move in decision.moves] == ["exclusive", "announce"]


def first() -> DynamicState:
    return first_isolated_state(POLICY)


def test_who_has_a_set_keeps_it_unless_it_is_not_isolated_any_more() -> None:
    held = {("a", "x"): Held(0b11 << 12, 0b11 << 12), ("b", "x"): Held(0b11, 0b11)}
    former = DynamicState(POLICY.shared.mask, held)
    state = decide_isolated(POLICY, [WantedContainer("a", "x", 2), WantedContainer("b", "x", 2)], former).state
    assert state.containers[("a", "x")] == held[("a", "x")]
    assert not state.containers[("b", "x")].cpus & ~ISOLATED.mask


@given(st.lists(st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 7)), max_size=6))
def test_laws(events: list[dict[str, int]]) -> None:
    state = first()
    for present in events:
        wanted = [WantedContainer(uid, "x", count) for uid, count in present.items()]
        after = decide_isolated(POLICY, wanted, state)
        taken = 0
        for (uid, name), held in after.state.containers.items():
            assert not held.cpus & (taken | ~ISOLATED.mask)
            taken |= held.cpus
            before = state.containers.get((uid, name))
            assert before is None or before == held
            assert before is not None or count_bits(held.cpus) == present[uid]
        assert after.state.shared == POLICY.shared.mask
        assert {key for key, _name in after.waiting} <= {uid for uid, count in present.items() if count}
        assert decide_isolated(POLICY, wanted, after.state).moves == []
        state = after.state
