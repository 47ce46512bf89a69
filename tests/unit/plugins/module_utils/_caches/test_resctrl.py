# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_caches/resctrl.py."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._caches.resctrl import (
    parse_mask,
    parse_schemata,
    parse_usage,
    schemata_text,
)

schemata = st.dictionaries(
    st.sampled_from(["L3", "L2", "L3CODE", "L3DATA", "MB", "SMBA"]),
    st.dictionaries(st.integers(0, 300), st.integers(0, 1 << 31), min_size=1, max_size=5),
)


@given(schemata)
def test_what_is_written_is_read(values: dict[str, dict[int, int]]) -> None:
    assert parse_schemata(schemata_text(values)) == values


def test_old_and_new_kernels_pad_otherwise() -> None:
    wanted = {"L3": {0: 0x7FF, 1: 0x1}, "MB": {0: 100, 1: 50}}
    assert parse_schemata("    L3:0=7ff;1=001\n    MB:0= 100;1=  50\n") == wanted
    assert parse_schemata("L3:0=7ff;1=1\nMB:0=100;1=50\n") == wanted
    assert parse_schemata("L3:uninitialized\n") == {"L3": {}}


@pytest.mark.parametrize(
    "text", ["L3", "L3:", "L3:0", "L3:0=", "L3:0=g", "MB:0=ff", "L3:0=1;0=2", "L3:0=1\nL3:0=1", "l3:0=1", "L3:-1=1"]
)
def test_what_is_no_schemata(text: str) -> None:
    with pytest.raises(InputError, match="is no line of schemata"):
        parse_schemata(text)


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    for parse in (parse_schemata, parse_mask):
        with suppress(InputError):
            parse(text)
    parse_usage(text)


def test_masks_and_usage() -> None:
    assert parse_mask("7ff") == 0x7FF
    for text in ("", "0x7ff", "1" * 17, "g"):
        with pytest.raises(InputError, match="is no mask of ways"):
            parse_mask(text)
    assert parse_usage("0=XXSS;1=0E;x=S;2=") == {0: "XXSS", 1: "0E"}
