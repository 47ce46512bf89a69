# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Regular expressions that are compiled where they are first needed."""

from __future__ import annotations

import re

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.startup import Pattern


def test_it_is_compiled_once_and_not_before(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = []
    compile_it = re.compile

    def count(pattern: str, flags: int = 0) -> re.Pattern[str]:
        compiled.append(pattern)
        return compile_it(pattern, flags)

    monkeypatch.setattr(re, "compile", count)
    pattern = Pattern("a+")
    assert compiled == []
    assert [pattern.fullmatch("aa") is not None, pattern.fullmatch("b") is not None] == [True, False]
    assert compiled == ["a+"]


def test_flags() -> None:
    assert Pattern("a.b", re.DOTALL).match("a\nb")
    assert not Pattern("a.b").match("a\nb")


@pytest.mark.parametrize(("at", "end"), [(0, 0), (1, 3), (2, 3), (3, 3)])
def test_where_a_match_ends(at: int, end: int) -> None:
    assert Pattern("a+").end("baab", at) == end


def test_an_unknown_method() -> None:
    with pytest.raises(AttributeError):
        Pattern("a").matches("a")
