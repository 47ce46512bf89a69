# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which settings fit a shape and what runs there, each with its reason. Pure."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from contextlib import suppress
from typing import Any, Mapping, NamedTuple

from ...module_utils._base.errors import InputError
from ...module_utils._base.versions import NEWEST_MINOR
from ...module_utils._kubelet.settings import STATIC_MEMORY, TOPOLOGY_MANAGER_POLICIES
from ...module_utils.cpuset import CPUSet
from ...module_utils.policy.hints import MOST_NUMA_NODES
from ...module_utils.policy.largest_pod import largest_pods
from ...module_utils.policy.options import (
    FULL_PCPUS_ONLY,
    MANAGER_SINCE,
    MAX_NUMA_NODES,
    PREFER_UNCORE,
    STRICT_RESERVATION,
    parse_static_options,
)
from ...module_utils.policy.reservation import PACKED, SPREAD, CurveStep, count_by_curve, plan_reservation
from ...module_utils.state.acceptance import NONE, STATIC
from ...module_utils.topology.kubelet_view import kubelet_view
from ...module_utils.topology.model import Group, Topology

# The shape of a node: what of its topology decides which settings fit. Pure.
#
# Nodes of one shape get the same settings. How the CPUs are numbered is no part of it, as the reservation is planned
# for each node from its own topology.


class NUMANodeShape(NamedTuple):
    """What one NUMA node with CPUs has."""

    cpus: int
    # (online threads of a core, how many cores have so many), in order.
    cores: tuple[tuple[int, int], ...]
    caches: int


class Shape(NamedTuple):
    """Counts of online CPUs, sockets, NUMA nodes (those without CPUs, too), L3 caches, cores, threads of a core."""

    cpus: int
    sockets: int
    numa_nodes: int
    caches: int
    cores: int
    # The most that a core has.
    threads: int
    # Of the NUMA nodes with CPUs, in the order of their sizes.
    parts: tuple[NUMANodeShape, ...]

    @property
    def uniform_cores(self) -> bool:
        """Whether all cores have equally many online threads."""
        return self.cores * self.threads == self.cpus

    @property
    def is_regular(self) -> bool:
        """Whether the counts say everything: all NUMA nodes, cores and caches are alike."""
        if not self.uniform_cores:
            return False
        count = self.numa_nodes
        caches = max(1, self.caches // count) if self.caches else 0
        part = NUMANodeShape(self.cpus // count, ((self.threads, self.cores // count),), caches)
        return self.parts == (part,) * count and self.caches in (0, caches * count, 1)

    @property
    def name(self) -> str:
        """The shape as a part of a group's name: equal for equal shapes, different for different ones."""
        name = "cpus%d_sockets%d_numa%d_caches%d_threads%d" % (
            self.cpus,
            self.sockets,
            self.numa_nodes,
            self.caches,
            self.threads,
        )
        return name if self.is_regular else "%s_%s" % (name, short_hash(self))

    def __str__(self) -> str:
        counts = (
            (self.cpus, "CPU"),
            (self.sockets, "socket"),
            (self.numa_nodes, "NUMA node"),
            (self.caches, "L3 cache"),
            (self.cores, "core"),
        )
        text = ", ".join("%d %s%s" % (count, name, "" if count == 1 else "s") for count, name in counts)
        threads = "%d thread%s" % (self.threads, "" if self.threads == 1 else "s")
        return "%s of %s%s" % (text, "" if self.uniform_cores else "up to ", threads)


def shape_of(topology: Topology) -> Shape:
    """Return the shape of a machine."""
    parts = [
        NUMANodeShape(
            len(node.cpus),
            tuple(sorted(Counter(len(core.cpus) for core in _within(topology.cores, node)).items())),
            len(_within(topology.caches, node)),
        )
        for node in topology.numa_nodes
        if node.cpus
    ]
    return Shape(
        len(topology.online),
        # A machine that does not name its sockets has one.
        max(1, len(topology.sockets)),
        len(topology.numa_nodes),
        len(topology.caches),
        len(topology.cores),
        topology.threads_per_core,
        tuple(sorted(parts)),
    )


def short_hash(value: object) -> str:
    """Return eight hexadecimal digits that stand for plain data."""
    text = json.dumps(value, sort_keys=True)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:8]


def _within(groups: tuple[Group, ...], node: Group) -> list[Group]:
    """Return the cores or caches that a NUMA node has a part of."""
    return [group for group in groups if group.cpus & node.cpus]


LATENCY, BATCH, VIRTUAL_MACHINES = "latency", "batch", "virtual_machines"
WORKLOADS = (LATENCY, BATCH, VIRTUAL_MACHINES)
ALIGNMENTS = TOPOLOGY_MANAGER_POLICIES
_BEST_EFFORT, _RESTRICTED, _SINGLE = ALIGNMENTS[1:]

# What the roles call the settings of modules.
PREFIX = "kubelet_"
HOUSEKEEPING = "housekeeping_layers"
_LAYERS = ("interrupts", "workqueues", "rps", "slices", "irqbalance")

# What managed Kubernetes (GKE, EKS) reserves of a node's CPU time.
CURVE: tuple[Mapping[str, Any], ...] = (
    {"cpus": 1, "fraction": 0.06},
    {"cpus": 1, "fraction": 0.01},
    {"cpus": 2, "fraction": 0.005},
    {"fraction": 0.0025},
)

# The kubelet's own limit for its topology manager, pkg/kubelet/cm/topologymanager.
_MOST_NUMA_NODES = 8
# From these minor versions on the options need no feature gate that is off by default.
_STRICT_SINCE, _UNCORE_SINCE = 33, 34

_ALIGNMENT = {LATENCY: _SINGLE, VIRTUAL_MACHINES: _RESTRICTED, BATCH: NONE}
_STRATEGY = {LATENCY: SPREAD, VIRTUAL_MACHINES: PACKED, BATCH: PACKED}
_WHY_STRATEGY = {
    (LATENCY, SPREAD): "Spread over the NUMA nodes, as far as they go: what the system does for a pod is done near it.",
    (VIRTUAL_MACHINES, PACKED): "Of the first NUMA nodes: the others stay whole for large machines.",
    (BATCH, PACKED): "Of the first NUMA nodes: the others stay whole for large pods.",
}
_WHY_ALIGNMENT = {
    NONE: "The workload does not ask for alignment.",
    _BEST_EFFORT: "Pods are aligned to NUMA nodes where that is possible, and none is refused for it.",
    _RESTRICTED: "A pod gets the fewest NUMA nodes that it fits on; one that cannot have these is refused.",
    _SINGLE: "A pod gets CPUs and devices of one NUMA node; one that does not fit there is refused.",
}


class SettingsWish(NamedTuple):
    """What is wanted of a node, in the words of an operator; None: what fits the workload."""

    workload: str
    # How many CPUs for the system, with the keys of reserved_cpus; empty: by CURVE.
    reservation: Mapping[str, Any]
    # Whether two pods may run on the threads of one core.
    share_cores: bool | None = None
    # One of ALIGNMENTS.
    numa_alignment: str | None = None
    housekeeping: bool = False


class Line(NamedTuple):
    """One variable of a group: its name, its value as plain data, and why."""

    variable: str
    value: Any
    reason: str


def propose(shape: Shape, topology: Topology, minor: int, wish: SettingsWish) -> list[Line]:
    """Return the variables for nodes of a shape. topology: of one of them. minor: of their oldest kubelet, such as 33.

    Raises InputError where the reservation cannot be had of these machines.
    """
    one_core = _is_one_core(topology, wish)
    alignment = _alignment(shape, minor, wish, one_core)
    # What is left of it on these machines.
    is_aligned = alignment[0].value != NONE
    is_static = not one_core and (wish.workload != BATCH or wish.share_cores is False or is_aligned)
    options = _options(shape, minor, wish, is_static)
    lines = [_policy(wish, is_static, one_core), options, *alignment]
    if wish.reservation.get("memory") and not one_core:
        why = "Guaranteed pods get memory of the NUMA nodes of their CPUs; the reservation below plans reservedMemory."
        lines.append(Line(PREFIX + "memory_manager_policy", STATIC_MEMORY, why))
    lines.append(
        _no_reservation(shape) if one_core else _reservation(topology, wish, alignment[0].value, options.value)
    )
    # Without reserved CPUs there is nowhere to keep it.
    if wish.housekeeping and not one_core:
        why = "The playbook housekeeping keeps the host's own work on the reserved CPUs, with these layers."
        lines.append(Line(HOUSEKEEPING, list(_LAYERS), why))
    return lines


def arguments(lines: list[Line]) -> dict[str, Any]:
    """Return the proposal as options of modules, which are about the kubelet alone."""
    return {line.variable[len(PREFIX) :]: line.value for line in lines if line.variable.startswith(PREFIX)}


def _is_one_core(topology: Topology, wish: SettingsWish) -> bool:
    """Return whether the system and the pods have to share one core, unless it is to be split or a count was asked
    for."""
    asked = wish.reservation
    is_split = bool(asked.get("allow_split_core")) and len(topology.online) > 1
    return len(topology.cores) == 1 and not is_split and asked.get("count") is None


def _policy(wish: SettingsWish, is_static: bool, one_core: bool) -> Line:
    name = PREFIX + "cpu_manager_policy"
    if one_core:
        return Line(name, NONE, "There is one core: the system would keep none if a container had it as its own.")
    if not is_static:
        return Line(name, NONE, "Batch work uses most CPU time where all pods share all CPUs.")
    why = "Containers of Guaranteed pods that request whole CPUs get CPUs of their own."
    if wish.workload == BATCH:
        why += " What was asked for about cores or NUMA nodes takes this policy."
    return Line(name, STATIC, why)


def _options(shape: Shape, minor: int, wish: SettingsWish, is_static: bool) -> Line:
    """Return cpuManagerPolicyOptions, each with its reason, and why one that could be expected is not among them."""
    options: dict[str, str] = {}
    reasons = []
    if not is_static:
        return Line(PREFIX + "cpu_manager_policy_options", {}, "The policy none takes no option.")
    may_share = wish.share_cores if wish.share_cores is not None else wish.workload == BATCH
    if may_share:
        reasons.append("Pods may share a core.")
    elif shape.cores == 1:
        reasons.append("Without %s: the one core is split." % FULL_PCPUS_ONLY)
    elif shape.threads == 1:
        reasons.append("Without %s: a core has one thread." % FULL_PCPUS_ONLY)
    elif not shape.uniform_cores:
        reasons.append(
            "Without %s: some cores have fewer threads online, and the kubelet counts with an average."
            % FULL_PCPUS_ONLY
        )
    else:
        options[FULL_PCPUS_ONLY] = "true"
        reasons.append("%s: no two pods share a core." % FULL_PCPUS_ONLY)
    if wish.workload != BATCH:
        if minor >= _STRICT_SINCE:
            options[STRICT_RESERVATION] = "true"
            reasons.append("%s: no pod at all runs on the reserved CPUs." % STRICT_RESERVATION)
        else:
            reasons.append("Without %s: it is off by default before 1.%d." % (STRICT_RESERVATION, _STRICT_SINCE))
        if any(part.caches > 1 for part in shape.parts):
            if minor >= _UNCORE_SINCE:
                options[PREFER_UNCORE] = "true"
                reasons.append("%s: a NUMA node has several L3 caches." % PREFER_UNCORE)
            else:
                reasons.append("Without %s: it is off by default before 1.%d." % (PREFER_UNCORE, _UNCORE_SINCE))
    return Line(PREFIX + "cpu_manager_policy_options", options, " ".join(reasons))


def _alignment(shape: Shape, minor: int, wish: SettingsWish, one_core: bool) -> list[Line]:
    """Return the topology manager's settings; its policy first."""
    alignment = wish.numa_alignment or _ALIGNMENT[wish.workload]
    why = _WHY_ALIGNMENT[alignment]
    extra: list[Line] = []
    if alignment != NONE and shape.numa_nodes == 1:
        alignment, why = NONE, "There is one NUMA node, and nothing to align."
    elif alignment != NONE and one_core:
        alignment, why = NONE, "There is one core, and nothing to align."
    elif alignment != NONE and shape.numa_nodes > _MOST_NUMA_NODES:
        if shape.numa_nodes > MOST_NUMA_NODES:
            alignment = NONE
            why = "With more than %d NUMA nodes the topology manager has too many sets of them to go through." % (
                MOST_NUMA_NODES
            )
        elif minor >= MANAGER_SINCE[MAX_NUMA_NODES][1]:
            value = {MAX_NUMA_NODES: str(shape.numa_nodes)}
            reason = "The kubelet takes %d NUMA nodes otherwise; each more makes admission slower." % _MOST_NUMA_NODES
            extra = [Line(PREFIX + "topology_manager_policy_options", value, reason)]
        else:
            alignment, why = NONE, "A kubelet 1.%d takes at most %d NUMA nodes." % (minor, _MOST_NUMA_NODES)
    lines = [Line(PREFIX + "topology_manager_policy", alignment, why), *extra]
    if alignment != NONE:
        is_pod = wish.workload != BATCH
        reason = "All containers of a pod are aligned together." if is_pod else "Each container is aligned by itself."
        lines.append(Line(PREFIX + "topology_manager_scope", "pod" if is_pod else "container", reason))
    return lines


def _no_reservation(shape: Shape) -> Line:
    why = "No CPU is reserved: a core is reserved as a whole, and there is one."
    if shape.cpus == 1:
        why = "No CPU is reserved: there is one."
    return Line(PREFIX + "reserved_system_cpus", "", why)


def _reservation(topology: Topology, wish: SettingsWish, alignment: str, options: Mapping[str, str]) -> Line:
    """Return a count of CPUs, which each node plans from its own topology."""
    asked = {"strategy": _STRATEGY[wish.workload], **wish.reservation}
    split = bool(asked.get("allow_split_core"))
    count, is_least, how = _count(topology, asked)
    planned = plan_reservation(topology, count, asked["strategy"], allow_split_core=split, at_least=is_least)
    value: dict[str, Any] = {"count": len(planned.reserved), "strategy": asked["strategy"]}
    if asked.get("near_device"):
        # Each node finds it out: it decides where the CPUs are, and not how many.
        value["near_device"] = asked["near_device"]
    if split:
        value["allow_split_core"] = True
    if asked.get("memory"):
        # Each node finds it out from its own memory and what its kubelet reserves.
        value["memory"] = asked["memory"]
    why = "%d of %d CPUs for the system and Kubernetes: %s." % (len(planned.reserved), len(topology.online), how)
    where = _WHY_STRATEGY.get((wish.workload, asked["strategy"]), "Laid out as was asked for.")
    cost = ""
    if alignment in (_RESTRICTED, _SINGLE):
        cost = _largest_pods(topology, planned.reserved, value, alignment, options)
    return Line(PREFIX + "reservation", value, "%s %s%s" % (why, where, cost))


def _largest_pods(
    topology: Topology, reserved: CPUSet, asked: Mapping[str, Any], alignment: str, options: Mapping[str, str]
) -> str:
    """Return what the reservation costs the largest pod, and what the other strategy would; empty where that is too
    much."""
    view, parsed = kubelet_view(topology), parse_static_options(options, NEWEST_MINOR, True)
    sizes = largest_pods(view, reserved, parsed, [alignment]).get(alignment)
    if sizes is None:
        return ""
    opposite, text = SPREAD if asked["strategy"] == PACKED else PACKED, ""
    # It may be that the other one cannot reserve so many.
    with suppress(InputError):
        split = bool(asked.get("allow_split_core"))
        reserved = plan_reservation(topology, asked["count"], opposite, allow_split_core=split).reserved
        text = "; with %s, %s" % (opposite, largest_pods(view, reserved, parsed, [alignment])[alignment])
    return " The largest pod that %s admits has %s%s." % (alignment, sizes, text)


def _count(topology: Topology, asked: Mapping[str, Any]) -> tuple[int, bool, str]:
    """Return how many CPUs, whether these are the least that are to be reserved, and why so many."""
    if asked.get("count") is not None:
        return asked["count"], False, "the count that was asked for"
    cpus = len(topology.online)
    if asked.get("fraction") is not None:
        fraction = asked["fraction"]
        return count_by_curve(cpus, [CurveStep(None, fraction)]), True, "%.6g of all, in whole cores" % fraction
    how = "by the curve that was asked for, in whole cores"
    if asked.get("curve") is None:
        how = "by the curve of managed Kubernetes (6, 1, 0.5, 0.5, then 0.25 % of each CPU), in whole cores"
    steps = [CurveStep(step.get("cpus"), step["fraction"]) for step in asked.get("curve") or CURVE]
    count = count_by_curve(cpus, steps)
    if asked.get("curve") is None and asked["strategy"] == SPREAD:
        least = _core_of_each_numa_node(topology)
        if least > count:
            return least, True, "a core of each NUMA node, which is more than the curve of managed Kubernetes gives"
    return count, True, how


def _core_of_each_numa_node(topology: Topology) -> int:
    """Return how many CPUs that is; 0 where a NUMA node would have no core left."""
    cores = [core.cpus for core in topology.cores]
    nodes = [[core for core in cores if core & node.cpus] for node in topology.numa_nodes if node.cpus]
    return 0 if min(map(len, nodes)) < 2 else len(nodes) * max(map(len, cores))
