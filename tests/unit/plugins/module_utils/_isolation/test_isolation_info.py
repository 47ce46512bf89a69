# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._containers.crictl import hashed
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._isolation import isolation_info as isolation
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._isolation.isolation_info import isolation_report
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._isolation.sample import CgroupTime, Observer, Sample
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.hidden_names import with_hidden_names
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.formats import Format3
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import write_checkpoint
from ansible_collections.kubenode.cpu_manager.tests.machines.cgroups import (
    HYBRID,
    HYBRID_V2,
    SYSTEMD,
    V2,
    Files,
    Style,
    container_files,
    pod_path,
    write_cgroups,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.promises import promise, take_over
from ansible_collections.kubenode.cpu_manager.tests.machines.samples import sample, task
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import parse_name
from ansible_collections.kubenode.cpu_manager.tests.machines.tree import write_tree

OWN, SHARED = "a" * 64, "b" * 64
CONFIGURATION = """\
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cpuManagerPolicy: static
reservedSystemCPUs: "0"
"""
DATABASE, WEB = pod_path(SYSTEMD, "uid-db", "Guaranteed"), pod_path(SYSTEMD, "uid-web", "Burstable")


def make_node(root: Path, named: bool = True, state: State | None = None, style: Style = V2) -> Node:
    """Return a saved node whose database has CPU 1 to itself."""
    shape = parse_name("2c")
    write_tree(shape.topology(), root, shape.whole())
    kubelet = root / "var/lib/kubelet"
    kubelet.mkdir(parents=True)
    (kubelet / "config.yaml").write_text(CONFIGURATION)
    state = state or State(CPUSet((0,)), {"uid-db": {"server": CPUSet((1,))}})
    (kubelet / "cpu_manager_state").write_bytes(write_checkpoint("static", state))
    above = {path: Files("0-1", "0") for path in ("kubepods.slice", "kubepods.slice/kubepods-burstable.slice", WEB)}
    cgroups = {
        **above,
        DATABASE: Files("0-1", "0"),
        **container_files(SYSTEMD, "containerd", DATABASE, OWN, "1"),
        **container_files(SYSTEMD, "containerd", WEB, SHARED, "0"),
    }
    write_cgroups(root, style, cgroups)
    if named:
        logs = root / "var/log/containers"
        logs.mkdir(parents=True)
        for name, container in (("db-0_shop_server", OWN), ("web-1_shop_app", SHARED)):
            (logs / ("%s-%s.log" % (name, container))).touch()
    return Node(Tree(str(root)))


def sampled(monkeypatch: pytest.MonkeyPatch, **more: object) -> None:
    """Let the node be one that runs, on which a sample says `more`."""
    monkeypatch.setattr(Tree, "live", property(lambda _tree: True))
    monkeypatch.setattr(isolation, "take", lambda *_arguments: sample(**more))


def test_a_saved_node_has_no_verdicts(tmp_path: Path) -> None:
    report = isolation_report(make_node(tmp_path), 5, 1.0)
    (row,) = report["containers"]
    assert (row["pod"], row["container"], row["pod_uid"], row["id"], row["cpus"]) == (
        "shop/db-0",
        "server",
        "uid-db",
        OWN,
        "1",
    )
    assert (row["verdict"], row["by"], report["cpus"], report["seconds"]) == (None, [], [], 0.0)
    assert (report["findings"], report["note_checks"]) == ([], ["isolation-unmeasured"])


def test_containers_that_share_the_cpus_of_their_pod_do_not_disturb_each_other(tmp_path: Path) -> None:
    node = make_node(tmp_path)
    own = {"server": CPUSet((1,)), "proxy": CPUSet((1,)), "zeta": CPUSet((1,))}
    state = State(CPUSet((0,)), {"uid-db": own}, {"uid-db": CPUSet((1,))})
    (tmp_path / "var/lib/kubelet/cpu_manager_state").write_bytes(write_checkpoint("static", state, Format3))
    (row,) = isolation_report(node, 5, 1.0)["containers"]
    assert (row["container"], row["cpus"], row["id"]) == ("server", "1", OWN)


@pytest.mark.parametrize("seconds", [0, -1, 3601])
def test_seconds_that_make_no_sense(tmp_path: Path, seconds: int) -> None:
    with pytest.raises(InputError, match=r"^seconds: "):
        isolation_report(make_node(tmp_path), seconds, 1.0)


@pytest.mark.parametrize("threshold", [0, -1, 100, float("nan")])
def test_thresholds_that_make_no_sense(tmp_path: Path, threshold: float) -> None:
    with pytest.raises(InputError, match=r"^threshold: "):
        isolation_report(make_node(tmp_path), 5, threshold)


def test_owners_have_the_names_of_pods(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node = make_node(tmp_path)
    own, web = ("%s/cri-containerd-%s.scope" % (pod, container) for pod, container in ((DATABASE, OWN), (WEB, SHARED)))
    tasks = [
        task("server", {1: 0.5}, own),
        task("app", {0: 0.3, 1: 0.2}, web),
        task("x", {1: 0.1}, "a\nb.slice"),
        task("y", {0: 0.001}),
    ]
    more = {"busy": {0: 0.3, 1: 0.8}, "busy_exact": False, "idle": {0: 0.7, 1: 0.2}, "tasks": tasks}
    sampled(monkeypatch, **more, problems=("a problem",))
    report = isolation_report(node, 5, 1.0)
    (row,) = report["containers"]
    assert (row["verdict"], row["own_percent"], row["foreign_percent"]) == ("disturbed", 50.0, 30.0)
    assert [(part["kind"], part["name"]) for part in row["by"]] == [
        ("container", "shop/web-1/app"),
        ("cgroup", "a\\nb.slice"),
    ]
    (finding,) = report["findings"]
    assert finding["subject"] == "shop/db-0/server"
    assert (report["notes"], report["note_checks"]) == (["a problem"], ["isolation-unmeasured"])
    shared, exclusive = report["cpus"]
    assert (shared["exclusive_to"], exclusive["exclusive_to"]) == ("", "shop/db-0/server")
    # Of CPUs that nobody has to itself, who takes little is left out.
    assert [part["name"] for part in shared["by"]] == ["shop/web-1/app"]
    assert json.loads(json.dumps(report)) == report


def test_what_a_container_runs_in_containers_of_its_own_is_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = "%s/cri-containerd-%s.scope/docker/%s" % (DATABASE, OWN, "c" * 64)
    monitor = "%s/crio-conmon-%s.scope" % (DATABASE, OWN)
    tasks = [task("app", {1: 0.5}, inner), task("conmon", {1: 0.2}, monitor)]
    sampled(monkeypatch, busy={1: 0.7}, idle={1: 0.3}, busy_exact=False, tasks=tasks)
    (row,) = isolation_report(make_node(tmp_path), 5, 1.0)["containers"]
    assert row["own_percent"] == 50.0
    # What watches over a container is not in it.
    assert [(part["kind"], part["name"]) for part in row["by"]] == [("cgroup", monitor)]


def test_a_container_does_not_hide_behind_the_id_of_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In its own cgroup, it may give others any name."""
    hidden = "%s/cri-containerd-%s.scope/cri-containerd-%s.scope" % (WEB, SHARED, OWN)
    own = "%s/cri-containerd-%s.scope" % (DATABASE, OWN)
    tasks = [task("server", {1: 0.5}, own), task("app", {1: 0.2}, hidden)]
    sampled(monkeypatch, busy={1: 0.7}, idle={1: 0.3}, busy_exact=False, tasks=tasks)
    (row,) = isolation_report(make_node(tmp_path), 5, 1.0)["containers"]
    assert (row["own_percent"], [(part["kind"], part["name"]) for part in row["by"]]) == (
        50.0,
        [("container", "shop/web-1/app")],
    )


def test_a_container_that_is_not_below_the_pods(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stranger = "c" * 64
    tasks = [task("app", {1: 0.5}, "system.slice/docker-%s.scope" % stranger)]
    sampled(monkeypatch, busy={1: 0.5}, idle={1: 0.5}, busy_exact=False, tasks=tasks)
    (row,) = isolation_report(make_node(tmp_path), 5, 1.0)["containers"]
    assert [(part["kind"], part["name"]) for part in row["by"]] == [("container", stranger)]


def test_a_cgroup_root_that_leads_out(tmp_path: Path) -> None:
    node = make_node(tmp_path)
    (tmp_path / "var/lib/kubelet/config.yaml").write_text(CONFIGURATION + "cgroupRoot: /../x\n")
    report = isolation_report(node, 5, 1.0)
    assert [(row["cpus"], row["id"]) for row in report["containers"]] == [("1", "")]
    assert "which containers run cannot be seen: cgroup root '../x': leads out of the hierarchy" in report["notes"]
    assert set(report["note_checks"]) == {"isolation-unmeasured"}


def test_a_pod_with_one_container_is_counted_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """But for those with exclusive CPUs, each of whose cgroups is read."""
    node, wholes = make_node(tmp_path), []
    sampled(monkeypatch)

    def take_whole(*arguments: Any) -> Sample:
        wholes.append(arguments[4])
        return sample(busy={1: 0.5}, idle={1: 0.5}, cgroups=[CgroupTime(WEB, {1: 0.5})])

    monkeypatch.setattr(isolation, "take", take_whole)
    (row,) = isolation_report(node, 5, 1.0)["containers"]
    assert [list(whole) for whole in wholes] == [[WEB]]
    assert [(part["kind"], part["name"]) for part in row["by"]] == [("container", "shop/web-1/app")]


def test_names_can_be_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node = with_hidden_names(make_node(tmp_path))
    path = "%s/cri-containerd-%s.scope" % (WEB, SHARED)
    sampled(monkeypatch, busy={1: 0.5}, idle={1: 0.5}, busy_exact=False, tasks=[task("app", {1: 0.5}, path)])
    text = json.dumps(isolation_report(node, 5, 1.0))
    for name in ("shop", "db-0", "web-1", '"server"'):
        assert name not in text
    assert "/".join(map(hashed, ("shop", "web-1", "app"))) in text


def test_a_container_whose_name_is_not_known_is_told_by_its_cpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = make_node(tmp_path, named=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    path = "%s/cri-containerd-%s.scope" % (DATABASE, OWN)
    sampled(monkeypatch, busy={1: 0.5}, idle={1: 0.5}, busy_exact=False, tasks=[task("app", {1: 0.5}, path)])
    (row,) = isolation_report(node, 5, 1.0)["containers"]
    assert (row["pod"], row["id"], row["verdict"]) == ("", OWN, "alone")


def test_a_container_that_does_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node = make_node(tmp_path, state=State(CPUSet(), {"gone": {"c": CPUSet((1,))}, "far": {"c": CPUSet((9,))}}))
    sampled(monkeypatch)
    report = isolation_report(node, 5, 1.0)
    assert [row["verdict"] for row in report["containers"]] == ["idle", "idle"]
    text = "\n".join(report["notes"])
    assert "gone/c has CPUs 1 and does not run" in text
    assert "the exclusive CPUs 9 are offline" in text


@pytest.mark.parametrize("has_new", [False, True])
def test_a_container_that_ends_or_restarts_is_not_its_own_intruder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_new: bool
) -> None:
    node, cgroups = make_node(tmp_path), tmp_path / "sys/fs/cgroup"
    own, new = ("%s/cri-containerd-%s.scope" % (DATABASE, container) for container in (OWN, "c" * 64))

    def take_meanwhile(*_arguments: object) -> Sample:
        (cgroups / own).rename(cgroups / new if has_new else tmp_path / "gone")
        return sample(busy={1: 0.9}, busy_exact=False, idle={1: 0.1}, tasks=[task("server", {1: 0.9}, new)])

    sampled(monkeypatch)
    monkeypatch.setattr(isolation, "take", take_meanwhile)
    report = isolation_report(node, 5, 1.0)
    (row,) = report["containers"]
    assert (row["container"], row["verdict"], row["own_percent"], row["by"]) == ("server", None, None, [])
    assert report["findings"] == []
    assert report["notes"] == ["container shop/db-0/server ended or began during the sample: it has no verdict"]
    assert report["note_checks"] == ["isolation-unmeasured"]


@pytest.mark.parametrize("moves", [False, True])
def test_cpus_that_change_hands_accuse_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moves: bool) -> None:
    """As the policy dynamic lets them."""
    node, own = make_node(tmp_path), "%s/cri-containerd-%s.scope" % (DATABASE, OWN)
    web = "%s/cri-containerd-%s.scope" % (WEB, SHARED)
    take_over(tmp_path, {("uid-db", "server"): "1"})

    def take_meanwhile(*_arguments: object) -> Sample:
        if moves:
            promise(tmp_path, {("uid-db", "server"): "0"}, "")
        tasks = [task("server", {1: 0.4}, own), task("app", {1: 0.4}, web)]
        return sample(busy={1: 0.8}, busy_exact=False, idle={1: 0.2}, tasks=tasks)

    sampled(monkeypatch)
    monkeypatch.setattr(isolation, "take", take_meanwhile)
    report = isolation_report(node, 5, 1.0)
    (row,) = report["containers"]
    assert (row["container"], row["verdict"]) == ("server", None if moves else "disturbed")
    assert len(report["findings"]) == (not moves)
    text = "container shop/db-0/server got or lost CPUs during the sample: it has no verdict"
    assert report["notes"] == ([text] if moves else [])


@pytest.mark.parametrize(("cpu_seconds", "is_said"), [(0.1, False), (0.1234, True)])
def test_a_measurement_that_takes_too_much_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cpu_seconds: float, is_said: bool
) -> None:
    sampled(monkeypatch, observer=Observer(1, CPUSet((0,)), cpu_seconds, 1, 4237, 2002))
    notes = isolation_report(make_node(tmp_path), 5, 1.0)["notes"]
    text = "the measurement took 1.23 % of a CPU, not 1.0 % at most: there are 4237 tasks and 2002 cgroups; give more"
    assert notes == ([text + " seconds"] if is_said else [])


CPUSETS_ALONE = HYBRID._replace(mounts=tuple(line for line in HYBRID.mounts if "cpuacct" not in line))
NO_COUNTERS = CPUSETS_ALONE._replace(mounts=CPUSETS_ALONE.mounts[:-1])


@pytest.mark.parametrize(
    ("style", "of_v1", "words"),
    [
        (HYBRID, True, ()),
        (
            HYBRID_V2,
            True,
            ("version 2 of cgroups at /sys/fs/cgroup/unified", "counted in version 1 at /sys/fs/cgroup/cpu"),
        ),
        (
            CPUSETS_ALONE,
            False,
            ("version 1 of cgroups at /sys/fs/cgroup/cpuset", "in version 2 at /sys/fs/cgroup/unified"),
        ),
        (
            NO_COUNTERS,
            False,
            ("version 1 of cgroups at /sys/fs/cgroup/cpuset", "CPU time is counted for cgroups nowhere"),
        ),
    ],
)
def test_controllers_split_over_both_versions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, style: Style, of_v1: bool, words: tuple[str, ...]
) -> None:
    node = make_node(tmp_path, style=style)
    sampled(monkeypatch, cgroups=[CgroupTime("", {})] if of_v1 else None)
    report = isolation_report(node, 5, 1.0)
    assert [row["id"] for row in report["containers"]] == [OWN]
    assert len(report["notes"]) == (1 if words else 0)
    for word in words:
        assert word in report["notes"][0]
        assert report["notes"][0].startswith("the controllers are split: ")


def test_a_damaged_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node = make_node(tmp_path)
    (tmp_path / "var/lib/kubelet/cpu_manager_state").write_bytes(b"\xff{")
    sampled(monkeypatch)
    report = isolation_report(node, 5, 1.0)
    assert (report["containers"], report["note_checks"]) == ([], ["isolation-unmeasured"])
    assert "cpu_manager_state: cannot be read" in report["notes"][0]


def test_a_configuration_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node = make_node(tmp_path)
    (tmp_path / "var/lib/kubelet/config.yaml").write_bytes(b"\xff: [")
    sampled(monkeypatch)
    report = isolation_report(node, 5, 1.0)
    assert report["containers"][0]["verdict"] == "idle"
    assert "which containers run cannot be seen" in report["notes"][0]
