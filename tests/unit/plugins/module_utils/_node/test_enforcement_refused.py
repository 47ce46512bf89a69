# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The report on cpusets that no pass can write: nothing is promised, and who stands against it is named."""

from __future__ import annotations

from pathlib import Path
from typing import Mapping, NamedTuple

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.container_cpus import observe
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.enforcement import Enforcement, compare
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._reconcile.reconcile import reconcile_pods
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.acceptance import readable
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.tests.machines.cgroups import (
    CGROUPFS,
    SYSTEMD,
    V1,
    V2,
    Files,
    Style,
    container_files,
    pod_path,
    write_cgroups,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.reconciled import OWN, SHARED, make_node, node

FENCED = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\ncgroupRoot: /%s\n"
RESERVE = "reserve CPUs %s, too, with strict-cpu-reservation (from 1.32 on), so that no container is given them"


class Report(NamedTuple):
    told: Enforcement
    # What a pass in check mode says of each container that it cannot write.
    failed: list[str]

    def remedies(self) -> dict[str, str]:
        return {row["subject"]: row.get("remedy", "") for row in self.told.drift}


def look(root: Path, cgroups: Mapping[str, Files], style: Style, fence: str = "") -> Report:
    """Return the report and a pass in check mode, with these cgroups beside those that the node has."""
    write_cgroups(root, style, cgroups)
    if fence:
        (root / "var/lib/kubelet/config.yaml").write_text(FENCED % fence)
    observed, _notes = observe(Tree(str(root)), fence)
    assert observed is not None
    said = readable((root / "var/lib/kubelet/cpu_manager_state").read_bytes())
    told = compare(observed, said.policy_name, said.state)
    answer = reconcile_pods(node(root), None, act=False)
    assert told.to_reconcile == answer.changed
    return Report(told, [row.why for row in answer.rows if row.result == "failed"])


def narrow(path: str, style: Style, cpus: str, own: str) -> dict[str, Files]:
    """Return the cgroups of a kubelet whose root is narrow, and of a container that has fewer CPUs than it is given."""
    pod = "%s/kubepods/burstable/poduid-web" % path
    above = dict.fromkeys((path, path + "/kubepods", path + "/kubepods/burstable", pod), Files("", ""))
    if style is V1:
        above = dict.fromkeys(above, Files(cpus, "0"))
    return {**above, path: Files(cpus, "0"), "%s/%s" % (pod, SHARED): Files(own, "0", (7,))}


@pytest.mark.parametrize("style", [V1, V2])
def test_a_root_of_cgroups_that_is_narrow(tmp_path: Path, style: Style) -> None:
    """It is the operator's: it is named with the two ways out, and no pass is proposed."""
    make_node(tmp_path, {}, style)
    (tmp_path / "var/log/containers").mkdir(parents=True)
    (tmp_path / "var/log/containers" / ("web-1_shop_app-%s.log" % SHARED)).touch()
    report = look(tmp_path, narrow("fence", style, "0-6", "0-3,6"), style, "fence")
    why = "fence: has no CPUs 7, and is not the kubelet's to widen; widen it, or " + RESERVE % 7
    assert report.failed == [why]
    assert report.remedies() == {"cgroup fence": why, "container shop/web-1/app": why}
    assert not report.told.to_reconcile
    does = {
        V1: "a container that is given them does not start, as the kernel refuses what the runtime writes (EACCES)",
        V2: "what the kubelet gives to containers in it is cut by them",
    }[style]
    (note,) = [note for note in report.told.notes if "has no CPUs" in note]
    assert note == "fence has no CPUs 7: %s; it is above the kubelet's cgroups (cgroupRoot): widen it, or %s" % (
        does,
        RESERVE % 7,
    )


def test_two_fences_and_who_has_the_cpus(tmp_path: Path) -> None:
    make_node(tmp_path, {}, V1)
    (tmp_path / "var/log/containers").mkdir(parents=True)
    (tmp_path / "var/log/containers" / ("web-1_shop_app-%s.log" % SHARED)).touch()
    cgroups = {
        "shield": Files("6-7", "0", cpu_exclusive=True),
        "outer": Files("0-5", "0"),
        **narrow("outer/inner", V1, "0-5", "0-3"),
    }
    report = look(tmp_path, cgroups, V1, "outer/inner")
    assert report.failed == [
        "outer: has no CPUs 6-7, and is not the kubelet's to widen; exclusive cgroups have them: shield (6-7); widen"
        " outer and outer/inner, or " + RESERVE % "6-7"
    ]


@pytest.mark.parametrize(
    ("unit", "cpus", "where", "is_refused"),
    [
        ("kubepods.slice", "0-6", "etc/systemd/system", True),
        ("kubepods-burstable.slice", "0-6", "usr/lib/systemd/system", True),
        ("kubepods.slice", "0-7", "etc/systemd/system", False),
        # Such as an earlier pass left.
        ("kubepods.slice", "0-6", "run/systemd/system.control", False),
        ("system.slice", "0-6", "etc/systemd/system", False),
    ],
)
def test_a_unit_that_gives_all_pods_fewer_cpus(
    tmp_path: Path, unit: str, cpus: str, where: str, is_refused: bool
) -> None:
    """An administrator's AllowedCPUs= is not to be fought with: it is named with its file."""
    path = "%s/%s.d/cpus.conf" % (where, unit)
    (tmp_path / path).parent.mkdir(parents=True)
    (tmp_path / path).write_text("[Slice]\nAllowedCPUs=%s\n" % cpus)
    slices = ["kubepods.slice", "kubepods.slice/kubepods-burstable.slice"]
    narrow_one = slices[unit != "kubepods.slice"]
    pod = pod_path(SYSTEMD, "uid-web", "Burstable")
    cgroups = {**dict.fromkeys((*slices, pod), Files("", "")), narrow_one: Files("0-6", "")}
    write_cgroups(tmp_path, V2, {**cgroups, **container_files(SYSTEMD, "containerd", pod, "b" * 64, "0-7")})
    (tmp_path / "var/log/containers").mkdir(parents=True)
    (tmp_path / "var/log/containers" / ("web-1_shop_app-%s.log" % ("b" * 64))).touch()
    observed, _notes = observe(Tree(str(tmp_path)), "")
    assert observed is not None
    told = compare(observed, "static", State(CPUSet.parse("0-7"), {}))
    (row, *_rows) = [row for row in told.drift if row["subject"] == "container shop/web-1/app"]
    said = "%s: has no CPUs 7, as AllowedCPUs= in /%s gives it others" % (narrow_one, path)
    assert (said in row.get("remedy", "")) is is_refused
    assert told.to_reconcile is not is_refused


@pytest.mark.parametrize("style", [V1, V2])
def test_all_pods_have_fewer_cpus_than_a_policy_that_is_yet_to_come_gives(tmp_path: Path, style: Style) -> None:
    """Policy none minds no narrow kubepods; with static, containers would not start there, or be cut."""
    held = "0-5" if style is V1 else ""
    write_cgroups(tmp_path, style, {"kubepods": Files("0-5", "0"), "kubepods/burstable": Files(held, "0")})
    observed, _notes = observe(Tree(str(tmp_path)), "")
    assert observed is not None
    assert list(compare(observed, None, None).notes) == []
    for coming, notes in (("0-5", 0), ("0-7", 1)):
        told = compare(observed, None, None, CPUSet.parse(coming)).notes
        assert [note.startswith("kubepods has no CPUs 6-7: ") for note in told] == [True] * notes


@pytest.mark.parametrize("style", [V1, V2])
def test_a_holder_beside_all_pods(tmp_path: Path, style: Style) -> None:
    """One container waits for what it has; the next one does not."""
    make_node(tmp_path, {OWN: "0", SHARED: "0"}, style, above="0")
    is_v1 = style is V1
    holder = Files("4-5", "0", cpu_exclusive=is_v1, partition="member" if is_v1 else "isolated")
    report = look(tmp_path, {"held": holder}, style)
    (why,) = report.failed
    remedies = report.remedies()
    assert (remedies["container shop/db-0/server"], remedies["container shop/web-1/app"]) == (why, "")
    if is_v1:
        assert (
            remedies["cgroup kubepods.slice"]
            == why
            == (
                "kubepods.slice: cpuset.cpus cannot be 0,4-5: its sibling held has 4-5, and held is exclusive (EINVAL);"
                " take them from held first, or end that it is exclusive"
            )
        )
    else:
        assert why.endswith(".scope: cannot have all of 4-5; partitions have them: held (4-5)")
    # What is to be widened for the next one.
    wanted = {row["subject"]: row["wanted"] for row in report.told.drift if not row.get("remedy")}
    assert wanted["cgroup kubepods.slice"] == "0-3,6-7"


@pytest.mark.parametrize("beside", ["kubepods.slice", "kubepods.slice/kubepods-poduid_db.slice"])
def test_a_partition_within_the_kubelets_own_cgroups(tmp_path: Path, beside: str) -> None:
    make_node(tmp_path, {OWN: "0"}, V2)
    report = look(tmp_path, {beside + "/latency": Files("5", "0", partition="root")}, V2)
    (why,) = report.failed
    assert why.endswith(".scope: cannot have all of 4-5; partitions have them: %s/latency (5)" % beside)
    assert report.remedies() == {"container shop/db-0/server": why}


@pytest.mark.parametrize(("lacks", "expected"), [("4-5", ""), ("3-5", "kubepods/burstable has no CPUs 3: ")])
def test_what_is_exclusive_is_no_lack_of_other_classes(tmp_path: Path, lacks: str, expected: str) -> None:
    """On v1 their cgroup may have less than that of all pods."""
    make_node(tmp_path, {OWN: "4-5"}, V1, driver=CGROUPFS)
    whole = Files("0-7", "0")
    pool = Files(str(CPUSet.parse("0-7") - CPUSet.parse(lacks)), "0")
    report = look(tmp_path, {"kubepods": whole, "kubepods/poduid-db": whole, "kubepods/burstable": pool}, V1)
    (note,) = [note for note in report.told.notes if "has no CPUs" in note] or [""]
    assert note.startswith(expected)
    assert bool(note) == bool(expected)
    assert report.told.drift == []
