# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A machine with a real kubelet; and the figures of the scenarios at the end of the run, as not all output is shown."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Callable, Iterator

import pytest

from ansible_collections.kubenode.cpu_manager.tests.running.lacking import TOOL, lacking
from ansible_collections.kubenode.cpu_manager.tests.vm import guest, host, image
from ansible_collections.kubenode.cpu_manager.tests.vm.machine import ssh_arguments

_VM = Path(__file__).resolve().parents[1] / "vm"
_FIGURES = "figures"


class KubeletMachine:
    """A machine of two CPUs with the real kubelet, 1.20.2, and a containerd that runs."""

    def __init__(self, name: str) -> None:
        self.name = name

    def run(self, *command: str, given: bytes = b"") -> bytes:
        """What a command there prints, which has to succeed. given: what it reads."""
        done = subprocess.run(ssh_arguments(self.name, *command), input=given, capture_output=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture
def kubelet_machine() -> Iterator[KubeletMachine]:
    """A new one, which is ended afterwards."""
    try:
        host.prepare()
        image.make("kubelet")
    except host.NoMachinesError as error:
        lacking(TOOL, str(error))
    name = "kubelet-of-tests-%d" % os.getpid()
    # By a process of its own, as QEMU runs on.
    subprocess.run([sys.executable, str(_VM), "up", name, "two-1s2c", "--image=kubelet"], check=True)
    try:
        machine = KubeletMachine(name)
        machine.run("systemctl", "start", "containerd")
        yield machine
    finally:
        guest.stop(name)


@pytest.fixture
def tell_figures(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Say what a scenario took."""
    return lambda figures: record_property(_FIGURES, figures)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """A line for each scenario that has passed."""
    for report in terminalreporter.stats.get("passed", ()):
        for name, figures in report.user_properties:
            if name == _FIGURES:
                terminalreporter.write_line(str(figures))
