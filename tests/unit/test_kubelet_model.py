# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a kubelet runs with is one model: each of its parts stands in one place."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Iterator

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.configuration import COMMON_DEFAULTS
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.flags import FLAGS
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.settings import SETTINGS
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.decode import DEFAULTS

PLUGINS = Path(__file__).parents[2] / "plugins"
SOURCES = {str(path.relative_to(PLUGINS)): ast.parse(path.read_text("utf-8")) for path in PLUGINS.rglob("*.py")}

# The reader of amounts, and what Go says of a text that it does not read.
QUANTITY, AMOUNT = "module_utils/_base/quantity.py", "module_utils/_kubelet/start/amount.py"
# Who reads an amount knows one of these, or asks by a pattern.
SUFFIXES = {"Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "\u00b5s", "\u03bcs"}
ALL_SUFFIXES = "KMGTP"
PARTS = {"DECIMAL_SUFFIXES", "BINARY_SUFFIXES", "DURATION_UNITS", "split_quantity"}

# Names of flags that mean nothing else.
NAMES = {name for name in FLAGS if "-" in name}
TABLE, CONFIGURATION = "module_utils/_kubelet/flags.py", "module_utils/_kubelet/configuration.py"
# Who merges what a kubelet is given, and by what: for what is said of its settings, and for what it says itself.
EFFECTIVE = "module_utils/_kubelet/effective.py"
LOADING, COMMAND_LINE = "module_utils/_kubelet/start/loading.py", "module_utils/_kubelet/start/command_line.py"
MERGING = {EFFECTIVE: {"merge_patch", "put_over"}, LOADING: {"merge_patch"}, COMMAND_LINE: {"put_over"}}


def texts(tree: ast.AST) -> Iterator[str]:
    """Yield the texts in a piece of code."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def imported(tree: ast.AST) -> set[str]:
    """Return the names that a piece of code imports of others."""
    return {name.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for name in node.names}


def test_nobody_else_reads_an_amount() -> None:
    """Quantities and durations: a second reader would take another text for the same amount."""
    readers = {
        place
        for place, tree in SOURCES.items()
        if any(text in SUFFIXES or ALL_SUFFIXES in text for text in texts(tree))
    }
    assert readers == {QUANTITY, AMOUNT}
    assert {place for place, tree in SOURCES.items() if imported(tree) & PARTS} == {AMOUNT}


def test_the_table_of_flags_stands_once() -> None:
    tables = {
        place
        for place, tree in SOURCES.items()
        if any(len(NAMES.intersection(text.split())) > 1 for text in texts(tree))
    }
    assert {place for place in tables if place.startswith("module_utils/")} == {TABLE}


def test_files_and_flags_are_merged_in_one_way() -> None:
    merging = {place: imported(tree) & {"merge_patch", "put_over"} for place, tree in SOURCES.items()}
    assert {place: names for place, names in merging.items() if names} == MERGING


def reads_of(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield where a piece of code takes one of the values of a configuration."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript):
            holder: ast.AST = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get":
            holder = node.func.value
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "value_at":
            holder = node.args[0]
        else:
            continue
        if ast.unparse(holder) == "configuration.values":
            yield node


def test_a_value_comes_with_who_gives_it() -> None:
    """Outside of the package it is asked of Configuration.given()."""
    outside = {place: tree for place, tree in SOURCES.items() if "_kubelet/" not in place}
    assert {place for place, tree in outside.items() if any(reads_of(tree))} == set()


def test_a_default_stands_once() -> None:
    """Of those that others than the prediction of a start need; one whose value nothing else has."""
    port = COMMON_DEFAULTS["healthzPort"]
    with_port = {
        place
        for place, tree in SOURCES.items()
        if any(isinstance(node, ast.Constant) and node.value == port for node in ast.walk(tree))
    }
    assert with_port == {CONFIGURATION}
    for setting in SETTINGS.values():
        if len(setting.path) == 1 and setting.path[0] in DEFAULTS:
            assert setting.default is COMMON_DEFAULTS[setting.path[0]]
            assert setting.default is DEFAULTS[setting.path[0]]
