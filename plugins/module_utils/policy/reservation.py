# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which CPUs to reserve: by our own planner, and as the kubelet does it by itself. Pure.

It reserves exactly the count asked for, of online CPUs, in whole cores, and leaves CPUs to the
pods. "packed" fills one NUMA node after the other; "spread" takes equally many cores of each NUMA node,
give or take one (a node with fewer cores gives all it has).
"""

from __future__ import annotations

from math import ceil
from typing import Iterator, NamedTuple, Sequence

from .._base.errors import InputError, KubeletError, option
from .._base.quantity import counted
from ..cpuset import CPUSet, iterate_bits
from ..topology.kubelet_view import CPUTopology
from ..topology.model import Topology
from .options import StaticOptions

# The CPUs that the kubelet reserves by itself, predicted, and what it leaves of their cores to pods. Pure.


MILLI = 1000


def kubelet_reservation(
    topology: CPUTopology, millicores: int, options: StaticOptions, reserved_system_cpus: CPUSet = CPUSet()
) -> CPUSet:
    """Return the CPUs that the static policy reserves at start.

    `millicores` is kubeReserved.cpu + systemReserved.cpu, which a non-empty `reserved_system_cpus` replaces.
    Raises KubeletError where it would not start.
    Source: NewStaticPolicy in pkg/kubelet/cm/cpumanager/policy_static.go.
    """
    if reserved_system_cpus:
        millicores = MILLI * len(reserved_system_cpus)
    if millicores <= 0:
        raise KubeletError(
            "[cpumanager] unable to determine reserved CPU resources for static policy",
            "set reservedSystemCPUs, or a cpu in kubeReserved or systemReserved",
        )
    # In the kubelet's floating point.
    count = ceil(float(millicores) / MILLI)
    reserved = reserved_system_cpus
    if not reserved:
        # Imported here: most nodes name their reserved CPUs, and every import costs time on every node.
        from .assignment import EndlessDistributionError, TakeError, take_mask

        try:
            reserved = CPUSet.from_mask(take_mask(topology, topology.cpus, count, options))
        except TakeError:
            reserved = CPUSet()  # the kubelet looks at the size only, below
        except EndlessDistributionError as error:
            raise KubeletError(str(error), "name the CPUs in reservedSystemCPUs") from error
    if len(reserved) != count:
        raise KubeletError(
            "[cpumanager] unable to reserve the required amount of CPUs (size of %s did not equal %d)"
            % (reserved, count),
            "reserve fewer with reservedSystemCPUs, kubeReserved and systemReserved",
        )
    return reserved


def named_cpus(value: object) -> CPUSet:
    """Return the CPUs that the option reserved_system_cpus names. Raises InputError."""
    check_is_text(value)
    try:
        return CPUSet.parse_plain(str(value))
    except InputError as error:
        raise error.within(option("reserved_system_cpus")) from error


def check_is_text(value: object) -> None:
    """Raise InputError for CPUs that are no text: it is not known what they mean."""
    if isinstance(value, str):
        return
    what, remedy = "%r is not a text" % (value,), 'write the CPUs as one text, as in "0-1,24-25"'
    if isinstance(value, int) and not isinstance(value, bool):
        what = "the number %d can mean CPU %d or %s" % (value, value, counted(value, "CPU"))
        remedy = 'write "%d" in quotes for the CPU' % value
        # At least one CPU is reserved.
        remedy += ", or %s: {count: %d} for so many CPUs" % (option("reservation"), value) if value > 0 else ""
    raise InputError(what, option("reserved_system_cpus"), remedy)


def split_cores(reserved: CPUSet, others: CPUSet, whole_cores_only: bool, is_wanted: bool = False) -> str:
    """Return what is to be said of a reservation whose cores have `others`, too. whole_cores_only: with
    full-pcpus-only."""
    split, get, can = ("would split", "would get", "could") if is_wanted else ("splits", "get", "can")
    if not whole_cores_only:
        return "reservation %s %s cores: pods %s their other threads, CPUs %s" % (reserved, split, get, others)
    return (
        "reservation %s %s cores: no pod %s have their other threads, CPUs %s, for itself with full-pcpus-only: %s that"
        " the scheduler counts" % (reserved, split, can, others, counted(len(others), "CPU"))
    )


# How the planner lays reserved CPUs out on a machine.


# The first cores, one NUMA node after the other.
PACKED = "packed"
# As many of each NUMA node.
SPREAD = "spread"


# --- how many ------------------------------------------------------------------------------------


class CurveStep(NamedTuple):
    """One step of a curve: of the next `cpus` CPUs (None: of all others) this fraction is reserved."""

    cpus: int | None
    fraction: float


def count_by_curve(cpus: int, steps: Sequence[CurveStep]) -> int:
    """Return how many of `cpus` CPUs a curve reserves, rounded up. Raises InputError for a curve that makes no
    sense."""
    millionths, left = 0, cpus
    for number, step in enumerate(steps, 1):
        where = "step %d of the curve" % number
        if not 0 <= step.fraction <= 1:
            raise InputError("the fraction is %s" % step.fraction, where, "give one between 0 and 1")
        if step.cpus is None and number < len(steps):
            raise InputError("has no cpus", where, "only the last step may stand for all others")
        if step.cpus is not None and step.cpus < 1:
            raise InputError("cpus is %d" % step.cpus, where, "a step has at least one CPU")
        here = left if step.cpus is None else min(step.cpus, left)
        # In whole millionths: in floating point 30 * 0.1 is more than 3, and would be rounded up to 4.
        millionths += here * round(step.fraction * 10**6)
        left -= here
    return max(1, -(-millionths // 10**6))


# --- the planner ---------------------------------------------------------------------------------


class Reservation(NamedTuple):
    """What the planner decided."""

    reserved: CPUSet
    # What is left to the pods.
    isolated: CPUSet
    # The threads that SMT off takes offline; empty when SMT is kept.
    switched_off: CPUSet
    # The core that was split, empty unless that was allowed and needed.
    split_core: CPUSet


def plan_reservation(
    topology: Topology,
    count: int,
    strategy: str = PACKED,
    smt: bool = True,
    allow_split_core: bool = False,
    near_numa_node: int | None = None,
    at_least: bool = False,
) -> Reservation:
    """Decide which `count` CPUs to reserve.

    smt=False plans for SMT switched off: only the first thread of each core is there to be reserved or used.
    near_numa_node: the NUMA node to begin with. at_least: round up to a count that needs no split core.
    Raises InputError, with the two nearest counts where `count` would split a core.
    """
    planner = _Planner(topology, strategy, smt, near_numa_node)
    most = planner.total - 1
    if count < 1:
        raise InputError("cannot reserve %s" % counted(count, "CPU"), remedy="reserve at least one")
    if count > most:
        raise InputError(
            "cannot reserve %d of %s" % (count, counted(planner.total, "CPU")),
            remedy="at least one must be left for the pods",
        )
    lower = next((size for size in range(count, 0, -1) if planner.can_give(size)), 0)
    higher = next((size for size in range(count, most + 1) if planner.can_give(size)), 0)
    split_core = CPUSet()
    if lower == count or (at_least and higher):
        reserved = planner.cores_of(count if lower == count else higher)
    elif allow_split_core:
        reserved = planner.cores_of(lower)
        split_core = planner.core_to_split(reserved, count - lower)
        reserved |= split_core.take(count - lower)
    else:
        nearest = " and ".join(str(size) for size in (lower, higher) if size)
        way_out = "the nearest counts are %s; take one of them, or" % nearest if nearest else "the machine has one;"
        raise InputError(
            "cannot reserve %s without splitting a core" % counted(count, "CPU"),
            remedy="%s allow one split core" % way_out,
        )
    return Reservation(reserved, planner.usable - reserved, topology.online - planner.usable, split_core)


class _Planner:
    """The cores of a machine in the order in which they are to be reserved, by NUMA node."""

    def __init__(self, topology: Topology, strategy: str, smt: bool, near_numa_node: int | None) -> None:
        if strategy not in (PACKED, SPREAD):
            raise InputError("strategy %r is neither %s nor %s" % (strategy, PACKED, SPREAD))
        cores = [core.cpus if smt else core.cpus.take(1) for core in topology.cores]
        self.usable = CPUSet.from_mask(sum(core.mask for core in cores))
        self.total = len(self.usable)
        self.nodes = [_Node(cores) for cores in _by_numa_node(topology, cores, near_numa_node)]
        if strategy == PACKED:
            # One after the other is the same as one big node.
            self.nodes = [_Node([core for node in self.nodes for core in node.cores])]

    def can_give(self, count: int) -> bool:
        """Return whether `count` CPUs can be had in whole cores."""
        if len(self.nodes) == 1:
            return bool(self.nodes[0].sums >> count & 1)
        return next(self._plans(count), None) is not None

    def cores_of(self, count: int) -> CPUSet:
        """Return the whole cores that make up a `count` that can be given."""
        if len(self.nodes) == 1:
            return self.nodes[0].first_cores(count)
        return self._take_quotas(count, *next(self._plans(count)))

    def _plans(self, count: int) -> Iterator[tuple[list[int], int, list[list[int]]]]:
        """Yield the quotas that give `count`, those of the fewest cores first."""
        sizes = [size for node in self.nodes for size in node.by_size]
        most_cores = min(count // min(sizes), sum(len(node.cores) for node in self.nodes))
        for number in range(-(-count // max(sizes)), most_cores + 1):
            floors, extras, sums = self._quotas(number)
            if sums[0][extras] >> count & 1:
                yield floors, extras, sums

    def _quotas(self, number: int) -> tuple[list[int], int, list[list[int]]]:
        """Return how `number` cores are levelled out: (cores that each node gives, how many nodes give one more, sums).

        sums[i][e] are the CPU counts, as bits, that the nodes from the i-th on can give with e of them giving one more.
        """
        sizes = [len(node.cores) for node in self.nodes]
        level = max(level for level in range(max(sizes) + 1) if sum(min(size, level) for size in sizes) <= number)
        floors = [min(size, level) for size in sizes]
        extras = number - sum(floors)
        sums = [[1] + [0] * extras]
        for node, floor in zip(reversed(self.nodes), reversed(floors)):
            after = sums[0]
            here = [_add_sums(after[extra], node.sums_of(floor)) for extra in range(extras + 1)]
            if floor < len(node.cores):
                for extra in range(extras):
                    here[extra + 1] |= _add_sums(after[extra], node.sums_of(floor + 1))
            sums.insert(0, here)
        return floors, extras, sums

    def _take_quotas(self, count: int, floors: list[int], extras: int, sums: list[list[int]]) -> CPUSet:
        reserved = CPUSet()
        for index, (node, floor) in enumerate(zip(self.nodes, floors)):
            cpus, number = next(
                (cpus, number)
                for number in (floor + 1, floor)  # the first nodes give more
                if extras - (number - floor) >= 0 and number <= len(node.cores)
                for cpus in iterate_bits(node.sums_of(number))
                if cpus <= count and sums[index + 1][extras - (number - floor)] >> (count - cpus) & 1
            )
            extras -= number - floor
            count -= cpus
            reserved |= node.cores_of(number, cpus)
        return reserved

    def core_to_split(self, reserved: CPUSet, threads: int) -> CPUSet:
        """Return the next core with more than `threads` threads, of the NUMA node that gave the fewest."""
        by_given = sorted(self.nodes, key=lambda node: sum(core <= reserved for core in node.cores))
        for node in by_given:
            for core in node.cores:
                if core.isdisjoint(reserved) and len(core) > threads:
                    return core
        raise InputError("no core is left to be split")


class _Node:
    """The cores of one NUMA node, in order."""

    def __init__(self, cores: Sequence[CPUSet]) -> None:
        self.cores = list(cores)
        self.by_size: dict[int, list[CPUSet]] = {}
        for core in self.cores:
            self.by_size.setdefault(len(core), []).append(core)
        # The CPU counts, as bits, that some whole cores can give.
        self.sums = 1
        for core in self.cores:
            self.sums |= self.sums << len(core)

    def first_cores(self, count: int) -> CPUSet:
        """Return `count` CPUs of whole cores, the first ones that allow it."""
        tails = [1]
        for core in reversed(self.cores):
            tails.append(tails[-1] | tails[-1] << len(core))
        tails.pop()
        reserved = CPUSet()
        for core in self.cores:
            tail = tails.pop()
            if len(core) <= count and tail >> (count - len(core)) & 1:
                reserved |= core
                count -= len(core)
        return reserved

    def sums_of(self, number: int) -> int:
        """Return the CPU counts, as bits, that exactly `number` whole cores can give."""
        sums = 0
        for split in self._splits(number):
            sums |= 1 << sum(size * cores for size, cores in split.items())
        return sums

    def cores_of(self, number: int, count: int) -> CPUSet:
        """Return `count` CPUs of exactly `number` cores, the first of each size."""
        for split in self._splits(number):
            if sum(size * cores for size, cores in split.items()) == count:
                chosen = CPUSet()
                for size, cores in split.items():
                    for core in self.by_size[size][:cores]:
                        chosen |= core
                return chosen
        raise InputError("%s cannot be had of %s" % (counted(count, "CPU"), counted(number, "core")))

    def _splits(self, number: int) -> Iterator[dict[int, int]]:
        """Yield the ways to take `number` cores: {threads of a core: how many such cores}."""
        sizes = sorted(self.by_size, reverse=True)

        def split(at: int, left: int) -> Iterator[dict[int, int]]:
            if at == len(sizes) - 1:
                if left <= len(self.by_size[sizes[at]]):
                    yield {sizes[at]: left}
                return
            for here in range(min(left, len(self.by_size[sizes[at]])), -1, -1):
                for rest in split(at + 1, left - here):
                    yield {sizes[at]: here, **rest}

        return split(0, number)


def _by_numa_node(topology: Topology, cores: Sequence[CPUSet], near: int | None) -> Iterator[list[CPUSet]]:
    """Yield the cores of each NUMA node, nearest node first, cores of one L3 cache together."""
    if near is not None and near not in {node.id for node in topology.numa_nodes}:
        raise InputError(
            "NUMA node %d does not exist" % near,
            remedy="there are %s" % ", ".join(str(node.id) for node in topology.numa_nodes),
        )
    distances = topology.numa_distances.get(near, {}) if near is not None else {}
    nodes = sorted(
        topology.numa_nodes,
        key=lambda node: (node.id != near if near is not None else False, distances.get(node.id, 0), node.id),
    )
    cache_of = {cpu: group.cpus.first() for group in topology.caches for cpu in group.cpus}
    left = sorted(cores, key=lambda core: (cache_of.get(core.first(), -1), core.first()))
    for node in nodes:
        here = [core for core in left if core.first() in node.cpus]
        left = [core for core in left if core.first() not in node.cpus]
        if here:
            yield here
    if left:
        yield left  # CPUs that the machine counts to no NUMA node


def _add_sums(first: int, second: int) -> int:
    """Return all sums of a number of the one set and a number of the other, sets as bits."""
    sums = 0
    for number in iterate_bits(second):
        sums |= first << number
    return sums
