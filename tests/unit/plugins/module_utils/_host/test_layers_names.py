# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._host.layers import shown


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (b"kworker/0:1", "kworker/0:1"),
        ("größe".encode(), "größe"),
        (b"a\xffb", "a\\xffb"),
        (b"a\nb", "a\\nb"),
        (b"\x1b[31m", "\\x1b[31m"),
        (b"", ""),
    ],
)
def test_a_name_as_people_may_see_it(name: bytes, text: str) -> None:
    assert shown(name) == text


@given(st.binary())
def test_any_name_is_on_one_line(name: bytes) -> None:
    assert shown(name).isprintable()
