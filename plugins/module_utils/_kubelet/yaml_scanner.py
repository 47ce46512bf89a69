# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The tokens of any YAML, from its characters on, and the errors of the kubelet's reader with their lines.

A token is read where the composer first needs it: of two errors in a text the one counts that the kubelet meets
first. Source: goyaml.v2/scannerc.go.
"""

from __future__ import annotations

import re
from collections import deque
from typing import NamedTuple

from .yaml_nodes import DOUBLE, LITERAL, PLAIN, SINGLE

# Errors of the kubelet's YAML reader, and what they are to a person.


class Mark(NamedTuple):
    """A place in the text; all three count from 0."""

    at: int
    line: int
    column: int


class FaultError(Exception):
    """The text cannot be read. `text` is what the kubelet says, empty where that cannot be determined for sure."""

    def __init__(self, problem: str, mark: Mark, line: int = 0, is_sure: bool = True, prefix: str = "yaml: ") -> None:
        super().__init__(problem)
        self.problem = problem
        self.mark = mark
        self.is_sure = is_sure
        self.text = prefix + ("line %d: " % line if line else "") + problem if is_sure else ""


_QUOTES = "; put a text in quotes"
_WHOLE = "; is the file whole?"
# Problems that a person understands better in other words. All others are good enough.
_FOR_PEOPLE = {
    "found character that cannot start any token": "found %s, which no value can start with" + _QUOTES,
    "did not find expected key": (
        "expected a key or the end of the line, found %s; check the quotes and the indentation"
    ),
    "did not find expected '-' indicator": "expected a '-', found %s; check the indentation",
    "could not find expected ':'": "expected ': ' after the key %s",
    "mapping values are not allowed in this context": (
        "found %s where no value can be; check the indentation, and put a text with ': ' in quotes"
    ),
    "block sequence entries are not allowed in this context": (
        "found a list on the line of its key; start it on the next line"
    ),
    "mapping keys are not allowed in this context": "found %s where no key can start; check the indentation",
    "found unexpected end of stream": "the quote that opens here is never closed" + _WHOLE,
    "found unexpected document indicator": "the quote that opens here is not closed in its document" + _WHOLE,
    "found unknown escape character": "%s begins with no escape sequence; double the backslash",
    "did not find expected ',' or ']'": "expected ',' or ']', found %s" + _WHOLE,
    "did not find expected ',' or '}'": "expected ',' or '}', found %s" + _WHOLE,
    "did not find expected node content": "expected a value, found %s" + _QUOTES,
    "did not find expected <document start>": "expected '---', found %s",
    "did not find expected alphabetic or numeric character": (
        "expected a name of letters, digits, '-' and '_', found %s" + _QUOTES
    ),
    "found a tab character that violates indentation": "found a tab; use spaces",
    "found a tab character where an indentation space is expected": "found a tab; use spaces",
    "document contains excessive aliasing": "the aliases stand for too many values; write them out",
    "control characters are not allowed": "found the character %s; remove it",
    "map merge requires map or sequence of maps as the value": "a merge key takes a mapping or a list of mappings",
}


_ABOUT_A_NAME = (
    ("unknown anchor '(.*)' referenced", "the alias *%(name)s has no anchor &%(name)s above it"),
    ("anchor '(.*)' value contains itself", "the alias *%(name)s stands inside of what it is to repeat"),
    ("unsupported value: (.*)", "%(name)s is no number that JSON has"),
)


def for_people(problem: str, found: str) -> str:
    """Return the problem in words for a person; `found` is the text that stands there."""
    if problem == "found character that cannot start any token" and found.startswith("\t"):
        return "found a tab; use spaces"
    for pattern, what in _ABOUT_A_NAME:
        match = re.fullmatch(pattern, problem)
        if match:
            return what % {"name": match.group(1)}
    return _FOR_PEOPLE.get(problem, problem).replace("%s", ascii(found[:20]) if found else "the end")


# The kinds of tokens that YAML has, and which characters end a line.


# Kinds of tokens that are not the sign that they are written with.
STREAM_END, DIRECTIVE, DOCUMENT_START, DOCUMENT_END = "stream end", "directive", "document start", "document end"
BLOCK_SEQUENCE, BLOCK_MAPPING, BLOCK_END = "block sequence", "block mapping", "block end"
ALIAS_TOKEN, ANCHOR, TAG, SCALAR = "alias", "anchor", "tag", "scalar"
KEY, VALUE, ENTRY, COMMA = "?", ":", "-", ","

# What some other readers take for no line break is one.
BREAKS = "\r\n\x85\u2028\u2029"
BLANK_OR_END = " \t\0" + BREAKS


class Token(NamedTuple):
    """`value` is the text of a scalar, a name or a tag's handle; `more` a scalar's style, a tag's rest."""

    kind: str
    start: Mark
    end: Mark
    value: str = ""
    more: str = ""


# The characters of a file. Its source: goyaml.v2/readerc.go.


# The kubelet's reader decodes so many bytes at once, and refuses all of them for one that is wrong.
_CHUNK = 512
_NOT_ALLOWED = re.compile("[^\t\n\r -~\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_CONTROL = "control characters are not allowed"
_UTF16 = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}


class Source(NamedTuple):
    """`text` as far as the reader gets, and the `fault` that it meets there.

    `bad` is the character that it is about, if it is one, `line` and `column` count from 0 and say where it stands.
    """

    text: str
    fault: str = ""
    bad: str = ""
    line: int = 0
    column: int = 0
    # Of characters before the text: a byte order mark.
    skipped: int = 0


def source(content: str | bytes) -> Source:
    """Return a text is taken as UTF-8; surrogates stand in it for bytes that are none."""
    if isinstance(content, str):
        skipped = 1 if content.startswith("\ufeff") else 0
        text = content[skipped:]
        if not _NOT_ALLOWED.search(text):
            return Source(text, skipped=skipped)
        content = content.encode("utf-8", "surrogatepass" if _has_paired(content) else "surrogateescape")
    encoding = _UTF16.get(content[:2])
    if encoding:
        return _decoded(content, 2, encoding)
    return _decoded(content, 3 if content.startswith(b"\xef\xbb\xbf") else 0, "utf-8")


def _has_paired(text: str) -> bool:
    """Return whether there are surrogates that stand for no byte."""
    return re.search("[\ud800-\udc7f\udd00-\udfff]", text) is not None


def _decoded(content: bytes, mark: int, encoding: str) -> Source:
    fault, bad, end = "", "", len(content)
    try:
        text = content[mark:].decode(encoding)
    except UnicodeDecodeError as error:
        end = mark + error.start
        text = content[mark:end].decode(encoding)
        fault = _utf8_fault(content[end:]) if encoding == "utf-8" else _utf16_fault(content[end:], encoding)
    control = _NOT_ALLOWED.search(text)
    text = text[: control.start()] if control else text
    skipped = 1 if mark else 0
    if control:
        fault, bad = _CONTROL, control.group()
        end = mark + len(text.encode(encoding))
    if not fault:
        return Source(text, skipped=skipped)
    begin = _chunk_of(content, mark, end, encoding)
    line, column = text.count("\n"), len(text) - (text.rfind("\n") + 1)
    return Source(content[mark:begin].decode(encoding), fault, bad, line, column, skipped)


def _chunk_of(content: bytes, mark: int, place: int, encoding: str) -> int:
    """Return where the bytes begin that are decoded together with the one at `place`."""
    begin, until = mark, _CHUNK
    while until <= place:
        if encoding == "utf-8":
            while content[until] & 0xC0 == 0x80:
                until -= 1
        elif content[until - 2 + (encoding == "utf-16-le")] & 0xFC == 0xD8:
            until -= 2
        begin, until = until, until + _CHUNK
    return begin


def _utf8_fault(octets: bytes) -> str:
    first = octets[0]
    width = 2 if first >> 5 == 6 else 3 if first >> 4 == 14 else 4 if first >> 3 == 30 else 0
    if not width:
        return "invalid leading UTF-8 octet"
    if width > len(octets):
        return "incomplete UTF-8 octet sequence"
    value = first & (0x7F >> width)
    for octet in octets[1:width]:
        if octet & 0xC0 != 0x80:
            return "invalid trailing UTF-8 octet"
        value = value << 6 | octet & 0x3F
    if value < (0, 0, 0x80, 0x800, 0x10000)[width]:
        return "invalid length of a UTF-8 sequence"
    return "invalid Unicode character"


def _utf16_fault(octets: bytes, encoding: str) -> str:
    if len(octets) < 2:
        return "incomplete UTF-16 character"
    high = octets[1 if encoding == "utf-16-le" else 0]
    if high & 0xFC == 0xDC:
        return "unexpected low surrogate area"
    return "incomplete UTF-16 surrogate pair" if len(octets) < 4 else "expected low surrogate area"


# The texts of scalars in each style. Its source: goyaml.v2/scannerc.go.


_COLON_INSIDE = ":(?![%s])" % BLANK_OR_END
_PLAIN = re.compile("(?:[^:%s]|%s)*" % (BLANK_OR_END, _COLON_INSIDE))
_PLAIN_IN_FLOW = re.compile(r"(?:[^:,?\[\]{}%s]|%s)*" % (BLANK_OR_END, _COLON_INSIDE))
_SINGLE = re.compile("(?:[^'%s]|'')*" % BLANK_OR_END)
_DOUBLE = re.compile(r'[^"\\%s]*' % BLANK_OR_END)
_BLANKS = re.compile("[ \t]*")
_SCALAR_SPACES = re.compile(" *")
_SCALAR_LINE = re.compile("[^%s\0]*" % BREAKS)
_ESCAPES = {
    "0": "\0", "a": "\a", "b": "\b", "t": "\t", "\t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r", "e": "\x1b",
    " ": " ", '"': '"', "'": "'", "\\": "\\", "N": "\x85", "_": "\xa0", "L": "\u2028", "P": "\u2029",
}  # fmt: skip
_CODE_LENGTHS = {"x": 2, "u": 4, "U": 8}
_HEX = re.compile("[0-9a-fA-F]*")


def _folded(first: str, others: str) -> str:
    """Return the line breaks between two words."""
    return (others or " ") if first in {"\n", ""} else first + others


class _Gap:
    """Blanks and line breaks inside of a scalar."""

    def __init__(self) -> None:
        self.blanks = self.first = self.others = ""
        self.broken = False

    def take(self, scanner: Scanner, indent: int = 0) -> None:
        """Go to the next word. Outside of quotes no tab may be in the indentation, which `indent` ends."""
        while True:
            if self.broken and scanner.column() < indent:
                spaces = _SCALAR_SPACES.match(scanner.text, scanner.at)
                scanner.at += min(len(spaces.group()) if spaces else 0, indent - scanner.column())
                if scanner.text[scanner.at] == "\t" and scanner.column() < indent:
                    raise scanner.refuse("found a tab character that violates indentation")
            blanks = scanner.take_match(_BLANKS)
            if not self.broken:
                self.blanks += blanks
            if not scanner.at_break():
                return
            line_break = scanner.take_break()
            if self.broken:
                self.others += line_break
            else:
                self.blanks, self.first, self.broken = "", line_break, True
            scanner.reach(1)

    def text(self) -> str:
        return _folded(self.first, self.others) if self.broken else self.blanks


def plain_scalar(scanner: Scanner) -> Token:
    start = end = scanner.mark()
    pattern = _PLAIN_IN_FLOW if scanner.flow_level else _PLAIN
    parts: list[str] = []
    gap = _Gap()
    while True:
        scanner.reach(4)
        if scanner.at_marker() or scanner.text[scanner.at] == "#":
            break
        word = scanner.take_match(pattern)
        if word:
            parts += [gap.text(), word]
            gap = _Gap()
            end = scanner.mark()
            scanner.reach(2)
        if scanner.text[scanner.at] not in " \t" + BREAKS:
            break
        gap.take(scanner, scanner.indent + 1)
        if not scanner.flow_level and scanner.column() < scanner.indent + 1:
            break
    if gap.broken:
        scanner.key_allowed = True
    return Token(SCALAR, start, end, "".join(parts), PLAIN)


def quoted_scalar(scanner: Scanner) -> Token:
    start = scanner.mark()
    quote = scanner.text[scanner.at]
    scanner.at += 1
    parts: list[str] = []
    while True:
        scanner.reach(4)
        if scanner.at_marker():
            raise scanner.refuse("found unexpected document indicator", start)
        if scanner.at >= scanner.end:
            raise scanner.refuse("found unexpected end of stream", start)
        gap = _Gap()
        if quote == "'":
            parts.append(scanner.take_match(_SINGLE).replace("''", "'"))
        else:
            gap.broken = _take_double(scanner, parts, start)
        scanner.reach(2)
        if scanner.text[scanner.at] == quote:
            break
        escaped = gap.broken
        gap.take(scanner)
        # An escaped line break is nothing.
        parts.append(gap.others if escaped else gap.text())
    scanner.at += 1
    return Token(SCALAR, start, scanner.mark(), "".join(parts), SINGLE if quote == "'" else DOUBLE)


def _take_double(scanner: Scanner, parts: list[str], start: Mark) -> bool:
    """Return words without blanks; true where an escaped line break ends them."""
    while True:
        parts.append(scanner.take_match(_DOUBLE))
        scanner.reach(2)
        if scanner.text[scanner.at] != "\\":
            return False
        sign = scanner.text[scanner.at + 1]
        if sign in BREAKS:
            scanner.at += 1
            scanner.take_break()
            return True
        length = _CODE_LENGTHS.get(sign, 0)
        if not length and sign not in _ESCAPES:
            raise scanner.refuse("found unknown escape character", scanner.mark())
        scanner.at += 2
        parts.append(_code(scanner, length, start) if length else _ESCAPES[sign])


def _code(scanner: Scanner, length: int, start: Mark) -> str:
    scanner.reach(length)
    code = scanner.text[scanner.at : scanner.at + length]
    if not code.isascii() or not _HEX.fullmatch(code):
        raise scanner.refuse("did not find expected hexdecimal number", start)
    value = int(code, 16)
    if 0xD800 <= value <= 0xDFFF or value > 0x10FFFF:
        raise scanner.refuse("found invalid Unicode character escape code", start)
    scanner.at += length
    return chr(value)


def block_scalar(scanner: Scanner) -> Token:
    start = scanner.mark()
    folds = scanner.text[scanner.at] == ">"
    scanner.at += 1
    scanner.reach(1)
    chomping, increment = _header(scanner, start)
    scanner.take_line_end(start)
    end = _before_break(scanner, start.at)
    indent = max(scanner.indent, 0) + increment if increment else 0
    indent, breaks, last = _take_breaks(scanner, indent)
    if chomping == "+" and breaks:
        end = last
    parts: list[str] = []
    first, was_blank = "", False
    while scanner.column() == indent and scanner.at < scanner.end:
        is_blank = scanner.text[scanner.at] in " \t"
        if folds and first == "\n" and not was_blank and not is_blank:
            parts.append("" if breaks else " ")
        else:
            parts.append(first)
        parts += [breaks, scanner.take_match(_SCALAR_LINE)]
        was_blank = is_blank
        end = scanner.mark()
        first = scanner.take_break()
        _indent, breaks, last = _take_breaks(scanner, indent)
        if chomping == "+" and breaks:
            end = last
    parts.append("" if chomping == "-" else first)
    parts.append(breaks if chomping == "+" else "")
    return Token(SCALAR, start, end, "".join(parts), LITERAL)


def _header(scanner: Scanner, start: Mark) -> tuple[str, int]:
    chomping, increment = "", 0
    for _sign in range(2):
        sign = scanner.text[scanner.at]
        if sign in "+-" and not chomping:
            chomping = sign
        elif sign in "0123456789" and not increment:
            if sign == "0":
                raise scanner.refuse("found an indentation indicator equal to 0", start)
            increment = int(sign)
        else:
            break
        scanner.at += 1
        scanner.reach(1)
    return chomping, increment


def _take_breaks(scanner: Scanner, indent: int) -> tuple[int, str, Mark]:
    """Return the lines without text; the text's indentation, which without a number is the longest of them; their
    end."""
    breaks, longest, end = "", 0, scanner.mark()
    while True:
        spaces = _SCALAR_SPACES.match(scanner.text, scanner.at)
        count = len(spaces.group()) if spaces else 0
        scanner.at += min(count, max(indent - scanner.column(), 0)) if indent else count
        scanner.reach(1)
        longest = max(longest, scanner.column())
        if scanner.text[scanner.at] == "\t" and (not indent or scanner.column() < indent):
            raise scanner.refuse("found a tab character where an indentation space is expected")
        if not scanner.at_break():
            return indent or max(longest, scanner.indent + 1, 1), breaks, end
        end = scanner.mark()
        breaks += scanner.take_break()


def _before_break(scanner: Scanner, start: int) -> Mark:
    """Return the end of the line that has just been taken."""
    at = scanner.at
    while at > start and scanner.text[at - 1] in BREAKS:
        at -= 1
    comment = scanner.text[start:at]
    return Mark(start + len(comment), scanner.line - (at < scanner.at), 0)


# Directives and tags. Its source: goyaml.v2/scannerc.go.


YAML_DIRECTIVE, TAG_DIRECTIVE = "YAML", "TAG"
_DIRECTIVE_NAME = re.compile("[-0-9A-Za-z_]*")
_DIRECTIVE_BLANKS = re.compile("[ \t]*")
_DIGITS = re.compile("[0-9]*")
_URI = re.compile(r"[-0-9A-Za-z_;/?:@&=+$,.!~*'()\[\]]*")
_ESCAPED = re.compile("%([0-9a-fA-F]{2})")


def scan_directive(scanner: Scanner) -> Token:
    """Return `value` is the version or the handle, `more` the tag's prefix."""
    start = scanner.mark()
    scanner.at += 1
    name = scanner.take_match(_DIRECTIVE_NAME)
    if not name:
        raise scanner.refuse("could not find expected directive name", start)
    if scanner.text[scanner.at] not in BLANK_OR_END:
        raise scanner.refuse("found unexpected non-alphabetical character", start)
    if name not in {YAML_DIRECTIVE, TAG_DIRECTIVE}:
        raise scanner.refuse("found unknown directive name", start)
    scanner.take_match(_DIRECTIVE_BLANKS)
    value, more = (_version(scanner, start), "") if name == YAML_DIRECTIVE else _tag_directive(scanner, start)
    end = scanner.mark()
    scanner.take_line_end(start)
    return Token(DIRECTIVE, start, end, value, more)


def _version(scanner: Scanner, start: Mark) -> str:
    major = _number(scanner, start)
    if scanner.text[scanner.at] != ".":
        raise scanner.refuse("did not find expected digit or '.' character", start)
    scanner.at += 1
    return "%d.%d" % (major, _number(scanner, start))


def _number(scanner: Scanner, start: Mark) -> int:
    scanner.reach(1)
    digits = scanner.take_match(_DIGITS)
    if len(digits) > 2:
        raise scanner.refuse("found extremely long version number", start)
    if not digits:
        raise scanner.refuse("did not find expected version number", start)
    return int(digits)


def _tag_directive(scanner: Scanner, start: Mark) -> tuple[str, str]:
    handle = _handle(scanner, start)
    if handle != "!" and not handle.endswith("!"):
        raise scanner.refuse("did not find expected '!'", start)
    if not scanner.take_match(_DIRECTIVE_BLANKS):
        raise scanner.refuse("did not find expected whitespace", start)
    prefix = _uri(scanner, "", start)
    if scanner.text[scanner.at] not in BLANK_OR_END:
        raise scanner.refuse("did not find expected whitespace or line break", start)
    return handle, prefix


def scan_tag(scanner: Scanner) -> Token:
    """Return `value` is the handle, empty for a whole tag; `more` is the rest."""
    start = scanner.mark()
    scanner.reach(2)
    if scanner.text[scanner.at + 1] == "<":
        scanner.at += 2
        handle, rest = "", _uri(scanner, "", start)
        if scanner.text[scanner.at] != ">":
            raise scanner.refuse("did not find the expected '>'", start)
        scanner.at += 1
    else:
        handle = _handle(scanner, start)
        if len(handle) > 1 and handle.endswith("!"):
            rest = _uri(scanner, "", start)
        else:
            handle, rest = "!", _uri(scanner, handle, start)
            if not rest:
                handle, rest = "", "!"
    scanner.reach(1)
    if scanner.text[scanner.at] not in BLANK_OR_END:
        raise scanner.refuse("did not find expected whitespace or line break", start)
    return Token(TAG, start, scanner.mark(), handle, rest)


def _handle(scanner: Scanner, start: Mark) -> str:
    if scanner.text[scanner.at] != "!":
        raise scanner.refuse("did not find expected '!'", start)
    scanner.at += 1
    handle = "!" + scanner.take_match(_DIRECTIVE_NAME)
    if scanner.text[scanner.at] == "!":
        scanner.at += 1
        handle += "!"
    return handle


def _uri(scanner: Scanner, head: str, start: Mark) -> str:
    """Return what follows a handle; `head` belongs to it, but for its '!'."""
    octets = head[1:].encode()
    begin = scanner.at
    while True:
        octets += scanner.take_match(_URI).encode()
        if scanner.text[scanner.at] != "%":
            break
        octets += _escaped_character(scanner, start)
    if scanner.at == begin and not head:
        raise scanner.refuse("did not find expected tag URI", start)
    return octets.decode("utf-8", "replace")


def _escaped_character(scanner: Scanner, start: Mark) -> bytes:
    octets = b""
    width = 1
    while len(octets) < width:
        scanner.reach(3)
        match = _ESCAPED.match(scanner.text, scanner.at)
        if not match:
            raise scanner.refuse("did not find URI escaped octet", start)
        octet = int(match.group(1), 16)
        if octets and octet & 0xC0 != 0x80:
            raise scanner.refuse("found an incorrect trailing UTF-8 octet", start)
        if not octets:
            width = 1 if octet < 0x80 else 2 if octet >> 5 == 6 else 3 if octet >> 4 == 14 else 4
            if octet >> 6 == 2 or octet >> 3 == 31:
                raise scanner.refuse("found an incorrect leading UTF-8 octet", start)
        octets += bytes((octet,))
        scanner.at += 3
    return octets


_BREAK = re.compile("\r\n|[%s]" % BREAKS)
_SPACES, _SPACES_AND_TABS = re.compile(" *"), re.compile("[ \t]*")
_LINE = re.compile("[^%s\0]*" % BREAKS)
_MARKER = re.compile(r"(?:---|\.\.\.)(?=[%s])" % BLANK_OR_END)
_NAME = re.compile("[-0-9A-Za-z_]*")
_NO_PLAIN_START = frozenset("-?:,[]{}#&*!|>'\"%@`" + BLANK_OR_END)
_MAX_KEY = 1024


class _Key:
    """Where a key without '?' may have begun."""

    __slots__ = ("mark", "number", "possible", "required")

    def __init__(self, possible: bool, required: bool, number: int, mark: Mark) -> None:
        self.possible, self.required, self.number, self.mark = possible, required, number, mark


class Scanner:
    """Reads one text from left to right. Raises FaultError."""

    def __init__(self, text: str, fault: str = "") -> None:
        """Begin to read a text; with a `fault` it ends where the kubelet's reader meets bytes that it refuses so."""
        self.text = text + "\0\0\0\0"
        self.end = len(text)
        self.fault = fault
        self.at = self.line = self.line_start = 0
        self.indent, self.indents = -1, [-1]
        self.flow_level = 0
        self.key_allowed = True
        self.tokens: deque[Token] = deque()
        self.taken = 0
        self.keys = [_Key(False, False, 0, self.mark())]
        # The number of a token that may be a key's first, and the place in `keys` that it is for.
        self.key_of_token: dict[int, int] = {}

    def peek(self) -> Token:
        """Return the next token. What may be a key is known only behind it."""
        while True:
            if self.tokens:
                level = self.key_of_token.get(self.taken)
                if level is None or level >= len(self.keys) or not self._is_valid(self.keys[level]):
                    return self.tokens[0]
            self._fetch()

    def take(self) -> Token:
        token = self.peek()
        self.tokens.popleft()
        self.taken += 1
        return token

    # --- marks and characters ------------------------------------------------------------------

    def mark(self) -> Mark:
        return Mark(self.at, self.line, self.at - self.line_start)

    def refuse(self, problem: str, place: Mark | None = None) -> FaultError:
        """Return an error here; `place` is where a person looks for its cause."""
        here = self.mark()
        # Its lines count from 0, and this one has been gone to.
        return FaultError(problem, place or here, here.line + 1 if here.line else 0)

    def reach(self, count: int) -> None:
        """Raise FaultError where so many characters from here go beyond the end of a text with a fault."""
        if self.fault and self.at + count > self.end:
            raise FaultError(self.fault, self.mark(), 0)

    def column(self) -> int:
        return self.at - self.line_start

    def at_marker(self) -> bool:
        return self.at == self.line_start and _MARKER.match(self.text, self.at) is not None

    def at_break(self) -> bool:
        return self.text[self.at] in BREAKS

    def take_break(self) -> str:
        """Go to the next line; what the break is in a text."""
        self.reach(2)
        match = _BREAK.match(self.text, self.at)
        if match is None:
            return ""
        self.at = self.line_start = match.end()
        self.line += 1
        return match.group() if match.group() in "\u2028\u2029" else "\n"

    def take_match(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self.text, self.at)
        found = match.group() if match else ""
        self.at += len(found)
        self.reach(1)
        return found

    def take_line_end(self, start: Mark, problem: str = "did not find expected comment or line break") -> None:
        """Skip blanks, a comment and the break."""
        self.take_match(_SPACES_AND_TABS)
        if self.text[self.at] == "#":
            self.take_match(_LINE)
        if not self.at_break() and self.at < self.end:
            raise self.refuse(problem, start)
        self.take_break()

    # --- the next token --------------------------------------------------------------------------

    def _fetch(self) -> None:
        self.reach(1)
        self._skip_gap()
        self._unroll(self.column())
        self.reach(4)
        sign, ends = self.text[self.at], self.text[self.at + 1] in BLANK_OR_END
        in_flow = self.flow_level > 0
        if self.at >= self.end:
            self._stream_end()
        elif sign == "%" and self.column() == 0:
            self._document_level()
            self.add(scan_directive(self))
        elif self.at_marker():
            self._document_level()
            self._sign(DOCUMENT_START if sign == "-" else DOCUMENT_END, 3)
        elif sign in "[{":
            self._save_key()
            self.keys.append(_Key(False, False, self.taken + len(self.tokens), self.mark()))
            self.flow_level += 1
            self.key_allowed = True
            self._sign(sign)
        elif sign in "]}":
            self._remove_key()
            if in_flow:
                self.flow_level -= 1
                self.key_of_token.pop(self.keys.pop().number, None)
            self.key_allowed = False
            self._sign(sign)
        elif sign == ",":
            self._remove_key()
            self.key_allowed = True
            self._sign(COMMA)
        elif sign == "-" and ends:
            self._begin_in_block("block sequence entries are not allowed in this context", BLOCK_SEQUENCE)
            self._remove_key()
            self.key_allowed = True
            self._sign(ENTRY)
        elif sign == "?" and (in_flow or ends):
            self._begin_in_block("mapping keys are not allowed in this context", BLOCK_MAPPING)
            self._remove_key()
            self.key_allowed = not in_flow
            self._sign(KEY)
        elif sign == ":" and (in_flow or ends):
            self._value()
        else:
            self._content(sign, ends)

    def _content(self, sign: str, ends: bool) -> None:

        if sign in "|>" and not self.flow_level:
            self._remove_key()
            self.key_allowed = True
            self.add(block_scalar(self))
            return
        if sign not in "*&!'\"" and not (
            sign not in _NO_PLAIN_START or (sign == "-" and not ends) or (sign in "?:" and not self.flow_level)
        ):
            raise self.refuse("found character that cannot start any token")
        self._save_key()
        self.key_allowed = False
        if sign in "*&":
            self.add(self._name(ALIAS_TOKEN if sign == "*" else ANCHOR))
        elif sign == "!":
            self.add(scan_tag(self))
        elif sign in "'\"":
            self.add(quoted_scalar(self))
        else:
            self.add(plain_scalar(self))

    def add(self, token: Token, position: int = -1) -> None:
        if position < 0:
            self.tokens.append(token)
        else:
            self.tokens.insert(position, token)

    def _sign(self, kind: str, length: int = 1) -> None:
        start = self.mark()
        self.at += length
        self.add(Token(kind, start, self.mark()))

    def _name(self, kind: str) -> Token:
        start = self.mark()
        self.at += 1
        name = self.take_match(_NAME)
        if not name or self.text[self.at] not in BLANK_OR_END + "?:,]}%@`":
            raise self.refuse("did not find expected alphabetic or numeric character", start)
        return Token(kind, start, self.mark(), name)

    def _skip_gap(self) -> None:
        """Go over blanks, comments and line breaks."""
        while True:
            self.reach(1)
            if self.text[self.at] == "\ufeff" and self.column() == 0:
                self.at += 1
            self.take_match(_SPACES_AND_TABS if self.flow_level or not self.key_allowed else _SPACES)
            if self.text[self.at] == "#":
                self.take_match(_LINE)
            if not self.take_break():
                return
            if not self.flow_level:
                self.key_allowed = True

    def _stream_end(self) -> None:
        if self.column():
            self.line += 1
            self.line_start = self.at
        self._document_level()
        self.add(Token(STREAM_END, self.mark(), self.mark()))

    def _document_level(self) -> None:
        self._unroll(-1)
        self._remove_key()
        self.key_allowed = False

    def _value(self) -> None:
        key = self.keys[-1]
        if self._is_valid(key):
            self.add(Token(KEY, key.mark, key.mark), key.number - self.taken)
            self._roll(key.mark, BLOCK_MAPPING, key.number)
            key.possible = False
            self.key_of_token.pop(key.number, None)
            self.key_allowed = False
        else:
            self._begin_in_block("mapping values are not allowed in this context", BLOCK_MAPPING)
            self.key_allowed = not self.flow_level
        self._sign(VALUE)

    # --- keys that no '?' announces --------------------------------------------------------------

    def _is_valid(self, key: _Key) -> bool:
        if key.possible and (key.mark.line < self.line or key.mark.at + _MAX_KEY < self.at):
            self._check_not_required(key)
            key.possible = False
        return key.possible

    def _save_key(self) -> None:
        required = not self.flow_level and self.indent == self.column()
        if self.key_allowed:
            self._remove_key()
            number = self.taken + len(self.tokens)
            self.keys[-1] = _Key(True, required, number, self.mark())
            self.key_of_token[number] = len(self.keys) - 1

    def _remove_key(self) -> None:
        key = self.keys[-1]
        if key.possible:
            self._check_not_required(key)
            key.possible = False
            self.key_of_token.pop(key.number, None)

    def _check_not_required(self, key: _Key) -> None:
        if key.required:
            raise self.refuse("could not find expected ':'", key.mark)

    # --- indentation -----------------------------------------------------------------------------

    def _begin_in_block(self, problem: str, kind: str) -> None:
        if not self.flow_level:
            if not self.key_allowed:
                raise self.refuse(problem)
            self._roll(self.mark(), kind)

    def _roll(self, mark: Mark, kind: str, number: int = -1) -> None:
        """Begin a collection where the column is deeper, before the token with this number."""
        if not self.flow_level and self.indent < mark.column:
            self.indents.append(self.indent)
            self.indent = mark.column
            self.add(Token(kind, mark, mark), number - self.taken if number >= 0 else -1)

    def _unroll(self, column: int) -> None:
        while not self.flow_level and self.indent > column:
            self.add(Token(BLOCK_END, self.mark(), self.mark()))
            self.indent = self.indents.pop()
