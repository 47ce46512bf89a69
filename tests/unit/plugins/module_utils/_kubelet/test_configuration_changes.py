# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a single change makes of a text: only what it says is written anew."""

from __future__ import annotations

import re

import pytest
import yaml as pyyaml

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.configuration import KubeletConfiguration
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.yaml_nodes import REMOVE, same
from ansible_collections.kubenode.cpu_manager.tests.unit.plugins.module_utils._kubelet.configuration_files import (
    HEAD,
    Changes,
    changed,
)


@pytest.mark.parametrize(
    ("before", "changes", "after"),
    [
        # A scalar keeps its place, its comment and its quotes.
        ("a: 1\nb: u # why\n", {("b",): "v"}, "a: 1\nb: v # why\n"),
        ("b: 'u' # why\n", {("b",): "it's"}, "b: 'it''s' # why\n"),
        ('b: "u" # why\n', {("b",): "v"}, 'b: "v" # why\n'),
        ("b: u # why\n", {("b",): "true"}, 'b: "true" # why\n'),
        ("b: u\n", {("b",): "0"}, 'b: "0"\n'),
        ("b: u\n", {("b",): "0-3,8"}, "b: 0-3,8\n"),
        ("b: u\n", {("b",): "y"}, 'b: "y"\n'),
        ("b: u\n", {("b",): ""}, 'b: ""\n'),
        ("b: u\n", {("b",): "two\nlines: \x7f"}, 'b: "two\\nlines: \\u007f"\n'),
        ("b: 'u'\n", {("b",): "two\nlines"}, 'b: "two\\nlines"\n'),
        ("b: u\n", {("b",): 'a "quote" # no comment'}, 'b: "a \\"quote\\" # no comment"\n'),
        ("b: 'u' # why\n", {("b",): 5}, "b: 5 # why\n"),
        ("b: 5 # why\n", {("b",): True}, "b: true # why\n"),
        ("b: 5 # why\n", {("b",): None}, "b: null # why\n"),
        ("b: 5\n", {("b",): 1e20}, "b: 1.0e+20\n"),
        ("b: 5\n", {("b",): 0.5}, "b: 0.5\n"),
        ("b: # why\n", {("b",): "u"}, "b: u # why\n"),
        ("b:\n  u # why\n", {("b",): "v"}, "b:\n  v # why\n"),
        ("b: u\n  v # why\nc: 1\n", {("b",): "w"}, "b: w # why\nc: 1\n"),
        ("b: |\n  u\n\nc: 1\n", {("b",): "w"}, "b: w\n\nc: 1\n"),
        # What is so already stays as it is written.
        ("b: 'u'\nc: {d:   1}\n", {("b",): "u", ("c",): {"d": 1}, ("e",): REMOVE, ("c", "e"): REMOVE}, None),
        ("b: {}\nc: null\n", {("b", "u"): REMOVE, ("c", "u"): REMOVE, ("d", "u"): REMOVE, ("c",): None}, None),
        # 1, true and "1" are three values; 1.0 is 1 in JSON.
        ("b: 1\n", {("b",): True}, "b: true\n"),
        ("b: 1\n", {("b",): 1.0}, None),
        ("b: 2\n", {("b",): 1.0}, "b: 1\n"),
        ("b: 1\n", {("b",): "1"}, 'b: "1"\n'),
        # New keys: by the alphabet in a file whose keys are sorted, else at the end.
        ("m: 1\n", {("l",): 1}, "l: 1\nm: 1\n"),
        ("m: 1 # why\n\n# about w\nw: 1\n", {("q",): 1}, "m: 1 # why\nq: 1\n\n# about w\nw: 1\n"),
        ("w: 1\nm: 1\n# end\n", {("q",): 1}, "w: 1\nm: 1\nq: 1\n# end\n"),
        ("m:\n  u: 1\n  # v: 2\nw: 1\n", {("q",): 1}, "m:\n  u: 1\n  # v: 2\nq: 1\nw: 1\n"),
        ("m:\n- u\nw: 1\n", {("q",): 1}, "m:\n- u\nq: 1\nw: 1\n"),
        ("m: |+\n  u\n\nw: 1\n", {("q",): 1}, "m: |+\n  u\n\nq: 1\nw: 1\n"),
        ("m: 1", {("q",): 1}, "m: 1\nq: 1"),
        ("m: 1\r\n", {("q",): {"o": 1}}, "m: 1\r\nq:\r\n  o: 1\r\n"),
        ("m: 1\n...\n", {("q",): 1}, "m: 1\nq: 1\n...\n"),
        ("m: 1\n", {("q o", "true"): "u"}, 'm: 1\nq o:\n  "true": u\n'),
        # Second level.
        ("m:\n    u: 1\n", {("m", "v"): 2}, "m:\n    u: 1\n    v: 2\n"),
        ("m:\n  u: 1 # one\n  w: 1\n", {("m", "v"): 2}, "m:\n  u: 1 # one\n  v: 2\n  w: 1\n"),
        ("m:\n  # first\n  u: 1\n", {("m", "a"): 2}, "m:\n  # first\n  a: 2\n  u: 1\n"),
        ("m: {u: 1, w: 2} # why\n", {("m", "v"): "3"}, 'm: {u: 1, v: "3", w: 2} # why\n'),
        ("m: {u: 1}\n", {("m", "a"): "b, c"}, 'm: {a: "b, c", u: 1}\n'),
        ("m: {} # why\n", {("m", "u"): {"v": [1, "a"]}}, "m: {u: {v: [1, a]}} # why\n"),
        ("m: # why\n", {("m", "u"): 1}, "m: # why\n  u: 1\n"),
        ("m: null # why\n", {("m", "u"): 1}, "m: # why\n  u: 1\n"),
        ("m: {\n  u: 1,\n  w: 2\n}\n", {("m", "v"): 3}, "m: {\n  u: 1,\n  v: 3,\n  w: 2\n}\n"),
        ("m: {u: , v: }\n", {("m", "w"): 1, ("m", "u"): 2}, "m: {u: 2 , v: , w: 1 }\n"),
        ("m: {u: 1,}\n", {("m", "v"): 2}, "m: {u: 1, v: 2,}\n"),
        ("m:\n  u:\n    v: 1\n", {("m", "u", "w"): 1}, "m:\n  u:\n    v: 1\n    w: 1\n"),
        # Removals take the empty parent along, and the comments that are indented below the key.
        ("a: 1\nb: 2 # why\nc: 3\n", {("b",): REMOVE}, "a: 1\nc: 3\n"),
        ("a: 1\nb:\n  # why\n  u:\n  - 1\n  # - 2\n# about c\nc: 3\n", {("b",): REMOVE}, "a: 1\n# about c\nc: 3\n"),
        ("a: 1\nb:\n  u: 1\nc: 3\n", {("b", "u"): REMOVE}, "a: 1\nc: 3\n"),
        ("b:\n  u: {v: 1}\nc: 3\n", {("b", "u", "v"): REMOVE}, "c: 3\n"),
        ("b:\n  u: 1\n  v: 2\n", {("b", "u"): REMOVE}, "b:\n  v: 2\n"),
        ("b: {u: 1, v: 2, w: 3} # why\n", {("b", "u"): REMOVE}, "b: {v: 2, w: 3} # why\n"),
        ("b: {u: 1, v: 2, w: 3} # why\n", {("b", "w"): REMOVE}, "b: {u: 1, v: 2} # why\n"),
        ("b: {u: , v: 2}\n", {("b", "v"): REMOVE}, "b: {u: }\n"),
        ("a: 1\nb: 2", {("b",): REMOVE}, "a: 1\n"),
        # A whole mapping: the lines of members that stay are kept.
        (
            "b:\n  u: 'true' # why\n  v: 1\n",
            {("b",): {"w": "false", "u": "true"}},
            "b:\n  u: 'true' # why\n  w: \"false\"\n",
        ),
        ("b:\n  u: 1\n", {("b",): {"v": 2}}, "b:\n  v: 2\n"),
        ("b: {u: 1}\n", {("b",): {"v": 2}}, "b: {v: 2}\n"),
        ("b: # why\n  u: 1\nc: 1\n", {("b",): {}}, "b: {} # why\nc: 1\n"),
        ("b:\n  u: 1\n", {("b", "u"): REMOVE, ("b", "v"): 1}, "b:\n  v: 1\n"),
        ("b:\n  u: 1\n", {("b",): {"w": 1}, ("b", "v"): 1}, "b:\n  v: 1\n  w: 1\n"),
        # From one kind to another.
        ("b: # why\n  u: 1\nc: 1\n", {("b",): 5}, "b: 5 # why\nc: 1\n"),
        ("b: # why\n- u\nc: 1\n", {("b",): 5}, "b: 5 # why\nc: 1\n"),
        ("b: 5 # why\nc: 1\n", {("b",): ["u"]}, "b: # why\n- u\nc: 1\n"),
        ("b: [u] # why\n", {("b",): 5}, "b: 5 # why\n"),
        ("b:\n  5\nc: 1\n", {("b",): ["u"]}, "b:\n- u\nc: 1\n"),
        ("b: u", {("b",): {"v": 1}}, "b:\n  v: 1"),
        # Lists.
        ("b:\n# why\n- u\n- v\nc: 1\n", {("b",): ["w"]}, "b:\n# why\n- w\nc: 1\n"),
        ("b:\n  - u\nc: 1\n", {("d",): ["v", "::1"]}, 'b:\n  - u\nc: 1\nd:\n  - v\n  - "::1"\n'),
        ("b: [u, v]\n", {("b",): ["::1", "a b", ","]}, 'b: ["::1", a b, ","]\n'),
        (
            "b: 1\n",
            {("reservedMemory",): [{"numaNode": 0, "limits": {"memory": "1Gi"}}, {}, [1, [2]]]},
            "b: 1\nreservedMemory:\n- numaNode: 0\n  limits:\n    memory: 1Gi\n- {}\n- [1, [2]]\n",
        ),
        ("b: 1\n", {("c",): ("u",)}, "b: 1\nc:\n- u\n"),
        # Tabs where they may be, and keys that stand alone.
        ("b: 5\t# why\n", {("b",): 6}, "b: 6\t# why\n"),
        ("b:\t5 \t\nc: 1\n", {("b",): "u"}, "b:\tu \t\nc: 1\n"),
        ("b:\t# why\n  u: 1\n", {("b",): 5}, "b: 5\t# why\n"),
        ("b: {u, v}\n", {("b", "u"): 1, ("b", "w"): 2}, "b: {u: 1, v, w: 2}\n"),
        ("b: {u, v, w}\n", {("b", "v"): REMOVE}, "b: {u, w}\n"),
        ("b: {u, v}\n", {("b", "v"): REMOVE}, "b: {u}\n"),
        # Beside anchors, aliases and merge keys.
        ("a: &x {u: 1}\nb: *x\nc: 1\n", {("c",): 2}, "a: &x {u: 1}\nb: *x\nc: 2\n"),
        ("a: &x {u: 1}\nb: *x # why\nc: 1\n", {("b",): 2}, "a: &x {u: 1}\nb: 2 # why\nc: 1\n"),
        ("a: &x {u: 1}\nb: *x # why\n", {("b",): ["v"]}, "a: &x {u: 1}\nb: # why\n- v\n"),
        ("a: &x {u: 1}\nb: *x\n", {("b",): REMOVE}, "a: &x {u: 1}\n"),
        ("a: &x\n  u: 1\nb:\n  <<: *x\n  v: 2\n", {("b", "v"): 3}, "a: &x\n  u: 1\nb:\n  <<: *x\n  v: 3\n"),
        ("a: &x\n  u: 1\nb:\n  <<: *x\n", {("b", "v"): 3}, "a: &x\n  u: 1\nb:\n  v: 3\n  <<: *x\n"),
        ("a: &x\n  u: 1\nb:\n  <<: *x\n  v: 2\n", {("b", "v"): REMOVE}, "a: &x\n  u: 1\nb:\n  <<: *x\n"),
        ("a: &x\n  u: 1\nb:\n  <<: *x\n  u: 2\n", {("b", "u"): 3}, "a: &x\n  u: 1\nb:\n  <<: *x\n  u: 3\n"),
        ("a: &x\n  u: 1\nb:\n  <<: *x\nc: 1\n", {("b",): REMOVE}, "a: &x\n  u: 1\nc: 1\n"),
        ("b: {v: &x 1, w: [*x]}\nc: 1\n", {("b",): 5}, "b: 5\nc: 1\n"),
        # An anchor that nothing repeats goes with its value.
        ("a: &x 1 # why\n", {("a",): 2}, "a: 2 # why\n"),
        ("a: &x # why\n  u: 1\n", {("a",): 2}, "a: 2 # why\n"),
        ("a: &x\n  u: 1\n", {("a",): 2}, "a: 2\n"),
        ("a: &x\n  u: 1\n", {("a", "v"): 2}, "a: &x\n  u: 1\n  v: 2\n"),
        ("a: &x\n- u\n", {("a",): ["v"]}, "a:\n- v\n"),
        ("a: &x\nb: 1\n", {("a",): 2}, "a: 2\nb: 1\n"),
        ("a: &x {u: &y 1}\n", {("a", "u"): 2}, "a: &x {u: 2}\n"),
    ],
)
def test_a_change(before: str, changes: Changes, after: str | None) -> None:
    # In a mapping of its own behind the head, so that only the keys of the example decide on the order.
    def below_head(text: str) -> str:
        head = HEAD + "example:\n"
        indented = re.sub(r"(?m)^(?=[^\r\n.])", "  ", text)
        return (head.replace("\n", "\r\n") if "\r\n" in text else head) + indented

    after = before if after is None else after
    start = KubeletConfiguration.parse(below_head(before))
    result = start.with_changes({("example", *path): value for path, value in changes.items()})
    assert result.text == below_head(after)
    assert same(result.values, pyyaml.safe_load(result.text.replace("\t", " ")))


@pytest.mark.parametrize(
    ("written", "after"),
    [
        # What is rare and does no harm.
        ("? cpuManagerPolicy\n: none\n", "? cpuManagerPolicy\n: static\n"),
        ("cpuManagerPolicy: none\n---\ncpuManagerPolicy: x\n", "cpuManagerPolicy: static\n---\ncpuManagerPolicy: x\n"),
        ("maxPods: 1\nmaxPods: 2\ncpuManagerPolicy: none\n", "maxPods: 1\nmaxPods: 2\ncpuManagerPolicy: static\n"),
        ("cpuManagerPolicy: !!str none\n", "cpuManagerPolicy: static\n"),
        ("maxPods: 0x10\ncpuManagerPolicy: none\n", "maxPods: 0x10\ncpuManagerPolicy: static\n"),
        ("a: {1: y}\n...\n", "a: {1: y}\ncpuManagerPolicy: static\n...\n"),
    ],
)
def test_changes_beside_rare_yaml(written: str, after: str) -> None:
    assert changed(HEAD + written, {("cpuManagerPolicy",): "static"}) == HEAD + after
