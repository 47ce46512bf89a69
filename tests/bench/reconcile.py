# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How long a pass over the containers of an unchanged node takes, beside a bare loop that reads the same files."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Callable

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.reconcile.run import reconcile_pods
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import write_checkpoint
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.tree import Tree
from ansible_collections.kubenode.cpu_manager.tests.machines.cgroups import (
    SYSTEMD,
    V2,
    Files,
    container_files,
    pod_path,
    write_cgroups,
)

PODS = 250
CONTAINERS_PER_POD = 2
OWN = 40  # of the pods have a container with CPUs for itself
CPUS = 256
ROUNDS = 21
LIMIT = 1.5

CHECKPOINT = "var/lib/kubelet/cpu_manager_state"


def make_node(root: Path) -> None:
    """A saved node, all of whose containers have what the checkpoint gives them."""
    pool = CPUSet(range(2 * OWN, CPUS))
    assignments = {}
    cgroups: dict[str, Files] = {}
    logs = root / "var/log/containers"
    logs.mkdir(parents=True)
    for number in range(PODS):
        uid = "8dbda0f5-4d4c-4b9c-b4c2-%012d" % number
        pod = pod_path(SYSTEMD, uid, "Guaranteed" if number < OWN else "Burstable")
        for which in range(CONTAINERS_PER_POD):
            cpus = pool
            if number < OWN and not which:
                cpus = CPUSet((2 * number, 2 * number + 1))
                assignments[uid] = {"c0": cpus}
            container = "%064x" % (1 << 250 | number << 8 | which)
            cgroups.update(container_files(SYSTEMD, "containerd", pod, container, str(cpus)))
            (logs / ("pod-%d_shop_c%d-%s.log" % (number, which, container))).touch()
    write_cgroups(root, V2, cgroups, online="0-%d" % (CPUS - 1))
    (root / CHECKPOINT).parent.mkdir(parents=True)
    (root / CHECKPOINT).write_bytes(write_checkpoint("static", State(pool, assignments)))


def run_pass(root: Path) -> None:
    """What the module does on a node."""
    answer = reconcile_pods(Node(Tree(str(root))), None, act=True)
    if answer.to_dict()["counts"] != {"kept": PODS * CONTAINERS_PER_POD, "written": 0, "failed": 0, "skipped": 0}:
        raise SystemExit("the node is not as it should be: %s" % answer.to_dict()["counts"])


def read_bare(root: Path) -> None:
    """The same files and directories, read and forgotten."""
    top = root / V2.mount[1:]
    os.listdir(root / "var/log/containers")
    (root / CHECKPOINT).read_bytes()
    (root / "proc/mounts").read_bytes()
    (top / "cgroup.controllers").read_bytes()
    for outer in (top / "kubepods.slice", top / "kubepods.slice/kubepods-burstable.slice"):
        for name in os.listdir(outer):
            if "-pod" in name:
                for container in os.listdir(outer / name):
                    if container.endswith(".scope"):
                        (outer / name / container / "cpuset.cpus.effective").read_bytes()


def _seconds(work: Callable[[Path], None], root: Path) -> float:
    start = time.perf_counter()
    work(root)
    return time.perf_counter() - start


def measure() -> bool:
    """Print the times; True when the pass is within its limit."""
    with tempfile.TemporaryDirectory() as name:
        make_node(Path(name))
        # In turn, after a round that warms the caches.
        times = [(_seconds(run_pass, Path(name)), _seconds(read_bare, Path(name))) for _round in range(ROUNDS + 1)][1:]
    mine = median(mine for mine, _bare in times)
    bare = median(bare for _mine, bare in times)
    print(
        "A pass over %d containers: %.1f ms; a bare loop that reads the same files: %.1f ms;"
        " %.2f times (limit %.2f)" % (PODS * CONTAINERS_PER_POD, 1000 * mine, 1000 * bare, mine / bare, LIMIT)
    )
    return mine <= LIMIT * bare
