# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files in which distributions write the kubelet's flags down."""

from __future__ import annotations

import json
import re
from typing import Callable, Iterable, Iterator, Sequence, Tuple

from .flags import END_OF_FLAGS, NAMES, split_flags

# k3s' and RKE2's key; with the + its words are added to those of the files before.
_KEY, _ADDING_KEY = "kubelet-arg", "kubelet-arg+"
_KUBELET_ARG = re.compile(r"""(?m)^(["']?)kubelet-arg\+?\1[ \t]*:.*(?:\n(?:[] \t#-].*)?)*""")
# Where a document of YAML begins and ends.
_DOCUMENT, _END = re.compile(r"(?m)^---(?=\s|$)"), re.compile(r"(?m)^(?:---|\.\.\.)(?=\s|$)")
_NOTHING = re.compile(r"(?m)(?:^[ \t]*(?:#.*|%.*)?\n)*")
_KUBELET_ARG_HEADER = "# The kubelet's CPU settings, written by kubenode.cpu_manager.\n"


# Signs that systemd takes for space, for the end of a line, and that a backslash keeps between double quotes.
_SPACE, _NEWLINE, _KEPT = " \t\n\r", "\n\r", '"\\`$'
_NAME = re.compile("[A-Za-z_][A-Za-z0-9_]*")
# How the names of variables with flags end, as in KUBELET_EXTRA_ARGS.
_OF_FLAGS = ("ARGS", "FLAGS", "OPTIONS", "OPTS")
# Control characters but tabs and ends of lines.
_NO_VALUE = re.compile("[\x00-\x08\x0b-\x1f\x7f]")

# What a backslash makes of what is behind it at a position: the signs, and the position behind them.
Escape = Callable[[str, int], Tuple[str, int]]


def plain_escape(text: str, position: int) -> tuple[str, int]:
    """A backslash keeps the sign behind it, whatever that is."""
    return text[position : position + 1], position + 1


def split_words(text: str) -> list[str]:
    """The words of a variable, as systemd splits it."""
    return list(words_of(text, plain_escape, strict=False))


def words_of(text: str, escape: Escape, strict: bool) -> Iterator[str]:
    """The words of a text as systemd splits it: quotes hold words together, also within one, and are taken away.

    Raises ValueError for a quote without its end, if `strict`. Source: extract_first_word() of systemd.
    """
    word: str | None = None
    quote = ""
    position = 0
    while position < len(text):
        sign = text[position]
        position += 1
        if sign == "\\":
            kept, position = escape(text, position)
            word = (word or "") + kept
        elif sign == quote:
            quote = ""
        elif quote:
            word = (word or "") + sign
        elif sign in "\"'":
            quote, word = sign, word or ""
        elif sign not in _SPACE:
            word = (word or "") + sign
        elif word is not None:
            yield word
            word = None
    if quote and strict:
        raise ValueError("a quote has no end")
    if word is not None:
        yield word


def read_environment(text: str) -> dict[str, str]:
    """The variables of an environment file, as systemd reads it.

    What is no name of a variable, as of a line that begins with export, gives none. Source: systemd.exec(5) and
    parse_env_file_internal() of systemd; since version 254 a comment ends at its line, whatever its last sign.
    """
    variables: dict[str, str] = {}
    if "\0" in text:
        return variables  # systemd does not read such a file
    position = 0
    while position < len(text):
        if text[position] in _SPACE:
            position += 1
        elif text[position] in "#;":
            position = _end_of_line(text, position)
        else:
            end = _end_of_line(text, position)
            # Whatever is first belongs to the name.
            equals = text.find("=", position + 1, end)
            if equals < 0:
                position = end
                continue
            name = text[position:equals].rstrip(_SPACE)
            value, position = _environment_value(text, equals + 1)
            if _NAME.fullmatch(name) and not _NO_VALUE.search(value):
                variables[name] = value
    return variables


def _end_of_line(text: str, position: int) -> int:
    return next((at for at in range(position, len(text)) if text[at] in _NEWLINE), len(text))


def _environment_value(text: str, position: int) -> tuple[str, int]:
    """The value that begins at a position, and the position behind it.

    Quotes count at the beginning, and behind the end of another quote. Space around it does not count.
    """
    value = ""
    # How much of the value space at its end cannot be taken from.
    kept = 0
    is_begun = False
    while position < len(text):
        sign = text[position]
        position += 1
        if sign in _NEWLINE:
            break
        if sign == "\\":
            is_begun = True
            value += "" if text[position : position + 1] in _NEWLINE else text[position]
            kept = len(value)
            position += 1
        elif is_begun or sign not in _SPACE + "\"'":
            is_begun = True
            value += sign
            kept = kept if sign in _SPACE else len(value)
        elif sign in "\"'":
            quoted, position = _quoted(text, position, sign)
            value += quoted
            kept = len(value)
    return value[:kept] if is_begun else value, position


def _quoted(text: str, position: int, quote: str) -> tuple[str, int]:
    value = ""
    while position < len(text):
        sign = text[position]
        position += 1
        if sign == quote:
            break
        if sign == "\\" and quote == '"':
            following = text[position : position + 1]
            position += 1
            sign = following if following in _KEPT else "" if following == "\n" else sign + following
        value += sign
    return value, position


def environment_words(text: str) -> list[str]:
    """The words of those variables of an environment file that give a program flags, as far as that can be seen."""
    given = ((name, split_words(value)) for name, value in read_environment(text).items())
    return [
        word
        for name, words in given
        # Others are for the program's environment, such as HOME and PATH.
        if words and (words[0].startswith("-") or name.endswith(_OF_FLAGS))
        for word in words
    ]


def line_words(text: str) -> list[str]:
    """The words of a file that has a flag, and its value, on each line. MicroK8s takes all quotes away."""
    lines = text.replace('"', "").replace("'", "").splitlines()
    return [word for line in lines if not line.strip().startswith("#") for word in line.split()]


def with_lines(text: str, fields: Iterable[str], arguments: Sequence[str]) -> str:
    """Such a file with these arguments in place of those that give the fields; all other lines stay as they are."""
    names = {NAMES[field] for field in fields}
    kept: list[str] = []
    place = None
    has_ended = False
    for line in text.splitlines(keepends=True):
        flags = [] if has_ended else list(split_flags(line_words(line)))
        if ("", [END_OF_FLAGS]) in flags:
            # Behind it nothing is a flag.
            has_ended, place = True, len(kept) if place is None else place
        if not any(name in names for name, _words in flags):
            kept.append(line)
            continue
        place = len(kept) if place is None else place
        others = [word for name, words in flags if name not in names for word in words]
        kept += [" ".join(others) + "\n"] if others else []
    if place is None:
        place = len(kept)
        if kept and not kept[-1].endswith("\n"):
            kept[-1] += "\n"
    return "".join([*kept[:place], *(argument + "\n" for argument in arguments), *kept[place:]])


def kubelet_args(texts: Iterable[str]) -> list[list[str]]:
    """The kubelet's arguments in each of k3s' or RKE2's files, which are read in this order.

    A file's list takes the place of those before it, unless its key has a plus. Raises ValueError.
    """
    lists: list[list[str]] = []
    for text in texts:
        mine: list[str] = []
        for key, value in _kubelet_arg_members(text):
            mine += ["--" + str(word).lstrip("-") for word in (value if isinstance(value, list) else [value]) if word]
            if key == _KEY:
                lists = [[] for _file in lists]
        lists.append(mine)
    return lists


def _kubelet_arg_members(text: str) -> Iterator[tuple[str, object]]:
    # Imported here: of the distributions only these two have YAML around their flags.
    from ..file.document import is_json, read_document

    text = _first_document(text.replace("\r\n", "\n"))
    if is_json(text):
        members = read_document(text).value
        yield from ((key, members[key]) for key in (_KEY, _ADDING_KEY) if key in members)
        return
    # Only this key: the rest of the file may be written in ways that the reader refuses.
    for block in _KUBELET_ARG.finditer(text):
        yield from read_document(block.group()).value.items()


def _first_document(text: str) -> str:
    """All that k3s and RKE2 read of a file."""
    # What stands before the sign are comments and directives, or a document of its own.
    begin = _DOCUMENT.match(text, _NOTHING.match(text).end())  # type: ignore[union-attr]
    text = text[begin.end() :] if begin else text
    end = _END.search(text)
    return text[: end.start()] if end else text


def kubelet_arg_file(arguments: Iterable[str]) -> str:
    """The text of such a file that adds these arguments."""
    lines = ["  - %s\n" % json.dumps(argument[len("--") :]) for argument in arguments]
    return _KUBELET_ARG_HEADER + (_ADDING_KEY + ":\n" + "".join(lines) if lines else "")
