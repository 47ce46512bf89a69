# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a member of a configuration can be, beside plain data."""

from __future__ import annotations

from typing import Any, Mapping, Sequence


class _Remove:
    __slots__ = ()

    def __repr__(self) -> str:
        return "REMOVE"


# In place of a value: the key goes.
REMOVE = _Remove()


def value_at(values: Any, path: Sequence[str]) -> Any:
    """What is at a path of keys; None where there is nothing, or no mapping on the way."""
    for key in path:
        values = values.get(key) if isinstance(values, Mapping) else None
    return values


def same(one: Any, other: Any) -> bool:
    """True when two values are equal and of the same types: 1, 1.0 and True differ."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)
