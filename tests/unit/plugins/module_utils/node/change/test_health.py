# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/node/change/health.py."""

from __future__ import annotations

import os
import re
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cgroup.hierarchy import parent_of
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.errors import NodeError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.kubelet.file.configuration import (
    KubeletConfiguration,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.change import health
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.change.health import (
    Answer,
    Life,
    Watch,
    checkpoint_complaint,
    containers_complaint,
    find_life,
    healthz_complaint,
    healthz_urls,
    last_words,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import write_checkpoint
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.tree import Tree
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

    def watch(self, seconds: float = 20, timeout: float = 60) -> Answer:
        return Watch(self.node(), seconds, timeout, lambda: self.now, self.sleep).watch()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_a_kubelet_that_lives(machine: Machine) -> None:
    machine.live(7)
    answer = machine.watch()
    assert answer == Answer("", Life(7, "100"), 20.0)
    assert machine.now == 20
    assert answer.to_dict() == {"pid": 7, "seconds": 20.0}
    assert answer._replace(seconds=20.16).to_dict()["seconds"] == 20.2


def test_the_time_counts_from_the_beginning_of_the_watch(machine: Machine) -> None:
    """A node's clock has run for long."""
    machine.now = 1000
    assert machine.watch() == Answer("no kubelet runs", None, 0.0)
    assert machine.now == 1060
    watch = Watch(machine.node(), 20, 60, lambda: machine.now, machine.sleep)
    machine.sleep(7)
    assert watch.passed() == 17


def test_a_kubelet_that_comes_late(machine: Machine) -> None:
    machine.events[30] = lambda: machine.live(7)
    assert machine.watch() == Answer("", Life(7, "100"), 20.0)
    assert machine.now == 50


def test_a_kubelet_that_dies_late(machine: Machine) -> None:
    machine.live(7)
    machine.events[15] = lambda: machine.die(7)
    answer = machine.watch()
    assert answer == Answer("the kubelet did not stay: process 7 ended, none runs", None, 0.0)
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


def test_no_kubelet_at_all(machine: Machine) -> None:
    assert machine.watch() == Answer("no kubelet runs", None, 0.0)
    assert machine.now == 60


def test_no_kubelet_is_not_well_for_no_time_either(machine: Machine) -> None:
    assert machine.watch(seconds=0).complaint == "no kubelet runs"
    machine.live(7)
    machine.now = 0
    assert machine.watch(seconds=0) == Answer("", Life(7, "100"), 0.0)


def test_a_kubelet_that_does_not_answer(machine: Machine) -> None:
    """Its checkpoint alone says nothing: it may be of the kubelet before."""
    machine.live(7)
    with HTTPServer(("127.0.0.1", 0), Handler) as stranger:
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
    assert machine.watch() == Answer("", Life(7, "100"), 20.0)
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
    with pytest.raises(NodeError, match="no kubelet is found here"):
        machine.watch()


def test_a_process_of_which_only_the_line_is_saved(machine: Machine) -> None:
    machine.live(7)
    (machine.root / "proc/7/stat").unlink()
    assert find_life(machine.node()) == Life(7, "")
    (machine.root / "proc/7/stat").mkdir()
    assert find_life(machine.node()) == Life(7, "")


@pytest.mark.parametrize(("count", "started"), [(19, ""), (20, "100")])
def test_the_start_of_a_process_is_the_20th_field_behind_its_name(machine: Machine, count: int, started: str) -> None:
    machine.live(7)
    fields = [*["0"] * 19, "100"][:count]
    (machine.root / "proc/7/stat").write_text("7 (kubelet) %s\n" % " ".join(fields), encoding="ascii")
    assert find_life(machine.node()) == Life(7, started)


# --- containers -------------------------------------------------------------------------------------

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
    assert machine.watch() == Answer("", Life(7, "100"), 30.0)


# --- /healthz ---------------------------------------------------------------------------------------


class Handler(BaseHTTPRequestHandler):
    answer = (200, b"ok")

    def do_GET(self) -> None:
        status, body = self.answer if self.path == "/healthz" else (404, b"")
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002, its name
        """Nothing."""


class Server6(HTTPServer):
    address_family = socket.AF_INET6


@pytest.fixture
def server() -> Iterator[HTTPServer]:
    yield from serving(HTTPServer(("127.0.0.1", 0), type("Mine", (Handler,), {})))


@pytest.fixture
def server6() -> Iterator[HTTPServer]:
    yield from serving(Server6(("::1", 0), Handler))


def serving(server: HTTPServer) -> Iterator[HTTPServer]:
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def complaint(values: dict[str, Any]) -> str:
    return healthz_complaint(KubeletConfiguration("", values, "config.yaml"))


@pytest.mark.parametrize("address", [{}, {"healthzBindAddress": "127.0.0.1"}, {"healthzBindAddress": "0.0.0.0"}])
def test_healthz(server: HTTPServer, address: dict[str, str]) -> None:
    port = server.server_address[1]
    assert complaint({"healthzPort": port, **address}) == ""
    server.RequestHandlerClass.answer = (500, b"[-]syncloop failed\n")  # type: ignore[attr-defined]
    expected = "http://127.0.0.1:%d/healthz says 500 [-]syncloop failed" % port
    assert complaint({"healthzPort": port, **address}) == expected


def test_healthz_that_nobody_answers(server: HTTPServer) -> None:
    with HTTPServer(("127.0.0.1", 0), Handler) as stranger:
        port = stranger.server_address[1]
    assert complaint({"healthzPort": port}).startswith("http://127.0.0.1:%d/healthz does not answer: " % port)


def test_an_answer_is_cut_and_may_hold_any_bytes(server: HTTPServer) -> None:
    server.RequestHandlerClass.answer = (500, b"\xff" + b"x" * 300)  # type: ignore[attr-defined]
    assert complaint({"healthzPort": server.server_address[1]}).endswith(" says 500 \ufffd" + "x" * 199)


def test_healthz_that_is_switched_off() -> None:
    assert complaint({"healthzPort": 0}) == ""


def test_healthz_on_the_other_loopback_address(server6: HTTPServer) -> None:
    """As of k3s on a node with IPv6 alone, which does not say so."""
    port = server6.server_address[1]
    assert complaint({"healthzPort": port}) == ""
    assert complaint({"healthzPort": port, "healthzBindAddress": "127.0.0.1"}) != ""


@pytest.mark.parametrize("address", ["::1", "::"])
def test_healthz_at_an_address_of_ipv6(server6: HTTPServer, address: str) -> None:
    port = server6.server_address[1]
    assert complaint({"healthzPort": port, "healthzBindAddress": address}) == ""
    server6.RequestHandlerClass = type("Mine", (Handler,), {"answer": (500, b"no")})
    expected = "http://[::1]:%d/healthz says 500 no" % port
    assert complaint({"healthzPort": port, "healthzBindAddress": address}) == expected


def test_healthz_at_an_address_in_brackets(server6: HTTPServer) -> None:
    """The kubelet puts it into brackets itself, and cannot listen there; see net.JoinHostPort."""
    port = server6.server_address[1]
    assert complaint({"healthzPort": port, "healthzBindAddress": "[::1]"}) == (
        "healthzBindAddress: the kubelet cannot listen at '[::1]'; write it without brackets"
    )


@pytest.mark.parametrize(
    ("values", "urls"),
    [
        ({}, ["http://127.0.0.1:10248/healthz", "http://[::1]:10248/healthz"]),
        ({"healthzBindAddress": "fe80::1", "healthzPort": 7}, ["http://[fe80::1]:7/healthz"]),
        ({"healthzBindAddress": "10.0.0.1"}, ["http://10.0.0.1:10248/healthz"]),
        ({"healthzPort": 0}, []),
    ],
)
def test_where_it_answers(values: dict[str, Any], urls: list[str]) -> None:
    assert healthz_urls(KubeletConfiguration("", values, "config.yaml")) == urls


def test_what_it_waits_for(machine: Machine) -> None:
    node = machine.node()
    assert Watch(node, 20, 60).conditions() == {
        "seconds": 20,
        "timeout": 60,
        "healthz": [],
        "checkpoint": node.tree.path(node.checkpoint_path),
        "cpu_manager_policy": "static",
    }


def test_the_default_port_of_healthz(monkeypatch: pytest.MonkeyPatch, server: HTTPServer) -> None:
    monkeypatch.setattr(health, "_HEALTHZ_PORT", server.server_address[1])
    assert complaint({}) == complaint({"healthzPort": None}) == ""


# --- logs -------------------------------------------------------------------------------------------


def test_last_words_tell_why(tmp_path: Path) -> None:
    file = tmp_path / "kubelet.log"
    reason = 'E1 kubelet.go:1 "Failed to start ContainerManager" err="start cpu manager error: ..."'
    lines = ["line %d" % number for number in range(100)]
    file.write_text("\n".join([*lines[:50], reason, *lines[50:]]) + "\n", encoding="utf-8")
    assert last_words("kubelet", 10, str(file)) == [reason]
    file.write_text("\n".join(lines) + "\n\n", encoding="utf-8")
    assert last_words("kubelet", 10, str(file)) == lines[-15:]


def test_the_last_lines_that_tell_why(tmp_path: Path) -> None:
    file = tmp_path / "kubelet.log"
    lines = ["E%d command failed" % number for number in range(20)]
    file.write_text("\n".join([*lines, "the end"]), encoding="utf-8")
    assert last_words("kubelet", 10, str(file)) == lines[-15:]


def test_only_the_end_of_a_big_log_is_read(tmp_path: Path) -> None:
    """Its last 64 KiB, which may begin anywhere, also within a character."""
    file = tmp_path / "kubelet.log"
    before, first, last = b"E1 command failed\n", b"E2 command failed\n", b"\xff E3 command failed\n"
    filling = b"x" * ((1 << 16) - len(first) - len(last) - 1) + b"\n"
    file.write_bytes(before + first + filling + last)
    assert last_words("kubelet", 10, str(file)) == ["E2 command failed", "\ufffd E3 command failed"]
    file.write_bytes(first)
    assert last_words("kubelet", 10, str(file)) == ["E2 command failed"]


def test_the_journal_of_systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = tmp_path / "journalctl"
    command.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n', encoding="ascii")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", "%s:%s" % (tmp_path, os.environ["PATH"]))
    begin = int(time.time())
    unit, since, *others = last_words("k3s", 1000)
    assert unit == "--unit=k3s"
    assert begin - 1000 <= int(since.replace("--since=@", "")) <= time.time() - 1000
    assert others == ["--output=cat", "--no-pager", "--lines=300"]


def test_no_words(tmp_path: Path) -> None:
    assert last_words("kubelet", 10, str(tmp_path / "missing")) == []
