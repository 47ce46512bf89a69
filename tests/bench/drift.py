# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How long the check of a node takes, beside ansible.builtin.ping: two commands that take turns in one run.

Over ssh, as nodes are reached, with what Ansible has by default; and on local hosts, where a ping is little more than
the start of Python, so that each millisecond of a module shows.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, Callable, Mapping

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import write_checkpoint
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import parse_name
from ansible_collections.kubenode.cpu_manager.tests.machines.tree import write_tree

from .sshd import has_ssh_server, ssh_server
from .tasks import LOCAL, PING, compare_with_ping, time_tasks

# A fleet: Ansible packs the module once for all hosts, which takes half a second.
HOSTS, REMOTE_HOSTS = 80, 12
ROUNDS = 3
# What is wanted of nodes is the second. The first is what is reached: two thirds of it is compiling.
LIMIT, REMOTE_LIMIT = 1.3, 1.1

# A machine of two sockets, and the biggest of the demo.
SHAPES = ("2s1n12c2t+interleaved", "2s4n2l4c2t")

CONFIGURATION = """\
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cgroupDriver: systemd
clusterDNS:
- 10.96.0.10
clusterDomain: cluster.local
cpuManagerPolicy: static
cpuManagerPolicyOptions:
  full-pcpus-only: "true"
kubeReserved:
  cpu: 500m
reservedSystemCPUs: 0-1
rotateCertificates: true
"""


WANTED: dict[str, Any] = {
    "cpu_manager_policy": "static",
    "cpu_manager_policy_options": {"full-pcpus-only": "true"},
    "cpu_manager_reconcile_period": "5s",
    "reservation": {"fraction": 0.08, "strategy": "spread"},
}


def drift(root: Path) -> dict[str, Any]:
    """Return the one task that checks a node."""
    return {
        "name": "Check for drift",
        "kubenode.cpu_manager.drift_info": {
            "root": str(root),
            **WANTED,
        },
    }


def make_node(directory: Path, shape_name: str) -> Path:
    """Return a saved node with a kubelet and its checkpoint."""
    root = directory / shape_name
    shape = parse_name(shape_name)
    root.mkdir()
    write_tree(shape.topology(), root, shape.whole())
    kubelet = root / "var/lib/kubelet"
    kubelet.mkdir(parents=True)
    (kubelet / "config.yaml").write_text(CONFIGURATION, encoding="utf-8")
    state = State(shape.topology().online, {})
    (kubelet / "cpu_manager_state").write_bytes(write_checkpoint("static", state))
    return root


def measure() -> bool:
    """Print the times; True when each is within its limit."""
    return beside_ping("drift_info", drift, {"this machine": Path("/")}, HOSTS, ROUNDS, LIMIT, REMOTE_LIMIT)


def beside_ping(
    module: str,
    task: Callable[[Path], dict[str, Any]],
    roots: Mapping[str, Path],
    hosts: int,
    rounds: int,
    limit: float,
    remote_limit: float,
) -> bool:
    """Print the times of a module on local hosts and over ssh, beside a ping's; True when each is within its limit.

    task: the one task for a node's root. roots: of nodes beside those of SHAPES.
    """
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        tasks = {"ping": PING}
        tasks.update((node, task(root)) for node, root in roots.items())
        tasks.update((shape, task(make_node(directory, shape))) for shape in SHAPES)
        times = time_tasks(directory, tasks, hosts, rounds)
        kept = compare_with_ping(module, times, LOCAL % hosts, limit)
        if not has_ssh_server():
            print("Not measured over ssh: there is no sshd. Install openssh-server.")
            return kept
        with ssh_server(directory) as remote:
            # By the clock, as the server's processes are not of this run: others on the machine count.
            times = time_tasks(directory, tasks, REMOTE_HOSTS, rounds + 2, remote)
    return compare_with_ping(module, times, "%d hosts over ssh, seconds" % REMOTE_HOSTS, remote_limit) and kept
