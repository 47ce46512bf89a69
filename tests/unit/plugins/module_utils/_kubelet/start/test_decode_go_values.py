# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.golang import Number
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.decode import (
    number_text,
    time_fault,
)

_LAYOUT = "2006-01-02T15:04:05Z07:00"


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (5, "5"),
        (Number("1.50"), "1.50"),
        (1.5, "1.5"),
        (100.0, "100"),
        (0.0, "0"),
        (-0.0, "-0"),
        (1e19, "10000000000000000000"),
        (1e21, "1e+21"),
        (1.5e-7, "1.5e-7"),
        (1e-10, "1e-10"),
        (1e-5, "0.00001"),
    ],
)
def test_a_number_as_go_writes_it(number: Any, text: str) -> None:
    assert number_text(number) == text


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("2026-01-31T12:00:00Z", ""),
        ("2026-01-31T12:00:00.5+02:00", ""),
        ("2026-13-31T12:00:00Z", 'parsing time "2026-13-31T12:00:00Z": month out of range'),
        ("2026-12-31T12:60:00Z", 'parsing time "2026-12-31T12:60:00Z": minute out of range'),
        ("now", 'parsing time "now" as "%s": cannot parse ' % _LAYOUT),
    ],
)
def test_times(text: str, fault: str) -> None:
    assert time_fault(text) == fault
