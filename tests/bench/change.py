# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How long a rollout and a rollback take on saved nodes beside ansible.builtin.ping, all of them changing and none.

A change without a drain has three tasks of each node: the controller fixes what it acts with, the node is planned,
and one call changes it.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from .drift import SHAPES, make_node
from .tasks import PING, time_playbook, time_tasks

HOSTS = 20
# Each comes after the one before it. A second rollback is unchanged as the rollout was taken back. In pings of a host,
# the most of them.
RUNS = {"rollout": 4.0, "rollout, unchanged": 2.0, "rollback": 4.0, "rollback, unchanged": 2.0}


def wanted(root: Path) -> dict[str, Any]:
    """Return the variables of a node that changes."""
    return {
        "kubelet_node_root": str(root),
        "kubelet_drain": False,
        "kubelet_discard_assignments": True,
        "kubelet_cpu_manager_policy": "static",
        "kubelet_reserved_system_cpus": "0-3",
    }


def measure() -> bool:
    """Print the times; whether they are within the limits."""
    is_within = True
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        node = make_node(directory, SHAPES[0])
        roots = [directory / "nodes" / str(number) for number in range(HOSTS)]
        for root in roots:
            shutil.copytree(node, root, symlinks=True)
        hosts = {"node%02d" % number: wanted(root) for number, root in enumerate(roots)}
        (ping,) = time_tasks(directory, {"ping": PING}, HOSTS, 1)["ping"]
        print("A change of %d local hosts, seconds of the processor, and pings of as many (ping %.2f):" % (HOSTS, ping))
        for title, most in RUNS.items():
            seconds = time_playbook(directory, "kubenode.cpu_manager." + title.partition(",")[0], hosts)
            print("  %-22s %7.2f  %5.2f pings a host, %.1f at most" % (title, seconds, seconds / ping, most))
            is_within = is_within and seconds <= most * ping
    return is_within
