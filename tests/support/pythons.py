# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The Pythons of this machine, found where version managers put them: their shims may refuse to start one."""

from __future__ import annotations

import os
import sys
from pathlib import Path

# What the collection promises to run on, on nodes.
VERSIONS = ("3.8", "3.9", "3.10", "3.11", "3.12", "3.13")


def installed() -> dict[str, Path]:
    """Return {version: interpreter} of those in VERSIONS that are here."""
    managers = [Path(sys.base_prefix).parent, Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"]
    directories = [*(path for manager in managers for path in manager.glob("*/bin")), Path("/usr/bin")]
    found: dict[str, Path] = {}
    for directory in directories:
        for version in VERSIONS:
            python = directory / ("python" + version)
            if python.exists():
                found.setdefault(version, python)
    return found
