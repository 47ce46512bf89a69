# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Types of Go: how encoding/json reads a value into each, and how spew prints it, of which the kubelet makes checksums.

A value is plain data: a struct is {name in JSON: value}, a pointer is what it leads to, nil is None.
Source: encoding/json (decode.go) and github.com/davecgh/go-spew (spew/format.go) with SpewKeys and SortKeys.
"""

from __future__ import annotations

from typing import Any, Mapping, NamedTuple, Sequence

from .golang import Number, Object

_KINDS = {Number: "number", str: "string", bool: "bool", list: "array", Object: "object"}
_NIL = "<nil>"
# No number of 64 bits is longer: int() of a text of many digits is slow.
_LONGEST = len(str(1 << 64))


class Place(NamedTuple):
    """Where a value stands: the struct around it, and the names of the fields that lead there."""

    struct: str = ""
    fields: tuple[str, ...] = ()


class Problems:
    """The first thing that is wrong with a text. Go reads on behind it."""

    def __init__(self) -> None:
        self.first = ""

    def add(self, found: str, type_name: str, place: Place) -> None:
        """Note a value that does not go into its type, in Go's words."""
        where = "Go struct field %s.%s" % (place.struct, ".".join(place.fields)) if place.fields else "Go value"
        self.first = self.first or "json: cannot unmarshal %s into %s of type %s" % (found, where, type_name)


class Type:
    """A type of Go; `name` is what Go prints for it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def zero(self) -> object:
        """The value of a variable to which nothing was assigned."""
        return None

    def read(self, value: object, before: object, problems: Problems, place: Place) -> object:
        """What becomes of the value `before` when the JSON value is read into it."""
        raise NotImplementedError

    def spew(self, value: object) -> str:
        """The value without its type."""
        raise NotImplementedError

    def typed(self, value: object) -> str:
        """The value behind its type."""
        return "(%s)%s" % (self.name, self.spew(value))

    def _wrong(self, value: object, before: object, problems: Problems, place: Place) -> object:
        problems.add(_KINDS[type(value)], self.name, place)
        return before


class Text(Type):
    """A string."""

    def zero(self) -> str:
        return ""

    def read(self, value: object, before: object, problems: Problems, place: Place) -> object:
        if value is None:
            return before
        is_text = isinstance(value, str) and not isinstance(value, Number)
        return value if is_text else self._wrong(value, before, problems, place)

    def spew(self, value: object) -> str:
        return str(value)


class Whole(Type):
    """A whole number of 64 bits or fewer, with a sign or without."""

    def __init__(self, name: str, signed: bool = False, bits: int = 64) -> None:
        super().__init__(name)
        self.signed = signed
        self.values = range(-(1 << bits - 1), 1 << bits - 1) if signed else range(1 << bits)

    def zero(self) -> int:
        return 0

    def read(self, value: object, before: object, problems: Problems, place: Place) -> object:
        if value is None:
            return before
        if not isinstance(value, Number):
            return self._wrong(value, before, problems, place)
        number = self.parse(value)
        if number is None:
            problems.add("number %s" % value, self.name, place)
            return before
        return number

    def parse(self, text: str) -> int | None:
        """The number of a text of digits; None where Go reads none."""
        digits = text[1:] if self.signed and text[:1] in ("-", "+") else text
        if not (digits.isascii() and digits.isdigit()) or len(digits.lstrip("0")) > _LONGEST:
            return None
        number = int(digits.lstrip("0") or "0") * (-1 if text[0] == "-" else 1)
        return number if number in self.values else None

    def spew(self, value: Any) -> str:
        return "%d" % value


class Pointer(Type):
    """A pointer; null makes it nil."""

    def __init__(self, to: Type) -> None:
        super().__init__("*" + to.name)
        self.to = to

    def read(self, value: object, before: object, problems: Problems, place: Place) -> object:
        if value is None:
            return None
        return self.to.read(value, self.to.zero() if before is None else before, problems, place)

    def spew(self, value: object) -> str:
        return _NIL if value is None else "<*>" + self.to.spew(value)


class Slice(Type):
    """A list; null makes it nil."""

    def __init__(self, of: Type, name: str = "") -> None:
        super().__init__(name or "[]" + of.name)
        self.of = of

    def read(self, value: Any, before: Any, problems: Problems, place: Place) -> object:
        if value is None:
            return None
        if not isinstance(value, list) or isinstance(value, Object):
            return self._wrong(value, before, problems, place)
        # Go reads into the elements that are there.
        old = [*(before or ()), *(self.of.zero() for _more in value)]
        return [self.of.read(item, element, problems, place) for item, element in zip(value, old)]

    def spew(self, value: Any) -> str:
        return _NIL if value is None else "[%s]" % " ".join(map(self.of.spew, value))


class Map(Type):
    """A map of texts, or with `keys` of numbers; null makes it nil, an object adds to it."""

    def __init__(self, name: str, of: Type, keys: Whole | None = None) -> None:
        super().__init__(name)
        self.of = of
        self.keys = keys

    def read(self, value: Any, before: Any, problems: Problems, place: Place) -> object:
        if value is None:
            return None
        if not isinstance(value, Object):
            return self._wrong(value, before, problems, place)
        found = {} if before is None else before
        for key, item in value:
            element = self.of.read(item, self.of.zero(), problems, place)
            number = key if self.keys is None else self.keys.parse(key)
            if number is None:
                problems.add("number " + key, "int", place)
            else:
                found[number] = element
        return found

    def spew(self, value: Any) -> str:
        if value is None:
            return _NIL
        keys = sorted(value, key=lambda key: key if self.keys else key.encode("utf-8"))
        return "map[%s]" % " ".join("%s:%s" % (key, self.of.spew(value[key])) for key in keys)


class Field(NamedTuple):
    """A field of a struct: its name in JSON and in Go, and its type.

    below: the name of the struct in the struct that has it, if there is one.
    """

    json: str
    go: str
    type: Type
    below: str = ""


class Struct(Type):
    """A struct; null leaves it as it is."""

    def __init__(self, name: str, fields: Sequence[Field]) -> None:
        super().__init__(name)
        self.fields = fields
        self.by_name: Mapping[str, Field] = {field.json: field for field in fields}

    def zero(self) -> dict[str, object]:
        return {field.json: field.type.zero() for field in self.fields}

    def read(self, value: Any, before: Any, problems: Problems, place: Place) -> Any:
        if value is None:
            return before
        if not isinstance(value, Object):
            return self._wrong(value, before, problems, place)
        for key, item in value:
            field = self.by_name.get(key) or self._in_any_case(key)
            if field is not None:
                path = (*place.fields, field.below, field.json) if field.below else (*place.fields, field.json)
                inner = Place(self.name.rpartition(".")[2], path)
                before[field.json] = field.type.read(item, before[field.json], problems, inner)
        return before

    def spew(self, value: Any) -> str:
        return "{%s}" % " ".join("%s:%s" % (field.go, field.type.typed(value[field.json])) for field in self.fields)

    def _in_any_case(self, key: str) -> Field | None:
        # Imported here: what a kubelet wrote has the names as they are.
        from .golang import folded

        name = folded(key)
        return next((field for field in self.fields if field.json.lower() == name), None)


TEXT = Text("string")
INT = Whole("int", signed=True)
UINT64 = Whole("uint64")
