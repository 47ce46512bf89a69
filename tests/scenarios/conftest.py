# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Machines with a real kubelet; and the figures of the scenarios at the end of the run, as not all output is shown."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable, Iterator, Mapping, Sequence

import pytest

from ansible_collections.kubenode.cpu_manager.tests.running.lacking import TOOL, lacking
from ansible_collections.kubenode.cpu_manager.tests.vm import guest, host, image
from ansible_collections.kubenode.cpu_manager.tests.vm.machine import ssh_arguments

_ROOT = Path(__file__).resolve().parents[2]
_VM = _ROOT / "tests/vm"
_COLLECTION = "ansible_collections/kubenode/cpu_manager"
# Where a machine has it.
_THERE = "/root/collections"
_FIGURES = "figures"


class KubeletMachine:
    """A machine of two CPUs with the real kubelet and a containerd that runs."""

    def __init__(self, name: str) -> None:
        self.name = name

    def run(self, *command: str, given: bytes = b"") -> bytes:
        """Return what a command there prints, which has to succeed. given: what it reads."""
        done = subprocess.run(ssh_arguments(self.name, *command), input=given, capture_output=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def starts_of(self, cases: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Return each case, tried and started there; see plain_starts."""
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w") as tar:
            for part in ("plugins/module_utils", "tests/scenarios/plain_starts.py"):
                tar.add(_ROOT / part, "%s/%s" % (_COLLECTION, part))
        self.run("mkdir", "-p", _THERE, "&&", "tar", "-xC", _THERE, given=archive.getvalue())
        program = "%s/%s/tests/scenarios/plain_starts.py" % (_THERE, _COLLECTION)
        lines = self.run("python3", program, _THERE, given=json.dumps(cases).encode("utf-8")).splitlines()
        assert len(lines) == len(cases)
        return [json.loads(line) for line in lines]


@contextmanager
def _machine(shape: str, name: str) -> Iterator[KubeletMachine]:
    """Yield a new machine with an image, which is ended afterwards."""
    try:
        host.prepare()
        image.make(name)
    except host.NoMachinesError as error:
        lacking(TOOL, str(error))
    machine = KubeletMachine("%s-of-tests-%d" % (name, os.getpid()))
    # By a process of its own, as QEMU runs on.
    subprocess.run([sys.executable, str(_VM), "up", machine.name, shape, "--image=" + name], check=True)
    try:
        machine.run("systemctl", "start", "containerd")
        yield machine
    finally:
        guest.stop(machine.name)


@pytest.fixture
def kubelet_machine() -> Iterator[KubeletMachine]:
    """Yield a new one."""
    with _machine("two-1s2c", "kubelet") as machine:
        yield machine


@pytest.fixture
def selinux_machine() -> Iterator[KubeletMachine]:
    """Yield a new one, on which SELinux refuses what its policy does not allow."""
    with _machine("two-1s2c-selinux", "selinux") as machine:
        machine.run("setenforce", "1")
        yield machine


@pytest.fixture
def tell_figures(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Say what a scenario took."""
    return lambda figures: record_property(_FIGURES, figures)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Write a line for each scenario that has passed."""
    for report in terminalreporter.stats.get("passed", ()):
        for name, figures in report.user_properties:
            if name == _FIGURES:
                terminalreporter.write_line(str(figures))
