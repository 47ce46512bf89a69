# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The modules on each Python that a node may have."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.tests.running.lacking import TOOL, lacking
from ansible_collections.kubenode.cpu_manager.tests.support import pythons

from .conftest import CopyOf, ansible_playbook, play, task
from .test_modules import WANTED


@pytest.mark.skipif(not pythons.installed(), reason="no Python of another version found")
def test_every_python_gives_the_same_answers(copy_of: CopyOf, tmp_path: Path) -> None:
    found = pythons.installed()
    hosts = {
        "python" + version: {"ansible_python_interpreter": str(python), "root": str(copy_of("xeon", version))}
        for version, python in found.items()
    }
    tasks = (
        task("cpu_topology_info", root="{{ root }}"),
        task("reserved_cpus", root="{{ root }}", method="kubelet", kube_reserved_cpu="1500m"),
        task("drift_info", root="{{ root }}", **WANTED),
        task("checkpoint", root="{{ root }}", discard_assignments=True, **WANTED),
        task("kubelet_config", root="{{ root }}", **WANTED),
        task("drift_info", root="{{ root }}", **WANTED),
    )
    run = ansible_playbook(tmp_path / "run", play(*tasks), hosts)
    assert run.status == 0, run.account()
    answers = []
    for host, results in run.results.items():
        topology, reserved, before, checkpoint, config, after = results
        assert (checkpoint["changed"], config["changed"]) == (True, True)
        assert (before["status"], after["status"]) == ("drift", "clean")
        found_there = [topology["topology"], reserved["reserved"], before["drift"], config["settings"]]
        # The drift says in which file.
        answers.append(json.dumps(found_there, sort_keys=True).replace(hosts[host]["root"], ""))
    assert len(answers) == len(found)
    for answer in answers[1:]:
        assert answer == answers[0]


@pytest.mark.parametrize("version", pythons.VERSIONS)
def test_no_python_is_left_out(version: str) -> None:
    """Neither here nor by ansible-test."""
    if version not in pythons.installed():
        lacking(TOOL, "no Python %s" % version)
    told = subprocess.run([pythons.installed()[version], "--version"], stdout=subprocess.PIPE, text=True, check=True)
    assert told.stdout.startswith("Python %s." % version)
