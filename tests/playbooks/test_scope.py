# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which hosts a playbook is about, and how many at a time: typos end it, and only nodes that change count."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from .conftest import CHECKOUT, CopyOf, ansible_playbook

SAVED = {"kubelet_node_root": "/nowhere"}


def test_every_play_asks_for_its_hosts() -> None:
    """One that names a pattern itself would take a mistyped one."""
    hosts = {
        "%s: %s" % (path.stem, play["hosts"])
        for path in (CHECKOUT / "playbooks").glob("*.yml")
        for play in yaml.safe_load(path.read_text(encoding="utf-8"))
        if "hosts" in play and "query('kubenode.cpu_manager.hosts'" not in play["hosts"]
    }
    assert hosts == {"report: localhost"}


@pytest.mark.parametrize(
    ("playbook", "variables", "message"),
    [
        (
            "rollout",
            {"cpu_manager_canaries": "canary"},
            "cpu_manager_canaries: the inventory has no host or",
        ),
        ("rollback", {"cpu_manager_serial": "ten"}, "cpu_manager_serial: 'ten' is no number of hosts"),
        (
            "drift_report",
            {"cpu_manager_hosts": "wrokers"},
            "cpu_manager_hosts: the inventory has no host or group",
        ),
    ],
)
def test_a_typo_ends_it_before_anything_is_read(
    playbook: str, variables: dict[str, Any], message: str, tmp_path: Path
) -> None:
    run = ansible_playbook(tmp_path, "kubenode.cpu_manager." + playbook, {"worker": SAVED}, "-e", json.dumps(variables))
    assert run.status != 0
    assert message in " ".join(run.output.split())
    assert run.results == {"worker": []}
    # No report of an earlier day is taken for one of this run.
    assert not (tmp_path / "drift-report").exists()


def test_the_first_batch_that_changes_anything_is_one_node(copy_of: CopyOf, tmp_path: Path) -> None:
    """Three hosts that need nothing stand before twenty that do. The first change fails, so it is the only one."""
    settings = {"kubelet_cpu_manager_policy": "static", "kubelet_reserved_system_cpus": "0", "kubelet_drain": False}
    quiet, changing = copy_of("edge", "quiet"), copy_of("edge", "changing")
    (quiet / "var/lib/kubelet/cpu_manager_state").unlink()
    hosts: dict[str, dict[str, Any]] = {"cp-%d" % number: {"kubelet_node_root": str(quiet)} for number in range(3)}
    for number in range(20):
        # Nothing writes: what would is refused by the service that is not there.
        hosts["w-%02d" % number] = {
            "kubelet_node_root": str(changing),
            "kubelet_manage_service": True,
            "kubelet_service": "no-such-service",
            **settings,
        }
    run = ansible_playbook(tmp_path / "run", "kubenode.cpu_manager.rollout", hosts)
    assert run.status != 0

    def with_task(text: str) -> list[str]:
        return [host for host, results in run.results.items() if any(text in row["task"] for row in results)]

    assert with_task("Stop the kubelet") == with_task("Change the node") == ["w-00"]
    # All were planned before.
    assert all(any("actions" in row for row in results) for results in run.results.values())
