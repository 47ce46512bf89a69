# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Programs with dependencies of their own, in virtual environments of theirs, each made once."""

from __future__ import annotations

import fcntl
import hashlib
import subprocess
import sys
from pathlib import Path
from typing import Sequence

from .archive import checkout

REQUIREMENTS = Path(__file__).with_name("requirements.txt")


def programs() -> Path:
    """Return the directory with the programs of requirements.txt. Raises CalledProcessError where they cannot be
    installed."""
    return environment("release-tools", requirements(REQUIREMENTS))


def requirements(*files: Path) -> list[str]:
    """Return what pip is to install, of these files."""
    lines = [line.strip() for file in files for line in file.read_text("utf-8").splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


def environment(name: str, wanted: Sequence[str]) -> Path:
    """Return the directory with the programs of an environment that has these. Raises CalledProcessError, too."""
    digest = hashlib.sha256("\n".join([*wanted, sys.version]).encode("utf-8")).hexdigest()[:12]
    directory = checkout() / ".cache" / name / digest
    directory.mkdir(parents=True, exist_ok=True)
    complete = directory / ".complete"
    with (directory / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not complete.exists():
            subprocess.run([sys.executable, "-m", "venv", "--clear", str(directory / "venv")], check=True)
            python = str(directory / "venv" / "bin" / "python")
            install = ["-m", "pip", "install", "-qq", "--disable-pip-version-check", *wanted]
            subprocess.run([python, *install], check=True)
            complete.touch()
    return directory / "venv" / "bin"
