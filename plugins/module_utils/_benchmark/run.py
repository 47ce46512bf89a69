# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A benchmark of a node: what was asked for is checked against the node, planned, and run.

After trial runs, every case runs several times, all in random order.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import random
import select
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from typing import Any, Callable, Container, Iterable, Mapping, NamedTuple, NoReturn, Sequence

from .._base.errors import PERMISSION, CPUManagerError, InputError, NodeError, RefusedError, noted, option
from .._base.own_lock import try_lock
from .._base.quantity import counted
from .._cgroup.hierarchy import Hierarchy
from .._cgroup.kubepods import BURSTABLE, Kubepods
from .._node.node import Node, cgroup_root_of
from ..cpuset import CPUSet
from .benchmark_cgroups import TOP, BenchmarkCgroups
from .benchmark_plan import (
    SETTLE,
    BenchmarkContainer,
    BenchmarkRoom,
    Case,
    Workload,
    available_memory,
    cases_of,
    expected_seconds,
    machine_of,
    order_of,
    room_of,
    walked_memory,
    workloads_of,
)
from .result import quantile, summarized
from .worker import MEMORY, Unit, calibrated, measured, unit_of

# A process that ends all that a benchmark started, however the benchmark ends: also where it is killed.


LOCK = "/run/kubenode-isolation-benchmark.lock"

_PR_SET_PDEATHSIG = 1
_IGNORED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE)


def die_with(parent: int) -> None:
    """Let the kernel kill this process when its parent ends. parent: the process that it is to have."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


class Keeper:
    """A context: one benchmark at a time on a node, and nothing of it is left behind.

    A process waits for the end of a pipe that this one holds open, then kills what is in the benchmark's cgroups and
    removes them. It is in none of these and in a session of its own, so that it outlives its parent.
    Raises RefusedError where another benchmark runs.
    """

    def __init__(self, cgroups: BenchmarkCgroups) -> None:
        self.cgroups = cgroups
        # Whether an earlier benchmark had left cgroups.
        self.found_leftovers = False
        self.pid = 0
        self._lock = self._pipe = -1

    def __enter__(self) -> Keeper:
        self._lock = _locked()
        try:
            self.found_leftovers = bool(self.cgroups.leftovers())
            self.cgroups.clear()
            self.cgroups.enable()
            waited, self._pipe = os.pipe()
            begun, begin = os.pipe()
            self.pid = os.fork()
            if not self.pid:
                self._keep(waited, begin)
            os.close(waited)
            os.close(begin)
            # Until it has a session of its own, what kills this process group would kill it, too.
            if not os.read(begun, 1):
                raise NodeError("the process that cleans up after the benchmark was ended from outside")
            os.close(begun)
        except BaseException:
            os.close(self._lock)
            raise
        return self

    def __exit__(self, *_error: object) -> None:
        self.leave()
        _pid, status = os.waitpid(self.pid, 0)
        if status:
            raise NodeError(
                "processes of the benchmark do not end", self.cgroups.leftovers()[0] if self.cgroups.leftovers() else ""
            )

    def leave(self) -> None:
        """Let go of what only this process is to hold; also in each process that is forked off it."""
        for descriptor in (self._pipe, self._lock):
            if descriptor >= 0:
                os.close(descriptor)
        self._pipe = self._lock = -1

    def _keep(self, waited: int, begin: int) -> None:
        """Wait until the benchmark ends, clean up after it, and end this process. The lock stays locked until this
        process ends, too. begin: where to write that it is ready."""
        status = 1
        try:
            os.close(self._pipe)
            os.setsid()
            for number in _IGNORED:
                signal.signal(number, signal.SIG_IGN)
            os.write(begin, b"x")
            os.close(begin)
            # Whoever reads what the benchmark prints must not wait for this process.
            nothing = os.open(os.devnull, os.O_RDWR)
            for descriptor in (0, 1, 2):
                os.dup2(nothing, descriptor)
            os.chdir("/")
            while os.read(waited, 1):
                pass
            self.cgroups.clear()
            self.cgroups.restore()
            with suppress(OSError):
                os.unlink(LOCK)
            status = 0
        finally:
            os._exit(status)


def _locked() -> int:
    """Return a descriptor of the lock file, which is removed once it is not needed."""
    descriptor = try_lock(LOCK)
    if descriptor is None:
        raise RefusedError("another benchmark runs on this node", LOCK, "wait until it has ended")
    return descriptor


# One process of a run: it enters its cgroup, waits for the start, works, reports, and works on until it is ended.


# More than a benchmark prints.
_MOST_OUTPUT = 1 << 24


class Work(NamedTuple):
    """What a process does. units: 0 for work that is not measured."""

    workload: Workload
    # Of a unit, where the workload is one of this collection's.
    size: int
    units: int
    memory: int


class Worker:
    """A process that was started, from outside.

    report: the file descriptor that its report comes from, as one line of JSON: {"seconds", "latencies"}, {"ready"} or
    {"error", "kind"}.
    """

    def __init__(self, cgroups: BenchmarkCgroups, path: str, work: Work, leave: Callable[[], None]) -> None:
        """Start it. path: its cgroup. leave: what a forked process has to do first."""
        parent = os.getpid()
        self.report, report = os.pipe()
        wait, self._start = os.pipe()
        self.role = work.workload.role
        self.is_background = not work.units
        self.pid = os.fork()
        if not self.pid:
            _run(lambda: _become(parent, leave, cgroups, path), work, wait, report)
        os.close(report)
        os.close(wait)
        self._received = b""

    def start(self) -> None:
        """Let it begin."""
        os.write(self._start, b"x")

    def received(self) -> dict[str, Any] | None:
        """Read what has come; the next whole report, None for none yet. Raises NodeError where it has ended."""
        chunk = os.read(self.report, 1 << 16)
        self._received += chunk
        text, newline, rest = self._received.partition(b"\n")
        if not newline:
            if not chunk:
                raise NodeError("the process of %s was ended from outside" % self.role, kind="ended")
            return None
        self._received = rest
        answer: dict[str, object] = json.loads(text)
        return answer

    def reap(self) -> None:
        """Wait for its end, which somebody else has seen to."""
        os.close(self.report)
        os.close(self._start)
        os.waitpid(self.pid, 0)


def _become(parent: int, leave: Callable[[], None], cgroups: BenchmarkCgroups, path: str) -> None:
    die_with(parent)
    leave()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    cgroups.enter(path)


def _run(become: Callable[[], None], work: Work, wait: int, report: int) -> NoReturn:
    """Run a workload in this process until somebody ends the process; this call never returns."""
    try:
        become()
        unit = None if work.workload.is_own else unit_of(work.workload.kind, work.memory)
        if unit is not None:
            unit(work.size)
        _say(report, {"ready": True})
        os.read(wait, 1)
        if work.units:
            _say(report, _measured(work, unit))
        while True:
            if unit is None:
                executed(work.workload)
            else:
                unit(work.size)
    except CPUManagerError as error:
        _say(report, {"error": error.what, "where": error.where, "remedy": error.remedy, "kind": error.kind})
    except Exception as error:  # noqa: BLE001 # it is told, and this process ends
        _say(report, {"error": "%s: %s" % (type(error).__name__, error), "where": "", "remedy": "", "kind": "node"})
    finally:
        os._exit(1)


def _measured(work: Work, unit: Unit | None) -> dict[str, object]:
    return executed(work.workload) if unit is None else measured(unit, work.size, work.units)


def _say(report: int, answer: dict[str, Any]) -> None:
    text = json.dumps(answer).encode("ascii") + b"\n"
    while text:
        text = text[os.write(report, text) :]


def executed(workload: Workload) -> dict[str, object]:
    """Run a user's command to its end: {seconds, latencies}. Raises InputError where it fails."""
    begun = time.perf_counter()
    try:
        # Its output is read while it runs, in a process without Ansible.
        command = subprocess.Popen(  # pylint: disable=ansible-bad-function
            workload.command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd="/"
        )
    except OSError as error:
        raise workload.wrong("cannot be started: %s" % error.strerror) from error
    with command:
        output = command.stdout.read(_MOST_OUTPUT) if command.stdout else b""
        if len(output) == _MOST_OUTPUT:
            command.kill()
            raise workload.wrong("prints more than %d MiB" % (_MOST_OUTPUT >> 20))
        status = command.wait()
    wall = time.perf_counter() - begun
    text = output.decode(sys.getdefaultencoding(), "replace")
    if status:
        last = text.strip().rpartition("\n")[2][:200]
        raise workload.wrong("ends with status %d%s" % (status, ": " + last if last else ""))
    return workload.read(text, wall)


_BURSTABLE = TOP + "/burstable"

# The most seconds after which it is noticed that nobody waits for the benchmark any more.
_LOOK = 1.0


class BenchmarkTerms(NamedTuple):
    """How a benchmark is run. unit: the seconds of one unit of work; seconds: the most that all may take."""

    runs: int
    seed: int
    unit: float
    units: int
    memory: int
    seconds: float


class Bench:
    """A node while a benchmark runs on it."""

    def __init__(
        self, cgroups: BenchmarkCgroups, room: BenchmarkRoom, workloads: Mapping[str, Workload], terms: BenchmarkTerms
    ) -> None:
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
        """Return the size of a unit of this workload, on CPUs where it has some to itself."""
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
        """Return one row for each container that is measured."""
        started: list[tuple[BenchmarkContainer, list[Worker]]] = []
        try:
            self._make(case)
            for part in case.parts:
                processes: list[Worker] = []
                started.append((part, processes))
                # One by one, so that those before one that fails are in the list.
                processes.extend(
                    Worker(self.cgroups, _path(part), self._work(part), self.keeper.leave)
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
        """Make the cgroups of a case, with the levels that a kubelet makes."""
        top = CPUSet(cpu for part in case.parts for cpu in part.cpus)
        self.cgroups.make(TOP, top, 1024 * len(self.room.topology.online), None)
        burstable = [part for part in case.parts if part.qos == BURSTABLE]
        if burstable:
            self.cgroups.make(_BURSTABLE, top, sum(part.shares for part in burstable), None)
        for part in case.parts:
            self.cgroups.make(_path(part), part.cpus, part.shares, part.quota(self.room))

    def _work(self, part: BenchmarkContainer) -> Work:
        units = 0 if part.is_background else self.terms.units
        return Work(self.workloads[part.role], self.sizes.get(part.role, 0), units, self.terms.memory)

    def _wait(
        self, everybody: Iterable[Worker], wanted: Container[Worker], key: str
    ) -> dict[Worker, dict[str, object]]:
        """Return what each of the wanted processes reports.

        Raises what any of them failed with, or that the time is over, or that the process that started the benchmark
        has ended: the wrapper of an asynchronous task can be killed alone.
        """
        answers: dict[Worker, dict[str, object]] = {}
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


def _path(part: BenchmarkContainer) -> str:
    return "/".join([_BURSTABLE if part.qos == BURSTABLE else TOP, part.role])


def _row(part: BenchmarkContainer, answers: Sequence[Mapping[str, Any]], wall: float) -> dict[str, object]:
    """Return what a container took: of several processes that of the slowest, and the latencies of all together."""
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
    """Return what is to be said of a benchmark that would take longer than it may."""
    return InputError(
        "the benchmark would take about %.0f seconds, and %.0f are allowed" % (expected, allowed),
        where=option("seconds"),
        remedy="allow more, or take fewer runs, experiments or units",
    )


# A whole benchmark: what was asked for is checked against the node, planned, and run.


SCHEMA_VERSION = "1.0"

# A load of so much for each CPU, over the last minute, says that others work on the node.
_BUSY = 0.5

# {option: (the least, the most)}
_RANGES = {
    "runs": (1, 1000),
    "units": (1, 1000000),
    "unit_milliseconds": (0.1, 10000),
    "cpus": (1, 10000),
    "seconds": (1, 86400),
}


def node_benchmark(node: Node, given: Mapping[str, Any], plan_only: bool) -> dict[str, object]:
    """Return the result of the module isolation_benchmark, which documents it. given: its arguments.

    Raises InputError, NodeError and RefusedError; before anything is started for all that can be known before.
    """
    _check_ranges(given)
    workloads = workloads_of(given["workloads"], given["stress_ng"])
    reserved = given["reserved_system_cpus"]
    room, notes = room_of(node, None if reserved is None else CPUSet.parse(reserved))
    cases, left_out = cases_of(room, given["experiments"], given["cpus"])
    if not cases:
        raise InputError("no experiment is wanted, or none has room on this node", where=option("experiments"))
    memory = walked_memory(node.tree, room.topology.online.first())
    terms = BenchmarkTerms(
        given["runs"],
        random.SystemRandom().randrange(1 << 31) if given["seed"] is None else given["seed"],
        given["unit_milliseconds"] / 1000,
        given["units"],
        memory,
        given["seconds"],
    )
    expected = expected_seconds(cases, terms.runs, terms.unit * terms.units)
    if expected > terms.seconds:
        raise too_long(expected, terms.seconds)
    result: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "machine": machine_of(node),
        "seed": terms.seed,
        "expected_seconds": round(expected, 1),
        "settings": _settings(room, terms, given, workloads),
        "cases": [case.to_dict() for case in cases],
        "left_out": left_out,
    }
    if node.tree.live:
        cgroups = BenchmarkCgroups(node.tree)
        notes += _checked_node(node, given["allow_pods"], cases, workloads, memory)
        if not plan_only:
            found = Bench(cgroups, room, workloads, terms).run(cases)
            if found.pop("found_leftovers"):
                notes.append("processes or cgroups of a benchmark that was killed were there, and were removed")
            result.update(found)
            result.update(summarized(result["cases"], result["rows"]))
    elif not plan_only:
        raise InputError("a saved node can run nothing", where=option("root"), remedy="run it on the node itself")
    return {**result, **noted(notes)}


def _check_ranges(given: Mapping[str, Any]) -> None:
    for name, (least, most) in _RANGES.items():
        if not least <= given[name] <= most:
            raise InputError("%s is not from %s to %s" % (given[name], least, most), where=option(name))


def _settings(
    room: BenchmarkRoom, terms: BenchmarkTerms, given: Mapping[str, object], workloads: Mapping[str, Workload]
) -> dict[str, object]:
    return {
        "runs": terms.runs,
        "units": terms.units,
        "unit_milliseconds": given["unit_milliseconds"],
        "cpus": given["cpus"],
        "walked_memory": terms.memory,
        "reserved": str(room.reserved),
        "pool": str(room.pool),
        "python": platform.python_version(),
        "workloads": {role: list(workload.command) or workload.kind for role, workload in workloads.items()},
    }


def _checked_node(
    node: Node, allow_pods: bool, cases: Sequence[Case], workloads: Mapping[str, Workload], memory: int
) -> list[str]:
    """Return notes. Raises what is against a benchmark on this node now."""
    if os.geteuid():
        raise NodeError("only root can make cgroups", "", "run it as root (become: true)", PERMISSION)
    notes = []
    pods = Kubepods(Hierarchy(node.tree), cgroup_root_of(node.configuration())).pods()
    if pods and not allow_pods:
        raise RefusedError(
            "%s on this node: a benchmark takes CPU time from them, and they disturb it"
            % ("1 pod runs" if len(pods) == 1 else "%d pods run" % len(pods)),
            remedy="drain the node first, and set %s for what is left, such as the pods of DaemonSets"
            % option("allow_pods"),
        )
    if pods:
        notes.append("%s ran on this node, and may have used the CPUs that were measured" % counted(len(pods), "pod"))
    load = float((node.tree.read_value("/proc/loadavg") or "0").partition(" ")[0])
    if load > len(node.topology.online) * _BUSY:
        notes.append(
            "the node was busy before: a load of %.2f on %s; what else ran has disturbed what was measured"
            % (load, counted(len(node.topology.online), "CPU"))
        )
    roles = {part.role for case in cases for part in case.parts}
    for role in sorted(roles):
        workload = workloads[role]
        if workload.is_own and shutil.which(workload.command[0]) is None:
            raise workload.wrong("%s is no program on the node" % workload.command[0])
    walking = max(sum(part.processes for part in case.parts if workloads[part.role].kind == MEMORY) for case in cases)
    available = available_memory(node.tree)
    # Another half for the node.
    if available is not None and walking * memory > available // 2:
        raise NodeError(
            "%d MiB are needed for the workload %s, and %d MiB are available"
            % (walking * memory >> 20, MEMORY, available >> 20),
            where="/proc/meminfo",
            remedy="free some, want fewer CPUs, or leave out the experiment co-located",
        )
    return notes
