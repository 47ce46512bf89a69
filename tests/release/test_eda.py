# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rulebook of extensions/eda with Event-Driven Ansible: a posted alert leads to the report of its node alone."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Iterator

import pytest
import yaml
from ansible.release import __version__

from ansible_collections.kubenode.cpu_manager.tests.cluster.ports import LOOPBACK, take_ports
from ansible_collections.kubenode.cpu_manager.tests.collection_path import COLLECTIONS
from ansible_collections.kubenode.cpu_manager.tests.playbooks.bad_nodes import CHECKPOINT, checkpoint, make_node
from ansible_collections.kubenode.cpu_manager.tests.playbooks.conftest import fingerprint
from ansible_collections.kubenode.cpu_manager.tests.running.lacking import TOOL, lacking

from .archive import checkout
from .tools import environment

EDA = checkout() / "extensions" / "eda"
# The same as that of the other tests.
WANTED = ("ansible-rulebook", "ansible-core==%s" % __version__)
TOKEN = "a-token"
NODE, OTHER = "worker-1", "worker-2"
# Seconds, on a busy machine too.
PATIENCE = 180.0

pytestmark = pytest.mark.needs("java")


@pytest.fixture(scope="module")
def programs() -> Path:
    try:
        return environment("eda", WANTED)
    except subprocess.CalledProcessError as error:
        lacking(TOOL, "no ansible-rulebook to install: %s" % error)


class Rulebook:
    """The rulebook that runs for two nodes, and what it writes."""

    def __init__(self, directory: Path, programs: Path, repairs: bool, **given: Any) -> None:
        self.directory = directory
        self.programs = programs
        self.reports = directory / "reports"
        self.log = directory / "log"
        (self._port,) = take_ports(1)
        shutil.copytree(EDA, directory / "eda")
        for name in (NODE, OTHER):
            make_node(directory / "nodes" / name, "1s4c2t")
            # Two CPUs have come since: a kubelet would refuse it, and makes another one after the repair.
            checkpoint("static", "0-5")(directory / "nodes" / name)
        own = yaml.safe_load((EDA / "vars.yml").read_text("utf-8"))
        given = {
            **own,
            "kubenode_listen": LOOPBACK,
            "kubenode_port": int(self._port),
            "kubenode_repair": repairs,
            "kubenode_reports": str(self.reports),
            **(given or {"kubenode_token": TOKEN}),
        }
        (directory / "vars.json").write_text(json.dumps(given), encoding="utf-8")
        hosts = {name: {"kubelet_node_root": str(directory / "nodes" / name)} for name in (NODE, OTHER)}
        here = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
        inventory = {"all": {"hosts": hosts, "vars": here}}
        (directory / "inventory.json").write_text(json.dumps(inventory), encoding="utf-8")

    def start(self) -> subprocess.Popen[bytes]:
        variables = {
            **os.environ,
            "PATH": "%s:%s" % (self.programs, os.environ["PATH"]),
            "ANSIBLE_COLLECTIONS_PATH": str(COLLECTIONS),
        }
        variables.pop("ANSIBLE_CONFIG", None)
        command = ["ansible-rulebook", "--rulebook", "rulebooks/alerts.yml", "--inventory", "../inventory.json"]
        with self.log.open("wb") as log:
            return subprocess.Popen(
                [*command, "--vars", "../vars.json"],
                cwd=self.directory / "eda",
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    @contextmanager
    def running(self) -> Iterator[None]:
        process = self.start()
        try:
            self.wait(lambda: self.post([]) == 200)
            yield
        finally:
            process.terminate()
            process.wait(60)

    def post(self, alerts: list[dict[str, Any]], token: str = TOKEN) -> int:
        """Post alerts as Alertmanager does; the status of the answer, 0 where nobody answers."""
        body = json.dumps({"version": "4", "status": "firing", "alerts": alerts}).encode()
        headers = {"Content-Type": "application/json", "Authorization": "Bearer " + token}
        request = urllib.request.Request("http://%s:%s/alerts" % (LOOPBACK, self._port), body, headers)
        try:
            with urllib.request.urlopen(request, timeout=10) as response:
                return int(response.status)
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return 0

    def wait(self, condition: Any) -> None:
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < deadline, self.log.read_text("utf-8", "replace")
            time.sleep(0.5)

    def said(self) -> str:
        return self.log.read_text("utf-8", "replace")


def alert(instance: object, **parts: Any) -> dict[str, Any]:
    labels = {"alertname": "ReconcileFails", "instance": instance}
    return {"status": "firing", "labels": labels, "annotations": {}, **parts}


def test_an_alert_leads_to_the_report_of_its_node(programs: Path, tmp_path: Path) -> None:
    rulebook = Rulebook(tmp_path, programs, repairs=False)
    before = fingerprint(tmp_path / "nodes")
    command = "{{ lookup('ansible.builtin.pipe', 'touch %s') }}" % (tmp_path / "touched")
    patterns = ["*", "worker-1,worker-2", "~w.*", "!worker-2", "worker-[1-2]"]
    hostile = [*patterns, "@/etc/passwd", "../worker-1", "worker-1/..", command, 7, None, ["worker-1"]]
    with rulebook.running():
        assert rulebook.post([alert(NODE)], token="another") == 401
        assert rulebook.post([alert(instance) for instance in hostile]) == 200
        assert rulebook.post([alert(OTHER, status="resolved")]) == 200
        # What looks like a name, and is a pattern, or that of no host.
        assert rulebook.post([alert("all"), alert("worker"), alert("ungrouped:9100")]) == 200
        assert rulebook.post([alert("%s:9100" % NODE, annotations={"summary": command})]) == 200
        rulebook.wait((rulebook.reports / NODE / "drift.html").exists)
    assert [path.name for path in rulebook.reports.iterdir()] == [NODE]
    assert [path.name for path in (rulebook.reports / NODE / "nodes").iterdir()] == [NODE + ".json"]
    assert not (tmp_path / "touched").exists()
    assert fingerprint(tmp_path / "nodes") == before
    assert rulebook.said().count("matches no host of the inventory") >= 3


def test_the_ports_of_a_node_are_one_node(programs: Path, tmp_path: Path) -> None:
    rulebook = Rulebook(tmp_path, programs, repairs=False)
    with rulebook.running():
        assert rulebook.post([alert("%s:%d" % (NODE, port)) for port in range(9100, 9105)]) == 200
        assert rulebook.post([alert(NODE), alert(OTHER)]) == 200
        # Events are answered in their order.
        rulebook.wait((rulebook.reports / OTHER / "drift.html").exists)
    assert sorted(path.name for path in rulebook.reports.iterdir()) == [NODE, OTHER]
    # A run for each of the two.
    assert rulebook.said().count("PLAY [Report drift]") == 2


@pytest.mark.parametrize("given", [{"kubenode_token": ""}, {"kubenode_token": None}, {"kubenode_other": 1}], ids=str)
def test_without_a_token_nobody_is_let_in(programs: Path, tmp_path: Path, given: dict[str, Any]) -> None:
    rulebook = Rulebook(tmp_path, programs, repairs=True, **given)
    process = rulebook.start()
    try:
        # It ends by itself, and never listens.
        while process.poll() is None:
            assert rulebook.post([alert(NODE)]) == 0
            time.sleep(0.5)
    finally:
        process.kill()
        process.wait(60)
    assert "kubenode_token" in rulebook.said()
    assert not rulebook.reports.exists()


def test_where_it_is_allowed_the_node_is_repaired(programs: Path, tmp_path: Path) -> None:
    rulebook = Rulebook(tmp_path, programs, repairs=True)
    before = fingerprint(tmp_path / "nodes" / OTHER)
    place = tmp_path / "nodes" / NODE / CHECKPOINT
    with rulebook.running():
        assert rulebook.post([alert(NODE)]) == 200
        rulebook.wait(lambda: not place.exists())
    assert (rulebook.reports / NODE / "drift.html").exists()
    assert fingerprint(tmp_path / "nodes" / OTHER) == before
