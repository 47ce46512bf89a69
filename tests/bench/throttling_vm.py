# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Bursts of work in cgroups of a virtual machine, whose kernel has version 2 of cgroups."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Sequence

from ansible_collections.kubenode.cpu_manager.tests.kernel.bursts import Measured, Setting

TESTS = Path(__file__).resolve().parent.parent
PROGRAM = TESTS / "kernel" / "bursts.py"
# As many CPUs as the settings use: those of the host are shared by all of them.
SHAPE = "two-1s2c"


class Machine:
    """A context: a virtual machine of this run alone."""

    def __init__(self) -> None:
        self._name = "bursts-%d" % os.getpid()
        self.version = 0
        self.kernel = ""

    def __enter__(self) -> Machine:
        self._run(["up", self._name, SHAPE])
        try:
            self.version, self.kernel, _rows = self._answer([], 0, 0)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_error: object) -> None:
        self._run(["down", self._name])

    def measure(self, settings: Sequence[Setting], bursts: int, seed: int) -> list[Measured]:
        """Return what the kernel there makes of these settings."""
        return self._answer(settings, bursts, seed)[2]

    def _answer(self, settings: Sequence[Setting], bursts: int, seed: int) -> tuple[int, str, list[Measured]]:
        """Return the version of cgroups, the release of the kernel, and what was measured."""
        # Read from standard input, as nothing of this machine is there.
        arguments = ["python3", "-", "'%s'" % json.dumps(settings), str(bursts), str(seed)]
        answer = json.loads(self._run(["ssh", self._name, *arguments], PROGRAM.read_text("utf-8")))
        names = Measured._fields
        return answer["version"], answer["kernel"], [Measured(*map(row.get, names)) for row in answer["rows"]]

    @staticmethod
    def _run(arguments: Sequence[str], given: str = "") -> Any:
        command = [sys.executable, str(TESTS / "vm"), *arguments]
        return subprocess.run(command, input=given, stdout=subprocess.PIPE, text=True, check=True).stdout
