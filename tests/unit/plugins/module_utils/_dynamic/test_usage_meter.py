# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_dynamic/usage_meter.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._dynamic.usage_meter import (
    Meter,
    counting_hierarchy,
    used,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.dynamic_state import Use
from ansible_collections.kubenode.cpu_manager.tests.machines.cgroups import V1, V2, Style
from ansible_collections.kubenode.cpu_manager.tests.machines.elastic import ElasticNode, Pod

DB, WEB = Pod("db", 2), Pod("web", 0, "", "Burstable")
KEY = ("db", "app")


@pytest.mark.parametrize("style", [V1, V2])
def test_use(tmp_path: Path, style: Style) -> None:
    node = ElasticNode(tmp_path, style=style)
    node.add(DB, WEB)
    hierarchy = counting_hierarchy(Tree(str(tmp_path)))
    assert hierarchy is not None
    meter = Meter(lambda: node.now, 5.0)

    def read() -> Use:
        return meter.read(hierarchy, ["kubepods.slice"], {DB.cgroup: KEY}, {KEY})

    # Of the first reading nothing is known.
    assert read() == Use({KEY: 0.0}, 0.0)
    node.work(10, {"db": 1.5, "web": 0.5})
    found = read()
    assert found.containers[KEY] == pytest.approx(1.5)
    assert found.shared == pytest.approx(0.5)
    # A pass that comes early leaves it as it was.
    node.work(1, {"db": 0.0})
    assert read() == found
    node.work(9, {"db": 0.5})
    assert read().containers[KEY] == pytest.approx(0.45)
    # One that shares the pool is a part of that.
    node.work(61, {"db": 0.7})
    shared = meter.read(hierarchy, ["kubepods.slice"], {DB.cgroup: KEY}, set())
    assert shared.shared == pytest.approx(0.7)
    node.remove("db")
    assert read().containers == {}


def test_the_shared_pool_has_the_highest_use_of_the_last_minute(tmp_path: Path) -> None:
    node = ElasticNode(tmp_path)
    node.add(DB, WEB)
    hierarchy = counting_hierarchy(Tree(str(tmp_path)))
    meter = Meter(lambda: node.now, 5.0)
    found = []
    for web in (0.0, 3.0, 1.0, 1.0, 2.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0):
        node.work(10, {"db": 1.0, "web": web})
        use = meter.read(hierarchy, ["kubepods.slice"], {DB.cgroup: KEY}, {KEY})
        found.append(round(use.shared, 3))
        # What a container uses is not kept.
        assert use.containers[KEY] in (0.0, pytest.approx(1.0))
    assert found == [0.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 2.0, 2.0, 2.0, 1.0]


def test_a_counter_that_is_none(tmp_path: Path) -> None:
    node = ElasticNode(tmp_path)
    node.add(DB)
    hierarchy = counting_hierarchy(Tree(str(tmp_path)))
    assert hierarchy is not None
    (tmp_path / "sys/fs/cgroup/cpu,cpuacct" / DB.cgroup / "cpuacct.usage").write_text("many\n")
    assert used(hierarchy, DB.cgroup) is None
    assert used(hierarchy, "nowhere") is None


def test_a_node_that_counts_nothing(tmp_path: Path) -> None:
    (tmp_path / "sys").mkdir()
    assert counting_hierarchy(Tree(str(tmp_path))) is None
    assert Meter(lambda: 0.0, 1.0).read(None, [], {}, ()) == Use()
