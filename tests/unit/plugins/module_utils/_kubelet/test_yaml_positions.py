# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The place and the style of each value and member in the text."""

from __future__ import annotations

from typing import Iterator

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.yaml import load, read
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.yaml_nodes import (
    ALIAS,
    ALONE,
    BLOCK,
    DOUBLE,
    EMPTY,
    FLOW,
    LITERAL,
    PLAIN,
    SINGLE,
    TextNode,
)
from ansible_collections.kubenode.cpu_manager.tests.unit.plugins.module_utils._kubelet.yaml_documents import (
    DOCUMENTS_WITHOUT_TABS,
    EVERYTHING,
)
from ansible_collections.kubenode.cpu_manager.tests.unit.plugins.module_utils._kubelet.yaml_readers import same


def nodes(node: TextNode) -> Iterator[TextNode]:
    yield node
    for member in node.members.values():
        yield from nodes(member.node)


@pytest.mark.parametrize("text", [*DOCUMENTS_WITHOUT_TABS, "\ufeff" + EVERYTHING, EVERYTHING.replace("\n", "\r\n")])
def test_each_value_reads_back_from_its_place(text: str) -> None:
    for node in nodes(read(text)):
        column = node.start - max(text.rfind("\n", 0, node.start) + 1, 1 if text[0] == "\ufeff" else 0)
        written = text[node.start : node.end]
        if node.style == EMPTY:
            assert (written, text[node.start - 1]) == ("", ":")
        elif node.style == LITERAL:
            # The last line break belongs to the text of the value, not to its place.
            assert load("x: " + written + "\n") == {"x": node.value}
        else:
            assert same(load(" " * column + written + "\n" * (node.style == BLOCK)), node.value)


@pytest.mark.parametrize("text", DOCUMENTS_WITHOUT_TABS)
def test_each_member_stands_where_it_says(text: str) -> None:
    for node in nodes(read(text)):
        assert list(node.members) == (list(node.value) if isinstance(node.value, dict) else [])
        for key, member in node.members.items():
            assert load("- " + text[member.start : member.colon - 1].rstrip()) == [key]
            assert text[member.colon - 1] == ":"
            assert member.colon <= member.node.start <= member.node.end <= node.end


def test_styles() -> None:
    text = "a:\n- 1\nb: {}\nc: x\nd: 'x'\ne: \"x\"\nf: |\n  x\ng:\nh: &h\n  i: {j}\nk: *h\n"
    members = read(text).members
    styles = [member.node.style for member in members.values()]
    assert styles == [BLOCK, FLOW, PLAIN, SINGLE, DOUBLE, LITERAL, EMPTY, BLOCK, ALIAS]
    alone = members["h"].node.members["i"].node.members["j"]
    assert (alone.node.style, text[alone.start : alone.colon], alone.node.start) == (ALONE, "j", alone.colon)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a: x  # comment\n", "x"),
        ("a: x\n  y  \n# comment\n", "x\n  y"),
        ("a:\n  b: 1 # comment\n\n# comment\nc: 2", "b: 1"),
        ("a:\n- b\n- c # comment\n", "- b\n- c"),
        ("a: [b,\n c] # comment\n", "[b,\n c]"),
        ("a: |\n  x\n\n\nc: 1", "|\n  x"),
        ("a: |+\n  x\n\n\nc: 1", "|+\n  x\n\n"),
        ("a: | # comment\n\n# comment", "| # comment"),
    ],
)
def test_a_value_ends_before_its_comment(text: str, written: str) -> None:
    node = read(text).members["a"].node
    assert text[node.start : node.end] == written
