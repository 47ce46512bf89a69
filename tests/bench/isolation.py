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
from pathlib import Path
from typing import Sequence

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.isolation.accounts import CGROUP, Owner, accounts
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.isolation.sample import Sample, take
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.tree import Tree
from ansible_collections.kubenode.cpu_manager.tests.kernel.cgroups import Cgroups
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

SLEEPERS = """\
import sys, threading
threading.stack_size(65536)
wait = threading.Event()
for _number in range(int(sys.argv[1]) - 1):
    threading.Thread(target=wait.wait, daemon=True).start()
print("ready", flush=True)
sys.stdin.read()
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
    """Print how many scenes were judged right; True when all were."""
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
            right, wrong, again, missing = 0, [], 0, 0
            for kind, intruder, owner in scenes:
                outcome, repeats = settle(scene, owner, intruder)
                again += repeats
                right += outcome == ""
                missing += outcome is None
                wrong += ["    %s beside %.1f: %s" % (kind, owner, outcome)] if outcome else []
            print(
                "  %s: %d of %d; %d could not be played, %d were played again"
                % (what, right, SCENES - missing, missing, again)
            )
            print("\n".join(wrong), end="\n" if wrong else "")
            kept = kept and not wrong and missing < SCENES // 5
    return kept


def sample(seconds: float = SECONDS) -> tuple[Sample, float, float]:
    """One sample with its accounts, how much CPU time it took in all, and the seconds beyond the sample."""
    exclusive = CPUSet((max(os.sched_getaffinity(0)),))
    begun, before = time.monotonic(), time.process_time()
    taken = take(Tree(), seconds, exclusive)
    accounts(taken, lambda path: Owner(CGROUP, path), {})
    return taken, time.process_time() - before, time.monotonic() - begun - seconds


def describe(name: str, taken: Sample, cost: float, beyond: float) -> None:
    print(
        "  %s: %d tasks, %d cgroups, %d looks: %.1f ms of CPU, %.2f %% of one in %d s; %.3f s beyond"
        % (
            name,
            taken.observer.tasks,
            taken.observer.cgroups,
            taken.observer.looks,
            1000 * cost,
            100 * cost / SECONDS,
            SECONDS,
            beyond,
        )
    )


def measure_cost() -> bool:
    """Print what a sample costs; True when it is within its limits."""
    tests = str(Path(__file__).resolve().parent.parent)
    start_up = float(subprocess.check_output([sys.executable, "-c", START_UP, tests]))
    print("  Python and all imports of the module, without Ansible's own start: %.0f ms of CPU" % (1000 * start_up))
    taken, small, beyond = sample()
    describe("this machine", taken, small, beyond)
    kept = 100 * small / SECONDS < MOST_PERCENT and beyond < MOST_BEYOND
    sleepers = [
        subprocess.Popen(
            [sys.executable, "-S", "-c", SLEEPERS, str(THREADS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for _number in range(PROCESSES)
    ]
    top = CPUACCT / ("kubenode-bench-%d" % os.getpid())
    places = [top / ("pod%d" % number) for number in range(CONTAINERS)]
    places += [place / ("%064x" % number) for number, place in enumerate(places)]
    made = []
    try:
        for process in sleepers:
            assert process.stdout is not None
            process.stdout.readline()
        if os.access(CPUACCT, os.W_OK):
            for place in (top, *places):
                place.mkdir()
                made.append(place)
        taken, cost, beyond = sample()
    finally:
        for process in sleepers:
            process.communicate()
        for place in reversed(made):
            place.rmdir()
    describe("a large node", taken, cost, beyond)
    return kept and beyond < MOST_BEYOND


def measure() -> bool:
    """Print what was found and what it costs; True when all is as it should be."""
    print("Who runs on exclusive CPUs, samples of 1 s:")
    right = play_scenes()
    print("What a sample of %d s costs:" % SECONDS)
    return measure_cost() and right
