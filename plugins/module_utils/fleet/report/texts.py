# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Values of a node's answer as texts that can be shown. Pure.

A node may be hostile: every part of its answer may be missing, of another type, or meant to become markup or an escape
sequence. A text of here has no control characters and a limited length; a list has a limited length.
"""

from __future__ import annotations

import json
import unicodedata
from typing import Any, Callable, Dict, Mapping

from ...errors import MALFORMED, CPUManagerError

# More than any real node has.
_LONGEST_TEXT = 20000
_MOST_ITEMS = 1000
# Of the answer of a node as JSON, in characters; those of real nodes have a hundredth.
LARGEST_ANSWER = 4 << 20
# Of characters, those of which it is kept how they are shown. No language needs as many in one fleet.
_MOST_KEPT = 10000

# What reading a wrong answer raises; CPUManagerError is what the types of the core raise.
WRONG = (CPUManagerError, *MALFORMED)


def plain(answer: object, default: Callable[[object], object] | None = None) -> Any:
    """An answer as plain data that can be written. Raises WRONG, also for more than any real node answers.

    default: what is written in place of what JSON does not know.
    """
    written = json.dumps(answer, default=default, allow_nan=False)
    if len(written) > LARGEST_ANSWER:
        raise ValueError("it has %d characters, more than that of any real node" % len(written))
    return json.loads(written)


def text(value: Any) -> str:
    """Any value as text that can be shown: without control characters, apart from line ends, and not too long."""
    shown = value if isinstance(value, str) else _as_json(value)
    if len(shown) > _LONGEST_TEXT:
        shown = shown[:_LONGEST_TEXT] + " …"
    if shown.isprintable():
        return shown
    # ssh ends its lines as a terminal does.
    return "\n".join(part.rstrip("\r") for part in shown.split("\n")).translate(_SHOWN)


def _as_json(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False).replace('"', "")
    except WRONG as error:
        return "cannot be shown: %s" % error


def line(value: object) -> str:
    """The same in one line."""
    return " ".join(text(value).split())


class _Shown(Dict[int, str]):
    """What each character is shown as: what a terminal or a browser would obey, or could not show, as an escape."""

    def __missing__(self, code: int) -> str:
        shown = chr(code)
        if unicodedata.category(shown) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"):
            shown = "\\x%02x" % code if code < 0x100 else "\\u%04x" % code if code < 0x10000 else "\\U%08x" % code
        if len(self) < _MOST_KEPT:
            self[code] = shown
        return shown


_SHOWN = _Shown({ord("\n"): "\n", ord("\t"): " "})


def size(things: object) -> int:
    """How many items there are; none in what is no list."""
    return len(things) if isinstance(things, (Mapping, list)) else 0


def mapping(value: object) -> Mapping[str, Any]:
    """The value where it is a mapping, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def items(value: Any) -> list[Any]:
    """The first items of a list; none of what is no list."""
    return value[:_MOST_ITEMS] if isinstance(value, list) else []
