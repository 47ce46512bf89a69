# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Each mistake of an operator's first week is met by one clear message, or is none; no node is changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from .bad_nodes import MACHINE, make_node
from .conftest import Run, ansible_playbook, fingerprint
from .first_week import ACCEPTED, HOSTS, RUNS, OfRun
from .test_mistakes import NOT_THEIRS


def test_there_are_sixty() -> None:
    assert len(HOSTS) + len(RUNS) >= 60


def unclear(said: str, failed: bool, wanted: str) -> str:
    """Return why something else was said, or not in the words of an operator; empty where it is as it should be."""
    if wanted == ACCEPTED:
        return "is refused: " + said if failed else ""
    if not failed:
        return "is accepted"
    # A list of failures of hosts, and the play's own text, may have it, too.
    if wanted not in " ".join(said.split()) or any(word in said for word in NOT_THEIRS):
        return said
    return ""


def failures_of(run: Run, host: str) -> list[str]:
    return [str(result["msg"]) for result in run.results[host] if result["outcome"] != "ok"]


def test_of_a_host(tmp_path: Path) -> None:
    hosts = {}
    for name, row in HOSTS.items():
        make_node(tmp_path / "nodes" / name, MACHINE)
        hosts[name] = {"kubelet_node_root": str(tmp_path / "nodes" / name), **row.variables}
    before = fingerprint(tmp_path / "nodes")
    # First, as the host that writes the report.
    run = ansible_playbook(
        tmp_path / "run",
        "kubenode.cpu_manager.drift_report",
        {"first": {"kubelet_node_root": str(tmp_path / "nodes" / "a-number-for-cpus")}, **hosts},
    )
    assert fingerprint(tmp_path / "nodes") == before
    said = {name: failures_of(run, name) for name in HOSTS}
    wrong = {name: unclear(" | ".join(said[name]), bool(said[name]), row.said) for name, row in HOSTS.items()}
    assert {name: why for name, why in wrong.items() if why} == {}


@pytest.mark.parametrize("name", RUNS)
def test_of_a_run(tmp_path: Path, name: str) -> None:
    row: OfRun = RUNS[name]
    make_node(tmp_path / "node", MACHINE)
    (tmp_path / "run").mkdir()
    for file, content in row.files.items():
        (tmp_path / "run" / file).write_text(content, encoding="utf-8")
    before = fingerprint(tmp_path / "node")
    host = {"kubelet_node_root": str(tmp_path / "node"), "kubelet_cpu_manager_reconcile_period": "7s", **row.variables}
    run = ansible_playbook(tmp_path / "run", "kubenode.cpu_manager." + row.playbook, {"node": host}, *row.arguments)
    assert fingerprint(tmp_path / "node") == before
    said = " | ".join(failures_of(run, "node")[:1]) or run.output
    assert unclear(said, run.status != 0, row.said) == ""
