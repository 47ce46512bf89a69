# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import GoError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.flags import read_record

BARE = 'bare " in non-quoted field'
QUOTE = 'extraneous or missing " in quoted-field'


@pytest.mark.parametrize(
    ("content", "fields"),
    [
        (b"a,b", ["a", "b"]),
        (b"a, b ,", ["a", " b ", ""]),
        (b'"a,b",c', ["a,b", "c"]),
        (b'"a ""b""",', ['a "b"', ""]),
        (b'""', [""]),
        (b"\n\r\na,b\nc", ["a", "b"]),  # the first line that is not empty
        (b"a\r\n", ["a"]),
        (b"a\r", ["a"]),  # at the end
        (b"a\rb", ["a\rb"]),
        (b'"a\r\nb",c', ["a\nb", "c"]),  # over two lines
        (b'"a"\nb', ["a"]),
        (b'"\xc3\xa9","\xff"', ["\xe9", "\udcff"]),
    ],
)
def test_that_a_record_is_read(content: bytes, fields: list[str]) -> None:
    assert read_record(content) == fields


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"\n", "EOF"),
        (b"\r", "EOF"),
        (b'a,b"c', "parse error on line 1, column 4: " + BARE),
        (b'\n\na"', "parse error on line 3, column 2: " + BARE),
        (b'"', "parse error on line 1, column 2: " + QUOTE),
        (b'"a', "parse error on line 1, column 3: " + QUOTE),
        (b'"a"b', "parse error on line 1, column 3: " + QUOTE),
        (b'\xc3\xa9,"a"b', "parse error on line 1, column 6: " + QUOTE),  # bytes
        (b'"a\nb', "record on line 1; parse error on line 2, column 2: " + QUOTE),
        (b'"a\nb" c', "record on line 1; parse error on line 2, column 2: " + QUOTE),
    ],
)
def test_that_no_record_is_read(content: bytes, text: str) -> None:
    with pytest.raises(GoError) as error:
        read_record(content)
    assert str(error.value) == text
