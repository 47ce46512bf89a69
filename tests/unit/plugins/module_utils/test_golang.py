# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/golang.py."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import MAX_CPUS, CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.errors import GoError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.golang import (
    Number,
    Object,
    quote,
    read_cpus,
    read_integer,
    read_json,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.strategies import cpusets

END = "unexpected end of JSON input"

# --- JSON: values -----------------------------------------------------------------------------------

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


# --- JSON: complaints -------------------------------------------------------------------------------

VALUE = "looking for beginning of value"
KEY = "looking for beginning of object key string"
AFTER_KEY = "after object key"
AFTER_PAIR = "after object key:value pair"
AFTER_ELEMENT = "after array element"
AFTER_ALL = "after top-level value"
LITERAL = "in string literal"
ESCAPE = "in string escape code"
HEXADECIMAL = "in \\u hexadecimal character escape"
NUMBER = "in numeric literal"
POINT = "after decimal point in numeric literal"
EXPONENT = "in exponent of numeric literal"

# the text, the character that Go names, and where it says that it is
COMPLAINTS = [
    (b"x", "x", VALUE),
    (b"+1", "+", VALUE),
    (b".5", ".", VALUE),
    (b"NaN", "N", VALUE),
    (b"Infinity", "I", VALUE),
    (b"]", "]", VALUE),
    (b"}", "}", VALUE),
    (b",", ",", VALUE),
    (b":", ":", VALUE),
    (b"/", "/", VALUE),
    (b"[,1]", ",", VALUE),
    (b"[1,]", "]", VALUE),
    (b"[1,,2]", ",", VALUE),
    (b"[}", "}", VALUE),
    (b'{"a":}', "}", VALUE),
    (b'{"a":,', ",", VALUE),
    (b'{"a"::1}', ":", VALUE),
    (b"\x0b1", "\\v", VALUE),
    (b"{,", ",", KEY),
    (b"{1:2}", "1", KEY),
    (b"{a:2}", "a", KEY),
    (b"{]", "]", KEY),
    (b'{"a":1,}', "}", KEY),
    (b'{"a":1,,', ",", KEY),
    (b"{'a':1}", "\\'", KEY),
    (b'{"a"}', "}", AFTER_KEY),
    (b'{"a",', ",", AFTER_KEY),
    (b'{"a"1', "1", AFTER_KEY),
    (b'{"a" "b"', '"', AFTER_KEY),
    (b'{"a":1]', "]", AFTER_PAIR),
    (b'{"a":1:', ":", AFTER_PAIR),
    (b'{"a":1 "b":2}', '"', AFTER_PAIR),
    (b'{"a":01}', "1", AFTER_PAIR),
    (b"[1}", "}", AFTER_ELEMENT),
    (b"[1 2]", "2", AFTER_ELEMENT),
    (b"[1:2]", ":", AFTER_ELEMENT),
    (b"[-01]", "1", AFTER_ELEMENT),
    (b"[1.5.]", ".", AFTER_ELEMENT),
    (b"[1e5e]", "e", AFTER_ELEMENT),
    (b"[1e5.]", ".", AFTER_ELEMENT),
    (b"[1x]", "x", AFTER_ELEMENT),
    (b"[truex]", "x", AFTER_ELEMENT),
    (b'[""""]', '"', AFTER_ELEMENT),
    (b"{}}", "}", AFTER_ALL),
    (b"{}{}", "{", AFTER_ALL),
    (b"[]]", "]", AFTER_ALL),
    (b"1 2", "2", AFTER_ALL),
    (b"01", "1", AFTER_ALL),
    (b"nullx", "x", AFTER_ALL),
    (b'"" ,', ",", AFTER_ALL),
    (b"{}\x00", "\\x00", AFTER_ALL),
    (b"1e5e", "e", AFTER_ALL),
    (b'"\n"', "\\n", LITERAL),
    (b'"\t"', "\\t", LITERAL),
    (b'"a\x00"', "\\x00", LITERAL),
    (b'"\x1f"', "\\x1f", LITERAL),
    (b'{"\r":1}', "\\r", LITERAL),
    (b'"\\x"', "x", ESCAPE),
    (b'"\\\'"', "\\'", ESCAPE),
    (b'"\\U"', "U", ESCAPE),
    (b'"\\\n"', "\\n", ESCAPE),
    (b'"\\0"', "0", ESCAPE),
    (b'"\\', " ", ESCAPE),
    (b'"\\u"', '"', HEXADECIMAL),
    (b'"\\u1"', '"', HEXADECIMAL),
    (b'"\\u12"', '"', HEXADECIMAL),
    (b'"\\u123"', '"', HEXADECIMAL),
    (b'"\\ug', "g", HEXADECIMAL),
    (b'"\\u00G0', "G", HEXADECIMAL),
    (b'"\\u+123"', "+", HEXADECIMAL),
    (b'"\\u', " ", HEXADECIMAL),
    (b'"\\u123', " ", HEXADECIMAL),
    (b'"\\ud800\\u12"', '"', HEXADECIMAL),
    (b'"\\ud800\\u', " ", HEXADECIMAL),
    (b'"\\ud800\\x"', "x", ESCAPE),
    (b'"\\ud800\\', " ", ESCAPE),
    (b"-", " ", NUMBER),
    (b"-a", "a", NUMBER),
    (b"--1", "-", NUMBER),
    (b"-.5", ".", NUMBER),
    (b"[-]", "]", NUMBER),
    (b"-Infinity", "I", NUMBER),
    (b"1.", " ", POINT),
    (b"[1.]", "]", POINT),
    (b"0.e1", "e", POINT),
    (b"1..5", ".", POINT),
    (b"-1.x", "x", POINT),
    (b"1e", " ", EXPONENT),
    (b"1E+", " ", EXPONENT),
    (b"1e-", " ", EXPONENT),
    (b"[1e]", "]", EXPONENT),
    (b"1.5e+x", "x", EXPONENT),
    (b"1e+-5", "-", EXPONENT),
    (b"0ee", "e", EXPONENT),
    (b"0e.5", ".", EXPONENT),
    # the quoting of the character
    (b"'", "\\'", VALUE),
    (b'1"', '"', AFTER_ALL),
    (b"`", "`", VALUE),
    (b"\\", "\\\\", VALUE),
    (b"\x00", "\\x00", VALUE),
    (b"\x07", "\\a", VALUE),
    (b"\x08", "\\b", VALUE),
    (b"\x0c", "\\f", VALUE),
    (b"\x1b", "\\x1b", VALUE),
    (b"\x7f", "\\x7f", VALUE),
    # a byte is told as the character of that number
    (b"\x80", "\\u0080", VALUE),
    (b"\x9f", "\\u009f", VALUE),
    (b"\xa0", "\\u00a0", VALUE),
    (b"\xa1", "\u00a1", VALUE),
    (b"\xad", "\\u00ad", VALUE),
    (b"\xc3\xa9", "\u00c3", VALUE),
    (b"\xef\xbb\xbf{}", "\u00ef", VALUE),
    (b"\xff", "\u00ff", VALUE),
]


@pytest.mark.parametrize(("text", "character", "where"), COMPLAINTS, ids=repr)
def test_complaint(text: bytes, character: str, where: str) -> None:
    with pytest.raises(GoError) as caught:
        read_json(text)
    assert str(caught.value) == "invalid character '%s' %s" % (character, where)


LITERALS = [(word, at) for word in ("true", "false", "null") for at in range(1, len(word))]


@pytest.mark.parametrize(("word", "at"), LITERALS)
@pytest.mark.parametrize(
    ("after", "character"), [("", " "), ("x", "x"), ("]", "]"), ('"', '"'), ("T", "T"), (" ", " "), ("\n", "\\n")]
)
def test_complaint_about_a_literal(word: str, at: int, after: str, character: str) -> None:
    expected = "invalid character '%s' in literal %s (expecting '%s')" % (character, word, word[at])
    for before in ("", "[", '{"a":'):
        with pytest.raises(GoError) as caught:
            read_json((before + word[:at] + after).encode())
        assert str(caught.value) == expected


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


# --- JSON: properties -------------------------------------------------------------------------------

documents = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=8)
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=8), inner, max_size=4)),
    max_leaves=20,
)


def plain(value: Any) -> Any:
    """As Python's json would have read it."""
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
    """With a replacement for each half of a surrogate pair, which Python keeps."""
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


# --- texts ------------------------------------------------------------------------------------------

QUOTED = [
    ("", '""'),
    ("abc", '"abc"'),
    ("a b", '"a b"'),
    ("it's", '"it\'s"'),
    ('"', r'"\""'),
    ("\\", r'"\\"'),
    ("\a\b\f\n\r\t\v", r'"\a\b\f\n\r\t\v"'),
    ("\x00\x01\x1b\x1f", r'"\x00\x01\x1b\x1f"'),
    ("\x7f", r'"\x7f"'),
    ("\x80\x9f", r'"\u0080\u009f"'),
    ("\u00a0", r'"\u00a0"'),  # a space that is not the space
    ("\u00ad", r'"\u00ad"'),
    ("\u00e9\u00ff", '"\u00e9\u00ff"'),
    ("\u2028\u2029", r'"\u2028\u2029"'),
    ("\u200b\ufeff", r'"\u200b\ufeff"'),
    ("\u3000", r'"\u3000"'),
    ("\u0661\u20ac\u65e5\u672c", '"\u0661\u20ac\u65e5\u672c"'),
    ("\ufffd", '"\ufffd"'),
    ("\ue000", r'"\ue000"'),  # for private use
    ("\U0001f600", '"\U0001f600"'),
    ("\U0010ffff", r'"\U0010ffff"'),
    ("<&>", '"<&>"'),
    ("/var/lib/kubelet/cpu_manager_state", '"/var/lib/kubelet/cpu_manager_state"'),
]


@pytest.mark.parametrize(("text", "quoted"), QUOTED)
def test_quote(text: str, quoted: str) -> None:
    assert quote(text) == quoted


@given(st.text(st.characters(codec="ascii")))
def test_what_is_quoted_is_in_one_line(text: str) -> None:
    quoted = quote(text)
    assert quoted.isprintable()
    assert quoted.encode().decode("unicode_escape") == '"%s"' % text


# --- numbers ----------------------------------------------------------------------------------------

INTEGERS = [
    ("0", 0),
    ("7", 7),
    ("+1", 1),
    ("-1", -1),
    ("-0", 0),
    ("+0", 0),
    ("007", 7),
    ("-007", -7),
    ("0" * 5000 + "12", 12),
    ("1" * 18, 111111111111111111),
    ("1" * 19, 1111111111111111111),
    ("9223372036854775807", (1 << 63) - 1),
    ("-9223372036854775808", -(1 << 63)),
    ("+0009223372036854775807", (1 << 63) - 1),
]


@pytest.mark.parametrize(("text", "number"), INTEGERS, ids=lambda value: str(value)[:24])
def test_read_integer(text: str, number: int) -> None:
    assert read_integer(text) == number


SYNTAX, RANGE = "invalid syntax", "value out of range"

NO_INTEGERS = [
    ("", SYNTAX),
    ("+", SYNTAX),
    ("-", SYNTAX),
    ("++1", SYNTAX),
    ("+-1", SYNTAX),
    ("1-", SYNTAX),
    (" 1", SYNTAX),
    ("1 ", SYNTAX),
    ("1\n", SYNTAX),
    ("1_000", SYNTAX),
    ("0x10", SYNTAX),
    ("1.0", SYNTAX),
    ("1e3", SYNTAX),
    ("x", SYNTAX),
    ("\u0661", SYNTAX),
    ("\u00b2", SYNTAX),
    ("\uff11", SYNTAX),
    ("1\x00", SYNTAX),
    ("9223372036854775808", RANGE),
    ("-9223372036854775809", RANGE),
    ("9999999999999999999", RANGE),  # 19 digits
    ("18446744073709551615", RANGE),
    ("18446744073709551616", RANGE),
    ("-18446744073709551616", RANGE),
    ("1" * 20, RANGE),
    ("1" * 21, RANGE),
    ("9" * 10_000, RANGE),
    # Go reads from the left: up to what is no digit, or to the digit that is too much
    ("18446744073709551615x", SYNTAX),
    ("18446744073709551616x", RANGE),
    ("9999999999999999999x", SYNTAX),
    ("99999999999999999999x", RANGE),
    ("-99999999999999999999 ", RANGE),
    ("99999999999999999999-1", RANGE),
    ("x99999999999999999999", SYNTAX),
    ("0" * 30 + "x", SYNTAX),
]


@pytest.mark.parametrize(("text", "why"), NO_INTEGERS, ids=lambda value: repr(value)[:32])
def test_no_integer(text: str, why: str) -> None:
    with pytest.raises(GoError) as caught:
        read_integer(text)
    assert str(caught.value) == "strconv.Atoi: parsing %s: %s" % (quote(text), why)


@given(st.integers(-(1 << 66), 1 << 66))
def test_integers(number: int) -> None:
    if -(1 << 63) <= number < 1 << 63:
        assert read_integer(str(number)) == number
        assert read_integer("%+025d" % number) == number
    else:
        with pytest.raises(GoError, match=r"value out of range$"):
            read_integer(str(number))


# --- CPU sets ---------------------------------------------------------------------------------------

CPU_SETS = [
    ("", []),
    ("0", [0]),
    ("0-3", [0, 1, 2, 3]),
    ("0-3,8", [0, 1, 2, 3, 8]),
    ("8,0-1", [0, 1, 8]),  # in any order
    ("1-1", [1]),
    ("0-2,1-3,2", [0, 1, 2, 3]),  # more than once
    ("+1", [1]),
    ("+1-+2", [1, 2]),
    ("007-08", [7, 8]),
    ("0--0", [0]),
    ("65535", [65535]),
]


@pytest.mark.parametrize(("text", "expected"), CPU_SETS)
def test_read_cpus(text: str, expected: list[int]) -> None:
    assert list(read_cpus(text)) == expected


NO_CPU_SETS = [
    ("x", 'strconv.Atoi: parsing "x": invalid syntax'),
    ("-1", 'strconv.Atoi: parsing "": invalid syntax'),
    ("0-", 'strconv.Atoi: parsing "": invalid syntax'),
    ("-", 'strconv.Atoi: parsing "": invalid syntax'),
    (",", 'strconv.Atoi: parsing "": invalid syntax'),
    ("0,,1", 'strconv.Atoi: parsing "": invalid syntax'),
    ("0-3,", 'strconv.Atoi: parsing "": invalid syntax'),
    (" ", 'strconv.Atoi: parsing " ": invalid syntax'),
    ("0, 1", 'strconv.Atoi: parsing " 1": invalid syntax'),
    ("0-3\n", 'strconv.Atoi: parsing "3\\n": invalid syntax'),
    ("0-7:1/2", 'strconv.Atoi: parsing "7:1/2": invalid syntax'),
    ("1-2-3", 'strconv.Atoi: parsing "2-3": invalid syntax'),
    ("1.3", 'strconv.Atoi: parsing "1.3": invalid syntax'),
    ("\u0661", 'strconv.Atoi: parsing "\u0661": invalid syntax'),
    ("3-1", 'invalid range "3-1" (3 > 1)'),
    ("007-+1", 'invalid range "007-+1" (7 > 1)'),
    ("1--3", 'invalid range "1--3" (1 > -3)'),
    ("0,3-1,x", 'invalid range "3-1" (3 > 1)'),  # the first is told
    ("x,3-1", 'strconv.Atoi: parsing "x": invalid syntax'),
    ("x-y", 'strconv.Atoi: parsing "x": invalid syntax'),
    ("9223372036854775808", 'strconv.Atoi: parsing "9223372036854775808": value out of range'),
    ("0-18446744073709551615", 'strconv.Atoi: parsing "18446744073709551615": value out of range'),
    # Here a kubelet would take all memory there is.
    ("0-99999999", '"0-99999999" is out of range: CPU ids go from 0 to %d' % (MAX_CPUS - 1)),
    ("0-9223372036854775807", '"0-9223372036854775807" is out of range: CPU ids go from 0 to %d' % (MAX_CPUS - 1)),
    ("65536", '"65536" is out of range: CPU ids go from 0 to %d' % (MAX_CPUS - 1)),
]


@pytest.mark.parametrize(("text", "message"), NO_CPU_SETS)
def test_no_cpus(text: str, message: str) -> None:
    with pytest.raises(GoError) as caught:
        read_cpus(text)
    assert str(caught.value) == message


@given(cpusets())
def test_cpus(cpus: CPUSet) -> None:
    assert read_cpus(str(cpus)) == cpus


@given(st.text(st.sampled_from("0123456789,-+ x"), max_size=12))
def test_any_text_is_read_or_refused(text: str) -> None:
    """What both read, the kernel's reader reads the same."""
    try:
        cpus = read_cpus(text)
    except GoError:
        return
    if set(text) <= set("0123456789,-") and "--" not in text:
        assert CPUSet.parse(text) == cpus
