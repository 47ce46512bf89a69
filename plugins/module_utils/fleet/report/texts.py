# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Values of a node's answer as texts that can be shown. Pure.

A node may be hostile: every part of its answer may be missing, of another type, or meant to become markup or an escape
sequence. A text of here has no control characters and a limited length; a list has a limited length.
"""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Any, Mapping

from ...errors import MALFORMED, CPUManagerError

# More than any real node has.
_LONGEST_TEXT = 20000
_MOST_ITEMS = 1000

# What reading a wrong answer raises; CPUManagerError is what the types of the core raise.
WRONG = (CPUManagerError, *MALFORMED)


def text(value: Any) -> str:
    """Any value as text that can be shown: without control characters, apart from line ends, and not too long."""
    shown = value if isinstance(value, str) else _as_json(value)
    if len(shown) > _LONGEST_TEXT:
        shown = shown[:_LONGEST_TEXT] + " …"
    if shown.isprintable():
        return shown
    # ssh ends its lines as a terminal does.
    return "".join(map(_shown, re.sub(r"\r+(\n|\Z)", r"\1", shown).replace("\t", " ")))


def _as_json(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False).replace('"', "")
    except WRONG as error:
        return "cannot be shown: %s" % error


def line(value: object) -> str:
    """The same in one line."""
    return " ".join(text(value).split())


def _shown(character: str) -> str:
    """A character; what a terminal or a browser would obey, or could not show, as an escape."""
    if character == "\n" or unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"):
        return character
    code = ord(character)
    return "\\x%02x" % code if code < 0x100 else "\\u%04x" % code if code < 0x10000 else "\\U%08x" % code


def counted(things: object, name: str) -> str:
    """`2 nodes`; `1 node`."""
    number = len(things) if isinstance(things, (Mapping, list)) else 0
    return "%d %s%s" % (number, name, "" if number == 1 else "s")


def mapping(value: object) -> Mapping[str, Any]:
    """The value where it is a mapping, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def items(value: Any) -> list[Any]:
    """The first items of a list; none of what is no list."""
    return value[:_MOST_ITEMS] if isinstance(value, list) else []
