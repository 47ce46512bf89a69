# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How many lines a change of a fleet prints, with the callback and the settings of Ansible itself."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.tests.support.numbers import how_many

from .conftest import Run, ansible_playbook

COUNT = how_many("LINES_OF", 8, 60)
# {playbook: lines for each node, lines beside these}. Ansible prints a line of a node for each of its tasks, which are
# three, and one in the end. A batch of a change has seven lines beside these, and there are five of them at most.
MOST = {
    "rollout": (4, 110),
    "rollout --check": (4, 110),
    "rollback": (4, 110),
    # Nothing is to be changed.
    "repair": (3, 60),
}


@pytest.fixture(scope="module")
def runs(pristine_fleet: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    """Return the runs of the playbooks on nodes of two kinds: all nodes change, and change back."""
    directory = tmp_path_factory.mktemp("lines")
    wanted = {
        "kubelet_cpu_manager_policy": "static",
        "kubelet_reserved_system_cpus": "0",
        "kubelet_drain": False,
        "kubelet_discard_assignments": True,
    }
    hosts: dict[str, dict[str, Any]] = {}
    for number in range(COUNT):
        root = directory / "nodes" / str(number)
        shutil.copytree(pristine_fleet / ("edge", "xeon")[number % 2], root, symlinks=True)
        hosts["node-%02d" % number] = {"kubelet_node_root": str(root), **wanted}
    (directory / "ansible.cfg").touch()
    found = {}
    for command in ("rollout --check", "rollout", "repair", "rollback"):
        playbook, *arguments = command.split()
        settings = {"ANSIBLE_CONFIG": str(directory / "ansible.cfg")}
        name = "kubenode.cpu_manager." + playbook
        found[command] = ansible_playbook(directory, name, hosts, *arguments, environment=settings)
        assert found[command].status == 0, found[command].account()
    return found


@pytest.mark.parametrize("command", MOST)
def test_a_change_of_a_fleet_prints_few_lines(runs: dict[str, Run], command: str) -> None:
    run = runs[command]
    for_each, beside = MOST[command]
    print("%s of %d nodes: %d lines" % (command, COUNT, run.output.count("\n")))
    assert run.output.count("\n") <= for_each * COUNT + beside, run.output


@pytest.mark.parametrize("command", MOST)
def test_a_change_skips_nothing_and_its_plan_says_once_what_holds_for_all(runs: dict[str, Run], command: str) -> None:
    assert "skipping: [" not in runs[command].output
    plan = runs[command].output.rpartition("PLAY [Plan the whole fleet")[2].partition("\nPLAY [")[0]
    assert plan.count("the version of the kubelet is not known") == 1
    assert COUNT <= 5 or "of node-[00-%02d]: the version of" % (COUNT - 1) in plan
