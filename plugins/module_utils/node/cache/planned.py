# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is to become of the caches of a node, by the wish, the checkpoint and the journal. It only reads."""

from __future__ import annotations

from ...cache.plan import Pool, Target, Wish, divided_cache, make_target
from ...cache.resctrl import ROOT, Found
from ...cache.steps import Step, steps_to
from ...host.boot import boot_id_of
from ..node import Node
from .given import machine_of
from .journal import Journal, Terms, former_masks, with_masks


def plan_of(
    node: Node, found: Found, wish: Wish, pool: Pool | None, old: Journal | None
) -> tuple[Target, list[Step], Journal]:
    """What is to be, the steps to it, and the journal before them. Raises InputError or RefusedError."""
    cache = divided_cache(found)
    boot_id = boot_id_of(node.tree)
    former = former_masks(old, boot_id, cache.name, found.root.schemata.get(cache.name, {}))
    target = make_target(found, wish, machine_of(node, cache.name), pool, former)
    of_boot = old if old is not None and old.boot_id == boot_id else None
    journal = Journal(
        wish,
        boot_id,
        cache.name,
        former,
        of_boot.ours if of_boot is not None and of_boot.level == cache.name else {},
        of_boot is not None and of_boot.is_mounted,
        Terms() if old is None else old.terms,
    )
    return target, steps_to(found, target), with_masks(journal, target.masks(ROOT))
