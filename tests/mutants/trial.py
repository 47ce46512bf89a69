# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tries whether tests notice a change of the code, each in a process of its own, in a copy of the checkout."""

from __future__ import annotations

import importlib
import json
import os
import resource
import select
import shutil
import signal
import subprocess
import sys
import time
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Callable, NamedTuple, NoReturn, Sequence

import pytest
from mutants.mutations import Mutant

ROOT = Path(__file__).resolve().parent.parent.parent
CODE = "plugins/module_utils"
UNIT = "tests/unit/plugins/module_utils/"

# A change that takes much longer than the code, or much more memory, is one that the tests notice.
TIMES = 3
SECONDS = 2  # of the processor, beside that
WAITING = 60  # seconds, for who does nothing
MEMORY = 4 << 30


# Its plugins are imported already.
_FOR_WARM = ("-W", "ignore::pytest.PytestAssertRewriteWarning")


class Cost(NamedTuple):
    """What tests take with the code as it is, in seconds: of the processor, and by the clock."""

    processor: float
    clock: float


class Order:
    """A plugin of pytest: the quicker a test was, the sooner it runs."""

    def __init__(self, durations: Path) -> None:
        self.durations = durations

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if self.durations.exists():
            seconds = json.loads(self.durations.read_text(encoding="utf-8"))
            items.sort(key=lambda item: seconds.get(item.nodeid, 0.0))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self.durations.exists():
            passed = terminalreporter.stats.get("passed", ())
            self.durations.write_text(
                json.dumps({report.nodeid: report.duration for report in passed}), encoding="utf-8"
            )


class Trial:
    """The tests of an area, in a copy of the checkout, with a directory for what they write."""

    def __init__(self, checkout: Path, tests: Sequence[str], directory: Path) -> None:
        self.checkout = checkout
        self.directory = directory
        self.tests = tests
        self.costs: dict[tuple[str, ...], Cost] = {}
        self._warm_up()

    def notices(self, mutant: Mutant) -> bool:
        """Return whether a test fails with this change: first the tests that mirror the file, then all others."""
        mirror = self._mirror(mutant.file)
        others = [test for test in self.tests if test != mirror]
        stages = [[mirror], [*others, "--deselect", mirror] if others else []] if mirror else [others]
        return any(self._fails(mutant, stage) for stage in map(tuple, stages) if stage)

    def _mirror(self, file: str) -> str:
        path = UNIT + str(Path(file).with_name("test_" + Path(file).name))
        return path if (self.checkout / path).exists() else ""

    def _fails(self, mutant: Mutant, tests: tuple[str, ...]) -> bool:
        cost = self._cost(tests)
        path = self.checkout / CODE / mutant.file
        source, status = path.read_bytes(), path.stat()
        try:
            path.write_bytes(mutant.apply(source))
            os.utime(path, (0, 0))  # never the time of what is compiled already
            return self._run(tests, cost) != 0
        finally:
            path.write_bytes(source)
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    def _cost(self, tests: tuple[str, ...]) -> Cost:
        """Return the cost of the tests, which is measured once. The tests must pass; what they compile is kept."""
        if tests not in self.costs:
            self.costs[tests] = Cost(0, 0)
            clock, before = time.monotonic(), _processor_time()
            if self._run(tests, None) != 0:
                sys.exit("the tests fail without any change: %s\n%s" % (" ".join(tests), self._output()))
            self.costs[tests] = Cost(_processor_time() - before, time.monotonic() - clock)
        return self.costs[tests]

    def _run(self, tests: tuple[str, ...], cost: Cost | None) -> int:
        """Run the tests, and return pytest's status, which is negative where it was ended."""

        def work() -> int:
            if cost is not None:
                # Compiled code of this change would be taken for that of the next, also where tests start a Python.
                sys.dont_write_bytecode = True
                os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
                seconds = int(TIMES * cost.processor + SECONDS)
                resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
                resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            order = Order(self.directory / ("durations-%d" % list(self.costs).index(tests)))
            return self._pytest("--exitfirst", "--hypothesis-profile=quick", *tests, plugins=[order])

        return _in_child(work, None if cost is None else 2 * TIMES * cost.clock + WAITING)

    def _pytest(self, *arguments: str, plugins: Sequence[object] = ()) -> int:
        os.chdir(self.checkout)
        output = os.open(self._log(), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        # The same module of the copy, not of the checkout.
        sys.path[0] = str(self.checkout / "tests")
        temporary = "--basetemp=%s" % (self.directory / "pytest")
        return int(pytest.main(["-p", "no:cacheprovider", "-q", *_FOR_WARM, temporary, *arguments], plugins))

    def _log(self) -> Path:
        return self.directory / "output"

    def _output(self) -> str:
        return self._log().read_text(encoding="utf-8", errors="replace")

    def _warm_up(self) -> None:
        """Import what the tests import, except the collection: it takes longer than most of the tests."""
        names = self.directory / "modules"

        def work() -> int:
            status = self._pytest("--collect-only", *self.tests)
            foreign = [
                name
                for name, module in sys.modules.items()
                if not str(getattr(module, "__file__", None) or self.checkout).startswith(
                    (str(self.checkout), str(ROOT / "tests"))
                )
            ]
            names.write_text("\n".join(foreign), encoding="utf-8")
            return status

        if _in_child(work, None) != 0:
            sys.exit("the tests cannot be collected:\n%s" % self._output())
        for name in names.read_text(encoding="utf-8").splitlines():
            with suppress(ImportError):
                importlib.import_module(name)


def copy_checkout(directory: Path) -> Path:
    """Return a copy of what is or could be committed, with the saved machines beside it."""
    checkout = directory / "checkout"
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (checkout / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, checkout / name)
    if (ROOT.parent / "shared").exists():
        (directory / "shared").symlink_to(ROOT.parent / "shared")
    return checkout


def _in_child(work: Callable[[], int], seconds: float | None) -> int:
    """Return what it gives, from a process of its own, whose processes all end with it; negative where it was ended."""
    pid = os.fork()
    if pid == 0:
        _be_child(work)
    descriptor = os.pidfd_open(pid)
    try:
        select.select([descriptor], [], [], seconds)
    finally:
        os.close(descriptor)
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _be_child(work: Callable[[], int]) -> NoReturn:
    status = 70
    try:
        os.setsid()
        status = work()
    except Exception:  # noqa: BLE001 - nobody above this would print it
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def _processor_time() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
