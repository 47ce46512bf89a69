# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Mapping

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import PERMISSION, NodeError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._cgroup.hierarchy import Hierarchy
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._host import partitions
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._host.partitions import (
    PARTITION,
    Partition,
    read_partitions,
    usable_cpus,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.tests.machines.cgroups import USUAL, V1, V2, Files, Style, write_cgroups

PODS = "kubepods.slice/kubepods-pod1.slice/cri-containerd-%s.scope" % ("a" * 64)
NODE = {
    "system.slice": Files("0"),
    "user.slice": Files("", processes=(7,)),
    "kubepods.slice": Files(""),
    PODS: Files("2-3", processes=(9,)),
}


cpus = CPUSet.parse


def node(root: Path, cgroups: Mapping[str, Files], style: Style = V2) -> Hierarchy:
    """Return a node whose kernel has partitions that need no partition above them; exclusive sets are those of the
    files."""
    top = write_cgroups(root, style, cgroups)
    for directory in (path for path in top.rglob("*") if path.is_dir()):
        if (directory / "cpuset.cpus.partition").exists():
            own = (directory / "cpuset.cpus").read_text("ascii")
            has_own = "member" not in (directory / "cpuset.cpus.partition").read_text("ascii") or own == "6-7\n"
            for name in ("cpuset.cpus.exclusive", "cpuset.cpus.exclusive.effective"):
                (directory / name).write_text(own if has_own else "\n", encoding="ascii")
    return Hierarchy(Tree(str(root)))


# --- reading ----------------------------------------------------------------------------------------


def test_a_node_without_any(tmp_path: Path) -> None:
    assert read_partitions(node(tmp_path, NODE)) == ()


def test_partitions_of_others(tmp_path: Path) -> None:
    more = {
        "dpdk": Files("5", partition="isolated"),
        "dpdk/in": Files("6-7"),
        "dpdk/in/c": Files("6", partition="root invalid (Parent is not a partition root)"),
        "x": Files("7", partition="isolated invalid"),
    }
    found = read_partitions(node(tmp_path, {**NODE, **more}))
    assert [partition[:3] for partition in found] == [
        ("dpdk", "isolated", ""),
        ("dpdk/in/c", "root", "Parent is not a partition root"),
        ("x", "isolated", "no reason is given"),
    ]
    assert found[0] == Partition("dpdk", "isolated", "", cpus("5"), cpus("5"), cpus("5"))


ROOTS = {"kubepods.slice": Files(""), "a/kubepods": Files("")}
DPDK = {"dpdk": Files("6-7", partition="isolated")}


@pytest.mark.parametrize(
    ("cgroups", "usable"),
    [
        ({}, "0-7"),
        (DPDK, "0-5"),
        ({"kubepods.slice": Files("2-5", partition="root")}, "2-5"),  # what is in none counts no more
        ({**DPDK, "kubepods.slice": Files("2-5", partition="isolated")}, "2-5"),
        ({"kubepods.slice": Files("2-5", partition="isolated invalid (no)")}, "0-7"),
        ({"a": Files("2-5", partition="root")}, "2-5"),
        ({"a": Files("2-5", partition="root"), "a/kubepods": Files("2-3", partition="root")}, "2-3"),
        ({"a": Files("2-5", partition="root"), "a/dpdk": Files("5", partition="root")}, "2-4"),
        # A pod has its partition alone.
        ({"kubepods.slice": Files("2-5", partition="root"), "kubepods.slice/p": Files("4", partition="root")}, "2-3,5"),
    ],
)
def test_what_containers_can_use(tmp_path: Path, cgroups: dict[str, Files], usable: str) -> None:
    hierarchy = node(tmp_path, {**ROOTS, **cgroups})
    assert str(usable_cpus(hierarchy, list(ROOTS), cpus("0-7"))) == usable


@pytest.mark.parametrize(("style", "cgroups"), [(V1, NODE), (V2, {"a": Files(None)}), (V2, {})])
def test_not_there_is_a_state(tmp_path: Path, style: Style, cgroups: dict[str, Files]) -> None:
    assert read_partitions(node(tmp_path, cgroups, style)) == ()


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    hierarchy = node(tmp_path, NODE)
    place = tmp_path / USUAL[1:] / "system.slice" / "cpuset.cpus.partition"
    place.unlink()
    place.mkdir()
    with pytest.raises(NodeError, match="cannot be read"):
        read_partitions(hierarchy)


@pytest.mark.parametrize("call", ["open", "read"])
@pytest.mark.parametrize("number", [errno.EACCES, errno.ENODEV])
def test_a_cgroup_that_goes_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, number: int) -> None:
    """It is not there; anything else is told with its reason."""
    hierarchy = node(tmp_path, NODE)

    def fail(*_arguments: object, **_more: object) -> None:
        raise OSError(number, os.strerror(number))

    assert partitions._text(hierarchy, "system.slice", PARTITION) == "member"
    monkeypatch.setattr(os, call, fail)
    if number == errno.ENODEV:
        assert partitions._text(hierarchy, "system.slice", PARTITION) is None
    else:
        with pytest.raises(NodeError, match="cannot be read: Permission denied") as caught:
            partitions._text(hierarchy, "system.slice", PARTITION)
        assert caught.value.kind == PERMISSION


@pytest.mark.parametrize(
    ("effective", "cpus_of", "problem", "owned"),
    [("2", "2-3", "", "2"), (None, "2-3", "", "2-3"), ("2", "2-3", "invalid", ""), (None, None, "", "")],
)
def test_what_a_partition_owns(effective: str | None, cpus_of: str | None, problem: str, owned: str) -> None:
    own, now = (None if text is None else cpus(text) for text in (cpus_of, effective))
    part = Partition("a", "isolated", problem, own, None, now)
    assert partitions.owned_cpus([part]) == cpus(owned)


@pytest.mark.parametrize(
    ("style", "files", "reason"),
    [
        (V1, {}, "its cgroups are of version 1, which has none"),
        (V2, {"a/cpuset.cpus.exclusive": ""}, ""),
        (V2, {}, "the kernel of this node is too old: it has no cpuset.cpus.exclusive, as Linux has from 6.7 on"),
        # That the topmost cgroup tells the isolated CPUs is older: it counts where no cgroup has cpusets yet.
        (V2, {"cpuset.cpus.isolated": ""}, "the kernel of this node is too old: "),
    ],
)
def test_where_there_can_be_none(tmp_path: Path, style: Style, files: Mapping[str, str], reason: str) -> None:
    top = write_cgroups(tmp_path, style, {"a": Files("0")})
    for name, text in files.items():
        (top / name).write_text(text + "\n", encoding="ascii")
    found = partitions.why_none(Hierarchy(Tree(str(tmp_path))))
    assert found.startswith(reason)
    assert bool(found) == bool(reason)
