# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is YAML and what JSON; the bytes of a file."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.configuration import is_json, read_document


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{}", True),
        (" \t\r\n\v\xa0{a", True),
        ("# c\n{}", False),
        ("[]", False),
        ("", False),
        (" ", False),
        ("\ufeff{}", False),
        ("\x1c{}", False),
    ],
)
def test_json_is_what_begins_with_a_brace(text: str, expected: bool) -> None:
    assert is_json(text) is expected


@pytest.mark.parametrize(
    ("content", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        (b'{"a": 1}', {"a": 1}),
        (b'{"a": "\xff"}', {"a": "\ufffd"}),
        ("{a: 1}".encode("utf-16"), {"a": 1}),
        ("\ufeff{a: 1}", {"a": 1}),
        (b"a: \xc3\xa9", {"a": "\xe9"}),
        (b"", None),
    ],
)
def test_the_bytes_of_a_file(content: str | bytes, value: Any) -> None:
    assert read_document(content).value == value
