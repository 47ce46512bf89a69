# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How long the answer for many pods on a big node takes, as a whole task beyond the time of a ping."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from .tasks import PING, time_tasks

PODS = 500
ROUNDS = 7
LIMIT = 1.0

MACHINE = "2 sockets x 4 NUMA nodes x 2 L3 caches x 8 cores x 2 threads"


def pod(number: int) -> dict[str, Any]:
    """Return a Guaranteed pod; every third has CPUs for itself."""
    resources = {"limits": {"cpu": "500m" if number % 3 else "2", "memory": "1Gi"}}
    return {"metadata": {"name": "pod-%d" % number}, "spec": {"containers": [{"name": "app", "resources": resources}]}}


def plan(pods: Path) -> dict[str, Any]:
    """Return the one task that plans the pods in a file, as kubectl get pods -o json writes it."""
    return {
        "name": "Plan",
        "kubenode.cpu_manager.allocation_plan": {
            "machine": MACHINE,
            "pods": ["{{ lookup('ansible.builtin.file', '%s') | from_json }}" % pods],
            "cpu_manager_policy": "static",
            "cpu_manager_policy_options": {"full-pcpus-only": "true"},
            "topology_manager_policy": "best-effort",
            "reservation": {"count": 4, "strategy": "spread"},
        },
    }


def measure() -> bool:
    """Print the time; True when it is within its limit."""
    with tempfile.TemporaryDirectory() as name:
        pods = Path(name, "pods.json")
        pods.write_text(json.dumps({"kind": "List", "items": [pod(number) for number in range(PODS)]}), "utf-8")
        times = time_tasks(Path(name), {"ping": PING, "plan": plan(pods)}, 1, ROUNDS)
    beyond = median(plan - ping for plan, ping in zip(times["plan"], times["ping"]))
    print("allocation_plan of %d pods on 256 CPUs: %.2f s beyond a ping (limit %.2f s)" % (PODS, beyond, LIMIT))
    return beyond <= LIMIT
