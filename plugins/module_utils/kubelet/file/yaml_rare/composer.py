# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The first document of any YAML as a tree of what is written. Source: goyaml.v2/parserc.go, decode.go."""

from __future__ import annotations

from .fault import FaultError, Mark
from .scanner import Scanner
from .tokens import (
    ALIAS,
    ANCHOR,
    BLOCK_END,
    BLOCK_MAPPING,
    BLOCK_SEQUENCE,
    COMMA,
    DIRECTIVE,
    DOCUMENT_END,
    DOCUMENT_START,
    ENTRY,
    KEY,
    SCALAR,
    STREAM_END,
    TAG,
    VALUE,
    Token,
)

SEQUENCE, MAPPING = "sequence", "mapping"
MAX_DEPTH = 50
TAGS = "tag:yaml.org,2002:"
_NO_NODE = (DIRECTIVE, DOCUMENT_START, DOCUMENT_END, STREAM_END)


class Raw:
    """One node as it is written.

    Its `mark` is where its tag or anchor starts; text[start:end] is what follows its anchor.
    """

    __slots__ = (
        "anchor", "children", "end", "implicit", "kind", "mark", "name_end", "places", "start", "style", "tag",
        "target", "value",
    )  # fmt: skip

    def __init__(self, kind: str, mark: Mark, start: int, end: int, value: str = "", style: str = "") -> None:
        self.kind, self.mark, self.start, self.end, self.value, self.style = kind, mark, start, end, value, style
        self.tag = self.anchor = ""
        # A plain scalar without a tag.
        self.implicit = False
        self.name_end = start
        # The members of a mapping: key, value, key, value; and for each where it starts and its colon ends.
        self.children: list[Raw] = []
        self.places: list[tuple[int, int]] = []
        # What an alias stands for.
        self.target: Raw | None = None


class Composer:
    """Reads the tokens of the first document."""

    def __init__(self, scanner: Scanner) -> None:
        self.scanner = scanner
        self.named: dict[str, Raw] = {}
        self.handles: dict[str, str] = {}
        self.depth = 0

    def document(self) -> Raw | None:
        """The document's node; None where there is none."""
        token = self.scanner.peek()
        if token.kind == STREAM_END:
            return None
        if token.kind not in {DIRECTIVE, DOCUMENT_START}:
            self._default_handles()
            node = self._node(block=True)
        else:
            self._directives()
            token = self.scanner.peek()
            if token.kind != DOCUMENT_START:
                raise self._refuse("did not find expected <document start>", token)
            self.scanner.take()
            following = self.scanner.peek()
            is_empty = following.kind in _NO_NODE
            node = self._empty(following.start, token.end.at) if is_empty else self._node(block=True)
        # The reader looks at one token behind the document.
        self.scanner.peek()
        return node

    def _refuse(self, problem: str, token: Token) -> FaultError:
        return FaultError(problem, token.start, token.start.line)

    def _directives(self) -> None:
        has_version = False
        while self.scanner.peek().kind == DIRECTIVE:
            token = self.scanner.peek()
            if token.more:
                if token.value in self.handles:
                    problem = "found duplicate %TAG directive"
                    raise self._refuse(problem, token)
                self.handles[token.value] = token.more
            else:
                if has_version:
                    problem = "found duplicate %YAML directive"
                    raise self._refuse(problem, token)
                if token.value != "1.1":
                    raise self._refuse("found incompatible YAML document", token)
                has_version = True
            self.scanner.take()
        self._default_handles()

    def _default_handles(self) -> None:
        self.handles = {"!": "!", "!!": TAGS, **self.handles}

    # --- nodes -----------------------------------------------------------------------------------

    def _node(self, block: bool, indentless: bool = False) -> Raw:
        token = self.scanner.peek()
        if token.kind == ALIAS:
            return self._alias(self.scanner.take())
        mark = token.start
        anchor = tag = None
        while token.kind in {ANCHOR, TAG} and (anchor if token.kind == ANCHOR else tag) is None:
            if token.kind == ANCHOR:
                anchor = token
            else:
                tag = token
            last = self.scanner.take()
            token = self.scanner.peek()
        whole_tag = self._whole_tag(tag) if tag else ""
        is_empty = (anchor or tag) and not self._has_content(token, block, indentless)
        if is_empty:
            node = self._empty(mark, last.end.at)
            node.implicit = not whole_tag
        else:
            node = self._start_of(token, block, indentless, whole_tag)
        node.mark, node.tag = mark, whole_tag
        if tag and (anchor is None or tag.start > anchor.start):
            node.start = tag.start.at
        if anchor is not None:
            node.anchor, node.name_end = anchor.value, anchor.end.at
            self.named[anchor.value] = node
        if not is_empty:
            self._fill(node, token)
        return node

    def _has_content(self, token: Token, block: bool, indentless: bool) -> bool:
        if token.kind in {SCALAR, "[", "{"} or (indentless and token.kind == ENTRY):
            return True
        return block and token.kind in {BLOCK_SEQUENCE, BLOCK_MAPPING}

    def _start_of(self, token: Token, block: bool, indentless: bool, tag: str) -> Raw:
        if not self._has_content(token, block, indentless):
            raise self._refuse("did not find expected node content", token)
        if token.kind == SCALAR:
            node = Raw(SCALAR, token.start, token.start.at, token.end.at, token.value, token.more)
            node.implicit = (not tag and token.more == "plain") or tag == "!"
            return node
        kind = MAPPING if token.kind in {"{", BLOCK_MAPPING} else SEQUENCE
        style = "flow" if token.kind in "[{" else "block"
        return Raw(kind, token.start, token.start.at, token.end.at, style=style)

    def _fill(self, node: Raw, token: Token) -> None:
        if node.kind == SCALAR:
            self.scanner.take()
            return
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise FaultError("more than %d collections in each other" % MAX_DEPTH, token.start, is_sure=False)
        if token.kind == "[":
            self._flow_sequence(node)
        elif token.kind == "{":
            self._flow_mapping(node)
        elif node.kind == MAPPING:
            self._block_mapping(node)
        else:
            self._block_sequence(node, token.kind == ENTRY)
        self.depth -= 1

    def _alias(self, token: Token) -> Raw:
        node = Raw(ALIAS, token.start, token.start.at, token.end.at, token.value)
        node.target = self.named.get(token.value)
        if node.target is None:
            raise FaultError("unknown anchor '%s' referenced" % token.value, token.start)
        return node

    def _whole_tag(self, token: Token) -> str:
        if not token.value:
            return token.more
        prefix = self.handles.get(token.value, "")
        if not prefix + token.more or token.value not in self.handles:
            raise self._refuse("found undefined tag handle", token)
        return prefix + token.more

    def _empty(self, mark: Mark, at: int, style: str = "empty") -> Raw:
        node = Raw(SCALAR, mark, at, at, style=style)
        node.implicit = True
        return node

    # --- blocks ----------------------------------------------------------------------------------

    def _block_sequence(self, node: Raw, indentless: bool) -> None:
        if not indentless:
            self.scanner.take()
        ends = {ENTRY, KEY, VALUE, BLOCK_END} if indentless else {ENTRY, BLOCK_END}
        while self.scanner.peek().kind == ENTRY:
            dash = self.scanner.take()
            if self.scanner.peek().kind in ends:
                node.children.append(self._empty(dash.end, dash.end.at))
            else:
                node.children.append(self._node(block=True))
            node.end = node.children[-1].end
        if not indentless:
            self._block_end("did not find expected '-' indicator")

    def _block_end(self, problem: str) -> None:
        token = self.scanner.peek()
        if token.kind != BLOCK_END:
            raise self._refuse(problem, token)
        self.scanner.take()

    def _block_mapping(self, node: Raw) -> None:
        self.scanner.take()
        while self.scanner.peek().kind == KEY:
            sign = self.scanner.take()
            key = self._block_part(sign)
            colon = None
            if self.scanner.peek().kind == VALUE:
                colon = self.scanner.take()
                value = self._block_part(colon)
            else:
                value = self._empty(self.scanner.peek().start, key.end, "alone")
            self._add(node, key, value, sign.start.at, colon)
            node.end = value.end
        self._block_end("did not find expected key")

    def _block_part(self, sign: Token) -> Raw:
        """The key or the value behind its sign."""
        if self.scanner.peek().kind in {KEY, VALUE, BLOCK_END}:
            return self._empty(sign.end, sign.end.at)
        return self._node(block=True, indentless=True)

    def _add(self, node: Raw, key: Raw, value: Raw, start: int, colon: Token | None) -> None:
        node.children += (key, value)
        node.places.append((start, colon.end.at if colon else key.end))

    # --- brackets --------------------------------------------------------------------------------

    def _flow_sequence(self, node: Raw) -> None:
        self.scanner.take()
        while self._goes_on("]", bool(node.children)):
            token = self.scanner.peek()
            if token.kind == KEY:
                node.children.append(self._pair())
            else:
                node.children.append(self._node(block=False))
        node.end = self.scanner.take().end.at

    def _goes_on(self, closing: str, has_members: bool) -> bool:
        token = self.scanner.peek()
        if has_members and token.kind != closing:
            if token.kind != COMMA:
                raise self._refuse("did not find expected ',' or '%s'" % closing, token)
            self.scanner.take()
            token = self.scanner.peek()
        return token.kind != closing

    def _pair(self) -> Raw:
        """A key with its value among the items of a list."""
        sign = self.scanner.take()
        node = Raw(MAPPING, sign.start, sign.start.at, sign.end.at, style="flow")
        token = self.scanner.peek()
        if token.kind in {VALUE, COMMA, "]"}:
            # The reader loses this token, a colon or not.
            key = self._empty(token.end, token.end.at)
            self.scanner.take()
        else:
            key = self._node(block=False)
        colon, value = self._flow_value(key, "]")
        self._add(node, key, value, sign.start.at, colon)
        node.end = value.end
        return node

    def _flow_value(self, key: Raw, closing: str) -> tuple[Token | None, Raw]:
        token = self.scanner.peek()
        if token.kind != VALUE:
            return None, self._empty(token.start, key.end, "alone")
        colon = self.scanner.take()
        following = self.scanner.peek()
        if following.kind in {COMMA, closing}:
            return colon, self._empty(token.start if closing == "]" else following.start, colon.end.at)
        return colon, self._node(block=False)

    def _flow_mapping(self, node: Raw) -> None:
        self.scanner.take()
        while self._goes_on("}", bool(node.children)):
            token = self.scanner.peek()
            if token.kind != KEY:
                key = self._node(block=False)
                value = self._empty(self.scanner.peek().start, key.end, "alone")
                self._add(node, key, value, token.start.at, None)
                continue
            sign = self.scanner.take()
            token = self.scanner.peek()
            if token.kind in {VALUE, COMMA, "}"}:
                key = self._empty(token.start, sign.end.at)
            else:
                key = self._node(block=False)
            colon, value = self._flow_value(key, "}")
            self._add(node, key, value, sign.start.at, colon)
        node.end = self.scanner.take().end.at
