# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How long a node takes in the drift report and in the plan of a rollout, beside ansible.builtin.ping, in one run.

Both run rollout_info. Over ssh, as nodes are reached, with what Ansible has by default; and on local hosts, where a
ping is little more than the start of Python, so that each millisecond of a module shows.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .drift import WANTED, beside_ping

HOSTS = 20
ROUNDS = 2
LIMIT, REMOTE_LIMIT = 1.2, 1.1


def plan(root: Path) -> dict[str, Any]:
    """Return the one task that compares a node with what is wanted, and plans its change."""
    return {"name": "Plan", "kubenode.cpu_manager.rollout_info": {"root": str(root), **WANTED}}


def measure() -> bool:
    """Print the times; True when each is within its limit."""
    return beside_ping("rollout_info", plan, {}, HOSTS, ROUNDS, LIMIT, REMOTE_LIMIT)
