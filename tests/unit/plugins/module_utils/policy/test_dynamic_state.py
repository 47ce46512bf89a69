# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/policy/dynamic_state.py: a state is read back as it was, and nothing else is read."""

from __future__ import annotations

import copy
import json
from typing import Any, Callable

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.dynamic_state import DynamicState, Held

STATE = DynamicState(
    0b11,
    {("u2", "b"): Held(0b1100, 0b111100, 0b110000, 46.5), ("u1", "a"): Held(0b1000000, 0b1000000)},
    {10.0: 0b1100, 41.5: 0b1000011},
)


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
