# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import GoError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.amount import (
    quantity_fault,
    read_duration,
)

_HOUR = 3600 * 10**9
_FORMAT = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_SUFFIX, _NUMERIC = "unable to parse quantity's suffix", "unable to parse numeric part of quantity"


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("0", 0),
        ("+0", 0),
        ("10s", 10 * 10**9),
        ("1h30m", _HOUR + _HOUR // 2),
        ("-1.5h", -_HOUR * 3 // 2),
        ("1.s", 10**9),
        (".5s", 5 * 10**8),
        ("1\u00b5s2\u03bcs3us", 6000),
        ("0.00000000000000000000000001h", 0),
        ("0.9223372036854775808999s", 922337203),
        ("2562047h47m16.854775807s", (1 << 63) - 1),
        ("-9223372036854775808ns", -1 << 63),
        ("%s1ns" % ("0" * 5000), 1),
    ],
)
def test_durations(text: str, nanoseconds: int) -> None:
    assert read_duration(text) == nanoseconds


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", 'invalid duration ""'),
        ("-", 'invalid duration "-"'),
        ("--5s", 'invalid duration "--5s"'),
        (".s", 'invalid duration ".s"'),
        ("s", 'invalid duration "s"'),
        ("9999999999h", 'invalid duration "9999999999h"'),
        ("2562048h", 'invalid duration "2562048h"'),
        ("9223372036854775808ns", 'invalid duration "9223372036854775808ns"'),
        ("9223372036854775808ns1ns", 'invalid duration "9223372036854775808ns1ns"'),
        # The number is read before the unit.
        ("99999999999999999999x", 'invalid duration "99999999999999999999x"'),
        ("5", 'missing unit in duration "5"'),
        ("1h1", 'missing unit in duration "1h1"'),
        ("1e3s", 'unknown unit "e" in duration "1e3s"'),
        ("1h 30m", 'unknown unit "h " in duration "1h 30m"'),
        ("10sec", 'unknown unit "sec" in duration "10sec"'),
        ("1d", 'unknown unit "d" in duration "1d"'),
        ('1"\\', 'unknown unit "\\"\\\\" in duration "1\\"\\\\"'),
        ("\uff11s", 'invalid duration "\\xef\\xbc\\x91s"'),
        ("1\n", 'unknown unit "\\x0a" in duration "1\\x0a"'),
    ],
)
def test_no_durations(text: str, fault: str) -> None:
    with pytest.raises(GoError) as caught:
        read_duration(text)
    assert str(caught.value) == "time: " + fault


@pytest.mark.parametrize(
    "text", ["0", "1", "+1", "-1.5", "1.", ".5Gi", "1e3", "1E-3", "1E", "1Ki", "100m", "Ki", "Gi", "+", ".", "1e99"]
)
def test_quantities(text: str) -> None:
    assert quantity_fault(text) == ""


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", _FORMAT),
        ("abc", _FORMAT),
        ("1 ", _FORMAT),
        ("1.2.3", _FORMAT),
        ("%sx" % ("1" * 100000), _FORMAT),
        ("1KB", _FORMAT),
        ("1K", _SUFFIX),
        ("1mi", _SUFFIX),
        ("1+1", _SUFFIX),
        ("--1", _SUFFIX),
        ("1e", _SUFFIX),
        ("1e99999999999999999999", _SUFFIX),
        ("Pi", _NUMERIC),
        ("-.Ei", _NUMERIC),
    ],
)
def test_no_quantities(text: str, fault: str) -> None:
    assert quantity_fault(text) == fault
