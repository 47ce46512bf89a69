# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Errors are given where and remedy by themselves: within the text of what is wrong, no program finds them."""

from __future__ import annotations

import ast
from functools import lru_cache
from pathlib import Path
from typing import Iterator

import pytest

PLUGINS = Path(__file__).parents[5] / "plugins"

# What may follow a "; ": not what to do, but how things are now.
STATES = (
    "nothing was written",
    "nothing was changed",
    "nothing of it was read",
    "the old content is still there",
    "this link is not followed",
)


@lru_cache(maxsize=None)
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def name_of(node: ast.expr) -> str:
    """Return the last name of what is called, or is a base: C(InputError), C(errors.InputError)."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def error_classes(paths: list[Path]) -> set[str]:
    """Return the names of CPUManagerError and of all classes made from it."""
    bases = {
        node.name: {name_of(base) for base in node.bases}
        for path in paths
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ClassDef)
    }
    found = {"CPUManagerError"}
    while True:
        more = {name for name, above in bases.items() if above & found} - found
        if not more:
            return found
        found |= more


def makers_of(tree: ast.Module, classes: set[str]) -> set[str]:
    """Return the functions of a file that make an error of what they are given: C(return InputError(what, ...))."""
    return {
        function.name
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Return)
        and isinstance(node.value, ast.Call)
        and name_of(node.value.func) in classes
        and {argument.id for argument in node.value.args if isinstance(argument, ast.Name)}
        & {argument.arg for argument in function.args.args}
    }


def given_texts(call: ast.Call) -> Iterator[ast.expr]:
    """Yield what a call is given beside where, remedy and kind. An error's own arguments stand in this order."""
    yield from call.args[:1]
    yield from (keyword.value for keyword in call.keywords if keyword.arg in ("what", "text"))


def literals(expression: ast.expr) -> Iterator[str]:
    """Yield the texts that an expression is composed of; of a "%", also those that are put in."""
    for node in ast.walk(expression):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def has_remedy(text: str) -> bool:
    return any(part and not part.startswith(STATES) for part in text.split("; ")[1:])


def has_place(expression: ast.expr) -> bool:
    while isinstance(expression, ast.BinOp):
        expression = expression.left
    return isinstance(expression, ast.Constant) and str(expression.value).startswith("%s: ")


def wrong(tree: ast.Module, classes: set[str]) -> list[int]:
    """Return the lines where an error is made that has a remedy or a place within the text of what is wrong."""
    called = classes | makers_of(tree, classes)
    lines = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and name_of(node.func) in called:
            texts = node.args if name_of(node.func) not in classes else list(given_texts(node))
            if any(has_place(text) or any(map(has_remedy, literals(text))) for text in texts):
                lines.append(node.lineno)
    return lines


def test_where_and_remedy_are_not_within_the_text() -> None:
    paths = sorted(PLUGINS.rglob("*.py"))
    classes = error_classes(paths)
    found = {str(path.relative_to(PLUGINS)): wrong(tree_of(path), classes) for path in paths}
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_all_classes_are_known() -> None:
    classes = error_classes(sorted(PLUGINS.rglob("*.py")))
    assert {"InputError", "KubeletError", "NodeError", "RefusedError", "ConfigurationError", "SilentError"} <= classes


@pytest.mark.parametrize(
    "source",
    [
        'raise InputError("no pods; give some")',
        'raise errors.InputError(what="no pods; give some")',
        'raise InputError("pod %s: no name" if one else "no pods" + "; give some")',
        'raise InputError("is %d; give " "more" % 3)',
        'raise InputError("%s: is no file" % path)',
        'raise InputError("%s%s" % (error, "; run again"))',
        'raise InputError("is 3; nothing was written; give 4")',
        'def bad(what): return InputError(what, "lscpu")\nraise bad("no CPU; give all")',
        'class Own(InputError): pass\nraise Own("%s: %s" % (name, error)) from error',
    ],
)
def test_what_is_wrong_is_found(source: str) -> None:
    assert wrong(ast.parse(source), {"InputError", "Own"})


@pytest.mark.parametrize(
    "source",
    [
        'raise InputError("no pods", "here", "give some; or none")',
        'raise InputError("no pods", where="%s: %s" % (path, field), remedy="give some; or none")',
        'raise InputError("is 3; nothing was written", remedy="give 4")',
        'raise InputError("pod %s: no name" % name)',
        'raise ValueError("no pods; give some")',
    ],
)
def test_what_is_right_is_not(source: str) -> None:
    assert not wrong(ast.parse(source), {"InputError"})
