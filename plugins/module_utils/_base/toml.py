# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""TOML files of a container runtime: what they say, and marked blocks in them that can be taken out to the byte. Pure.

Python 3.8 has no reader of TOML. This one reads all of its syntax, and of its values only those that matter here:
truth values, whole numbers, strings, and lists and tables of these. Source: TOML 1.0.0.
"""

from __future__ import annotations

import re
from typing import Any, Mapping, NamedTuple, Sequence

# The path of a table or of a key: ("plugins", "io.containerd.nri.v1.nri", "disable").
Path = "tuple[str, ...]"

BEGIN = "# BEGIN kubenode.cpu_manager"
END = "# END kubenode.cpu_manager"
# What a line was that a block replaces.
_WAS = "#- "

LONGEST = 1 << 20
_DEEPEST = 32

_BLANK = re.compile(r"[ \t]*")
_COMMENT = re.compile(r"#[^\r\n]*")
_END_OF_LINE = re.compile(r"[ \t]*(?:#[^\r\n]*)?(?:\r?\n|\Z)")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_BARE_VALUE = re.compile(r"[A-Za-z0-9_.:+-]+(?: \d[0-9:.+Z-]*)?")
_NUMBER = re.compile(r"[+-]?\d+(?:_\d+)*")
_BASIC = re.compile(r'"((?:[^"\\\r\n]|\\.)*)"')
_LITERAL = re.compile(r"'([^'\r\n]*)'")
_LONG_BASIC = re.compile(r'"""((?:[^\\]|\\.)*?)"""(?!")', re.DOTALL)
_LONG_LITERAL = re.compile(r"'''(.*?)'''(?!')", re.DOTALL)
_ESCAPE = re.compile(r'\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|[btnfre"\\])')
_ESCAPED = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", "e": "\x1b", '"': '"', "\\": "\\"}
_BLOCK = re.compile(
    r"^[ \t]*%s\n(?:[ \t]*%s([^\r\n]*)\n)?(?:(?![ \t]*# (?:BEGIN|END) ).*\n)*?[ \t]*%s(\r?\n|\Z)"
    % (re.escape(BEGIN), re.escape(_WAS), re.escape(END)),
    re.MULTILINE,
)


class TOMLError(ValueError):
    """A text that is no TOML, or more than is read here: `what` is wrong in `line`."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__("line %d: %s" % (line, what))


class TOMLEntry(NamedTuple):
    """A key with its value, and the offsets at which the value begins and ends."""

    value: Any
    start: int
    end: int


class Document(NamedTuple):
    """What a file says. entries: by path. tables: the offset after the line of each header, by path."""

    entries: Mapping[Any, TOMLEntry]
    tables: Mapping[Any, int]

    def value(self, path: tuple[str, ...]) -> Any:
        """Return the value of a key, also in an inline table; None where there is none."""
        for length in range(len(path), 0, -1):
            entry = self.entries.get(path[:length])
            if entry is not None:
                return _inside(entry.value, path[length:])
        return None

    def defines(self, table: tuple[str, ...]) -> bool:
        """Return whether there is anything of a table, if only its header."""
        length = len(table)
        return (
            any(path[:length] == table for path in self.tables)
            or any(path[:length] == table for path in self.entries)
            or self.value(table) is not None
        )


def _inside(value: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def parse(text: str) -> Document:
    """Return what a text says. Raises TOMLError."""
    if len(text) > LONGEST:
        raise TOMLError(1, "the file is longer than %d characters" % LONGEST)
    return _Reader(text).document()


class _Reader:
    """Reads a text from its beginning to its end."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def document(self) -> Document:
        entries: dict[tuple[str, ...], TOMLEntry] = {}
        tables: dict[tuple[str, ...], int] = {}
        table: tuple[str, ...] = ()
        arrays = 0
        while True:
            self._skip_lines()
            if self.at == len(self.text):
                return Document(entries, tables)
            begin = self.at
            if self.text.startswith("[", self.at):
                is_array = self.text.startswith("[[", self.at)
                brackets = 2 if is_array else 1
                self.at += brackets
                table = self._key()
                self._expect("]" * brackets)
                if is_array:
                    # Each is a table of its own.
                    arrays += 1
                    table = (*table, "[%d]" % arrays)
                if table in tables or table in entries:
                    raise self._error("the table %s is there twice" % ".".join(table), begin)
                self._end_line()
                tables[table] = self.at
                continue
            path = (*table, *self._key())
            self._expect("=")
            self._skip(_BLANK)
            start = self.at
            value = self._value(0)
            if path in entries or path in tables:
                raise self._error("the key %s is there twice" % ".".join(path), begin)
            entries[path] = TOMLEntry(value, start, self.at)
            self._end_line()

    # --- keys and values ------------------------------------------------------------------------------------

    def _key(self) -> tuple[str, ...]:
        names = []
        while True:
            self._skip(_BLANK)
            if self.text.startswith(('"', "'"), self.at):
                names.append(self._short_string())
            else:
                names.append(self._take(_BARE_KEY, "a key").group())
            self._skip(_BLANK)
            if not self.text.startswith(".", self.at):
                return tuple(names)
            self.at += 1

    def _value(self, depth: int) -> Any:
        if depth > _DEEPEST:
            raise self._error("lists and tables are nested deeper than %d times" % _DEEPEST)
        for quotes, pattern in (('"""', _LONG_BASIC), ("'''", _LONG_LITERAL)):
            if self.text.startswith(quotes, self.at):
                content = self._take(pattern, "a string").group(1)
                content = content[1 + content.startswith("\r\n") :] if content.startswith(("\n", "\r\n")) else content
                return _ESCAPE.sub(_unescaped, content) if pattern is _LONG_BASIC else content
        if self.text.startswith(('"', "'"), self.at):
            return self._short_string()
        if self.text.startswith("[", self.at):
            return self._list(depth)
        if self.text.startswith("{", self.at):
            return self._inline_table(depth)
        word = self._take(_BARE_VALUE, "a value").group()
        if word in ("true", "false"):
            return word == "true"
        return int(word.replace("_", "")) if len(word) < 20 and _NUMBER.fullmatch(word) else _Opaque(word)

    def _short_string(self) -> str:
        if self.text.startswith("'", self.at):
            return self._take(_LITERAL, "a string").group(1)
        return _ESCAPE.sub(_unescaped, self._take(_BASIC, "a string").group(1))

    def _list(self, depth: int) -> list[Any]:
        self.at += 1
        values: list[Any] = []
        while True:
            self._skip_lines()
            if self._accepts("]"):
                return values
            values.append(self._value(depth + 1))
            self._skip_lines()
            if not self._accepts(","):
                self._expect("]")
                return values

    def _inline_table(self, depth: int) -> dict[str, Any]:
        self.at += 1
        table: dict[str, Any] = {}
        self._skip_lines()
        while not self._accepts("}"):
            *above, name = self._key()
            self._expect("=")
            self._skip(_BLANK)
            inner = table
            for part in above:
                inner = inner.setdefault(part, {})
                if not isinstance(inner, dict):
                    raise self._error("%s is a value and a table" % part)
            if name in inner:
                raise self._error("the key %s is there twice" % name)
            inner[name] = self._value(depth + 1)
            self._skip_lines()
            if not self._accepts(","):
                self._expect("}")
                break
            self._skip_lines()
        return table

    # --- steps ----------------------------------------------------------------------------------------------

    def _skip(self, pattern: re.Pattern[str]) -> None:
        match = pattern.match(self.text, self.at)
        if match is not None:
            self.at = match.end()

    def _skip_lines(self) -> None:
        """Go to the next character that is neither blank nor in a comment."""
        before = -1
        while before != self.at:
            before = self.at
            while self.text.startswith((" ", "\t", "\n", "\r\n"), self.at):
                self.at += 1 + self.text.startswith("\r\n", self.at)
            self._skip(_COMMENT)

    def _take(self, pattern: re.Pattern[str], what: str) -> re.Match[str]:
        match = pattern.match(self.text, self.at)
        if match is None:
            raise self._error("there is no %s where %s begins" % (what.rsplit(maxsplit=1)[-1], what))
        self.at = match.end()
        return match

    def _accepts(self, mark: str) -> bool:
        found = self.text.startswith(mark, self.at)
        self.at += len(mark) if found else 0
        return found

    def _expect(self, mark: str) -> None:
        self._skip(_BLANK)
        if not self._accepts(mark):
            raise self._error("there is no %s" % mark)

    def _end_line(self) -> None:
        match = _END_OF_LINE.match(self.text, self.at)
        if match is None:
            raise self._error("there is more than one statement in a line")
        self.at = match.end()

    def _error(self, what: str, at: int | None = None) -> TOMLError:
        return TOMLError(self.text.count("\n", 0, self.at if at is None else at) + 1, what)


class _Opaque(str):
    """A value of no kind that matters here, such as a time."""

    __slots__ = ()


def _unescaped(match: re.Match[str]) -> str:
    code = match.group(1)
    if code[0] in "uU":
        number = int(code[1:], 16)
        return chr(number) if number <= 0x10FFFF else "\ufffd"
    return _ESCAPED[code]


# --- marked blocks ------------------------------------------------------------------------------------------


# In which order blocks stand that begin at the same place.
_BELOW_HEADER, _REPLACED, _AT_END = range(3)


class _Change(NamedTuple):
    """A block: where it begins, its rank among those that begin there, the line that it replaces, and its lines."""

    begin: int
    rank: int
    was: str | None
    lines: str


def table_text(tables: Mapping[Any, Mapping[str, str]]) -> str:
    """Return tables with their keys, whose values are given as TOML writes them."""
    return "\n".join(
        "[%s]\n%s" % (header(table), "".join("%s = %s\n" % pair for pair in keys.items()))
        for table, keys in tables.items()
    )


def header(table: Sequence[str]) -> str:
    """Return the path of a table as TOML writes it."""
    return ".".join(name if _BARE_KEY.fullmatch(name) else '"%s"' % name for name in table)


def with_keys(text: str, tables: Mapping[Any, Mapping[str, str]]) -> str:
    """Return a text in which keys of tables have other values; each change is a marked block. Raises TOMLError.

    The text is one that without_blocks() has given. Values are given as TOML writes them.
    """
    document = parse(text)
    changes: list[_Change] = []
    missing: dict[Any, Mapping[str, str]] = {}
    for table, keys in tables.items():
        _check_open(text, document, table)
        new = {}
        for key, value in keys.items():
            entry = document.entries.get((*table, key))
            if entry is not None:
                begin = text.rfind("\n", 0, entry.start) + 1
                newline = text.find("\n", entry.end)
                end = len(text) if newline < 0 else newline
                was = text[begin:end].rstrip("\r")
                if "\n" in was:
                    raise TOMLError(text.count("\n", 0, begin) + 1, "the value of %s has more than one line" % key)
                changed = was[: entry.start - begin] + value + was[entry.end - begin :]
                changes.append(_Change(begin, _REPLACED, was, changed + "\n"))
            else:
                new[key] = value
        if new and table in document.tables:
            lines = "".join("%s = %s\n" % pair for pair in new.items())
            changes.append(_Change(document.tables[table], _BELOW_HEADER, None, lines))
        elif new:
            missing[table] = new
    if missing:
        changes.append(_Change(len(text), _AT_END, None, table_text(missing)))
    for change in sorted(changes, key=lambda change: change[:2], reverse=True):
        begin, before = change.begin, change.was
        if before is None and begin and text[begin - 1] != "\n":
            raise TOMLError(text.count("\n") + 1, "the last line has no end")
        block = "%s\n%s%s%s" % (BEGIN, "" if before is None else "%s%s\n" % (_WAS, before), change.lines, END)
        text = text[:begin] + block + ("\n" if before is None else "") + text[begin + len(before or "") :]
    parse(text)
    return text


def _check_open(text: str, document: Document, table: tuple[str, ...]) -> None:
    """Raise TOMLError for a table that is written in one line, or with dots, and so takes no header."""
    length = len(table)
    headers = [path for path in document.tables if path[:length] == table]
    for path, entry in document.entries.items():
        is_inline = path == table[: len(path)]
        is_dotted = path[:length] == table and not any(path[: len(above)] == above for above in headers)
        if is_inline or is_dotted:
            line = text.count("\n", 0, entry.start) + 1
            raise TOMLError(line, "the table %s cannot be added to" % header(table))


def without_blocks(text: str) -> str:
    """Return a text as it was before with_keys(). Raises TOMLError where a block was damaged since."""
    plain = _BLOCK.sub(lambda match: "" if match.group(1) is None else match.group(1) + match.group(2), text)
    for mark in (BEGIN, END):
        place = plain.find(mark)
        if place >= 0:
            raise TOMLError(plain.count("\n", 0, place) + 1, "%s has no counterpart" % mark)
    return plain
