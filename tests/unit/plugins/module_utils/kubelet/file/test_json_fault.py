# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The words of Go's encoding/json, which are written in its sources, and where it finds none."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.kubelet.file.json_fault import json_fault

END = "unexpected end of JSON input"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", END),
        ("{", END),
        ('{"a', END),
        ('{"a"', END),
        ('{"a":', END),
        ('{"a": 1', END),
        ('{"a": 1,', END),
        ("[1", END),
        ("-", END),
        ("1.", END),
        ("1e", END),
        ("tru", END),
        ('"\\', END),
        ('"\\u00', END),
        ("a", "invalid character 'a' looking for beginning of value"),
        ("{a: 1}", "invalid character 'a' looking for beginning of object key string"),
        ('{"a": 1,}', "invalid character '}' looking for beginning of object key string"),
        ("{,}", "invalid character ',' looking for beginning of object key string"),
        ('{"a" 1}', "invalid character '1' after object key"),
        ('{"a": 1 "b"}', "invalid character '\"' after object key:value pair"),
        ('{"a": }', "invalid character '}' looking for beginning of value"),
        ("[1 2]", "invalid character '2' after array element"),
        ("[1,]", "invalid character ']' looking for beginning of value"),
        ("[1}", "invalid character '}' after array element"),
        ("{} x", "invalid character 'x' after top-level value"),
        ("01", "invalid character '1' after top-level value"),
        ("-a", "invalid character 'a' in numeric literal"),
        ("1.a", "invalid character 'a' after decimal point in numeric literal"),
        ("1ea", "invalid character 'a' in exponent of numeric literal"),
        ("1e-a", "invalid character 'a' in exponent of numeric literal"),
        ("trux", "invalid character 'x' in literal true (expecting 'e')"),
        ("nul]", "invalid character ']' in literal null (expecting 'l')"),
        ('"a\nb"', "invalid character '\\n' in string literal"),
        ('"\\x"', "invalid character 'x' in string escape code"),
        ('"\\u00g"', "invalid character 'g' in \\u hexadecimal character escape"),
        ("'a'", "invalid character '\\'' looking for beginning of value"),
        ("\xe9", "invalid character 'Ã' looking for beginning of value"),
        ("[" * 10001, "exceeded max depth"),
        ('{"a": [1.5e-3, -0, "\\u00e9\\n", true, null, {}, []]} ', ""),
    ],
)
def test_the_words_of_go(text: str, said: str) -> None:
    assert json_fault(text) == said


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=3), children, max_size=3),
    max_leaves=6,
)


@given(JSON, st.data())
def test_finds_a_fault_where_python_does(value: object, data: st.DataObject) -> None:
    text = json.dumps(value, indent=data.draw(st.sampled_from([None, 1])))
    assert json_fault(text) == ""
    at = data.draw(st.integers(0, len(text)))
    text = (
        text[:at]
        + data.draw(st.text('{}[]",:019.eE+-tn \\u\n', max_size=2))
        + text[at + data.draw(st.integers(0, 2)) :]
    )
    try:
        json.loads(text)
    except ValueError:
        assert json_fault(text) != "", text
    else:
        assert json_fault(text) == "", text
