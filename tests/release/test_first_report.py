# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From nothing but ansible-core to the first report, by the commands of the README, without a checkout or a network."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.tests.machines.demo import write_demo_fleet
from ansible_collections.kubenode.cpu_manager.tests.playbooks.conftest import fingerprint

from .conftest import CHECKOUT, Machine

NODE = "xeon"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Path:
    fleet = tmp_path_factory.mktemp("nodes") / "fleet"
    write_demo_fleet(fleet)
    return fleet / NODE


def commands_of_the_readme() -> list[str]:
    """Return those of the first block of its section about the first report."""
    section = (CHECKOUT / "README.md").read_text("utf-8").partition("\n## The first report on your own nodes\n")[2]
    block = re.search(r"(?:^    .*\n)+", section, re.MULTILINE)
    return [line.strip() for line in block.group().splitlines()] if block else []


def test_the_commands_of_the_readme(machine: Machine, built: Path, node: Path) -> None:
    before = fingerprint(node)
    make, install, report_on_nodes = commands_of_the_readme()
    # What it makes, and where it puts it.
    assert make == "make build && cp build/kubenode-cpu_manager-*.tar.gz ~ && cd ~"
    shutil.copy(built, machine.home)
    # Without a network, kubernetes.core cannot come with it; nothing is drained here.
    machine.run("sh", "-c", install + " --no-deps")
    host = {"ansible_connection": "local", "kubelet_node_root": str(node)}
    (machine.home / "inventory.yml").write_text(json.dumps({"all": {"hosts": {"worker-1": host}}}))
    said = machine.run("sh", "-c", report_on_nodes)
    report = machine.home / "drift-report"
    assert (report / "drift.html").read_text("utf-8").startswith("<!doctype html>")
    (shown,) = json.loads((report / "drift.json").read_text("utf-8"))["nodes"]
    assert shown["host"] == "worker-1"
    # What is wrong with it, as the demo shows, too.
    assert "checkpoint-refused" in [finding["check"] for finding in shown["findings"]]
    assert str(report / "drift.html") in said
    # Ansible names the Python that it finds on a host.
    assert said.count("[WARNING]") == said.count("[WARNING]: Host 'worker-1' is using the discovered Python")
    assert "[DEPRECATION" not in said
    assert fingerprint(node) == before


def test_its_documentation_is_there(machine: Machine) -> None:
    listed = json.loads(machine.run("ansible-doc", "--list", "--json", "kubenode.cpu_manager"))
    assert "kubenode.cpu_manager.drift_info" in listed
    assert "reserved_system_cpus" in machine.run("ansible-doc", "kubenode.cpu_manager.drift_info")


def test_what_it_depends_on_is_refused_without_a_network(machine: Machine, built: Path) -> None:
    """Rather than installed without what drains nodes: --no-deps says that this is wanted."""
    command = ["ansible-galaxy", "collection", "install", "--force", "--offline", str(built)]
    assert "kubernetes.core" in machine.run(*command, expect=1)
