# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The reader against PyYAML and libyaml: it gives the same value or an error, never another value.

The kubelet's reader is libyaml in Go with other rules for numbers; the two references get these. PyYAML takes no tabs
where libyaml does: it is given spaces in their place.
"""

from __future__ import annotations

import json
import re
from typing import Any, Iterator

import pytest
import yaml as pyyaml
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.kubelet.yaml import (
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
    anchors,
    load,
    read,
)

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


def same(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


_FLOAT = "tag:yaml.org,2002:float"


def with_numbers_as_in_go(base: Any) -> Any:
    """The loader with the kubelet's rules for numbers with a point or an exponent, which become JSON."""

    class Loader(base):  # type: ignore[misc]
        pass

    def number(loader: Any, node: Any) -> int | float:
        value = float(loader.construct_scalar(node))
        return int(value) if value.is_integer() and abs(value) < 2**63 else value

    def compose_node(loader: Any, parent: Any, index: Any) -> Any:
        # A name can be given anew, as in YAML and Go.
        if not loader.check_event(pyyaml.AliasEvent):
            loader.anchors.pop(loader.peek_event().anchor, None)
        return base.compose_node(loader, parent, index)

    Loader.yaml_implicit_resolvers = {
        sign: [one for one in resolvers if one[0] != _FLOAT] for sign, resolvers in base.yaml_implicit_resolvers.items()
    }
    Loader.compose_node = compose_node  # type: ignore[attr-defined,unused-ignore]
    pattern = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+\.[0-9]*|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?$")
    Loader.add_implicit_resolver(_FLOAT, pattern, list("-+.0123456789"))
    Loader.add_constructor(_FLOAT, number)
    return Loader


PYYAML = with_numbers_as_in_go(pyyaml.SafeLoader)
LIBYAML = with_numbers_as_in_go(pyyaml.CSafeLoader)


def by_libyaml(text: str) -> Any:
    # Without what Python's codec and the reader do with it.
    return pyyaml.load(text.lstrip("\ufeff"), LIBYAML)


def by_pyyaml(text: str) -> Any:
    """With a space in place of each tab at which PyYAML stumbles."""
    while True:
        try:
            return pyyaml.load(text, PYYAML)
        except pyyaml.scanner.ScannerError as error:
            at = error.problem_mark.index if error.problem_mark else 0
            if text[at : at + 1] != "\t":
                raise
            text = text[:at] + " " + text[at + 1 :]


def has_name_twice(text: str) -> bool:
    """Whether an anchor has the name of another: Python's binding of libyaml refuses that."""
    names = [text[one.start : one.name_end] for one in anchors(text)]
    return len(set(names)) < len(names)


def without_tabs(value: Any) -> Any:
    return json.loads(json.dumps(value).replace("\\t", " "))


def is_refused(text: str) -> bool:
    """Whether libyaml cannot read the first document of the text, which is all that the kubelet reads."""
    try:
        # A value that contains itself is refused by the kubelet.
        json.dumps(next(pyyaml.load_all(text.lstrip("\ufeff"), LIBYAML), None), default=str)
    except (pyyaml.YAMLError, ValueError, TypeError):
        return True
    return False


def assert_reads_as_others_or_refuses(text: str) -> None:
    try:
        value = load(text)
    except YAMLError as error:
        # PyYAML and libyaml have an escape more than Go, and merge an alias of a list.
        is_certain = error.is_broken and "\\/" not in text and "a merge key takes" not in str(error)
        assert not is_certain or is_refused(text), (error, text)  # noqa: PT017
        return
    if not has_name_twice(text):
        assert same(value, by_libyaml(text)), text
    assert same(without_tabs(value), without_tabs(by_pyyaml(text))), text


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
        *[(word, True) for word in ("true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON")],
        *[(word, False) for word in ("false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF")],
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
        assert_reads_as_others_or_refuses(variant)


@pytest.mark.parametrize(
    "written",
    [
        *["y", "Y", "n", "N"],  # booleans to Go, texts to PyYAML
        *["1e400", "-1e400", "9" * 400 + ".0"],  # beyond a float64 Go reads texts
        *["0755", "010", "00", "08", "0o17", "0x1F", "0X1F", "0b101", "-0x1F", "0b-1"],  # octal and the like
        *["1_000", "0_1", "+_1", "1_0.5"],  # Go strips all underscores
        *["12:30", "1:30:15", "12:30.5"],  # base 60 to PyYAML
        *["2026-01-01", "2026-1-1", "2026-01-01 10:00:00", "2026-01-01T10:00:00Z"],  # dates to PyYAML
        *[".inf", "-.Inf", "+.INF", ".nan", ".NaN"],  # no JSON
        *["18446744073709551616", "-9223372036854775809", "9" * 5000],  # beyond Go's integers
        "=",  # YAML 1.1's special key
    ],
)
def test_scalars_that_the_kubelet_and_others_read_differently_are_refused(written: str) -> None:
    for text in ("key: %s\n" % written, "- %s" % written, "%s: 1\n" % written):
        with pytest.raises(YAMLError, match="put a text in quotes"):
            load(text)
    assert load("key: '%s'\n" % written) == {"key": written}


# --- structure ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", DOCUMENTS)
def test_documents(text: str) -> None:
    for variant in (text, text.replace("\n", "\r\n"), "\ufeff" + text):
        assert_reads_as_others_or_refuses(variant)
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
        assert_reads_as_others_or_refuses(variant)
        load(variant)


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        # What this reader does not follow.
        ("&x a: 1", 1, 4, "the anchor of a key"),
        ("a: 1\n&x b: 1", 2, 1, "an anchor where"),
        ("- &x a: 1", 1, 6, "the anchor of a key"),
        ("{&x a: 1}", 1, 2, "an anchor where"),
        ("a: &x b\n*x : 1", 2, 1, "an alias where"),
        ("a: &x% 1", 1, 4, "expected the name of an anchor"),
        ("a: &x 1\nb: *x:", 2, 4, "expected the name of an alias"),
        ("a: & 1", 1, 4, "expected the name of an anchor"),
        ("a: *x", 1, 4, "the alias .x has no anchor &x above it"),
        ("a: [*x, &x 1]", 1, 5, "the alias .x has no anchor &x above it"),
        ("a: &x [*x]", 1, 8, "the alias .x stands inside of what it is to repeat"),
        ("a: &x 1\nb: &x {c: *x}", 2, 11, "the alias .x stands inside"),
        ("a: &x 1\nb: &y *x", 2, 7, "an alias or a second anchor cannot have an anchor"),
        ("a: [&y &x 1]", 1, 8, "an alias or a second anchor cannot have an anchor"),
        ("a: &x\n  &y 1", 2, 3, "an alias or a second anchor cannot have an anchor"),
        ("a: &x - 1", 1, 7, "a list on the line of its key"),
        ("a: &x {b: 1}\nc: {b: 2, <<: *x}", 2, 11, "the merge key gives 'b', which is above it; put '<<' first"),
        ("a: &x {b: 1}\nc:\n  <<: *x\n  <<: *x", 4, 3, "the key '<<' is there twice"),
        ("a: {'<<': 1}", 1, 5, "no merge key in quotes; remove them to merge"),
        ("<<: 1", 1, 1, "a merge key takes a mapping or a list of mappings"),
        ("<<:", 1, 1, "a merge key takes a mapping or a list of mappings"),
        ("<<: [{a: 1}, b]", 1, 1, "a merge key takes a mapping or a list of mappings"),
        ("a: &x [{b: 1}]\nc: {<<: *x}", 2, 5, "a merge key takes a mapping or a list of mappings"),
        ("a: !!str 1", 1, 4, "a tag"),
        ("? a\n: b", 1, 1, "expected a key or a value, found '. a'"),
        ("a: 1\n---\nb: 2", 2, 1, "a further document"),
        ("a: 1\n...\n---\n", 3, 1, "a further document"),
        ("a: 1\n...\nb: 2", 3, 1, "belongs to nothing"),
        ("...\n", 1, 1, "a further document"),
        ("%YAML 1.2\n---\na: 1", 1, 1, "only '%YAML 1.1' is known"),
        ("%TAG ! !x\n---\na: 1", 1, 1, "a directive"),
        ("%YAML 1.1\na: 1", 2, 1, "expected '---'"),
        ("%YAML 1.1x\n---\n", 1, 10, "end of the line"),
        ("[" * 60 + "]" * 60, 1, 51, "more than 50"),
        # Characters.
        ("a:\n\tb: 1", 2, 1, "found a tab"),
        ("a:\n  \tb: 1", 2, 3, "found a tab"),
        ("a: b\n\t\nc: d", 2, 1, "found a tab"),
        ("a: b\n  \tc", 2, 3, "found a tab"),
        ("-\ta", 1, 2, "found a tab"),
        ("\ta: b", 1, 1, "found a tab"),
        ("a: 'x\n\ty'", 2, 1, "must be indented deeper"),
        ("a: |\n  \tx\n", 2, 3, "must show its indentation"),
        ("a: 1\nb: \x07", 2, 4, "the character '.x07'"),
        ("a: x\ufeff", 1, 5, "the character '.ufeff'"),
        ("a: x\rb: y", 1, 5, "the character '.r'"),
        ("a: x\x85", 1, 5, "the character '.x85'"),
        ("a: 'x'#c", 1, 7, "end of the line, found '#c'"),
        ("a: [#c\n]", 1, 5, "a comment needs a space"),
        ("a: %x", 1, 4, "put a text in quotes"),
        ("a: @x", 1, 4, "put a text in quotes"),
        ("a: `x", 1, 4, "put a text in quotes"),
        # Keys.
        ("a: 1\nb: 2\na: 3", 3, 1, "the key 'a' is there twice"),
        ("a: {b: 1, b: 2}", 1, 11, "the key 'b' is there twice"),
        ("a: 1\n'a': 2", 2, 1, "the key 'a' is there twice"),
        ("on: 1", 1, 1, "the key on is not a text"),
        ("1: 1", 1, 1, "the key 1 is not a text"),
        ("~: 1", 1, 1, "the key ~ is not a text"),
        ("a: 1\nb", 2, 1 + 1, "expected ': ' after the key b, found the end of the text"),
        ("a: 1\nb\nc: 2", 2, 2, "expected ': ' after the key b, found the end of the line"),
        ("a\nb: 1", 1, 2, "expected ': ' after the key a"),
        ("a:1\nb: 2", 1, 4, "expected ': ' after the key a:1"),
        ('"a":1', 1, 4, "end of the line"),
        ("'a\n  b': 1", 1, 1, "on one line"),
        ("%s: 1" % ("a" * 1001), 1, 1, "on one line"),
        (": 1", 1, 1, "expected a key or a value"),
        # Indentation.
        ("a: 1\n b: 2", 2, 3, "end of the line, found ': 2'"),
        ("a:\n  b: 1\n c: 2", 3, 2, "'c: 2', indented deeper"),
        ("a: [1]\n  b: 2", 2, 3, "'b: 2', indented deeper"),
        ("  a: 1\nb: 2", 2, 1, "'b: 2', which belongs to nothing"),
        ("a:\n  - b\n  c: d", 3, 3, "indented deeper"),
        ("- a\nb: 1", 2, 1, "belongs to nothing"),
        ("a: 1\n- b", 2, 1, "expected a key or a value"),
        ("a: - b", 1, 4, "a list on the line of its key"),
        ("--- a: 1", 1, 6, "end of the line"),
        ("--- - a", 1, 5, "a list on the line"),
        ("a: b: c", 1, 5, "end of the line"),
        ("a: |x\n  y", 1, 5, "end of the line"),
        ("a: |0\n  y", 1, 5, "end of the line"),
        ("a: |\n    \n  y", 3, 3, "must show its indentation"),
        ("a: |\n    x\n  y\n", 3, 3, "indented deeper"),
        # Quotes.
        ("a: 1\nb: 'x", 2, 4, "never closed"),
        ('a: "x', 1, 4, "never closed"),
        ('a: "x\\"', 1, 4, "never closed"),
        ("a: 'x' y", 1, 7, "end of the line"),
        ('a: "\\q"', 1, 5, ".q is no escape sequence"),
        ('a: "b\\x4"', 1, 6, "no escape sequence"),
        ('a: "\\ud800"', 1, 5, "no escape sequence"),
        ('a: "b\\/c"', 1, 6, "no escape sequence"),  # not in the kubelet's YAML
        ('a: "\\U00110000"', 1, 5, "no escape sequence"),
        ("a: 'x\ny'", 2, 1, "starts on line 1 must be indented deeper"),
        ("['x\n--- y']", 2, 1, "must be indented deeper"),
        # Brackets.
        ("a: [1, 2", 1, 4, "the '\\[' that opens here is never closed"),
        ("a:\n  b: {c: 1\nd: 2", 3, 2, "expected ',' or '}', found ': 2'"),
        ("a: {c: 1,", 1, 4, "the '{' that opens here is never closed"),
        ("a: {c: 1,\n---\n", 1, 4, "never closed"),
        ("a: {c:", 1, 4, "never closed"),
        ("a: {c: [1}", 1, 10, "expected ',' or '\\]'"),
        ("a: [{b: c}: d]", 1, 11, "expected ',' or '\\]', found ': d\\]'"),
        ("a: [b\n : c]", 2, 2, "expected ',' or '\\]', found ': c\\]'"),
        ("a: {b\n c: d}", 1, 6, "expected ': ' after the key b"),
        ("a: {b:}", 1, 6, "expected ': ' after the key b"),
        ("a: {,}", 1, 5, "expected a key or a value"),
        ("a: [,]", 1, 5, "expected a key or a value"),
        ("a: [b,,]", 1, 7, "expected a key or a value"),
        ("a: [- b]", 1, 5, "expected a key or a value"),
        ("a: [:b]", 1, 5, "expected a key or a value"),
        ("a: [?b]", 1, 5, "expected a key or a value"),
        ("a: [b?]", 1, 6, "expected ',' or '\\]'"),
        ("a: [1] 2", 1, 7, "end of the line"),
        ("a: ]", 1, 4, "expected a key or a value"),
        ("[a]: 1", 1, 4, "end of the line"),
        ("a: >\n\xa0 b", 2, 4, "expected ': '"),
    ],
)
def test_errors_name_line_and_column(text: str, line: int, column: int, message: str) -> None:
    for variant in (text, text.replace("\n", "\r\n"), "\ufeff" + text):
        if "\r\n" in variant and "\rb" in variant:
            continue
        assert_reads_as_others_or_refuses(variant)
        with pytest.raises(YAMLError, match=message) as error:
            load(variant)
        assert (error.value.line, error.value.column) == (line, column)
        assert str(error.value).startswith("line %d, column %d: " % (line, column))


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
    ],
)
def test_what_kubelets_start_with_is_read(text: str, value: Any) -> None:
    found = load(text)
    assert value is None or same(found, value)


@pytest.mark.parametrize(
    "text",
    [
        "cpuManagerPolicy:none\nmaxPods: 1\n",
        "a: b: c\n",
        "cgroupRoot: a\x07b\n",
        "maxPods: 1\n  cpuManagerPolicy: none\n",
        "# \0\n",
        "kubeReserved:\n\tcpu: 100m\n",
        'cpuManagerPolicy: "none\n',
        "cpuManagerPolicy: @none\n",
        "cpuManagerPolicy: `none`\n",
        "cpuManagerPolicy: *none\n",
        "cpuManagerPolicy: - none\n",
        "kubeReserved:\n  cpu: 100m\n memory: 1Gi\n",
        "kubeReserved:\n  cpu: 100m\n   memory: 1Gi\n",
        'clusterDomain: "a\\/b"\n',
    ],
)
def test_what_kubelets_cannot_decode_is_broken(text: str) -> None:
    with pytest.raises(YAMLError) as error:
        load(text)
    assert error.value.is_broken


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
    assert [(text[one.start : one.name_end], text[one.name_end : one.end]) for one in found] == [
        ("&x", "\n  b: 1"),
        ("&y", " d"),
        ("&x", " 2"),
    ]
    lines = [[text.count("\n", 0, at) + 1 for at in one.aliases] for one in found]
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
    lines += ["a%d: &a%d [%s]" % (one, one, ", ".join(["*a%d" % (one - 1)] * 9)) for one in range(1, 20)]
    with pytest.raises(YAMLError, match=r"line 5, column .*more than 10000 values; write them out") as error:
        load("\n".join(lines))
    assert not error.value.is_broken
    lines = ["a0: &a0 [x]", *("a%d: &a%d [*a%d]" % (one, one, one - 1) for one in range(1, 99))]
    with pytest.raises(YAMLError, match="more than 50 collections in each other"):
        load("\n".join(lines))


@pytest.mark.parametrize(
    ("text", "is_broken"),
    [
        ("a: [1, 2", True),
        ("a: 'x", True),
        ("a: b: c", True),
        ("a:\n\tb: 1", True),
        ("a: \x07", True),
        ("a: *x", True),
        ("a: &x [*x]", True),
        ("<<: 1", True),
        ('a: "\\/"', True),
        ("a: @x", True),
        # Some other reader, the kubelet's among them, takes these.
        ("a: 010", False),
        ("a: y", False),
        ("a: !!str 1", False),
        ("? a\n: b", False),
        ("a: 1\n---\nb: 2", False),
        ("a: 1\n...\nb: 2", False),
        ("  a: 1\nb: 2", False),
        ("a: 1\na: 2", False),
        ("a: x\x85", False),
        ("&x a: 1", False),
        ("a: &x {b: 1}\nc: {b: 2, <<: *x}", False),
        ("a: [b\n : c]", False),
        ("a: {b:}", False),
    ],
)
def test_an_error_says_whether_the_kubelet_refuses_the_text_too(text: str, is_broken: bool) -> None:
    with pytest.raises(YAMLError) as error:
        load(text)
    assert error.value.is_broken is is_broken


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

# PyYAML writes these plain, and the reader refuses them as disputed: see test_scalars_that_... above.
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
        members.append(some if draw(st.booleans()) else {"k%d" % number: one for number, one in enumerate(some)})
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
        merged = draw(st.lists(st.integers(0, number).map(lambda one: "*m%d" % one), min_size=1, max_size=3))
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
def test_merges_as_others_do_or_refuses_what_the_kubelet_merges_otherwise(text: str) -> None:
    assert_reads_as_others_or_refuses(text)
    # With the merge keys first the kubelet and others agree.
    if not re.search(r"(?m)(?:[{,] *|^ +)['a-e]+: [0-9],? *\s+<<", text):
        load(text)


@settings(max_examples=150, deadline=None)
@given(collections_of(TEXTS), LAYOUTS, st.sampled_from(["'", '"', "|", ">"]))
def test_reads_what_pyyaml_writes_in_each_style(value: Any, layout: dict[str, Any], style: str) -> None:
    text = pyyaml.dump(value, Dumper=WithoutAliases, sort_keys=False, default_style=style, **layout)
    try:
        expected = by_libyaml(text)
    except pyyaml.YAMLError:
        assume(False)  # PyYAML writes some block texts that it cannot read
    assert_reads_as_others_or_refuses(text)
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
        assert_reads_as_others_or_refuses(text[:end])


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
def test_a_damaged_document_is_refused_or_reads_as_pyyaml_says(data: st.DataObject, text: str) -> None:
    first, last = sorted(data.draw(st.tuples(*[st.integers(0, text.count("\n"))] * 2)))
    text = "".join(text.splitlines(keepends=True)[first : last + 1])
    for _damage in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text)))
        until = at + data.draw(st.sampled_from([0, 0, 1, 1, 4]))
        text = text[:at] + data.draw(SNIPPETS | st.just("")) + text[until:]
    assert_reads_as_others_or_refuses(text)


@settings(max_examples=500, deadline=None)
@given(st.text(" \n\n:-#{}[],\"'|>+?\\1ab~.&*<\t", max_size=30))
def test_any_text_is_refused_or_reads_as_pyyaml_says(text: str) -> None:
    assert_reads_as_others_or_refuses(text)
