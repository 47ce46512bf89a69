# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._host.services import read_environment, split_words


@pytest.mark.parametrize(
    ("text", "variables"),
    [
        # Quotes count at the beginning of a value, and behind another quoted part.
        ("A=\"--a=1\" '--b=2'\n", {"A": "--a=1--b=2"}),
        ('A=x"b c"d\n', {"A": 'x"b c"d'}),
        ('A="a"b"c"\n', {"A": 'ab"c"'}),
        ("A='l1\nl2' \nB=1\n", {"A": "l1\nl2", "B": "1"}),
        ('A="l1\nl2', {"A": "l1\nl2"}),
        # A backslash at the end of a line goes on in the next, without any space; in single quotes it is a sign.
        ("A=--a=1\\\n --b=2  \n", {"A": "--a=1 --b=2"}),
        ("A=a\\\nb\n", {"A": "ab"}),
        ("A=Xa\nX='Xb'\n", {"A": "Xa", "X": "Xb"}),
        ("A='a\\\nb'\n", {"A": "a\\\nb"}),
        ('A="x\\\ny \\q \\" \\\\ \\$ \\`" tail\n', {"A": 'xy \\q " \\ $ `tail'}),
        ('A=a\\ \\b\\"  \n', {"A": 'a b"'}),
        ("A=a b \\\n", {"A": "a b "}),
        # Comments, which are no part of a value.
        ("# A=1\n  ; B=1\nC=a # b\n", {"C": "a # b"}),
        ("# a \\\nA=1\n", {"A": "1"}),
        # Names, and lines without any.
        ("export A=1\n1B=2\n-C=3\nno variable\n=4\nD = 5 \n  E=6\n", {"D": "5", "E": "6"}),
        ("A=1\nA=2\nB=3\nA=\n", {"A": "", "B": "3"}),
        ("A=1\r\nB=2\r\n", {"A": "1", "B": "2"}),
        ("A=1\0\n", {}),
        ('A="\x01"\n', {}),
        ("A=\u00e9\n", {"A": "\u00e9"}),
    ],
)
def test_environment_files_as_systemd_reads_them(text: str, variables: dict[str, str]) -> None:
    assert read_environment(text) == variables


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a\"b c\"d 'e'", ["ab cd", "e"]),
        ("'' \"\" x", ["", "", "x"]),
        ('a\\ b \\"c \\x41', ["a b", '"c', "x41"]),
        ("'it is' 'open", ["it is", "open"]),
        ("a\\", ["a"]),
    ],
)
def test_words_of_a_variable(text: str, words: list[str]) -> None:
    assert split_words(text) == words
