# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Anchors, aliases and merge keys: where they are, and that a few of them take no endless work."""

from __future__ import annotations

from time import process_time

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.yaml import anchors, load, read
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.yaml_nodes import YAMLError


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(["m0: &m0 {a: 1}", *("m%d: &m%d {<<: *m%d}" % (n, n, n - 1) for n in range(1, 45))]),
        "<<: {" * 40 + "}" * 40,
        "~: {" * 40 + "}" * 40,
        "\n".join(
            ["a0: &a0 [x, x]", *("a%d: &a%d [%s]" % (n, n, ", ".join(["*a%d" % (n - 1)] * 9)) for n in range(1, 4))]
        )
        + "\n? [%s]\n: 1" % ", ".join(["*a3"] * 400),
        "\n".join("m%d: &m [%s]" % (n, ", ".join(["*m"] * 9 if n else ["x"])) for n in range(40)),
    ],
    ids=["merged-in-each-other", "merges", "keys", "key", "names"],
)
def test_what_stands_in_each_other_takes_no_endless_work(text: str) -> None:
    begin = process_time()
    try:
        load(text)
    except YAMLError as error:
        assert str(error).startswith("line ")  # noqa: PT017
    assert process_time() - begin < 2


def test_anchors_and_their_aliases() -> None:
    text = "a: &x\n  b: 1\nc: [*x, &y d, *x]\ne:\n  <<: *x\n  f: &x 2\ng: *x\n"
    found = anchors(text)
    assert [(text[anchor.start : anchor.name_end], text[anchor.name_end : anchor.end]) for anchor in found] == [
        ("&x", "\n  b: 1"),
        ("&y", " d"),
        ("&x", " 2"),
    ]
    lines = [[text.count("\n", 0, at) + 1 for at in anchor.aliases] for anchor in found]
    assert lines == [[3, 3, 5], [], [7]]
    node = read(text).members["e"].node
    assert list(node.members) == ["f"]
    assert node.value == {"b": 1, "f": 2}
    assert node.merge is not None
    assert text[node.merge.start : node.merge.node.end] == "<<: *x"
    assert text[read(text).members["a"].node.start :].startswith("b: 1")


def test_each_alias_has_a_copy() -> None:
    value = load("a: &x {b: [1]}\nc: *x\nd: {<<: *x}")
    value["a"]["b"].append(2)
    assert value["c"] == value["d"] == {"b": [1]}


def test_a_few_lines_that_stand_for_billions_of_values_are_refused_at_once() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += ["a%d: &a%d [%s]" % (number, number, ", ".join(["*a%d" % (number - 1)] * 9)) for number in range(1, 20)]
    with pytest.raises(YAMLError, match="line 1, column 10: the aliases stand for too many values") as error:
        load("\n".join(lines))
    assert error.value.text == "yaml: document contains excessive aliasing"
    # Not too many for the kubelet.
    lines = ["a: &a [%s]" % ", ".join(["x"] * 200), "b: [%s]" % ", ".join(["*a"] * 60)]
    with pytest.raises(YAMLError, match=r"line 1, column .*more than 10000 values; write them out") as error:
        load("\n".join(lines))
    assert (error.value.is_broken, error.value.text) == (False, "")
    lines = ["a0: &a0 [x]", *("a%d: &a%d [*a%d]" % (number, number, number - 1) for number in range(1, 99))]
    with pytest.raises(YAMLError, match="more than 50 collections in each other"):
        load("\n".join(lines))
