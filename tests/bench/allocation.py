# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How long one allocation takes, beside the kubelet's own compiled code, and how that grows with the machine.

Both replay the same traces with the same answers. The unit of time is one step of a fixed loop on big integers, so
that figures of different machines can be compared; it is measured again before and after each trace.
"""

from __future__ import annotations

import gc
import random
import time
from statistics import mean
from typing import Iterator

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._containers.pods import APP, Container, Pod
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.assignment import TakeError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.hints import POD, RESTRICTED, TopologyManager
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.manager import CPUManager
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.options import StaticOptions
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.static import StaticPolicy
from ansible_collections.kubenode.cpu_manager.tests.conformance.traces import (
    ALLOCATORS,
    ERROR,
    MACHINES,
    MODES,
    Step,
    TakeAllocator,
    read_trace,
    replay,
    topology_of,
)

ROUNDS = 9

# The kubelet's own times, in units: from the README of the traces.
KUBELET = {
    ("48cpu", "take"): {"packed": 1510, "distributed": 1340, "uncore": 640},
    ("48cpu", "policy"): {"packed": 1800, "distributed": 1640, "uncore": 960},
    ("256cpu", "take"): {"packed": 5970, "distributed": 3910, "uncore": 3580},
    ("256cpu", "policy"): {"packed": 6220, "distributed": 6030, "uncore": 5970},
}

# How many times as fast as the kubelet it has to be: each trace, and those that were made faster for their own sake.
LIMITS = {"48cpu": 5, "256cpu": 10}
HIGHER_LIMITS = {("256cpu", "take", "distributed"): 30}

# How many times as long a pod that has CPUs as a whole may take as one whose containers have them.
MOST_OF_WHOLE = 3

# Machines of two sockets, for the growth.
GROWING = {
    48: "2s1n12c2t",
    96: "2s2n12c2t",
    192: "2s4n12c2t",
    256: "2s4n2l8c2t",
    512: "2s4n4l8c2t",
    1024: "2s4n8l8c2t",
}
ALLOCATIONS = 400


def unit(steps: int = 20_000) -> float:
    """Return the seconds of one step of the loop."""
    mask = (1 << 256) - 1
    x = 0
    start = time.perf_counter()
    for i in range(steps):
        x = (x ^ (mask >> (i & 255))) & mask
        x.bit_count()
    return (time.perf_counter() - start) / steps


def pod_times(shape: str) -> tuple[float, float]:
    """Return the seconds of one admission of a pod whose containers have CPUs, and of one that has them as a whole."""
    topology = topology_of(shape)
    own, shared = {"cpu": 2000, "memory": 1000}, dict[str, int]()
    whole = {"cpu": 8000, "memory": 8000}
    ordinary = Pod("o", "o", tuple(Container(name, APP, own, own) for name in "abcd"))
    parts = tuple(Container(name, APP, limits, limits) for name, limits in zip("abcd", (own, own, shared, shared)))
    divided = Pod("w", "w", parts, pod_level=(whole, whole), has_managers_gate=True)
    nodes = list(topology.numa_nodes)
    policy = StaticPolicy(topology, StaticOptions(), CPUSet([0]), 36)
    manager = CPUManager(policy, TopologyManager(RESTRICTED, POD, nodes))

    def once(pod: Pod) -> float:
        start = time.perf_counter()
        admitted = manager.add(pod).admitted
        seconds = time.perf_counter() - start
        manager.delete(pod.uid)
        manager.remove_stale()
        if not admitted:
            raise AssertionError(pod.uid)
        return seconds

    times = [(once(ordinary), once(divided)) for _round in range(50 * ROUNDS)]
    return min(first for first, _second in times), min(second for _first, second in times)


class Measurement:
    """The times of one trace, and of the unit around it."""

    def __init__(self, shape: str, mode: str, kind: str, steps: list[Step]) -> None:
        self.topology = topology_of(shape)
        self.options = MODES[mode]
        self.allocator = ALLOCATORS[kind]
        self.steps = steps
        # Of each allocation the least of all rounds: what else the machine does makes it slower, never faster.
        self.times: list[float] = []
        self.units: list[float] = []

    def repeat(self) -> None:
        """Replay the trace once more. Raises DifferentAnswerError."""
        self.units.append(unit())
        times = replay(self.steps, self.allocator(self.topology, self.options))
        self.times = list(map(min, times, self.times)) if self.times else times
        self.units.append(unit())

    def time(self) -> float:
        """Return the time of one allocation on average."""
        return mean(self.times) / min(self.units)


def random_steps(cpus: int, shape: str, mode: str) -> Iterator[Step]:
    """Yield allocations and releases that keep a machine about three quarters full."""
    choose = random.Random(cpus)
    allocator = TakeAllocator(topology_of(shape), MODES[mode])
    taken: list[int] = []
    for _number in range(ALLOCATIONS):
        while taken and (cpus - allocator.free.bit_count()) > choose.uniform(0.5, 1) * cpus:
            mask = taken.pop(choose.randrange(len(taken)))
            allocator.release(mask)
            yield Step(0, str(CPUSet.from_mask(mask)))
        count = choose.choice((1, 2, 2, 3, 4, 4, 6, 8, 12, 16, cpus // 8))
        try:
            taken.append(allocator.allocate(count))
            yield Step(count, str(CPUSet.from_mask(taken[-1])))
        except TakeError as error:
            yield Step(count, ERROR + str(error))


def measure() -> bool:
    """Print the times; True when each is within its limit."""
    traces = {
        (kind, machine, mode): Measurement(MACHINES[machine], mode, kind, read_trace(machine, mode))
        for kind in ALLOCATORS
        for machine in MACHINES
        for mode in MODES
    }
    growth = {
        (cpus, mode): Measurement(shape, mode, "take", list(random_steps(cpus, shape, mode)))
        for cpus, shape in GROWING.items()
        for mode in MODES
    }
    everything = [*traces.values(), *growth.values()]
    # What the benchmark itself holds is no work for the garbage collector.
    gc.collect()
    gc.freeze()
    for _round in range(ROUNDS):
        for measurement in everything:
            measurement.repeat()
    nanoseconds = 1e9 * min(min(measurement.units) for measurement in everything)
    print("One allocation, in units of %.0f ns here, best of %d rounds:" % (nanoseconds, ROUNDS))
    print("  %-28s %8s %8s" % ("", "time", "kubelet"))
    kept = True
    for (kind, machine, mode), measurement in traces.items():
        line = "  %-6s %-7s %-13s %8.0f" % (kind, machine, mode, measurement.time())
        theirs = KUBELET[machine, kind].get(mode)
        if theirs is not None:
            ratio, limit = theirs / measurement.time(), HIGHER_LIMITS.get((machine, kind, mode), LIMITS[machine])
            kept = kept and ratio >= limit
            line += " %8d  %4.1f times as fast (limit %d)" % (theirs, ratio, limit)
        print(line)
    print("One pod of four containers with the hints of its NUMA nodes, by itself and with its CPUs as a whole:")
    for machine, shape in MACHINES.items():
        by_container, as_whole = pod_times(shape)
        kept = kept and as_whole <= MOST_OF_WHOLE * by_container
        row = machine, 1e6 * by_container, 1e6 * as_whole, as_whole / by_container, MOST_OF_WHOLE
        print("  %-7s %6.0f us %6.0f us  %.2f times (limit %d)" % row)
    print("One take, by the machine's size:")
    print("  %5s" % "CPUs" + "".join("%13s" % mode for mode in MODES))
    for cpus in GROWING:
        print("  %5d" % cpus + "".join("%13.0f" % growth[cpus, mode].time() for mode in MODES))
    return kept
