# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import RefusedError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._host.services import parse_lines, with_value


def value_of(text: str, name: str) -> str | None:
    """Return what the last line of a variable gives it."""
    return next((line.value for line in reversed(parse_lines(text).assignments) if line.name == name), None)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("A=1", "1"),
        ("A=Xy\n", "Xy"),
        ("A=1\n", "1"),
        ("  A = 1  \n", "1"),
        ("A=1\nA=2\n", "2"),
        ("A=1\nA=\n", ""),
        ("#A=1\n", None),
        (" ;A=1\n", None),
        # In files of systemd a comment goes on, too.
        ("# x \\\nA=1\n", None),
        ("# x \\\\\nA=1\n", "1"),
        ("export A=1\n", None),
        ("B=1\n", None),
        ("AA=1\n", None),
        ("A\nA=1\n", "1"),
        ('A="1 2"\n', "1 2"),
        ("A='1 2' \n", "1 2"),
        ('A="1""2"\n', "12"),
        ('A=1"2"\n', '1"2"'),
        ('A="a\\"b\\\\c\\d"\n', 'a"b\\c\\d'),
        ("A='a\\'\n", "a\\"),
        ("A=1\\\n2\n", "12"),
        ('A="1\\\n2"\n', "12"),
        ('A="1\n2"\n', "1\n2"),
        ("A=1 # no comment\n", "1 # no comment"),
        ("A=1\\ \n", "1 "),
        ("A=1\r\n", "1"),
        ("B=1\\\nA=2\n", None),
        ("A=1=2\n", "1=2"),
    ],
)
def test_the_value_that_counts(text: str, value: str | None) -> None:
    assert value_of(text, "A") == value


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("", "A=9\n"),
        ("A=1\n", "A=9\n"),
        ("A=9\n", "A=9\n"),
        ('A="9"\n', 'A="9"\n'),
        ("A=1", "A=9"),
        ("# A=1\n", "# A=1\nA=9\n"),
        ("B=1", "B=1\nA=9\n"),
        ("B=1\r\nA=1\r\nC=1\r\n", "B=1\r\nA=9\r\nC=1\r\n"),
        ("A=1\nA=2\nB=3\n", "A=1\nA=9\nB=3\n"),
        ("  A=1\\\n2\nB=3\n", "  A=9\nB=3\n"),
        # What would take the new line for its own is ended first.
        ("# x \\\n", "# x \\\n\nA=9\n"),
        ("# x \\", "# x \\\n\nA=9\n"),
        ("B=1\\\n", "B=1\\\n\nA=9\n"),
        ("B=1\\", "B=1\\\n\nA=9\n"),
        ("B", "B\nA=9\n"),
        ("# x", "# x\nA=9\n"),
    ],
)
def test_one_line_is_changed_or_added(text: str, changed: str) -> None:
    assert with_value(text, "A", "9") == changed
    assert with_value(changed, "A", "9") == changed
    assert value_of(changed, "A") == "9"


def test_a_quote_without_an_end() -> None:
    with pytest.raises(RefusedError, match="a quote in it has no end"):
        with_value('B="1\n', "A", "9")
    # There is nothing to be done.
    assert with_value('A=9\nB="1\n', "A", "9") == 'A=9\nB="1\n'


@pytest.mark.parametrize("text", ["\0", "B=1\0\n"])
def test_what_systemd_does_not_read(text: str) -> None:
    with pytest.raises(RefusedError):
        with_value(text, "A", "9")


texts = st.text(st.sampled_from("AB=1 #;\\\"'\n\r\t"), max_size=40)


@given(texts)
def test_all_else_stays(text: str) -> None:
    before = parse_lines(text)
    try:
        changed = with_value(text, "A", "9")
    except RefusedError:
        assert before.missing is None
        return
    after = parse_lines(changed)
    assert value_of(changed, "A") == "9"
    assert with_value(changed, "A", "9") == changed
    others = [(line.name, line.value) for line in before.assignments]
    last = max((at for at, (name, _value) in enumerate(others) if name == "A"), default=len(others))
    assert [(line.name, line.value) for line in after.assignments] == [*others[:last], ("A", "9"), *others[last + 1 :]]


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    for line in parse_lines(text).assignments:
        assert text[line.start : line.end].startswith(line.name)
