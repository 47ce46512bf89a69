# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run the molecule scenarios on virtual machines. MACHINES says which of each scenario's: quick, all, or names."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
import yaml

from ansible_collections.kubenode.cpu_manager.tests.cluster.control_plane import ControlPlane
from ansible_collections.kubenode.cpu_manager.tests.vm import guest, host, image

ROOT = Path(__file__).resolve().parent.parent.parent
MOLECULE = ROOT / "extensions" / "molecule"
SCENARIOS = sorted(path.parent.name for path in MOLECULE.glob("*/molecule.yml"))
# Where scenarios have their control planes.
CLUSTERS = ROOT / "build" / "cluster"

# Seconds. A busy host takes its time; a scenario that hangs ends nevertheless.
PATIENCE = 3600


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_scenario(scenario: str, tmp_path: Path) -> None:
    inventory = yaml.safe_load((MOLECULE / scenario / "inventory" / "hosts.yml").read_text(encoding="utf-8"))["all"]
    names = {name for group in inventory["children"].values() for name in group["hosts"]}
    try:
        host.prepare()
        image.make(inventory.get("vars", {}).get("image", "base"))
    except host.NoMachinesError as error:
        pytest.skip(str(error))
    # Molecule remembers there what it has done: nothing yet.
    environment = {**os.environ, "NO_COLOR": "1", "MOLECULE_EPHEMERAL_DIRECTORY": str(tmp_path)}
    steps = [("start", time.monotonic())]
    machines = []
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
        too_long = threading.Timer(PATIENCE, _end, [molecule])
        too_long.start()
        try:
            for line in molecule.stdout or ():
                print(line, end="", flush=True)
                steps += [(name, time.monotonic()) for name in re.findall(r" > ([a-z]+)\] Executing", line)]
                machines += re.findall("[^ '\"]+: [^ ]+, up after [0-9.]+ s", line)
            assert molecule.wait() == 0
        finally:
            too_long.cancel()
            _end(molecule)
            left = names & set(guest.left_behind())
            for name in left:
                guest.stop(name)
            for directory in CLUSTERS.glob(scenario):
                left.add(directory.name)
                ControlPlane(directory, Path()).stop()
    assert not left
    print("\n%s: %s; %s" % (scenario, _seconds([*steps, ("end", time.monotonic())]), "; ".join(machines)))


def _seconds(steps: list[tuple[str, float]]) -> str:
    """What a scenario took, and each of its steps."""
    each = ["%s %.0f" % (name, end - begin) for (name, begin), (_next, end) in zip(steps, steps[1:])]
    return "%.0f s (%s)" % (steps[-1][1] - steps[0][1], ", ".join(each))


def _end(molecule: subprocess.Popen[str]) -> None:
    """End molecule and what it started, if it still runs."""
    with suppress(ProcessLookupError):
        os.killpg(molecule.pid, signal.SIGTERM)
