# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who runs what: playbooks become root on nodes by themselves, and what runs on the controller is the user's."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Mapping

import pytest

from .conftest import CHECKOUT, CopyOf, Run, ansible_playbook

# In sudo's place: it writes down what it was given, and runs it.
SUDO = """\
#!/bin/sh
echo "$*" >> "$0.log"
while [ "$#" -gt 1 ]; do shift; done
exec /bin/sh -c "$1"
"""
# Root becomes root here.
ANYWAY = {"ANSIBLE_BECOME_ALLOW_SAME_USER": "true"}
LOCALHOST = {"ansible_connection": "local"}


def make_sudo(directory: Path) -> Path:
    directory.mkdir()
    program = directory / "sudo"
    program.write_text(SUDO, encoding="utf-8")
    program.chmod(0o755)
    return program


@pytest.fixture
def sudo(tmp_path: Path) -> Path:
    return make_sudo(tmp_path / "bin")


def run(playbook: str, directory: Path, hosts: Mapping[str, Any], *arguments: str) -> Run:
    path = str(CHECKOUT / "playbooks" / (playbook + ".yml"))
    return ansible_playbook(directory, path, hosts, "--limit=!localhost", *arguments, environment=ANYWAY)


def commands(sudo: Path) -> list[str]:
    """Return what was run with it."""
    log = Path("%s.log" % sudo)
    return log.read_text(encoding="utf-8").splitlines() if log.exists() else []


def modules(sudo: Path) -> set[str]:
    """Return the modules that ran with it."""
    return set(re.findall(r"AnsiballZ_(\w+)\.py", "\n".join(commands(sudo))))


@pytest.mark.parametrize("localhost", [{}, {"localhost": LOCALHOST}], ids=["implied", "in the inventory"])
def test_the_report_is_the_users(copy_of: CopyOf, sudo: Path, tmp_path: Path, localhost: dict[str, Any]) -> None:
    """Also where the inventory has everybody become root."""
    common = {"ansible_become": True, "ansible_become_exe": str(sudo), "kubelet_cpu_manager_policy": "static"}
    node = {**common, "kubelet_node_root": str(copy_of("edge", "node"))}
    hosts = {"node": node, **{name: {**common, **variables} for name, variables in localhost.items()}}
    done = run("drift_report", tmp_path / "run", hosts)
    assert done.status == 0, done.account()
    assert modules(sudo) == {"rollout_info"}
    assert list((tmp_path / "run").rglob("drift.html"))


# {host: its variables, and whether its modules run as root}
HOSTS: dict[str, tuple[dict[str, Any], bool]] = {
    "itself": ({"kubelet_node_root": "/"}, True),
    "saved": ({}, False),
    "as root already": ({"kubelet_node_root": "/", "cpu_manager_become": False}, False),
    "saved where nobody may look": ({"cpu_manager_become": True}, True),
    # The inventory says it in Ansible's own words.
    "not": ({"kubelet_node_root": "/", "ansible_become": False}, False),
    "saved and told": ({"ansible_become": True}, True),
    "told twice": ({"ansible_become": False, "cpu_manager_become": True}, False),
}


@pytest.mark.parametrize("playbook", ["drift_report", "rollout", "rollback", "repair", "plan"])
def test_who_becomes_root(copy_of: CopyOf, tmp_path: Path, playbook: str) -> None:
    root = str(copy_of("edge", "node"))
    (tmp_path / "pods.yml").write_text("", encoding="utf-8")
    programs = {name: make_sudo(tmp_path / str(number)) for number, name in enumerate(HOSTS)}
    hosts = {
        name: {"kubelet_node_root": root, "ansible_become_exe": str(programs[name]), **variables}
        for name, (variables, _expected) in HOSTS.items()
    }
    # All at once, whatever becomes of one of them.
    given = {"cpu_manager_serial": "100%", "cpu_manager_max_fail_percentage": 100}
    given["cpu_manager_manifests"] = str(tmp_path / "pods.yml")
    run(playbook, tmp_path / "run", hosts, "--check", "-e", json.dumps(given))
    assert {name: bool(commands(program)) for name, program in programs.items()} == {
        name: expected for name, (_variables, expected) in HOSTS.items()
    }


@pytest.mark.parametrize(("becomes", "expected"), [({}, set()), ({"kubelet_api_become": True}, {"k8s_info"})])
def test_the_cluster_is_asked_by_the_user(
    copy_of: CopyOf, sudo: Path, tmp_path: Path, becomes: dict[str, Any], expected: set[str]
) -> None:
    # Nobody listens there.
    cluster = {"name": "none", "cluster": {"server": "https://127.0.0.1:1"}}
    context = {"name": "none", "context": {"cluster": "none", "user": "none"}}
    user = {"name": "none", "user": {}}
    kubeconfig = tmp_path / "kubeconfig"
    listed = {"clusters": [cluster], "contexts": [context], "users": [user], "current-context": "none"}
    kubeconfig.write_text(json.dumps(listed), encoding="utf-8")
    node = {
        "kubelet_node_root": str(copy_of("epyc", "node")),
        "ansible_become": True,
        "ansible_become_exe": str(sudo),
        "kubelet_cpu_manager_policy": "none",
        "kubelet_drain": True,
        "kubelet_kubeconfig": str(kubeconfig),
        "kubelet_api_timeout": 3,
        **becomes,
    }
    everybody = "ansible_become_exe=%s" % sudo
    done = run("rollout", tmp_path / "run", {"node": node}, "--check", "-e", everybody)
    assert done.status != 0
    assert "Read the nodes of the cluster: " in done.last("node")["msg"], done.account()
    assert modules(sudo) & {"k8s_info"} == expected
    assert "rollout_info" in modules(sudo)
