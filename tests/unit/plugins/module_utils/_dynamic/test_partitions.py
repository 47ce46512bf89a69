# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_dynamic/agent.py on nodes with partitions of cgroup v2."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._dynamic.agent import release
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.tests.machines.cgroups import V2
from ansible_collections.kubenode.cpu_manager.tests.machines.elastic import ElasticNode, Pod

DB, CACHE, WEB = Pod("db", 2, "2-8"), Pod("cache", 4), Pod("web", 0, "", "Burstable")


@pytest.mark.parametrize("policy", ["dynamic", "isolated"])
def test_the_cpus_of_a_partition_of_the_host(tmp_path: Path, policy: str) -> None:
    """No container can use them, so none is given any, exclusively or in the shared pool."""
    node = ElasticNode(tmp_path, style=V2)
    node.add(DB, CACHE, WEB)
    isolated = tmp_path / "sys/devices/system/cpu/isolated"
    isolated.write_text("1-7,9-15\n")
    node.make_partition("dpdk.slice", "1-3")
    report = node.agent(policy=policy).one_pass()
    assert (report.refused, report.waiting) == ([], ())
    assert not any(CPUSet.parse(cpus) & CPUSet.parse("1-3") for cpus in node.sets().values())
    assert (len(CPUSet.parse(node.sets()["db"])), len(CPUSet.parse(node.sets()["cache"]))) == (2, 4)
    assert node.agent(policy=policy).one_pass().moves == []
    assert release(Tree(str(tmp_path)), node.agent().settings) == []
    assert set(node.sets().values()) == {"0,4-15"}


@pytest.mark.parametrize("policy", ["dynamic", "isolated"])
def test_pods_in_a_partition_have_its_cpus(tmp_path: Path, policy: str) -> None:
    node = ElasticNode(tmp_path, style=V2, reserved="2,10")
    (tmp_path / "sys/devices/system/cpu/isolated").write_text("1,4-7,9,12-15\n")
    node.add(DB, CACHE, WEB)
    node.make_partition("dpdk.slice", "1,9")
    node.make_partition("kubepods.slice", "2-7,10-15", "root")
    report = node.agent(policy=policy).one_pass()
    assert (report.refused, report.waiting) == ([], ())
    found = {name: CPUSet.parse(cpus) for name, cpus in node.sets().items()}
    assert (len(found["db"]), len(found["cache"])) == (2, 4)
    assert found["web"] >= CPUSet.parse("2,10")
    everything = CPUSet(cpu for cpus in found.values() for cpu in cpus)
    assert everything <= CPUSet.parse("2-7,10-15")
    assert node.agent(policy=policy).one_pass().moves == []
    assert release(Tree(str(tmp_path)), node.agent().settings) == []
    assert set(node.sets().values()) == {"2-7,10-15"}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"policy": "dynamic"}, "the shared pool could become empty"),
        ({"policy": "isolated"}, "all CPUs that containers can use are isolated"),
    ],
)
def test_the_shared_pool_needs_cpus_of_the_partition(tmp_path: Path, settings: dict[str, str], message: str) -> None:
    node = ElasticNode(tmp_path, style=V2, reserved="0,8")
    (tmp_path / "sys/devices/system/cpu/isolated").write_text("2-7,10-15\n")
    node.add(DB, WEB)
    node.make_partition("kubepods.slice", "2-7,10-15")
    with pytest.raises(InputError, match=message):
        node.agent(**settings).one_pass()
