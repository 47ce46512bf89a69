# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/state/memory_manager.py."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.golang import read_json
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.memory_manager import (
    INT,
    TEXT,
    UINT64,
    Map,
    Pointer,
    Problems,
    Slice,
    Struct,
    StructField,
    StructPlace,
    Type,
)

ROW = Struct("state.Row", [StructField("name", "Name", TEXT), StructField("sizes", "Sizes", Slice(UINT64))])
ROWS = Map("state.Rows", Pointer(ROW), INT)


def read(kind: Type, text: str) -> tuple[Any, str]:
    problems = Problems()
    return kind.read(read_json(text.encode("utf-8")), kind.zero(), problems, StructPlace()), problems.first


@pytest.mark.parametrize(
    ("kind", "text", "value", "printed"),
    [
        (TEXT, '"a b"', "a b", "(string)a b"),
        (TEXT, "null", "", "(string)"),
        (UINT64, "18446744073709551615", (1 << 64) - 1, "(uint64)18446744073709551615"),
        (INT, "-5", -5, "(int)-5"),
        (INT, "-0", 0, "(int)0"),
        (Slice(INT), "[]", [], "([]int)[]"),
        (Slice(INT), "null", None, "([]int)<nil>"),
        (Slice(INT), "[3,null,1]", [3, 0, 1], "([]int)[3 0 1]"),
        (
            ROW,
            '{"name":"x","sizes":[1],"name":"y"}',
            {"name": "y", "sizes": [1]},
            "(state.Row){Name:(string)y Sizes:([]uint64)[1]}",
        ),
        (
            ROW,
            '{"sizes":[1,2],"SIZES":[null]}',
            {"name": "", "sizes": [1]},
            "(state.Row){Name:(string) Sizes:([]uint64)[1]}",
        ),
        (
            ROWS,
            '{"10":{},"9":null,"+9":{"name":"z"}}',
            {10: {"name": "", "sizes": None}, 9: {"name": "z", "sizes": None}},
            "(state.Rows)map[9:<*>{Name:(string)z Sizes:([]uint64)<nil>} 10:<*>{Name:(string) Sizes:([]uint64)<nil>}]",
        ),
        (ROWS, '{"-1":null}', {-1: None}, "(state.Rows)map[-1:<nil>]"),
        (Map("map[string]int", INT), '{"é":1,"z":2}', {"é": 1, "z": 2}, "(map[string]int)map[z:2 é:1]"),
    ],
)
def test_values(kind: Type, text: str, value: Any, printed: str) -> None:
    found, wrong = read(kind, text)
    assert (found, wrong) == (value, "")
    assert kind.typed(found) == printed


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        (UINT64, "-0", "number -0 into Go value of type uint64"),
        (UINT64, "18446744073709551616", "number 18446744073709551616 into Go value of type uint64"),
        (INT, "9223372036854775808", "number 9223372036854775808 into Go value of type int"),
        (INT, "1e3", "number 1e3 into Go value of type int"),
        (TEXT, "[]", "array into Go value of type string"),
        (ROW, "5", "number into Go value of type state.Row"),
        (ROWS, "true", "bool into Go value of type state.Rows"),
        (ROWS, '{"":{}}', "number  into Go value of type int"),
        (ROWS, '{"9223372036854775808":{}}', "number 9223372036854775808 into Go value of type int"),
        (ROWS, '{"1":[]}', "array into Go value of type state.Row"),
        (ROWS, '{"1":{"sizes":[{}]}}', "object into Go struct field Row.sizes of type uint64"),
        # What a value says comes before what its key says.
        (ROWS, '{"x":{"name":1}}', "number into Go struct field Row.name of type string"),
    ],
)
def test_what_does_not_go_into_a_type(kind: Type, text: str, said: str) -> None:
    assert read(kind, text)[1] == "json: cannot unmarshal " + said
