# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The character that Go names in a text that is no JSON, and where it says that it is."""

from __future__ import annotations

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import GoError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.golang import read_json

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
