# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which value a scalar, or a small collection in flow style, has."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.yaml import load
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.yaml_nodes import YAMLError
from ansible_collections.kubenode.cpu_manager.tests.unit.plugins.module_utils._kubelet.yaml_readers import (
    assert_reads_as_libyaml,
    assert_reads_as_whole_reader,
    same,
)


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
