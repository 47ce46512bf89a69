# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Refuses the steps of a run whose change of the node another run has taken over or ended."""

from __future__ import annotations

from typing import Any, Mapping

from ...errors import RefusedError
from ...tree import Tree
from ..places import OPEN
from .journal import Journal, read_journal

ANOTHER_RUN = "another_run"
RUN: Mapping[str, dict[str, Any]] = {"run": {"type": "str", "default": ""}}


def check_run(tree: Tree, run: str, check_mode: bool) -> None:
    """Raises RefusedError where the change of this node is not that of this run; an empty name is not checked.

    In check mode no step has begun a change.
    """
    if not run or check_mode:
        return
    journal = read_journal(tree)
    refuse_another_run(tree, journal, run)
    if journal is None:
        raise ended_error(tree, run)


def refuse_another_run(tree: Tree, journal: Journal | None, run: str) -> None:
    """Raises RefusedError where another run is at a change of this node."""
    if journal is not None and journal.run != run:
        raise RefusedError(
            "another run (%s) is changing this node or was interrupted, and this one (%s) goes no further"
            % (journal.run or "without a name", run),
            tree.path(OPEN),
            "let it end, and if it was interrupted, run the role kubelet again, which takes its change back",
            ANOTHER_RUN,
        )


def ended_error(tree: Tree, run: str) -> RefusedError:
    """Why a run does not continue whose change is no longer open."""
    return RefusedError(
        "is gone: another run has ended the change that this one (%s) had begun, and this one goes no further" % run,
        tree.path(OPEN),
        "look what it did, and run again",
        ANOTHER_RUN,
    )
