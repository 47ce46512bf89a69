# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nodes that are containers, containers that are partitions: plugins/module_utils/_host/reach.py and who goes by it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import RefusedError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._host.reach import (
    OUT_OF_REACH,
    check_reach,
    out_of_reach,
    reach_notes,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.reservation_request import planned_reservation
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._rollout.rollout_plan import (
    ChangeTerms,
    rollout_report,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.tests.machines.cgroups import Files
from ansible_collections.kubenode.cpu_manager.tests.machines.layered import write
from ansible_collections.kubenode.cpu_manager.tests.machines.troubles import (
    EMPTY,
    KUBEPODS,
    OWN_ID,
    OWN_POD,
    SOUND,
    Saved,
    cgroups,
    container_path,
    write_saved,
)

ONLINE = CPUSet.parse("0-7")
V2, V1, V1_OLD = (
    "sys/fs/cgroup/" + name for name in ("cpuset.cpus.effective", "cpuset/cpuset.effective_cpus", "cpuset/cpuset.cpus")
)
OWN = container_path(OWN_POD, OWN_ID)


@pytest.mark.parametrize(
    ("files", "lacking"),
    [
        ({V2: "7"}, "0-6"),
        ({V2: "0-7"}, ""),
        # A CPU that is offline.
        ({V2: "0-8"}, ""),
        ({V1: "0-3", V1_OLD: "0-7"}, "4-7"),
        ({V1_OLD: "0-3"}, "4-7"),
        ({}, ""),
        ({V2: ""}, ""),
        ({V2: "damaged"}, ""),
    ],
)
def test_the_cpus_that_the_topmost_cgroup_lacks(files: dict[str, str], lacking: str, tmp_path: Path) -> None:
    for path, text in {"sys/devices/system/cpu/online": str(ONLINE), **files}.items():
        write(tmp_path, path, (text + "\n").encode())
    tree = Tree(str(tmp_path))
    assert str(out_of_reach(tree)[1]) == lacking
    # A machine that is only asked about.
    check_reach(tree, CPUSet.parse("0-15"))


CPU = "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_%s_us"


@pytest.mark.parametrize(
    ("files", "cpus"),
    [
        ({"sys/fs/cgroup/cpu.max": "200000 100000"}, "2"),
        ({"sys/fs/cgroup/cpu.max": "50000 100000"}, "0.5"),
        ({CPU % "quota": "150000", CPU % "period": "50000"}, "3"),
        # No quota, or none that is less than the CPUs.
        ({"sys/fs/cgroup/cpu.max": "max 100000"}, ""),
        ({"sys/fs/cgroup/cpu.max": "800000 100000"}, ""),
        ({CPU % "quota": "-1", CPU % "period": "100000"}, ""),
        ({CPU % "quota": "100000"}, ""),
        ({"sys/fs/cgroup/cpu.max": "damaged"}, ""),
        ({}, ""),
    ],
)
def test_a_quota_of_the_container_that_is_the_node_is_told(files: dict[str, str], cpus: str, tmp_path: Path) -> None:
    for path, text in {"sys/devices/system/cpu/online": "0-7", **files}.items():
        write(tmp_path, path, (text + "\n").encode())
    notes = reach_notes(Tree(str(tmp_path)))
    assert [getattr(note, "check", "") for note in notes] == ([OUT_OF_REACH] if cpus else [])
    begin = (
        "this node is a container that has the time of %s CPUs alone, by a quota, and its kubelet counts 8 CPUs" % cpus
    )
    assert all(note.startswith(begin) for note in notes)
    # CPUs can be reserved there all the same.
    check_reach(Tree(str(tmp_path)), ONLINE)


def report_of(saved: Saved, root: Path) -> dict[str, Any]:
    write_saved(saved, root)
    return rollout_report(Node(Tree(str(root)), minor=36), {}, ChangeTerms())


def test_a_node_in_a_container_is_told_once_and_no_reservation_is_planned(tmp_path: Path) -> None:
    report = report_of(SOUND.having({"/" + V2: "2-7\n"}), tmp_path)
    assert report["note_checks"].count(OUT_OF_REACH) == 1
    assert "kubepods-narrow" not in report["note_checks"]
    node = Node(Tree(str(tmp_path)), minor=36)
    with pytest.raises(RefusedError, match="this node is a container that has the CPUs 2-7 alone") as caught:
        planned_reservation(node, {"count": 2})
    assert caught.value.kind == OUT_OF_REACH


@pytest.mark.parametrize("kind", ["isolated", "root"])
def test_a_container_that_is_a_partition_is_neither_cut_nor_does_the_node_lack_its_cpus(
    kind: str, tmp_path: Path
) -> None:
    own = {OWN: Files("1,5", "0", partition=kind)}
    effective = {"/sys/fs/cgroup/%s/cpuset.cpus.effective" % path: "0,2-4,6-7\n" for path in (KUBEPODS, OWN_POD)}
    exclusive = {"/sys/fs/cgroup/%s/cpuset.cpus.exclusive" % path: "1,5\n" for path in (KUBEPODS, OWN_POD)}
    saved = SOUND.having({"/" + V2: "0,2-4,6-7\n", **effective, **exclusive})._replace(cgroups={**cgroups(), **own})
    report = report_of(saved, tmp_path)
    assert report["drift"] == []
    assert {OUT_OF_REACH, "kubepods-narrow", "container-partition-invalid"}.isdisjoint(report["note_checks"])


@pytest.mark.parametrize(
    ("topmost", "wanted", "refused"),
    [
        ("2-5\n", {"cpu_manager_policy": "static", "reserved_system_cpus": "0-1"}, True),
        ("2-5\n", {"cpu_manager_policy": "static", "reserved_system_cpus": "2,6"}, True),
        # What the node lacks is given to no container.
        ("2-5\n", {"cpu_manager_policy": "static", "reserved_system_cpus": "0-2,6-7"}, False),
        ("0-7\n", {"cpu_manager_policy": "static", "reserved_system_cpus": "0-1"}, False),
        ("2-5\n", {"topology_manager_policy": "best-effort"}, False),
    ],
)
def test_no_change_makes_the_kubelet_of_a_container_give_out_cpus_that_it_lacks(
    topmost: str, wanted: dict[str, str], refused: bool, tmp_path: Path
) -> None:
    write_saved(EMPTY.configured("").having({"/" + V2: topmost}), tmp_path)
    report = rollout_report(Node(Tree(str(tmp_path)), minor=33), wanted, ChangeTerms())
    kinds = [row["kind"] for row in report["refusals"]]
    assert (OUT_OF_REACH in kinds) is refused
