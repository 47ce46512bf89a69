# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The report reads the settings of the running kubelet through a real API server."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any, Iterator

import pytest
import yaml

from .control_plane import ControlPlane
from .fleet import NONE, Fleet
from .kubelet_node import CONFIG, STARTED, KubeletNode

pytestmark = pytest.mark.needs("ip")

REPORT = "kubenode.cpu_manager.drift_report"
# An API server refuses to pass requests on to 127.0.0.0/8. This one is meant for documentation, so nobody has it.
ADDRESS = "192.0.2.%d" % (os.getpid() % 250 + 1)


@pytest.fixture
def address() -> Iterator[str]:
    """Yield a further address of the loopback interface, which no packet leaves."""
    command = ["ip", "address", "%s", ADDRESS + "/32", "dev", "lo"]
    subprocess.run([word.replace("%s", "add") for word in command], check=True)
    yield ADDRESS
    subprocess.run([word.replace("%s", "del") for word in command], check=True)


@pytest.fixture
def node(fleet: Fleet, control_plane: ControlPlane, address: str) -> KubeletNode:
    """Return a node whose kubelet answers there, and was not restarted since its file was changed."""
    configuration = {**NONE, "address": address, "authentication": {"anonymous": {"enabled": True}}}
    node = KubeletNode(fleet.directory / "asked", "1s4c2t", configuration, control_plane=control_plane)
    fleet.nodes[node.name] = node
    node.start()
    node.wait_for(STARTED)
    fleet.wait_until_ready(node.name)
    values = yaml.safe_load(node.read(CONFIG) or b"")
    node.write(CONFIG, yaml.safe_dump({**values, "cpuManagerReconcilePeriod": "7s"}))
    return node


def report_of(fleet: Fleet, directory: Path, **variables: Any) -> dict[str, Any]:
    """Return what the report says of the only node."""
    settings = {
        "kubelet_cpu_manager_policy": "none",
        "kubelet_cpu_manager_reconcile_period": "7s",
        "drift_report_ask_kubelets": True,
        "drift_report_directory": str(directory),
        "drift_report_forms": ["json"],
        **variables,
    }
    run = fleet.run(REPORT, **settings)
    assert run.status == 0, run.output
    (shown,) = json.loads((directory / "drift.json").read_text(encoding="utf-8"))["nodes"]
    return dict(shown)


def test_the_running_kubelet_is_one_of_the_ways(fleet: Fleet, node: KubeletNode, tmp_path: Path) -> None:
    shown = report_of(fleet, tmp_path / "report")
    differing = [
        (finding["subject"], finding["wanted"], finding["found"])
        for finding in shown["findings"]
        if finding["check"] == "running-kubelet-differs"
    ]
    assert differing == [("cpu_manager_reconcile_period", "7s", "500ms")]
    (row,) = [row for row in shown["ways"] if row["subject"] == "cpu_manager_reconcile_period"]
    assert (row["files"], row["kubelet"]) == ("7s", "500ms")


def test_without_the_right_to_read_it(
    fleet: Fleet, node: KubeletNode, control_plane: ControlPlane, tmp_path: Path
) -> None:
    stranger = control_plane.kubeconfig("stranger")
    shown = report_of(fleet, tmp_path / "report", kubelet_kubeconfig=str(stranger))
    (note,) = [finding for finding in shown["findings"] if finding["check"] == "running-kubelet-unread"]
    assert "HTTP status 403" in json.dumps(note)
    assert "nodes/proxy" in json.dumps(note)
    assert not [finding for finding in shown["findings"] if finding["check"] == "running-kubelet-differs"]
