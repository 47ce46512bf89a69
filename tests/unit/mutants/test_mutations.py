# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of tests/mutants/mutations.py."""

from __future__ import annotations

import pytest
from mutants.mutations import mutants


def becomes(source: str) -> list[str]:
    """Return what the last line of a source can become, where the whole is a program."""
    text = source.encode() + b"\n"
    return [
        mutant.lines(text)[1]
        for mutant in mutants("some.py", text)
        if mutant.is_valid(text) and mutant.line == source.count("\n") + 1
    ]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("x = a < b", ["x = a <= b", "x = a >= b"]),
        ("x = a is not b", ["x = a is b"]),
        ("x = a <= b < c", ["x = a < b < c", "x = a > b < c", "x = a <= b <= c", "x = a <= b >= c"]),
        ("x = a and b", ["x = True and b", "x = a or b", "x = a and True"]),
        ("x = a or 0", ["x = False or 0", "x = a and 0", "x = a or 1"]),
        ("x = not a", ["x = a"]),
        ("x = (a) + (b)", ["x = (a) - (b)"]),
        ("x = a % b", ["x = a // b"]),
        ("x = 'of %s' % b", []),
        ("x = [a] + b", []),
        ("x = 'word'", ["x = 'XXword'"]),
        ("x = 'two words'", []),
        ("x = True", ["x = False"]),
        ("x = a[1:b]", ["x = a[:b]", "x = a[2:b]", "x = a[1:]"]),
        ("x = min(a)", ["x = max(a)"]),
        ("x = a if b else c", ["x = a if False else c", "x = a if True else c"]),
        ("x = [a for a in b if a]", ["x = [a for a in b if False]", "x = [a for a in b if True]"]),
        ("x.y = a", ["pass"]),
        ("x += a", ["pass", "x -= a"]),
        ("f(x)", ["pass"]),
        ("def f():\n    return a", ["return None"]),
        ("def f():\n    return", []),
        ("def f():\n    raise X", ["pass"]),
        ("def f(a=1): pass", ["def f(a=2): pass"]),
        ("for x in y:\n    break", ["continue"]),
        ("for x in y:\n    continue", ["break", "pass"]),
        ("try:\n    f()\nexcept X:\n    x = a", ["raise"]),
        ("while a: f()", ["while False: f()", "while a: pass"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_changed(source: str, expected: list[str]) -> None:
    assert becomes(source) == expected


@pytest.mark.parametrize(
    "source",
    [
        '"""docstring"""',
        'x: Literal["word"]',
        'def f(a: Literal["word"]) -> Literal["word"]: pass',
        '__slots__ = ("word",)',
        "assert a < b",
        'x = TypeVar("word")',
        "if TYPE_CHECKING: f(1)",
        "if t.TYPE_CHECKING: f(1)",
        "@f(1)\nclass A: pass",
    ],
)
def test_what_no_test_can_see_is_left_out(source: str) -> None:
    assert becomes(source) == []


def test_letters_of_several_bytes_before_it() -> None:
    assert becomes("x = 'ä ö'; y = a < b") == ["x = 'ä ö'; y = a <= b", "x = 'ä ö'; y = a >= b"]


def test_a_change_is_told_by_its_lines() -> None:
    source = b"x = f(\n    a <\n    b,\n)\n"
    mutant = next(mutant for mutant in mutants("some.py", source) if mutant.text == "<=")
    assert mutant.line == 2
    assert mutant.lines(source) == ("a <", "a <=")
