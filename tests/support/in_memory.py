# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where tests have their temporary files: hundreds of thousands of small ones, on which disks take most of the time."""

from __future__ import annotations

import os
import tempfile

_MEMORY = "/dev/shm"
# A container may have 64 MiB.
_LEAST = 2 << 30


def place() -> str | None:
    """Return a directory in memory, where it has room and programs can be run from there."""
    try:
        found = os.statvfs(_MEMORY)
    except OSError:
        return None
    is_fit = found.f_bavail * found.f_frsize >= _LEAST and not found.f_flag & os.ST_NOEXEC
    return _MEMORY if is_fit and os.access(_MEMORY, os.W_OK) else None


def put_temporary_files_there() -> None:
    """Put temporary files of this process, and of those that it starts, into memory, unless somebody has said where
    they are to be."""
    memory = place()
    if memory and "TMPDIR" not in os.environ:
        os.environ["TMPDIR"] = tempfile.tempdir = memory
