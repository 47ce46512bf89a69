# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What an ordinary user has no right to ends in one message, too, and the node stays as it is."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Iterator

import pytest

from .bad_nodes import (
    BYSTANDER,
    CHECKPOINT,
    CONFIG,
    CORE,
    CPU,
    MACHINE,
    Bad,
    Change,
    ask,
    ask_all,
    host,
    make_node,
    one_message,
    says,
)
from .conftest import ansible_playbook, fingerprint

NOBODY = {
    "ansible_become": True,
    "ansible_become_method": "su",
    "ansible_become_user": "nobody",
    # It has no shell to log in with.
    "ansible_become_flags": "-s /bin/sh",
}


@pytest.fixture
def open_directory() -> Iterator[Path]:
    """Yield a directory that all users may look into, unlike tmp_path."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture
def ordinary_user() -> dict[str, Any]:
    """Return the variables of a host that is worked on without root's rights."""
    if os.geteuid() != 0:
        return {}
    for python in (sys.executable, "/usr/bin/python3"):
        run_it = shlex.join([python, "-c", "import sys; sys.exit(sys.version_info < (3, 8))"])
        done = subprocess.run(["su", "nobody", "-s", "/bin/sh", "-c", run_it], stderr=subprocess.DEVNULL, check=False)
        if done.returncode == 0:
            return {**NOBODY, "ansible_python_interpreter": python}
    pytest.skip("the user nobody can run no Python here")


def hidden(path: str) -> Change:
    """Return a change after which nobody but root may look at a file or into a directory."""
    return lambda root: (root / path).chmod(0)


def kubespray(root: Path) -> None:
    """Move the configuration to where all may read it, and let root alone into the kubelet's directory."""
    (root / "etc/kubernetes").mkdir()
    (root / CONFIG).rename(root / "etc/kubernetes/kubelet-config.yaml")
    hidden("var/lib/kubelet")(root)


# What an ordinary user has no right to.
AS_ROOT = "cannot be read: Permission denied; read it as root (become: true)"
FORBIDDEN = {
    "config": Bad("kubelet_config", CONFIG, AS_ROOT, change=hidden(CONFIG)),
    "checkpoint": Bad("checkpoint_info", CHECKPOINT, AS_ROOT, change=hidden(CHECKPOINT)),
    "kubelet": Bad("drift_info", CONFIG, AS_ROOT, change=hidden("var/lib/kubelet")),
    "kubespray": Bad("drift_info", CONFIG, AS_ROOT, change=kubespray),
    "kubespray-checkpoint": Bad(
        "checkpoint_info", CONFIG, AS_ROOT, {"config_path": "/etc/kubernetes/kubelet-config.yaml"}, kubespray
    ),
    "sysfs": Bad("cpu_topology_info", CPU + CORE, AS_ROOT, change=hidden(CPU + CORE)),
}


def test_without_root(ordinary_user: dict[str, Any], open_directory: Path, tmp_path: Path) -> None:
    hosts: dict[str, dict[str, Any]] = {BYSTANDER: {}}
    for name, bad in FORBIDDEN.items():
        make_node(open_directory / name, MACHINE)
        bad.change(open_directory / name)
        hosts[name] = {**host(str(open_directory / name), bad.asked, bad.parameters), **ordinary_user}
    run = ansible_playbook(tmp_path, ask_all(FORBIDDEN), hosts)
    for name, bad in FORBIDDEN.items():
        assert says(one_message(run, name), bad, MACHINE), name


def test_without_the_right_to_write(ordinary_user: dict[str, Any], open_directory: Path, tmp_path: Path) -> None:
    root = open_directory / "node"
    make_node(root, MACHINE)
    (root / "var/lib/kubelet").chmod(0o555)
    before = fingerprint(root)
    hosts = {"node": {**host(str(root), "kubelet_config", {"cpu_manager_reconcile_period": "5s"}), **ordinary_user}}
    plays = ask("kubelet_config", ["node"])
    for mode in (["--check"], []):
        message = one_message(ansible_playbook(tmp_path, plays, {BYSTANDER: {}, **hosts}, *mode), "node")
        assert message == (
            "%s: %s: cannot be written: Permission denied; nothing was written; write it as root (become: true)"
            % (MACHINE, root / CONFIG)
        )
        assert fingerprint(root) == before
