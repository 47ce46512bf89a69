# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The JSON that drop-ins are merged into, and the merge.

Source: cmd/kubelet/app/server.go (mergeKubeletConfigurations); encoding/json (omitempty); RFC 7396 as
github.com/evanphx/json-patch has it (merge.go).
"""

from __future__ import annotations

from typing import Any, Iterator, Mapping, Union

from ....golang import Number, Object, quote
from ..checks.amount import duration_text
from ..refusal import UnpredictableError
from .decode import DecodeError
from .field_table import DURATION, STRUCT, STRUCTS, GoType

_MAX_DEPTH = 64
_MAX_DUPLICATES = 100

# A place in a tree: (the place that it is in, its key or index).
_Place = Union["tuple[Any, Any]", None]


def plain(value: object, place: _Place, found: list[str], depth: int, path: str) -> Any:
    """A JSON value as Go has it in maps and lists. Adds what a strict decoder says of keys that are there twice.

    Raises DecodeError, and UnpredictableError for the file at `path`.
    """
    if depth > _MAX_DEPTH:
        raise UnpredictableError("more than %d collections in each other" % _MAX_DEPTH, path)
    if isinstance(value, Object):
        members: dict[str, Any] = {}
        for key, item in value:
            if key in members and len(found) < _MAX_DUPLICATES:
                text = "duplicate field " + quote("".join(_steps((place, key))).lstrip("."))
                found += [text] if text not in found else []
            members[key] = plain(item, (place, key), found, depth + 1, path)
        return members
    if isinstance(value, list):
        return [plain(item, (place, number), found, depth + 1, path) for number, item in enumerate(value)]
    if isinstance(value, Number):
        return _number(value)
    return value


def _steps(place: _Place) -> Iterator[str]:
    if place is not None:
        outer, key = place
        yield from _steps(outer)
        yield "[%d]" % key if isinstance(key, int) else "." + key


def _number(number: Number) -> int | float:
    if len(number) < 20 and not set(number) - set("-0123456789"):
        return int(number)
    value = float(number)
    if abs(value) == float("inf"):
        text = "json: cannot unmarshal number %s into Go value of type float64" % number
        raise DecodeError(text, "", "a number is out of range", "correct it")
    return value


def patched(target: object, patch: object) -> Any:
    """The target with a JSON merge patch: objects are merged, null removes, all else replaces."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = patched(merged.get(key), value)
    return merged


def encoded(struct: str, values: Mapping[str, object]) -> dict[str, Any]:
    """What Go makes JSON of: without what is empty, unless it is a pointer or a struct."""
    members: dict[str, object] = {}
    for name, value in values.items():
        field = STRUCTS[struct][name]
        if value or field.is_pointer or field.type.kind == STRUCT:
            members[name] = _encoded_value(field.type, value)
    return members


def _encoded_value(kind: GoType, value: Any) -> object:
    if kind.kind == DURATION:
        return duration_text(value)
    return encoded(kind.struct, value) if kind.kind == STRUCT else value


def filled(base: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON with defaults where it has nothing."""
    members = dict(base)
    for name, default in defaults.items():
        if name not in members:
            members[name] = default
        elif isinstance(default, dict) and isinstance(members[name], dict):
            members[name] = filled(members[name], default)
    return members
