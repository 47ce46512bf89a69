# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lets the groups of resctrl follow the checkpoint, and brings them back after a boot, as the journal wishes it."""

from __future__ import annotations

from typing import Sequence

from ...cache.plan import Target
from ...cache.read import find_mount
from ...cache.steps import Step
from ...cache.write import carry_out, check_mounted, locked
from ...host.owner.goresctrl import files_with_classes, goresctrl_groups
from ...tree import Tree
from ..node import Node
from .given import pool_of
from .journal import Journal, read_journal, write_journal
from .partition import check_done, needed_resctrl, not_mounted
from .planned import plan_of


def follow(node: Node, allow_owners: Sequence[str] = ()) -> list[str]:
    """Bring the groups to what is wished; what was written, as lines. Mostly that is one list of CPUs, or nothing.

    allow_owners: the ids of those who may manage CPUs beside this. Raises RefusedError and NodeError, also where
    resctrl is not mounted any more.
    """
    tree = node.tree
    journal = read_journal(tree)
    if journal is None:
        return []
    terms = journal.terms
    if (terms.config_path, terms.kubelet_root) != (None, None):
        node = Node(tree, terms.config_path, terms.kubelet_root)
    if node.may_have_owners() or _has_classes(tree):
        # Imported here: on most nodes there is the kubelet alone.
        from ...host.owner.conflicts import refuse
        from ...host.owner.owners import CACHE
        from ..owners import owners_of

        refuse(owners_of(node), CACHE, (*allow_owners, *terms.allow_owners))
    if find_mount(tree) is None:
        raise not_mounted(tree)
    # Without the lock: mostly nothing is to be done.
    if not _planned(node, journal)[1]:
        return []
    check_mounted(tree)
    with locked(tree, exclusive=True) as directory:
        # Whoever had the lock may have changed the wish, or put everything back.
        journal = read_journal(tree)
        if journal is None:
            return []
        target, steps, new = _planned(node, journal)
        if any(not step.group for step in steps):
            # The root is written: what it was has to be known first.
            write_journal(tree, new)
        carry_out(tree, directory, steps)
        check_done(tree, target)
    return ["cache: %s" % str(step) for step in steps]


def _has_classes(tree: Tree) -> bool:
    """Whether a container runtime, or a plugin of it, divides the caches, too."""
    return bool([*files_with_classes(tree), *goresctrl_groups(tree)])


def _planned(node: Node, journal: Journal) -> tuple[Target, list[Step], Journal]:
    pool = pool_of(node, journal.wish, [])
    return plan_of(node, needed_resctrl(node.tree), journal.wish, pool, journal)
