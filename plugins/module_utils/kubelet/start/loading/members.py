# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The members of a configuration that do not count, or not as they may be meant to.

Source: sigs.k8s.io/json (kubernetes_patch.go): what its strict decoder lists; encoding/json (decode.go).
"""

from __future__ import annotations

from typing import Any, Iterator, NamedTuple

from ....golang import Object
from .field_table import KUBELET_CONFIGURATION, LIST, MAP, STRUCT, STRUCTS, GoType, find_field
from .go_values import is_object, pairs

UNKNOWN, DUPLICATE, SPELLING = "unknown", "duplicate", "spelling"

# As many as Go lists.
_MOST = 100


class Member(NamedTuple):
    """A member that is odd.

    `problem`: no field has its name; its object has it already; or, where upper and lower case do not count, it is
    a `field` in another spelling, of which several may be there. `struct` is the Go struct that it is in.
    """

    problem: str
    path: str
    key: str
    struct: str
    field: str = ""


def odd_members(tree: object, minor: int, folds: bool) -> list[Member]:
    """The odd members of a configuration, in its order. `folds`: upper and lower case do not count."""
    members = _Walk(minor, folds).struct(KUBELET_CONFIGURATION, tree, "")
    return [member for member, _number in zip(members, range(_MOST))]


class _Walk:
    """A walk through a configuration, as deep as Go's types are."""

    def __init__(self, minor: int, folds: bool) -> None:
        self.minor = minor
        self.folds = folds

    def struct(self, struct: str, value: Any, path: str) -> Iterator[Member]:
        prefix = path + "." if path else ""
        seen = set()
        for key, item in pairs(value):
            name = find_field(struct, key, self.minor, self.folds)
            if name is None:
                yield Member(UNKNOWN, prefix + key, key, struct)
                continue
            if key in seen:
                yield Member(DUPLICATE, prefix + key, key, struct, name)
            elif name != key:
                yield Member(SPELLING, prefix + key, key, struct, name)
            seen.add(key)
            yield from self._value(STRUCTS[struct][name].type, item, prefix + name)

    def _value(self, kind: GoType, value: object, path: str) -> Iterator[Member]:
        if kind.kind == STRUCT and is_object(value):
            yield from self.struct(kind.struct, value, path)
        elif kind.kind == LIST and isinstance(value, list) and not is_object(value):
            for number, item in enumerate(value):
                yield from self._value(kind.item, item, "%s[%d]" % (path, number))
        elif kind.kind == MAP and isinstance(value, Object):
            seen = set()
            for key, _item in value:
                if key in seen:
                    yield Member(DUPLICATE, "%s.%s" % (path, key), key, "")
                seen.add(key)
