# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The kinds of tokens that YAML has, and which characters end a line."""

from __future__ import annotations

from typing import NamedTuple

from .fault import Mark

# Kinds of tokens that are not the sign that they are written with.
STREAM_END, DIRECTIVE, DOCUMENT_START, DOCUMENT_END = "stream end", "directive", "document start", "document end"
BLOCK_SEQUENCE, BLOCK_MAPPING, BLOCK_END = "block sequence", "block mapping", "block end"
ALIAS, ANCHOR, TAG, SCALAR = "alias", "anchor", "tag", "scalar"
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
