# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How Go makes a KubeletConfiguration of JSON values, and what it says of those that do not fit.

Go goes on behind a value of a wrong type and reports the first one in the end. A type that reads its JSON itself, as
a duration does, ends the decoding at once when it fails. In a --config file upper and lower case count in names; in
what drop-ins are merged into they do not, and of several spellings the later one is decoded into the earlier one.
Source: encoding/json (decode.go); sigs.k8s.io/json; k8s.io/apimachinery (Duration, Quantity, Time).
"""

from __future__ import annotations

import re
from typing import Any, Callable, Mapping

from ....golang import Number, quote
from ....quantity import MAX_DURATION
from .field_table import (
    BOOL,
    DURATION,
    FLOAT,
    FLUSH_DURATION,
    INT32,
    INT64,
    KUBELET_CONFIGURATION,
    LIST,
    MAP,
    QUANTITY,
    STRING,
    STRUCT,
    STRUCTS,
    TIME,
    UINT32,
    Field,
    GoType,
    find_field,
)
from .go_values import (
    SPACES,
    is_object,
    kind_of,
    number_text,
    pairs,
    parse_duration,
    quantity_fault,
    time_fault,
)

# The first Go version that names embedded structs in errors came with this minor version of Kubernetes.
_EMBEDDED_SINCE = 33

_RANGES = {INT32: (-(1 << 31), 1 << 31), INT64: (-(1 << 63), 1 << 63), UINT32: (0, 1 << 32)}
_INTEGER = re.compile(r"-?[0-9]{1,20}")

_WRITE_DURATION = "write it with its unit, as in 10s, 1m30s or 500ms"
_WRITE_QUANTITY = "write CPUs as 2 or 500m, memory as 1Gi"


class DecodeError(Exception):
    """Go does not decode this. `text` is what it says, `where` the path of the field; the rest is for people."""

    def __init__(self, text: str, where: str, cause: str, remedy: str) -> None:
        super().__init__(text)
        self.text = text
        self.where = where
        self.cause = cause
        self.remedy = remedy


def decode_file(tree: object, minor: int) -> dict[str, Any]:
    """The fields of a --config file. Raises DecodeError.

    A duration becomes its nanoseconds; what is absent, or null where Go has a pointer, a map or a list, is left out.
    """
    return _Decoder(minor, False).decode(tree)


def decode_merged(tree: object, minor: int) -> dict[str, Any]:
    """The same of what drop-ins were merged into."""
    return _Decoder(minor, True).decode(tree)


class _Decoder:
    """Decodes one configuration.

    `stack` is where it is in Go's words, `place` the same for people; `saved` is the first value of a wrong type.
    """

    def __init__(self, minor: int, folds: bool) -> None:
        self.minor = minor
        self.folds = folds
        self.struct = ""
        self.stack: list[str] = []
        self.place: list[str] = []
        self.key = ""
        self.saved: DecodeError | None = None

    def decode(self, tree: object) -> dict[str, object]:
        values = self._members(KUBELET_CONFIGURATION, tree, {})
        if self.saved:
            raise self.saved
        return values

    def _members(self, struct: str, value: object, current: Mapping[str, object]) -> dict[str, object]:
        members = dict(current)
        outer, depth = self.struct, len(self.stack)
        for key, item in pairs(value):
            name = find_field(struct, key, self.minor, self.folds)
            if name is None:
                continue
            field = STRUCTS[struct][name]
            if field.embedded and self.folds and self.minor >= _EMBEDDED_SINCE:
                self.stack.append(field.embedded)
            self.stack.append(name)
            self.place.append(name)
            self.struct, self.key = struct, ""
            decoded = self._field(field, item, members.get(name))
            if decoded is None:
                members.pop(name, None)
            else:
                members[name] = decoded
            del self.stack[depth:]
            self.place.pop()
        self.struct = outer
        return members

    def _field(self, field: Field, value: object, current: object) -> object:
        if value is None and field.is_pointer:
            return None
        return self._value(field.type, value, current)

    def _value(self, kind: GoType, value: object, current: object) -> Any:
        return _DECODERS[kind.kind](self, kind, value, current)

    # Each of these gives the value that Go has then, which is the current one where a value does not fit.

    def _string(self, kind: GoType, value: object, current: object) -> object:
        if value is None or (isinstance(value, str) and not isinstance(value, Number)):
            return current if value is None else value
        return self._save(kind, value, current)

    def _bool(self, kind: GoType, value: object, current: object) -> object:
        if value is None or isinstance(value, bool):
            return current if value is None else value
        return self._save(kind, value, current)

    def _integer(self, kind: GoType, value: object, current: object) -> object:
        if value is None:
            return current
        if kind_of(value) == "number":
            text = number_text(value)
            first, end = _RANGES[kind.kind]
            if _INTEGER.fullmatch(text) and first <= int(text) < end and (kind.kind != UINT32 or text[0] != "-"):
                return int(text)
            return self._save(kind, value, current, " " + text)
        return self._save(kind, value, current)

    def _float(self, kind: GoType, value: Any, current: Any) -> object:
        # A null comes to pointers only.
        if kind_of(value) == "number":
            number = float(value)
            if abs(number) != float("inf"):
                return number
            return self._save(kind, value, current, " " + number_text(value))
        return self._save(kind, value, current)

    def _duration(self, _kind: GoType, value: Any, _current: Any) -> object:
        if kind_of(value) != "string" and value is not None:
            raise self._mismatch("string", value, _WRITE_DURATION)
        return self._parsed_duration(value or "")

    def _flush_duration(self, _kind: GoType, value: Any, current: Any) -> object:
        """A text, or a number of nanoseconds."""
        if value is None or kind_of(value) == "string":
            return current if value is None else self._parsed_duration(value)
        text = number_text(value)
        if kind_of(value) == "number" and _INTEGER.fullmatch(text) and -MAX_DURATION <= int(text) < MAX_DURATION:
            return int(text)
        said = "json: cannot unmarshal %s into Go value of type time.Duration"
        if kind_of(value) == "number":
            said = "invalid duration %s: %s" % (quote(text), said % ("number " + text))
        elif isinstance(value, bool):
            said = "invalid duration %s: %s" % (quote(str(value).lower()), said % "bool")
        else:
            said %= kind_of(value)
        raise self._error(said, "it is no duration", _WRITE_DURATION)

    def _parsed_duration(self, text: str) -> int:
        nanoseconds, fault = parse_duration(text)
        if fault:
            raise self._error(fault, "it is no duration" if text else "there is no duration", _WRITE_DURATION)
        return nanoseconds

    def _quantity(self, _kind: GoType, value: object, _current: object) -> object:
        if value is None:
            return "0"
        is_bare = kind_of(value) in ("string", "number")
        text = (value if isinstance(value, str) else number_text(value)).strip(SPACES) if is_bare else ""
        fault = quantity_fault(text)
        if fault:
            raise self._error(fault, "it is no quantity", _WRITE_QUANTITY)
        return text if any(digit in text for digit in "0123456789") else "0"

    def _time(self, _kind: GoType, value: Any, _current: Any) -> Any:
        if kind_of(value) != "string":
            raise self._mismatch("string", value, "write it as 2026-01-31T12:00:00Z")
        fault = time_fault(value)
        if fault:
            raise self._error(fault, "it is no time", "write it as 2026-01-31T12:00:00Z")
        return value

    def _map(self, kind: GoType, value: Any, current: Any) -> object:
        if value is None:
            return None
        if not is_object(value):
            return self._save(kind, value, current)
        members = dict(current or {})
        for key, item in pairs(value):
            self.key = key
            members[key] = self._value(kind.item, item, _zero(kind.item)) or _zero(kind.item)
        self.key = ""
        return members

    def _list(self, kind: GoType, value: Any, current: Any) -> Any:
        if value is None:
            return None
        if is_object(value) or not isinstance(value, list):
            return self._save(kind, value, current)
        items = []
        here = self.place[-1]
        for number, item in enumerate(value):
            if not self.key:
                self.place[-1] = "%s[%d]" % (here, number)
            # Go decodes into the item that is there.
            before = current[number] if current and number < len(current) else _zero(kind.item)
            decoded = self._value(kind.item, item, before)
            items.append({**_zero(kind.item), **decoded} if kind.item.kind == STRUCT else decoded)
        self.place[-1] = here
        return items

    def _struct(self, kind: GoType, value: Any, current: Any) -> object:
        if value is None:
            return current
        if not is_object(value):
            return self._save(kind, value, current)
        return self._members(kind.struct, value, current or {})

    # --- errors ---

    def _save(self, kind: GoType, value: object, current: object, number: str = "") -> Any:
        if self.saved is None:
            self.saved = self._mismatch(kind.name, value, _remedy(kind, value), number)
        return current

    def _mismatch(self, wanted: str, value: object, remedy: str, number: str = "") -> DecodeError:
        found = kind_of(value)
        text = "json: cannot unmarshal %s%s into Go struct field %s.%s of type %s"
        text %= (found, number, self.struct, ".".join(self.stack), wanted)
        cause = "it is %s%s, and the kubelet wants %s" % (_a(found), number, _a(wanted))
        return self._error(text, cause, remedy)

    def _error(self, text: str, cause: str, remedy: str) -> DecodeError:
        return DecodeError(text, ".".join([*self.place, *([self.key] if self.key else [])]), cause, remedy)


def _remedy(kind: GoType, value: object) -> str:
    if kind.kind == BOOL:
        return "write true or false"
    if kind.kind == STRING and kind_of(value) in ("bool", "number"):
        text = str(value).lower() if isinstance(value, bool) else number_text(value)
        return 'put it in quotes, as in "%s"' % text
    if kind.kind in (MAP, STRUCT):
        return "write a mapping"
    return "write a list" if kind.kind == LIST else "write %s" % _a(kind.name)


def _a(name: str) -> str:
    return "an " + name if name[0] in "aio" else "a " + name


_ZEROS: dict[str, Any] = {STRING: "", BOOL: False, INT32: 0, INT64: 0, UINT32: 0, FLOAT: 0.0, QUANTITY: "0"}


def _zero(kind: GoType) -> Any:
    """What Go has where nothing is decoded into an item."""
    if kind.kind == STRUCT:
        fields = STRUCTS[kind.struct].items()
        return {name: _zero(field.type) for name, field in fields if not field.is_pointer}
    return {} if kind.kind == MAP else [] if kind.kind == LIST else _ZEROS[kind.kind]


_DECODERS: dict[str, Callable[[_Decoder, GoType, Any, Any], Any]] = {
    STRING: _Decoder._string,
    BOOL: _Decoder._bool,
    INT32: _Decoder._integer,
    INT64: _Decoder._integer,
    UINT32: _Decoder._integer,
    FLOAT: _Decoder._float,
    DURATION: _Decoder._duration,
    FLUSH_DURATION: _Decoder._flush_duration,
    QUANTITY: _Decoder._quantity,
    TIME: _Decoder._time,
    MAP: _Decoder._map,
    LIST: _Decoder._list,
    STRUCT: _Decoder._struct,
}
