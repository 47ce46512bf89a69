# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What each pass of the reconcile program does for the caches: nothing, on a node whose caches are not divided."""

from __future__ import annotations

from typing import Callable, Sequence

from ...errors import InputError, NodeError, RefusedError
from ..node import Node
from ..places import CACHE


def caches_follow(node: Node, allow_owners: Sequence[str], say: Callable[[str], object]) -> bool:
    """Whether the groups of the caches have the CPUs that they should have. say: takes each line for the journal.

    allow_owners: the ids of those who may manage CPUs beside this collection.
    """
    try:
        if not node.tree.exists(CACHE, follow=False):
            return True
        # Imported here: the caches of most nodes are not divided.
        from .follow import follow

        for line in follow(node, allow_owners):
            say(line)
    except (InputError, NodeError, RefusedError, OSError) as error:
        say("error: %s" % error)
        return False
    return True
