# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The programs of this collection that services of a node run as root, and who else may write them."""

from __future__ import annotations

import posixpath
from typing import Sequence

from ..errors import CPUManagerError, Note
from ..host.only_root import fault_of
from ..tree import Tree
from .places import SERVICES

WRITABLE = "program-not-roots"
_START = "ExecStart="


def program_notes(tree: Tree) -> list[str]:
    """A note on each path that a service of ours executes, or reads before, and that others than root may write."""
    notes = {}
    for unit in SERVICES:
        for path in [unit, *_executed(tree, unit)]:
            try:
                fault = fault_of(tree, path)
            except CPUManagerError:
                continue
            if fault is not None:
                notes[path] = Note(WRITABLE, "%s: %s, and root executes %s" % (fault.path, fault.why, path))
    return list(notes.values())


def _executed(tree: Tree, unit: str) -> Sequence[str]:
    """The interpreter of a unit and its program."""
    try:
        lines = (tree.content(unit) or b"").decode("utf-8", "replace").splitlines()
    except CPUManagerError:
        return ()
    words = [word for line in lines if line.startswith(_START) for word in line[len(_START) :].split()]
    return [word for word in words if posixpath.isabs(word) and word != "/"]
