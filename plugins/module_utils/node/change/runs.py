# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps of a run: each notes what it writes, and none goes on where another run is changing the node."""

from __future__ import annotations

from typing import Any, Mapping

from ...errors import RefusedError
from ...tree import Tree
from ..places import OPEN
from .journal import CHANGING, Journal
from .saving import judged_journal, write_journal

ANOTHER_RUN = "another_run"
RUN: Mapping[str, dict[str, Any]] = {"run": {"type": "str", "default": ""}}


def begin_writing(tree: Tree, run: str, contents: Mapping[str, bytes | None], check_mode: bool) -> None:
    """Note in the journal of this run's change what is about to be written: {path: content, None to remove the file}.

    Whoever takes the change back then tells it from what others write. Raises RefusedError where the change of this
    node is not that of this run. An empty name is not checked; in check mode no step has begun a change.
    """
    if not run or check_mode:
        return
    judged = judged_journal(tree)
    journal = judged.journal
    refuse_another_run(tree, journal, run)
    if journal is None:
        raise ended_error(tree, run)
    noted = {path: content for path, content in contents.items() if path in journal.files}
    if noted and journal.phase == CHANGING and journal.written is not None:
        write_journal(tree, journal._replace(written={**journal.written, **noted}), OPEN, judged)


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
