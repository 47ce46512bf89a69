# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a kubelet stays well for a time: its process, its checkpoint and its containers."""

from __future__ import annotations

import re
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Callable

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import NodeError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._cgroup.hierarchy import parent_of
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._rollout import health
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._rollout.health import (
    Health,
    HealthWatch,
    ProcessLife,
    checkpoint_complaint,
    containers_complaint,
    find_life,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import write_checkpoint
from ansible_collections.kubenode.cpu_manager.tests.machines.cgroups import (
    SYSTEMD,
    V1,
    Files,
    container_files,
    pod_path,
    write_cgroups,
)

HEADER = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
LINE = "/usr/bin/kubelet\0--config=/var/lib/kubelet/config.yaml\0"


class Machine:
    """A saved node with a clock of its own: at each second something may happen to it."""

    def __init__(self, root: Path) -> None:
        self.root, self.now = root, 0.0
        self.events: dict[float, Callable[[], None]] = {}
        (root / "var/lib/kubelet").mkdir(parents=True)
        (root / "proc").mkdir()
        self.configure("cpuManagerPolicy: static\nhealthzPort: 0\n")
        self.keep("static")

    def configure(self, text: str) -> None:
        (self.root / "var/lib/kubelet/config.yaml").write_text(HEADER + text, encoding="utf-8")

    def keep(self, policy: str) -> None:
        content = write_checkpoint(policy, State(CPUSet.parse("0-3"), {}))
        (self.root / "var/lib/kubelet/cpu_manager_state").write_bytes(content)

    def live(self, pid: int, started: int = 100) -> None:
        process = self.root / "proc" / str(pid)
        process.mkdir(exist_ok=True)
        (process / "cmdline").write_text(LINE, encoding="ascii")
        fields = ["0"] * 19 + [str(started), "0"]
        (process / "stat").write_text("%d (kube) let) %s\n" % (pid, " ".join(fields)), encoding="ascii")

    def die(self, pid: int) -> None:
        for file in (self.root / "proc" / str(pid)).iterdir():
            file.unlink()
        (self.root / "proc" / str(pid)).rmdir()

    def node(self) -> Node:
        return Node(Tree(str(self.root)))

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        for moment in sorted(moment for moment in self.events if moment <= self.now):
            self.events.pop(moment)()

    def watch(self, seconds: float = 20, timeout: float = 60) -> Health:
        return HealthWatch(self.node(), seconds, timeout, lambda: self.now, self.sleep).watch()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_a_kubelet_that_lives(machine: Machine) -> None:
    machine.live(7)
    answer = machine.watch()
    assert answer == Health("", ProcessLife(7, "100"), 20.0)
    assert machine.now == 20
    assert answer.to_dict() == {"pid": 7, "seconds": 20.0}
    assert answer._replace(seconds=20.16).to_dict()["seconds"] == 20.2


def test_the_time_counts_from_the_beginning_of_the_watch(machine: Machine) -> None:
    """A node's clock has run for long."""
    machine.now = 1000
    assert machine.watch() == Health("no kubelet runs", None, 0.0)
    assert machine.now == 1060
    watch = HealthWatch(machine.node(), 20, 60, lambda: machine.now, machine.sleep)
    machine.sleep(7)
    assert watch.passed() == 17


def test_a_kubelet_that_comes_late(machine: Machine) -> None:
    machine.events[30] = lambda: machine.live(7)
    assert machine.watch() == Health("", ProcessLife(7, "100"), 20.0)
    assert machine.now == 50


def test_a_kubelet_that_dies_late(machine: Machine) -> None:
    machine.live(7)
    machine.events[15] = lambda: machine.die(7)
    answer = machine.watch()
    assert answer == Health("the kubelet did not stay: process 7 ended, none runs", None, 0.0)
    assert machine.now == 15
    assert answer.to_dict()["pid"] is None


@pytest.mark.parametrize(("pid", "started"), [(8, 100), (7, 900)], ids=["another process", "its id again"])
def test_a_kubelet_that_is_started_again(machine: Machine, pid: int, started: int) -> None:
    machine.live(7)

    def again() -> None:
        machine.die(7)
        machine.live(pid, started)

    machine.events[10] = again
    assert machine.watch().complaint == "the kubelet did not stay: process 7 ended, now it is process %d" % pid


def test_no_answer_outlasts_the_timeout(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """At its end there is a second left, and no more: the kubelet may be well since this moment."""
    machine.live(7)
    given = []

    def slow(_configuration: object, patience: float) -> str:
        given.append(patience)
        machine.now += patience
        return "timed out"

    monkeypatch.setattr(health, "healthz_complaint", slow)
    assert machine.watch(seconds=20, timeout=18).complaint == "timed out"
    assert given == [5.0, 5.0, 5.0, 1.5, 1.0]
    assert machine.now <= 18 + 1 + 0.5


def test_no_kubelet_at_all(machine: Machine) -> None:
    assert machine.watch() == Health("no kubelet runs", None, 0.0)
    assert machine.now == 60


def test_no_kubelet_is_not_well_for_no_time_either(machine: Machine) -> None:
    assert machine.watch(seconds=0).complaint == "no kubelet runs"
    machine.live(7)
    machine.now = 0
    assert machine.watch(seconds=0) == Health("", ProcessLife(7, "100"), 0.0)


def test_a_kubelet_that_does_not_answer(machine: Machine) -> None:
    """Its checkpoint alone says nothing: it may be of the kubelet before."""
    machine.live(7)
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as stranger:
        port = stranger.server_address[1]
    machine.configure("cpuManagerPolicy: static\nhealthzPort: %d\n" % port)
    assert machine.watch(timeout=1).complaint.startswith("http://127.0.0.1:%d/healthz does not answer: " % port)


def test_a_checkpoint_of_the_other_policy(machine: Machine) -> None:
    machine.live(7)
    machine.keep("none")
    place = str(machine.root / "var/lib/kubelet/cpu_manager_state")
    complaint = place + ": is of the policy none, and the configuration says static"
    assert machine.watch().complaint == complaint
    # Well only from when it is right, and then for all of the time.
    machine.now = 0
    machine.events[30] = lambda: machine.keep("static")
    assert machine.watch() == Health("", ProcessLife(7, "100"), 20.0)
    assert machine.now == 50


def test_a_checkpoint_that_is_not_written(machine: Machine) -> None:
    node = machine.node()
    Path(node.tree.path(node.checkpoint_path)).unlink()
    configuration = node.needed_configuration()
    assert checkpoint_complaint(node, configuration).endswith(": the kubelet has not written its checkpoint")


def test_too_short_a_time(machine: Machine) -> None:
    machine.events[50] = lambda: machine.live(7)
    assert machine.watch().complaint == "the kubelet was not well for 20 seconds on end within 60"


def test_a_node_without_a_configuration(machine: Machine) -> None:
    (machine.root / "var/lib/kubelet/config.yaml").unlink()
    with pytest.raises(NodeError, match="no kubelet runs here"):
        machine.watch()


def test_a_process_of_which_only_the_line_is_saved(machine: Machine) -> None:
    machine.live(7)
    (machine.root / "proc/7/stat").unlink()
    assert find_life(machine.node()) == ProcessLife(7, "")
    (machine.root / "proc/7/stat").mkdir()
    assert find_life(machine.node()) == ProcessLife(7, "")


@pytest.mark.parametrize(("count", "started"), [(19, ""), (20, "100")])
def test_the_start_of_a_process_is_the_20th_field_behind_its_name(machine: Machine, count: int, started: str) -> None:
    machine.live(7)
    fields = [*["0"] * 19, "100"][:count]
    (machine.root / "proc/7/stat").write_text("7 (kubelet) %s\n" % " ".join(fields), encoding="ascii")
    assert find_life(machine.node()) == ProcessLife(7, started)


OWN, OTHER = "a" * 64, "b" * 64


def run_container(root: Path, container: str, cpus: str, name: str = "") -> None:
    pod = pod_path(SYSTEMD, "uid-" + container[0], "Burstable")
    files = container_files(SYSTEMD, "containerd", pod, container, cpus)
    whole = Files("0-3", "0")
    write_cgroups(root, V1, {**dict.fromkeys(["kubepods.slice", parent_of(pod), pod], whole), **files}, "0-3", "0")
    if name:
        logs = root / "var/log/containers"
        logs.mkdir(parents=True, exist_ok=True)
        (logs / ("db-0_shop_%s-%s.log" % (name, container))).touch()


def test_containers_that_do_not_have_their_cpus(machine: Machine) -> None:
    """One that nobody names is called by its cgroup, and nothing is written."""
    assert containers_complaint(machine.node()) == ""
    run_container(machine.root, OWN, "2-3")
    run_container(machine.root, OTHER, "0-3")
    expected = "kubepods.slice/kubepods-burstable.slice/.* has CPUs 2-3 instead of 0-3"
    assert re.fullmatch(expected, containers_complaint(machine.node()))
    run_container(machine.root, OWN, "2-3", "app")
    run_container(machine.root, OTHER, "1", "sidecar")
    expected = "app has CPUs 2-3 instead of 0-3; sidecar has CPUs 1 instead of 0-3"
    assert containers_complaint(machine.node()) == containers_complaint(machine.node()) == expected


def test_a_checkpoint_that_is_damaged_says_nothing_of_containers(machine: Machine) -> None:
    run_container(machine.root, OWN, "1", "app")
    checkpoint = machine.root / "var/lib/kubelet/cpu_manager_state"
    checkpoint.write_bytes(b"{")
    assert containers_complaint(machine.node()).startswith("%s: is damaged" % checkpoint)


def test_a_kubelet_is_well_when_its_containers_have_their_cpus(machine: Machine) -> None:
    machine.live(7)
    run_container(machine.root, OWN, "1", "app")
    assert machine.watch().complaint == "app has CPUs 1 instead of 0-3"
    machine.now = 0
    machine.events[30] = lambda: run_container(machine.root, OWN, "0-3")
    assert machine.watch() == Health("", ProcessLife(7, "100"), 30.0)


def test_what_it_waits_for(machine: Machine) -> None:
    node = machine.node()
    assert HealthWatch(node, 20, 60).conditions() == {
        "seconds": 20,
        "timeout": 60,
        "healthz": [],
        "checkpoint": node.tree.path(node.checkpoint_path),
        "cpu_manager_policy": "static",
    }
