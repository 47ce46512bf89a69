# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run the molecule scenarios on virtual machines.

MACHINES says which of each scenario's: quick, all, or names.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest
import yaml

from ansible_collections.kubenode.cpu_manager.tests.running.lacking import TOOL, lacking
from ansible_collections.kubenode.cpu_manager.tests.vm import guest, host, image

ROOT = Path(__file__).resolve().parent.parent.parent
MOLECULE = ROOT / "extensions" / "molecule"
# The quick ones first.
SCENARIOS = ("topology", "runtime", "cpusets", "housekeeping", "kubelet", "rollout")
# Where scenarios have their control planes.
CLUSTERS = ROOT / "build" / "cluster"

# Seconds. A busy host takes its time, three kubelets on it more than an hour; a scenario that hangs ends nevertheless.
PATIENCE = 7200

# Of prctl(2): what loses its parent becomes a child of this process, and can be found.
_SET_CHILD_SUBREAPER = 36


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """Yield a directory on a disk, as it holds the disks of the machines."""
    with tempfile.TemporaryDirectory(prefix="kubenode-scenario-", dir="/var/tmp") as name:
        yield Path(name)


@pytest.fixture(autouse=True)
def told_to_end() -> Iterator[None]:
    """Yield who is told to end ends as by Ctrl+C: machines and all."""

    def end(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, end)
    yield
    signal.signal(signal.SIGTERM, before)


def test_all_scenarios_are_here() -> None:
    assert {path.parent.name for path in MOLECULE.glob("*/molecule.yml")} == set(SCENARIOS)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_scenario(scenario: str, tmp_path: Path, tell_figures: Callable[[str], None]) -> None:
    seconds = prepare(scenario)
    latest = time.time() + PATIENCE
    figures = run(scenario, tmp_path, lambda: time.time() > latest)
    tell_figures("%s: %s; image there after %.0f s" % (scenario, figures, seconds))


def test_a_topology_that_is_ended_while_machines_start_leaves_nothing(tmp_path: Path) -> None:
    prepare("topology")
    before = left_behind("topology")
    with pytest.raises(AssertionError, match="molecule ends with -9"):
        run("topology", tmp_path, lambda: left_behind("topology") > before)
    assert not left_behind("topology")
    assert not list(_descendants())


def prepare(scenario: str) -> float:
    """Make sure that there can be machines, or skip the test. Gives the seconds that the image took."""
    try:
        host.prepare()
        start = time.monotonic()
        image.make(_inventory(scenario).get("vars", {}).get("image", "base"))
    except host.NoMachinesError as error:
        lacking(TOOL, str(error))
    return time.monotonic() - start


def run(scenario: str, directory: Path, is_too_late: Callable[[], bool]) -> str:
    """Have molecule test a scenario, and give its figures.

    Fails where it fails, takes too long, leaves nothing to change after the check, or leaves something behind, which is
    removed.
    """
    for name in guest.abandoned():
        guest.stop(name)
    environment = {**os.environ, "NO_COLOR": "1", "TMPDIR": str(directory), "ANSIBLE_LOCAL_TEMP": str(directory)}
    # Molecule remembers there what it has done: nothing yet.
    environment["MOLECULE_EPHEMERAL_DIRECTORY"] = str(directory)
    ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    steps = [("start", time.monotonic())]
    boots = []
    changes = []
    with subprocess.Popen(
        [Path(sys.executable).parent / "molecule", "test", "--scenario-name", scenario],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as molecule:
        has_ended = threading.Event()
        watch = threading.Thread(target=_end_if, args=(is_too_late, has_ended))
        watch.start()
        try:
            for line in molecule.stdout or ():
                print(line, end="", flush=True)
                steps += [(name, time.monotonic()) for name in re.findall(r" > ([a-z]+)\] Executing", line)]
                boots += re.findall("[^ '\"]+: [^ ]+, [a-z ]+, up after [0-9.]+ s", line)
                if steps[-1][0] == "converge":
                    changes += re.findall(r" ok=.* changed=(\d+)", line)
            assert molecule.wait() == 0, "molecule ends with %d" % molecule.returncode
            left = left_behind(scenario)
        finally:
            has_ended.set()
            watch.join()
            _end_descendants()
            for name in left_behind(scenario):
                _remove(name)
    assert not left
    assert changes
    assert "0" not in changes, "after the check there was nothing to change"
    return "%s; %s" % (_seconds([*steps, ("end", time.monotonic())]), "; ".join(boots))


def left_behind(scenario: str) -> set[str]:
    """Return the machines and the control plane that a scenario can have left, also those that have ended by
    themselves."""
    machines = {name for group in _inventory(scenario)["children"].values() for name in group["hosts"]}
    clusters = {path.name for path in CLUSTERS.glob(scenario)}
    return machines.intersection(guest.left_behind()) | clusters | set(guest.abandoned())


def _inventory(scenario: str) -> dict[str, Any]:
    text = (MOLECULE / scenario / "inventory" / "hosts.yml").read_text(encoding="utf-8")
    inventory: dict[str, Any] = yaml.safe_load(text)["all"]
    return inventory


def _remove(name: str) -> None:
    guest.stop(name)
    shutil.rmtree(CLUSTERS / name, ignore_errors=True)


def _end_if(is_too_late: Callable[[], bool], has_ended: threading.Event) -> None:
    while not has_ended.wait(0.5):
        if is_too_late():
            _end_descendants()
            return


def _end_descendants() -> None:
    """End all that this process has started, and what that has started: molecule, Ansible, QEMU, a control plane."""
    while pids := list(_descendants()):
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.1)


def _descendants() -> Iterator[int]:
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            # Behind the name in parentheses: the state and the parent.
            state, parent = path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[:2]
            parents[int(path.parent.name)] = 0 if state == "Z" else int(parent)
    for pid in parents:
        above = pid
        while above := parents.get(above, 0):
            if above == os.getpid():
                yield pid
                break


def _seconds(steps: list[tuple[str, float]]) -> str:
    """Return what a scenario took, and each of its steps."""
    each = ["%s %.0f" % (name, end - begin) for (name, begin), (_next, end) in zip(steps, steps[1:])]
    return "%.0f s (%s)" % (steps[-1][1] - steps[0][1], ", ".join(each))
