# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_dynamic/census.py; how it goes with the passes is in test_agent.py."""

from __future__ import annotations

from pathlib import Path
from typing import Mapping, Sequence

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._cgroup.hierarchy import CPU, Hierarchy
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._cgroup.kubepods import Kubepods
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._containers.crictl import Crictl
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._dynamic.census import (
    Census,
    Meter,
    Present,
    counting_hierarchy,
    used,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.dynamic_state import Held, Key, Use
from ansible_collections.kubenode.cpu_manager.tests.machines.cgroups import V1, V2, Style
from ansible_collections.kubenode.cpu_manager.tests.machines.elastic import ElasticNode, Pod

DB, WEB = Pod("db", 2, "2-8"), Pod("web", 0, "", "Burstable")


def read(
    node: ElasticNode, census: Census, before: Mapping[Key, Held] | None = None
) -> tuple[list[Present], list[str]]:
    tree = Tree(str(node.root))
    return census.read(Kubepods(Hierarchy(tree)), Hierarchy(tree, CPU), {}, before or {})


def counts(present: Sequence[Present]) -> dict[str, tuple[int, int]]:
    return {container.key[0]: (container.cpus, container.most) for container in present if container.key is not None}


def test_what_each_requests_and_may_have(tmp_path: Path) -> None:
    node = ElasticNode(tmp_path)
    node.add(DB, WEB)
    present, notes = read(node, Census(lambda: node._crictl(Tree(str(tmp_path)), None)))
    assert notes == []
    assert counts(present) == {"db": (2, 8), "web": (0, 0)}
    # The sandboxes, which have no name, come last.
    assert [container.key is None for container in present] == [False, False, True, True]
    # A part of a CPU is shared.
    shares = tmp_path / "sys/fs/cgroup/cpu,cpuacct" / DB.cgroup / "cpu.shares"
    for text in ("1536", "2", "many"):
        shares.write_text(text + "\n")
        assert counts(read(node, Census(lambda: None))[0])["db"] == (0, 0)


def test_the_order_in_which_they_came(tmp_path: Path) -> None:
    node = ElasticNode(tmp_path)
    node.add(WEB)
    census = Census(lambda: None)
    read(node, census)
    node.add(DB, Pod("a", 1))
    assert list(counts(read(node, census)[0])) == ["web", "a", "db"]
    # What was promised before the program was started comes first.
    before = {("db", "app"): Held(0b110, 0b110), ("gone", "app"): Held(0b11000, 0b11000)}
    assert list(counts(read(node, Census(lambda: None), before)[0])) == ["db", "a", "web"]


def test_a_runtime_that_fails_is_left_alone_for_a_while(tmp_path: Path) -> None:
    node = ElasticNode(tmp_path)
    node.add(DB)
    calls: list[Sequence[str]] = []

    def run(arguments: Sequence[str]) -> str:
        calls.append(arguments)
        return "nonsense" if len(calls) == 1 else node._run(arguments)

    census = Census(lambda: Crictl("crictl", None, run))
    (note,) = read(node, census)[1]
    assert "crictl ps: what it prints cannot be read" in note
    for _pass in range(5):
        present, notes = read(node, census)
        assert (notes, counts(present), len(calls)) == ([], {"db": (2, 0)}, 1)
    for _pass in range(3):
        present, _notes = read(node, census)
    assert (counts(present), len(calls)) == ({"db": (2, 8)}, 3)


def test_names_that_are_no_texts(tmp_path: Path) -> None:
    node = ElasticNode(tmp_path)
    node.add(DB, is_logged=False)

    def run(arguments: Sequence[str]) -> str:
        return node._run(arguments).replace('"name": "app"', '"name": 7')

    present, _notes = read(node, Census(lambda: Crictl("crictl", None, run)))
    assert present[0].key == ("db", "7")


METERED_DB, METERED_WEB = Pod("db", 2), Pod("web", 0, "", "Burstable")
KEY = ("db", "app")


@pytest.mark.parametrize("style", [V1, V2])
def test_use(tmp_path: Path, style: Style) -> None:
    node = ElasticNode(tmp_path, style=style)
    node.add(METERED_DB, METERED_WEB)
    hierarchy = counting_hierarchy(Tree(str(tmp_path)))
    assert hierarchy is not None
    meter = Meter(lambda: node.now, 5.0)

    def read() -> Use:
        return meter.read(hierarchy, ["kubepods.slice"], {METERED_DB.cgroup: KEY}, {KEY})

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
    shared = meter.read(hierarchy, ["kubepods.slice"], {METERED_DB.cgroup: KEY}, set())
    assert shared.shared == pytest.approx(0.7)
    node.remove("db")
    assert read().containers == {}


def test_the_shared_pool_has_the_highest_use_of_the_last_minute(tmp_path: Path) -> None:
    node = ElasticNode(tmp_path)
    node.add(METERED_DB, METERED_WEB)
    hierarchy = counting_hierarchy(Tree(str(tmp_path)))
    meter = Meter(lambda: node.now, 5.0)
    found = []
    for web in (0.0, 3.0, 1.0, 1.0, 2.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0):
        node.work(10, {"db": 1.0, "web": web})
        use = meter.read(hierarchy, ["kubepods.slice"], {METERED_DB.cgroup: KEY}, {KEY})
        found.append(round(use.shared, 3))
        # What a container uses is not kept.
        assert use.containers[KEY] in (0.0, pytest.approx(1.0))
    assert found == [0.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 2.0, 2.0, 2.0, 1.0]


def test_a_counter_that_is_none(tmp_path: Path) -> None:
    node = ElasticNode(tmp_path)
    node.add(METERED_DB)
    hierarchy = counting_hierarchy(Tree(str(tmp_path)))
    assert hierarchy is not None
    (tmp_path / "sys/fs/cgroup/cpu,cpuacct" / METERED_DB.cgroup / "cpuacct.usage").write_text("many\n")
    assert used(hierarchy, METERED_DB.cgroup) is None
    assert used(hierarchy, "nowhere") is None


def test_a_node_that_counts_nothing(tmp_path: Path) -> None:
    (tmp_path / "sys").mkdir()
    assert counting_hierarchy(Tree(str(tmp_path))) is None
    assert Meter(lambda: 0.0, 1.0).read(None, [], {}, ()) == Use()
