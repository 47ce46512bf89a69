# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs that read nodes with secrets all over: none is printed, even with -vvv, none logged, and none written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.tests.cluster.syslog import SystemLog
from ansible_collections.kubenode.cpu_manager.tests.machines.secretive import NODES, Secrets
from ansible_collections.kubenode.cpu_manager.tests.support.numbers import IS_FULL
from ansible_collections.kubenode.cpu_manager.tests.unit.plugins.module_utils._node.test_secrets import members

from .conftest import ansible_playbook

# Those that others do not bring; with FULL=1 each that asks no API server.
PLAYBOOKS = ["save", "drift_report", "rollout"]
PLAYBOOKS += ["cache", "housekeeping", "plan_changes", "reconcile", "repair", "rollback", "verify"] * IS_FULL
# What writes something for each node.
WRITING = ("save", "drift_report")
WANTED = {"kubelet_cpu_manager_policy": "static", "kubelet_reservation": {"count": 1}, "kubelet_drain": False}


@pytest.mark.parametrize("playbook", PLAYBOOKS)
def test_no_secret_is_printed_logged_or_written(tmp_path: Path, playbook: str) -> None:
    secrets = Secrets()
    hosts: dict[str, dict[str, Any]] = {}
    for name, make in NODES.items():
        make(tmp_path / "nodes" / name, secrets)
        hosts[name] = {"kubelet_node_root": str(tmp_path / "nodes" / name)}
        hosts[name].update({} if playbook in WRITING else WANTED)
    options = ["-vvv"] if playbook in WRITING else ["-vvv", "--check", "--diff"]
    with SystemLog(tmp_path / "syslog") as log:
        run = ansible_playbook(tmp_path / "run", "kubenode.cpu_manager." + playbook, hosts, *options, prefix=log.prefix)
    assert "Invoked with" in log.text, run.account()
    texts = {"output": run.output, "log": log.text}
    files = [path for path in (tmp_path / "run").rglob("*") if path.is_file()]
    assert len(files) > len(NODES) * (playbook in WRITING), run.account()
    for path in files:
        content = path.read_bytes()
        parts = members(content).values() if path.name.endswith(".tar.gz") else [content]
        texts[str(path.relative_to(tmp_path))] = b"".join(parts).decode("utf-8", "replace")
    assert {(name, secret) for name, text in texts.items() for secret in secrets.given if secret in text} == set()
