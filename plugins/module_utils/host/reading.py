# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads one setting of the running kernel. A file that is not there is no setting; one that is damaged is one all the
same."""

from __future__ import annotations

import os
import stat
from functools import lru_cache

from ..cpuset import CPUSet
from ..errors import InputError, NodeError, RefusedError
from ..tree import Tree
from .layers import FIXED, LIST, MASK, UNREADABLE, Setting


def read_setting(tree: Tree, layer: str, name: str, path: str, form: str = LIST) -> Setting | None:
    """What a file says on which CPUs something runs; None where there is no such file."""
    try:
        text = tree.read_value(path)
        if text is None:
            return None
        # Only the kernel's own files are asked: it lets root write others, too.
        problem = "" if os.stat(tree.path(path)).st_mode & stat.S_IWUSR else FIXED
        return Setting(layer, name, path, text, parsed(text, form), form, problem=problem)
    except FileNotFoundError:  # an interrupt or a network device that went away meanwhile
        return None
    except (InputError, NodeError, OSError, RefusedError):
        return Setting(layer, name, path, "", None, form, problem=UNREADABLE)


def read_cpus(tree: Tree, path: str, form: str = LIST) -> CPUSet | None:
    """The CPUs in a file that is only for reading; None where it is not there, or holds none."""
    try:
        text = tree.read_value(path)
        return None if text is None else parsed(text, form)
    except (InputError, NodeError, RefusedError):
        return None


@lru_cache(maxsize=256)
def parsed(text: str, form: str = LIST) -> CPUSet:
    """The CPUs in the form of a file. Most files of a layer have the same ones. Raises InputError."""
    return CPUSet.parse_mask(text) if form == MASK else CPUSet.parse(text)
