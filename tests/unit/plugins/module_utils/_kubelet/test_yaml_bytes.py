# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files that are no UTF-8, and characters that no file may have."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.yaml import load
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.yaml_nodes import YAMLError
from ansible_collections.kubenode.cpu_manager.tests.support.numbers import examples
from ansible_collections.kubenode.cpu_manager.tests.unit.plugins.module_utils._kubelet.yaml_documents import HEADER


def test_a_file_in_utf_16_is_read() -> None:
    text = HEADER + "clusterDomain: é😀\n"
    for encoding in ("utf-16-le", "utf-16-be"):
        assert load(("\ufeff" + text).encode(encoding)) == {**load(HEADER), "clusterDomain": "é😀"}
    assert load(text.encode()) == load(b"\xef\xbb\xbf" + text.encode()) == load(text)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"a: \xff", "invalid leading UTF-8 octet"),
        (b"a: \x80", "invalid leading UTF-8 octet"),
        (b"a: \xc3", "incomplete UTF-8 octet sequence"),
        (b"a: \xc3b", "invalid trailing UTF-8 octet"),
        (b"a: \xc0\x80", "invalid length of a UTF-8 sequence"),
        (b"a: \xed\xa0\x80", "invalid Unicode character"),
        (b"a: \xf7\xbf\xbf\xbf", "invalid Unicode character"),
        (b"a: \xef\xbf\xbf", "control characters are not allowed"),
        (b"a: \x7f", "control characters are not allowed"),
        (b"\xff\xfea", "incomplete UTF-16 character"),
        (b"\xff\xfe\x00\xdc", "unexpected low surrogate area"),
        (b"\xff\xfe\x00\xd8", "incomplete UTF-16 surrogate pair"),
        (b"\xfe\xff\xd8\x00\x00a", "expected low surrogate area"),
        (b"\xff\xfe\x00\x00", "control characters are not allowed"),
        # The bytes are decoded 512 at a time, all before their first character is read.
        (b"@" + b" " * 510 + b"\x00", "control characters are not allowed"),
        (b"@" + b" " * 511 + b"\x00", "found character that cannot start any token"),
        (b"@" + b" " * 510 + b"\xc3\xa9\x00", "found character that cannot start any token"),
        (b"a: 'b" + b"\n" * 600 + b"\x00", "control characters are not allowed"),
        ("\ufeff@".encode("utf-16-le") + b" \x00" * 254 + b"\x00\x00", "found character that cannot start any token"),
        ("\ufeff@".encode("utf-16-le") + b" \x00" * 253 + b"\x00\x00", "control characters are not allowed"),
    ],
)
def test_bytes_that_are_no_text(content: bytes, said: str) -> None:
    with pytest.raises(YAMLError) as error:
        load(content)
    assert (error.value.text, error.value.is_broken) == ("yaml: " + said, True)
    if content[:2] not in (b"\xff\xfe", b"\xfe\xff"):
        with pytest.raises(YAMLError) as error:
            load(content.decode("utf-8", "surrogateescape"))
        assert error.value.text == "yaml: " + said


@pytest.mark.parametrize("content", [b"a: b\nc: \x00", "\ufeffa: b\nc: \x00".encode("utf-16-le")])
def test_a_control_character_has_its_place(content: bytes) -> None:
    with pytest.raises(YAMLError, match=r"line 2, column 4: found the character '\\x00'; remove it"):
        load(content)


@settings(max_examples=examples(500), deadline=None)
@given(st.binary(max_size=40) | st.text(max_size=40).map(lambda text: ("\ufeff" + text).encode("utf-16-le", "replace")))
def test_any_bytes_are_a_value_or_an_error(content: bytes) -> None:
    try:
        load(content)
    except YAMLError as error:
        assert error.is_broken == bool(error.text)  # noqa: PT017
