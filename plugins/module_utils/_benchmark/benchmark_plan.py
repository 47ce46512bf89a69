# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a benchmark runs: which workloads, in which QoS class, on which CPUs, how often and in which order. Pure.

The workloads are those that this collection brings, and users' commands.
"""

from __future__ import annotations

import re
from random import Random
from typing import Any, Iterator, Mapping, NamedTuple, Sequence

from .._base.errors import InputError, option
from .._base.quantity import counted_are
from .._base.tree import Tree
from .._cgroup.kubepods import BURSTABLE, GUARANTEED
from .._kubelet.configuration import Configuration
from .._kubelet.gates import NO_EXCLUSIVE_QUOTA, Gates
from .._node.exclusive import read_exclusive
from .._node.node import Node
from ..cpuset import CPUSet
from ..policy.assignment import SAFE, TakeError, take
from ..policy.options import StaticOptions
from ..state.acceptance import STATIC, CPUManagerConfig
from ..topology.kubelet_view import kubelet_view
from ..topology.model import Topology
from .worker import COMPUTE, MEMORY

VICTIM, AGGRESSOR = "victim", "aggressor"
# {what a workload is in the experiments: the kind of work that it does unless another was given}
ROLES = {VICTIM: COMPUTE, AGGRESSOR: COMPUTE, COMPUTE: COMPUTE, MEMORY: MEMORY}
COMMAND = "command"
UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
STRESS_NG = "stress-ng"


class Workload(NamedTuple):
    """kind: compute, memory or command. Of a command, how its time is read: patterns with one group, a number."""

    role: str
    kind: str
    command: tuple[str, ...] = ()
    # Its run time, None for wall clock; and each of its latencies, None for none.
    time_pattern: str | None = None
    latency_pattern: str | None = None
    unit: str = "s"

    @property
    def is_own(self) -> bool:
        """Whether it is a command."""
        return self.kind == COMMAND

    def read(self, output: str, wall: float) -> dict[str, Any]:
        """Return what a run took: {seconds, latencies}. Raises InputError where the output does not have it."""
        scale = UNITS[self.unit]
        seconds = wall
        if self.time_pattern is not None:
            found = [self._number(text) for text in re.findall(self.time_pattern, output)]
            if not found:
                raise self.wrong("prints no time: nothing matches time_pattern %s" % self.time_pattern)
            seconds = found[-1] * scale
        latencies: list[float] = []
        if self.latency_pattern is not None:
            latencies = [self._number(text) * scale for text in re.findall(self.latency_pattern, output)]
            if not latencies:
                raise self.wrong("prints no latency: nothing matches latency_pattern %s" % self.latency_pattern)
        return {"seconds": seconds, "latencies": latencies}

    def _number(self, text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = -1.0
        if not 0 < number < float("inf"):
            raise self.wrong("prints the time %r, which is not a number above 0" % text[:40])
        return number

    def wrong(self, what: str) -> InputError:
        """Return what is wrong with this workload."""
        remedy = "run `%s` on the node, and compare what it does" % " ".join(self.command)[:200]
        return InputError(what, "%s.%s" % (option("workloads"), self.role), remedy)


def workloads_of(given: Mapping[str, Mapping[str, object]], stress_ng: bool) -> dict[str, Workload]:
    """Return the workload of each role. given: {role: {command, time_pattern, latency_pattern, unit}}. Raises
    InputError."""
    unknown = sorted(set(given) - set(ROLES))
    if unknown:
        raise InputError("%s is none of the workloads: %s" % (unknown[0], ", ".join(ROLES)), where=option("workloads"))
    if stress_ng and AGGRESSOR in given:
        raise InputError(
            "the aggressor is a command of yours already, in %s" % option("workloads"), where=option("stress_ng")
        )
    found = {role: _own(role, given[role]) if role in given else Workload(role, kind) for role, kind in ROLES.items()}
    if stress_ng:
        # One for each process of the aggressor.
        found[AGGRESSOR] = Workload(AGGRESSOR, COMMAND, (STRESS_NG, "--cpu", "1", "--quiet"))
    return found


def _own(role: str, given: object) -> Workload:
    where = "%s.%s" % (option("workloads"), role)
    allowed = ("command", "time_pattern", "latency_pattern", "unit")
    if not isinstance(given, Mapping):
        raise InputError("is not a mapping", where, "give it a command, as a list of words")
    unknown = sorted(str(name) for name in set(given) - set(allowed))
    if unknown:
        raise InputError("%s is none of its keys: %s" % (unknown[0], ", ".join(allowed)), where)
    command = given.get("command")
    if not isinstance(command, (list, tuple)) or not command or not all(isinstance(word, str) for word in command):
        raise InputError("its command is not a list of words", where, "write each argument as one text of a list")
    for name in ("time_pattern", "latency_pattern"):
        _check_pattern(given.get(name), where + "." + name)
    unit = given.get("unit") or "s"
    if unit not in UNITS:
        raise InputError("unit %s is none of %s" % (unit, ", ".join(UNITS)), where)
    patterns = (given.get("time_pattern") or None, given.get("latency_pattern") or None)
    return Workload(role, COMMAND, tuple(command), *patterns, unit)


def _check_pattern(pattern: Any, where: str) -> None:
    if not pattern:
        return
    try:
        groups = re.compile(pattern).groups
    except (re.error, TypeError, RecursionError) as error:
        raise InputError("is no regular expression: %s" % error, where) from error
    if groups != 1:
        raise InputError("has %d groups" % groups, where, "put one pair of parentheses around the number")


# What of a machine and its load belongs beside a measurement.


_CACHE = "/sys/devices/system/cpu/cpu%d/cache"
_SUFFIXES = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "": 1}
_LEAST, _MOST = 32 << 20, 256 << 20


def machine_of(node: Node) -> dict[str, object]:
    """Return plain data: CPUs, their model, the kernel, and how busy the machine was before."""
    tree, topology = node.tree, node.topology
    cpuinfo = tree.read_bytes("/proc/cpuinfo").decode("utf-8", "replace") if tree.exists("/proc/cpuinfo") else ""
    model = re.search(r"^model name\s*:\s*(.+)$", cpuinfo, re.MULTILINE)
    flags = re.search(r"^flags\s*:(.*)$", cpuinfo, re.MULTILINE)
    return {
        "cpus": len(topology.online),
        "cores": len(topology.cores),
        "sockets": max(1, len(topology.sockets)),
        "numa_nodes": len(topology.numa_nodes),
        "threads_per_core": topology.threads_per_core,
        "model": model.group(1).strip()[:100] if model else "",
        "virtual": bool(flags and "hypervisor" in flags.group(1).split()),
        "kernel": node.kernel(),
        "load": (tree.read_value("/proc/loadavg") or "").partition(" ")[0],
        "governor": tree.read_value("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor") or "",
    }


def walked_memory(tree: Tree, cpu: int) -> int:
    """Return bytes that do not fit into any cache of a CPU: twice its largest, within reason."""
    largest = 0
    for index in range(8):
        size = re.fullmatch(r"(\d+)([KMG]?)", tree.read_value("%s/index%d/size" % (_CACHE % cpu, index)) or "")
        if size:
            largest = max(largest, int(size.group(1)) * _SUFFIXES[size.group(2)])
    return min(max(2 * largest, _LEAST), _MOST)


def available_memory(tree: Tree) -> int | None:
    """Return bytes that processes can get; None where the kernel does not say."""
    found = re.search(r"^MemAvailable:\s*(\d+) kB$", (tree.read_value("/proc/meminfo") or ""), re.MULTILINE)
    return int(found.group(1)) << 10 if found else None


# Which CPUs the workloads of a benchmark have: those that the CPU manager of this node would give. Pure.


class BenchmarkRoom(NamedTuple):
    """The CPUs of a node, for containers that come to it now."""

    topology: Topology
    options: StaticOptions
    reserved: CPUSet
    # What no container has for itself: all of it is the shared pool, and what is not reserved can be given away.
    free: CPUSet
    # Whether the kubelet limits what containers use, and also those with exclusive CPUs (before 1.33).
    quota: bool = True
    quota_on_exclusive: bool = False

    @property
    def allocatable(self) -> CPUSet:
        """What can be given to containers for themselves."""
        return self.free - self.reserved

    @property
    def pool(self) -> CPUSet:
        """Where containers without exclusive CPUs run, while there is no other."""
        return self.free - self.reserved if self.options.strict_cpu_reservation else self.free

    def whole_cores(self, count: int) -> int:
        """Return so many CPUs, made up to whole cores."""
        threads = self.topology.threads_per_core
        return -(-count // threads) * threads

    def give(self, counts: Sequence[int], whole_cores: bool = False) -> tuple[list[CPUSet], CPUSet]:
        """Return exclusive CPUs for containers that come one after the other, and the shared pool that is left.

        Raises InputError where there are not enough.
        """
        view = kubelet_view(self.topology)
        options = self.options._replace(full_pcpus_only=whole_cores or self.options.full_pcpus_only)
        available = self.allocatable
        if options.full_pcpus_only:
            available = CPUSet(cpu for core in self.topology.cores if core.cpus <= available for cpu in core.cpus)
        given: list[CPUSet] = []
        for count in counts:
            taken = CPUSet(cpu for cpus in given for cpu in cpus)
            try:
                given.append(take(view, available - taken, count, options, SAFE))
            except TakeError as error:
                raise InputError(
                    "%s wanted for containers of their own, and there are %s (online %s, reserved %s)"
                    % (
                        counted_are(sum(counts), "CPU"),
                        "CPUs %s" % available if available else "none",
                        self.topology.online,
                        self.reserved,
                    ),
                    where=option("cpus"),
                    remedy="want fewer",
                ) from error
        pool = self.pool - CPUSet(cpu for cpus in given for cpu in cpus)
        if not pool:
            raise InputError(
                "no CPU is left for the shared pool once %d are given away, of %s"
                % (sum(counts), self.topology.online),
                where=option("cpus"),
                remedy="want fewer",
            )
        return given, pool


# The CPUs of this node for containers that come to it now, as its kubelet is configured.


def room_of(node: Node, reserved: CPUSet | None) -> tuple[BenchmarkRoom, list[str]]:
    """Return the room, and notes. reserved: in place of what the kubelet reserves. Raises InputError, NodeError,
    RefusedError where it is not known which CPUs containers have for themselves.
    """
    online, notes = node.topology.online, []
    configuration = node.configuration()
    values = {} if configuration is None else configuration.values
    config, options = (None, StaticOptions()) if configuration is None else _static(node)
    if reserved is None and config is not None and config.reserved:
        reserved = config.reserved
    if reserved is None:
        reserved = node.topology.cores[0].cpus
        notes.append(
            "no reservation of a kubelet is known: CPUs %s, the first core, are taken for reserved; set %s"
            % (reserved, option("reserved_system_cpus"))
        )
    if not reserved or not reserved < online:
        raise InputError(
            "%s are not some of the online CPUs %s" % (reserved or "no CPUs", online),
            where=option("reserved_system_cpus"),
            remedy="reserve at least one, and leave at least one",
        )
    free = online - _exclusive(node, configuration)
    quota = values.get("cpuCFSQuota") is not False
    limits_exclusive = quota and not Gates.of(values, node.minor).enabled(NO_EXCLUSIVE_QUOTA)
    return BenchmarkRoom(node.topology, options, reserved, free, quota, limits_exclusive), notes


def _static(node: Node) -> tuple[CPUManagerConfig | None, StaticOptions]:
    """Return what the static policy of this kubelet starts with; None where that cannot be said."""
    # Imported here: every import costs time on every node.
    from .._node.start_check import predict_configuration

    for wanted in ({}, {"cpu_manager_policy": STATIC}):
        checked = predict_configuration(node, wanted).checked
        if checked is not None and checked.cpu_manager is not None and checked.cpu_manager_policy == STATIC:
            return checked.cpu_manager, checked.options
    return None, StaticOptions()


def _exclusive(node: Node, configuration: Configuration | None) -> CPUSet:
    """Return the CPUs that containers have for themselves now."""
    recorded = read_exclusive(node, configuration)
    if recorded.problem is not None:
        raise recorded.problem
    return CPUSet() if recorded.state is None else recorded.state.exclusive_cpus()


STAND_ALONE, BESIDE_AGGRESSOR, CO_LOCATED = EXPERIMENTS = ("stand-alone", "aggressor", "co-located")
SHARED, EXCLUSIVE, EXCLUSIVE_CORES = PLACEMENTS = ("shared", "exclusive", "exclusive-cores")

# The kubelet's, in microseconds. Source: pkg/kubelet/cm/helpers_linux.go.
PERIOD = 100000
_LEAST_QUOTA = 1000
_LEAST_SHARES, _MOST_SHARES = 2, 262144


class BenchmarkContainer(NamedTuple):
    """One container of a run."""

    role: str
    qos: str
    # The CPUs that it requests, in thousandths, and its limit, None for none.
    request: int
    limit: int | None
    # How many processes work in it.
    processes: int
    cpus: CPUSet
    is_exclusive: bool = False
    # Whether it works until all that is measured has ended, and not for itself.
    is_background: bool = False

    @property
    def shares(self) -> int:
        """cpu.shares, as the kubelet computes it."""
        return min(max(self.request * 1024 // 1000, _LEAST_SHARES), _MOST_SHARES)

    def quota(self, room: BenchmarkRoom) -> int | None:
        """Return microseconds of CPU in each PERIOD, as the kubelet computes it; None for no limit."""
        if self.limit is None or not room.quota or (self.is_exclusive and not room.quota_on_exclusive):
            return None
        return max(self.limit * PERIOD // 1000, _LEAST_QUOTA)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "workload": self.role,
            "qos_class": self.qos,
            "cpus": str(self.cpus),
            "exclusive": self.is_exclusive,
            "processes": self.processes,
            "request_millicores": self.request,
            "limit_millicores": self.limit,
        }


class Case(NamedTuple):
    """One arrangement, which is run several times."""

    experiment: str
    placement: str
    parts: tuple[BenchmarkContainer, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "experiment": self.experiment,
            "placement": self.placement,
            "containers": [part.to_dict() for part in self.parts],
        }


class _Wish(NamedTuple):
    """A container before it has its CPUs."""

    role: str
    qos: str
    is_background: bool = False


_WISHES = {
    STAND_ALONE: ((_Wish(VICTIM, GUARANTEED),),),
    BESIDE_AGGRESSOR: ((_Wish(VICTIM, GUARANTEED), _Wish(AGGRESSOR, BURSTABLE, True)),),
    CO_LOCATED: tuple(
        (_Wish(COMPUTE, first), _Wish(MEMORY, second))
        for first in (GUARANTEED, BURSTABLE)
        for second in (GUARANTEED, BURSTABLE)
    ),
}


def cases_of(room: BenchmarkRoom, experiments: Sequence[str], cpus: int) -> tuple[list[Case], list[str]]:
    """Return all cases, and what is left out and why. cpus: those that each workload is to have.

    Raises InputError where even a workload alone cannot have so many of its own.
    """
    if cpus < 1:
        raise InputError("%d CPUs are no CPUs" % cpus, where="cpus")
    cases: list[Case] = []
    left_out: list[str] = []
    for placement in _placements(room, cpus):
        count = room.whole_cores(cpus) if placement == EXCLUSIVE_CORES else cpus
        if placement != SHARED:
            room.give([count], placement == EXCLUSIVE_CORES)
        for experiment in EXPERIMENTS:
            for wishes in _WISHES[experiment] if experiment in experiments else ():
                try:
                    cases.append(Case(experiment, placement, tuple(_parts(room, wishes, cpus, count, placement))))
                except InputError as error:
                    who = " beside ".join("%s (%s)" % (wish.role, wish.qos) for wish in wishes)
                    left_out.append("%s, %s, %s: %s" % (experiment, placement, who, error.what))
    return cases, left_out


def _placements(room: BenchmarkRoom, cpus: int) -> Iterator[str]:
    yield SHARED
    whole = room.whole_cores(cpus)
    # Where the kubelet gives whole cores only, it refuses a part of one.
    if not room.options.full_pcpus_only or whole == cpus:
        yield EXCLUSIVE
    if room.topology.threads_per_core > 1 and (whole != cpus or not room.options.full_pcpus_only):
        yield EXCLUSIVE_CORES


def _parts(
    room: BenchmarkRoom, wishes: Sequence[_Wish], cpus: int, count: int, placement: str
) -> Iterator[BenchmarkContainer]:
    own = [wish for wish in wishes if wish.qos == GUARANTEED and placement != SHARED]
    given, pool = room.give([count for _wish in own], placement == EXCLUSIVE_CORES)
    for wish in wishes:
        is_own = wish in own
        where = given[own.index(wish)] if is_own else pool
        request, limit, processes = 500 * cpus, None, cpus
        if wish.qos == GUARANTEED:
            request = limit = 1000 * count
        elif wish.role == AGGRESSOR:
            # All that is left to request, and a process for every CPU of the node.
            request = 1000 * max(1, len(room.allocatable) - count)
            processes = len(room.topology.online)
        yield BenchmarkContainer(wish.role, wish.qos, request, limit, processes, where, is_own, wish.is_background)


def order_of(cases: int, runs: int, seed: int) -> list[tuple[int, int]]:
    """Return all runs, (number of the case, number of the run), in a random order that the seed decides."""
    order = [(case, run) for run in range(runs) for case in range(cases)]
    Random(seed).shuffle(order)
    return order


def expected_seconds(cases: Sequence[Case], runs: int, alone: float) -> float:
    """Return about how long all runs take. alone: the seconds of a workload that nothing disturbs."""
    total = 0.0
    for case in cases:
        crowd = sum(part.processes for part in case.parts)
        cpus = CPUSet(cpu for part in case.parts for cpu in part.cpus)
        is_alone = all(part.is_exclusive or part.is_background for part in case.parts)
        total += OVERHEAD + alone * (1 if is_alone else max(1.0, crowd / max(1, len(cpus))))
    return total * runs


# What a run takes beside its work: cgroups and processes come and go, and an aggressor gets up speed.
OVERHEAD = 0.3
SETTLE = 0.1
