# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How long a node takes in the drift report and in the plan of a rollout, beside ansible.builtin.ping, in one run.

Both run rollout_info. Over ssh, as nodes are reached, with what Ansible has by default; and on local hosts, where a
ping is little more than the start of Python, so that each millisecond of a module shows.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from .drift import SHAPES, WANTED, make_node
from .sshd import has_ssh_server, ssh_server
from .tasks import LOCAL, PING, compare_with_ping, time_tasks

HOSTS, REMOTE_HOSTS = 40, 40
ROUNDS = 2
LIMIT, REMOTE_LIMIT = 1.4, 1.15


def plan(root: Path) -> dict[str, Any]:
    """The one task that compares a node with what is wanted, and plans its change."""
    return {"name": "Plan", "kubenode.cpu_manager.rollout_info": {"root": str(root), **WANTED}}


def measure() -> bool:
    """Print the times; True when each is within its limit."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        tasks = {"ping": PING}
        tasks.update((shape, plan(make_node(directory, shape))) for shape in SHAPES)
        times = time_tasks(directory, tasks, HOSTS, ROUNDS)
        kept = compare_with_ping("rollout_info", times, LOCAL % HOSTS, LIMIT)
        if not has_ssh_server():
            print("Not measured over ssh: there is no sshd. Install openssh-server.")
            return kept
        with ssh_server(directory) as remote:
            times = time_tasks(directory, tasks, REMOTE_HOSTS, ROUNDS, remote)
    return compare_with_ping("rollout_info", times, "%d hosts over ssh, seconds" % REMOTE_HOSTS, REMOTE_LIMIT) and kept
