# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Variables that systemd gives to a service: how it reads files of them, and splits them into words. Pure.

Source: EnvironmentFile= in systemd.exec(5), parse_env_file_internal() and extract_first_word() of systemd.
"""

from __future__ import annotations

import re
from typing import Callable, Iterator, Tuple

NAME = re.compile("[A-Za-z_][A-Za-z0-9_]*")
# How a comment begins.
COMMENT = "#;"
# What a backslash makes a plain sign between double quotes.
ESCAPED = '"\\`$'
# Signs that systemd takes for space, and for the end of a line.
_SPACE, _NEWLINE = " \t\n\r", "\n\r"
# Control characters but tabs and ends of lines, and bytes that are no text.
_NO_VALUE = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")

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

    Raises ValueError for a quote without its end, if `strict`.
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

    What is no name of a variable, as of a line that begins with export, gives none. Since version 254 a comment ends at
    its line, whatever its last sign.
    """
    variables: dict[str, str] = {}
    if "\0" in text:
        return variables  # systemd does not read such a file
    position = 0
    while position < len(text):
        if text[position] in _SPACE:
            position += 1
        elif text[position] in COMMENT:
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
            if NAME.fullmatch(name) and not _NO_VALUE.search(value):
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
            sign = following if following in ESCAPED else "" if following == "\n" else sign + following
        value += sign
    return value, position
