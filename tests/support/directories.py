# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Directories of tests, for processes of other users."""

from __future__ import annotations

from pathlib import Path


def open_to_all(directory: Path) -> None:
    """Let other users reach what is in a directory. Those of pytest are for its own user."""
    for place in (directory, *directory.parents):
        if place.stat().st_mode & 0o055 != 0o055:
            place.chmod(0o755)
