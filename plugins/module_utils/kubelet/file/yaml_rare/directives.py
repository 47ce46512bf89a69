# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Directives and tags. Source: goyaml.v2/scannerc.go."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .fault import Mark
from .tokens import BLANK_OR_END, DIRECTIVE, TAG, Token

if TYPE_CHECKING:
    from .scanner import Scanner

YAML_DIRECTIVE, TAG_DIRECTIVE = "YAML", "TAG"
_NAME = re.compile("[-0-9A-Za-z_]*")
_BLANKS = re.compile("[ \t]*")
_DIGITS = re.compile("[0-9]*")
_URI = re.compile(r"[-0-9A-Za-z_;/?:@&=+$,.!~*'()\[\]]*")
_ESCAPED = re.compile("%([0-9a-fA-F]{2})")


def scan_directive(scanner: Scanner) -> Token:
    """`value` is the version or the handle, `more` the tag's prefix."""
    start = scanner.mark()
    scanner.at += 1
    name = scanner.take_match(_NAME)
    if not name:
        raise scanner.refuse("could not find expected directive name", start)
    if scanner.text[scanner.at] not in BLANK_OR_END:
        raise scanner.refuse("found unexpected non-alphabetical character", start)
    if name not in {YAML_DIRECTIVE, TAG_DIRECTIVE}:
        raise scanner.refuse("found unknown directive name", start)
    scanner.take_match(_BLANKS)
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
    if not scanner.take_match(_BLANKS):
        raise scanner.refuse("did not find expected whitespace", start)
    prefix = _uri(scanner, "", start)
    if scanner.text[scanner.at] not in BLANK_OR_END:
        raise scanner.refuse("did not find expected whitespace or line break", start)
    return handle, prefix


def scan_tag(scanner: Scanner) -> Token:
    """`value` is the handle, empty for a whole tag; `more` is the rest."""
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
    handle = "!" + scanner.take_match(_NAME)
    if scanner.text[scanner.at] == "!":
        scanner.at += 1
        handle += "!"
    return handle


def _uri(scanner: Scanner, head: str, start: Mark) -> str:
    """What follows a handle; `head` belongs to it, but for its '!'."""
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
