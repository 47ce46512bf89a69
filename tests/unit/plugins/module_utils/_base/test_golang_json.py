# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""JSON as Go reads it: values, texts that are cut, and texts that Python writes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import GoError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.golang import Number, Object, read_json

END = "unexpected end of JSON input"


# --- values -----------------------------------------------------------------------------------------

VALUES: list[tuple[bytes, Any]] = [
    (b"null", None),
    (b"true", True),
    (b"false", False),
    (b" \t\r\n1 \t\r\n", "1"),
    (b'""', ""),
    (b"[]", []),
    (b"[ ]", []),
    (b"{}", []),
    (b"{ }", []),
    (b'[1,"1",[null],{}]', ["1", "1", [None], []]),
    (b'[ 1 , "1" ]', ["1", "1"]),
    (b'{ "a" : 1 , "b" : { } }', [("a", "1"), ("b", [])]),
    # keys that are there twice, in the order of the text
    (b'{"b":1,"a":2,"b":3}', [("b", "1"), ("a", "2"), ("b", "3")]),
    (b'{"":{"":[]}}', [("", [("", [])])]),
    (b'[{"a":[{"b":null},2]},3]', [[("a", [[("b", None)], "2"])], "3"]),
    # numbers as they are written
    (b"0", "0"),
    (b"-0", "-0"),
    (b"-12", "-12"),
    (b"0.0", "0.0"),
    (b"1.50", "1.50"),
    (b"1e5", "1e5"),
    (b"1E+05", "1E+05"),
    (b"0e-0", "0e-0"),
    (b"-1.5e-300", "-1.5e-300"),
    (b"1" * 10_000, "1" * 10_000),
    # escapes
    (rb'"\"\\\/\b\f\n\r\t"', '"\\/\b\f\n\r\t'),
    (rb'"\u0041\u00e9\u20AC\u0000"', "A\u00e9\u20ac\x00"),
    (rb'"\\u0041"', "\\u0041"),
    (rb'"\u00411"', "A1"),
    (rb'{"\u0061":1}', [("a", "1")]),
    ('"caf\u00e9 \u20ac \U0001f600 \x7f"'.encode(), "caf\u00e9 \u20ac \U0001f600 \x7f"),
    # surrogates: a pair is one character, what is none is replaced
    (rb'"\ud83d\ude00"', "\U0001f600"),
    (rb'"\uD83D\uDE00"', "\U0001f600"),
    (rb'"\ud800\udc00\udbff\udfff"', "\U00010000\U0010ffff"),
    (rb'"\ud800"', "\ufffd"),
    (rb'"\udc00"', "\ufffd"),
    (rb'"\ud800x"', "\ufffdx"),
    (rb'"\ud800\n"', "\ufffd\n"),
    (rb'"\ud800\u0041"', "\ufffdA"),
    (rb'"\udc00\ud800"', "\ufffd\ufffd"),
    (rb'"\ud800\ud800"', "\ufffd\ufffd"),
    (rb'"\ud800\ud83d\ude00"', "\ufffd\U0001f600"),
    # bytes that are no UTF-8: one replacement character for each
    (b'"\xff"', "\ufffd"),
    (b'"a\x80b"', "a\ufffdb"),
    (b'"\xe2\x82"', "\ufffd\ufffd"),
    (b'"\xe2\x82a"', "\ufffd\ufffda"),
    (b'"\xf0\x9f\x98"', "\ufffd\ufffd\ufffd"),
    (b'"\xc0\x80"', "\ufffd\ufffd"),  # longer than it need be
    (b'"\xe0\x80\x80"', "\ufffd\ufffd\ufffd"),
    (b'"\xed\xa0\x80"', "\ufffd\ufffd\ufffd"),  # a surrogate
    (b'"\xf4\x90\x80\x80"', "\ufffd\ufffd\ufffd\ufffd"),  # beyond Unicode
    (b'"\xc3\\n\xa9"', "\ufffd\n\ufffd"),
    (b'{"\xff":1}', [("\ufffd", "1")]),
    ('"\ufffd\ufeff"'.encode(), "\ufffd\ufeff"),
]


@pytest.mark.parametrize(("text", "value"), VALUES, ids=lambda value: repr(value)[:40])
def test_read_json(text: bytes, value: Any) -> None:
    assert read_json(text) == value


@pytest.mark.parametrize(
    ("text", "kind"),
    [(b"{}", Object), (b"[]", list), (b"1", Number), (b'"1"', str), (b"true", bool), (b"null", type(None))],
)
def test_the_type_of_a_value(text: bytes, kind: type) -> None:
    assert read_json(text).__class__ is kind
    assert [type(value) for value in read_json(b"[%s,%s]" % (text, text))] == [kind, kind]
    assert [type(value) for _key, value in read_json(b'{"a":%s}' % text)] == [kind]


@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}"), (b'[{"a":', b"}]")])
def test_depth(opening: bytes, closing: bytes) -> None:
    """10,000 collections in each other are read, not one more."""
    levels = opening.count(b"[") + opening.count(b"{")
    times = 10_000 // levels
    value = read_json(opening * times + b"1" + closing * times)
    depth = 0
    while isinstance(value, list):
        value = value[0][1] if isinstance(value, Object) else value[0]
        depth += 1
    assert (value, depth) == ("1", 10_000)
    first = opening[:1].decode()
    with pytest.raises(GoError) as caught:
        read_json(opening * (times + 1) + b"1" + closing * (times + 1))
    assert str(caught.value) == "invalid character '%s' exceeded max depth" % first
    # An empty one counts, too; those beside each other do not.
    for innermost, character in ((b"[]", "["), (b"{}", "{")):
        with pytest.raises(GoError) as caught:
            read_json(opening * times + innermost + closing * times)
        assert str(caught.value) == "invalid character '%s' exceeded max depth" % character
    assert len(read_json(b"[" + b",".join([b"[]"] * 20_000) + b"]")) == 20_000


# --- texts that are cut -----------------------------------------------------------------------------

UNFINISHED = [
    b"",
    b" ",
    b"\n\t",
    b"[",
    b"[ ",
    b"[1",
    b"[1 ",
    b"[1,",
    b"[[]",
    b"[true",
    b"{",
    b"{ ",
    b'{"',
    b'{"a',
    b'{"a"',
    b'{"a" ',
    b'{"a":',
    b'{"a":1',
    b'{"a":1.5',
    b'{"a":1e5',
    b'{"a":"b"',
    b'{"a":{}',
    b'{"a":1,',
    b'{"a":1, ',
    b'"',
    b'"a',
    b'"\\n',
    b'"\\u0041',
    b'"\\ud800',
    b'"\xff',
]


@pytest.mark.parametrize("text", UNFINISHED)
def test_unfinished(text: bytes) -> None:
    with pytest.raises(GoError) as caught:
        read_json(text)
    assert str(caught.value) == END


# --- properties -------------------------------------------------------------------------------------

documents = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=8)
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=8), inner, max_size=4)),
    max_leaves=20,
)


def plain(value: Any) -> Any:
    """Return a value as Python's json would have read it."""
    if isinstance(value, Object):
        return {key: plain(member) for key, member in value}
    if isinstance(value, list):
        return [plain(member) for member in value]
    if isinstance(value, Number):
        return float(value) if set(value) & set(".eE") else int(value)
    return value


@given(documents, st.booleans(), st.sampled_from([None, 1, "\t"]))
def test_what_python_writes_is_read_the_same(value: Any, ascii_only: bool, indent: Any) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    assert plain(read_json(text.encode())) == value


def no_constant(text: str) -> None:
    raise ValueError(text)


json_texts = st.one_of(
    st.text(max_size=40),
    st.text(st.sampled_from('{}[]",:\\u0123456789abcdefgnrtx.eE+- \n\ttruefalsenull'), max_size=24),
    st.lists(
        st.sampled_from(
            [
                "{",
                "}",
                "[",
                "]",
                ",",
                ":",
                '"a"',
                '"\\u0041"',
                "1",
                "-0",
                "1.5e-3",
                "01",
                "true",
                "null",
                " ",
                '"',
                "NaN",
            ]
        ),
        max_size=12,
    ).map("".join),
)


@given(json_texts)
@example('{"a":[1,{"b":null}]}')
@example("-Infinity")
@example("\u00a01")
@example("1\x0c")
@example("\ufeff{}")
def test_accepted_and_refused_as_python_does(text: str) -> None:
    """Apart from NaN and Infinity, which only Python knows."""
    try:
        expected = json.loads(text, parse_constant=no_constant)
    except ValueError:
        with pytest.raises(GoError):
            read_json(text.encode())
    else:
        found = plain(read_json(text.encode()))
        assert json.dumps(found) == json.dumps(without_halves(expected))


def without_halves(value: Any) -> Any:
    """Return a value with a replacement for each half of a surrogate pair, which Python keeps."""
    if isinstance(value, str):
        return "".join("\ufffd" if "\ud800" <= character <= "\udfff" else character for character in value)
    if isinstance(value, list):
        return [without_halves(member) for member in value]
    if isinstance(value, dict):
        return {without_halves(key): without_halves(member) for key, member in value.items()}
    return value


@given(st.binary(max_size=60))
@example(b'"\xff')
@example(b'{"a":"\xc3"}')
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    try:
        value = read_json(content)
    except GoError as error:
        message = str(error)
    else:
        # What is read is text without halves of surrogate pairs.
        json.dumps(plain(value), ensure_ascii=False).encode()
        message = END
    assert message == END or message.startswith("invalid character '")


@given(documents, st.data())
def test_a_cut_text_is_refused(value: Any, data: st.DataObject) -> None:
    text = json.dumps({"a": value}).encode()
    with pytest.raises(GoError):
        read_json(text[: data.draw(st.integers(0, len(text) - 1))])
