# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options with which a kubelet starts, and which do not do what they are for. Pure.

Source: pkg/kubelet/cm/cpumanager/policy_static.go and cpu_assignment.go, pkg/kubelet/cm/topologymanager.
"""

from __future__ import annotations

from typing import Iterable, Iterator, Mapping, NamedTuple, Sequence

from .._base.errors import Note
from ..cpuset import CPUSet
from ..state.assignments import State
from ..topology.kubelet_view import CPUTopology
from ..topology.model import Group, Topology
from .hints import MOST_NUMA_NODES, NONE, SINGLE_NUMA_NODE
from .options import ALIGN_BY_SOCKET, DISTRIBUTE_ACROSS_NUMA, PREFER_UNCORE, StaticOptions

# The first version whose distribution over NUMA nodes keeps to a socket with align-by-socket.
_DISTRIBUTES_IN_SOCKETS = 37
# So many owners of scattered CPUs are named.
_NAMED = 3
_INEFFECTIVE = "option-ineffective"


class Harm(NamedTuple):
    """A field that does harm, or an option that does not do what it is for; and the check that it belongs to."""

    where: str
    cause: str
    remedy: str
    check: str = _INEFFECTIVE

    def to_note(self, begin: str = "") -> Note:
        """Return what a report says of it, behind this beginning."""
        return Note(self.check, "%s%s: %s; %s" % (begin, self.where, self.cause, self.remedy))


def option_harms(
    options: StaticOptions,
    topology: CPUTopology,
    manager: str,
    manager_options: Mapping[str, str],
    minor: int,
    all_nodes: int,
    has_memory_manager: bool,
) -> Iterator[Harm]:
    """Yield what is wrong with options of the static policy and of the topology manager, whose policy is `manager`.

    all_nodes: how many NUMA nodes there are, with those that have no CPUs. has_memory_manager: with the policy Static.
    """
    slow = admission_harm(manager, all_nodes, topology.num_numa_nodes, has_memory_manager)
    if slow is not None:
        yield slow
    place = "cpuManagerPolicyOptions.%s"
    sockets, nodes = topology.num_sockets, topology.num_numa_nodes
    is_distributed = options.distribute_cpus_across_numa
    is_aligned_alone = is_distributed and minor >= _DISTRIBUTES_IN_SOCKETS
    if options.align_by_socket and sockets > 1 and manager == NONE and not is_aligned_alone:
        yield Harm(
            place % ALIGN_BY_SOCKET,
            "align-by-socket acts on hints of the topology manager only, and with its policy none there are none: it"
            " has no effect, and a container can get CPUs of several sockets",
            "set topologyManagerPolicy: best-effort or restricted, or drop align-by-socket",
        )
    if options.align_by_socket and is_distributed and not is_aligned_alone and nodes > sockets > 1:
        yield Harm(
            place % ALIGN_BY_SOCKET,
            "before Kubernetes 1.%d distribute-cpus-across-numa does not look at sockets: in spite of align-by-socket a"
            " container can get CPUs of NUMA nodes of several sockets" % _DISTRIBUTES_IN_SOCKETS,
            "drop one of the two, or upgrade to Kubernetes 1.%d" % _DISTRIBUTES_IN_SOCKETS,
        )
    if is_distributed and manager == SINGLE_NUMA_NODE and nodes > 1:
        yield Harm(
            place % DISTRIBUTE_ACROSS_NUMA,
            "with the topology manager's policy single-numa-node each container has one NUMA node or is refused:"
            " distribute-cpus-across-numa has no effect",
            "set topologyManagerPolicy: best-effort or restricted, or drop distribute-cpus-across-numa",
        )
    if options.prefer_align_cpus_by_uncorecache and topology.has_hidden_caches:
        yield Harm(
            place % PREFER_UNCORE,
            "the kubelet does not see the L3 caches of this machine and takes each socket for one: in spite of"
            " prefer-align-cpus-by-uncorecache a container can get CPUs of several L3 caches",
            "drop the option; where each NUMA node has one L3 cache, topologyManagerPolicy: restricted aligns by it",
        )
    if manager_options and manager == NONE:
        yield Harm(
            "topologyManagerPolicyOptions",
            "with the topology manager's policy none the kubelet does not look at its options (%s)"
            % ", ".join(sorted(manager_options)),
            "set topologyManagerPolicy: best-effort or restricted, or drop the options",
        )


def admission_harm(manager: str, nodes: int, nodes_with_cpus: int, has_memory_manager: bool) -> Harm | None:
    """Return what comes of so many NUMA nodes with the topology manager's policy `manager`."""
    has_hints = manager != NONE
    # Without hints, the memory manager goes through the sets itself (getDefaultHint).
    if nodes <= MOST_NUMA_NODES or not (has_hints or has_memory_manager):
        return None
    # Devices and memory can be of nodes without CPUs.
    cpus = "exclusive CPUs, " if nodes_with_cpus > MOST_NUMA_NODES else ""
    fields = {"topologyManagerPolicy": "none"} if has_hints else {}
    fields.update({"memoryManagerPolicy": "None"} if has_memory_manager else {})
    return Harm(
        next(iter(fields)),
        "to admit a pod that asks for %smemory (memory manager Static), the kubelet goes through all sets of the %d"
        " NUMA nodes, 2^%d: with more than %d nodes this takes long or never ends, and no other pod is admitted"
        " meanwhile" % (cpus + "devices or " if has_hints else "", nodes, nodes, MOST_NUMA_NODES),
        "set " + " and ".join("%s: %s" % field for field in fields.items()),
        "numa-nodes-many",
    )


def scattered_notes(
    options: StaticOptions, topology: Topology, state: State, pod_names: Mapping[str, str]
) -> list[Note]:
    """Return notes on scattered CPUs. pod_names: {pod UID: its name}, of those that are known."""
    return [Note(_INEFFECTIVE, text) for text in scattered(options, topology, _named_owners(state, pod_names))]


def _named_owners(state: State, pod_names: Mapping[str, str]) -> Iterator[tuple[str, CPUSet]]:
    """Yield who has exclusive CPUs, by the name for a message."""
    for uid, container, cpus in state.owners():
        pod = "pod %s" % pod_names.get(uid, uid)
        yield ("%s, container %s" % (pod, container) if container else pod), cpus


def scattered(options: StaticOptions, topology: Topology, sets: Iterable[tuple[str, CPUSet]]) -> Iterator[str]:
    """Yield what is to be said of owners that have CPUs of more sockets or L3 caches than an option is to give them.

    sets: (the owner as it is to be named, its CPUs).
    """
    kinds: list[tuple[str, str, Sequence[Group]]] = []
    if options.align_by_socket:
        kinds.append((ALIGN_BY_SOCKET, "sockets", topology.sockets))
    if options.prefer_align_cpus_by_uncorecache:
        kinds.append((PREFER_UNCORE, "L3 caches", topology.caches))
    if not kinds:
        return
    owners = list(sets)
    for option, noun, groups in kinds:
        found, sizes = [], [len(group.cpus) for group in groups]
        for owner, cpus in owners:
            touched, needed = sum(1 for group in groups if group.cpus & cpus), fewest(sizes, len(cpus))
            if touched > needed:
                found.append("%s has CPUs %s of %d %s, and %d would hold them" % (owner, cpus, touched, noun, needed))
        if found:
            more = "; so it is with %d more" % (len(found) - _NAMED) if len(found) > _NAMED else ""
            yield "in spite of %s %s%s" % (option, "; ".join(found[:_NAMED]), more)


def stranded(options: StaticOptions, topology: Topology, free: CPUSet, reserved: CPUSet) -> CPUSet:
    """Return the free CPUs that no container can get for itself, though the scheduler counts them: with
    full-pcpus-only.

    These are the other threads of reserved CPUs. Of the rest a container gets as many as some cores have, so that a few
    may be left: then of the cores that are taken in part. The kubelet counts, and does not look whether they are whole.
    Source: Allocate and GetAvailablePhysicalCPUs in pkg/kubelet/cm/cpumanager/policy_static.go.
    """
    if not options.full_pcpus_only:
        return CPUSet()
    beside = free & CPUSet(cpu for core in topology.cores if core.cpus & reserved for cpu in core.cpus)
    rest = free - beside
    whole = CPUSet(cpu for core in topology.cores if core.cpus <= rest for cpu in core.cpus)
    left = len(rest) % max(1, len(topology.online) // len(topology.cores))
    return beside | CPUSet([*whole, *(rest - whole)][len(rest) - left :])


def fewest(sizes: Iterable[int], count: int) -> int:
    """Return how many groups of these sizes can hold so many CPUs, were they empty; all where they cannot."""
    number = 0
    for size in sorted(sizes, reverse=True):
        if count <= 0:
            break
        count -= size
        number += 1
    return number
