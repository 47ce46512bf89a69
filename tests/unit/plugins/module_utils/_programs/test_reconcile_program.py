# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_programs/reconcile_program.py."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._programs import reconcile_program
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._programs.reconcile_program import main
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import write_checkpoint
from ansible_collections.kubenode.cpu_manager.tests.machines.cgroups import (
    SYSTEMD,
    V1,
    container_files,
    pod_path,
    write_cgroups,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.foreign import KINDS, Foreign
from ansible_collections.kubenode.cpu_manager.tests.machines.tree import write_machine

README = Path(__file__).parents[5] / "roles" / "reconcile" / "README.md"
UID, ID = "0f3f7f0a-90a4-4b39-8a3e-6a9a3fd2f1c4", "a" * 64


def node(root: Path, cpus: str, above: str = "0-7") -> Path:
    """Return a node of eight CPUs whose one container is to have 2-3 and has others; give its file of CPUs.

    above: what the cgroups above it have.
    """
    pod = pod_path(SYSTEMD, UID, "Guaranteed")
    files = container_files(SYSTEMD, "containerd", pod, ID, cpus)
    whole = next(iter(files.values()))._replace(cpus=above, processes=())
    write_machine(root, "1s4c2t")
    write_cgroups(root, V1, {"kubepods.slice": whole, pod: whole, **files}, nodes="0")
    logs = root / "var/log/containers"
    logs.mkdir(parents=True)
    (logs / ("db-0_shop_postgres-%s.log" % ID)).touch()
    kubelet = root / "var/lib/kubelet"
    kubelet.mkdir(parents=True)
    state = State(CPUSet.parse("0-1,4-7"), {UID: {"postgres": CPUSet.parse("2-3")}})
    (kubelet / "cpu_manager_state").write_bytes(write_checkpoint("static", state))
    return next((root / V1.mount[1:]).rglob("*%s.scope" % ID)) / "cpuset.cpus"


STATE = 'kubenode_cpu_manager_reconcile_kubelet{state="%s"} 1'


def settings(root: Path, **more: object) -> list[str]:
    path = root / "settings.json"
    path.write_text(json.dumps({"root": str(root), **more}))
    return [str(path)]


def test_a_pass_tells_what_it_did(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = node(tmp_path, "0-7")
    figures = tmp_path / "cpu.prom"
    begin, began = time.time(), time.monotonic()
    assert main(settings(tmp_path, textfile=str(figures))) == 0
    duration = time.monotonic() - began
    said = "written: pod shop/db-0, container postgres: CPUs 0-7 to 2-3\n"
    assert capsys.readouterr().out == said
    # The page of the role shows it.
    assert "```text\n%s```\n" % said in README.read_text("utf-8")
    assert file.read_text().strip() == "2-3"
    lines = [line for line in figures.read_text().splitlines() if not line.startswith("#")]
    assert lines[0] == "kubenode_cpu_manager_reconcile_success 1"
    seconds = dict(line.split() for line in lines[1:3])
    assert begin - 1 <= float(seconds["kubenode_cpu_manager_reconcile_timestamp_seconds"]) <= time.time() + 1
    assert 0 <= float(seconds["kubenode_cpu_manager_reconcile_duration_seconds"]) <= duration + 0.01
    assert lines[3] == "kubenode_cpu_manager_reconcile_checkpoint 1"
    assert [line for line in lines if line.endswith(" 1") and "_kubelet{" in line] == [STATE % "stopped"]
    assert lines[7:] == [
        'kubenode_cpu_manager_reconcile_containers{result="%s"} %d' % row
        for row in (("kept", 0), ("written", 1), ("failed", 0), ("skipped", 0))
    ]
    assert figures.stat().st_mode & 0o777 == 0o644
    # Nothing to do, nothing to say, and the figures follow.
    assert main(settings(tmp_path, textfile=str(figures))) == 0
    assert capsys.readouterr().out == ""
    assert 'result="kept"} 1\n' in figures.read_text()
    # What the container can read of its CPUs.
    published = json.loads((tmp_path / "run/kubenode/cpus" / UID / "postgres.json").read_text())
    assert (published["cpus"], published["effective"], published["exclusive"]) == ("2-3", "2-3", True)
    # Once a minute or more often: without a backup.
    assert [path.name for path in tmp_path.glob("cpu.prom*")] == ["cpu.prom"]


def test_a_pass_that_finds_no_checkpoint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    node(tmp_path, "0-7")
    (tmp_path / "var/lib/kubelet/cpu_manager_state").unlink()
    figures = tmp_path / "cpu.prom"
    assert main(settings(tmp_path, textfile=str(figures))) == 0
    assert "cpu_manager_state: no checkpoint there" in capsys.readouterr().out
    assert "kubenode_cpu_manager_reconcile_checkpoint 0\n" in figures.read_text()


def test_a_pass_that_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = node(tmp_path, "0-7")
    checkpoint = tmp_path / "var/lib/kubelet/cpu_manager_state"
    checkpoint.write_bytes(checkpoint.read_bytes().replace(b"0-1,4-7", b"0-1,4-6"))
    figures = tmp_path / "cpu.prom"
    assert main(settings(tmp_path, textfile=str(figures))) == 1
    assert "is damaged, and no cpuset was written" in capsys.readouterr().out
    assert "kubenode_cpu_manager_reconcile_success 0\n" in figures.read_text()
    assert file.read_text().strip() == "0-7"


def test_figures_that_cannot_be_written_are_a_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    node(tmp_path, "2-3")
    assert main(settings(tmp_path, textfile=str(tmp_path / "nowhere" / "cpu.prom"))) == 1
    assert "error: " in capsys.readouterr().out


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "device" or not os.geteuid()])
def test_whatever_stands_in_the_place_of_the_figures(kind: str, tmp_path: Path) -> None:
    """The directory of the figures belongs to another user, who has put it there."""
    foreign = Foreign(tmp_path)
    foreign.put(kind)
    file = node(tmp_path, "0-7")
    assert main(settings(tmp_path, textfile=str(foreign.figures))) == 0
    assert file.read_text().strip() == "2-3"
    foreign.check(b"kubenode_cpu_manager_reconcile_success 1\n")


def test_a_link_in_the_place_of_the_directory_of_the_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    foreign = Foreign(tmp_path)
    foreign.directory.rmdir()
    foreign.directory.symlink_to(foreign.journal.parent)
    file = node(tmp_path, "0-7")
    assert main(settings(tmp_path, textfile=str(foreign.figures))) == 1
    assert "error: %s: the link 'textfiles'" % foreign.directory in capsys.readouterr().out
    assert file.read_text().strip() == "2-3"
    foreign.check_journal()


def test_a_pass_without_figures(tmp_path: Path) -> None:
    file = node(tmp_path, "0-7")
    assert main(settings(tmp_path)) == 0
    assert file.read_text().strip() == "2-3"


def test_a_pass_tells_what_it_widened(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = node(tmp_path, "0", above="0-1")
    assert main(settings(tmp_path)) == 0
    assert file.read_text().strip() == "2-3"
    assert capsys.readouterr().out.splitlines() == [
        "widened: kubepods.slice: 0-1 to 0-3",
        "widened: %s: 0-1 to 0-3" % pod_path(SYSTEMD, UID, "Guaranteed"),
        "written: pod shop/db-0, container postgres: CPUs 0 to 2-3",
    ]


def test_a_pass_tells_what_failed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = node(tmp_path, "0-7")
    nested = file.parent / "nested"
    nested.mkdir()
    for path in file.parent.glob("cpuset.*"):
        (nested / path.name).write_bytes(path.read_bytes())
    (nested / "cgroup.procs").touch()
    figures = tmp_path / "cpu.prom"
    assert main(settings(tmp_path, textfile=str(figures))) == 1
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("failed: pod shop/db-0, container postgres: CPUs 0-7 to 2-3: ")
    assert "nested has 0-7" in line
    text = figures.read_text()
    assert "kubenode_cpu_manager_reconcile_success 0\n" in text
    assert 'result="failed"} 1\n' in text


def test_a_container_that_nobody_names_is_told_by_its_id(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    node(tmp_path, "0-7")
    for log in (tmp_path / "var/log/containers").iterdir():
        log.unlink()
    checkpoint = tmp_path / "var/lib/kubelet/cpu_manager_state"
    checkpoint.write_bytes(write_checkpoint("static", State(CPUSet.parse("0-6"), {})))
    assert main(settings(tmp_path)) == 0
    assert capsys.readouterr().out == "written: pod %s, container %s: CPUs 0-7 to 0-6\n" % (UID, ID)


def test_a_kubelet_elsewhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = node(tmp_path, "0-7")
    (tmp_path / "data").mkdir()
    (tmp_path / "var/lib/kubelet").rename(tmp_path / "data/kubelet")
    assert main(settings(tmp_path, kubelet_root="/data/kubelet")) == 0
    assert file.read_text().strip() == "2-3"
    capsys.readouterr()
    configuration = tmp_path / "etc/kubelet.yaml"
    configuration.parent.mkdir()
    configuration.touch()
    assert main(settings(tmp_path, kubelet_root="/data/kubelet", config_path="/etc/kubelet.yaml")) == 1
    assert capsys.readouterr().out.startswith("error: %s: the file is empty" % configuration)


@pytest.mark.parametrize(
    ("more", "endpoints"),
    [
        ({}, ["unix:///run/crio/crio.sock"]),
        ({"use_runtime": True, "runtime_endpoint": "unix:///run/other.sock"}, ["unix:///run/other.sock"]),
        ({"use_runtime": False}, []),
    ],
)
def test_the_runtime_that_is_used(
    tmp_path: Path, more: dict[str, object], endpoints: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a live node alone there is one."""
    node(tmp_path, "0-7")
    (tmp_path / "var/lib/kubelet/config.yaml").write_text(
        "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
        "containerRuntimeEndpoint: unix:///run/crio/crio.sock\n"
    )
    used: list[str] = []
    monkeypatch.setattr(reconcile_program, "find_crictl", lambda _tree, endpoint: used.append(endpoint))
    assert main(settings(tmp_path, **more)) == 0
    assert used == endpoints


@pytest.mark.parametrize("text", [None, "{", "{}", "[]", '{"root": "relative"}'])
def test_settings_that_cannot_be_read(tmp_path: Path, text: str | None, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = []
    if text is not None:
        path = tmp_path / "settings.json"
        path.write_text(text)
        arguments = [str(path)]
    assert main(arguments) == 2
    assert capsys.readouterr().out.startswith("usage: ")
