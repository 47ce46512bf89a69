# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How long a pass over the containers of an unchanged node takes, beside a bare loop that reads the same files.

That of the module, which writes and publishes nothing; and that of the program of the policy dynamic, which also reads
quotas, counters, what is published, and its promise.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Callable

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._dynamic.agent import Agent
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._dynamic.dynamic_settings import read_settings
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._reconcile.reconcile import reconcile_pods
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import write_checkpoint
from ansible_collections.kubenode.cpu_manager.tests.machines.cgroups import (
    SYSTEMD,
    V2,
    CPUFiles,
    Files,
    container_files,
    pod_path,
    write_cgroups,
    write_cpu,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.tree import write_machine

PODS = 250
CONTAINERS_PER_POD = 2
OWN = 40  # of the pods have a container with CPUs for itself
CPUS = 256
ROUNDS = 21
LIMIT = 1.5

CHECKPOINT = "var/lib/kubelet/cpu_manager_state"
MACHINE = "2s64c2t"
PUBLISHED, PROMISE = "run/kubenode/cpus", "run/kubenode/cpu-manager.json"
# Of the exclusive containers.
QUOTA = 200000


def make_node(root: Path) -> None:
    """Write a saved node, all of whose containers have what the checkpoint gives them."""
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
    """Do what the module does on a node where nothing is to be changed."""
    answer = reconcile_pods(Node(Tree(str(root))), None, act=True)
    if answer.to_dict()["counts"] != {"kept": PODS * CONTAINERS_PER_POD, "written": 0, "failed": 0, "skipped": 0}:
        raise SystemExit("the node is not as it should be: %s" % answer.to_dict()["counts"])


def read_bare(root: Path) -> None:
    """Read the files and directories that the module reads, and forget them."""
    top = root / V2.mount[1:]
    os.listdir(root / "var/log/containers")
    if (root / CHECKPOINT).exists():
        (root / CHECKPOINT).read_bytes()
    (root / "proc/mounts").read_bytes()
    (top / "cgroup.controllers").read_bytes()
    for outer in (top / "kubepods.slice", top / "kubepods.slice/kubepods-burstable.slice"):
        for name in os.listdir(outer):
            if "-pod" in name:
                for container in os.listdir(outer / name):
                    if container.endswith(".scope"):
                        (outer / name / container / "cpuset.cpus.effective").read_bytes()


def make_dynamic(root: Path) -> Agent:
    """Return the same node with a kubelet that has the policy none, after the program's first passes; and the
    program."""
    make_node(root)
    write_machine(root, MACHINE)
    (root / CHECKPOINT).unlink()
    (root / CHECKPOINT).parent.joinpath("config.yaml").write_text(
        "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nreservedSystemCPUs: 0-3\n"
    )
    top = root / V2.mount[1:]
    limits = {}
    for number, pod in enumerate(sorted(top.glob("kubepods.slice/kubepods-pod*"))):
        for which, scope in enumerate(sorted(pod.glob("*.scope"))):
            limits[str(scope.relative_to(top))] = CPUFiles(50000 if which else QUOTA)
        assert number < OWN
    write_cpu(root, V2, limits)
    now = [1_700_000_000.0]

    def clock() -> float:
        now[0] += 1.0
        return now[0]

    agent = Agent(Tree(str(root)), read_settings({"policy": "dynamic", "use_runtime": False}), clock, clock)
    # Until nothing has changed hands lately.
    for _pass in range(20):
        agent.one_pass()
    return agent


def run_dynamic(agent: Agent) -> None:
    """Run one pass of the program, on a node where nothing is to be changed."""
    report = agent.one_pass()
    if report.moves or report.refused or report.waiting:
        raise SystemExit("the node is not as it should be: %s" % (report,))


def read_bare_dynamic(root: Path) -> None:
    """Read what the program reads of the same node, and forget it."""
    read_bare(root)
    top = root / V2.mount[1:]
    for pod in os.listdir(top / "kubepods.slice"):
        for container in os.listdir(top / "kubepods.slice" / pod) if "-pod" in pod else ():
            if container.endswith(".scope"):
                (top / "kubepods.slice" / pod / container / "cpu.max").read_bytes()
                (top / "kubepods.slice" / pod / container / "cpu.stat").read_bytes()
    (root / PROMISE).read_bytes()
    for pod in os.listdir(root / PUBLISHED):
        for name in os.listdir(root / PUBLISHED / pod):
            (root / PUBLISHED / pod / name).read_bytes()


def _seconds(work: Callable[[], None]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _compare(what: str, mine: Callable[[], None], bare: Callable[[], None]) -> bool:
    # In turn, after a round that warms the caches.
    times = [(_seconds(mine), _seconds(bare)) for _round in range(ROUNDS + 1)][1:]
    took, needed = (median(column) for column in zip(*times))
    print(
        "%s over %d containers: %.1f ms; a bare loop that reads the same files: %.1f ms; %.2f times (limit %.2f)"
        % (what, PODS * CONTAINERS_PER_POD, 1000 * took, 1000 * needed, took / needed, LIMIT)
    )
    return bool(took <= LIMIT * needed)


def measure() -> bool:
    """Print the times; True when both passes are within the limit."""
    kept = []
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        make_node(root)
        kept.append(_compare("A pass", lambda: run_pass(root), lambda: read_bare(root)))
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        agent = make_dynamic(root)
        kept.append(
            _compare("A pass of the policy dynamic", lambda: run_dynamic(agent), lambda: read_bare_dynamic(root))
        )
    return all(kept)
