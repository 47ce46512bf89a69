# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a benchmark runs: which workloads, in which QoS class, on which CPUs, how often and in which order. Pure."""

from __future__ import annotations

from random import Random
from typing import Any, Iterator, NamedTuple, Sequence

from ..cpuset import CPUSet
from ..errors import InputError
from ..workload.qos import BURSTABLE, GUARANTEED
from .room import Room
from .worker import COMPUTE, MEMORY
from .workloads import AGGRESSOR, VICTIM

STAND_ALONE, BESIDE_AGGRESSOR, CO_LOCATED = EXPERIMENTS = ("stand-alone", "aggressor", "co-located")
SHARED, EXCLUSIVE, EXCLUSIVE_CORES = PLACEMENTS = ("shared", "exclusive", "exclusive-cores")

# The kubelet's, in microseconds. Source: pkg/kubelet/cm/helpers_linux.go.
PERIOD = 100000
_LEAST_QUOTA = 1000
_LEAST_SHARES, _MOST_SHARES = 2, 262144


class Part(NamedTuple):
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

    def quota(self, room: Room) -> int | None:
        """Microseconds of CPU in each PERIOD, as the kubelet computes it; None for no limit."""
        if self.limit is None or not room.quota or (self.is_exclusive and not room.quota_on_exclusive):
            return None
        return max(self.limit * PERIOD // 1000, _LEAST_QUOTA)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
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
    parts: tuple[Part, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
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


def cases_of(room: Room, experiments: Sequence[str], cpus: int) -> tuple[list[Case], list[str]]:
    """All cases, and what is left out and why. cpus: those that each workload is to have.

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


def _placements(room: Room, cpus: int) -> Iterator[str]:
    yield SHARED
    whole = room.whole_cores(cpus)
    # Where the kubelet gives whole cores only, it refuses a part of one.
    if not room.options.full_pcpus_only or whole == cpus:
        yield EXCLUSIVE
    if room.topology.threads_per_core > 1 and (whole != cpus or not room.options.full_pcpus_only):
        yield EXCLUSIVE_CORES


def _parts(room: Room, wishes: Sequence[_Wish], cpus: int, count: int, placement: str) -> Iterator[Part]:
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
        yield Part(wish.role, wish.qos, request, limit, processes, where, is_own, wish.is_background)


def order_of(cases: int, runs: int, seed: int) -> list[tuple[int, int]]:
    """All runs, (number of the case, number of the run), in a random order that the seed decides."""
    order = [(case, run) for run in range(runs) for case in range(cases)]
    Random(seed).shuffle(order)
    return order


def expected_seconds(cases: Sequence[Case], runs: int, alone: float) -> float:
    """About how long all runs take. alone: the seconds of a workload that nothing disturbs."""
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
