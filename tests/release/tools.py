# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Programs with dependencies of their own, in a virtual environment of theirs, made once."""

from __future__ import annotations

import fcntl
import hashlib
import subprocess
import sys
from pathlib import Path

from .archive import checkout

REQUIREMENTS = Path(__file__).with_name("requirements.txt")


def programs() -> Path:
    """The directory with the programs of requirements.txt. Raises CalledProcessError where they cannot be installed."""
    wanted = hashlib.sha256(REQUIREMENTS.read_bytes() + sys.version.encode("utf-8")).hexdigest()[:12]
    directory = checkout() / ".cache" / "release-tools" / wanted
    directory.mkdir(parents=True, exist_ok=True)
    complete = directory / ".complete"
    with (directory / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not complete.exists():
            subprocess.run([sys.executable, "-m", "venv", "--clear", str(directory / "venv")], check=True)
            python = str(directory / "venv" / "bin" / "python")
            install = ["-m", "pip", "install", "-qq", "--disable-pip-version-check", "-r", str(REQUIREMENTS)]
            subprocess.run([python, *install], check=True)
            complete.touch()
    return directory / "venv" / "bin"
