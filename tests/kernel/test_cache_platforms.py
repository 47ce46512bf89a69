# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Recorded trees of platforms are read right, and each platform is divided and put back."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._caches.cache_info import cache_report
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.tests.kernel.caches import divided
from ansible_collections.kubenode.cpu_manager.tests.machines.resctrl.mounted import Mounted
from ansible_collections.kubenode.cpu_manager.tests.machines.resctrl.node import (
    divide,
    give,
    node_at,
    take_back,
    write_node,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.resctrl.platforms import PLATFORMS, record

# name: level, ways, least, io ways, sparse, ids, bandwidths, monitoring, classes
EXPECTED = {
    "xeon-l3-mba-mbm": ("L3", 11, 1, "600", False, ["0", "1"], ["MB"], 192, 8),
    "xeon-l3-only": ("L3", 20, 1, "c0000", False, ["0", "1"], [], 128, 16),
    "xeon-haswell": ("L3", 20, 2, "0", False, ["0", "1"], [], 64, 4),
    "xeon-l3-cdp": ("L3CODE", 20, 1, "c0000", False, ["0", "1"], [], 128, 8),
    "xeon-snc2-sparse": ("L3", 15, 1, "6000", True, ["0", "1"], ["MB"], 320, 15),
    "xeon-mbps": ("L3", 12, 1, "c00", False, ["0", "1"], ["MB"], 192, 8),
    "atom-l2": ("L2", 16, 1, "0", False, ["0", "1"], [], None, 16),
    "xeon-l3-l2": ("L3", 15, 1, "0", False, ["0", "1"], ["MB"], 320, 8),
    "epyc-16-l3-smba": ("L3", 16, 1, "0", True, [str(n) for n in range(16)], ["MB", "SMBA"], 256, 16),
    "ids-with-gaps": ("L3", 12, 1, "0", False, ["0", "2", "5", "7"], [], 256, 16),
}


@pytest.mark.parametrize("name", PLATFORMS)
def test_a_recorded_tree_is_read_right(name: str, tmp_path: Path) -> None:
    shape = PLATFORMS[name]
    write_node(tmp_path, shape)
    record(tmp_path, shape)
    give(tmp_path, {1}, {0})
    answer = cache_report(node_at(tmp_path), 0)
    (level, ways, least, io_ways, sparse, ids, bandwidths, rmids, closids) = EXPECTED[name]
    cache = answer["caches"][0]
    assert (cache["name"], cache["ways"], cache["least_ways"], cache["io_ways"]) == (level, ways, least, io_ways)
    assert (cache["sparse"], list(cache["ids"]), cache["cdp"]) == (sparse, ids, name == "xeon-l3-cdp")
    assert {number: on_id["cpus"] for number, on_id in cache["ids"].items()} == {
        str(number): str(CPUSet(cpus)) for number, cpus in shape.caches[0].ids.items()
    }
    assert [limit["name"] for limit in answer["bandwidths"]] == bandwidths
    assert (answer["monitoring"] or {"rmids": None})["rmids"] == rmids
    assert answer["closids"] == {"total": closids, "used": 1}
    (root,) = answer["groups"]
    assert root["cpus"] == str(CPUSet(shape.online))
    assert set(root["schemata"]) == {n for c in shape.caches for n in c.names} | set(bandwidths)
    assert answer["notes"] == []
    assert answer["findings"] == []
    if name == "xeon-snc2-sparse":
        assert answer["monitoring"]["numa_nodes_per_cache"] == 2
    if name == "epyc-16-l3-smba":
        assert root["schemata"]["MB"]["15"] == "2048"


@pytest.mark.parametrize("name", [name for name in PLATFORMS if name != "xeon-l3-cdp"])
def test_a_platform_is_divided_and_put_back(model: Mounted, name: str) -> None:
    divided(model, name, exclusive="1")
    before = model.state()
    answer = divide(model.root, exclusive_share="50%")
    assert answer.changed
    assert cache_report(node_at(model.root), 0)["findings"] == []
    take_back(model.root)
    assert model.state() == before
