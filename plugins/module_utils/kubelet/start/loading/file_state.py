# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What there is in the place of a kubelet's file, or of its directory of drop-ins."""

from __future__ import annotations

from enum import Enum
from typing import Sequence, Union


class Absent(Enum):
    """Why a file or a directory has no content to read."""

    MISSING = "no such file or directory"
    DIRECTORY = "is a directory"
    UNREADABLE = "it cannot be read here"


FileState = Union[bytes, Absent]
# What is found below --config-dir: paths relative to it.
DropIns = Union[Sequence["tuple[str, FileState]"], Absent]
