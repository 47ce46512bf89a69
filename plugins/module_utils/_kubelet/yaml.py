# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A reader of the YAML that kubelet configurations are written in, which gives what the kubelet makes of it.

The nodes have Python's standard library and nothing else. This reader gives the value and, for an editor, where in
the text each value and each key stands. Scalars are read as in YAML 1.1: C(yes), C(y) and C(on) are booleans, C(010)
is 8, C(0-3) and C(10s) are texts, and a number without a fraction is an integer, also C(110.0), as it becomes JSON.
If a key occurs twice, the later value wins. Only the first document is read. This file reads what nearly all
files have; anything else, and what is wrong, is left to yaml_composer, which takes longer to load. Source:
sigs.k8s.io/yaml (goyaml.v2: resolve.go, decode.go, scannerc.go).
"""

from __future__ import annotations

import json
import re
from typing import Any

from .._base.startup import Pattern
from .yaml_nodes import (
    BLOCK,
    DOUBLE,
    EMPTY,
    FLOW,
    LARGE,
    PLAIN,
    SINGLE,
    WORDS,
    Anchor,
    Duplicate,
    ReadError,
    TextMember,
    TextNode,
    YAMLError,
    as_json,
    resolve,
)

# A configuration in JSON. Its source: encoding/json (scanner.go, decode.go), sigs.k8s.io/json.


_SPACE = re.compile(r"[ \t\r\n]*")


def read_json(text: str) -> TextNode:
    """Return the root of the text. Raises ReadError, mostly a YAMLError, which has the line and the column."""
    # In a text, Go takes what is no UTF-8 for this sign.
    return _JSONReader(re.sub("[\ud800-\udfff]", "\ufffd", text)).document()


class _JSONReader:
    """Reads JSON, and where each member stands."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.duplicates: list[Duplicate] = []
        self.decoder = json.JSONDecoder(object_pairs_hook=_joined, parse_constant=_no_constant)

    def document(self) -> TextNode:
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

    def _node(self, start: int, path: str) -> TextNode:
        value, end = self.decoder.raw_decode(self.text, start)
        members: dict[str, TextMember] = {}
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
                members[key] = TextMember(at, colon, self._node(self._skip(colon), name), is_twice)
                at = self._skip(members[key].node.end)
                if self.text[at] == ",":
                    at = self._skip(at + 1)
        elif isinstance(value, list):
            self._items(start, path)
        return TextNode(value, start, end, FLOW if isinstance(value, (dict, list)) else PLAIN, members)

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
    """Return the members of an object: of a key that is there twice, Go decodes the one into the other."""
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


def load(content: str | bytes) -> Any:
    """Return the value of the first document: dict, list, str, int, float, bool or None. Raises YAMLError."""
    return read(content).value


def read(content: str | bytes) -> TextNode:
    """Return the first document of a text or a file, with positions. Line breaks are as in the file. Raises
    YAMLError."""
    try:
        return _Reader(content if isinstance(content, str) else content.decode("ascii")).document()
    except (_RareError, UnicodeDecodeError):
        from .yaml_composer import read_rare

        return read_rare(content)[0]


def anchors(text: str) -> list[Anchor]:
    """Return all anchors of the first document, in the order in which their values end. Raises YAMLError."""
    from .yaml_composer import read_rare

    return read_rare(text)[1]


class _RareError(Exception):
    """The text has something that is rare, or wrong."""


_ODD = re.compile(r"[^\n\r -~]|\r(?!\n)")
_START = re.compile(r"(?: *(?:#[^\n]*)?\r?\n)*---(?: +#[^\n]*| *)\r?\n")
# Lines without a value, and the indentation of the next one.
_GAP = re.compile(r"(?: *(?:#[^\n]*)?\r?\n)*( *)(?:#[^\n]*\Z)?")
_DASH = re.compile(r"-(?: +|(?=\r?\n))")
_KEY = re.compile(
    r"""([A-Za-z_/][-\w./]{0,199}|'[^'\n]{0,199}'|"[^"\\\n]{0,199}") {0,99}:(?: +|(?=\r?\n|\Z))""", re.ASCII
)
_LINE_END = re.compile(r" *(?:(?<= )#[^\n]*)?(?:\r?\n|\Z)")
_PLAIN = re.compile(r"(?:[\w/.+~]|-(?=[^\s-]))(?:[^\s:#]|:(?!\s|\Z)|(?<! )#| +(?![ #\r\n]|\Z))*", re.ASCII)
_SINGLE = Pattern(r"'((?:[^'\r\n]|'')*)'")
_DOUBLE = Pattern(r'"([^"\\\r\n]*)"')
_FLOW_GAP = Pattern(r"[ \r\n]*")
_FLOW_PLAIN = Pattern(r"(?:[\w/+~]|-(?=\w)|\.(?!\.))(?:[^\s:#,?\[\]{}]|:(?![\s,?\[\]{}]|\Z)| +(?=[\w/.+~]))*", re.ASCII)
_FLOW_KEY = Pattern(
    r"""(?:([A-Za-z_/][-\w./]{0,199}) {0,99}:(?=[ \r\n])|('[^'\n]{0,199}'|"[^"\\\n]{0,199}"):)""", re.ASCII
)
_MAX_DEPTH = 20


class _Reader:
    """Reads one text from left to right; `at` is the offset of the next character, `column` that of a line's first."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = self.column = self.depth = 0

    def document(self) -> TextNode:
        if _ODD.search(self.text):
            raise _RareError
        self.at = self._end_of(_START)
        self._next_line()
        node = self._block()
        if self.at < len(self.text):
            raise _RareError
        return node

    def _end_of(self, pattern: re.Pattern[str] | Pattern) -> int:
        match = pattern.match(self.text, self.at)
        return match.end() if match else self.at

    def _take(self, pattern: re.Pattern[str] | Pattern) -> re.Match[str]:
        match = pattern.match(self.text, self.at)
        if not match:
            raise _RareError
        self.at = match.end()
        return match

    def _next_line(self) -> None:
        self.column = len(self._take(_GAP).group(1))
        if self.at == len(self.text):
            self.column = -1

    def _enter(self) -> None:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise _RareError

    def _block(self) -> TextNode:
        """Return the mapping or the list whose first line begins here."""
        self._enter()
        is_list = _DASH.match(self.text, self.at) is not None
        node = self._sequence() if is_list else self._mapping()
        self.depth -= 1
        # What stands between its column and that of what it is in belongs to nothing.
        if self.column > node.start - (self.text.rfind("\n", 0, node.start) + 1):
            raise _RareError
        return node

    def _mapping(self) -> TextNode:
        start, column = self.at, self.column
        members: dict[str, TextMember] = {}
        while self.column == column and not _DASH.match(self.text, self.at):
            key_start = self.at
            match = self._take(_KEY)
            key = _key(match.group(1), members)
            colon = self.text.index(":", match.end(1)) + 1
            members[key] = TextMember(key_start, colon, self._value(column, colon))
        return _mapping_node(members, start, BLOCK)

    def _value(self, column: int, colon: int) -> TextNode:
        """Return what follows a colon or a dash."""
        if self.text[self.at : self.at + 1] not in ("", "#", "\r", "\n"):
            return self._inline(column)
        self.at = colon
        self._take(_LINE_END)
        self._next_line()
        if self.column > column or (self.column == column and self.text[colon - 1] == ":" and self._at_dash()):
            return self._block()
        return TextNode(None, colon, colon, EMPTY, {})

    def _at_dash(self) -> bool:
        return _DASH.match(self.text, self.at) is not None

    def _inline(self, column: int) -> TextNode:
        """Return a value on the line of its key or dash, and that only."""
        node = self._flow_or_scalar(_PLAIN)
        self._take(_LINE_END)
        self._next_line()
        if self.column > column:
            raise _RareError
        return node

    def _sequence(self) -> TextNode:
        start, column = self.at, self.column
        items, end = [], start
        while self.column == column and self._at_dash():
            dash = self.at + 1
            match = self._take(_DASH)
            if _KEY.match(self.text, self.at):
                self.column = column + len(match.group())
                node = self._block()
            else:
                node = self._value(column, dash)
            items.append(node.value)
            end = node.end
        return TextNode(items, start, end, BLOCK, {})

    def _flow_or_scalar(self, plain: re.Pattern[str] | Pattern) -> TextNode:
        start, sign = self.at, self.text[self.at : self.at + 1]
        if sign in ("[", "{"):
            self._enter()
            node = self._flow_sequence() if sign == "[" else self._flow_mapping()
            self.depth -= 1
            return node
        if sign == "'":
            value = self._take(_SINGLE).group(1).replace("''", "'")
            return TextNode(value, start, self.at, SINGLE, {})
        if sign == '"':
            return TextNode(self._take(_DOUBLE).group(1), start, self.at, DOUBLE, {})
        return TextNode(_plain(self._take(plain).group()), start, self.at, PLAIN, {})

    def _flow_sequence(self) -> TextNode:
        start = self.at
        items: list[object] = []
        while self._more_in_flow("]", bool(items)):
            items.append(self._flow_or_scalar(_FLOW_PLAIN).value)
        return TextNode(items, start, self.at, FLOW, {})

    def _flow_mapping(self) -> TextNode:
        start = self.at
        members: dict[str, TextMember] = {}
        while self._more_in_flow("}", bool(members)):
            key_start = self.at
            match = self._take(_FLOW_KEY)
            key = _key(match.group(1) or match.group(2), members)
            colon = self.at
            self.at = self._end_of(_FLOW_GAP)
            members[key] = TextMember(key_start, colon, self._flow_or_scalar(_FLOW_PLAIN))
        return _mapping_node(members, start, FLOW, self.at)

    def _more_in_flow(self, closing: str, has_members: bool) -> bool:
        """Go to the next member, or behind the closing bracket."""
        if not has_members:
            self.at += 1
        self.at = self._end_of(_FLOW_GAP)
        if has_members and self.text[self.at : self.at + 1] == ",":
            self.at += 1
            self.at = self._end_of(_FLOW_GAP)
        elif has_members and self.text[self.at : self.at + 1] != closing:
            raise _RareError
        if self.text[self.at : self.at + 1] != closing:
            return True
        self.at += 1
        return False


def _mapping_node(members: dict[str, TextMember], start: int, style: str, end: int = 0) -> TextNode:
    values = {key: member.node.value for key, member in members.items()}
    return TextNode(values, start, end or max(member.node.end for member in members.values()), style, members)


def _key(written: str, members: dict[str, TextMember]) -> str:
    key = written[1:-1] if written[0] in "'\"" else written
    if key in members or (key in WORDS and key is written):
        raise _RareError
    return key


def _plain(text: str) -> object:
    try:
        value = resolve(text)
    except OverflowError:
        raise _RareError from None
    if isinstance(value, float) and not -LARGE < value < LARGE:
        raise _RareError
    return as_json(value)
