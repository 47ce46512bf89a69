# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_dynamic/program.py."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.journal_file import CACHE, PROMISE
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._dynamic.agent import PassReport
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._dynamic.program import (
    DirectoryWatch,
    Program,
    _locked,
    run,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._programs.reconcile_program import main
from ansible_collections.kubenode.cpu_manager.tests.machines.elastic import ElasticNode, Pod
from ansible_collections.kubenode.cpu_manager.tests.machines.foreign import Foreign

DB, WEB = Pod("db", 2, "2-8"), Pod("web", 0, "", "Burstable")
SETTINGS = {"policy": "dynamic", "use_runtime": False}


class EndedError(Exception):
    pass


class Once(DirectoryWatch):
    """A wait that is noted, and ends the program."""

    def __init__(self) -> None:
        super().__init__([])
        self.waits: list[float] = []

    def wait(self, seconds: float) -> bool:
        self.waits.append(seconds)
        raise EndedError


def test_lines_and_figures(tmp_path: Path) -> None:
    node = ElasticNode(tmp_path)
    node.add(DB, WEB, Pod("large", 20))
    lines: list[str] = []
    figures = tmp_path / "cpu.prom"
    program = Program(node.agent(textfile=str(figures)), lines.append)
    _report, success = program.one_pass()
    assert success
    assert lines == [
        "pool: CPUs 0,2-8,10-15",
        "exclusive: pod db, container app: CPUs 1,9",
        "announce: pod db, container app: CPUs 1,9",
        "waiting: pod large, container app has no CPUs of its own yet",
    ]
    text = figures.read_text()
    values = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    prefix = "kubenode_cpu_manager_dynamic_"
    assert values[prefix + 'moves_total{what="exclusive"}'] == "1"
    assert values[prefix + 'cpus{pod_uid="db",container="app"}'] == "2"
    assert values[prefix + 'admitted_cpus{pod_uid="db",container="app"}'] == "2"
    assert (values[prefix + "shared_cpus"], values[prefix + "waiting"], values[prefix + "success"]) == ("14", "1", "1")
    assert float(values[prefix + "duration_seconds"]) >= 0
    # What is as it was is not told again.
    program.one_pass()
    assert len(lines) == 4
    assert prefix + "passes_total 2\n" in figures.read_text()


@pytest.mark.parametrize("is_of_kernel", [False, True])
def test_systemd_is_told_of_each_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_of_kernel: bool) -> None:
    """So it starts a program anew that hangs. The name of the socket may be one of the kernel's own."""
    path = "kubenode-%d" % os.getpid() if is_of_kernel else str(tmp_path / "notify")
    monkeypatch.setenv("NOTIFY_SOCKET", "@" + path if is_of_kernel else path)
    program = Program(ElasticNode(tmp_path / "node").agent(), lambda _line: None)
    before: list[list[bytes]] = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as systemd:
        systemd.bind("\0" + path if is_of_kernel else path)

        def one_pass() -> tuple[PassReport, bool]:
            before.append(told(systemd))
            return honest()

        honest = program.one_pass
        monkeypatch.setattr(program, "one_pass", one_pass)
        with pytest.raises(EndedError):
            program.run(Once())
        assert (before, told(systemd)) == ([[b"READY=1"]], [b"WATCHDOG=1"])
        monkeypatch.setattr(program, "one_pass", honest)
    # Nobody listens any more: systemd will see that the program does not tell.
    with pytest.raises(EndedError):
        program.run(Once())


def told(systemd: socket.socket) -> list[bytes]:
    found = []
    while True:
        try:
            found.append(systemd.recv(100))
        except BlockingIOError:
            return found


def test_each_pass_brings_the_caches_along(tmp_path: Path) -> None:
    node = ElasticNode(tmp_path)
    lines: list[str] = []
    program = Program(node.agent(), lines.append)
    assert program.one_pass()[1]
    journal = tmp_path / CACHE[1:]
    journal.parent.mkdir(parents=True)
    journal.write_text("{")
    assert not program.one_pass()[1]
    (line,) = (said for said in lines if said.startswith("error: "))
    assert str(journal) in line


def test_a_pass_that_is_refused_publishes(tmp_path: Path) -> None:
    node = ElasticNode(tmp_path, policy="static")
    node.add(DB)
    lines: list[str] = []
    figures = tmp_path / "cpu.prom"
    program = Program(node.agent(textfile=str(figures)), lines.append)
    for _pass in range(2):
        assert not program.one_pass()[1]
    (line,) = lines
    assert "only one of both can give out CPUs" in line
    assert (node.file("db")["by"], node.file("db")["effective"]) == ("kubelet", "0-15")
    assert "kubenode_cpu_manager_dynamic_failures_total 2\n" in figures.read_text()


@pytest.mark.parametrize("damage", ["{}", '{"version": 1%s}' % ("0" * 400)])
def test_a_damaged_promise_beside_another_owner(tmp_path: Path, damage: str) -> None:
    node = ElasticNode(tmp_path)
    node.add(DB)
    node.agent().one_pass()
    node.configure("0,8", "static")
    (tmp_path / PROMISE[1:]).write_text(damage)
    lines: list[str] = []
    assert not Program(node.agent(), lines.append).one_pass()[1]
    assert [line.partition(" ")[0] for line in lines] == ["error:", "error:"]
    assert "is damaged" in lines[1]
    assert node.file("db")["by"] == "kubelet"


def test_figures_that_cannot_be_written(tmp_path: Path) -> None:
    node = ElasticNode(tmp_path)
    node.add(DB)
    lines: list[str] = []
    assert not Program(node.agent(textfile=str(tmp_path / "no/such.prom")), lines.append).one_pass()[1]
    assert lines[-1].startswith("error: ")


@pytest.mark.parametrize("kind", ["fifo", "link", "hard link"])
def test_whatever_stands_in_the_place_of_the_figures(kind: str, tmp_path: Path) -> None:
    foreign = Foreign(tmp_path)
    foreign.put(kind)
    node = ElasticNode(tmp_path)
    node.add(DB)
    assert Program(node.agent(textfile=str(foreign.figures)), lambda _line: None).one_pass()[1]
    foreign.check(b"kubenode_cpu_manager_dynamic_success 1\n")


def test_it_waits_for_the_period_or_what_is_announced(tmp_path: Path) -> None:
    node = ElasticNode(tmp_path)
    node.add(DB, WEB)
    agent = node.agent(period="20s")
    watch = Once()
    with pytest.raises(EndedError):
        Program(agent, lambda _line: None).run(watch)
    for _period in range(3):
        node.work(20, {"db": 8.0, "web": 0.1})
        agent.one_pass()
    node.add(Pod("big", 10))
    with pytest.raises(EndedError):
        Program(agent, lambda _line: None).run(watch)
    # The node's time is past long since.
    assert watch.waits == [20.0, 0.0]


def test_once_and_release(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    node = ElasticNode(tmp_path)
    node.add(DB, WEB)
    settings = tmp_path / "settings.json"
    settings.write_text(json.dumps({"root": str(tmp_path), **SETTINGS}))
    assert main([str(settings), "release"]) == 0
    assert main([str(settings), "once"]) == 0
    assert node.sets() == {"db": "1,9", "web": "0,2-8,10-15"}
    settings.write_text(json.dumps({"root": str(tmp_path), "policy": "static"}))
    assert main([str(settings), "release"]) == 0
    assert node.sets() == {"db": "0-15", "web": "0-15"}
    assert not (tmp_path / PROMISE[1:]).exists()
    assert not list((tmp_path / "run").rglob("*.json"))
    assert main([str(settings), "release"]) == 0
    assert "error" not in capsys.readouterr().out


def test_release_removes_what_a_pass_of_the_policy_static_has_published(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """systemd takes more texts as a period than the settings do; with this policy, it alone reads it."""
    node = ElasticNode(tmp_path, policy="static")
    node.add(DB, WEB)
    settings = tmp_path / "settings.json"
    settings.write_text(
        json.dumps({"root": str(tmp_path), "policy": "static", "use_runtime": False, "period": "1week"})
    )
    main([str(settings)])
    before = node.sets()
    assert {path.name for path in (tmp_path / "run/kubenode/cpus").rglob("*.json")} == {"app.json"}
    assert main([str(settings), "release"]) == 0
    assert not list((tmp_path / "run/kubenode/cpus").rglob("*.json"))
    # A pod may have its own mounted.
    assert {path.name for path in (tmp_path / "run/kubenode/cpus").iterdir()} == {"db", "web"}
    assert node.sets() == before
    assert "error: settings" not in capsys.readouterr().out


def test_release_puts_quotas_back_and_leaves_cpusets_to_another_owner(tmp_path: Path) -> None:
    node = ElasticNode(tmp_path)
    node.add(DB, WEB)
    agent = node.agent()
    node.work_under(agent, 3, 10, {"db": 8.0, "web": 0.1})
    before = node.sets()
    assert node.quota("db") == "-1"
    node.configure("0,8", "static")
    assert run(Tree(str(tmp_path)), SETTINGS, ["release"]) == 0
    assert (node.quota("db"), node.quota("db", of_pod=True)) == ("200000", "200000")
    assert node.sets() == before


def test_who_comes_later_gets_the_node(tmp_path: Path) -> None:
    """The kubelet is changed to static under a program that works: it gives the quotas back and writes no more."""
    node = ElasticNode(tmp_path)
    node.add(DB, WEB)
    agent = node.agent()
    program = Program(agent, lambda _line: None)
    node.work_under(program, 3, 30, {"db": 8.0, "web": 0.1})
    before = node.sets()
    assert node.quota("db") == "-1"
    node.configure("0,8", "static")
    node.work(120, {})
    assert not program.one_pass()[1]
    assert (node.sets(), node.quota("db")) == (before, "200000")
    assert node.file("db")["by"] == "kubelet"
    assert not (tmp_path / PROMISE[1:]).exists()


def test_two_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    node = ElasticNode(tmp_path)
    node.add(DB)
    lock = _locked(Tree(str(tmp_path)))
    try:
        assert run(Tree(str(tmp_path)), SETTINGS, ["once"]) == 1
    finally:
        os.close(lock)
    assert "another program gives CPUs out" in capsys.readouterr().out
    assert node.sets() == {"db": "0-15"}
    assert run(Tree(str(tmp_path)), SETTINGS, ["once"]) == 0


def test_settings_that_are_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(Tree(str(tmp_path)), {"policy": "dynamic", "delay": "2h"}, []) == 2
    assert "delay" in capsys.readouterr().out
