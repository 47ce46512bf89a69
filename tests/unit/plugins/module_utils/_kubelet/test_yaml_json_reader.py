# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_kubelet/yaml.py."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.yaml import read_json
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.yaml_nodes import ReadError


@pytest.mark.parametrize(
    ("text", "value", "duplicates"),
    [
        ('{"a": 1, "b": 2}', {"a": 1, "b": 2}, []),
        ('{"a": 1,\n"a": 2}', {"a": 2}, [(2, 'duplicate field "a"')]),
        # Go decodes the second mapping into the first.
        ('{"a": {"b": 1, "c": 1}, "a": {"c": 2}}', {"a": {"b": 1, "c": 2}}, [(1, 'duplicate field "a"')]),
        ('{"a": {"b": 1, "b": 2}}', {"a": {"b": 2}}, [(1, 'duplicate field "a.b"')]),
        ('{"a": [0, {"b": 1, "b": 1}]}', {"a": [0, {"b": 1}]}, [(1, 'duplicate field "a[1].b"')]),
        ('{"a": [ ], "b": [ {} , [1] ] }', {"a": [], "b": [{}, [1]]}, []),
    ],
)
def test_keys_that_are_there_twice(text: str, value: Any, duplicates: list[tuple[int, str]]) -> None:
    node = read_json(text)
    assert node.value == value
    assert list(node.duplicates) == duplicates


def test_members_are_in_the_order_of_the_text() -> None:
    text = '{"a": 1, "b": 2, "a": 3}'
    members = read_json(text).members
    assert [(key, text[member.node.start : member.node.end]) for key, member in members.items()] == [
        ("b", "2"),
        ("a", "3"),
    ]


@pytest.mark.parametrize(
    "text", ['{"a": 1, "a": null}', '{"a": %s}' % ("9" * 5000), '{"a": ' * 9000 + "1" + "}" * 9000]
)
def test_what_is_not_known_for_sure(text: str) -> None:
    with pytest.raises(ReadError) as error:
        read_json(text)
    assert (error.value.is_broken, error.value.text) == (False, "")


def test_what_is_no_json() -> None:
    with pytest.raises(ReadError, match=r"line [12], column .: no JSON, .*; is the file whole\?"):
        read_json('{"a": 1,\n}')
    with pytest.raises(ReadError, match="NaN is no JSON"):
        read_json('{"a": NaN}')
