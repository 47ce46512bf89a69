# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A fleet in three parts, each with a worker of ansible-runner, by the commands of the guide; one worker dies."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ansible.release import __version__

from ansible_collections.kubenode.cpu_manager.tests.collection_path import COLLECTIONS
from ansible_collections.kubenode.cpu_manager.tests.docs.pages import GUIDES, blocks
from ansible_collections.kubenode.cpu_manager.tests.playbooks.conftest import CopyOf, copy_of, pristine_fleet
from ansible_collections.kubenode.cpu_manager.tests.running.lacking import TOOL, lacking

from .tools import environment

__all__ = ("copy_of", "pristine_fleet")

# The same as that of the other tests.
WANTED = ("ansible-runner~=2.4", "ansible-core==%s" % __version__)
PARTS = ("eu", "us", "ap")
# Seconds, on a busy machine too.
PATIENCE = 180.0


@pytest.fixture(scope="module")
def variables() -> dict[str, str]:
    """Return the environment variables of a machine with ansible-runner and this collection."""
    try:
        programs = environment("runner", WANTED)
    except subprocess.CalledProcessError as error:
        lacking(TOOL, "no ansible-runner to install: %s" % error)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    path = "%s:%s" % (programs, os.environ["PATH"])
    return {**kept, "PATH": path, "ANSIBLE_COLLECTIONS_PATH": str(COLLECTIONS), "NO_COLOR": "1"}


def commands() -> tuple[str, str, str]:
    """Return what the guide says for the controller, a worker, and the controller again."""
    found = [block.text for block in blocks(GUIDES / "large_fleets.rst") if "ansible-runner" in block.text]
    transmit, worker, process = found
    return transmit, worker, process


def write_fleet(directory: Path, copy_of: CopyOf) -> None:
    """Write an inventory of all, and the directory of each part."""
    here = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    groups = {}
    for part in PARTS:
        hosts = {"worker-" + part: {"kubelet_node_root": str(copy_of("edge", part))}}
        groups[part] = {"hosts": hosts}
        for name in ("inventory", "project"):
            (directory / "parts" / part / name).mkdir(parents=True)
        inventory = {"all": {"vars": here, "children": {part: groups[part]}}}
        (directory / "parts" / part / "inventory" / "hosts.json").write_text(json.dumps(inventory), encoding="utf-8")
    whole = {"all": {"vars": here, "children": groups}}
    (directory / "inventory.yml").write_text(json.dumps(whole), encoding="utf-8")


def kill_in_the_middle(command: str, result: Path, directory: Path, variables: dict[str, str]) -> None:
    """Start a worker, and kill it when it has sent the first of its answers."""
    with subprocess.Popen(["bash", "-ec", command], cwd=directory, env=variables, start_new_session=True) as worker:
        deadline = time.monotonic() + PATIENCE
        while not result.exists() or not result.stat().st_size:
            assert worker.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        os.killpg(worker.pid, signal.SIGKILL)
    assert worker.returncode == -signal.SIGKILL


def test_the_nodes_of_a_worker_that_died_are_named(variables: dict[str, str], copy_of: CopyOf, tmp_path: Path) -> None:
    write_fleet(tmp_path, copy_of)
    transmit, worker, process = commands()

    def run(command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-ec", command],
            cwd=tmp_path,
            env=variables,
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def states() -> dict[str, str]:
        report = json.loads((tmp_path / "drift-report" / "drift.json").read_text("utf-8"))
        assert report["problems"] == []
        return {node["host"]: node["state"] for node in report["nodes"]}

    def work(part: str) -> None:
        done = run(worker.replace("eu", part))
        assert done.returncode == 0, done.stdout

    sent = run(transmit)
    assert sent.returncode == 0, sent.stdout
    for part in PARTS[:2]:
        work(part)
    kill_in_the_middle(worker.replace("eu", "ap"), tmp_path / "ap.result", tmp_path, variables)
    merged = run(process)
    assert merged.returncode != 0
    assert "not everything could be read: see worker-ap" in merged.stdout
    assert states() == {"worker-eu": "refused", "worker-us": "refused", "worker-ap": "missing"}

    # It is done again, and what the others have sent counts.
    work("ap")
    shutil.rmtree(tmp_path / "drift-report")
    merged = run(process)
    assert merged.returncode == 0, merged.stdout
    assert set(states().values()) == {"refused"}
    assert "WARNING" not in merged.stdout
