# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/policy/moves.py; that every order of them is safe is in test_dynamic.py."""

from __future__ import annotations

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.dynamic_state import DynamicState, Held
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.moves import (
    ANNOUNCE,
    EXCLUSIVE,
    POOL,
    REMOVE,
    SHARE,
    ContainerFile,
    KernelView,
    Move,
    apply_moves,
    moves_between,
    view_of,
)

A, B = ("u1", "a"), ("u2", "b")


def test_nothing_to_do() -> None:
    state = DynamicState(0b11, {A: Held(0b100, 0b1100, 0b1000, 5.0)})
    assert view_of(state) == KernelView(0b11, {A: 0b1100}, {A: ContainerFile(0b100, 5.0)})
    assert moves_between(view_of(state), state) == []


def test_a_first_set_comes_out_of_the_pool_before_it_is_given_and_is_announced_after() -> None:
    state = DynamicState(0b11, {A: Held(0b1100, 0b1100)})
    assert moves_between(KernelView(0b1111), state) == [
        Move(POOL, None, 0b11),
        Move(EXCLUSIVE, A, 0b1100),
        Move(ANNOUNCE, A, 0b1100),
    ]


def test_what_leaves_is_announced_before() -> None:
    before = KernelView(0b11, {A: 0b1100}, {A: ContainerFile(0b1100)})
    leaving = DynamicState(0b11, {A: Held(0b100, 0b1100, 0b1000, 9.0)})
    assert moves_between(before, leaving) == [Move(ANNOUNCE, A, 0b100, 9.0)]
    # Without a delay, too: the file, the kernel, and then the pool.
    left = DynamicState(0b1011, {A: Held(0b100, 0b100)})
    assert moves_between(before, left) == [
        Move(ANNOUNCE, A, 0b100),
        Move(EXCLUSIVE, A, 0b100),
        Move(POOL, None, 0b1011),
    ]


def test_one_shrinks_before_the_other_grows() -> None:
    before = KernelView(0b1, {A: 0b110, B: 0b1000}, {A: ContainerFile(0b110), B: ContainerFile(0b1000)})
    state = DynamicState(0b1, {A: Held(0b10, 0b10), B: Held(0b1000, 0b1100)})
    assert [move.to_dict() for move in moves_between(before, state)] == [
        {"what": "announce", "pod": "u1", "container": "a", "cpus": "1"},
        {"what": "exclusive", "pod": "u1", "container": "a", "cpus": "1"},
        {"what": "exclusive", "pod": "u2", "container": "b", "cpus": "2-3"},
        {"what": "announce", "pod": "u2", "container": "b", "cpus": "2-3"},
    ]


def test_a_set_that_was_replaced_as_a_whole_is_shared_in_between() -> None:
    before = KernelView(0b1, {A: 0b10}, {A: ContainerFile(0b10)})
    state = DynamicState(0b11, {A: Held(0b100, 0b100)})
    moves = moves_between(before, state)
    assert [move.what for move in moves] == [SHARE, POOL, EXCLUSIVE, ANNOUNCE]
    assert next(apply_moves(before, moves)).exclusive == {}


def test_files_of_containers_that_ended_are_removed() -> None:
    before = KernelView(0b1, {}, {A: ContainerFile(0b10)})
    assert moves_between(before, DynamicState(0b11)) == [Move(POOL, None, 0b11), Move(REMOVE, A)]


def test_steps_change_nothing_but_their_own() -> None:
    before = KernelView(0b11, {A: 0b1100}, {A: ContainerFile(0b1100)})
    views = list(apply_moves(before, [Move(ANNOUNCE, A, 0b100, 3.0), Move(EXCLUSIVE, A, 0b100), Move(REMOVE, A)]))
    assert before == KernelView(0b11, {A: 0b1100}, {A: ContainerFile(0b1100)})
    assert views == [
        KernelView(0b11, {A: 0b1100}, {A: ContainerFile(0b100, 3.0)}),
        KernelView(0b11, {A: 0b100}, {A: ContainerFile(0b100, 3.0)}),
        KernelView(0b11, {A: 0b100}, {}),
    ]


@pytest.mark.parametrize("until", [None, 3.0])
def test_until_is_shown_where_there_is_one(until: float | None) -> None:
    assert ("until" in Move(ANNOUNCE, A, 1, until).to_dict()) is (until is not None)
