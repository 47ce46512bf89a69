# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A strict reader of the YAML that kubelet configurations are written in.

The nodes have Python's standard library and nothing else. This reader gives the value and, for an editor,
where in the text each value and each key stands. Anchors, aliases and merge keys are followed; each alias has a copy.
Scalars are read as the kubelet reads them (sigs.k8s.io/yaml, YAML 1.1): C(yes) and C(on) are booleans, C(0-3) and
C(10s) are texts, and a number without a fraction is an integer, also C(110.0) and C(1.1e2), as it becomes JSON.
Refused is what is rare and mostly a mistake: C(010), C(y) and C(2026-01-01), tags, several documents, duplicate keys,
keys that are no texts, anchors of keys. What this reader does not know for sure is a YAMLError.
Source: sigs.k8s.io/yaml (goyaml.v2: resolve.go, decode.go, scannerc.go).
"""

from __future__ import annotations

import re
from copy import deepcopy
from typing import Any, Callable, NamedTuple

from ..pattern import Pattern

# How a value is written: the collections, the scalars, and nothing at all (C(key:), a null).
BLOCK, FLOW = "block", "flow"
PLAIN, SINGLE, DOUBLE, LITERAL = "plain", "single-quoted", "double-quoted", "literal"
EMPTY = "empty"
# An alias; and in flow style, nothing behind a key that has no colon either, as in C({a, b}).
ALIAS, ALONE = "alias", "alone"


class ReadError(ValueError):
    """The text cannot be read. `is_broken`: the kubelet refuses it, too; else only this reader does."""

    def __init__(self, what: str, is_broken: bool = False) -> None:
        super().__init__(what)
        self.is_broken = is_broken


class YAMLError(ReadError):
    """The text is broken, or uses what this reader refuses. `line` and `column` count from 1."""

    def __init__(self, line: int, column: int, what: str, is_broken: bool = False) -> None:
        super().__init__("line %d, column %d: %s" % (line, column, what), is_broken)
        self.line = line
        self.column = column


class Node(NamedTuple):
    """One value, written as text[start:end]; neither the comment behind it nor its last line break belongs to it.

    An EMPTY node starts and ends behind its key's colon. Only mappings have members, in the order of the text;
    what their merge key gives is in the value only. A node with an anchor starts behind that.
    """

    value: Any
    start: int
    end: int
    style: str
    members: dict[str, Member]
    # The merge key, '<<'.
    merge: Member | None = None


class Member(NamedTuple):
    """One key of a mapping: where the key starts, the offset behind its colon, and its value."""

    start: int
    colon: int
    node: Node


class Anchor(NamedTuple):
    """A value with a name: its '&' is at `start`, the name ends at `name_end` and the value at `end`."""

    start: int
    name_end: int
    end: int
    # Where the '*' are that stand for the value.
    aliases: list[int]


def load(text: str) -> Any:
    """The value of the one document in `text`: dict, list, str, int, float, bool or None. Raises YAMLError."""
    return read(text).value


def read(text: str) -> Node:
    """The one document in `text`, with positions. Line breaks are LF or CRLF, as in the file. Raises YAMLError."""
    return _Reader(text).document()


def anchors(text: str) -> list[Anchor]:
    """All anchors of the one document in `text`, in the order in which their values end. Raises YAMLError."""
    reader = _Reader(text)
    reader.document()
    return reader.anchors


_WORDS = {
    **dict.fromkeys(("true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"), False),
    **dict.fromkeys(("~", "null", "Null", "NULL")),
}
# Booleans to the kubelet only; the special keys of YAML 1.1; no JSON numbers.
_DISPUTED = frozenset(("y", "Y", "n", "N", "<<", "=")) | frozenset(
    sign + word for word in (".inf", ".Inf", ".INF", ".nan", ".NaN", ".NAN") for sign in ("", "+", "-")
)
_INTEGER = Pattern(r"[-+]?(?:0|[1-9][0-9]{0,19})")
_FLOAT = Pattern(r"[-+]?(?:\.[0-9]+|[0-9]+\.[0-9]*|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?")
# Go's integers end here.
_LARGE = 1 << 63
# What some reader takes for a number or a date once its underscores are gone: octal, base 60.
_NUMBER_TO_SOME = Pattern(
    r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
    r"|[-+]?0[xXoObB][-+]?[0-9a-fA-F]*"
    r"|[-+]?[0-9]+(?::[0-5]?[0-9])+(?:\.[0-9]*)?"
    r"|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt ].*)?"
)

# Not text, or a line break to some readers only: a lone CR, NEL, LS, PS. A byte order mark is for the first place.
_UNREADABLE = "[^\t\r\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]|\r(?!\n)"
_UNREADABLE_ASCII = Pattern("[^\t\r\n\x20-\x7e]|\r(?!\n)")
# No control characters: what some readers take for a line break.
_LINE_BREAKS_TO_SOME = "\r\x85"
# Spaces, line breaks and comments. A '#' inside a word starts none.
_GAP = Pattern(r"(?:[ ]+|\r?\n|(?<![^ \t\r\n\ufeff])#[^\r\n]*)*")
# Inside of brackets tabs are like spaces; outside, where no key can start.
_GAP_IN_FLOW = Pattern(r"(?:[ \t]+|\r?\n|(?<![^ \t\r\n\ufeff])#[^\r\n]*)*")
_BLANKS = Pattern(r"[ \t]*")
_LINE_END = Pattern(r"[ \t]*(?:(?<=[ \t])#[^\r\n]*)?(?=\r?\n|\Z)")
_MARKER = Pattern(r"(?:---|\.\.\.)(?=[ \t\r\n]|\Z)")
_DIRECTIVE = Pattern(r"%YAML 1\.1")
_DASH = Pattern(r"-(?=[ \t\r\n]|\Z)")
_COLON = Pattern(r"[ \t]*:(?=[ \t\r\n]|\Z)")
_COLON_BEHIND_QUOTES = Pattern(r"[ \t]*:")
# A name, and nothing of which some reader does not know whether it belongs to it.
_NAME = Pattern(r"[&*]([-0-9A-Za-z_]+)(?=[ \t\r\n,\]}]|\Z)")
_MERGE = Pattern(r"<<(?=[ \t]*:(?:[ \t\r\n]|\Z))")
# One line of a plain scalar: up to ': ' or ' #' and, inside brackets, up to their signs.
_PLAIN_LINE = Pattern(r"(?:[^ \t\r\n:#]+|:(?![ \t\r\n]|\Z)|(?<![ \t\r\n])#|[ \t]+(?![ \t#]))*")
_PLAIN_LINE_IN_FLOW = Pattern(r"(?:[^ \t\r\n:#,?\[\]{}]+|:(?![ \t\r\n,?\[\]{}]|\Z)|(?<![ \t\r\n])#|[ \t]+(?![ \t#]))*")
_PLAIN_FOLD = Pattern(r"[ \t]*(?:\r?\n *)+")
_FOLD = Pattern(r"[ \t]*(?:\r?\n[ \t]*)+")
_CONTINUATION = Pattern(r"\n( *)(?=[^ \r\n])")
_SINGLE_QUOTED = Pattern(r"'((?:[^']|'')*)'")
_DOUBLE_QUOTED = Pattern(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_ESCAPE_OR_FOLD = Pattern(
    r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(\r?\n[ \t]*(?:\r?\n[ \t]*)*)|(.))|" + _FOLD.pattern
)
_ESCAPES = {
    "0": "\0", "a": "\a", "b": "\b", "t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r", "e": "\x1b", " ": " ",
    '"': '"', "\\": "\\", "N": "\x85", "_": "\xa0", "L": "\u2028", "P": "\u2029",
}  # fmt: skip
_BLOCK_HEADER = Pattern(r"([|>])(?:([-+])([1-9])?|([1-9])([-+])?)?")
_BLANK_LINES = Pattern(r"(?: *\r?\n)* *")
_REST_OF_LINE = Pattern(r"[^\r\n]*")
_BREAK = Pattern(r"\r?\n")

_REFUSED = {
    "&": "found an anchor where this reader expects none; remove it, or put the value in quotes if it is a text",
    "*": "found an alias where this reader expects none; write the value out, or put it in quotes if it is a text",
    "!": "found a tag, which this reader does not know; remove it, or put the value in quotes if it is a text",
}
_TAB = "found a tab; use spaces"
_MERGE_KEY = "<<"
_TWO_NAMES = "an alias or a second anchor cannot have an anchor; remove one of the two"
_UNCLOSED_QUOTE = "the quote that opens here is never closed; is the file whole?"
_QUOTE = "put a text in quotes, write a number in decimal digits"
_NO_PLAIN_START = frozenset(("", *",[]{}#|>%@`"))
_CLOSING = {"[": "]", "{": "}"}
_MAX_DEPTH = 50
# YAML's own limit is 1024.
_MAX_KEY = 1000
# How many values all aliases together may stand for: a few lines can stand for billions.
_MAX_COPIES = 10000


class _Reader:
    """Reads one text from left to right; `at` is the offset of the next character."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.first = self.at = 1 if text.startswith("\ufeff") else 0
        self.depth = 0
        self.anchors: list[Anchor] = []
        # What the names stand for; None where the value has not ended yet.
        self.named: dict[str, tuple[Anchor, Any] | None] = {}
        self.copies = 0

    def document(self) -> Node:
        # The whole of Unicode takes milliseconds to compile; nearly all files are ASCII.
        unreadable_here = _UNREADABLE_ASCII if self.text.isascii() else re.compile(_UNREADABLE)
        unreadable = unreadable_here.search(self.text, self.at)
        if unreadable:
            character = unreadable.group()
            is_broken = character < "\xa0" and character not in _LINE_BREAKS_TO_SOME
            raise self._error("found the character %a; remove it" % character, unreadable.start(), is_broken)
        self._skip()
        directive = self._peek() == "%" and self._column() == 0
        if directive:
            self._take(_DIRECTIVE, "found %s, a directive; only '%YAML 1.1' is known")
            self._end_line()
            self._skip()
        explicit = self._at_marker("---")
        if directive and not explicit:
            raise self._error("expected '---' after the directive, found %s" % self._found())
        if explicit:
            self.at += len("---")
        node = self._value(-1, after="---" if explicit else "")
        self._skip()
        if self._at_marker("...") and (explicit or node.style != EMPTY):
            self.at += len("...")
            self._end_line()
            self._skip()
        if self._at_marker():
            raise self._error("found a further document; keep one document in the file")
        if self.at < len(self.text):
            raise self._error("found %s, which belongs to nothing above it; check the indentation" % self._found())
        return node

    # --- blocks: structure by indentation --------------------------------------------------------

    def _value(self, indent: int, after: str, anchored: bool = False) -> Node:
        """What follows the ':', '-' or '---' of a collection at column `indent`, or its anchor."""
        here = self.at
        if after != "-":
            self.at = _BLANKS.end(self.text, here)
        self._skip()
        own_line = not after or "\n" in self.text[here : self.at]
        # The dashes of a list may stand right below its key.
        inside = self._column() > indent or (after == ":" and self._column() == indent and self._at_dash())
        if self._ended() or (own_line and not inside):
            return Node(None, here, here, EMPTY, {})
        if self._peek() == "&" and not anchored:
            return self._named(lambda: self._value(indent, after if after == ":" else "---", anchored=True))
        if self._peek() in ("&", "*") and anchored:
            raise self._error(_TWO_NAMES, is_broken=True)
        return self._node(indent, own_line or (after == "-" and not anchored), anchored)

    def _node(self, indent: int, block_allowed: bool, anchored: bool) -> Node:
        start = self.at
        if self._at_dash():
            if not block_allowed:
                raise self._error("found a list on the line of its key; start it on the next line", is_broken=True)
            return self._sequence()
        if self._peek() in ("|", ">"):
            return self._block_scalar(indent)
        if block_allowed and _MERGE.match(self.text, start):
            return self._mapping()
        node = self._flow_node(indent)
        if node.style not in (FLOW, EMPTY) and _COLON.match(self.text, self.at):
            if block_allowed:
                self.at = start
                return self._mapping()
            if anchored:
                raise self._error("found the anchor of a key; write the anchor behind the key's colon", start)
        self._end_line()
        return node

    def _named(self, read_value: Callable[[], Node]) -> Node:
        """An anchor and its value."""
        start = self.at
        name = self._name("an anchor")
        self.named[name], name_end = None, self.at
        node = read_value()
        anchor = Anchor(start, name_end, node.end, [])
        self.anchors.append(anchor)
        self.named[name] = anchor, node.value
        return node

    def _alias(self) -> Node:
        start = self.at
        name = self._name("an alias")
        if name not in self.named:
            raise self._error("the alias *%s has no anchor &%s above it" % (name, name), start, is_broken=True)
        found = self.named[name]
        if found is None:
            raise self._error("the alias *%s stands inside of what it is to repeat" % name, start, is_broken=True)
        anchor, value = found
        anchor.aliases.append(start)
        size, depth = _extent(value)
        self.copies += size
        if self.copies > _MAX_COPIES:
            raise self._error("the aliases stand for more than %d values; write them out" % _MAX_COPIES, start)
        if self.depth + depth > _MAX_DEPTH:
            raise self._error("more than %d collections in each other" % _MAX_DEPTH, start)
        # A copy, so that one of them can be changed.
        return Node(deepcopy(value), start, self.at, ALIAS, {})

    def _name(self, what: str) -> str:
        name: str = self._take(
            _NAME, "expected the name of %s, of letters, digits, '-' and '_', found %%s" % what
        ).group(1)
        return name

    def _mapping(self) -> Node:
        start, column = self.at, self._column()
        members: dict[str, Member] = {}
        self._enter()
        while True:
            key_start = self.at
            key = self._key(members)
            self._colon(key)
            colon = self.at
            node = self._value(column, after=":")
            members[key] = Member(key_start, colon, node)
            if not self._next_entry(column):
                return self._leave(self._mapping_node(members, start, node.end, BLOCK))

    def _sequence(self) -> Node:
        start, column = self.at, self._column()
        items = []
        self._enter()
        while True:
            self.at += 1
            node = self._value(column, after="-")
            items.append(node.value)
            if not self._next_entry(column) or not self._at_dash():
                return self._leave(Node(items, start, node.end, BLOCK, {}))

    def _next_entry(self, column: int) -> bool:
        self._skip()
        if self._ended() or self._column() < column:
            return False
        if self._column() > column:
            what = "found %s, indented deeper than what it follows; check the indentation" % self._found()
            raise self._error(what, is_broken=True)
        return True

    def _key(self, members: dict[str, Member], flow: bool = False) -> str:
        """A key, on one line."""
        start = self.at
        if _MERGE.match(self.text, start):
            self.at += len(_MERGE_KEY)
            key: Any = _MERGE_KEY
        else:
            key = self._scalar(-1, flow, one_line=True).value
            written = self.text[start : self.at]
            if "\n" in written or len(written) > _MAX_KEY:
                raise self._error("a key must be on one line and not longer than %d characters" % _MAX_KEY, start)
            if not isinstance(key, str):
                raise self._error("the key %s is not a text; put it in quotes" % written, start)
            if key == _MERGE_KEY:
                raise self._error("the key %s is no merge key in quotes; remove them to merge" % written, start)
        if key in members:
            raise self._error("the key %r is there twice; remove one of the two" % key, start)
        return str(key)

    def _colon(self, key: str, flow: bool = False) -> None:
        colon = _COLON_BEHIND_QUOTES if flow and self.text[self.at - 1] in "'\"" else _COLON
        match = colon.match(self.text, self.at)
        if not match:
            what = "expected ': ' after the key %s, found %s" % (key, self._found())
            raise self._error(what, is_broken=not flow)
        self.at = match.end()

    def _mapping_node(self, members: dict[str, Member], start: int, end: int, style: str) -> Node:
        values = {key: member.node.value for key, member in members.items()}
        if _MERGE_KEY not in members:
            return Node(values, start, end, style, members)
        merge = members.pop(_MERGE_KEY)
        merged = self._merged(merge)
        for key, member in members.items():
            if key in merged and member.start < merge.start:
                # The kubelet takes the later one, other readers always the mapping's own.
                what = "the merge key gives %r, which is above it; put '<<' first, or remove one of the two" % key
                raise self._error(what, merge.start)
        del values[_MERGE_KEY]
        return Node({**merged, **values}, start, end, style, members, merge)

    def _merged(self, merge: Member) -> dict[str, Any]:
        """What a merge key gives; the first of several mappings wins."""
        value = merge.node.value
        several = value if isinstance(value, list) and merge.node.style != ALIAS else [value]
        if not all(isinstance(one, dict) for one in several):
            raise self._error("a merge key takes a mapping or a list of mappings", merge.start, is_broken=True)
        return {key: value for one in reversed(several) for key, value in one.items()}

    def _block_scalar(self, indent: int) -> Node:
        start = self.at
        header = self._take(_BLOCK_HEADER, "expected '|' or '>', found %s")
        chomping, digit = header.group(2) or header.group(5), header.group(3) or header.group(4)
        self._end_line()
        end = self.at
        self.at = _BREAK.end(self.text, end)
        width = max(indent, 0) + int(digit) if digit else self._detected_width(max(indent, 0) + 1)
        lines: list[str] = []
        blanks, last_break = 0, ""
        while self.at < len(self.text):
            line_end = _REST_OF_LINE.end(self.text, self.at)
            line = self.text[self.at : line_end]
            if line[:width].strip(" "):
                break
            self.at = _BREAK.end(self.text, line_end)
            line_break = "\n" if self.at > line_end else ""
            if len(line) > width:
                lines += [""] * blanks + [line[width:]]
                blanks, last_break = 0, line_break
            else:
                blanks += len(line_break)
            if len(line) > width or chomping == "+":
                end = line_end
        text = _folded_lines(lines) if header.group(1) == ">" else "\n".join(lines)
        text += {"-": "", "+": last_break + "\n" * blanks}.get(chomping, last_break)
        return Node(text, start, end, LITERAL, {})

    def _detected_width(self, least: int) -> int:
        """The indentation of a block text's first line; blank lines before it must not be longer."""
        blank_lines = _BLANK_LINES.match(self.text, self.at)
        first = blank_lines.end() if blank_lines else self.at
        width = first - self._line_start(first)
        longest_blank = max(len(line) for line in self.text[self.at : first - width].replace("\r", "").split("\n"))
        if first == len(self.text) or width < least:
            return max(least, longest_blank, width)
        if longest_blank > width or self.text[first] == "\t":
            raise self._error("the first line of a block text must show its indentation; use spaces", first)
        return width

    # --- flow: structure by brackets -------------------------------------------------------------

    def _flow_node(self, indent: int, flow: bool = False) -> Node:
        if self._peek() == "*":
            return self._alias()
        return self._flow() if self._peek() in _CLOSING else self._scalar(indent, flow)

    def _flow(self) -> Node:
        start = self.at
        opening = self.text[start]
        closing = _CLOSING[opening]
        items: list[Any] = []
        members: dict[str, Member] = {}
        self._enter()
        self.at += 1
        self._skip_in_flow(start)
        while self._peek() != closing:
            if opening == "[":
                items.append(self._flow_item(start))
            else:
                self._flow_member(members, start)
            self._skip_in_flow(start)
            if self._peek() == ",":
                self.at += 1
                self._skip_in_flow(start)
            elif self._peek() != closing:
                what = "expected ',' or '%s', found %s" % (closing, self._found())
                raise self._error(what, is_broken=self._peek() not in ("?", ":" if opening == "[" else "?"))
        self.at += 1
        if opening == "[":
            return self._leave(Node(items, start, self.at, FLOW, {}))
        return self._leave(self._mapping_node(members, start, self.at, FLOW))

    def _flow_item(self, opening: int) -> Any:
        """One value of a list; a key with its value is a mapping of one."""
        start = self.at
        node = self._flow_value(opening)
        quoted = node.style in (SINGLE, DOUBLE)
        colon = _COLON_BEHIND_QUOTES if quoted else _COLON
        if (quoted or node.style == PLAIN) and node.start == start and colon.match(self.text, self.at):
            self.at = start
            members: dict[str, Member] = {}
            self._enter()
            self._flow_member(members, opening)
            return self._leave(self._mapping_node(members, start, self.at, FLOW)).value
        return node.value

    def _flow_member(self, members: dict[str, Member], opening: int) -> None:
        start = self.at
        key = self._key(members, flow=True)
        colon = self.at
        self._skip_in_flow(opening)
        if self._peek() in (",", "}"):
            members[key] = Member(start, colon, Node(None, colon, colon, ALONE, {}))
            return
        self.at = colon
        self._colon(key, flow=True)
        colon = self.at
        self._skip_in_flow(opening)
        members[key] = Member(start, colon, self._flow_value(opening, colon))

    def _flow_value(self, opening: int, here: int | None = None, anchored: bool = False) -> Node:
        if (here is not None or anchored) and self._peek() in (",", "]", "}"):
            at = self.at if here is None else here
            return Node(None, at, at, EMPTY, {})
        if self._peek() == "&" and not anchored:
            return self._named(lambda: self._flow_value_behind(opening))
        if self._peek() in ("&", "*") and anchored:
            raise self._error(_TWO_NAMES, is_broken=True)
        return self._flow_node(-1, flow=True)

    def _flow_value_behind(self, opening: int) -> Node:
        here = self.at
        self._skip_in_flow(opening)
        return self._flow_value(opening, here, anchored=True)

    def _skip_in_flow(self, start: int) -> None:
        self.at = _GAP_IN_FLOW.end(self.text, self.at)
        self._skip()
        if self._ended():
            what = "the %r that opens here is never closed; is the file whole?" % self.text[start]
            raise self._error(what, start, is_broken=True)

    # --- scalars ---------------------------------------------------------------------------------

    def _scalar(self, indent: int, flow: bool = False, one_line: bool = False) -> Node:
        if self._peek() == "'":
            return self._single_quoted(indent)
        if self._peek() == '"':
            return self._double_quoted(indent)
        return self._plain(indent, flow, one_line)

    def _plain(self, indent: int, flow: bool, one_line: bool) -> Node:
        start = self.at
        self._check_plain_start(flow)
        pattern = _PLAIN_LINE_IN_FLOW if flow else _PLAIN_LINE
        end = _end_of_plain(pattern, self.text, start)
        text = self.text[start:end]
        while not one_line:
            self.at = _PLAIN_FOLD.end(self.text, end)
            if self.at > end and self._peek() == "\t":
                raise self._error(_TAB)
            next_end = _end_of_plain(pattern, self.text, self.at)
            if self.at == end or self._column() <= indent or self._at_marker() or next_end == self.at:
                break
            text += _fold(self.text[end : self.at]) + self.text[self.at : next_end]
            end = next_end
        self.at = end
        return Node(self._resolve(text, start), start, end, PLAIN, {})

    def _check_plain_start(self, flow: bool) -> None:
        sign, following = self._peek(), self.text[self.at + 1 : self.at + 2]
        if sign in _REFUSED:
            raise self._error(_REFUSED[sign])
        alone = following in ("", " ", "\t", "\r", "\n") or (flow and (sign != "-" or following in ",[]{}?"))
        if sign in _NO_PLAIN_START or (sign in "-:?" and alone):
            what = "expected a key or a value, found %s; put a text in quotes" % self._found()
            raise self._error(what, is_broken=sign in ("%", "@", "`"))

    def _resolve(self, text: str, start: int) -> Any:
        """The value of a plain scalar."""
        if text in _WORDS:
            return _WORDS[text]
        if text[0] in "+-.0123456789":
            if _INTEGER.fullmatch(text) and -(2**63) <= int(text) < 2**64:
                return int(text)
            if _FLOAT.fullmatch(text) and abs(float(text)) != float("inf"):
                number = float(text)
                return int(number) if number.is_integer() and abs(number) < _LARGE else number
            if _NUMBER_TO_SOME.fullmatch(text.replace("_", "")):
                raise self._error("%s is a number or a date to some readers only; %s" % (text, _QUOTE), start)
        if text in _DISPUTED:
            raise self._error("%s is no text to some readers; %s" % (text, _QUOTE), start)
        return text

    def _single_quoted(self, indent: int) -> Node:
        start = self.at
        match = self._take(_SINGLE_QUOTED, _UNCLOSED_QUOTE, is_broken=True)
        self._check_continuations(start, indent)
        text = _FOLD.sub(lambda fold: _fold(fold.group()), match.group(1)).replace("''", "'")
        return Node(text, start, self.at, SINGLE, {})

    def _double_quoted(self, indent: int) -> Node:
        start = self.at
        match = self._take(_DOUBLE_QUOTED, _UNCLOSED_QUOTE, is_broken=True)
        self._check_continuations(start, indent)

        def replace(part: re.Match[str]) -> str:
            byte, short, long, line_breaks, character = part.groups()
            code = byte or short or long
            if code and (int(code, 16) < 0xD800 or 0xDFFF < int(code, 16) < 0x110000):
                return chr(int(code, 16))
            if line_breaks:
                return "\n" * (line_breaks.count("\n") - 1)
            if character in _ESCAPES:
                return _ESCAPES[character]
            if code or character:
                what = "%s is no escape sequence" % part.group()
                raise self._error(what, start + 1 + part.start(), is_broken=True)
            return _fold(part.group())

        return Node(_ESCAPE_OR_FOLD.sub(replace, match.group(1)), start, self.at, DOUBLE, {})

    def _check_continuations(self, start: int, indent: int) -> None:
        """The further lines of a quoted text must not look like anything else."""
        end, self.at = self.at, start
        for line in _CONTINUATION.finditer(self.text, start, end):
            self.at = line.end()
            if self._column() <= indent or self._at_marker():
                raise self._error("the quoted text that starts on line %d must be indented deeper" % self._line(start))
        self.at = end

    # --- small steps -----------------------------------------------------------------------------

    def _peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def _skip(self) -> None:
        """Go to the next token: over spaces, line breaks and comments."""
        self.at = _GAP.end(self.text, self.at)
        if self._peek() == "\t":
            raise self._tab()
        if self._peek() == "#":
            raise self._error("a comment needs a space before its '#'")

    def _tab(self) -> YAMLError:
        # As indentation the kubelet refuses it, too.
        is_indentation = not self.text[self._line_start(self.at) : self.at].strip(" ")
        return self._error(_TAB, is_broken=is_indentation)

    def _end_line(self) -> None:
        is_broken = _COLON.match(self.text, self.at) is not None
        what = "expected the end of the line, found %s; put the value in quotes if this belongs to it"
        self._take(_LINE_END, what, is_broken)

    def _take(self, pattern: Pattern, otherwise: str, is_broken: bool = False) -> re.Match[str]:
        match: re.Match[str] | None = pattern.match(self.text, self.at)
        if not match:
            if self._peek() == "\t":
                raise self._tab()
            raise self._error(otherwise.replace("%s", self._found()), is_broken=is_broken)
        self.at = match.end()
        return match

    def _enter(self) -> None:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise self._error("more than %d collections in each other" % _MAX_DEPTH)

    def _leave(self, node: Node) -> Node:
        self.depth -= 1
        return node

    def _at_dash(self) -> bool:
        return _DASH.match(self.text, self.at) is not None

    def _at_marker(self, marker: str = "") -> bool:
        there = _MARKER.match(self.text, self.at)
        return there is not None and self._column() == 0 and there.group().startswith(marker)

    def _ended(self) -> bool:
        return self.at == len(self.text) or self._at_marker()

    def _line_start(self, at: int) -> int:
        return max(self.text.rfind("\n", 0, at) + 1, self.first)

    def _column(self) -> int:
        return self.at - self._line_start(self.at)

    def _line(self, at: int) -> int:
        return self.text.count("\n", 0, at) + 1

    def _found(self) -> str:
        if self.at == len(self.text):
            return "the end of the text"
        rest_of_line = self.text[self.at : _REST_OF_LINE.end(self.text, self.at)]
        return ascii(rest_of_line[:20]) if rest_of_line else "the end of the line"

    def _error(self, what: str, at: int | None = None, is_broken: bool = False) -> YAMLError:
        at = self.at if at is None else at
        return YAMLError(self._line(at), at - self._line_start(at) + 1, what, is_broken)


def _extent(value: Any) -> tuple[int, int]:
    """How many values a value is made of, itself among them, and how many collections are in each other."""
    if not isinstance(value, (dict, list)):
        return 1, 0
    sizes = [_extent(one) for one in (value.values() if isinstance(value, dict) else value)]
    return 1 + sum(size for size, _depth in sizes), 1 + max((depth for _size, depth in sizes), default=0)


def _end_of_plain(pattern: Pattern, text: str, at: int) -> int:
    return at + len(text[at : pattern.end(text, at)].rstrip(" \t"))


def _fold(line_breaks: str) -> str:
    """One line break is a space, each further one a line."""
    return "\n" * (line_breaks.count("\n") - 1) or " "


def _folded_lines(lines: list[str]) -> str:
    """The text of a '>' block: lines that are not blank and not indented further run together."""
    text, foldable, blanks = "", False, 0
    for number, line in enumerate(lines):
        if not line:
            blanks += 1
            continue
        runs_on = foldable and line[0] not in " \t"
        text += "\n" * blanks if runs_on and blanks else " " if runs_on else "\n" * (blanks + (number > blanks))
        text, foldable, blanks = text + line, line[0] not in " \t", 0
    return text
