# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_dynamic/program.py."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError, RefusedError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._dynamic.dynamic_settings import read_settings
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._dynamic.program import check_node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.tests.machines.cgroups import V2
from ansible_collections.kubenode.cpu_manager.tests.machines.elastic import CONFIG, ElasticNode, Pod


def check(root: Path, **settings: Any) -> None:
    check_node(Node(Tree(str(root))), read_settings({"policy": "dynamic", **settings}), ())


def isolate(root: Path, cpus: str) -> None:
    (root / "sys/devices/system/cpu/isolated").write_text(cpus + "\n")


@pytest.mark.parametrize(
    ("reserved", "settings"),
    [
        ("0,8", {}),
        ("", {"reserved_cpus": "0"}),
        ("", {"shared_minimum": 1}),
        ("0,8", {"policy": "isolated"}),
        ("", {"policy": "isolated"}),
        ("99", {"reserved_cpus": "1"}),  # what the kubelet reserves does not count then
    ],
)
def test_what_can_be_kept(tmp_path: Path, reserved: str, settings: dict[str, Any]) -> None:
    ElasticNode(tmp_path, reserved=reserved)
    isolate(tmp_path, "2-7")
    check(tmp_path, **settings)


@pytest.mark.parametrize(
    ("reserved", "isolated", "settings", "where", "message"),
    [
        ("", "", {}, "shared_minimum", "could become empty; reserve CPUs with reserved_cpus, or give at least 1"),
        ("0", "", {"shared_minimum": 16}, "shared_minimum", "17 CPUs cannot be kept of 16; give fewer"),
        ("0", "", {"reserved_cpus": "0,99"}, "reserved_cpus", "the machine has no CPUs 99 to reserve"),
        ("0,99", "", {}, "reserved_cpus", "the machine has no CPUs 99 to reserve"),
        ("many", "", {}, "reservedSystemCPUs", "many"),
        ("0", "", {"policy": "isolated"}, "policy", "the kernel isolates no CPU; boot with isolcpus="),
        ("0", "0-15", {"policy": "isolated"}, "policy", "the kernel isolates all CPUs"),
        ("0,2", "2-7", {"policy": "isolated"}, "policy", "CPUs 2 are isolated or not there; reserve some of 0-1,8-15"),
    ],
)
def test_what_cannot_be_kept_is_refused(
    tmp_path: Path, reserved: str, isolated: str, settings: dict[str, Any], where: str, message: str
) -> None:
    ElasticNode(tmp_path, reserved=reserved)
    isolate(tmp_path, isolated)
    with pytest.raises(InputError) as caught:
        check(tmp_path, **settings)
    assert (caught.value.where, message in str(caught.value)) == (where, True), caught.value


def test_an_owner_comes_first(tmp_path: Path) -> None:
    ElasticNode(tmp_path, reserved="", policy="static")
    with pytest.raises(RefusedError, match="only one of both can give out CPUs"):
        check(tmp_path)


def test_a_node_without_a_kubelet(tmp_path: Path) -> None:
    ElasticNode(tmp_path)
    (tmp_path / CONFIG).unlink()
    check(tmp_path)
    check(tmp_path, policy="isolated")


def test_a_node_without_cgroups(tmp_path: Path) -> None:
    ElasticNode(tmp_path)
    shutil.rmtree(tmp_path / "sys/fs")
    (tmp_path / "proc/mounts").unlink()
    check(tmp_path)


def test_reserved_cpus_that_only_others_can_use(tmp_path: Path) -> None:
    node = ElasticNode(tmp_path, style=V2)
    node.add(Pod("db", 2))
    node.make_partition("system.slice", "0,8", "root")
    with pytest.raises(InputError, match="the shared pool could become empty"):
        check(tmp_path)
    check(tmp_path, shared_minimum=1)
