# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/policy/dynamic_state.py: a state is read back as it was, and nothing else is read; the
moves to it. That every order of these is safe is in test_dynamic.py.
"""

from __future__ import annotations

import copy
import json
from typing import Any, Callable, Iterator, Sequence

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.dynamic_state import (
    ANNOUNCE,
    EXCLUSIVE,
    POOL,
    REMOVE,
    SHARE,
    ContainerFile,
    DynamicState,
    Held,
    KernelView,
    Move,
    moves_between,
    view_of,
)

STATE = DynamicState(
    0b11,
    {("u2", "b"): Held(0b1100, 0b111100, 0b110000, 46.5), ("u1", "a"): Held(0b1000000, 0b1000000)},
    {10.0: 0b1100, 41.5: 0b1000011},
)


def apply_moves(view: KernelView, moves: Sequence[Move]) -> Iterator[KernelView]:
    """Yield what there is after each of these steps."""
    shared, exclusive, files = view.shared, dict(view.exclusive), dict(view.files)
    for move in moves:
        if move.key is None:
            shared = move.cpus
        elif move.what == ANNOUNCE:
            files[move.key] = ContainerFile(move.cpus, move.until)
        elif move.what == EXCLUSIVE:
            exclusive[move.key] = move.cpus
        elif move.what == SHARE:
            del exclusive[move.key]
        else:
            del files[move.key]
        yield KernelView(shared, dict(exclusive), dict(files))


def test_a_state_is_read_back_from_json_in_its_order() -> None:
    restored = DynamicState.from_dict(json.loads(json.dumps(STATE.to_dict())))
    assert restored == STATE
    assert list(restored.containers) == list(STATE.containers)
    assert STATE.to_dict()["containers"][0] == {
        "pod": "u2",
        "container": "b",
        "admitted": "2-3",
        "cpus": "2-5",
        "leaving": "4-5",
        "until": 46.5,
    }


def test_what_it_comes_to() -> None:
    assert STATE.exclusive() == 0b1111100
    assert STATE.containers["u2", "b"].grown == 0
    assert Held(0b1100, 0b111100, 0b10000).grown == 0b100000


WRONG: dict[str, Callable[[Any], Any]] = {
    "version": lambda data: data.update(version=2),
    "policy": lambda data: data.update(policy="static"),
    "nothing": lambda data: data.clear(),
    "shared": lambda data: data.update(shared="3-1"),
    "no text": lambda data: data.update(shared=3),
    "overlaps the pool": lambda data: data.update(shared="0-2"),
    "overlaps another": lambda data: data["containers"][1].update(admitted="5", cpus="5"),
    "twice": lambda data: data["containers"].append(data["containers"][0]),
    "no CPUs": lambda data: data["containers"][1].update(admitted="", cpus=""),
    "admitted with others": lambda data: data["containers"][1].update(admitted="7"),
    "its first set leaves": lambda data: data["containers"][0].update(leaving="3-4"),
    "leaves when": lambda data: data["containers"][0].pop("until"),
    "no time": lambda data: data["containers"][0].update(until="soon"),
    "no end": lambda data: data["containers"][0].update(until=float("inf")),
    "true": lambda data: data["changed"][0].update(at=True),
    "no name": lambda data: data["containers"][0].update(pod=""),
    "rows": lambda data: data.update(containers=7),
    "row": lambda data: data.update(containers=["u1"]),
}


@pytest.mark.parametrize("damage", WRONG)
def test_what_is_damaged_is_refused(damage: str) -> None:
    data = copy.deepcopy(STATE.to_dict())
    WRONG[damage](data)
    with pytest.raises(InputError, match=r"^/var/lib/state: "):
        DynamicState.from_dict(data, "/var/lib/state")


@pytest.mark.parametrize("data", [None, [], "dynamic", 3])
def test_other_values_are_refused(data: Any) -> None:
    with pytest.raises(InputError):
        DynamicState.from_dict(data)


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
