# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/policy/reservation.py: how many CPUs to reserve, and examples of which.

What holds on any machine is in test_reservation_laws.py.
"""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.reservation import (
    PACKED,
    SPREAD,
    CurveStep,
    Reservation,
    count_by_curve,
    plan_reservation,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.model import Group, Topology
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import parse_name
from ansible_collections.kubenode.cpu_manager.tests.machines.values import SMT, TWO


def machine(name: str) -> Topology:
    return parse_name(name).topology()


# --- how many -------------------------------------------------------------------------------------

# As GKE has it, in CPUs: 6% of the first, 1% of the next, 0.5% of the next two, 0.25% of all others.
GKE = [CurveStep(1, 0.06), CurveStep(1, 0.01), CurveStep(2, 0.005), CurveStep(None, 0.0025)]

CURVES = [
    (30, [CurveStep(None, 0.1)], 3),  # 30 * 0.1 is 3.0000000000000004 in floating point
    (10, [CurveStep(None, 0.7)], 7),  # ... and here 7.000000000000001 with 1 - 0.3
    (10, [CurveStep(None, 1 - 0.3)], 7),
    (100, [CurveStep(None, 0.29)], 29),
    (100, [CurveStep(None, 0.07)], 7),  # 7.000000000000001
    (3, [CurveStep(None, 0.1)], 1),  # rounded up
    (
        10,
        [CurveStep(1, 0.1), CurveStep(1, 0.1), CurveStep(1, 0.1), CurveStep(None, 0.1)],
        1,
    ),  # 0.1 + 0.1 + 0.1 is more than 0.3
    (31, [CurveStep(None, 0.1)], 4),
    (8, [CurveStep(None, 0.5)], 4),
    (7, [CurveStep(None, 0.5)], 4),
    (1, [CurveStep(None, 1)], 1),
    (96, [CurveStep(None, 1)], 96),
    (96, [CurveStep(None, 0)], 1),  # at least one
    (96, [], 1),
    (96, GKE, 1),
    (400, GKE, 2),
    (4, [CurveStep(4, 0.25), CurveStep(None, 1.0)], 1),  # nothing is left to the last step
    (3, [CurveStep(4, 0.25), CurveStep(None, 1.0)], 1),
    (5, [CurveStep(4, 0.25), CurveStep(None, 1.0)], 2),
    (96, [CurveStep(4, 0.25)], 1),  # of the others nothing
]


@pytest.mark.parametrize(("cpus", "steps", "count"), CURVES)
def test_curve(cpus: int, steps: list[CurveStep], count: int) -> None:
    assert count_by_curve(cpus, steps) == count


BAD_CURVES = [
    ([CurveStep(None, 1.01)], "step 1 of the curve: the fraction is 1.01; give one between 0 and 1"),
    ([CurveStep(None, -0.1)], "step 1 of the curve: the fraction is -0.1; give one between 0 and 1"),
    (
        [CurveStep(1, 0.5), CurveStep(None, math.nan)],
        "step 2 of the curve: the fraction is nan; give one between 0 and 1",
    ),
    ([CurveStep(None, math.inf)], "step 1 of the curve: the fraction is inf; give one between 0 and 1"),
    (
        [CurveStep(1, 0.5), CurveStep(None, 0.5), CurveStep(1, 0.5)],
        "step 2 of the curve: has no cpus; only the last step may stand for all others",
    ),
    ([CurveStep(0, 0.5)], "step 1 of the curve: cpus is 0; a step has at least one CPU"),
    ([CurveStep(1, 0.5), CurveStep(-3, 0.5)], "step 2 of the curve: cpus is -3; a step has at least one CPU"),
]


@pytest.mark.parametrize(("steps", "message"), BAD_CURVES)
def test_bad_curve(steps: list[CurveStep], message: str) -> None:
    with pytest.raises(InputError) as caught:
        count_by_curve(96, steps)
    assert str(caught.value) == message


@given(st.integers(1, 8192), st.integers(0, 1000))
def test_a_fraction_is_rounded_up_exactly(cpus: int, thousandths: int) -> None:
    assert count_by_curve(cpus, [CurveStep(None, thousandths / 1000)]) == max(
        1, math.ceil(Fraction(cpus * thousandths, 1000))
    )


@given(st.integers(1, 500), st.lists(st.tuples(st.integers(1, 50), st.integers(0, 100)), max_size=6))
def test_a_curve_adds_up_what_its_steps_are_of_each_cpu(cpus: int, steps: list[tuple[int, int]]) -> None:
    percents = [percent for size, percent in steps for _cpu in range(size)][:cpus]
    curve = [CurveStep(size, percent / 100) for size, percent in steps]
    assert count_by_curve(cpus, curve) == max(1, -(-sum(percents) // 100))


# --- the planner ----------------------------------------------------------------------------------

PLANS = [
    (SMT, 2, PACKED, "0,4"),
    (SMT, 4, PACKED, "0-1,4-5"),
    (SMT, 6, PACKED, "0-2,4-6"),
    (SMT, 2, SPREAD, "0,4"),  # one NUMA node
    (TWO, 4, PACKED, "0-1,4-5"),
    (TWO, 4, SPREAD, "0,2,4,6"),
    (TWO, 6, SPREAD, "0-2,4-6"),  # the first gives more
    (TWO, 2, SPREAD, "0,4"),
    ("4s1n8c", 5, SPREAD, "0-1,8,16,24"),  # exactly 5
    ("4s1n8c", 5, PACKED, "0-4"),
    ("4s1n8c2t", 10, SPREAD, "0-1,8,16,24,32-33,40,48,56"),
    ("4s1n8c2t", 12, SPREAD, "0-1,8-9,16,24,32-33,40-41,48,56"),
    ("4s1n8c2t", 14, SPREAD, "0-1,8-9,16-17,24,32-33,40-41,48-49,56"),
    ("1s2l2c2t+interleaved", 4, PACKED, "0-1,4-5"),
    ("2s1n4c2t+interleaved", 4, PACKED, "0,2,8,10"),  # of one NUMA node
    ("2s1n4c2t+interleaved", 4, SPREAD, "0-1,8-9"),
    ("1s4c2t+adjacent", 4, PACKED, "0-3"),
    # cores of unequal size
    ("1s2c2t2e", 1, PACKED, "2"),  # cores 0,4 1,5 2 3
    ("1s2c2t2e", 2, PACKED, "0,4"),
    ("1s2c2t2e", 3, PACKED, "0,2,4"),
    ("1s2c2t2e", 5, PACKED, "0-2,4-5"),
    ("1s4c2t+offline7", 1, PACKED, "3"),
    ("1s4c2t+offline7", 3, PACKED, "0,3-4"),
    ("2s1n2c2t+offline4,6", 2, SPREAD, "1,5"),  # of as few cores as may be
    ("2s1n2c2t+offline4,6", 3, SPREAD, "0,3,7"),
    # a NUMA node that is exhausted gives all it has
    ("2s1n4c+offline5-7", 4, SPREAD, "0-2,4"),
    ("2s1n4c+offline5-7", 2, SPREAD, "0,4"),
]


@pytest.mark.parametrize(("name", "count", "strategy", "reserved"), PLANS)
def test_plan(name: str, count: int, strategy: str, reserved: str) -> None:
    topology = machine(name)
    plan = plan_reservation(topology, count, strategy)
    assert str(plan.reserved) == reserved
    assert plan == Reservation(plan.reserved, topology.online - plan.reserved, CPUSet(), CPUSet())


NEAR = [
    ("2s1n2c2t", 2, PACKED, 1, "2,6"),
    ("2s1n2c2t", 6, PACKED, 1, "0,2-4,6-7"),
    ("2s1n2c2t", 2, SPREAD, 1, "2,6"),
    ("2s1n2c2t", 6, SPREAD, 1, "0,2-4,6-7"),  # node 1 gives more
    ("2s2n2c", 3, PACKED, 2, "4-6"),  # then the other of its socket
    ("2s2n2c", 5, PACKED, 3, "0,4-7"),
    ("2s2n2c", 3, SPREAD, 3, "0,4,6"),
    ("2s1n2c+memory2", 1, PACKED, 3, "2"),  # memory alone: the CPUs nearest to it
    ("2s1n2c+memory2", 3, PACKED, 3, "0,2-3"),
    ("2s1n2c+nodes4,8", 1, PACKED, 8, "2"),
]


@pytest.mark.parametrize(("name", "count", "strategy", "near", "reserved"), NEAR)
def test_near_numa_node(name: str, count: int, strategy: str, near: int, reserved: str) -> None:
    assert str(plan_reservation(machine(name), count, strategy, near_numa_node=near).reserved) == reserved


def test_no_such_numa_node() -> None:
    with pytest.raises(InputError) as caught:
        plan_reservation(machine("2s1n2c+nodes4,8"), 1, near_numa_node=0)
    assert str(caught.value) == "NUMA node 0 does not exist; there are 4, 8"


def test_smt_off() -> None:
    plan = plan_reservation(machine("2s1n4c2t"), 3, SPREAD, smt=False)
    assert [str(cpus) for cpus in plan] == ["0-1,4", "2-3,5-7", "8-15", ""]


def test_smt_off_counts_cores() -> None:
    assert len(plan_reservation(machine(SMT), 3, smt=False).reserved) == 3
    with pytest.raises(InputError, match="cannot reserve 4 of 4 CPUs"):
        plan_reservation(machine(SMT), 4, smt=False)


def test_caches_are_not_mixed() -> None:
    """A machine whose numbering goes to and fro between two caches: the cores of one come first."""
    topology = Topology(
        CPUSet.parse("0-7"),
        [CPUSet([cpu]) for cpu in range(8)],
        caches=[Group(0, CPUSet.parse("0,2,4,6")), Group(1, CPUSet.parse("1,3,5,7"))],
    )
    assert str(plan_reservation(topology, 3).reserved) == "0,2,4"
    assert str(plan_reservation(topology, 5).reserved) == "0-2,4,6"


def test_cpus_of_no_numa_node_come_last() -> None:
    topology = Topology(
        CPUSet.parse("0-5"), [CPUSet([cpu]) for cpu in range(6)], numa_nodes=[Group(0, CPUSet.parse("2-5"))]
    )
    assert str(plan_reservation(topology, 4).reserved) == "2-5"
    assert str(plan_reservation(topology, 5).reserved) == "0,2-5"


def test_split_core() -> None:
    plan = plan_reservation(machine(TWO), 3, allow_split_core=True)
    assert [str(cpus) for cpus in plan] == ["0-1,4", "2-3,5-7", "", "1,5"]
    # Of the NUMA node that gave less.
    plan = plan_reservation(machine(TWO), 3, SPREAD, allow_split_core=True)
    assert [str(cpus) for cpus in plan] == ["0,2,4", "1,3,5-7", "", "2,6"]
    # Only if it must be.
    plan = plan_reservation(machine(TWO), 4, allow_split_core=True)
    assert [str(cpus) for cpus in plan] == ["0-1,4-5", "2-3,6-7", "", ""]


def test_at_least() -> None:
    assert str(plan_reservation(machine(TWO), 3, at_least=True).reserved) == "0-1,4-5"
    assert str(plan_reservation(machine(TWO), 4, at_least=True).reserved) == "0-1,4-5"
    # Rounding up would leave nothing to the pods.
    with pytest.raises(InputError, match="cannot reserve 7 CPUs without splitting a core; the nearest counts are 6;"):
        plan_reservation(machine(TWO), 7, at_least=True)
    assert str(plan_reservation(machine(TWO), 7, at_least=True, allow_split_core=True).split_core) == "3,7"


BAD_PLANS = [
    (SMT, 0, "cannot reserve 0 CPUs; reserve at least one"),
    (SMT, -2, "cannot reserve -2 CPUs; reserve at least one"),
    (SMT, 8, "cannot reserve 8 of 8 CPUs; at least one must be left for the pods"),
    (SMT, 100, "cannot reserve 100 of 8 CPUs; at least one must be left for the pods"),
    ("1s1c", 1, "cannot reserve 1 of 1 CPU; at least one must be left for the pods"),
    (
        SMT,
        3,
        (
            "cannot reserve 3 CPUs without splitting a core; the nearest counts are 2 and 4;"
            " take one of them, or allow one split core"
        ),
    ),
    (
        SMT,
        1,
        (
            "cannot reserve 1 CPU without splitting a core; the nearest counts are 2;"
            " take one of them, or allow one split core"
        ),
    ),
    (
        SMT,
        7,
        (
            "cannot reserve 7 CPUs without splitting a core; the nearest counts are 6;"
            " take one of them, or allow one split core"
        ),
    ),
    (
        "1s1c2t",
        1,
        ("cannot reserve 1 CPU without splitting a core; the machine has one; allow one split core"),
    ),
]


@pytest.mark.parametrize("strategy", [PACKED, SPREAD])
@pytest.mark.parametrize(("name", "count", "message"), BAD_PLANS)
def test_bad_plan(name: str, count: int, message: str, strategy: str) -> None:
    with pytest.raises(InputError) as caught:
        plan_reservation(machine(name), count, strategy)
    assert str(caught.value) == message


def test_no_such_strategy() -> None:
    with pytest.raises(InputError, match="strategy 'even' is neither packed nor spread"):
        plan_reservation(machine(SMT), 2, "even")
