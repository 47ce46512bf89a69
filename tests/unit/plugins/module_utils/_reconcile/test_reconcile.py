# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A pass over the containers of a kubelet through their cgroups, and over any node."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._cgroup.hierarchy import Hierarchy, parent_of
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.container_cpus import observe, ways_out
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.enforcement import compare
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._reconcile.reconcile import (
    ReconcileResult,
    reconcile_pods,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.acceptance import readable
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import write_checkpoint
from ansible_collections.kubenode.cpu_manager.tests.machines import cgroups as saved
from ansible_collections.kubenode.cpu_manager.tests.machines.reconciled import (
    BATCH,
    CHECKPOINT,
    EVERYBODY,
    OWN,
    SANDBOX,
    SHARED,
    STYLES,
    held,
    make_node,
    node,
    results,
    told,
    whys,
    write,
)
from ansible_collections.kubenode.cpu_manager.tests.support.numbers import examples

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


def hidden_node(root: Path, style: saved.Style, outer: str, inner: str) -> Path:
    """Return a node whose container has these CPUs, and others in a cgroup of crun's name; the directory of its
    cgroup."""
    make_node(root, {SHARED: "0-3,6-7"}, style)
    pod = saved.pod_path(saved.SYSTEMD, "uid-db", "Guaranteed")
    cgroups = saved.container_files(saved.SYSTEMD, "containerd", pod, OWN, outer)
    (path,) = cgroups
    whole = saved.Files("0-7", "0")
    sets = {"kubepods.slice": whole, pod: whole, **cgroups, path + "/container": saved.Files(inner, "0")}
    top = saved.write_cgroups(root, style, sets)
    (root / "var/log/containers" / ("db-0_shop_server-%s.log" % OWN)).touch()
    return top / path


@STYLES
@pytest.mark.parametrize(("outer", "inner"), [("0-7", "4-5"), ("0-7", "4"), ("4-5", "4"), ("3-5", "4-5")])
def test_a_container_does_not_hide_behind_a_cgroup_of_its_own(
    tmp_path: Path, style: saved.Style, outer: str, inner: str
) -> None:
    path = hidden_node(tmp_path, style, outer, inner)
    observed, _notes = observe(Tree(str(tmp_path)), "")
    assert observed is not None
    said = readable((tmp_path / CHECKPOINT).read_bytes())
    (row,) = compare(observed, said.policy_name, said.state).drift
    wrong = inner if outer == "4-5" else outer
    assert (row["subject"], row["wanted"], row["found"].partition(" ")[0]) == (
        "container shop/db-0/server",
        "4-5",
        wrong,
    )
    run = reconcile_pods(node(tmp_path), None, act=True)
    assert results(run) == {"server": "written", "app": "kept"}
    assert (path / "cpuset.cpus").read_text() == "4-5\n"
    assert (path / "container/cpuset.cpus").read_text() == "4-5\n"


@STYLES
@pytest.mark.parametrize("call", ["effective_cpus_of", "around", "online_cpus"])
def test_a_cgroup_of_its_own_vanishes(
    tmp_path: Path, style: saved.Style, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whenever it does: the container is there, and is not taken for one that has ended."""
    path = hidden_node(tmp_path, style, "0-7", "4-5")
    real = getattr(Hierarchy, call)

    def vanish(hierarchy: Hierarchy, *arguments: Any) -> Any:
        shutil.rmtree(path / "container", ignore_errors=True)
        return real(hierarchy, *arguments)

    monkeypatch.setattr(Hierarchy, call, vanish)
    assert results(reconcile_pods(node(tmp_path), None, act=True)) == {"server": "written", "app": "kept"}
    assert (path / "cpuset.cpus").read_text() == "4-5\n"


@STYLES
def test_a_container_ends_no_pass_by_cgroups_in_cgroups(tmp_path: Path, style: saved.Style) -> None:
    path = hidden_node(tmp_path, style, "0-7", "4-5")
    try:
        subprocess.run(["mkdir", "-p", "%s/container%s" % (path, "/a" * 1500)], check=True)
        assert results(reconcile_pods(node(tmp_path), None, act=True)) == {"server": "written", "app": "kept"}
    finally:
        # What removes the directories of tests goes no deeper than Python does.
        subprocess.run(["rm", "-r", str(path / "container")], check=True)


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
    why = "fence: has no CPUs 4-5, and is not the kubelet's to widen; " + ways_out(CPUSet((4, 5)), ["it"])
    assert whys(answer) == {"server": why}
    assert results(answer) == {"server": "failed"}
    assert not answer.changed


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
    """Return what the report on this node says of containers and of the cgroups above them: {name: the wanted CPUs}."""
    observed, _notes = observe(Tree(str(root)), "")
    said = readable(node(root).checkpoint())
    assert observed is not None
    found: dict[str, dict[str, CPUSet]] = {"container": {}, "cgroup": {}}
    for row in compare(observed, said.policy_name, said.state).drift:
        kind, _space, name = row["subject"].partition(" ")
        found[kind][name] = CPUSet.parse(row["wanted"])
    return found["container"], found["cgroup"]


def drift_of(answer: ReconcileResult) -> tuple[dict[str, CPUSet], dict[str, CPUSet]]:
    """Return the same of what a pass has written."""
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


@settings(max_examples=examples(100))
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
