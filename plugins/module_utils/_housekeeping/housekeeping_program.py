# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Brings the kernel's values back after a boot, as a program: its journal says to what. What it did goes to standard
output."""

from __future__ import annotations

import sys
from typing import Sequence

from .._base.errors import CPUManagerError
from .._base.tree import Tree
from .carry_out import after_boot
from .housekeeping_journal import PATH
from .steps import ValueStep


def main(arguments: Sequence[str]) -> int:
    """Write what differs; 0 when all is as it is to be, 1 when it cannot be written, 2 where nothing is wished.

    arguments: the directory that holds the node's files, by default the node itself; and NETWORK or KERNEL where only
    that part is to be written.
    """
    try:
        tree = Tree(arguments[0] if arguments else "/")
        answer = after_boot(tree, *arguments[1:])
    except (CPUManagerError, OSError) as error:
        _tell("error: %s" % error)
        return 1
    if answer is None:
        _tell("error: %s: there is no such file, which says what is wished" % tree.path(PATH))
        return 2
    for note in answer.notes:
        _tell("note: %s" % note)
    for step in answer.steps:
        if isinstance(step, ValueStep):
            _tell("%s: %s: %s to %s" % (step.layer, step.name, step.before or "all", step.after))
    return 0


def _tell(line: str) -> None:
    sys.stdout.write(line + "\n")
