# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One process of a run: it enters its cgroup, waits for the start, works, reports, and works on until it is ended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import Any, Callable, NamedTuple, NoReturn

from ..errors import CPUManagerError, NodeError
from .cgroups import BenchmarkCgroups
from .keeper import die_with
from .worker import Unit, measured, unit_of
from .workloads import Workload

# More than a benchmark prints.
_MOST_OUTPUT = 1 << 24


class Work(NamedTuple):
    """What a process does. units: 0 for work that is not measured."""

    workload: Workload
    # Of a unit, where the workload is one of this collection's.
    size: int
    units: int
    memory: int


class Process:
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
    """Never returns."""
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
