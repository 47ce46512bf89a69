# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Go's texts in quotes, integers and lists of CPUs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import GoError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.golang import quote, read_cpus, read_integer
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import MAX_CPUS, CPUSet
from ansible_collections.kubenode.cpu_manager.tests.machines.strategies import cpusets

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
