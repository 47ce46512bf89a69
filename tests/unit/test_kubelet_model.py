# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a kubelet runs with is one model: each of its parts stands in one place."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Iterator

PLUGINS = Path(__file__).parents[2] / "plugins"
SOURCES = {str(path.relative_to(PLUGINS)): ast.parse(path.read_text("utf-8")) for path in PLUGINS.rglob("*.py")}

# The reader of amounts, and what Go says of a text that it does not read.
QUANTITY, AMOUNT = "module_utils/_base/quantity.py", "module_utils/_kubelet/start/amount.py"
# Who reads an amount knows one of these, or asks by a pattern.
SUFFIXES = {"Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "\u00b5s", "\u03bcs"}
ALL_SUFFIXES = "KMGTP"
PARTS = {"DECIMAL_SUFFIXES", "BINARY_SUFFIXES", "DURATION_UNITS", "split_quantity"}


def texts(tree: ast.AST) -> Iterator[str]:
    """The texts in a piece of code."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def imported(tree: ast.AST) -> set[str]:
    """The names that a piece of code imports of others."""
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
