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


def value_at(values: object, path: Sequence[str]) -> Any:
    """What is at a path of keys; None where there is nothing, or no mapping on the way."""
    for key in path:
        values = values.get(key) if isinstance(values, Mapping) else None
    return values


def same(left: Any, right: Any) -> bool:
    """True when two values are equal and of the same types: 1, 1.0 and True differ."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(value, right[key]) for key, value in left.items())
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)
