# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/plugin_utils/simulation/nodes.py."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.dynamic_state import DynamicRules
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.description import describe_machine
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.kubelet_view import kubelet_view
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.simulation.nodes import (
    POLICIES,
    Placement,
    new_node,
    shares_of,
)
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.simulation.trace import TracePod

RULES = DynamicRules(kubelet_view(describe_machine("1 socket x 8 cores")), CPUSet([0]))


def pod(name: str, cpus: int, most: int = 0) -> TracePod:
    return TracePod(name, "Guaranteed", 1000 * cpus, most, 0.0, 100.0, ())


def test_none() -> None:
    node = new_node("none", RULES)
    assert node.add(pod("a", 20)) == ""
    assert node.placement() == Placement(0b11111111, {})
    node.remove(pod("a", 20))
    assert not node.passes


def test_static() -> None:
    node = new_node("static", RULES)
    assert node.add(pod("a", 4)) == ""
    assert node.add(pod("b", 4)) == "UnexpectedAdmissionError"
    assert node.placement() == Placement(0b11100001, {"a": 0b11110})
    node.remove(pod("a", 4))
    assert node.placement() == Placement(0b11111111, {})
    assert (node.moves, node.passes) == (0, False)


def test_dynamic() -> None:
    node = new_node("dynamic", RULES)
    assert node.passes
    assert node.add(pod("a", 2, 6)) == ""
    node.look(
        {"a": 2.0},
        0.0,
    )
    assert node.placement() == Placement(0b11110001, {"a": 0b1110})
    assert node.moves == 4  # the pool and the container, twice
    assert node.add(pod("b", 20)) == ""  # it uses the pool
    assert set(node.placement().exclusive) == {"a"}
    node.remove(pod("a", 2, 6))
    assert node.placement() == Placement(0b11111111, {})


def test_the_pool_keeps_what_it_used_in_the_last_minute() -> None:
    node = new_node("dynamic", RULES)
    node.add(pod("a", 2, 6))
    node.look({}, 2.5)
    for _period in range(5):
        node.now += 10
        node.look({"a": 9.0}, 0.0)
    assert str(CPUSet.from_mask(node.placement().exclusive["a"])) == "1-3"
    for _period in range(3):
        node.now += 10
        node.look({"a": 9.0}, 0.0)
    assert str(CPUSet.from_mask(node.placement().exclusive["a"])) != "1-3"


@pytest.mark.parametrize("policy", POLICIES)
def test_rules_that_cannot_be_kept_are_refused(policy: str) -> None:
    with pytest.raises(InputError):
        new_node(policy, RULES._replace(reserved=CPUSet([9])))


@pytest.mark.parametrize(
    ("weights", "wanted", "cpus", "shares"),
    [
        ([1, 1], [1, 1], 4, [1, 1]),
        ([1, 1], [4, 4], 4, [2, 2]),
        ([1, 3], [4, 4], 4, [1, 3]),
        ([1, 3], [4, 1], 4, [3, 1]),
        ([1, 1, 2], [0.5, 9, 9], 4, [0.5, 3.5 / 3, 7 / 3]),
        ([1, 1], [0, 3], 2, [0, 2]),
        ([1], [1], 0, [0]),
        ([], [], 4, []),
    ],
)
def test_shares(weights: list[float], wanted: list[float], cpus: float, shares: list[float]) -> None:
    assert shares_of(weights, wanted, cpus) == pytest.approx(shares)


@given(st.lists(st.tuples(st.integers(2, 9000), st.floats(0, 50)), max_size=20), st.integers(0, 64))
def test_nothing_is_lost_and_nobody_gets_more_than_he_wants(pods: list[tuple[int, float]], cpus: int) -> None:
    weights, wanted = [weight for weight, _want in pods], [want for _weight, want in pods]
    shares = shares_of(weights, wanted, cpus)
    assert sum(shares) == pytest.approx(min(cpus, sum(wanted)), abs=1e-6)
    assert all(share <= want + 1e-9 for share, want in zip(shares, wanted))
    # Who lacks something has at least as much by weight as any other.
    for weight, want, share in zip(weights, wanted, shares):
        if share < want - 1e-6:
            assert all(share / weight >= another / total - 1e-6 for total, another in zip(weights, shares))
