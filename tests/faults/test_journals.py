# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Two runs at the journal of one node: one of them gets it, and the other is told so, wherever they meet."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import CPUManagerError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.journal_file import OPEN
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._rollout import rollout_journal as saving
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._rollout.rollout_journal import (
    DRAINING,
    Judged,
    RolloutJournal,
    judged_journal,
    read_journal,
    remove_journal,
    write_journal,
)
from ansible_collections.kubenode.cpu_manager.tests.support.numbers import EACH

from . import tracer
from .counting import Count
from .tracer import Traced

MANY = 10_000
DONE = "done"
BEGUN = RolloutJournal(DRAINING, {}, {}, "killed")


def act(tree: Tree, judged: Judged, run: str | None) -> str:
    """Put the journal of a run in place of the one that was judged, or remove that; DONE, or the error's kind."""
    try:
        if run is None:
            remove_journal(tree, OPEN, judged)
        else:
            write_journal(tree, RolloutJournal(DRAINING, {}, {}, run), OPEN, judged)
    except CPUManagerError as error:
        return error.kind
    return DONE


@pytest.mark.parametrize("is_end", [False, True], ids=["replaces", "removes"])
@pytest.mark.parametrize("before", [None, BEGUN], ids=["first", "taken over"])
def test_two_runs_at_one_journal(
    tmp_path: Path, before: RolloutJournal | None, is_end: bool, monkeypatch: pytest.MonkeyPatch, count: Count
) -> None:
    """The second does all of its work at each system call of the first. Who has not got it does not believe so."""
    if tracer.why_not():
        pytest.skip(tracer.why_not())
    monkeypatch.setattr(saving, "PATIENCE", 0.0)
    tree, second = Tree(str(tmp_path)), None if is_end else "second"
    meetings, ends = 0, set()
    for number in range(1, MANY, EACH):
        write_journal(tree, BEGUN)
        if before is None:
            remove_journal(tree)
        traced = Traced(partial(act, tree, judged_journal(tree), "first"))
        more = all(traced.next_stop() for _stop in range(number))
        judged = judged_journal(tree)
        inner = act(tree, judged, second)
        outer = traced.answer()
        found = read_journal(tree)
        if inner == DONE and judged.journal not in (before, None):
            # It came when the first was through.
            assert (outer, found and found.run) == (DONE, second)
        elif inner == DONE and not (is_end and before is None):
            assert (outer, found and found.run) == ("refused", second)
        else:
            assert (outer, found and found.run) == (DONE, "first")
        ends.add((inner, outer))
        meetings += 1
        assert os.listdir(os.path.dirname(tree.path(OPEN))) in ([], ["change.json"])
        if not more:
            break
    assert (DONE, DONE) in ends
    assert ((DONE, "refused") in ends) == (not is_end or before is not None)
    assert ("locked", DONE) in ends or before is None
    count("meetings with others", meetings)
