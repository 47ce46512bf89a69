# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/node/reconcile/run.py."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any, Callable, Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cgroup import writer
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cgroup.hierarchy import Hierarchy, parent_of
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.command import SilentError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.errors import InputError, NodeError, RefusedError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.observation import observe
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.reconcile import settle
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.reconcile.compare import compare
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.reconcile.plan import Listed
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.reconcile.run import (
    Answer,
    reconcile_listed,
    reconcile_pods,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.options import StaticOptions
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.checkpoint import decode_checkpoint
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.formats import Format1
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.verdict import readable
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import write_checkpoint
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.workload.crictl import Crictl
from ansible_collections.kubenode.cpu_manager.tests.machines import cgroups as saved
from ansible_collections.kubenode.cpu_manager.tests.machines.tree import write_machine

CHECKPOINT = "var/lib/kubelet/cpu_manager_state"

OWN, SHARED, BATCH = ("%x" % digit * 64 for digit in (10, 11, 12))
SANDBOX = "d" * 64
UIDS = {OWN: "uid-db", SHARED: "uid-web", BATCH: "uid-batch", SANDBOX: "uid-db"}
NAMES = {OWN: ("db-0", "server"), SHARED: ("web-1", "app"), BATCH: ("batch-2", "job")}
STATE = State(CPUSet.parse("0-3,6-7"), {"uid-db": {"server": CPUSet.parse("4-5")}})


def make_node(
    root: Path,
    sets: Mapping[str, str],
    style: saved.Style = saved.V1,
    above: str = "0-7",
    driver: str = saved.SYSTEMD,
    top: str | None = None,
) -> Path:
    """A saved node with these containers, named by their ids, and their CPUs.

    above: the CPUs of the cgroups above them; top: of the topmost of these, if it has others.
    """
    cgroups = {}
    for container, cpus in sets.items():
        qos = "Guaranteed" if UIDS[container] == "uid-db" else "Burstable"
        pod = saved.pod_path(driver, UIDS[container], qos)
        path = pod
        while path:
            cgroups[path] = saved.Files(above if top is None or parent_of(path) else top, "0")
            path = parent_of(path)
        cgroups.update(saved.container_files(driver, "containerd", pod, container, cpus))
        if container in NAMES:
            name = "%s_shop_%s-%s.log" % (*NAMES[container], container)
            (root / "var/log/containers").mkdir(parents=True, exist_ok=True)
            (root / "var/log/containers" / name).touch()
    saved.write_cgroups(root, style, cgroups)
    write(root, write_checkpoint("static", STATE))
    return root


def write(root: Path, content: bytes) -> None:
    (root / CHECKPOINT).parent.mkdir(parents=True, exist_ok=True)
    (root / CHECKPOINT).write_bytes(content)


def node(root: Path) -> Node:
    return Node(Tree(str(root)))


def results(answer: Answer) -> dict[str, str]:
    """{container: what became of it}"""
    return {row.container or row.id[:1]: row.result for row in answer.rows}


def whys(answer: Answer) -> dict[str, str]:
    return {row.container or row.id[:1]: row.why for row in answer.rows if row.why}


def held(root: Path, container: str, style: saved.Style = saved.V1) -> str:
    """What a container's cgroup holds."""
    found = (root / style.mount[1:]).glob("**/*%s.scope/cpuset.cpus" % container)
    return next(found).read_text().strip()


def told(answer: Answer) -> dict[str, Any]:
    return {**answer.to_dict(), "changed": answer.changed, "before": answer.before(), "after": answer.after()}


EVERYBODY = {OWN: "4-5", SHARED: "0-3,6-7", BATCH: "0-3,6-7"}

STYLES = pytest.mark.parametrize("style", [saved.V1, saved.V2])


# --- through the cgroups --------------------------------------------------------------------------------


@STYLES
def test_an_unchanged_node_is_only_read(tmp_path: Path, style: saved.Style, monkeypatch: pytest.MonkeyPatch) -> None:
    make_node(tmp_path, EVERYBODY, style)
    monkeypatch.setattr(os, "write", lambda *_arguments: pytest.fail("a write"))
    answer = reconcile_pods(node(tmp_path), None, act=True)
    assert results(answer) == {"server": "kept", "app": "kept", "job": "kept"}
    assert not answer.changed
    assert answer.before() == answer.after()


@STYLES
def test_a_hand_edit_is_undone(tmp_path: Path, style: saved.Style) -> None:
    make_node(tmp_path, {**EVERYBODY, OWN: "0", BATCH: "4-5"}, style)
    check = reconcile_pods(node(tmp_path), None, act=False)
    assert held(tmp_path, OWN, style) == "0"
    run = reconcile_pods(node(tmp_path), None, act=True)
    assert told(check) == told(run)
    assert results(run) == {"server": "written", "app": "kept", "job": "written"}
    assert run.changed
    assert held(tmp_path, OWN, style) == "4-5"
    assert held(tmp_path, BATCH, style) == "0-3,6-7"
    assert [(row.pod, str(row.effective), str(row.wanted)) for row in run.rows if row.container == "server"] == [
        ("shop/db-0", "0", "4-5")
    ]
    assert results(reconcile_pods(node(tmp_path), None, act=True)) == dict.fromkeys(results(run), "kept")


@STYLES
def test_a_narrowed_parent_is_widened(tmp_path: Path, style: saved.Style) -> None:
    make_node(tmp_path, {OWN: "0", SHARED: "0"}, style, above="0")
    check = reconcile_pods(node(tmp_path), None, act=False)
    run = reconcile_pods(node(tmp_path), None, act=True)
    assert told(check) == told(run)
    assert results(run) == {"server": "written", "app": "written"}
    widened = ["%s %s" % (write.path.rpartition("/")[2], write.new) for write in run.widened]
    assert len(widened) == len(set(widened)) == 5
    top = tmp_path / style.mount[1:] / "kubepods.slice"
    assert (top / "cpuset.cpus").read_text() == "0-7\n"
    assert (top / "kubepods-poduid_db.slice/cpuset.cpus").read_text() == "0,4-5\n"


def test_what_is_widened_for_one_container_is_not_for_another(tmp_path: Path) -> None:
    """On v2 a container without a set of its own gets what is written above it."""
    make_node(tmp_path, {OWN: "0", SHARED: ""}, saved.V2, above="", top="0-3,6-7")
    check = reconcile_pods(node(tmp_path), None, act=False)
    assert results(check) == {"server": "written", "app": "written"}
    run = reconcile_pods(node(tmp_path), None, act=True)
    assert told(check) == told(run)
    assert (held(tmp_path, OWN, saved.V2), held(tmp_path, SHARED, saved.V2)) == ("4-5", "0-3,6-7")
    assert [write.to_dict()["path"] for write in run.widened] == ["kubepods.slice"]


def test_a_sandbox_of_a_pod_with_exclusive_cpus_is_left_alone(tmp_path: Path) -> None:
    make_node(tmp_path, {**EVERYBODY, SANDBOX: "0-7"})
    answer = reconcile_pods(node(tmp_path), None, act=True)
    assert results(answer)["d"] == "skipped"
    assert held(tmp_path, SANDBOX) == "0-7"


def test_crun_has_its_processes_in_a_cgroup_inside(tmp_path: Path) -> None:
    make_node(tmp_path, {SHARED: "0-3,6-7"})
    pod = saved.pod_path(saved.SYSTEMD, "uid-db", "Guaranteed")
    cgroups = saved.container_files(saved.SYSTEMD, "cri-o+crun", pod, OWN, "0-1")
    inner = "%s/crio-%s.scope/container" % (pod, OWN)
    cgroups[inner] = cgroups[inner]._replace(cpus="0")
    saved.write_cgroups(
        tmp_path, saved.V1, {"kubepods.slice": saved.Files("0-7", "0"), pod: saved.Files("0-7", "0"), **cgroups}
    )
    (tmp_path / "var/log/containers" / ("db-0_shop_server-%s.log" % OWN)).touch()
    assert results(reconcile_pods(node(tmp_path), None, act=True))["server"] == "written"
    assert (tmp_path / saved.V1.mount[1:] / inner / "cpuset.cpus").read_text() == "4-5\n"


def test_the_kubelets_own_root_of_cgroups(tmp_path: Path) -> None:
    """What is above it is not widened: that is somebody's fence."""
    make_node(tmp_path, {OWN: "0"}, driver=saved.CGROUPFS)
    top = tmp_path / saved.V1.mount[1:]
    saved.write_cgroups(tmp_path, saved.V1, {"fence": saved.Files("0-3", "0")})
    shutil.move(str(top / "kubepods"), str(top / "fence/kubepods"))
    configuration = tmp_path / "var/lib/kubelet/config.yaml"
    configuration.write_text(
        "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\ncgroupRoot: /fence\n"
    )
    answer = reconcile_pods(node(tmp_path), None, act=True)
    assert whys(answer) == {"server": "fence: has no CPUs 4-5, and is not the kubelet's to widen"}
    assert results(answer) == {"server": "failed"}
    assert not answer.changed


# --- what goes wrong ------------------------------------------------------------------------------------


def test_a_container_that_vanishes_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_node(tmp_path, {OWN: "0", SHARED: "0", BATCH: "0"})
    top = tmp_path / saved.V1.mount[1:]

    def remove(container: str) -> None:
        shutil.rmtree(next(top.glob("**/*%s.scope" % container)))

    around, carry_out = Hierarchy.around, writer.carry_out

    def vanish_before(self: Hierarchy, paths: Any) -> Any:
        monkeypatch.setattr(Hierarchy, "around", around)
        remove(OWN)
        return around(self, paths)

    def vanish_at_the_write(hierarchy: Hierarchy, writes: Any, systemd: Any) -> None:
        monkeypatch.setattr(settle, "carry_out", carry_out)
        remove(SHARED if "web" in next(iter(writes)).path else BATCH)
        carry_out(hierarchy, writes, systemd)

    monkeypatch.setattr(Hierarchy, "around", vanish_before)
    monkeypatch.setattr(settle, "carry_out", vanish_at_the_write)
    answer = reconcile_pods(node(tmp_path), None, act=True)
    assert sorted(results(answer).values()) == ["skipped", "skipped", "written"]
    assert set(whys(answer).values()) == {"it ended meanwhile"}


@STYLES
def test_a_container_that_vanishes_while_it_is_read(tmp_path: Path, style: saved.Style) -> None:
    make_node(tmp_path, EVERYBODY, style)
    for file in next((tmp_path / style.mount[1:]).glob("**/*%s.scope" % OWN)).iterdir():
        file.unlink()
    answer = reconcile_pods(node(tmp_path), None, act=True)
    assert results(answer) == {"server": "skipped", "app": "kept", "job": "kept"}
    assert whys(answer) == {"server": "it ended meanwhile"}


def test_a_damaged_saved_file_is_named(tmp_path: Path) -> None:
    make_node(tmp_path, EVERYBODY)
    next((tmp_path / saved.V1.mount[1:]).glob("**/*%s.scope/cpuset.cpus" % OWN)).write_text("5-4\n")
    with pytest.raises(NodeError, match=r"scope/cpuset.cpus: .*save the node's files again"):
        reconcile_pods(node(tmp_path), None, act=True)


def test_an_interrupted_pass_is_finished_by_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_node(tmp_path, {OWN: "0", SHARED: "0", BATCH: "0"}, above="0")
    real, left = os.write, [7]

    def write_some(descriptor: int, content: bytes) -> int:
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt
        return real(descriptor, content)

    monkeypatch.setattr(os, "write", write_some)
    with pytest.raises(KeyboardInterrupt):
        reconcile_pods(node(tmp_path), None, act=True)
    monkeypatch.setattr(os, "write", real)
    assert "written" in results(reconcile_pods(node(tmp_path), None, act=True)).values()
    assert {container: held(tmp_path, container) for container in EVERYBODY} == EVERYBODY
    assert not reconcile_pods(node(tmp_path), None, act=True).changed


def test_the_failure_of_one_does_not_stop_the_others(tmp_path: Path) -> None:
    make_node(tmp_path, {OWN: "0-7", SHARED: "0-7", BATCH: "0-7"})
    nested = next((tmp_path / saved.V1.mount[1:]).glob("**/*%s.scope" % OWN)) / "nested"
    shutil.copytree(nested.parent, nested)
    check = reconcile_pods(node(tmp_path), None, act=False)
    run = reconcile_pods(node(tmp_path), None, act=True)
    assert told(check) == told(run)
    assert results(run) == {"server": "failed", "app": "written", "job": "written"}
    assert "its child" in whys(run)["server"]
    lines = ["shop/batch-2/job: 0-3,6-7", "shop/db-0/server: 0-7", "shop/web-1/app: 0-3,6-7"]
    assert sorted(run.after().splitlines()) == lines


def test_a_write_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_node(tmp_path, {OWN: "0", SHARED: "0"}, above="0")
    real = writer._put

    def put(hierarchy: Hierarchy, write: Any, value: CPUSet) -> None:
        if OWN in write.path:
            raise NodeError("the kernel refuses")
        real(hierarchy, write, value)

    monkeypatch.setattr(writer, "_put", put)
    run = reconcile_pods(node(tmp_path), None, act=True)
    assert results(run) == {"server": "failed", "app": "written"}
    # Undone with it: nothing that is above the other.
    pod = tmp_path / saved.V1.mount[1:] / "kubepods.slice/kubepods-poduid_db.slice"
    assert (pod / "cpuset.cpus").read_text() == "0\n"


def test_a_checkpoint_that_changes_meanwhile_ends_the_writing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_node(tmp_path, {OWN: "0", SHARED: "0"})
    around = Hierarchy.around

    def change(self: Hierarchy, paths: Any) -> Any:
        write(tmp_path, write_checkpoint("static", STATE._replace(assignments={})))
        return around(self, paths)

    monkeypatch.setattr(Hierarchy, "around", change)
    answer = reconcile_pods(node(tmp_path), None, act=True)
    assert set(whys(answer).values()) == {"the checkpoint was changed meanwhile; run again"}
    assert held(tmp_path, OWN) == "0"


def test_a_kernel_that_gives_something_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_node(tmp_path, {OWN: "0"})
    monkeypatch.setattr(settle, "carry_out", lambda *_arguments: None)
    answer = reconcile_pods(node(tmp_path), None, act=True)
    assert whys(answer)["server"].endswith(".scope: 0 is effective after 4-5 was written")


def test_a_node_without_cgroups_or_checkpoint_is_an_answer(tmp_path: Path) -> None:
    answer = reconcile_pods(node(tmp_path), None, act=True)
    assert (answer.rows, answer.changed, len(answer.notes)) == ((), False, 1)
    assert (answer.to_dict()["shared_pool"], answer.before(), answer.after()) == ("", "", "")
    assert "no cpuset controller" in answer.notes[0]
    assert reconcile_listed(node(tmp_path), [], StaticOptions(), CPUSet(), act=True).notes == answer.notes
    make_node(tmp_path, EVERYBODY)
    (tmp_path / CHECKPOINT).unlink()
    answer = reconcile_pods(node(tmp_path), None, act=True)
    assert (answer.rows, answer.changed) == ((), False)
    assert "no checkpoint there" in answer.notes[0]


@pytest.mark.parametrize(
    "content", [b"", b"{}", write_checkpoint("static", STATE).replace(b'"4-5"', b'"4-6"'), b'{"policyName":']
)
def test_a_damaged_checkpoint_is_refused(tmp_path: Path, content: bytes) -> None:
    make_node(tmp_path, {OWN: "0"})
    write(tmp_path, content)
    if content == b"{}":  # says nothing, and rightly so
        assert results(reconcile_pods(node(tmp_path), None, act=True)) == {"server": "skipped"}
        return
    with pytest.raises(RefusedError, match="is damaged, and no cpuset was written"):
        reconcile_pods(node(tmp_path), None, act=True)


def test_a_checkpoint_that_names_ids(tmp_path: Path) -> None:
    make_node(tmp_path, {OWN: "0", SANDBOX: "0"})
    old = Format1()
    old.policy_name, old.default_cpu_set, old.entries = "static", "0-1,6-7", {OWN: "4-5", SANDBOX: "2-3"}
    write(tmp_path, old.write())
    assert results(reconcile_pods(node(tmp_path), None, act=True)) == {"server": "written", "d": "written"}
    assert (held(tmp_path, OWN), held(tmp_path, SANDBOX)) == ("4-5", "2-3")


# --- through the runtime --------------------------------------------------------------------------------


class Runtime:
    """Stands for crictl on a saved node: writes what it is told, unless it fails."""

    def __init__(
        self, root: Path, containers: Sequence[str], broken: Callable[[Sequence[str]], None] | None = None
    ) -> None:
        self.root = root
        self.containers = containers
        self.broken = broken or (lambda _arguments: None)
        self.calls: list[Sequence[str]] = []

    def __call__(self, arguments: Sequence[str]) -> str:
        self.calls.append(arguments[1:])
        self.broken(arguments[1:])
        if arguments[1] == "ps":
            return json.dumps({"containers": [self._listed(container) for container in self.containers]})
        cpus, container = arguments[-2:]
        top = self.root / saved.V1.mount[1:]
        next(top.glob("**/*%s.scope/cpuset.cpus" % container)).write_text(cpus + "\n")
        return container + "\n"

    @staticmethod
    def _listed(container: str) -> dict[str, Any]:
        pod, name = NAMES[container]
        labels = {"io.kubernetes.pod.name": pod, "io.kubernetes.pod.namespace": "shop"}
        return {"id": container, "metadata": {"name": name, "attempt": 0}, "labels": labels}


def crictl(runtime: Runtime) -> Crictl:
    return Crictl("crictl", None, runtime)


def test_the_runtime_writes_its_containers(tmp_path: Path) -> None:
    make_node(tmp_path, {OWN: "0", SHARED: "0-3,6-7", BATCH: "0", SANDBOX: "0"}, above="0-3,6-7")
    shutil.rmtree(tmp_path / "var/log/containers")
    runtime = Runtime(tmp_path, [OWN, SHARED, BATCH])
    check = reconcile_pods(node(tmp_path), crictl(runtime), act=False)
    assert runtime.calls == [["ps", "-o", "json"]]
    run = reconcile_pods(node(tmp_path), crictl(runtime), act=True)
    assert told(check) == told(run)
    assert results(run) == {"server": "written", "app": "kept", "job": "written", "d": "skipped"}
    assert [row.pod for row in run.rows if row.container == "server"] == ["shop/db-0"]
    updates = runtime.calls[2:]
    assert sorted(map(list, updates)) == [
        ["update", "--cpuset-cpus", "0-3,6-7", BATCH],
        ["update", "--cpuset-cpus", "4-5", OWN],
    ]
    # What is above is nobody's but ours.
    assert (tmp_path / saved.V1.mount[1:] / "kubepods.slice/cpuset.cpus").read_text() == "0-7\n"
    runtime.calls.clear()
    assert not reconcile_pods(node(tmp_path), crictl(runtime), act=True).changed
    assert runtime.calls == [["ps", "-o", "json"]]


def test_a_runtime_that_fails_for_one(tmp_path: Path) -> None:
    make_node(tmp_path, {OWN: "0", SHARED: "0"}, above="0")

    def broken(arguments: Sequence[str]) -> None:
        if arguments[-1] == OWN:
            raise NodeError("crictl update: no such task")

    run = reconcile_pods(node(tmp_path), crictl(Runtime(tmp_path, [OWN, SHARED], broken)), act=True)
    assert results(run) == {"server": "failed", "app": "written"}
    assert whys(run) == {"server": "crictl update: no such task"}
    assert held(tmp_path, OWN) == "0"  # never behind the runtime's back
    again = reconcile_pods(node(tmp_path), crictl(Runtime(tmp_path, [OWN, SHARED])), act=True)
    assert results(again) == {"server": "written", "app": "kept"}
    assert held(tmp_path, OWN) == "4-5"


def test_a_container_that_ends_while_the_runtime_is_asked(tmp_path: Path) -> None:
    make_node(tmp_path, {OWN: "0", SHARED: "0"})

    def broken(arguments: Sequence[str]) -> None:
        if arguments[-1] == OWN:
            shutil.rmtree(next((tmp_path / saved.V1.mount[1:]).glob("**/*%s.scope" % OWN)))
            raise NodeError("crictl update: not found")

    run = reconcile_pods(node(tmp_path), crictl(Runtime(tmp_path, [OWN, SHARED], broken)), act=True)
    assert results(run) == {"server": "skipped", "app": "written"}
    assert whys(run) == {"server": "it ended meanwhile"}


def test_a_runtime_that_does_not_answer(tmp_path: Path) -> None:
    make_node(tmp_path, {**EVERYBODY, OWN: "0"})

    def broken(arguments: Sequence[str]) -> None:
        raise SilentError("crictl ps: no answer in 10 seconds")

    check, run = (
        reconcile_pods(node(tmp_path), crictl(Runtime(tmp_path, [], broken)), act=act) for act in (False, True)
    )
    assert told(check) == told(run)
    assert results(run) == {"server": "failed", "app": "kept", "job": "kept"}
    assert whys(run) == {"server": "crictl ps: no answer in 10 seconds"}
    assert run.notes == ["crictl ps: no answer in 10 seconds"]
    assert held(tmp_path, OWN) == "0"


def test_a_runtime_that_is_silent_three_times_is_not_asked_again(tmp_path: Path) -> None:
    make_node(tmp_path, dict.fromkeys(EVERYBODY, "5"))

    def broken(arguments: Sequence[str]) -> None:
        if arguments[0] == "update":
            raise SilentError("no answer")

    runtime = Runtime(tmp_path, list(EVERYBODY), broken)
    asked = crictl(runtime)
    assert set(results(reconcile_pods(node(tmp_path), asked, act=True)).values()) == {"failed"}
    assert len(runtime.calls) == 4
    with pytest.raises(NodeError, match="is not called any more"):
        asked.set_cpus(OWN, CPUSet())
    assert len(runtime.calls) == 4


# --- a node without a kubelet ---------------------------------------------------------------------------

LISTED = (Listed("db", "server", "apps/db", 2), Listed("web", "app", "/sys/fs/cgroup/cpuset/apps/web", 0))


def other_node(root: Path) -> Path:
    write_machine(root, "1s4c2t")
    saved.write_cgroups(
        root,
        saved.V1,
        {"apps": saved.Files("0-7", "0"), "apps/db": saved.Files("0-7", "0"), "apps/web": saved.Files("0-7", "0")},
    )
    return root


def listed_pass(root: Path, listed: Sequence[Listed] = LISTED, act: bool = True) -> Answer:
    return reconcile_listed(node(root), listed, StaticOptions(full_pcpus_only=True), CPUSet.parse("0,4"), act)


def test_a_node_without_a_kubelet(tmp_path: Path) -> None:
    other_node(tmp_path)
    check = listed_pass(tmp_path, act=False)
    assert not (tmp_path / CHECKPOINT).exists()
    run = listed_pass(tmp_path)
    assert told(check) == told(run)
    assert run.changed
    top = tmp_path / saved.V1.mount[1:] / "apps"
    assert (top / "db/cpuset.cpus").read_text() == "1,5\n"
    assert (top / "web/cpuset.cpus").read_text() == "0,2-4,6-7\n"
    assert decode_checkpoint((tmp_path / CHECKPOINT).read_bytes()).entries == {"db": {"server": "1,5"}}
    assert (tmp_path / CHECKPOINT).stat().st_mode & 0o777 == 0o600
    assert run.after().splitlines() == [
        "default CPU set: 0,2-4,6-7",
        "pod db, container server: 1,5",
        "apps/db: 1,5",
        "apps/web: 0,2-4,6-7",
    ]
    assert not listed_pass(tmp_path).changed
    # Gone from the list, and gone from the node.
    shutil.rmtree(top / "web")
    last = listed_pass(tmp_path, LISTED[1:])
    assert results(last) == {"app": "skipped"}
    assert whys(last) == {"app": "there is no such cgroup"}
    assert decode_checkpoint((tmp_path / CHECKPOINT).read_bytes()).default_cpu_set == "0-7"


@STYLES
def test_each_listed_container_has_a_result(tmp_path: Path, style: saved.Style) -> None:
    other_node(tmp_path)
    sets = {"a": "0-7", "a/db": "1,5", "a/web": "0-7", "fence": "0-1", "fence/log": "0-1"}
    saved.write_cgroups(tmp_path, style, {path: saved.Files(cpus, "0") for path, cpus in sets.items()})
    if style is saved.V2:
        shutil.rmtree(tmp_path / saved.V1.mount[1:])
    listed = [
        Listed("db", "server", "a/db", 2),
        Listed("db", "backup", "a/web", 0),
        Listed("log", "agent", "fence/log", 0),
        Listed("gone", "job", "a/gone", 2),
    ]
    check, run = (listed_pass(tmp_path, listed, act) for act in (False, True))
    assert told(check) == told(run)
    assert [(row.pod, row.container, row.result, row.why) for row in run.rows] == [
        ("db", "server", "kept", ""),
        ("db", "backup", "written", ""),
        ("log", "agent", "failed", "fence: has no CPUs 3-4,7, and is not the kubelet's to widen"),
        ("gone", "job", "skipped", "there is no such cgroup"),
    ]
    assert run.to_dict()["counts"] == {"kept": 1, "written": 1, "failed": 1, "skipped": 1}
    # Also the CPUs of one that is still to start are its own.
    assert run.to_dict()["shared_pool"] == "0,3-4,7"
    top = tmp_path / style.mount[1:]
    assert (top / "a/web/cpuset.cpus").read_text() == "0,3-4,7\n"
    assert (top / "fence/log/cpuset.cpus").read_text() == "0-1\n"
    # The fence taken down, the next pass does what this one could not.
    saved.write_cgroups(tmp_path, style, {"fence": saved.Files("0-7", "0"), "fence/log": saved.Files("0-1", "0")})
    again = listed_pass(tmp_path, listed)
    assert [row.result for row in again.rows] == ["kept", "kept", "written", "skipped"]


def test_an_interrupted_pass_has_its_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other_node(tmp_path)

    def interrupt(*_arguments: Any) -> None:
        raise KeyboardInterrupt

    carry_out = writer.carry_out
    monkeypatch.setattr(settle, "carry_out", interrupt)
    with pytest.raises(KeyboardInterrupt):
        listed_pass(tmp_path)
    written = (tmp_path / CHECKPOINT).read_bytes()
    monkeypatch.setattr(settle, "carry_out", carry_out)
    assert results(listed_pass(tmp_path)) == {"server": "written", "app": "written"}
    assert (tmp_path / CHECKPOINT).read_bytes() == written


def test_a_fence_is_not_widened(tmp_path: Path) -> None:
    other_node(tmp_path)
    saved.write_cgroups(
        tmp_path,
        saved.V1,
        {"apps": saved.Files("0-1", "0"), "apps/db": saved.Files("0", "0"), "apps/web": saved.Files("0", "0")},
    )
    assert results(listed_pass(tmp_path)) == {"server": "failed", "app": "failed"}


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ("process", RefusedError, r"the node has a kubelet \(process 4711\)"),
        ("configuration", RefusedError, r"the node has a kubelet \(its configuration is /var/lib"),
        ("twice", InputError, "two of them have the cgroup apps/db"),
        ("outside", InputError, "leads out of the hierarchy"),
    ],
)
def test_what_is_not_for_a_node_without_a_kubelet(
    tmp_path: Path, change: str, error: type[Exception], message: str
) -> None:
    other_node(tmp_path)
    listed = list(LISTED)
    if change == "process":
        (tmp_path / "proc/4711").mkdir(parents=True)
        (tmp_path / "proc/4711/cmdline").write_text("/usr/bin/kubelet\0")
    elif change == "configuration":
        (tmp_path / "var/lib/kubelet").mkdir(parents=True)
        (tmp_path / "var/lib/kubelet/config.yaml").write_text(
            "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
        )
    else:
        listed.append(Listed("a", "b", "apps//db" if change == "twice" else "../x", 0))
    with pytest.raises(error, match=message):
        listed_pass(tmp_path, listed)
    assert not (tmp_path / CHECKPOINT).exists()


# --- any node -------------------------------------------------------------------------------------------


subsets = st.frozensets(st.integers(0, 7)).map(CPUSet)
some = st.frozensets(st.integers(0, 7), min_size=1).map(CPUSet)
PLACES = ("kubepods", "kubepods/burstable", "kubepods/poduid-db", "kubepods/burstable/poduid-web")
PLACES_OF = {
    OWN: ("kubepods/poduid-db", "server", "uid-db"),
    SHARED: ("kubepods/burstable/poduid-web", "app", "uid-web"),
    BATCH: ("kubepods/burstable/poduid-web", "job", "uid-web"),
}


def drift(root: Path) -> tuple[dict[str, CPUSet], dict[str, CPUSet]]:
    """What the report on this node says of containers and of the cgroups above them: {name: the wanted CPUs}."""
    observed, _notes = observe(Tree(str(root)), "")
    said = readable(node(root).checkpoint())
    assert observed is not None
    found: dict[str, dict[str, CPUSet]] = {"container": {}, "cgroup": {}}
    for row in compare(observed, said.policy_name, said.state).drift:
        kind, _space, name = row["subject"].partition(" ")
        found[kind][name] = CPUSet.parse(row["wanted"])
    return found["container"], found["cgroup"]


def drift_of(answer: Answer) -> tuple[dict[str, CPUSet], dict[str, CPUSet]]:
    """The same of what a pass has written."""
    # Others that were right are written, too, where they no more are after a write above them.
    wrong = [row for row in answer.rows if row.effective != row.wanted]
    assert {row.result for row in wrong} <= {"written"}
    # A cgroup may be widened for one container and then for another.
    return (
        {"%s/%s" % (row.pod, row.container): row.wanted for row in wrong},
        {write.path: write.new for write in answer.widened},
    )


def test_what_is_cut_above_is_told_there_alone(tmp_path: Path) -> None:
    """On v2, a cgroup that has nothing of its parent's gets all of that, and its own again once the parent is wider."""
    places = [*PLACES, *("%s/%s" % (pod, container) for container, (pod, _name, _uid) in PLACES_OF.items())]
    sets = {PLACES[0]: "1", PLACES[3]: "0"}
    saved.write_cgroups(tmp_path, saved.V2, {place: saved.Files(sets.get(place, ""), "0") for place in places})
    assignments = {"uid-db": {"server": CPUSet.parse("2")}, "uid-web": {"app": CPUSet.parse("0")}}
    write(tmp_path, write_checkpoint("static", State(CPUSet.parse("0"), assignments)))
    (tmp_path / "var/log/containers").mkdir(parents=True)
    for container, (_pod, own, uid) in PLACES_OF.items():
        (tmp_path / "var/log/containers" / ("%s_shop_%s-%s.log" % (uid, own, container))).touch()
    cutting = drift(tmp_path)[1]
    assert list(cutting) == [PLACES[0]]
    _containers, written = drift_of(reconcile_pods(node(tmp_path), None, act=True))
    assert cutting[PLACES[0]] <= written[PLACES[0]]
    assert drift(tmp_path) == ({}, {})


@settings(max_examples=100)
@given(st.data(), st.sampled_from([saved.V1, saved.V2]))
def test_a_pass_mends_any_node_and_a_second_finds_nothing(data: st.DataObject, style: saved.Style) -> None:
    sets: dict[str, CPUSet] = {"": CPUSet.parse("0-7")}
    for path in (*PLACES, *("%s/%s" % (pod, container) for container, (pod, _name, _uid) in PLACES_OF.items())):
        sets[path] = data.draw(some) & sets[parent_of(path)] if style is saved.V1 else data.draw(subsets)
    wanted = {container: data.draw(some) for container in PLACES_OF}
    assignments = {
        uid: {name: wanted[container] for container, (_pod, name, owner) in PLACES_OF.items() if owner == uid}
        for uid in ("uid-db", "uid-web")
    }
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        files = {path: saved.Files(str(cpus), "0") for path, cpus in sets.items() if path}
        saved.write_cgroups(root, style, files)
        write(root, write_checkpoint("static", State(CPUSet(), assignments)))
        (root / "var/log/containers").mkdir(parents=True)
        for container, (_pod, own, uid) in PLACES_OF.items():
            (root / "var/log/containers" / ("%s_shop_%s-%s.log" % (uid, own, container))).touch()
        enforced = drift(root)
        check = reconcile_pods(node(root), None, act=False)
        run = reconcile_pods(node(root), None, act=True)
        assert told(check) == told(run)
        # The drift report tells what a pass writes, and nothing after it.
        containers, widened = drift_of(run)
        assert enforced[0] == containers
        # To widen one cgroup may make another cut, which nobody can see before.
        assert all(cpus <= widened[path] for path, cpus in enforced[1].items())
        assert bool(containers) == run.changed
        assert drift(root) == ({}, {})
        hierarchy = Hierarchy(Tree(name))
        found = {
            container: hierarchy.effective_cpus("%s/%s" % (pod, container))
            for container, (pod, _name, _uid) in PLACES_OF.items()
        }
        # On v1, one with nothing in it is empty and no process runs there.
        assert found == wanted
        if style is saved.V1:
            for path in files:
                assert hierarchy.read(path).effective_cpus <= hierarchy.read(parent_of(path)).effective_cpus
        again = reconcile_pods(node(root), None, act=True)
        assert set(results(again).values()) == {"kept"}
        assert not again.changed
