# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lets the groups of resctrl follow the checkpoint, and brings them back after a boot, as the journal wishes it."""

from __future__ import annotations

from typing import Callable, Sequence

from .._base.errors import InputError, NodeError, RefusedError
from .._base.journal_file import CACHE
from .._base.tree import Tree
from .._node.node import Node
from .._owners.owners import files_with_classes, goresctrl_groups
from .cache_journal import CacheJournal, read_journal, write_journal
from .cache_partition import check_done, needed_resctrl, not_mounted, plan_of, pool_of
from .read import find_mount
from .ways import Target
from .write import ResctrlStep, carry_out, check_mounted, locked

# What each pass of the reconcile program does for the caches: nothing, on a node whose caches are not divided.


def caches_follow(node: Node, allow_owners: Sequence[str], say: Callable[[str], object]) -> bool:
    """Whether the groups of the caches have the CPUs that they should have. say: takes each line for the journal.

    allow_owners: the ids of those who may manage CPUs beside this collection.
    """
    try:
        if not node.tree.exists(CACHE, follow=False):
            return True
        for line in follow(node, allow_owners):
            say(line)
    except (InputError, NodeError, RefusedError, OSError) as error:
        say("error: %s" % error)
        return False
    return True


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
        from .._node.owners_found import refuse_beside
        from .._owners.owners import CACHE

        refuse_beside(node, CACHE, (*allow_owners, *terms.allow_owners))
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


def _planned(node: Node, journal: CacheJournal) -> tuple[Target, list[ResctrlStep], CacheJournal]:
    pool = pool_of(node, journal.wish, [])
    return plan_of(node, needed_resctrl(node.tree), journal.wish, pool, journal)
