# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The reader against libyaml, of which the kubelet's reader is a port, and against what kubelets answered.

libyaml says how a text is made up; which plain scalars are numbers or booleans, the kubelet decides by its own rules.
"""

from __future__ import annotations

import re
from time import process_time
from typing import Any, Iterator

import pytest
import yaml as pyyaml
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.kubelet.file.nodes import (
    ALIAS,
    ALONE,
    BLOCK,
    DOUBLE,
    EMPTY,
    FLOW,
    LITERAL,
    PLAIN,
    SINGLE,
    Node,
    YAMLError,
    as_json,
    resolve,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.kubelet.file.yaml import anchors, load, read
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.kubelet.file.yaml_rare.values import read_rare

EVERYTHING = """\
# One of each.
apiVersion: kubelet.config.k8s.io/v1beta1
authentication:
  anonymous:
    enabled: false
  webhook: {cacheTTL: 0s, enabled: true}   # in flow
clusterDNS:
- 10.96.0.10
- "169.254.20.10"
evictionHard: {
  memory.available: 100Mi, 'nodefs.available': "10%",
  }
literal: |-
  one
    two

  three
folded: >+
  one
  two

   three
  four

indicated: |1
  x
list:
  - a: 1
    b: [x, "y z", {q: 1.5}]
  - - m: null
    - ~
  -
    z: "a\\tb\\
      c

      d"
plain: some text
  goes on

  and on
single: 'it''s
  one'
empty:
last: -5
"""
WITH_DIRECTIVE = (
    "%YAML 1.1\n--- # begins\nkind: KubeletConfiguration\na:\n  b:\n    c: []\n  d: {}\ne:\n  - f\n...\n# ends\n"
)
JSON_LIKE = '--- {"kind": "KubeletConfiguration", "a": {"b": [1, 2, {"c": null}], "d": "x\\u00e9"}, "t": true}\n'
LIST = "- a\n- b: c\n  d: |2\n     x\n    y\n- >\n\n\n  k\n   l\n  m\n\n"
REPEATED = """\
a: &a {cpu: 100m, x: [1, 2]}\t# a tab
b:\t*a
c: &c
  <<: *a
  z: 3
d:
- &d one
- *d
- {<<: [*c, *a], z}
- &e
  f: &f "g"
-
  h
e: &g
- [*f, k: v, &i]
f: {g: &j , h: *g, i: *i, j: *j}
g: &k >-
  m
  n
h: &a 1.0
i: [*k, *a, {\tp : q\t}
\t]
"""
DOCUMENTS = [EVERYTHING, WITH_DIRECTIVE, JSON_LIKE, LIST, REPEATED]
DOCUMENTS_WITHOUT_TABS = [text for text in DOCUMENTS if "\t" not in text]


def same(left: Any, right: Any) -> bool:
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


class Libyaml(pyyaml.CSafeLoader):
    """libyaml, with the kubelet's rules for plain scalars and names."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012  (as in PyYAML)

    def compose_node(self, parent: Any, index: Any) -> Any:
        # A name can be given anew, as in YAML and Go.
        if not self.check_event(pyyaml.AliasEvent):  # type: ignore[no-untyped-call,unused-ignore]
            event = self.peek_event()  # type: ignore[no-untyped-call,unused-ignore]
            self.anchors.pop(event.anchor, None)  # type: ignore[attr-defined,union-attr,unused-ignore]
        return super().compose_node(parent, index)  # type: ignore[misc,no-untyped-call,unused-ignore]

    def scalar(self, node: Any) -> Any:
        return node.value if node.style else as_json(resolve(node.value))


Libyaml.add_implicit_resolver("tag:yaml.org,2002:merge", re.compile("<<$"), ["<"])
Libyaml.add_constructor("tag:yaml.org,2002:str", Libyaml.scalar)


def by_libyaml(text: str) -> Any:
    """The first document."""
    # Without what Python's codec does with it.
    return with_text_keys(next(pyyaml.load_all(text.lstrip("\ufeff"), Libyaml), None))


def with_text_keys(value: Any) -> Any:
    if isinstance(value, dict):
        names = {True: "true", False: "false"}
        return {names[key] if isinstance(key, bool) else str(key): with_text_keys(item) for key, item in value.items()}
    return [with_text_keys(item) for item in value] if isinstance(value, list) else value


def has_name_twice(text: str) -> bool:
    """Whether an anchor has the name of another: Python's binding of libyaml refuses that."""
    names = [text[anchor.start : anchor.name_end] for anchor in anchors(text)]
    return len(set(names)) < len(names)


# Where libyaml has become another since it was ported, or PyYAML decodes otherwise: '?' and ':' before a bracket's
# signs, some escapes, directives, tags, merge keys.
ANOTHER = re.compile(r"[?!%]|:[\]\[,{}]|\\['/\t]|<<")
# What is found wrong after libyaml's part: with keys, and values in themselves.
DECODER = re.compile("^unsupported|invalid map key|contains itself|^json|aliasing")


def assert_reads_as_libyaml(text: str) -> None:
    """The same value or, where the kubelet refuses the text, no value."""
    try:
        value = load(text)
    except YAMLError as error:
        assert error.is_broken == bool(error.text), text  # noqa: PT017
        if error.is_broken and not ANOTHER.search(text) and not DECODER.search(error.text):
            with pytest.raises((pyyaml.YAMLError, ValueError, TypeError)):
                by_libyaml(text)
        return
    if not ANOTHER.search(text) and not has_name_twice(text):
        assert same(value, by_libyaml(text)), text


def assert_reads_as_whole_reader(text: str) -> None:
    """What the small reader takes, the whole one reads alike, and at the same places."""
    try:
        node = read(text)
    except YAMLError:
        return
    assert read_rare(text)[0] == node, text


# --- scalars -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("static", "static"),
        ("10s", "10s"),
        ("1h30m", "1h30m"),
        ("100m", "100m"),
        ("0-3,8", "0-3,8"),
        ("0,1", "0,1"),
        ("10%", "10%"),
        ("10.96.0.10", "10.96.0.10"),
        ("::1", "::1"),
        ("2001:db8::1", "2001:db8::1"),
        ("unix:///run/containerd/containerd.sock", "unix:///run/containerd/containerd.sock"),
        ("/etc/kubernetes/manifests", "/etc/kubernetes/manifests"),
        ("a#b", "a#b"),
        ("a b  c", "a b  c"),
        ("it's", "it's"),
        ("-x", "-x"),
        ("?x", "?x"),
        ("-", None),  # a list with a null
        ("yes please", "yes please"),
        ("_1", "_1"),
        ("é😀", "é😀"),
        # The kubelet's YAML is 1.1: these are booleans.
        *[(word, True) for word in ("y", "Y", "true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON")],
        *[(word, False) for word in ("n", "N", "false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF")],
        *[(word, None) for word in ("~", "null", "Null", "NULL", "")],
        ("yES", "yES"),
        ("0", 0),
        ("110", 110),
        ("-5", -5),
        ("+5", 5),
        ("18446744073709551615", 2**64 - 1),
        ("-9223372036854775808", -(2**63)),
        ("0.5", 0.5),
        ("-1.25", -1.25),
        # What has no fraction is an integer in JSON.
        ("110.0", 110),
        ("-0.0", 0),
        ("1.", 1),
        ("1e2", 100),
        ("1.1e2", 110),
        ("010.5", 10.5),
        (".5", 0.5),
        ("+.5", 0.5),
        (".0", 0),
        ("1E-1", 0.1),
        ("1.0e+20", 1e20),
        # Octal, hexadecimal, binary; underscores are nothing.
        ("0755", 493),
        ("0o17", 15),
        ("00", 0),
        ("08", 8),
        ("0x1F", 31),
        ("-0X1F", -31),
        ("0b101", 5),
        ("-0b101", -5),
        ("0b-1", -1),
        ("0b", "0b"),
        ("1_000", 1000),
        ("0_1", 1),
        ("+_1", 1),
        ("1_0.5", 10.5),
        (".5_0", ".5_0"),
        # Beyond 64 bits; decimal ones are floats, and those beyond these are texts.
        ("18446744073709551616", 18446744073709551616.0),
        ("+18446744073709551615", 18446744073709551615.0),
        ("-9223372036854775809", -9223372036854775809.0),
        ("-0x8000000000000001", "-0x8000000000000001"),
        ("1e400", "1e400"),
        (".5e400", ".5e400"),
        ("9" * 400 + ".0", "9" * 400 + ".0"),
        # No numbers: base 60, dates.
        ("1:0", "1:0"),
        ("12:30.5", "12:30.5"),
        ("2026-01-01", "2026-01-01"),
        ("2026-01-01T10:00:00Z", "2026-01-01T10:00:00Z"),
        ("=", "="),
        ("<<", "<<"),
        (".Infinity", ".Infinity"),
        ("1e-400", 0),
        ("a\tb", "a\tb"),
        ('"true"', "true"),
        ("'true'", "true"),
        ("'it''s'", "it's"),
        ('"\\0\\a\\b\\t\\n\\v\\f\\r\\e\\ \\"\\\\\\N\\_\\L\\P"', '\0\a\b\t\n\v\f\r\x1b "\\\x85\xa0\u2028\u2029'),
        ('"\\x41\\u00e9\\U0001f600"', "Aé😀"),
        ("'\t#:,[]{}'", "\t#:,[]{}"),
        ("[]", []),
        ("{}", {}),
        ("[a, 1,]", ["a", 1]),
        ("{a: , b: 1}", {"a": None, "b": 1}),
        ('{"a":1, "b" : [x]}', {"a": 1, "b": ["x"]}),
        ("[[a], {b: {c: d}}]", [["a"], {"b": {"c": "d"}}]),
        ("[a b, -c, d:e]", ["a b", "-c", "d:e"]),
        ("[b: c, 'd' : e, f: , \"g\":1]", [{"b": "c"}, {"d": "e"}, {"f": None}, {"g": 1}]),
        ("[a: [b: {c: d}]]", [{"a": [{"b": {"c": "d"}}]}]),
        ("{a}", {"a": None}),
        ("{a, 'b' , c: 1, d:e}", {"a": None, "b": None, "c": 1, "d:e": None}),
        ("{\ta\t:\tb\t,\tc\t:\t[\td\t]\t}", {"a": "b", "c": ["d"]}),
    ],
)
def test_values(written: str, value: Any) -> None:
    if written == "-":
        value, text = {"key": [None]}, "key:\n-"
    else:
        value, text = {"key": value}, "key: %s" % written
    for variant in (text, text + "\n", text + " # comment\n", "\ufeff" + text, "---\n%s\n...\n" % text):
        assert same(load(variant), value)
        assert_reads_as_libyaml(variant)
        assert_reads_as_whole_reader(variant)


@pytest.mark.parametrize("written", ["9" * 309, "0x1" + "0" * 16, "0b1" + "0" * 64, "0x" + "f" * 500, "1" * 5000])
def test_a_number_that_some_kubelets_take_for_a_text_is_refused(written: str) -> None:
    for text in ("key: %s\n" % written, "- %s" % written, "? %s\n: 1\n" % written):
        with pytest.raises(YAMLError, match="too large a number for some kubelets; put a text in quotes") as error:
            load(text)
        assert (error.value.is_broken, error.value.text) == (False, "")
    assert load("key: '%s'\n" % written) == {"key": written}


# --- structure ---------------------------------------------------------------------------------------


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


# The line of the kubelet's words is that of its own rules: from 0 where the scanner finds nothing wrong.
@pytest.mark.parametrize(
    ("text", "line", "column", "said"),
    [
        ("a: &x% 1", 1, 6, "yaml: found character that cannot start any token"),
        ("a: &x 1\nb: *x:", 2, 6, "yaml: line 2: mapping values are not allowed in this context"),
        ("a: & 1", 1, 4, "yaml: did not find expected alphabetic or numeric character"),
        ("a: *x", 1, 4, "yaml: unknown anchor 'x' referenced"),
        ("a: [*x, &x 1]", 1, 5, "yaml: unknown anchor 'x' referenced"),
        ("a: &x [*x]", 1, 8, "yaml: anchor 'x' value contains itself"),
        ("a: &x 1\nb: &x {c: *x}", 2, 11, "yaml: anchor 'x' value contains itself"),
        ("a: &x 1\nb: &y *x", 2, 7, "yaml: line 1: did not find expected key"),
        ("a: [&y &x 1]", 1, 8, "yaml: did not find expected ',' or ']'"),
        ("a: &x\n  &y 1", 2, 3, "yaml: line 1: did not find expected key"),
        ("a: &x - 1", 1, 7, "yaml: block sequence entries are not allowed in this context"),
        ("<<: 1", 1, 5, "yaml: map merge requires map or sequence of maps as the value"),
        ("<<:", 1, 4, "yaml: map merge requires map or sequence of maps as the value"),
        ("<<: [{a: 1}, b]", 1, 14, "yaml: map merge requires map or sequence of maps as the value"),
        ("a: &x [{b: 1}]\nc: {<<: *x}", 2, 9, "yaml: map merge requires map or sequence of maps as the value"),
        ("...\n", 1, 1, "yaml: did not find expected node content"),
        ("%YAML 1.2\n---\na: 1", 1, 1, "yaml: found incompatible YAML document"),
        ("%YAML 1.1\na: 1", 2, 1, "yaml: line 1: did not find expected <document start>"),
        ("%YAML 1.1x\n---\n", 1, 1, "yaml: did not find expected comment or line break"),
        ("a:\n\tb: 1", 2, 1, "yaml: line 2: found character that cannot start any token"),
        ("a:\n  \tb: 1", 2, 3, "yaml: line 2: found character that cannot start any token"),
        ("a: b\n\t\nc: d", 2, 1, "yaml: line 2: found a tab character that violates indentation"),
        ("-\ta", 1, 2, "yaml: found character that cannot start any token"),
        ("\ta: b", 1, 1, "yaml: found character that cannot start any token"),
        ("a: |\n  \tx\n", 2, 3, "yaml: line 2: found a tab character where an indentation space is expected"),
        ("a: 1\nb: \x07", 2, 4, "yaml: control characters are not allowed"),
        ("a: %x", 1, 4, "yaml: found character that cannot start any token"),
        ("a: @x", 1, 4, "yaml: found character that cannot start any token"),
        ("a: `x", 1, 4, "yaml: found character that cannot start any token"),
        ("~: 1", 1, 1, "unsupported map key of type: %!s(<nil>), key: <nil>, value: 1"),
        ("a: 1\nb", 2, 1, "yaml: line 3: could not find expected ':'"),
        ("a: 1\nb\nc: 2", 2, 1, "yaml: line 3: could not find expected ':'"),
        ("a\nb: 1", 2, 2, "yaml: line 2: mapping values are not allowed in this context"),
        ("a:1\nb: 2", 2, 2, "yaml: line 2: mapping values are not allowed in this context"),
        ("'a\n  b': 1", 2, 5, "yaml: line 2: mapping values are not allowed in this context"),
        (": 1", 1, 1, "yaml: did not find expected key"),
        ("a: 1\n b: 2", 2, 3, "yaml: line 2: mapping values are not allowed in this context"),
        ("a:\n  b: 1\n c: 2", 3, 2, "yaml: line 2: did not find expected key"),
        ("a: [1]\n  b: 2", 2, 3, "yaml: line 1: did not find expected key"),
        ("a:\n  - b\n  c: d", 3, 3, "yaml: line 2: did not find expected '-' indicator"),
        ("- a\nb: 1", 2, 1, "yaml: line 1: did not find expected '-' indicator"),
        ("a: 1\n- b", 2, 1, "yaml: line 1: did not find expected key"),
        ("a: - b", 1, 4, "yaml: block sequence entries are not allowed in this context"),
        ("--- a: 1", 1, 6, "yaml: mapping values are not allowed in this context"),
        ("--- - a", 1, 5, "yaml: block sequence entries are not allowed in this context"),
        ("a: b: c", 1, 5, "yaml: mapping values are not allowed in this context"),
        ("a: |x\n  y", 1, 4, "yaml: did not find expected comment or line break"),
        ("a: |0\n  y", 1, 4, "yaml: found an indentation indicator equal to 0"),
        ("a: |\n    \n  y", 3, 3, "yaml: line 2: did not find expected key"),
        ("a: |\n    x\n  y\n", 3, 3, "yaml: line 2: did not find expected key"),
        ("a: 1\nb: 'x", 2, 4, "yaml: line 2: found unexpected end of stream"),
        ('a: "x', 1, 4, "yaml: found unexpected end of stream"),
        ('a: "x\\"', 1, 4, "yaml: found unexpected end of stream"),
        ("a: 'x' y", 1, 8, "yaml: did not find expected key"),
        ('a: "\\q"', 1, 5, "yaml: found unknown escape character"),
        ('a: "b\\x4"', 1, 4, "yaml: did not find expected hexdecimal number"),
        ('a: "\\ud800"', 1, 4, "yaml: found invalid Unicode character escape code"),
        ('a: "b\\/c"', 1, 6, "yaml: found unknown escape character"),
        ('a: "\\U00110000"', 1, 4, "yaml: found invalid Unicode character escape code"),
        ("['x\n--- y']", 1, 2, "yaml: line 2: found unexpected document indicator"),
        ("a: [1, 2", 2, 1, "yaml: line 1: did not find expected ',' or ']'"),
        ("a:\n  b: {c: 1\nd: 2", 3, 2, "yaml: line 2: did not find expected ',' or '}'"),
        ("a: {c: 1,", 2, 1, "yaml: line 1: did not find expected node content"),
        ("a: {c: 1,\n---\n", 2, 1, "yaml: line 1: did not find expected node content"),
        ("a: {c:", 2, 1, "yaml: line 1: did not find expected node content"),
        ("a: {c: [1}", 1, 10, "yaml: did not find expected ',' or ']'"),
        ("a: [{b: c}: d]", 1, 5, 'yaml: invalid map key: map[interface {}]interface {}{"b":"c"}'),
        ("a: [b\n : c]", 2, 2, "yaml: line 1: did not find expected ',' or ']'"),
        ("a: {b\n c: d}", 2, 3, "yaml: line 1: did not find expected ',' or '}'"),
        ("a: {,}", 1, 5, "yaml: did not find expected node content"),
        ("a: [,]", 1, 5, "yaml: did not find expected node content"),
        ("a: [b,,]", 1, 7, "yaml: did not find expected node content"),
        ("a: [- b]", 1, 5, "yaml: did not find expected node content"),
        ("a: [:b]", 1, 5, "yaml: did not find expected node content"),
        ("a: [b?]", 1, 6, "yaml: did not find expected ',' or ']'"),
        ("a: [1] 2", 1, 8, "yaml: did not find expected key"),
        ("a: ]", 1, 4, "yaml: did not find expected node content"),
        ("[a]: 1", 1, 1, 'yaml: invalid map key: []interface {}{"a"}'),
        ("a: >\n\xa0 b", 2, 1, "yaml: line 3: could not find expected ':'"),
        ("key: .inf", 1, 6, "json: unsupported value: +Inf"),
        ("key: -.Inf", 1, 6, "json: unsupported value: -Inf"),
        ("key: +.INF", 1, 6, "json: unsupported value: +Inf"),
        ("key: .nan", 1, 6, "json: unsupported value: NaN"),
        ("key: .NaN", 1, 6, "json: unsupported value: NaN"),
        ("a: !!int b", 1, 4, "yaml: cannot decode !!str `b` as a !!int"),
        ("a: !!bool 1", 1, 4, "yaml: cannot decode !!int `1` as a !!bool"),
        ("a: !!binary a", 1, 4, "yaml: !!binary value contains invalid base64 data"),
        ("a: !<x 1", 1, 4, "yaml: did not find the expected '>'"),
        ("a: !!x%4 b", 1, 4, "yaml: did not find URI escaped octet"),
        ("a: !%ff b", 1, 4, "yaml: found an incorrect leading UTF-8 octet"),
        ("a: !y!x 1", 1, 4, "yaml: found undefined tag handle"),
        ("%FOO\n---\n", 1, 1, "yaml: found unknown directive name"),
        ("%TAG ! !\n%TAG ! !\n---\n", 2, 1, "yaml: line 1: found duplicate %TAG directive"),
        ("%YAML 1.1\n%YAML 1.1\n---\n", 2, 1, "yaml: line 1: found duplicate %YAML directive"),
        ("%YAML 1.100\n---\n", 1, 1, "yaml: found extremely long version number"),
        ("% x\n---\n", 1, 1, "yaml: could not find expected directive name"),
        ("%YAML a\n---\n", 1, 1, "yaml: did not find expected version number"),
        ("%TAG x\n---\n", 1, 1, "yaml: did not find expected '!'"),
        ("? a\n? [b\n", 3, 1, "yaml: line 2: did not find expected ',' or ']'"),
        ("{? : b}", 1, 4, 'unsupported map key of type: %!s(<nil>), key: <nil>, value: "b"'),
        ("- ? a\n b", 2, 2, "yaml: line 1: did not find expected '-' indicator"),
        ("a: |+0\n", 1, 4, "yaml: found an indentation indicator equal to 0"),
        ("a: b\n- ? c", 2, 1, "yaml: line 1: did not find expected key"),
        ("a b\n? c: d", 2, 4, "yaml: line 2: mapping values are not allowed in this context"),
        ("? &a {*a : 1}\n: 1", 1, 7, "yaml: anchor 'a' value contains itself"),
        ("18446744073709551615: a", 1, 1, 'unsupported map key of type: uint64, key: 0xffffffffffffffff, value: "a"'),
        ("a: &x [1]\n*x : 2", 1, 4, "yaml: invalid map key: []interface {}{1}"),
        (
            "~: {b: [1, null, true]}",
            1,
            1,
            "unsupported map key of type: %%!s(<nil>), key: <nil>, value: %s"
            % 'map[interface {}]interface {}{"b":[]interface {}{1, interface {}(nil), true}}',
        ),
    ],
)
def test_errors_have_a_place_and_the_words_of_the_kubelet(text: str, line: int, column: int, said: str) -> None:
    for variant in (text, text.replace("\n", "\r\n"), "\ufeff" + text):
        assert_reads_as_libyaml(variant)
        with pytest.raises(YAMLError) as error:
            load(variant)
        assert (error.value.line, error.value.column, error.value.text) == (line, column, said)
        assert str(error.value).startswith("line %d, column %d: " % (line, column))
        assert error.value.is_broken


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: b: c", "found ': c' where no value can be; check the indentation"),
        ("a: @b", "found '@b', which no value can start with; put a text in quotes"),
        ("a:\n\tb: 1", "found a tab; use spaces"),
        ("a: 1\nb\nc: 2", "expected ': ' after the key 'b'"),
        ("a: 1\n- b", "expected a key or the end of the line, found '- b'; check"),
        ("a: [b", r"expected ',' or '\]', found the end; is the file whole\?"),
        ("a: 'b", r"the quote that opens here is never closed; is the file whole\?"),
        ("a: - b", "found a list on the line of its key; start it on the next line"),
        ("a: *b", r"the alias \*b has no anchor &b above it"),
        ("a: &b [*b]", r"the alias \*b stands inside of what it is to repeat"),
        ('a: "\\q"', "begins with no escape sequence; double the backslash"),
        ("a: .inf", "is no number that JSON has"),
        ("<<: 1", "a merge key takes a mapping or a list of mappings"),
        ("a: \x07", r"found the character '\\x07'; remove it"),
    ],
)
def test_errors_say_what_to_do(text: str, message: str) -> None:
    with pytest.raises(YAMLError, match=message):
        load(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 60 + "]" * 60, "line 1, column 51: more than 50 collections in each other"),
        ("1: a\n'1': b", "line 1, column 1: the key '1' is there twice, as a text and as none"),
        ("a: !!timestamp 2026-01-01", "line 1, column 4: found the tag of a date; remove it"),
        ("a: 0x10000000000000000", "line 1, column 4: 0x10000000000000000 is too large a number for some kubelets"),
    ],
)
def test_what_is_not_known_for_sure_is_refused_without_words_of_the_kubelet(text: str, message: str) -> None:
    with pytest.raises(YAMLError, match=message) as error:
        load(text)
    assert (error.value.is_broken, error.value.text) == (False, "")


HEADER = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nfailCgroupV1: false\n"


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


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("cpuManagerPolicy:none\n", "yaml: line 5: could not find expected ':'"),
        ("cpuManagerPolicy:none\nmaxPods: 1\n", "yaml: line 5: could not find expected ':'"),
        ("a: b: c\n", "yaml: line 4: mapping values are not allowed in this context"),
        ("  cpuManagerPolicy: none\n", "yaml: line 4: mapping values are not allowed in this context"),
        ("cgroupRoot: a\x07b\n", "yaml: control characters are not allowed"),
        ("# \0\n", "yaml: control characters are not allowed"),
        ("kubeReserved:\n\tcpu: 100m\n", "yaml: line 5: found character that cannot start any token"),
        ('cpuManagerPolicy: "none\n', "yaml: line 5: found unexpected end of stream"),
        ("cpuManagerPolicy: @none\n", "yaml: line 4: found character that cannot start any token"),
        ("cpuManagerPolicy: `none`\n", "yaml: line 4: found character that cannot start any token"),
        ("cpuManagerPolicy: *none\n", "yaml: unknown anchor 'none' referenced"),
        ("cpuManagerPolicy: - none\n", "yaml: line 4: block sequence entries are not allowed in this context"),
        ("kubeReserved: {cpu: 100m}}\n", "yaml: line 3: did not find expected key"),
        ('cpuManagerPolicy: "none" x\n', "yaml: line 3: did not find expected key"),
        ("clusterDomain: 'a'b\n", "yaml: line 3: did not find expected key"),
        ("- a\n", "yaml: line 3: did not find expected key"),
        ("kubeReserved:\n  cpu: 100m\n memory: 1Gi\n", "yaml: line 5: did not find expected key"),
        (
            "kubeReserved:\n  cpu: 100m\n   memory: 1Gi\n",
            "yaml: line 6: mapping values are not allowed in this context",
        ),
        ('clusterDomain: "a\\/b"\n', "yaml: line 4: found unknown escape character"),
        ("maxPods: .inf\n", "json: unsupported value: +Inf"),
    ],
)
def test_what_kubelets_say_of_what_they_cannot_decode(text: str, said: str) -> None:
    with pytest.raises(YAMLError) as error:
        load(HEADER + text)
    assert (error.value.text, error.value.is_broken) == (said, True)


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


@pytest.mark.parametrize("content", [b"a: b\nc: \x00", "\ufeffa: b\nc: \x00".encode("utf-16-le")])
def test_a_control_character_has_its_place(content: bytes) -> None:
    with pytest.raises(YAMLError, match=r"line 2, column 4: found the character '\\x00'; remove it"):
        load(content)


# --- positions ---------------------------------------------------------------------------------------


def nodes(node: Node) -> Iterator[Node]:
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


# --- properties --------------------------------------------------------------------------------------

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
    """A value in which some collections are there several times, so that PyYAML writes anchors and aliases."""
    members = draw(st.lists(collections_of(LINES | NUMBERS | st.booleans()), min_size=1, max_size=3))
    for _more in range(draw(st.integers(1, 4))):
        some = draw(st.lists(st.sampled_from(members), min_size=1, max_size=4))
        members.append(some if draw(st.booleans()) else {"k%d" % number: item for number, item in enumerate(some)})
    return members


@st.composite
def merging(draw: st.DrawFn) -> str:
    """Mappings with anchors, and mappings that merge them, in block or flow style."""
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


@settings(max_examples=150, deadline=None)
@given(collections_of(TEXTS | NUMBERS | st.booleans() | st.none()), LAYOUTS)
def test_reads_what_pyyaml_writes(value: Any, layout: dict[str, Any]) -> None:
    text = pyyaml.dump(value, Dumper=WithoutAliases, sort_keys=False, **layout)
    assert same(load(text), by_libyaml(text)), text


@settings(max_examples=150, deadline=None)
@given(repeated(), LAYOUTS)
def test_reads_anchors_and_aliases_that_pyyaml_writes(value: Any, layout: dict[str, Any]) -> None:
    text = pyyaml.dump(value, Dumper=pyyaml.SafeDumper, sort_keys=False, **layout)
    try:
        found = load(text)
    except YAMLError as error:
        assume("in each other" not in str(error))
        raise
    assert same(found, by_libyaml(text)), text


@settings(max_examples=200, deadline=None)
@given(merging())
def test_merges_as_libyaml_where_the_merge_key_comes_first(text: str) -> None:
    value = load(text)
    assert_reads_as_whole_reader(text)
    # What a merge key gives overrides what is above it. With PyYAML from 6.0.4 on, a mapping that is merged loses its
    # own entries to those that it merges.
    if not re.search(r"(?m)(?:[{,] *|^ +)['a-e]+: [0-9],? *\s+<<|&m[0-9] {<<: \*m[0-9], ", text):
        assert same(value, by_libyaml(text)), text


@settings(max_examples=150, deadline=None)
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


@settings(max_examples=100, deadline=None)
@given(
    collections_of(LINES | NUMBERS | st.booleans()),
    st.lists(st.sampled_from(["", " # x", "\n# x: 'y", "\n      # [", "\n\n", "   "]), min_size=1, max_size=9),
    st.sampled_from([2, 4]),
)
def test_comments_between_the_lines_change_nothing(value: Any, comments: list[str], indent: int) -> None:
    lines = pyyaml.safe_dump(value, width=1000, indent=indent, sort_keys=False).split("\n")
    text = "\n".join(line + comments[number % len(comments)] for number, line in enumerate(lines))
    assert same(load(text), by_libyaml(text)), text


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


@settings(max_examples=800, deadline=None)
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


@settings(max_examples=500, deadline=None)
@given(st.text(" \n\n:-#{}[],\"'|>+?\\1ab~.&*<\t", max_size=30))
def test_any_text_is_refused_or_reads_as_libyaml_says(text: str) -> None:
    assert_reads_as_libyaml(text)


@settings(max_examples=500, deadline=None)
@given(st.binary(max_size=40) | st.text(max_size=40).map(lambda text: ("\ufeff" + text).encode("utf-16-le", "replace")))
def test_any_bytes_are_a_value_or_an_error(content: bytes) -> None:
    try:
        load(content)
    except YAMLError as error:
        assert error.is_broken == bool(error.text)  # noqa: PT017


@settings(max_examples=200, deadline=None)
@given(st.lists(SNIPPETS, max_size=300).map("".join))
def test_what_is_written_at_random_is_a_value_or_an_error(text: str) -> None:
    assert_reads_as_whole_reader(text)
