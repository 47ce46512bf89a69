# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_dynamic/agent.py and acting.py: passes over a saved node."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError, RefusedError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.journal_file import PROMISE
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._cgroup.hierarchy import Hierarchy
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._dynamic.acting import VOLUME
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._dynamic.agent import Agent
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node import container_writes as settle
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.dynamic_state import ANNOUNCE
from ansible_collections.kubenode.cpu_manager.tests.machines.cgroups import V1, V2, Files, Style, write_cgroups
from ansible_collections.kubenode.cpu_manager.tests.machines.elastic import ElasticNode, Pod

DB, CACHE, WEB = Pod("db", 2, "2-8"), Pod("cache", 4), Pod("web", 0, "", "Burstable")


@pytest.fixture(params=[V1, V2], ids=["v1", "v2"])
def style(request: pytest.FixtureRequest) -> Style:
    return request.param  # type: ignore[no-any-return]


def test_first_sets_and_the_pool(tmp_path: Path, style: Style) -> None:
    node = ElasticNode(tmp_path, style=style)
    node.add(DB, CACHE, WEB)
    report = node.agent().one_pass()
    assert (report.refused, report.notes, report.waiting) == ([], [], ())
    assert node.sets() == {"db": "3,11", "cache": "1-2,9-10", "web": "0,4-8,12-15"}
    # Sandboxes and what nobody names yet are no exception.
    assert node.masks()["sandbox db"] == CPUSet.parse("0,4-8,12-15").mask
    files = {uid: node.file(uid) for uid in node.pods}
    assert [(files[uid]["cpus"], files[uid]["exclusive"], files[uid]["by"]) for uid in files] == [
        ("3,11", True, "reconcile"),
        ("1-2,9-10", True, "reconcile"),
        ("0,4-8,12-15", False, "reconcile"),
    ]
    # What has changed hands is not new any more.
    node.work(1, {})
    node.agent().one_pass()
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    report = node.agent().one_pass()
    assert report.moves == []
    assert before == {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}


def test_growing_and_giving_back(tmp_path: Path, style: Style) -> None:
    node = ElasticNode(tmp_path, style=style)
    node.add(DB, WEB)
    agent = node.agent()
    agent.one_pass()
    node.work(10, {"db": 1.9, "web": 1.0})
    agent.one_pass()
    assert len(CPUSet.parse(node.sets()["db"])) == 3
    for _period in range(4):
        node.work(10, {"db": 8.0, "web": 1.0})
        agent.one_pass()
    grown = CPUSet.parse(node.sets()["db"])
    assert len(grown) == 8
    assert CPUSet.parse("1,9") <= grown
    assert node.file("db")["cpus"] == str(grown)
    # Its quota would throttle it, and that of its pod.
    assert (node.quota("db"), node.quota("db", of_pod=True)) == (("-1", "-1") if style is V1 else ("max", "max"))
    # Another needs more than is free: the file says so first, then the kernel follows.
    node.work(10, {"db": 8.0, "web": 1.0})
    node.add(Pod("big", 10))
    report = agent.one_pass()
    assert CPUSet.parse(node.sets()["db"]) == grown
    said = node.file("db")
    assert said["until"] == node.now + 5 == report.due
    left, leaving = CPUSet.parse(said["cpus"]), CPUSet.parse(said["leaving"])
    assert left | leaving == grown
    assert left.isdisjoint(leaving)
    assert said["effective"] == str(grown)
    assert report.waiting == (("big", "app"),)
    assert not node.file("big")["exclusive"]
    node.work(5, {"db": 8.0, "web": 1.0})
    report = agent.one_pass()
    assert report.waiting == ()
    assert CPUSet.parse(node.sets()["db"]) == left
    assert len(CPUSet.parse(node.sets()["big"])) == 10
    said = node.file("db")
    assert (said["cpus"], said["leaving"], said["until"], said["effective"]) == (str(left), "", None, str(left))
    # Until it has no more than it requests; then it has its quota again.
    while len(CPUSet.parse(node.sets()["db"])) > 2:
        node.add(Pod("more%d" % node.now, 1))
        node.work(10, {"db": 1.0, "web": 1.0})
        agent.one_pass()
    assert (node.quota("db"), node.quota("db", of_pod=True)) == ("200000", "200000")
    assert json.loads((tmp_path / PROMISE[1:]).read_text())["quotas"] == {}


class ApplyingSystemd:
    """With the CPUs of a unit, systemd writes all that it knows of it, the quota, too."""

    def __init__(self, node: ElasticNode) -> None:
        self.node = node

    def unit_of(self, path: str) -> str:
        return path

    def value(self, _unit: str, _name: str) -> str:
        return ""

    def set_value(self, unit: str, _name: str, _value: str) -> None:
        for pod in self.node.pods.values():
            if pod.cgroup == unit:
                (self.node.root / V2.mount[1:] / unit / "cpu.max").write_text("200000 100000\n")


def test_the_quota_that_systemd_writes_with_the_cpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node = ElasticNode(tmp_path, style=V2)
    node.add(DB, WEB)
    monkeypatch.setattr(settle, "systemd_of", lambda *_arguments, **_options: ApplyingSystemd(node))
    agent = node.agent()
    agent.one_pass()
    node.work(10, {"db": 1.9, "web": 1.0})
    assert agent.one_pass().refused == []
    assert len(CPUSet.parse(node.sets()["db"])) == 3
    assert (node.quota("db"), node.quota("db", of_pod=True)) == ("max", "max")


def test_a_workload_answers_early(tmp_path: Path) -> None:
    node = ElasticNode(tmp_path)
    node.add(DB, WEB)
    agent = node.agent(delay="60s")
    node.work_under(agent, 5, 10, {"db": 8.0, "web": 1.0})
    node.add(Pod("big", 10))
    agent.one_pass()
    until = node.file("db")["until"]
    volume = tmp_path / "var/lib/kubelet/pods/db/volumes/kubernetes.io~empty-dir" / VOLUME
    volume.mkdir(parents=True)
    node.work(1, {"db": 4.0})
    (volume / "app.left").write_text("%.3f" % (until - 1))
    assert agent.one_pass().waiting
    (volume / "app.left").write_text("%.3f\n" % until)
    assert not agent.one_pass().waiting
    assert len(CPUSet.parse(node.sets()["big"])) == 10


def test_a_new_program_goes_on_where_the_old_one_was(tmp_path: Path) -> None:
    node = ElasticNode(tmp_path)
    node.add(DB, WEB)
    agent = node.agent()
    node.work_under(agent, 4, 10, {"db": 8.0, "web": 1.0})
    before = node.sets()
    assert node.agent().one_pass().moves == []
    assert node.sets() == before


def test_a_new_program_without_an_answer_of_the_runtime_keeps_what_was_given(tmp_path: Path) -> None:
    node = ElasticNode(tmp_path, style=V2)
    node.add(DB, CACHE, WEB)
    # As with cpuCFSQuota: false, what it requests is in no file.
    (tmp_path / V2.mount[1:] / CACHE.cgroup / "cpu.max").write_text("max 100000\n")
    agent = node.agent()
    node.work_under(agent, 4, 10, {"db": 8.0, "web": 1.0})
    before = node.sets()
    assert len(CPUSet.parse(before["db"])) > 2
    silent = node.agent(use_runtime=False)
    for _period in range(3):
        assert silent.one_pass().moves == []
        node.work(10, {"db": 8.0, "web": 1.0})
    assert node.sets() == before
    # What it has grown to beyond its request still goes where it is needed.
    node.add(Pod("big", 8))
    silent.one_pass()
    node.work(10, {"db": 8.0, "web": 1.0})
    silent.one_pass()
    assert len(CPUSet.parse(node.sets()["big"])) == 8
    assert node.sets()["cache"] == before["cache"]


def test_a_loss_is_announced_once(tmp_path: Path) -> None:
    node = ElasticNode(tmp_path)
    node.now += 0.1234567
    node.add(DB, WEB)
    agent = node.agent(delay="20s")
    node.work_under(agent, 5, 10, {"db": 8.0, "web": 1.0})
    node.add(Pod("big", 10))
    announced = []
    for _second in range(5):
        announced += [move for move in agent.one_pass().moves if move.what == ANNOUNCE]
        node.work(1.0001234, {"db": 8.0, "web": 1.0})
    assert len(announced) == 1


def test_what_somebody_else_has_written_is_put_right(tmp_path: Path, style: Style) -> None:
    node = ElasticNode(tmp_path, style=style)
    node.add(DB, WEB)
    agent = node.agent()
    agent.one_pass()
    before = node.sets()
    mount = tmp_path / style.mount[1:]
    for pod, cpus in ((DB, "3-5"), (WEB, "0-15")):
        (mount / pod.cgroup / "cpuset.cpus").write_text(cpus + "\n")
        if style is V2:
            (mount / pod.cgroup / "cpuset.cpus.effective").write_text(cpus + "\n")
    agent.one_pass()
    assert node.sets() == before


@pytest.mark.parametrize(("outer", "inner"), [("0-15", "1,9"), ("0-15", ""), ("1,9", "1"), ("0-1,9", "1,9")])
def test_a_container_does_not_hide_behind_a_cgroup_of_its_own(
    tmp_path: Path, style: Style, outer: str, inner: str
) -> None:
    node = ElasticNode(tmp_path, style=style)
    node.add(DB, WEB)
    agent = node.agent()
    agent.one_pass()
    before = node.sets()
    assert before["db"] == "1,9"
    path = DB.cgroup + "/container"
    whole = Files(node.online if style is V1 else "", "0")
    above = {"kubepods.slice": whole, DB.path: whole}
    write_cgroups(tmp_path, style, {**above, DB.cgroup: Files(outer, "0"), path: Files(inner, "0")}, node.online, "0")
    report = agent.one_pass()
    assert (report.refused, node.sets()) == ([], before)
    assert Hierarchy(Tree(str(tmp_path))).effective_cpus(path) == CPUSet.parse("1,9")
    assert agent.one_pass().moves == []


def test_what_the_kernel_refuses_is_given_to_nobody_else(tmp_path: Path) -> None:
    node = ElasticNode(tmp_path)
    node.add(WEB)
    # A container's own systemd has cgroups below it, which v1 does not let it shrink away from.
    nested = tmp_path / V1.mount[1:] / WEB.cgroup / "nested"
    nested.mkdir()
    for path in nested.parent.glob("cp*"):
        (nested / path.name).write_bytes(path.read_bytes())
    (nested / "cgroup.procs").touch()
    node.add(DB)
    agent = node.agent()
    report = agent.one_pass()
    assert len(report.refused) == 2
    assert "nested has 0-15" in report.refused[0]
    assert report.refused[1] == "pod db, container app does not get CPUs 1,9: others still have 1,9"
    assert node.sets() == {"web": "0-15", "db": "0,2-8,10-15"}
    assert not node.file("db")["exclusive"]
    for path in nested.iterdir():
        path.unlink()
    nested.rmdir()
    assert agent.one_pass().refused == []
    assert node.sets() == {"web": "0,2-8,10-15", "db": "1,9"}


def test_a_container_that_restarts(tmp_path: Path) -> None:
    node = ElasticNode(tmp_path)
    node.add(DB, WEB)
    agent = node.agent()
    agent.one_pass()
    before = node.sets()
    node.remove("db")
    node.add(DB)
    assert node.sets()["db"] == "0-15"
    agent.one_pass()
    assert node.sets() == before
    node.remove("db")
    agent.one_pass()
    assert node.sets() == {"web": "0-15"}
    assert not (tmp_path / "run/kubenode/cpus/db").exists()


def test_nobody_is_elastic_without_a_word_of_the_runtime(tmp_path: Path) -> None:
    node = ElasticNode(tmp_path)
    node.add(DB, WEB)
    agent = node.agent(use_runtime=False)
    node.work_under(agent, 3, 10, {"db": 2.0, "web": 1.0})
    assert node.sets()["db"] == "1,9"
    assert node.calls == []


def test_a_runtime_that_is_missing_is_told_in_each_pass_in_which_somebody_could_be_elastic(tmp_path: Path) -> None:
    node = ElasticNode(tmp_path)
    node.add(WEB)
    agent = Agent(Tree(str(tmp_path)), node.agent().settings, lambda: node.now, lambda: node.now, lambda *_: None)
    assert agent.one_pass().notes == []
    node.add(DB, CACHE)
    for _pass in range(3):
        (note,) = agent.one_pass().notes
        assert note.startswith("crictl was not found")
    # That was chosen.
    assert node.agent(use_runtime=False).one_pass().notes == []


def test_the_runtime_is_called_only_for_who_is_new(tmp_path: Path) -> None:
    node = ElasticNode(tmp_path)
    node.add(DB, WEB, is_logged=False)
    agent = node.agent()
    for _period in range(3):
        agent.one_pass()
    assert [call[1] for call in node.calls] == ["ps", "pods"]
    node.add(CACHE, is_logged=False)
    agent.one_pass()
    agent.one_pass()
    assert [call[1] for call in node.calls] == ["ps", "pods"] * 2
    assert node.sets()["cache"] == "2-3,10-11"


def test_a_wrong_annotation_is_told(tmp_path: Path) -> None:
    node = ElasticNode(tmp_path)
    node.add(Pod("db", 2, "2-x"))
    (note,) = node.agent().one_pass().notes
    assert note.startswith("pod shop/db: annotation cpu-manager.kubenode/elastic: '2-x' is no range")


def test_what_is_requested_where_v2_has_no_quota(tmp_path: Path) -> None:
    node = ElasticNode(tmp_path, style=V2)
    node.add(DB)
    (tmp_path / V2.mount[1:] / DB.cgroup / "cpu.max").write_text("max 100000\n")
    node.agent().one_pass()
    assert node.sets()["db"] == "1,9"
    assert node.calls[-1][1] == "inspect"


def test_the_kubelets_static_policy(tmp_path: Path) -> None:
    node = ElasticNode(tmp_path, policy="static")
    node.add(DB)
    before = node.sets()
    with pytest.raises(RefusedError, match="only one of both can give out CPUs") as caught:
        node.agent().one_pass()
    assert caught.value.kind == "other_owner"
    assert node.sets() == before
    # One that was restarted has written its checkpoint, whatever the file says by now.
    node.configure("0,8", "none")
    (tmp_path / "var/lib/kubelet/cpu_manager_state").write_text(
        '{"policyName":"static","defaultCpuSet":"0-15","checksum":1}'
    )
    with pytest.raises(RefusedError, match="cpu_manager_state"):
        node.agent().one_pass()


def test_rules_that_cannot_be_kept(tmp_path: Path) -> None:
    node = ElasticNode(tmp_path, reserved="")
    node.add(DB)
    with pytest.raises(InputError, match="the shared pool could become empty"):
        node.agent().one_pass()
    assert node.agent(shared_minimum=2).one_pass().refused == []
    assert node.agent(reserved_cpus="0").one_pass().refused == []


def test_a_promise_that_is_damaged(tmp_path: Path) -> None:
    node = ElasticNode(tmp_path)
    node.add(DB)
    node.agent().one_pass()
    (tmp_path / PROMISE[1:]).write_text("{}")
    before = node.sets()
    with pytest.raises(RefusedError, match="is damaged"):
        node.agent().one_pass()
    assert node.sets() == before


def test_the_policy_isolated(tmp_path: Path, style: Style) -> None:
    node = ElasticNode(tmp_path, style=style)
    (tmp_path / "sys/devices/system/cpu/isolated").write_text("2-7,10-15\n")
    node.add(DB, CACHE, WEB)
    agent = node.agent(policy="isolated")
    agent.one_pass()
    assert node.sets() == {"db": "4,12", "cache": "2-3,10-11", "web": "0-1,8-9"}
    node.work(10, {"db": 2.0})
    assert agent.one_pass().moves == []
    node.remove("cache")
    agent.one_pass()
    # The shared pool never has isolated CPUs.
    assert node.sets() == {"db": "4,12", "web": "0-1,8-9"}
    node.add(Pod("large", 20))
    assert agent.one_pass().waiting == (("large", "app"),)
    assert node.sets()["large"] == "0-1,8-9"


def test_a_node_without_pods(tmp_path: Path) -> None:
    node = ElasticNode(tmp_path)
    shutil.rmtree(tmp_path / V1.mount[1:] / "kubepods.slice")
    assert node.agent().one_pass().state is None
