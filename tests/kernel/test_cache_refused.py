# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Divisions of caches that are refused before the first write."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, Callable

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import (
    InputError,
    NodeError,
    RefusedError,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._caches.resctrl import EXCLUSIVE_GROUP
from ansible_collections.kubenode.cpu_manager.tests.kernel.caches import divided, write
from ansible_collections.kubenode.cpu_manager.tests.machines.resctrl.mounted import Mounted
from ansible_collections.kubenode.cpu_manager.tests.machines.resctrl.node import (
    JOURNAL,
    divide,
    give,
    take_back,
    write_node,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.resctrl.platforms import PLATFORMS, record

REFUSALS: dict[str, tuple[str, dict[str, Any], str]] = {
    "nothing": ("xeon-l3-mba-mbm", {"exclusive_share": "0%"}, "nothing would be set apart"),
    "all": ("xeon-l3-mba-mbm", {"exclusive_share": "100%"}, "nothing would be left for others"),
    "more ways than there are": ("xeon-l3-mba-mbm", {"exclusive_share": 11}, "give 1 to 10"),
    "no ways": ("xeon-l3-mba-mbm", {"exclusive_share": 0}, "0 ways"),
    "no share": ("xeon-l3-mba-mbm", {"exclusive_share": "a lot"}, "is no share of a cache"),
    "truth value": ("xeon-l3-mba-mbm", {"exclusive_share": True}, "is no share of a cache"),
    "id that is not there": ("xeon-l3-mba-mbm", {"exclusive_share": {"7": 2, "all": 1}}, "has no L3 cache 7"),
    "id that is left out": ("xeon-l3-mba-mbm", {"exclusive_share": {"0": 2}}, "says nothing of the L3 caches 1"),
    "no ids": ("xeon-l3-mba-mbm", {"exclusive_share": {}}, "names no cache"),
    "what is no id": ("xeon-l3-mba-mbm", {"exclusive_share": {"-1": 2}}, "is no id of a cache"),
    "code and data apart": ("xeon-l3-cdp", {"exclusive_share": "50%"}, "mounted with cdp"),
    "two levels, exclusive": ("xeon-l3-l2", {"exclusive_share": "50%", "mode": "exclusive"}, "also divides L2"),
    "ways of devices, exclusive": ("xeon-l3-mba-mbm", {"exclusive_share": 10, "mode": "exclusive"}, "devices may fill"),
    "too much together": ("xeon-l3-only", {"exclusive_share": "60%", "shared_share": "40%"}, "leave nothing"),
    "bandwidth that is not there": ("xeon-l3-only", {"exclusive_share": 2, "shared_bandwidth": 50}, "cannot limit"),
    "too little bandwidth": ("xeon-l3-mba-mbm", {"exclusive_share": 2, "shared_bandwidth": 5}, "give 10 to 100 %"),
    "too much bandwidth": ("epyc-16-l3-smba", {"exclusive_share": 2, "shared_bandwidth": 4096}, "eighths of GB/s"),
    "a class too many": ("xeon-haswell", {"exclusive_share": 4, "shared_share": 4}, "4 classes of service"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refused_before_the_first_write(model: Mounted, name: str) -> None:
    platform, wish, text = REFUSALS[name]
    divided(model, platform)
    if name == "a class too many":
        for group in ("a", "b"):
            (model.place / group).mkdir()
        model.writes()
    before = model.state()
    for act in (False, True):
        with pytest.raises((InputError, RefusedError), match=re.escape(text)):
            divide(model.root, act=act, **wish)
    assert (model.state(), model.writes()) == (before, [])
    assert not (model.root / JOURNAL).exists()


def test_processes_in_a_group_of_ours_are_refused(model: Mounted) -> None:
    divided(model, "xeon-l3-mba-mbm", exclusive_share=4)
    write(model.place / EXCLUSIVE_GROUP / "tasks", "%d\n" % os.getpid())
    model.writes()
    works: list[Callable[[], Any]] = [lambda: divide(model.root, exclusive_share=5), lambda: take_back(model.root)]
    for work in works:
        with pytest.raises(RefusedError, match="has put 1 process into it"):
            work()
    assert model.writes() == []


def test_saved_files_are_not_written(tmp_path: Path) -> None:
    shape = PLATFORMS["xeon-l3-mba-mbm"]
    write_node(tmp_path, shape)
    record(tmp_path, shape)
    give(tmp_path, {1, 9}, set(shape.online) - {1, 9})
    assert [str(step) for step in divide(tmp_path, act=False, exclusive_share=4).steps] == [
        "the root group, schemata: L3:0=7f0;1=7f0",
        "make the group kubenode.exclusive",
        "kubenode.exclusive, schemata: L3:0=f;1=f",
        "kubenode.exclusive, cpus_list: 1,9",
    ]
    with pytest.raises(RefusedError, match="saved files"):
        divide(tmp_path, exclusive_share=4)


def test_resctrl_that_is_not_mounted(tmp_path: Path) -> None:
    shape = PLATFORMS["xeon-l3-mba-mbm"]
    write_node(tmp_path, shape)
    give(tmp_path, {1}, {0})
    with pytest.raises(NodeError, match="have no resctrl"):
        divide(tmp_path, exclusive_share=4)
    (tmp_path / "sys/fs/resctrl").mkdir(parents=True)
    with pytest.raises(NodeError, match="is not mounted there"):
        divide(tmp_path, exclusive_share=4)
    assert not take_back(tmp_path).changed
