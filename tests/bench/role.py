# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How long the role kubelet takes on nodes that need no change, beside ansible.builtin.ping, and how many modules."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from .drift import SHAPES, make_node
from .tasks import PING, count_modules, ratio, time_tasks

HOSTS = (20, 60)
ROUNDS = 2
LIMIT = 1.4
MODULES = 1


def role(root: Path) -> dict[str, Any]:
    """Return the role with the settings that the node has."""
    return {
        "name": "Bring the node to what is wanted",
        # The modules check what they are given; the playbooks spare this task, too.
        "ansible.builtin.import_role": {"name": "kubenode.cpu_manager.kubelet", "rolespec_validate": False},
        "vars": {
            "kubelet_node_root": str(root),
            "kubelet_cpu_manager_policy": "static",
            "kubelet_cpu_manager_policy_options": {"full-pcpus-only": "true"},
            "kubelet_reserved_system_cpus": "0-1",
        },
    }


def measure() -> bool:
    """Print the times; True when each is within its limit."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        tasks = {"ping": PING, "role": role(make_node(directory, SHAPES[0]))}
        modules = count_modules(directory, tasks["role"])
        times = {hosts: time_tasks(directory, tasks, hosts, ROUNDS) for hosts in HOSTS}
    print(
        "The role kubelet on nodes that need no change, seconds of the processor, %d module calls (limit %d):"
        % (modules, MODULES)
    )
    kept = modules <= MODULES
    for hosts, found in times.items():
        times_ping = ratio(found["role"], found["ping"])
        kept = kept and times_ping <= LIMIT
        print(
            "  %3d local hosts: ping %6.2f, role %6.2f  %.2f times ping (limit %.2f)"
            % (hosts, min(found["ping"]), min(found["role"]), times_ping, LIMIT)
        )
    return kept
