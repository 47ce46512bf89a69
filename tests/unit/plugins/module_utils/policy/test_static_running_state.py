# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/policy/static.py."""

from __future__ import annotations

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.static import RunningState
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State


def state() -> State:
    return State(CPUSet.parse("0-3"), {"u1": {"a": CPUSet.parse("4"), "b": CPUSet.parse("5-6")}, "u2": {"a": CPUSet()}})


def test_new() -> None:
    memory = RunningState()
    assert memory.snapshot() == State(CPUSet(), {})
    assert not memory.stored


def test_restored() -> None:
    memory = RunningState(state())
    assert memory.default == 0b1111
    assert memory.assignments == {"u1": {"a": 1 << 4, "b": 0b11 << 5}, "u2": {"a": 0}}
    assert memory.snapshot() == state()
    # Reading a file is no reason to write it.
    assert not memory.stored


def test_get() -> None:
    memory = RunningState(state())
    assert memory.get("u1", "b") == 0b11 << 5
    assert memory.get("u2", "a") == 0  # an empty set is not none
    assert memory.get("u2", "b") is None
    assert memory.get("u3", "a") is None


def test_set_default() -> None:
    memory = RunningState(state())
    memory.set_default(0b11)
    assert str(memory.snapshot().default_cpu_set) == "0-1"
    assert memory.stored


def test_set() -> None:
    memory = RunningState(state())
    memory.set("u1", "a", 0b1)
    memory.set("u3", "c", 0b10)
    assert memory.snapshot().assignments["u1"] == {"a": CPUSet([0]), "b": CPUSet([5, 6])}
    assert memory.snapshot().assignments["u3"] == {"c": CPUSet([1])}
    # The shared pool is the caller's.
    assert memory.default == 0b1111
    assert memory.stored


def test_delete() -> None:
    memory = RunningState(state())
    memory.delete("u1", "a")
    assert memory.assignments["u1"] == {"b": 0b11 << 5}
    assert memory.stored
    memory.delete("u1", "b")
    assert "u1" not in memory.assignments  # a pod without a container is none
    assert memory.default == 0b1111
    with pytest.raises(KeyError):
        memory.delete("u1", "a")


@pytest.mark.parametrize("pod", ["u1", "u2"])
def test_a_change_that_changes_nothing_is_stored_all_the_same(pod: str) -> None:
    memory = RunningState(state())
    memory.set(pod, "a", memory.assignments[pod]["a"])
    assert memory.stored
    assert memory.snapshot() == state()


def test_values_do_not_change_with_the_memory() -> None:
    before = state()
    memory = RunningState(before)
    snapshot = memory.snapshot()
    memory.set_default(0)
    memory.set("u1", "a", 0)
    memory.delete("u2", "a")
    assert before == snapshot == state()
