# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which value a document has: its structure, the kubelet's own rules, and what kubelets start with."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.yaml import load, read
from ansible_collections.kubenode.cpu_manager.tests.unit.plugins.module_utils._kubelet.yaml_documents import (
    DOCUMENTS,
    HEADER,
)
from ansible_collections.kubenode.cpu_manager.tests.unit.plugins.module_utils._kubelet.yaml_readers import (
    assert_reads_as_libyaml,
    assert_reads_as_whole_reader,
    same,
)


@pytest.mark.parametrize("text", DOCUMENTS)
def test_documents(text: str) -> None:
    for variant in (text, text.replace("\n", "\r\n"), "\ufeff" + text):
        assert_reads_as_libyaml(variant)
        assert_reads_as_whole_reader(variant)
        load(variant)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n",
        "# nothing\n",
        "---\n",
        "---\n...\n",
        "--- text\n",
        "--- # comment\na: 1",
        "--- [a]\n",
        "a:\n- b\n- c\nd:\n- e",
        "a:\n  - b\n  - c",
        "a:\nb:\n",
        "a:\n\n  b: 1\n\n\n  c: 2\n",
        "a:\n    b:\n         c: 1\n    d: 2\n",
        "a:   1\nb  : 2\n",
        "- - a\n  - b\n- c: 1\n  d:\n  - e\n-\n  f: 1\n-\n- g",
        "-   a: 1\n    b: 2",
        "a:\n  text\n  goes on\nb:\n  'text'\n",
        "  a: 1\n  b: 2\n",
        "a: |\n",
        "a: |",
        "a: >-\n\n\nb: 1",
        "a: |+\n\n\nb: 1",
        "a: |\n  x\n\n\nb: 1",
        "a: |-\n  x\n\n\nb: 1",
        "a: |+\n  x\n\n\nb: 1",
        "a: |\n  x",
        "a: |2-\n   x\n  y\n",
        "a: |-2\n   x\n  y\n",
        "a: | # comment\n  # text\n  x\n # comment\n",
        "a: >\n  x\n  y\n\n  z\n\n\n    more\n   more\n  less\n",
        "a: >\n\n  x\n\n\n  y",
        "a: >\n    x\n  \n    y\n",
        "a: |\n  x\n    \n  y\n      \n",
        "a: |\n  \n  x\n",
        "a: |\n    \n",
        "a: |+\n    \n",
        "a: |\n  x\ty\n  \tz\n",
        "a: 'x\n\n  y'\n",
        'a: "x  \n  y \\\n  z\\\n\n  end"\n',
        'a: "x\\n\\\n   \\ y"\n',
        "a: [\n  b, # c\n  d\n]\n",
        "a: {\nb: c,\n\n d: [e\n f]}\n",
        "a: [x\n  y, z]\n",
        "a: x\n  - y\n  [z\n",
        "'a b': 1\n\"c\": 2\n? d\n"[:-4],
        "a: 1 # x\n   # y\n# z\nb: 2 # w",
        "a: 1\n...\n# end\n",
        "a: b#c # d\n",
    ],
)
def test_structure(text: str) -> None:
    for variant in (text, text.replace("\n", "\r\n")):
        assert_reads_as_libyaml(variant)
        assert_reads_as_whole_reader(variant)
        load(variant)


# By hand from goyaml.v2: what no other reader takes, or takes otherwise.
@pytest.mark.parametrize(
    ("text", "value"),
    [
        # Explicit keys.
        ("? a\n: b", {"a": "b"}),
        ("? a\n", {"a": None}),
        ("? a\n: - b\n  - c\n? |\n  d\n: e", {"a": ["b", "c"], "d\n": "e"}),
        ("{? cpu : 100m}", {"cpu": "100m"}),
        ("[? a : b, ? c]", [{"a": "b"}, {"c": None}]),
        ("[?b]", [{"b": None}]),
        # Keys that are no texts become such.
        ("1: a\ny: b\nno: c\n1.5: d\n0x10: e", {"1": "a", "true": "b", "false": "c", "1.5": "d", "16": "e"}),
        ("1e7: a\n0.1: b\n1234567.0: c\n-2.0: d", {"1e+07": "a", "0.1": "b", "1.234567e+06": "c", "-2": "d"}),
        ("1e-5: a\n.inf: b\n-.inf: c\n.nan: d", {"1e-05": "a", ".inf": "b", "-.inf": "c", ".nan": "d"}),
        # Of several keys the last one counts.
        ("a: 1\nb: 2\na: 3", {"a": 3, "b": 2}),
        ("a: {b: 1, 'b': 2}", {"a": {"b": 2}}),
        # Of several documents the first one.
        ("a: 1\n---\nb: 2", {"a": 1}),
        ("a: 1\n...\nb: [", {"a": 1}),
        ("---\n---\na: 1", None),
        ("  a: 1\nb: 2", {"a": 1}),
        ("[a] b", ["a"]),
        # Tags.
        ("a: !!str 1", {"a": "1"}),
        ("a: !!int '5'", {"a": 5}),
        ("a: !!float 5", {"a": 5}),
        ("a: !!bool y", {"a": True}),
        ("a: !!null ''", {"a": None}),
        ("a: !!binary aGk=", {"a": "hi"}),
        ("a: !!binary /w==", {"a": "\ufffd"}),
        ("a: !x 1", {"a": "1"}),
        ("a: ! 1", {"a": "1"}),
        ("a: !<tag:yaml.org,2002:int> '7'", {"a": 7}),
        ("%TAG !y! tag:yaml.org,2002:\n---\na: !y!str 1", {"a": "1"}),
        ("a: !!map {b: !!seq [c]}", {"a": {"b": ["c"]}}),
        ("a: !!%73tr 1", {"a": "1"}),
        # Anchors of keys, tags beside anchors.
        ("&x a: 1\nb: *x", {"a": 1, "b": "a"}),
        ("a: &x b\n*x : 1", {"a": "b", "b": 1}),
        ("a: !!str &x 1\nb: &y !!str 2\nc: [*x, *y]", {"a": "1", "b": "2", "c": ["1", "2"]}),
        ("a: &x !!str\nb: *x", {"a": "", "b": ""}),
        # A merge key overrides what is above it, and is overridden by what is below it.
        ("a: &x {b: 1}\nc: {b: 2, <<: *x}\nd: {<<: *x, b: 3}", {"a": {"b": 1}, "c": {"b": 1}, "d": {"b": 3}}),
        ("<<: [{a: 1, b: 1}, {a: 2, c: 2}]", {"a": 1, "b": 1, "c": 2}),
        ("<<: {a: 1}\n<<: {a: 2}", {"a": 2}),
        ("'<<': {a: 1}", {"<<": {"a": 1}}),
        ("!!merge <<: {a: 1}", {"a": 1}),
        # Signs.
        ("a: {b:}", {"a": {"b:": None}}),
        ("a: [b:c, d :e]", {"a": ["b:c", "d :e"]}),
        ("'a'#b", "a"),
        ("[#b\n]", []),
        ("'x\ny'", "x y"),
        ('"\\\' \\\t"', "' \t"),
        # Line breaks to some readers only.
        ("a: x\rb: z", {"a": "x", "b": "z"}),
        ("a: x\x85b: z\u2028c: w", {"a": "x", "b": "z", "c": "w"}),
        ("a: 'x\u2029\ny'", {"a": "x\u2029\ny"}),
        ("\xa0a: 1", {"\xa0a": 1}),
        ("a: x\ufeff\n", {"a": "x\ufeff"}),
        ("a: b\n  \tc", {"a": "b c"}),
    ],
)
def test_what_the_kubelet_reads_by_rules_of_its_own(text: str, value: Any) -> None:
    assert same(load(text), value)
    assert_reads_as_whole_reader(text)


@pytest.mark.parametrize(
    ("text", "duplicates"),
    [
        ("a: 1\nb: 2\n", []),
        # The line is that of the value.
        ("a: 1\nb: 2\na:\n  3\n", [(4, 'line 4: key "a" already set in map')]),
        ("c: {a: 1, a: 2}\nd:\n- b:\n  b:\n", [(1, '"a"'), (4, '"b"')]),
        ("1: a\n0x1: b\ntrue: c\ny: d\n1: e", [(2, "key 1 "), (4, "key true "), (5, "key 1 ")]),
        ("<<: {a: 1}\na: 2", [(2, '"a"')]),
        ("a: &x {b: 1, b: 2}\nc: *x", [(1, '"b"'), (1, '"b"')]),
    ],
)
def test_keys_that_are_there_twice_are_told(text: str, duplicates: list[tuple[int, str]]) -> None:
    found = read(text).duplicates
    assert [duplicate.line for duplicate in found] == [line for line, _part in duplicates]
    for duplicate, (line, part) in zip(found, duplicates):
        assert duplicate.text.startswith("line %d: key " % line)
        assert part in duplicate.text


def test_of_a_key_that_is_there_twice_the_last_place_is_kept() -> None:
    text = "b: 1\na: 2\nb: 3\n"
    members = read(text).members
    assert list(members) == ["a", "b"]
    assert (text[members["b"].start :], members["b"].is_twice, members["a"].is_twice) == ("b: 3\n", True, False)


# What the kubelets 1.33 and 1.36 answered to these as their --config files, without the first lines.
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("maxPods: 1e2\n", {"maxPods": 100}),
        ("maxPods: 110.0\n", {"maxPods": 110}),
        ("maxPods: 1.1e2\n", {"maxPods": 110}),
        ("podPidsLimit: 5e3\n", {"podPidsLimit": 5000}),
        ("healthzPort: 10248.0\n", {"healthzPort": 10248}),
        ("reservedMemory: [{numaNode: 0.0, limits: {memory: 100Mi}}]\n", None),
        ("kubeReserved: &a {cpu: 100m}\nsystemReserved: *a\n", None),
        ("featureGates: {CPUManagerPolicyAlphaOptions}\n", {"featureGates": {"CPUManagerPolicyAlphaOptions": None}}),
        ('clusterDNS: ["10.0.0.1",\n"10.0.0.2"]\n', {"clusterDNS": ["10.0.0.1", "10.0.0.2"]}),
        ("clusterDNS: [10.0.0.1, 10.0.0.2, ]\n", {"clusterDNS": ["10.0.0.1", "10.0.0.2"]}),
        ("cpuManagerPolicy: none   \t\n", {"cpuManagerPolicy": "none"}),
        ("cpuManagerPolicy: none\t# c\n", {"cpuManagerPolicy": "none"}),
        ("clusterDomain: <<x\n", {"clusterDomain": "<<x"}),
        ("clusterDomain: 1.2.3\n", {"clusterDomain": "1.2.3"}),
        ("clusterDomain: ?a\n", {"clusterDomain": "?a"}),
        ("maxPods: 0x10\n", {"maxPods": 16}),
        ("maxPods: 0100\n", {"maxPods": 64}),
        ("maxPods: 1_00\n", {"maxPods": 100}),
        ("maxPods: 0b11\n", {"maxPods": 3}),
        ("maxPods: 0o17\n", {"maxPods": 15}),
        ("cpuCFSQuota: y\n", {"cpuCFSQuota": True}),
        ("clusterDomain: =\n", {"clusterDomain": "="}),
        ("reservedSystemCPUs: 1:0\n", {"reservedSystemCPUs": "1:0"}),
        ("? cpuManagerPolicy\n: none\n", {"cpuManagerPolicy": "none"}),
        ("kubeReserved: {? cpu : 100m}\n", {"kubeReserved": {"cpu": "100m"}}),
        ("cpuManagerPolicy: static\ncpuManagerPolicy: none\n", {"cpuManagerPolicy": "none"}),
        ("kubeReserved:\n  cpu: 100m\n  cpu: 200m\n", {"kubeReserved": {"cpu": "200m"}}),
        ("---\napiVersion: v1\n", {}),
        ("...\n", {}),
    ],
)
def test_what_kubelets_start_with_is_read(text: str, value: Any) -> None:
    found = load(HEADER + text)
    assert value is None or same(found, {**load(HEADER), **value})
