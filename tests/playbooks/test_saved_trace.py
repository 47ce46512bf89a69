# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""For a saved node nothing outside of its root is read, written, asked or executed, whatever is named."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any, Mapping

import pytest

from .conftest import CHECKOUT, CopyOf, Run, ansible_playbook, play, task
from .saved_trace import interpreter, outside, touched
from .test_modules import MODULES

# Nothing has to succeed: what is refused has touched nothing, either.
ALL: dict[str, dict[str, Any]] = {
    **MODULES,
    "cache_partition": {"exclusive_share": "50%", "mount": True},
    "cpuset": {"path": "kubepods", "cpus": "0-1"},
    "dra_info": {"driver_reserved_cpus": "0-1"},
    "housekeeping": {
        "reserved_system_cpus": "0-1",
        "manage_services": True,
        "kernel_arguments": True,
        "interpreter": "/usr/bin/python3",
    },
    "isolation_benchmark": {},
    "isolation_info": {"seconds": 1},
    "kubelet_change": {"run": "2026-01-01T00:00:00Z", "step": "undo", "service": "ssh", "manage_service": True},
    "kubelet_trial": {"program": "/usr/bin/kubelet"},
    "node_save": {"dest": "{{ root }}/saved.tar.gz"},
    "node_textfile": {"path": "/var/lib/node_exporter/node.prom", "content": "a 1\n"},
    "reconcile": {"runtime_endpoint": "unix:///run/containerd/containerd.sock"},
    "reconcile_program": {
        "path": "/opt/pass.pyz",
        "interpreter": "/usr/bin/python3",
        "settings": {"root": "{{ root }}"},
    },
    "rollout_info": {"service": "ssh", "manage_service": True, "check_services": True, "trial": "always"},
    "runtime_config": {"state": "present"},
    "wait_for_kubelet": {"seconds": 1, "timeout": 2, "service": "ssh", "log_file": "/var/log/syslog"},
}
OWN: tuple[dict[str, dict[str, str]], ...] = (
    {"ansible.builtin.ping": {}},
    {"ansible.builtin.stat": {"path": "{{ root }}/etc"}},
    {"ansible.builtin.file": {"path": "{{ root }}/a", "state": "directory"}},
    {"ansible.builtin.copy": {"dest": "{{ root }}/b", "content": "b"}},
)


# Of each role or playbook, what its variables can name; of the playbooks, with what else is asked of the host.
SERVICES = {"kubelet_service": "ssh", "kubelet_log_file": "/var/log/syslog", "kubelet_verify_timeout": 2}
RECONCILE = {
    "reconcile_interpreter": "/usr/bin/python3",
    "reconcile_textfile": "/var/lib/node_exporter/cpu.prom",
    "reconcile_runtime_endpoint": "unix:///run/containerd/containerd.sock",
}
ROLES: dict[str, dict[str, Any]] = {
    "drift_report": {
        "drift_report_node_textfile": "/var/lib/node_exporter/node.prom",
        "drift_report_look_at": ["throttling", "housekeeping", "cache", "impact", "trial"],
        "drift_report_look_seconds": 0,
        "drift_report_impact_from": "nodes",
        "kubelet_trial_program": "/usr/bin/kubelet",
    },
    "rollout": {
        **SERVICES,
        "kubelet_cpu_manager_policy": "static",
        "kubelet_cpu_manager_reconcile_period": "7s",
        "kubelet_discard_assignments": True,
        "kubelet_trial": "always",
    },
    "to_dra": {**SERVICES, "kubelet_dra_reserved_cpus": "0-1"},
    "reconcile": RECONCILE,
    "cache": {"cache_mount": True, **RECONCILE},
    "housekeeping": {
        "housekeeping_reserved_system_cpus": "0-1",
        "housekeeping_interpreter": "/usr/bin/python3",
        "housekeeping_kernel_arguments": True,
    },
    "isolation_benchmark": {},
    "save": {},
}


def wrong_of(found: Mapping[str, set[tuple[str, str]]], directory: Path) -> dict[str, list[tuple[str, str]]]:
    """Return what the modules of each host touched outside of its root."""
    # Ansible's modules run where the playbook is, and look whether they may; and at what a result names as dest, which
    # is the archive that the controller writes.
    shared = (directory / "scratch", CHECKOUT / "playbooks", directory / "run" / "saved-nodes")
    places = {name: (directory / "nodes" / name, *shared) for name in found}
    rows = {name: outside(found[name], found["own"], *places[name]) for name in found}
    return {name: of_host for name, of_host in rows.items() if of_host}


def traced(directory: Path, name: str, root: Path) -> dict[str, str]:
    """Return the variables of a host whose modules are traced."""
    return {"root": str(root), "ansible_python_interpreter": interpreter(directory / "traces" / name)}


def run_traced(directory: Path, playbook: Any, hosts: Mapping[str, Mapping[str, Any]], *arguments: str) -> Run:
    # Their own directory is no place of the node, and what the tests of this folder keep is not of this.
    environment = {"TMPDIR": str(directory / "scratch"), "PYTHONPATH": ""}
    (directory / "scratch").mkdir(exist_ok=True)
    return ansible_playbook(directory / "run", playbook, hosts, *arguments, environment=environment)


def own_touched(directory: Path, root: Path) -> set[tuple[str, str]]:
    """Return what Python and Ansible touch for themselves."""
    run = run_traced(
        directory, play(*({"name": "Own", **module} for module in OWN)), {"own": traced(directory, "own", root)}
    )
    assert run.status == 0, run.account()
    return touched(directory / "traces" / "own")


@pytest.mark.needs("strace")
def test_no_module_leaves_the_root_of_a_saved_node(copy_of: CopyOf, tmp_path: Path) -> None:
    hosts = {name: traced(tmp_path, name, copy_of("epyc", name)) for name in ALL}
    plays: list[dict[str, Any]] = []
    for name, parameters in ALL.items():
        plays += play(task(name, **{**parameters, "root": "{{ root }}"}), hosts=name, ignore_errors=True)
    run = run_traced(tmp_path, plays, hosts)
    assert run.status == 0, run.account()
    found = {name: touched(tmp_path / "traces" / name) for name in hosts}
    found["own"] = own_touched(tmp_path, copy_of("epyc", "own"))
    # Each was there.
    assert [name for name in ALL if not any("/nodes/%s/" % name in path for _call, path in found[name])] == []
    assert wrong_of(found, tmp_path) == {}


@pytest.mark.needs("strace")
def test_no_role_leaves_the_root_of_a_saved_node(copy_of: CopyOf, tmp_path: Path) -> None:
    found = {"own": own_touched(tmp_path, copy_of("epyc", "own"))}
    for name, variables in ROLES.items():
        root = copy_of("epyc", name)
        host = {**traced(tmp_path, name, root), "kubelet_node_root": str(root), **variables}
        run = run_traced(tmp_path, "kubenode.cpu_manager." + name, {name: host})
        assert run.results[name], run.output
        found[name] = touched(tmp_path / "traces" / name)
        is_read = any("/nodes/%s/" % name in path for _call, path in found[name])
        assert is_read == (name != "isolation_benchmark"), name
    assert wrong_of(found, tmp_path) == {}


@pytest.mark.needs("strace")
def test_a_file_of_this_machine_would_be_seen(tmp_path: Path) -> None:
    """What the other tests rest on."""
    python = interpreter(tmp_path / "trace")
    root = tmp_path / "root"
    root.mkdir()
    (root / "link").symlink_to("/etc/hostname")
    programs = (
        "open('/etc/hostname')",
        "open('%s/link')" % root,
        "import os; os.path.exists('/var/lib/kubelet/config.yaml')",
        "import socket; socket.socket(socket.AF_UNIX).connect_ex('/run/systemd/private')",
        "import subprocess; subprocess.call(['/bin/true'])",
    )
    subprocess.run([python, "-c", "pass"], check=True)
    own = touched(tmp_path / "trace")
    for program in programs:
        subprocess.run([python, "-c", program], check=True)
    paths = {path for _call, path in outside(touched(tmp_path / "trace"), own, root)}
    assert {"/etc/hostname", "/var/lib/kubelet/config.yaml", "/bin/true"} <= paths
    assert any("/run/systemd/private" in path for path in paths)
