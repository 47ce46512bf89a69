# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.answers import (
    items,
    line,
    mapping,
    size,
    text,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.answers import LONGEST, can_be_shown, json_values

TEXTS = [
    ("plain", "plain"),
    ("ümläut 漢字 <b>", "ümläut 漢字 <b>"),
    ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
    ("\x9b31m", "\\x9b31m"),  # the same in one character
    ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
    ("a\rb\x08c\x00\x7f", "a\\x0db\\x08c\\x00\\x7f"),
    ("a\nb", "a\nb"),
    ("a\tb", "a b"),
    ("a\r\nb\r", "a\nb"),  # as ssh ends its lines
    ("user\u202etxt.exe", "user\\u202etxt.exe"),  # right to left
    ("a\u200bb\ufeff\u2028", "a\\u200bb\\ufeff\\u2028"),
    ("\ud800", "\\ud800"),  # no character at all: nobody can write it as UTF-8
    ("\ue000\uffff", "\\ue000\\uffff"),  # of private use, and of none
    ("\U000e0001", "\\U000e0001"),
    ("a\xa0b", "a\xa0b"),  # a space, though not a plain one
    (None, "null"),
    (True, "true"),
    (1.5, "1.5"),
    ({"a": ["b", 1]}, "{a: [b, 1]}"),
    ("", ""),
]


@pytest.mark.parametrize(("value", "shown"), TEXTS)
def test_text(value: Any, shown: str) -> None:
    assert text(value) == shown


def test_what_cannot_be_written_as_json_is_a_text() -> None:
    deep: list[Any] = []
    for _level in range(100000):
        deep = [deep]
    circle: list[Any] = []
    circle.append(circle)
    for value in (deep, circle, {1, 2}, {(1, 2): 3}):
        assert text(value).startswith("cannot be shown: ")
        assert can_be_shown(text(value))


def test_line() -> None:
    assert line("a\n  b\n\nc ") == "a b c"
    assert line({"a": "b\nc"}) == "{a: b\\nc}"
    assert line(" \n") == ""


def test_a_text_has_an_end() -> None:
    assert len(text("x" * 20000)) == 20000
    assert text("x" * 20001) == "x" * 20000 + " …"
    assert len(text(["x"] * 10**6)) == 20002
    assert len(text("\U000e0001" * 10**6)) <= LONGEST


@given(st.one_of(st.text(), json_values))
def test_every_text_can_be_shown(value: Any) -> None:
    shown = text(value)
    assert can_be_shown(shown)
    shown.encode("utf-8")
    assert text(shown) == shown
    assert "\n" not in line(value)
    assert line(value).strip() == line(value)


@given(st.lists(st.integers()))
def test_list_items(values: list[int]) -> None:
    assert items(values) == values


@pytest.mark.parametrize("value", [None, "text", {"a": 1}, 7, ("a",)])
def test_what_is_no_list_has_no_items(value: Any) -> None:
    assert items(value) == []


def test_items_have_an_end() -> None:
    assert items(list(range(5000))) == list(range(1000))


@pytest.mark.parametrize(("value", "answer"), [({"a": 1}, {"a": 1}), (None, {}), ([], {}), ("text", {}), (7, {})])
def test_mapping(value: Any, answer: Any) -> None:
    assert mapping(value) == answer


@pytest.mark.parametrize(("things", "answer"), [([], 0), ([1], 1), ({"a": 1, "b": 2}, 2), ("text", 0), (None, 0)])
def test_size(things: Any, answer: int) -> None:
    assert size(things) == answer
