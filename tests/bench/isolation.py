# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether each intruder on an exclusive CPU is found and nobody else is accused, and what a sample costs."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Container, Iterator, Sequence

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import OverlaidTree, Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._isolation.isolation_info import isolation_report
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._isolation.sample import PerCpu, Sample, take
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._isolation.verdict import CGROUP, Runner, accounts
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import write_checkpoint
from ansible_collections.kubenode.cpu_manager.tests.kernel.cgroups import Cgroups, why_not
from ansible_collections.kubenode.cpu_manager.tests.kernel.intruders import (
    CPUACCT,
    INTRUDERS,
    OWNERS,
    Intruder,
    Scene,
    settle,
    why_no_scenes,
)

SCENES = 50
SECONDS = 5
# Of one CPU, in percent, with the tasks that run here; seconds beyond the sample on a large node.
MOST_PERCENT = 1.0
MOST_BEYOND = 2.0
# A large node: processes and threads of each, and containers.
PROCESSES, THREADS, CONTAINERS = 20, 200, 1000

# Threads that sleep, but for one that wakes twenty times a second.
SLEEPERS = """\
import sys, threading, time
threading.stack_size(65536)
wait = threading.Event()
def wake():
    while True:
        time.sleep(0.05)
for _number in range(int(sys.argv[1]) - 2):
    threading.Thread(target=wait.wait, daemon=True).start()
threading.Thread(target=wake, daemon=True).start()
print("ready", flush=True)
sys.stdin.read()
"""
KUBELET = """\
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cpuManagerPolicy: static
cgroupRoot: /%s
"""
START_UP = """\
import resource, sys
sys.path.insert(0, sys.argv[1])
import collection_path
collection_path.register()
from ansible_collections.kubenode.cpu_manager.plugins.modules import isolation_info
print(sum(resource.getrusage(resource.RUSAGE_SELF)[:2]))
"""


def play_scenes() -> bool:
    """Print how many scenes were judged right; True when all were played, and were."""
    reason = why_no_scenes()
    if reason:
        print("Intruders: not played, %s" % reason)
        return True
    kept = True
    with Cgroups() as cgroups, tempfile.TemporaryDirectory() as name, Scene(Path(name), cgroups) as scene:
        kinds = list(INTRUDERS.items())
        intruders = [(*kinds[number % len(kinds)], OWNERS[number % len(OWNERS)]) for number in range(SCENES)]
        quiet = [("quiet", None, OWNERS[number % len(OWNERS)]) for number in range(SCENES)]
        plans: list[tuple[str, Sequence[tuple[str, Intruder | None, float]]]] = [
            ("intruders found", intruders),
            ("quiet CPUs on which nobody is accused", quiet),
        ]
        for what, scenes in plans:
            right, wrong, again, missing = 0, [], 0, []
            for kind, intruder, owner in scenes:
                outcome, repeats = settle(scene, owner, intruder)
                again += repeats
                right += outcome == ""
                missing += [kind] if outcome is None else []
                wrong += ["    %s beside %.1f: %s" % (kind, owner, outcome)] if outcome else []
            print(
                "  %s: %d of %d scenes that were played; %d were played again"
                % (what, right, len(scenes) - len(missing), again)
            )
            if missing:
                print("    %d could not be played: %s" % (len(missing), ", ".join(sorted(set(missing)))))
            print("\n".join(wrong), end="\n" if wrong else "")
            kept = kept and not wrong and not missing
    return kept


def sample(whole: Container[str] = ()) -> tuple[Sample, float, float]:
    """Return one sample with its accounts, how much CPU time it took in all, and the seconds beyond the sample."""
    exclusive = CPUSet((max(os.sched_getaffinity(0)),))
    begun, before = time.monotonic(), time.process_time()
    taken = take(Tree(), SECONDS, exclusive, (), whole)
    accounts(taken, lambda path: Runner(CGROUP, path), {})
    return taken, time.process_time() - before, time.monotonic() - begun - SECONDS


def describe(name: str, taken: Sample, cost: float, beyond: float) -> bool:
    """Print what a sample cost; True when it is within its limits."""
    percent = 100 * cost / taken.elapsed
    print(
        "  %s, %d tasks: %d processes and threads asked, %d cgroups, %d looks: %.1f ms of CPU, %.2f %% of one in %d s;"
        " %.3f s beyond"
        % (
            name,
            len(list(Path("/proc").glob("[0-9]*/task/*"))),
            taken.observer.tasks,
            taken.observer.cgroups,
            taken.observer.looks,
            1000 * cost,
            percent,
            SECONDS,
            beyond,
        )
    )
    return percent < MOST_PERCENT and beyond < MOST_BEYOND


def measure_cost() -> bool:
    """Print what a sample costs; True when it is within its limits."""
    tests = str(Path(__file__).resolve().parent.parent)
    start_up = float(subprocess.check_output([sys.executable, "-c", START_UP, tests]))
    print("  Python and all imports of the module, without Ansible's own start: %.0f ms of CPU" % (1000 * start_up))
    kept = describe("this machine", *sample())
    sleepers = [
        subprocess.Popen(
            [sys.executable, "-S", "-c", SLEEPERS, str(THREADS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for _number in range(PROCESSES)
    ]
    top = CPUACCT / ("kubenode-bench-%d" % os.getpid())
    pods = [top / ("pod%d" % number) for number in range(CONTAINERS)]
    containers, sandboxes = (
        [pod / ("%064x" % (2 * number + part)) for number, pod in enumerate(pods)] for part in (0, 1)
    )
    made = []
    try:
        for process in sleepers:
            assert process.stdout is not None
            process.stdout.readline()
        # As on v2, and for what is in no container.
        with without_counters_of_cgroups():
            kept = describe("a large node without counters of cgroups for each CPU", *sample()) and kept
        if os.access(CPUACCT, os.W_OK):
            for place in (top, *pods, *containers, *sandboxes):
                place.mkdir()
                made.append(place)
                # The kubelet reads it all the time, and the first reading is slower.
                (place / "cpuacct.usage_percpu").read_bytes()
            for process, container in zip(sleepers, containers):
                (container / "cgroup.procs").write_text(str(process.pid))
            # As the module has seen before, each has one container.
            kept = describe("a large node", *sample({"%s/%s" % (top.name, pod.name) for pod in pods})) and kept
            # What it cannot keep, and says.
            describe("a large node, each cgroup of a pod counted by itself", *sample())
    finally:
        for process in sleepers:
            process.communicate()
        for place in reversed(made):
            place.rmdir()
    return kept


def measure_report() -> bool:
    """Print what the module's whole work takes beside the sample on a node with many containers, of which one has a
    CPU of its own; True when it is within its limit."""
    reason = why_not() or ("" if os.access(CPUACCT, os.W_OK) else "%s cannot be written" % CPUACCT)
    if reason:
        print("  The whole report: not measured, %s" % reason)
        return True
    pods = ["kubepods/poduid-%d" % number for number in range(CONTAINERS)]
    ids = ["%064x" % (2 * number) for number in range(CONTAINERS)]
    containers = ["%s/%s" % (pod, name) for pod, name in zip(pods, ids)]
    sandboxes = ["%s/%064x" % (pod, 2 * number + 1) for number, pod in enumerate(pods)]
    sets = dict.fromkeys(("kubepods", *pods, *sandboxes, *containers), "0-1")
    sets.update(dict.fromkeys(containers, "0"), **{containers[0]: "1"})
    logs: dict[str, bytes | None] = {
        "/var/log/containers/p%d_shop_app-%s.log" % (number, name): b"" for number, name in enumerate(ids)
    }
    made: list[Path] = []
    with Cgroups() as cgroups, tempfile.TemporaryDirectory() as name:
        try:
            cgroups.make_all(sets)
            for path in ("", *sorted(sets)):
                made.append(CPUACCT / cgroups.path(path))
                made[-1].mkdir()
                (made[-1] / "cpuacct.usage_percpu").read_bytes()
            Path(name, "config.yaml").write_text(KUBELET % cgroups.top)
            state = State(cgroups.real("0"), {"uid-0": {"app": cgroups.real("1")}})
            Path(name, "cpu_manager_state").write_bytes(write_checkpoint("static", state))
            begun, before = time.monotonic(), time.process_time()
            node = Node(OverlaidTree(Tree(), logs), name + "/config.yaml", name)
            report: dict[str, Any] = isolation_report(node, SECONDS, 1.0)
            cost, beyond = time.process_time() - before, time.monotonic() - begun - SECONDS
        finally:
            for place in reversed(made):
                place.rmdir()
    (row,) = report["containers"]
    print(
        "  The whole report of a node with %d containers: %.1f ms of CPU, %.3f s beyond (limit %.1f); %s/%s: %s"
        % (CONTAINERS, 1000 * cost, beyond, MOST_BEYOND, row["pod"], row["container"], row["verdict"])
    )
    return beyond < MOST_BEYOND and row["id"] == ids[0] and row["verdict"] is not None


@contextmanager
def without_counters_of_cgroups() -> Iterator[None]:
    """Let no cgroup of v1 count the time on each CPU."""
    begin = PerCpu.begin
    setattr(PerCpu, "begin", lambda _self: False)  # noqa: B010
    try:
        yield
    finally:
        setattr(PerCpu, "begin", begin)  # noqa: B010


def measure() -> bool:
    """Print what was found and what it costs; True when all is as it should be."""
    print("Who runs on exclusive CPUs, samples of 1 s:")
    right = play_scenes()
    print("What a sample of %d s costs:" % SECONDS)
    kept = measure_cost()
    return measure_report() and kept and right
