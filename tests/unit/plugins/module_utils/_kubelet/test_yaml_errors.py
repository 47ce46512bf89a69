# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is refused: its place, the kubelet's words, and what to do."""

from __future__ import annotations

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.yaml import load
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.yaml_nodes import YAMLError
from ansible_collections.kubenode.cpu_manager.tests.unit.plugins.module_utils._kubelet.yaml_documents import HEADER
from ansible_collections.kubenode.cpu_manager.tests.unit.plugins.module_utils._kubelet.yaml_readers import (
    assert_reads_as_libyaml,
)


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


# What the kubelets 1.33 and 1.36 answered to these as their --config files.
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
