# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import GoError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet import flags as table
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.flags import bytes_of, quoted
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.command_line import read_value

MI = {"numaNode": 0, "limits": {"memory": "1Mi"}}
HUGE = {"numaNode": 1, "limits": {"memory": "2Mi", "hugepages-2Mi": "4Mi"}}
REGEX = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
FORM = "the reserved memory has incorrect format, expected numaNodeID:type=quantity[,type=quantity...], got "


@pytest.mark.parametrize(
    ("kind", "text", "before", "value"),
    [
        (table.STRING, " a ", "b", " a "),
        (table.BOOL, "T", None, True),
        (table.BOOL, "0", True, False),
        (table.INT32, "-2147483648", None, -(2**31)),
        (table.INT32, "+2147483647", None, 2**31 - 1),
        (table.INT32, "0x1F", None, 31),
        (table.INT32, "-0b11", None, -3),
        (table.INT32, "0o17", None, 15),
        (table.INT32, "017", None, 15),
        (table.INT32, "0", None, 0),
        (table.INT32, "00", None, 0),
        (table.INT32, "1_000", None, 1000),
        (table.INT32, "0_7", None, 7),
        (table.INT32, "0x_f", None, 15),
        (table.INT64, "-9223372036854775808", None, -(2**63)),
        (table.DURATION, "1m30s", None, 90 * 10**9),
        (table.DURATION, "-1s", None, -(10**9)),
        (table.DURATION, "0", None, 0),
        (table.STRINGS, "a, b", None, ["a", " b"]),
        (table.STRINGS, "", None, []),
        (table.STRINGS, "", ["a"], ["a"]),
        (table.STRINGS, "c", ["a"], ["a", "c"]),
        (table.STRINGS, '"a,b"', None, ["a,b"]),
        (table.IP, "010.0.0.1", None, "010.0.0.1"),
        (table.IP, "::", None, "::"),
        (table.IP, "fe80::00001", None, "fe80::00001"),
        (table.IP, "1:2:3:4:5:6:7:8", None, "1:2:3:4:5:6:7:8"),
        (table.IP, "1:2:3:4:5:6:1.2.3.4", None, "1:2:3:4:5:6:1.2.3.4"),
        (table.IP, "::ffff:1.2.3.4", None, "::ffff:1.2.3.4"),
        (table.IP, "1::", None, "1::"),
        (table.PAIRS, " cpu = 1 ,,memory=1Gi=2", None, {"cpu": "1", "memory": "1Gi=2"}),
        (table.PAIRS, "", None, {}),
        (table.PAIRS, "cpu=2", {"cpu": "1", "pid": "5"}, {"cpu": "2", "pid": "5"}),
        (table.PAIRS, "\x1ccpu\u2003=1\xa0", None, {"\x1ccpu": "1"}),
        (table.PAIR, "a=true,b=false", {"c": "1"}, {"c": "1", "a": "true,b=false"}),
        (
            table.THRESHOLDS,
            "memory.available<5%, nodefs.available < 1Gi",
            None,
            {"memory.available": "5%", "nodefs.available": "1Gi"},
        ),
        (table.LABELS, "a=b, c ,d=e=f,", {"x": "y"}, {"x": "y", "a": "b", "c": "", "d": "e=f"}),
        (table.GATES, " A= true ,B=F,", {"C": True}, {"C": True, "A": True, "B": False}),
        (table.HEADERS, "a:b,,c:d:e,a:f", {"c": ["x"]}, {"a": ["b", "f"], "c": ["x", "d:e"]}),
        (
            table.PATTERNS,
            "a=1,,b=2",
            None,
            [{"filePattern": "a", "verbosity": 1}, {"filePattern": "b", "verbosity": 2}],
        ),
        (table.LEVEL, "2147483647", None, 2**31 - 1),
        (table.MEMORY, "0:memory=1Mi;1:memory=2Mi,hugepages-2Mi=4Mi", None, [MI, HUGE]),
        (table.MEMORY, "1:memory=2Mi,hugepages-2Mi=4Mi", [MI], [MI, HUGE]),
        (table.MEMORY, "0:memory=5Mi,memory=1Mi", None, [MI]),
        (table.MEMORY, "4294967296:memory=1Mi", None, [MI]),
        (table.TAINTS, "", [{"key": "a"}], []),
        (table.TAINTS, "a=b:NoSchedule", [{"key": "c"}], [{"key": "a", "value": "b", "effect": "NoSchedule"}]),
        (table.QUANTITY, "4Mi", None, "4Mi"),
        (table.VERSION, "raw", None, "raw"),
        (table.VERSION, "1", None, "true"),
        (table.VERSION, "F", None, "false"),
        (table.GO_BOOL, "t", None, True),
        (table.GO_INT, "0x10", None, 16),
        (table.GO_DURATION, "1s", None, 10**9),
    ],
)
def test_that_a_value_is_read(kind: str, text: str, before: Any, value: Any) -> None:
    assert read_value(kind, text, before, 36) == value


@pytest.mark.parametrize(
    ("kind", "text", "fault"),
    [
        (table.BOOL, "yes", 'strconv.ParseBool: parsing "yes": invalid syntax'),
        (table.INT32, "", 'strconv.ParseInt: parsing "": invalid syntax'),
        (table.INT32, "-", 'strconv.ParseInt: parsing "-": invalid syntax'),
        (table.INT32, "abc", 'strconv.ParseInt: parsing "abc": invalid syntax'),
        (table.INT32, "1.0", 'strconv.ParseInt: parsing "1.0": invalid syntax'),
        (table.INT32, "0x", 'strconv.ParseInt: parsing "0x": invalid syntax'),
        (table.INT32, "08", 'strconv.ParseInt: parsing "08": invalid syntax'),
        (table.INT32, "_1", 'strconv.ParseInt: parsing "_1": invalid syntax'),
        (table.INT32, "1_", 'strconv.ParseInt: parsing "1_": invalid syntax'),
        (table.INT32, "1__0", 'strconv.ParseInt: parsing "1__0": invalid syntax'),
        (table.INT32, "0b_", 'strconv.ParseInt: parsing "0b_": invalid syntax'),
        (table.INT32, "\u0661", 'strconv.ParseInt: parsing "\u0661": invalid syntax'),
        (table.INT32, "2147483648", 'strconv.ParseInt: parsing "2147483648": value out of range'),
        (table.INT32, "-2147483649", 'strconv.ParseInt: parsing "-2147483649": value out of range'),
        (table.INT32, "99999999999x", 'strconv.ParseInt: parsing "99999999999x": value out of range'),
        (table.INT64, "9223372036854775808", 'strconv.ParseInt: parsing "9223372036854775808": value out of range'),
        (table.LEVEL, "-1", 'strconv.ParseUint: parsing "-1": invalid syntax'),
        (table.LEVEL, "", 'strconv.ParseUint: parsing "": invalid syntax'),
        (table.LEVEL, "1_0", 'strconv.ParseUint: parsing "1_0": invalid syntax'),
        (table.LEVEL, "2147483648", 'strconv.ParseUint: parsing "2147483648": value out of range'),
        (table.DURATION, "", 'time: invalid duration ""'),
        (table.DURATION, "5", 'time: missing unit in duration "5"'),
        (table.DURATION, "1h 30m", 'time: unknown unit "h " in duration "1h 30m"'),
        (table.DURATION, "9999999999999999999x", 'time: invalid duration "9999999999999999999x"'),
        (table.DURATION, "9999999999h", 'time: invalid duration "9999999999h"'),
        (
            table.DURATION,
            '1\u00e9"\n\x7f',
            'time: unknown unit "\\xc3\\xa9\\"\\x0a\x7f" in duration "1\\xc3\\xa9\\"\\x0a\x7f"',
        ),
        (table.STRINGS, 'a"', 'parse error on line 1, column 2: bare " in non-quoted field'),
        (table.IP, "1.2.3", '"1.2.3" is not a valid IP address'),
        (table.IP, "1.2.3.4.5", '"1.2.3.4.5" is not a valid IP address'),
        (table.IP, "1.2.3.256", '"1.2.3.256" is not a valid IP address'),
        (table.IP, "a", '"a" is not a valid IP address'),
        (table.IP, ":::", '":::" is not a valid IP address'),
        (table.IP, "1::2::3", '"1::2::3" is not a valid IP address'),
        (table.IP, "1:2:3:4:5:6:7", '"1:2:3:4:5:6:7" is not a valid IP address'),
        (table.IP, "1:2:3:4:5:6:7::8", '"1:2:3:4:5:6:7::8" is not a valid IP address'),
        (table.IP, "::1.2.3", '"::1.2.3" is not a valid IP address'),
        (table.IP, "::fffff", '"::fffff" is not a valid IP address'),
        (table.IP, "fe80::1%eth0", '"fe80::1%eth0" is not a valid IP address'),
        (table.PAIRS, "cpu", "malformed pair, expect string=string"),
        (table.PAIR, "", "malformed pair, expect string=string"),
        (table.THRESHOLDS, "a=b", "malformed pair, expect string<string"),
        (table.GATES, "A", "malformed pair, expect string=bool"),
        (table.GATES, "A=yes", 'invalid value of A: yes, err: strconv.ParseBool: parsing "yes": invalid syntax'),
        (table.GATES, "A= ", 'invalid value of A: , err: strconv.ParseBool: parsing "": invalid syntax'),
        (table.HEADERS, "a", "malformed pair, expect string:string"),
        (table.PATTERNS, "a", '"a" does not have the pattern=N format'),
        (table.PATTERNS, "a=", '"a=" does not have the pattern=N format'),
        (table.PATTERNS, "a=1=2", '"a=1=2" does not have the pattern=N format'),
        (table.PATTERNS, "a=b", 'parsing verbosity in "a=b": strconv.ParseUint: parsing "b": invalid syntax'),
        (table.MEMORY, "0", FORM + "0"),
        (table.MEMORY, "0:memory=1Mi;", FORM),
        (table.MEMORY, "0:1:2", FORM + "0:1:2"),
        (table.MEMORY, " 0:memory=1Mi", "failed to convert the NUMA node ID, expected integer, got  0"),
        (table.MEMORY, "0:memory", "the reserved limit has incorrect value, expected type=quantity, got memory"),
        (table.MEMORY, "0:", "the reserved limit has incorrect value, expected type=quantity, got "),
        (table.MEMORY, "0:cpu=1", 'memory type conversion error, unknown type: "cpu"'),
        (table.MEMORY, "0:memory=abc", "failed to parse the quantity: abc"),
        (table.TAINTS, "a", "invalid taint spec: a"),
        (table.QUANTITY, "abc", REGEX),
        (table.VERSION, "x", 'strconv.ParseBool: parsing "x": invalid syntax'),
        (table.GO_BOOL, "x", "parse error"),
        (table.GO_INT, "x", "parse error"),
        (table.GO_INT, "9223372036854775808", "value out of range"),
        (table.GO_DURATION, "5", "parse error"),
    ],
)
def test_that_a_value_is_refused(kind: str, text: str, fault: str) -> None:
    with pytest.raises(GoError) as error:
        read_value(kind, text, None, 36)
    assert str(error.value) == fault


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("x:memory=1Mi", "failed to convert the NUMA node ID, exptected integer, got x"),
        ("0:memory", "the reserved limit has incorrect value, expected type=quantatity, got memory"),
        ("0:memory=abc", "failed to parse the quantatity, expected quantatity, got abc"),
    ],
)
def test_how_kubernetes_before_1_36_spells(text: str, fault: str) -> None:
    with pytest.raises(GoError) as error:
        read_value(table.MEMORY, text, None, 33)
    assert str(error.value) == fault


@pytest.mark.parametrize(
    ("text", "shown"),
    [('a"b', '"a\\"b"'), ("\u00e9\u00a0", '"\u00e9\\u00a0"'), ("\udcff", '"\\xff"'), ("\ud800", '"\\ud800"')],
)
def test_quoted(text: str, shown: str) -> None:
    assert quoted(text) == shown


@pytest.mark.parametrize(("text", "content"), [("a\udcff", b"a\xff"), ("\ud800", b"\xed\xa0\x80")])
def test_bytes_of(text: str, content: bytes) -> None:
    assert bytes_of(text) == content


@pytest.mark.parametrize("kind", [table.INT32, table.IP, table.DURATION, table.LEVEL])
def test_that_long_numbers_are_read_at_once(kind: str) -> None:
    for text in ("9" * 10**5, "0" * 10**5 + ".0.0.0", "1:" * 10**5):
        with pytest.raises(GoError):
            read_value(kind, text + "x", None, 36)
