# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._isolation.bandwidth import (
    BOTH,
    MAX_SHARES,
    MAX_WEIGHT,
    MIN_SHARES,
    NEITHER,
    NEW,
    OLD,
    classify,
    formulas_of,
    new_weight,
    old_weight,
    shares_of,
)

SHARES = st.integers(MIN_SHARES, MAX_SHARES)
FORMULAS = {OLD: old_weight, NEW: new_weight}


@pytest.mark.parametrize(
    ("shares", "old", "new"),
    [
        (0, 1, 1),  # below the least
        (2, 1, 1),
        (10, 1, 4),
        (102, 4, 17),
        (256, 10, 35),
        (1024, 39, 100),
        (2000, 77, 170),
        (2048, 79, 174),
        (4096, 157, 303),
        (16384, 625, 942),
        (65536, 2500, 3023),
        (262144, 10000, 10000),
        (1 << 70, 10000, 10000),  # above the most
    ],
)
def test_both_formulas(shares: int, old: int, new: int) -> None:
    assert (old_weight(shares), new_weight(shares)) == (old, new)


@given(SHARES, SHARES)
def test_more_shares_are_no_less_weight(first: int, second: int) -> None:
    low, high = sorted((first, second))
    for formula in FORMULAS.values():
        assert 1 <= formula(low) <= formula(high) <= MAX_WEIGHT


@pytest.mark.parametrize(
    ("weight", "shares", "formula"),
    [
        (39, 1024, OLD),
        (100, 1024, NEW),
        (99, 1024, NEW),
        (101, 1024, NEW),
        (102, 1024, NEITHER),
        (37, 1024, NEITHER),
        (1, 2, BOTH),
        (10000, 262144, BOTH),
    ],
)
def test_the_formula_of_a_weight(weight: int, shares: int, formula: str) -> None:
    assert classify(weight, shares) == formula


@given(SHARES, st.sampled_from([OLD, NEW]), st.integers(-1, 1))
def test_the_shares_of_a_weight(shares: int, formula: str, off: int) -> None:
    weight = FORMULAS[formula](shares) + off
    if 1 <= weight <= MAX_WEIGHT:
        least, most = shares_of(weight, formula)
        assert least <= shares <= most
        assert classify(weight, least) in (formula, BOTH)
        assert classify(weight, most) in (formula, BOTH)
        assert least == MIN_SHARES or classify(weight, least - 1) not in (formula, BOTH)
        assert most == MAX_SHARES or classify(weight, most + 1) not in (formula, BOTH)


@pytest.mark.parametrize("weight", [0, -1, 10001, 1 << 70])
def test_what_is_no_weight(weight: int) -> None:
    with pytest.raises(ValueError, match="no weight"):
        shares_of(weight, OLD)
    assert formulas_of(weight, [(100, None)]) == formulas_of(100, [(weight, None)]) == set()


@given(
    st.lists(st.integers(0, 8000), min_size=1, max_size=6),
    st.sampled_from([OLD, NEW]),
    st.sampled_from([OLD, NEW]),
    st.booleans(),
)
def test_the_formulas_of_a_pod_are_among_those_found(cpus: list[int], outer: str, inner: str, is_known: bool) -> None:
    """As the kubelet makes shares of thousandths of CPUs, of each container and of their sum."""
    shares = [max(number * 1024 // 1000, MIN_SHARES) for number in cpus]
    pod = max(sum(cpus) * 1024 // 1000, MIN_SHARES)
    containers = [(FORMULAS[inner](number), number if is_known and number > MIN_SHARES else None) for number in shares]
    assert (outer, inner) in formulas_of(FORMULAS[outer](pod), containers)


def test_two_formulas_are_seen() -> None:
    # One CPU.
    assert formulas_of(39, [(100, None)]) == {(OLD, NEW)}
    assert formulas_of(100, [(39, None)]) == {(NEW, OLD)}
    # By weights alone one cannot say which of both it is, but it is one.
    assert formulas_of(39, [(39, None)]) == {(OLD, OLD), (NEW, NEW)}
    # With known shares one can.
    assert formulas_of(39, [(39, 1024)]) == {(OLD, OLD)}
    # A pod with an init container that requests more fits nothing.
    assert formulas_of(new_weight(8000), [(new_weight(1024), None)]) == set()
    assert formulas_of(100, []) == set()
