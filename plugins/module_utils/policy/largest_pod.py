# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a reservation costs the largest pod: of how many CPUs a container is admitted on the empty node. Pure.

A container that would fit on a NUMA node as it is, and not beside the reserved CPUs, is refused with restricted and
single-numa-node; so a larger one can be admitted where a smaller one is not.
Source: pkg/kubelet/cm/cpumanager/policy_static.go (generateCPUTopologyHints), pkg/kubelet/cm/topologymanager.
"""

from __future__ import annotations

from typing import Any, Iterable, Mapping, NamedTuple, Sequence

from .._base.versions import NEWEST_MINOR
from .._containers.pods import APP, Container, Pod
from ..cpuset import CPUSet, count_bits
from ..topology.kubelet_view import CPUTopology
from .hints import CONTAINER, DEFAULT_MAX_NUMA_NODES, NONE, POLICIES, TopologyManager
from .options import StaticOptions
from .static import RunningState, StaticPolicy

_MEMORY = 1000 << 20


class PodSizes(NamedTuple):
    """The numbers of CPUs of a container that are admitted: the largest, and which below it are not."""

    largest: int
    # As the list of CPUs of a kernel, of numbers of CPUs.
    refused: CPUSet

    def admits(self, cpus: int) -> bool:
        """Return whether a container of so many CPUs is admitted."""
        return cpus <= self.largest and cpus not in self.refused

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, as modules return it."""
        return {"cpus": self.largest, "refused": str(self.refused)}

    def __str__(self) -> str:
        refused = " (and none of %s)" % self.refused if self.refused else ""
        return "%d CPU%s%s" % (self.largest, "" if self.largest == 1 else "s", refused)


def largest_pods(
    topology: CPUTopology, reserved: CPUSet, options: StaticOptions, policies: Iterable[str] = POLICIES
) -> dict[str, PodSizes]:
    """Return {policy of the topology manager: the sizes that it admits}, with the static policy and one container.

    With full-pcpus-only, a number that is no multiple of a core is not listed as refused. A policy that would have to
    go through too many sets of NUMA nodes is left out.
    """
    static = StaticPolicy(topology, options, reserved, NEWEST_MINOR)
    state = RunningState()
    static.start(state)
    per_core = topology.cpus_per_core if options.full_pcpus_only else 1
    kept = static.summary.reserved_physical if options.full_pcpus_only else reserved
    most = count_bits(topology.cpus & ~kept.mask)
    sizes = range(per_core, most + 1, per_core)
    nodes = list(topology.numa_nodes)
    has_hints = len(nodes) <= DEFAULT_MAX_NUMA_NODES
    hints = {size: static.hints(state, _pod_of(size), "app") for size in sizes} if has_hints else {}
    found = {}
    for name in policies:
        if name != NONE and not has_hints:
            continue
        manager = TopologyManager(name, CONTAINER, nodes)
        admitted = [size for size in sizes if name == NONE or manager.merge([hints[size]])[1]]
        largest = max(admitted, default=0)
        found[name] = PodSizes(largest, CPUSet(size for size in sizes if size < largest) - CPUSet(admitted))
    return found


def lost_owners(
    assignments: Mapping[str, Mapping[str, CPUSet]], sizes: PodSizes, is_pod_scope: bool
) -> Sequence[tuple[str, int]]:
    """Return [(`pod UID` or `pod UID, container NAME`, CPUs)] of those that have CPUs and would not be admitted
    again."""
    found = []
    for uid, containers in sorted(assignments.items()):
        counts = {"%s, container %s" % (uid, name): len(cpus) for name, cpus in sorted(containers.items())}
        if is_pod_scope:
            # Init containers have the CPUs of those that come after them.
            counts = {uid: len(CPUSet(cpu for cpus in containers.values() for cpu in cpus))}
        found += [(owner, count) for owner, count in counts.items() if not sizes.admits(count)]
    return found


def _pod_of(cpus: int) -> Pod:
    asked = {"cpu": 1000 * cpus, "memory": _MEMORY}
    return Pod("largest", "largest", (Container("app", APP, asked, asked),))
