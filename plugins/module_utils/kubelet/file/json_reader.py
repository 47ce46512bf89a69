# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A configuration in JSON. Source: encoding/json (scanner.go, decode.go); sigs.k8s.io/json."""

from __future__ import annotations

import json
import re

from .nodes import FLOW, PLAIN, Duplicate, Member, Node, ReadError, YAMLError

_SPACE = re.compile(r"[ \t\r\n]*")


def read_json(text: str) -> Node:
    """The root of the text. Raises ReadError, mostly a YAMLError, which has the line and the column."""
    # In a text, Go takes what is no UTF-8 for this sign.
    return _Reader(re.sub("[\ud800-\udfff]", "\ufffd", text)).document()


class _Reader:
    """Reads JSON, and where each member stands."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.duplicates: list[Duplicate] = []
        self.decoder = json.JSONDecoder(object_pairs_hook=_joined, parse_constant=_no_constant)

    def document(self) -> Node:
        try:
            self.decoder.decode(self.text)
        except json.JSONDecodeError as error:
            raise self._error(error.lineno, error.colno, error.msg) from error
        except _ConstantError as error:
            raise ReadError("%s is no JSON" % error) from error
        except RecursionError as error:
            raise ReadError("too many collections in each other") from error
        except ReadError:
            raise
        except ValueError as error:  # an integer of thousands of digits
            raise ReadError(str(error)) from error
        return self._node(self._skip(0), "")._replace(duplicates=tuple(self.duplicates))

    def _error(self, line: int, column: int, what: str) -> YAMLError:
        return YAMLError(line, column, "no JSON, which the leading '{' announces: %s; is the file whole?" % what)

    def _node(self, start: int, path: str) -> Node:
        value, end = self.decoder.raw_decode(self.text, start)
        members: dict[str, Member] = {}
        if isinstance(value, dict):
            at = self._skip(start + 1)
            while self.text[at] != "}":
                key, key_end = self.decoder.raw_decode(self.text, at)
                colon = self._skip(key_end) + 1
                name = path + "." + key if path else key
                is_twice = key in members
                if is_twice:
                    line = self.text.count("\n", 0, at) + 1
                    self.duplicates.append(Duplicate(line, 'duplicate field "%s"' % name))
                    # So that the members stay in the order of the text.
                    del members[key]
                members[key] = Member(at, colon, self._node(self._skip(colon), name), is_twice)
                at = self._skip(members[key].node.end)
                if self.text[at] == ",":
                    at = self._skip(at + 1)
        elif isinstance(value, list):
            self._items(start, path)
        return Node(value, start, end, FLOW if isinstance(value, (dict, list)) else PLAIN, members)

    def _items(self, start: int, path: str) -> None:
        at, number = self._skip(start + 1), 0
        while self.text[at] != "]":
            at = self._skip(self._node(at, "%s[%d]" % (path, number)).end)
            number += 1
            if self.text[at] == ",":
                at = self._skip(at + 1)

    def _skip(self, at: int) -> int:
        space = _SPACE.match(self.text, at)
        return space.end() if space else at


def _joined(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Of a key that is there twice, Go decodes the one into the other."""
    members: dict[str, object] = {}
    for key, value in pairs:
        if key in members and None in (value, members[key]) and value != members[key]:
            raise ReadError("the key %r is there twice, once with a null; remove one of the two" % key)
        members[key] = _join(members[key], value) if key in members else value
    return members


def _join(first: object, second: object) -> object:
    if not isinstance(first, dict) or not isinstance(second, dict):
        return second
    return {**first, **{key: _join(first[key], value) if key in first else value for key, value in second.items()}}


class _ConstantError(Exception):
    """NaN or Infinity, which Python takes."""


def _no_constant(name: str) -> None:
    raise _ConstantError(name)
