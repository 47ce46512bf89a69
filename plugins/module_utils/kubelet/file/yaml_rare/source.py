# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The characters of a file. Source: goyaml.v2/readerc.go."""

from __future__ import annotations

import re
from typing import NamedTuple

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
    """A text is taken as UTF-8; surrogates stand in it for bytes that are none."""
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
    """Whether there are surrogates that stand for no byte."""
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
    """Where the bytes begin that are decoded together with the one at `place`."""
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
