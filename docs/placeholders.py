# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Texts with placeholders for the parts that depend on a node: how they read, what they match, what they are called."""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from typing import Mapping

# Around the name of a part that depends on a node.
BEGIN, END = "\ue000", "\ue001"
PLACEHOLDER = re.compile(BEGIN + "([^%s]*)" % END + END)

# What placeholders are called, where the code has another name.
_LABELS = {
    "duration_text": "duration",
    "float_text": "number",
    "for_people": "amount",
    "kind_of": "type",
    "len": "number",
    "map_text": "options",
    "minor": "version",
    "one_of": "options",
    "pooled_cpus": "CPUs of the node",
    "printed": "amount",
}
# Variables whose names say less than what they are made of, and methods that say nothing.
_PLAIN_NAMES = ("found", "said", "shown", "text", "what")
_PLAIN_LABELS = ("get", "replace", "rstrip", "value")


def shown(template: str) -> str:
    """Return a template as people read it."""
    return PLACEHOLDER.sub(lambda match: "<%s>" % match.group(1), template)


def is_in(template: str, text: str) -> bool:
    """Return whether a text, with single spaces, has what a template can become."""
    longest, compiled = _pattern(template)
    return longest in text and compiled.search(text) is not None


def becomes(template: str, text: str) -> bool:
    """Return whether a text, with single spaces, is what a template can become."""
    return _pattern(template)[1].fullmatch(text) is not None


@lru_cache(maxsize=None)
def _pattern(template: str) -> tuple[str, re.Pattern[str]]:
    """Return (the longest part that is no placeholder, all parts)"""
    literals = [" ".join((part + "|").split())[:-1] for part in PLACEHOLDER.split(template)[::2]]
    return max(literals, key=len), re.compile(".*".join(map(re.escape, literals)), re.DOTALL)


def words(template: str) -> int:
    """Return how many letters of a template are no placeholder."""
    return sum(map(str.isalpha, PLACEHOLDER.sub("", template)))


def renamed(text: str, name: str) -> str:
    """Return what is nothing but a placeholder is called as the variable is."""
    match = PLACEHOLDER.fullmatch(text)
    if match is None or (name in _PLAIN_NAMES and match.group(1) not in _PLAIN_LABELS):
        return text
    return BEGIN + label(name) + END


def label(name: str) -> str:
    return _LABELS.get(name, name.strip("_").replace("_", " ").lower())


def label_of(node: ast.expr) -> str:
    """Return what a placeholder is called."""
    if isinstance(node, ast.Name):
        return label(node.id)
    if isinstance(node, ast.Attribute):
        owner = name_of(node.value)
        return label(owner if owner in ("error", "fault", "failure") else node.attr)
    if isinstance(node, ast.Call):
        return _label_of_call(node)
    inner: Mapping[type, str] = {ast.Subscript: "value", ast.Starred: "value", ast.BinOp: "left", ast.JoinedStr: ""}
    if isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.SetComp)):
        return label_of(node.generators[0].iter)
    if isinstance(node, ast.BoolOp):
        return label_of(node.values[0])
    attribute = inner.get(type(node), "")
    return label_of(getattr(node, attribute)) if attribute else "value"


def _label_of_call(node: ast.Call) -> str:
    name = name_of(node.func)
    if name in _LABELS:
        return _LABELS[name]
    is_method = isinstance(node.func, ast.Attribute)
    if node.args and (name in ("join", "map", "sorted", "tuple", "int", "set", "text_in") or not is_method):
        return label_of(node.args[-1])
    return label_of(node.func.value) if isinstance(node.func, ast.Attribute) and not node.args else label(name)


def name_of(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
