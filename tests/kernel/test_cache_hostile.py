# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Damaged files of resctrl and journals, and links out of a saved node."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import CPUManagerError, NodeError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._caches.cache_info import cache_report
from ansible_collections.kubenode.cpu_manager.tests.machines.resctrl.node import (
    JOURNAL,
    divide,
    give,
    node_at,
    write_node,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.resctrl.node import write as write_file
from ansible_collections.kubenode.cpu_manager.tests.machines.resctrl.platforms import PLATFORMS, record

PLACES = (
    "schemata",
    "cpus_list",
    "mode",
    "info/L3/cbm_mask",
    "info/L3/num_closids",
    "info/L3/shareable_bits",
    "info/L3/bit_usage",
    "info/MB/min_bandwidth",
    "info/L3_MON/mon_features",
    "mon_data/mon_L3_00/llc_occupancy",
)
HOSTILE = (
    b"",
    b"\0" * 10,
    b"\xff\xfe",
    b"L3:0=" + b"f" * 5000 + b"\n",
    b"L3:0=7ff;0=1\n",
    b"-1\n",
    b"9" * 400,
    b"L3:0\n",
)


def test_damaged_files_are_a_note_and_no_plan(tmp_path: Path) -> None:
    shape = PLATFORMS["xeon-l3-mba-mbm"]
    write_node(tmp_path, shape)
    record(tmp_path, shape)
    give(tmp_path, {1}, {0})
    for name in PLACES:
        place = tmp_path / "sys/fs/resctrl" / name
        good = place.read_bytes()
        for content in HOSTILE:
            place.write_bytes(content)
            answer = cache_report(node_at(tmp_path), 0)
            assert json.loads(json.dumps(answer)) == answer
            with suppress(CPUManagerError):
                divide(tmp_path, act=False, exclusive_share=4)
        place.write_bytes(good)
    for content in (
        b"",
        b"[]",
        b"{",
        b'{"format": 1}',
        b'{"format": 1, "wish": [], "boot_id": 1}',
        b"\xff",
        b"[" * 100000,
    ):
        write_file(tmp_path / JOURNAL, "")
        (tmp_path / JOURNAL).write_bytes(content)
        assert "cache-unmeasured" in cache_report(node_at(tmp_path), 0)["note_checks"]
        with pytest.raises(NodeError, match="is damaged"):
            divide(tmp_path, act=False, exclusive_share=4)


def test_links_do_not_lead_out_of_the_tree(tmp_path: Path) -> None:
    shape = PLATFORMS["xeon-l3-mba-mbm"]
    root = tmp_path / "root"
    write_node(root, shape)
    record(root, shape)
    give(root, {1}, {0})
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "schemata").write_text("L3:0=7ff\n")
    (root / "sys/fs/resctrl/schemata").unlink()
    (root / "sys/fs/resctrl/schemata").symlink_to(outside / "schemata")
    answer = cache_report(node_at(root), 0)
    assert answer["groups"] == []
    assert "leads out of" in answer["notes"][0]
