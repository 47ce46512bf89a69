# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Generated documents, in any layout and style, read as libyaml reads them."""

from __future__ import annotations

import re
from typing import Any

import yaml as pyyaml
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.yaml import load
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.yaml_nodes import YAMLError
from ansible_collections.kubenode.cpu_manager.tests.support.numbers import examples
from ansible_collections.kubenode.cpu_manager.tests.unit.plugins.module_utils._kubelet.yaml_readers import (
    assert_reads_as_libyaml,
    assert_reads_as_whole_reader,
    by_libyaml,
    same,
)

# PyYAML writes these plain as keys, and they become other keys, or the same key twice.
DISPUTED = re.compile(r"[-+.]?[0-9][-+.:_0-9a-fA-FxXoOtTzZ ]*|[yYnN]")
LINE_TEXT = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\x85\u2028\u2029\ufeff\ufffe\uffff"), max_size=12
) | st.text(" abz019:#-,[]{}'\"?&*!|>%@`\\._~/", max_size=12)
WORDS = st.sampled_from(
    ["true", "no", "null", "10", "1.5", "0755", "~", "", "- a", "a: b", "# a", "---", "0-3", "10s", "100m"]
)
LINES = (LINE_TEXT | WORDS).filter(lambda text: not DISPUTED.fullmatch(text))
KEYS = LINES.filter(bool)  # an empty key is a complex key to PyYAML
TEXTS = LINES | st.lists(LINES, max_size=4).map("\n".join).filter(lambda text: not DISPUTED.fullmatch(text))
NUMBERS = st.integers(-(2**63), 2**64 - 1) | st.floats(-1e15, 1e15).filter(lambda number: not 0 < abs(number) < 1e-90)


def collections_of(scalars: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    members = st.recursive(
        scalars,
        lambda children: st.lists(children, max_size=3) | st.dictionaries(KEYS, children, max_size=3),
        max_leaves=8,
    )
    return st.dictionaries(KEYS, members, min_size=1, max_size=4) | st.lists(members, min_size=1, max_size=3)


class WithoutAliases(pyyaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002  (PyYAML gives it)
        return True


@st.composite
def repeated(draw: st.DrawFn) -> Any:
    """Return a value in which some collections are there several times, so that PyYAML writes anchors and aliases."""
    members = draw(st.lists(collections_of(LINES | NUMBERS | st.booleans()), min_size=1, max_size=3))
    for _more in range(draw(st.integers(1, 4))):
        some = draw(st.lists(st.sampled_from(members), min_size=1, max_size=4))
        members.append(some if draw(st.booleans()) else {"k%d" % number: item for number, item in enumerate(some)})
    return members


@st.composite
def merging(draw: st.DrawFn) -> str:
    """Draw a text of mappings with anchors, and mappings that merge them, in block or flow style."""
    keys = st.sampled_from(["a", "b", "c", "d", "'e'"])
    mappings = st.dictionaries(keys, st.integers(0, 9), max_size=3)
    lines = []
    for number in range(draw(st.integers(1, 3))):
        entries = ["%s: %d" % entry for entry in draw(mappings).items()]
        if number and draw(st.booleans()):
            entries.insert(0, "<<: *m%d" % draw(st.integers(0, number - 1)))
        lines.append("m%d: &m%d {%s}" % (number, number, ", ".join(entries)))
    for name in ("x", "z"):
        merged = draw(st.lists(st.integers(0, number).map(lambda target: "*m%d" % target), min_size=1, max_size=3))
        merge = "<<: %s" % (merged[0] if len(merged) == 1 else "[%s]" % ", ".join([*merged, "{e: f}"]))
        entries = ["%s: %d" % entry for entry in draw(mappings).items()]
        entries.insert(draw(st.integers(0, len(entries))), merge)
        if draw(st.booleans()):
            lines.append("%s:\n  %s" % (name, "\n  ".join(entries)))
        else:
            lines.append("%s: {%s}" % (name, ", ".join(entries)))
    return "\n".join(lines)


LAYOUTS = st.fixed_dictionaries(
    {
        "default_flow_style": st.sampled_from([False, True, None]),
        "width": st.sampled_from([5, 30, 1000]),
        "indent": st.sampled_from([2, 4, 7]),
        "allow_unicode": st.booleans(),
        "explicit_start": st.booleans(),
        "explicit_end": st.booleans(),
        "line_break": st.sampled_from(["\n", "\r\n"]),
    }
)


@settings(max_examples=examples(150), deadline=None)
@given(collections_of(TEXTS | NUMBERS | st.booleans() | st.none()), LAYOUTS)
def test_reads_what_pyyaml_writes(value: Any, layout: dict[str, Any]) -> None:
    text = pyyaml.dump(value, Dumper=WithoutAliases, sort_keys=False, **layout)
    assert same(load(text), by_libyaml(text)), text


@settings(max_examples=examples(150), deadline=None)
@given(repeated(), LAYOUTS)
def test_reads_anchors_and_aliases_that_pyyaml_writes(value: Any, layout: dict[str, Any]) -> None:
    text = pyyaml.dump(value, Dumper=pyyaml.SafeDumper, sort_keys=False, **layout)
    try:
        found = load(text)
    except YAMLError as error:
        assume("in each other" not in str(error))
        raise
    assert same(found, by_libyaml(text)), text


@settings(max_examples=examples(200), deadline=None)
@given(merging())
def test_merges_as_libyaml_where_the_merge_key_comes_first(text: str) -> None:
    value = load(text)
    assert_reads_as_whole_reader(text)
    # What a merge key gives overrides what is above it. With PyYAML from 6.0.4 on, a mapping that is merged loses its
    # own entries to those that it merges.
    if not re.search(r"(?m)(?:[{,] *|^ +)['a-e]+: [0-9],? *\s+<<|&m[0-9] {<<: \*m[0-9], ", text):
        assert same(value, by_libyaml(text)), text


@settings(max_examples=examples(150), deadline=None)
@given(collections_of(TEXTS), LAYOUTS, st.sampled_from(["'", '"', "|", ">"]))
def test_reads_what_pyyaml_writes_in_each_style(value: Any, layout: dict[str, Any], style: str) -> None:
    text = pyyaml.dump(value, Dumper=WithoutAliases, sort_keys=False, default_style=style, **layout)
    try:
        expected = by_libyaml(text)
    except pyyaml.YAMLError:
        assume(False)  # PyYAML writes some block texts that it cannot read
    assert_reads_as_libyaml(text)
    assert_reads_as_whole_reader(text)
    if style in "'\"":
        assert same(load(text), expected), text


@settings(max_examples=examples(100), deadline=None)
@given(
    collections_of(LINES | NUMBERS | st.booleans()),
    st.lists(st.sampled_from(["", " # x", "\n# x: 'y", "\n      # [", "\n\n", "   "]), min_size=1, max_size=9),
    st.sampled_from([2, 4]),
)
def test_comments_between_the_lines_change_nothing(value: Any, comments: list[str], indent: int) -> None:
    lines = pyyaml.safe_dump(value, width=1000, indent=indent, sort_keys=False).split("\n")
    text = "\n".join(line + comments[number % len(comments)] for number, line in enumerate(lines))
    assert same(load(text), by_libyaml(text)), text
