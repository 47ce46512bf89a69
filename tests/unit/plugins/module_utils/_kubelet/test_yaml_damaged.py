# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Truncated, damaged and random texts are refused, or read as libyaml reads them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.tests.support.numbers import examples
from ansible_collections.kubenode.cpu_manager.tests.unit.plugins.module_utils._kubelet.yaml_documents import (
    DOCUMENTS,
    EVERYTHING,
)
from ansible_collections.kubenode.cpu_manager.tests.unit.plugins.module_utils._kubelet.yaml_readers import (
    assert_reads_as_libyaml,
    assert_reads_as_whole_reader,
)


@pytest.mark.parametrize("text", [*DOCUMENTS, EVERYTHING.replace("\n", "\r\n")])
def test_a_truncated_document_is_refused_or_complete(text: str) -> None:
    for end in range(len(text)):
        assert_reads_as_libyaml(text[:end])
        assert_reads_as_whole_reader(text[:end])


SNIPPETS = st.sampled_from(
    [
        *" \n:-#{}[],\"'|>+?!&*%@`\\01ab~.=<_\t",
        "\n  ",
        ": ",
        "- ",
        " #",
        "\n\n",
        "---\n",
        "\r\n",
        "1e3",
        "\\x41",
        "\ufeff",
        "null",
        "&a ",
        "*a",
        "<<: ",
        "<<: *a\n",
        "\t# c",
        ":\t",
    ]
)


@settings(max_examples=examples(800), deadline=None)
@given(st.data(), st.sampled_from(DOCUMENTS))
def test_a_damaged_document_is_refused_or_reads_as_libyaml_says(data: st.DataObject, text: str) -> None:
    first, last = sorted(data.draw(st.tuples(*[st.integers(0, text.count("\n"))] * 2)))
    text = "".join(text.splitlines(keepends=True)[first : last + 1])
    for _damage in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text)))
        until = at + data.draw(st.sampled_from([0, 0, 1, 1, 4]))
        text = text[:at] + data.draw(SNIPPETS | st.just("")) + text[until:]
    assert_reads_as_libyaml(text)
    assert_reads_as_whole_reader(text)


@settings(max_examples=examples(500), deadline=None)
@given(st.text(" \n\n:-#{}[],\"'|>+?\\1ab~.&*<\t", max_size=30))
def test_any_text_is_refused_or_reads_as_libyaml_says(text: str) -> None:
    assert_reads_as_libyaml(text)


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(SNIPPETS, max_size=300).map("".join))
def test_what_is_written_at_random_is_a_value_or_an_error(text: str) -> None:
    assert_reads_as_whole_reader(text)
