# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The first document of any YAML as a tree of what is written, and its value as the kubelet has it."""

from __future__ import annotations

from math import isfinite, isnan
from typing import Any, Iterator

from .yaml_nodes import ALIAS, Anchor, Duplicate, TextMember, TextNode, YAMLError, as_json, resolve
from .yaml_scanner import (
    ALIAS_TOKEN,
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
    FaultError,
    Mark,
    Scanner,
    Source,
    Token,
    for_people,
    source,
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
        """Return the document's node; None where there is none."""
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
        if token.kind == ALIAS_TOKEN:
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
        node = Raw(ALIAS_TOKEN, token.start, token.start.at, token.end.at, token.value)
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
        """Return the key or the value behind its sign."""
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
        """Return a key with its value among the items of a list."""
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


# The value of any YAML as the kubelet has it once it has made JSON of it.
#
# Its source: goyaml.v2/decode.go, resolve.go, sigs.k8s.io/yaml (yaml.go), encoding/json (encode.go).


# How many values all aliases together may stand for: a few lines can stand for billions.
_MAX_COPIES = 10000
_BINARY = TAGS + "binary"
_MERGE = TAGS + "merge"
_RESOLVED_TAGS = frozenset(TAGS + name for name in ("str", "bool", "int", "float", "null", "timestamp"))


def read_rare(content: str | bytes) -> tuple[TextNode, list[Anchor]]:
    """Return the first document in `content` and its anchors, in the order in which their values end. Raises
    YAMLError."""
    there = source(content)
    try:
        raw = Composer(Scanner(there.text, there.fault)).document()
        values = _Values(there.skipped)
        return values.root(raw), sorted(values.anchors, key=lambda anchor: anchor.end)
    except FaultError as fault:
        raise _error(fault, there) from fault


def _error(fault: FaultError, there: Source) -> YAMLError:
    line, column = fault.mark.line, fault.mark.column
    found = (there.text[fault.mark.at :].splitlines() or [""])[0]
    if fault.problem == there.fault:
        line, column, found = there.line, there.column, there.bad
    return YAMLError(line + 1, column + 1, for_people(fault.problem, found), fault.is_sure, fault.text)


class _Entry:
    """What a mapping has for a key: its value, and where it is written, if not in another mapping."""

    __slots__ = ("key", "member", "value")

    def __init__(self, key: str, value: object, member: TextMember | None) -> None:
        self.key, self.value, self.member = key, value, member


class _Values:
    """Makes values of the nodes of one document."""

    def __init__(self, skipped: int) -> None:
        self.skipped = skipped
        self.anchors: list[Anchor] = []
        self.anchor_of: dict[Raw, Anchor] = {}
        self.duplicates: list[Duplicate] = []
        # What is being decoded; an alias that stands in itself would never end.
        self.open: set[Raw] = set()
        self.depth = self.decoded = self.copied = self.inside_aliases = 0
        # A value is decoded again only for its place in the text.
        self.silent = False
        self.late: FaultError | None = None
        # Where the first number stands that JSON does not have.
        self.no_json: Mark | None = None

    def root(self, raw: Raw | None) -> TextNode:
        if raw is None:
            return TextNode(None, self.skipped, self.skipped, "empty", {})
        node = self._node(raw)
        if self.late:
            raise self.late
        number = next(_sorted_numbers(node.value), None) if self.no_json else None
        if number is not None and self.no_json:
            word = "NaN" if isnan(number) else "+Inf" if number > 0 else "-Inf"
            raise FaultError("unsupported value: " + word, self.no_json, prefix="json: ")
        return node._replace(duplicates=tuple(self.duplicates))

    def _node(self, raw: Raw) -> TextNode:
        """Return one more value, or the copy of one."""
        self._count(raw)
        start, end = raw.start + self.skipped, raw.end + self.skipped
        if raw.kind == ALIAS:
            return TextNode(self._repeated(raw), start, end, ALIAS, {})
        self._name(raw)
        if raw.kind == SCALAR:
            value = as_json(self._scalar(raw))
            if self.no_json is None and isinstance(value, float) and not isfinite(value):
                self.no_json = raw.mark
            return TextNode(value, start, end, raw.style, {})
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise FaultError("more than %d collections in each other" % MAX_DEPTH, raw.mark, is_sure=False)
        if raw.kind == SEQUENCE:
            node = TextNode([self._node(child).value for child in raw.children], start, end, raw.style, {})
        else:
            node = self._mapping(raw, start, end)
        self.depth -= 1
        return node

    def _count(self, raw: Raw) -> None:
        self.decoded += not self.silent
        self.copied += bool(self.inside_aliases or self.silent)
        if not self.silent and self.copied > 100 and self.decoded > 1000 and self.copied / self.decoded > 0.99:
            raise FaultError("document contains excessive aliasing", raw.mark)
        if self.copied > _MAX_COPIES:
            what = "the aliases stand for more than %d values; write them out" % _MAX_COPIES
            raise FaultError(what, raw.mark, is_sure=False)

    def _name(self, raw: Raw) -> None:
        """Note the node's anchor."""
        if raw.anchor and raw not in self.anchor_of:
            end = raw.name_end + self.skipped
            self.anchor_of[raw] = Anchor(end - len("&" + raw.anchor), end, raw.end + self.skipped, [])
            self.anchors.append(self.anchor_of[raw])

    def _repeated(self, raw: Raw) -> object:
        target = self._target(raw)
        value = self._node(target).value
        self._leave_alias(raw)
        return value

    def _target(self, raw: Raw) -> Raw:
        if raw in self.open:
            raise FaultError("anchor '%s' value contains itself" % raw.value, raw.mark)
        self.open.add(raw)
        target = raw.target
        if target is None:
            raise AssertionError("an alias of nothing")
        self._name(target)
        if not self.inside_aliases and not self.silent:
            self.anchor_of[target].aliases.append(raw.start + self.skipped)
        self.inside_aliases += 1
        return target

    def _leave_alias(self, raw: Raw) -> None:
        self.inside_aliases -= 1
        self.open.discard(raw)

    # --- mappings --------------------------------------------------------------------------------

    def _mapping(self, raw: Raw, start: int, end: int) -> TextNode:
        entries: dict[object, _Entry] = {}
        merge = self._decode_members(raw, entries)
        values: dict[str, object] = {}
        members: dict[str, TextMember] = {}
        for entry in entries.values():
            if entry.key in values and self.late is None:
                what = "the key %r is there twice, as a text and as none; remove one of the two" % entry.key
                self.late = FaultError(what, raw.mark, is_sure=False)
            values[entry.key] = entry.value
            if entry.member is not None:
                members[entry.key] = entry.member
        # In the order of the text, in which the last of several is the one that counts.
        members = dict(sorted(members.items(), key=lambda item: item[1].start))
        return TextNode(values, start, end, raw.style, members, merge)

    def _decode_members(
        self, raw: Raw, entries: dict[Any, _Entry], given: dict[str, Any] | None = None
    ) -> TextMember | None:
        """Add the members of a mapping to the entries; the member that merges others, if there is one.

        Of a mapping that is merged into another, `given` gets the members, too.
        """
        merge = None
        for number, (start, colon) in enumerate(raw.places):
            key, value = raw.children[2 * number : 2 * number + 2]
            place = start + self.skipped, colon + self.skipped
            if key.kind == SCALAR and key.value == "<<" and (key.implicit or key.tag == _MERGE):
                merge = TextMember(*place, self._merge(value, entries))
                if given is not None:
                    given.update(merge.node.value if isinstance(merge.node.value, dict) else {})
                continue
            identity, written = self._key(key, value)
            node = self._node(value)
            before = entries.get(identity)
            if before is not None and not self.silent:
                text = "line %d: key %s already set in map" % (value.mark.line + 1, _go(identity[1]))
                self.duplicates.append(Duplicate(value.mark.line + 1, text))
            is_twice = before is not None and given is None and before.member is not None
            member = TextMember(*place, node, is_twice) if given is None else None
            if given is not None:
                given[written] = node.value
            entries[identity] = _Entry(written, node.value, member)
        return merge

    def _merge(self, raw: Raw, entries: dict[Any, _Entry]) -> TextNode:
        """Add what a merge key gives; the node of its value, which has no members."""
        value: dict[str, object] = {}
        # The first of several counts.
        for merged in raw.children[::-1] if raw.kind == SEQUENCE else [raw]:
            target = merged.target if merged.kind == ALIAS else merged
            if target is None or target.kind != MAPPING:
                raise FaultError("map merge requires map or sequence of maps as the value", merged.mark)
            self._count(merged)
            if merged.kind == ALIAS:
                self._target(merged)
                self._count(target)
            self._name(target)
            self._decode_members(target, entries, value)
            if merged.kind == ALIAS:
                self._leave_alias(merged)
        return TextNode(value, raw.start + self.skipped, raw.end + self.skipped, raw.style or ALIAS, {})

    def _key(self, raw: Raw, value: Raw) -> tuple[tuple[str, Any], str]:
        """Return what makes a key another key than all others, and its text in JSON."""
        self._count(raw)
        if raw.kind == ALIAS:
            target = self._target(raw)
            repeated = self._key(target, value)
            self._leave_alias(raw)
            return repeated
        self._name(raw)
        if raw.kind != SCALAR:
            raise FaultError("invalid map key: " + _go(self._silently(raw)), raw.mark)
        key = self._scalar(raw)
        if isinstance(key, str):
            return ("string", key), key
        if isinstance(key, bool):
            return ("bool", key), "true" if key else "false"
        if isinstance(key, float):
            return ("float64", key), _float_key(key)
        if key is not None and key < 1 << 63:
            return ("int", key), str(key)
        if self.late is None and not self.silent:
            kind, written = ("uint64", "%#x" % key) if key is not None else ("%!s(<nil>)", "<nil>")
            found = _go(self._silently(value))
            problem = "unsupported map key of type: %s, key: %s, value: %s" % (kind, written, found)
            self.late = FaultError(problem, raw.mark, prefix="")
        return ("other", key), ""

    def _silently(self, raw: Raw) -> Any:
        self.silent, was_silent = True, self.silent
        value = self._node(raw).value
        self.silent = was_silent
        return value

    # --- scalars ---------------------------------------------------------------------------------

    def _scalar(self, raw: Raw) -> Any:
        tag, text = raw.tag, raw.value
        if not tag and not raw.implicit:
            return text
        if tag == _BINARY:
            return _binary(raw)
        if tag and tag not in _RESOLVED_TAGS:
            return text
        if tag == TAGS + "str":
            return text
        try:
            value = resolve(text)
        except OverflowError:
            what = "%s is too large a number for some kubelets; put a text in quotes" % text[:40]
            raise FaultError(what, raw.mark, is_sure=False) from None
        if tag == TAGS + "timestamp":
            raise FaultError("found the tag of a date; remove it", raw.mark, is_sure=False)
        kind = _kind(value)
        if tag == TAGS + "float" and kind == "int" and value < 1 << 63:
            return float(value)
        if tag and tag != TAGS + kind:
            wanted = tag[len(TAGS) :]
            raise FaultError("cannot decode !!%s `%s` as a !!%s" % (kind, text, wanted), raw.mark)
        return value


def _kind(value: object) -> str:
    names = ((bool, "bool"), (int, "int"), (float, "float"), (str, "str"))
    return next((name for kind, name in names if isinstance(value, kind)), "null")


def _binary(raw: Raw) -> str:
    import base64
    import binascii

    try:
        octets = base64.b64decode(raw.value.replace("\r", "").replace("\n", "").encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        raise FaultError("!!binary value contains invalid base64 data", raw.mark) from None
    return octets.decode("utf-8", "replace")


def _sorted_numbers(value: object) -> Iterator[float]:
    """Yield what has no JSON, in the order in which JSON is written."""
    if isinstance(value, dict):
        for key in sorted(value, key=lambda key: key.encode("utf-8", "surrogatepass")):
            yield from _sorted_numbers(value[key])
    elif isinstance(value, list):
        for item in value:
            yield from _sorted_numbers(item)
    elif isinstance(value, float) and not isfinite(value):
        yield value


def _float_key(number: float) -> str:
    """Return a number as Go writes a float64 with the digits that a float32 needs (%g)."""
    from ctypes import c_float

    rounded = c_float(number).value
    if not isfinite(rounded):
        return ".nan" if isnan(rounded) else ".inf" if rounded > 0 else "-.inf"
    texts = ("%.*e" % (digits, rounded) for digits in range(9))
    shortest = next(text for text in texts if c_float(float(text)).value == rounded)
    digits, exponent = shortest.split("e")
    if not -4 <= int(exponent) < 6:
        return "%se%s%02d" % (digits, exponent[0], abs(int(exponent)))
    return "%.*f" % (max(len(digits.lstrip("-").replace(".", "")) - 1 - int(exponent), 0), rounded)


def _go(value: object, is_member: bool = False) -> str:
    """Return the value as Go's %#v writes it."""
    from .._base.golang import quote

    if isinstance(value, dict):
        members = ["%s:%s" % (quote(key), _go(value[key], True)) for key in sorted(value)]
        return "map[interface {}]interface {}{%s}" % ", ".join(members)
    if isinstance(value, list):
        return "[]interface {}{%s}" % ", ".join(_go(item, True) for item in value)
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "interface {}(nil)" if is_member else "<nil>"
    return "%#x" % value if isinstance(value, int) and value >= 1 << 63 else repr(value)
