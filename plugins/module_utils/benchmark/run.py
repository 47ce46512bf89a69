# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs a benchmark on this node: trial runs first, then every case several times in random order."""

from __future__ import annotations

import os
import select
import time
from contextlib import suppress
from typing import Any, Container, Iterable, Mapping, NamedTuple, Sequence

from ..cpuset import CPUSet
from ..errors import InputError, NodeError, option
from ..workload.qos import BURSTABLE
from .cgroups import TOP, BenchmarkCgroups
from .keeper import Keeper
from .plan import SETTLE, Case, Part, expected_seconds, order_of
from .process import Process, Work
from .room import Room
from .statistics import quantile
from .worker import calibrated, unit_of
from .workloads import Workload

_BURSTABLE = TOP + "/burstable"

# The most seconds after which it is noticed that nobody waits for the benchmark any more.
_LOOK = 1.0


class Terms(NamedTuple):
    """How a benchmark is run. unit: the seconds of one unit of work; seconds: the most that all may take."""

    runs: int
    seed: int
    unit: float
    units: int
    memory: int
    seconds: float


class Bench:
    """A node while a benchmark runs on it."""

    def __init__(self, cgroups: BenchmarkCgroups, room: Room, workloads: Mapping[str, Workload], terms: Terms) -> None:
        self.cgroups, self.room, self.workloads, self.terms = cgroups, room, workloads, terms
        self.keeper = Keeper(cgroups)
        # {role: the size of a unit}
        self.sizes: dict[str, int] = {}
        self._deadline = time.monotonic() + terms.seconds
        self._parent = os.getppid()

    def run(self, cases: Sequence[Case]) -> dict[str, Any]:
        """Run all cases: {rows, found_leftovers, expected_seconds, seconds}.

        Raises InputError for a command that fails, and where it would take too long; NodeError; RefusedError where
        another benchmark runs. Whatever happens, nothing of it is left on the node.
        """
        begun = time.monotonic()
        with self.keeper:
            alone = self._try(cases)
            expected = expected_seconds(cases, self.terms.runs, alone)
            if expected > self.terms.seconds:
                raise too_long(expected, self.terms.seconds)
            rows: list[dict[str, object]] = []
            for place, (number, run) in enumerate(order_of(len(cases), self.terms.runs, self.terms.seed)):
                case = cases[number]
                rows += [{"case": number, "run": run, "place": place, **row} for row in self._run_once(case)]
        return {
            "rows": rows,
            "found_leftovers": self.keeper.found_leftovers,
            "expected_seconds": round(expected, 1),
            "seconds": round(time.monotonic() - begun, 1),
        }

    # --- trial runs --------------------------------------------------------------------------------

    def _try(self, cases: Sequence[Case]) -> float:
        """Run each workload once, alone; how long the longest takes. The sizes of units are known then."""
        own = [part for case in cases for part in case.parts if part.is_exclusive]
        where = own[0].cpus if own else self.room.allocatable
        longest = self.terms.unit * self.terms.units
        roles = {part.role: part for case in cases for part in case.parts}
        for role, part in roles.items():
            workload = self.workloads[role]
            if not workload.is_own:
                self.sizes[role] = self._calibrated(workload, where)
            else:
                trial = part._replace(cpus=where, processes=1, limit=None)
                for row in self._run_once(Case("", "", (trial,))):
                    longest = max(longest, row["wall"])
        return longest

    def _calibrated(self, workload: Workload, cpus: CPUSet) -> int:
        """The size of a unit of this workload, on CPUs where it has some to itself."""
        before = os.sched_getaffinity(0)
        try:
            # Where this process itself may not go, the size is found out where it is.
            with suppress(OSError):
                os.sched_setaffinity(0, cpus)
            return calibrated(unit_of(workload.kind, self.terms.memory), self.terms.unit)
        finally:
            os.sched_setaffinity(0, before)

    # --- one run -----------------------------------------------------------------------------------

    def _run_once(self, case: Case) -> list[dict[str, Any]]:
        """One row for each container that is measured."""
        started: list[tuple[Part, list[Process]]] = []
        try:
            self._make(case)
            for part in case.parts:
                processes: list[Process] = []
                started.append((part, processes))
                # One by one, so that those before one that fails are in the list.
                processes.extend(
                    Process(self.cgroups, _path(part), self._work(part), self.keeper.leave)
                    for _number in range(part.processes)
                )
            everybody = [process for _part, processes in started for process in processes]
            self._wait(everybody, everybody, "ready")
            measured = [process for process in everybody if not process.is_background]
            for process in everybody:
                if process.is_background:
                    process.start()
            if len(measured) < len(everybody):
                time.sleep(SETTLE)
                # One that failed at once is known of now.
                self._wait(everybody, (), "seconds")
            begun = time.monotonic()
            for process in measured:
                process.start()
            answers = self._wait(everybody, measured, "seconds")
            wall = time.monotonic() - begun
            return [
                _row(part, [answers[process] for process in processes], wall)
                for part, processes in started
                if not part.is_background
            ]
        finally:
            self.cgroups.clear()
            for _part, processes in started:
                for process in processes:
                    process.reap()

    def _make(self, case: Case) -> None:
        """The cgroups of a case, with the levels that a kubelet makes."""
        top = CPUSet(cpu for part in case.parts for cpu in part.cpus)
        self.cgroups.make(TOP, top, 1024 * len(self.room.topology.online), None)
        burstable = [part for part in case.parts if part.qos == BURSTABLE]
        if burstable:
            self.cgroups.make(_BURSTABLE, top, sum(part.shares for part in burstable), None)
        for part in case.parts:
            self.cgroups.make(_path(part), part.cpus, part.shares, part.quota(self.room))

    def _work(self, part: Part) -> Work:
        units = 0 if part.is_background else self.terms.units
        return Work(self.workloads[part.role], self.sizes.get(part.role, 0), units, self.terms.memory)

    def _wait(
        self, everybody: Iterable[Process], wanted: Container[Process], key: str
    ) -> dict[Process, dict[str, object]]:
        """What each of the wanted processes reports.

        Raises what any of them failed with, or that the time is over, or that the process that started the benchmark
        has ended: the wrapper of an asynchronous task can be killed alone.
        """
        answers: dict[Process, dict[str, object]] = {}
        watched = {process.report: process for process in everybody}
        missing = {process for process in watched.values() if process in wanted}
        while True:
            left = max(0.0, self._deadline - time.monotonic()) if missing else 0.0
            ready = select.select(list(watched), [], [], min(left, _LOOK))[0]
            if os.getppid() != self._parent:
                raise NodeError("the process that started the benchmark has ended", kind="ended")
            if not ready and missing and time.monotonic() >= self._deadline:
                raise NodeError(
                    "the benchmark did not end within %.0f seconds and was stopped" % self.terms.seconds,
                    where=option("seconds"),
                    remedy="give it more time, or fewer runs",
                )
            for descriptor in ready:
                process = watched[descriptor]
                answer = process.received()
                if answer is not None and "error" in answer:
                    kind = InputError if answer["kind"] == InputError.kind else NodeError
                    raise kind(answer["error"], answer["where"], answer["remedy"], answer["kind"])
                if answer is not None and key in answer:
                    answers[process] = answer
                    missing.discard(process)
            if not missing:
                return answers


def _path(part: Part) -> str:
    return "/".join([_BURSTABLE if part.qos == BURSTABLE else TOP, part.role])


def _row(part: Part, answers: Sequence[Mapping[str, Any]], wall: float) -> dict[str, object]:
    """What a container took: of several processes that of the slowest, and the latencies of all together."""
    latencies = [latency for answer in answers for latency in answer["latencies"]]
    row: dict[str, object] = {
        "workload": part.role,
        "qos_class": part.qos,
        "seconds": round(max(answer["seconds"] for answer in answers), 7),
        "wall": round(wall, 4),
    }
    for name, share in (("p50", 0.5), ("p99", 0.99), ("longest", 1.0)):
        row[name] = round(quantile(latencies, share), 7) if latencies else None
    return row


def too_long(expected: float, allowed: float) -> InputError:
    """What is to be said of a benchmark that would take longer than it may."""
    return InputError(
        "the benchmark would take about %.0f seconds, and %.0f are allowed" % (expected, allowed),
        where=option("seconds"),
        remedy="allow more, or take fewer runs, experiments or units",
    )
