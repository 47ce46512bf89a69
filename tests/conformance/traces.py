# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The traces in vectors/bench: allocations and releases in order, each with the kubelet's own answer."""

from __future__ import annotations

import lzma
import time
from pathlib import Path
from typing import Any, Iterable, NamedTuple, Protocol

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._containers.pods import APP, Container, Pod
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.assignment import TakeError, take_mask
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.options import StaticOptions
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.static import (
    AllocationError,
    RunningState,
    StaticPolicy,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.kubelet_view import (
    CPUTopology,
    kubelet_view,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import parse_name

TRACES = Path(__file__).parent / "vectors" / "bench"

# As tests/machines names them.
MACHINES = {"48cpu": "2s1n12c2t", "256cpu": "2s4n2l8c2t"}

MODES = {
    "packed": StaticOptions(),
    "distributed": StaticOptions(distribute_cpus_across_numa=True),
    "uncore": StaticOptions(prefer_align_cpus_by_uncorecache=True),
    "spread": StaticOptions(distribute_cpus_across_cores=True),
}

MINOR = 35
ERROR = "error: "


class Step(NamedTuple):
    """An allocation of some CPUs, or a release where that is 0. The answer is a CPU list or an error."""

    cpus: int
    answer: str


class DifferentAnswerError(Exception):
    """An allocation went otherwise than in the kubelet."""


def read_trace(machine: str, mode: str) -> list[Step]:
    """Return one file: `alloc N SET`, `alloc N error: TEXT`, `free SET`."""
    text = lzma.decompress((TRACES / ("%s-%s.txt.xz" % (machine, mode))).read_bytes())
    steps = []
    for line in text.decode("utf-8").splitlines():
        what, rest = line.split(" ", 1)
        if what == "alloc":
            count, answer = rest.split(" ", 1)
            steps.append(Step(int(count), answer))
        else:
            steps.append(Step(0, rest))
    return steps


def topology_of(name: str) -> CPUTopology:
    """Return what the kubelet makes of a machine of tests/machines."""
    return kubelet_view(parse_name(name).topology())


class Allocator(Protocol):
    """What can replay a trace. Only allocate() counts in its time."""

    def request(self, count: int) -> Any:
        """Return what allocate() is given."""

    def allocate(self, request: Any) -> int:
        """Allocate CPUs: their mask. Raises TakeError or AllocationError."""

    def release(self, mask: int) -> None:
        """Give them back."""


class TakeAllocator:
    """The bare choice of CPUs."""

    def __init__(self, topology: CPUTopology, options: StaticOptions) -> None:
        self.topology = topology
        self.options = options
        self.free = topology.cpus

    def request(self, count: int) -> int:
        return count

    def allocate(self, request: int) -> int:
        mask = take_mask(self.topology, self.free, request, self.options)
        self.free &= ~mask
        return mask

    def release(self, mask: int) -> None:
        self.free |= mask


class PolicyAllocator:
    """The static policy with its state in memory; each allocation is a pod."""

    def __init__(self, topology: CPUTopology, options: StaticOptions) -> None:
        self.policy = StaticPolicy(topology, options, CPUSet(), MINOR)
        self.state = RunningState()
        self.policy.start(self.state)
        self.pods = 0
        self.owners: dict[int, str] = {}

    def request(self, count: int) -> Pod:
        self.pods += 1
        resources = {"cpu": 1000 * count, "memory": 1000}
        uid = str(self.pods)
        return Pod(uid, uid, (Container("app", APP, resources, resources),))

    def allocate(self, request: Pod) -> int:
        self.policy.allocate(self.state, request, "app", None)
        mask = self.state.assignments[request.uid]["app"]
        self.owners[mask] = request.uid
        return mask

    def release(self, mask: int) -> None:
        self.policy.remove(self.state, self.owners.pop(mask), "app")


ALLOCATORS: dict[str, type[TakeAllocator] | type[PolicyAllocator]] = {"take": TakeAllocator, "policy": PolicyAllocator}


def replay(steps: Iterable[Step], allocator: Allocator) -> list[float]:
    """Return the seconds of each allocation, the refused ones included.

    Raises DifferentAnswerError at the first answer that is not the kubelet's.
    """
    clock, times = time.perf_counter, []
    for number, (count, expected) in enumerate(steps, 1):
        if not count:
            allocator.release(CPUSet.parse(expected).mask)
            continue
        request = allocator.request(count)
        start = clock()
        try:
            mask = allocator.allocate(request)
            times.append(clock() - start)
            answer = str(CPUSet.from_mask(mask))
        except (TakeError, AllocationError) as error:
            times.append(clock() - start)
            answer = ERROR + str(error)
        if answer != expected:
            raise DifferentAnswerError("step %d, alloc %d: %s, and not %s" % (number, count, answer, expected))
    return times
