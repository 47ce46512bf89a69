# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How they look in a playbook is tested beside the filters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible.errors import AnsibleFilterError
from hypothesis import given

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.test.cpuset import TestModule as Plugin
from ansible_collections.kubenode.cpu_manager.tests.machines.strategies import cpusets

ROOT = Path(__file__).resolve().parents[4]

TESTS = Plugin().tests()


@pytest.mark.parametrize(
    ("value", "answer"),
    [
        ("0-3,8", True),
        ("", True),
        ("0-31:2/8", True),
        ("0-", False),
        ("3-1", False),
        (" 0", False),
        ("ff,ffffffff", False),  # a mask
        (0, False),  # no text
        ([0, 1], False),
        (None, False),
    ],
)
def test_is_cpuset(value: Any, answer: bool) -> None:
    assert TESTS["cpuset"](value) is answer


COMPARISONS = [
    # one, other: equal, subset, superset, disjoint
    ("0-3", "0-3", (True, True, True, False)),
    ("0-1", "1,0", (True, True, True, False)),
    ("0-1", "0-3", (False, True, False, False)),
    ("0-3", "1", (False, False, True, False)),
    ("0-3", "2-5", (False, False, False, False)),
    ("0-3", "4-7", (False, False, False, True)),
    ("", "0", (False, True, False, True)),
    ("", "", (True, True, True, True)),
]


@pytest.mark.parametrize(("left", "right", "answers"), COMPARISONS)
def test_comparisons(left: str, right: str, answers: tuple[bool, ...]) -> None:
    names = ("cpuset_equal", "cpuset_subset", "cpuset_superset", "cpuset_disjoint")
    assert tuple(TESTS[name](left, right) for name in names) == answers


@given(cpusets(), cpusets())
def test_comparisons_are_those_of_the_sets(left: CPUSet, right: CPUSet) -> None:
    texts = (str(left), str(right))
    assert TESTS["cpuset_equal"](*texts) == (left == right)
    assert TESTS["cpuset_subset"](*texts) == (set(left) <= set(right))
    assert TESTS["cpuset_superset"](*texts) == (set(left) >= set(right))
    assert TESTS["cpuset_disjoint"](*texts) == (not set(left) & set(right))


@pytest.mark.parametrize("name", sorted(set(TESTS) - {"cpuset"}))
@pytest.mark.parametrize("arguments", [("0-x", "0"), ("0", "0-x")])
def test_no_set(name: str, arguments: tuple[str, str]) -> None:
    with pytest.raises(AnsibleFilterError, match="CPU list '0-x', position 3"):
        TESTS[name](*arguments)


@pytest.mark.parametrize("name", sorted(set(TESTS) - {"cpuset"}))
def test_no_text(name: str) -> None:
    with pytest.raises(AnsibleFilterError, match="a CPU list is a text"):
        TESTS[name](["0"], "0")


def test_each_is_documented() -> None:
    documented = {path.stem for path in (ROOT / "plugins/test").glob("*.yml")}
    assert documented == set(TESTS)
