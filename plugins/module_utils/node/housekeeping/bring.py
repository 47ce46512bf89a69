# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Brings a node to what is wished, or puts everything back."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Sequence

from ...command import Run, run_command
from ...host.irqbalance import read_irqbalance
from ...host.owner.tuned import Tuned
from ...tree import Tree
from ..places import DIRECTORY
from .journal import Wish, read_journal, remove_journal, write_journal
from .lock import locked
from .plan import plan_absent, plan_present
from .run import Answer, carry_out, read, with_files
from .steps import KERNEL_LINE, RESTART_IRQBALANCE, Found, Wanted
from .tuned import apply_command_of, left_by_tuned
from .wanted import Extras, loader_commands, runs_systemd, wanted_of

# A new kernel command line is written into the configuration of each kernel.
_PATIENCE = 600.0


def present(tree: Tree, wish: Wish, extras: Extras, act: bool, run: Run | None = None) -> Answer:
    """Bring a node to what is wished. Raises RefusedError or NodeError; before anything is written, where it can."""
    # A check writes nothing, so it waits for no other run.
    with locked(tree) if act else nullcontext():
        return _present(tree, wish, extras, act, run)


def _present(tree: Tree, wish: Wish, extras: Extras, act: bool, run: Run | None) -> Answer:
    journal = read_journal(tree)
    notes: list[str] = []
    found = read(tree, wish, journal)
    wanted = wanted_of(tree, wish, extras, found, journal, notes)
    found = with_files(tree, found, wanted, journal)
    plan = plan_present(found, wanted, journal)
    answer = carry_out(tree, plan._replace(notes=[*notes, *plan.notes]), wanted.runs, act, _runner(tree, run))
    if extras.tuned is None or not act or not wanted.runs:
        return answer
    return answer._replace(notes=[*answer.notes, *_left_by_tuned(tree, extras.tuned, wish, found)])


def _left_by_tuned(tree: Tree, tuned: Tuned, wish: Wish, found: Found) -> Sequence[str]:
    """Notes on what tuned has not brought in line. The journal remembers what nobody can move, until the next boot."""
    journal = read_journal(tree)
    is_this_boot = journal is not None and journal.boot_id == found.boot_id
    before = journal.refused if journal is not None and is_this_boot else {}
    left = left_by_tuned(tree, tuned, wish.reserved, found.online, before)
    refused = {**before, **left.refused}
    if journal is not None and is_this_boot and refused != before:
        write_journal(tree, journal._replace(refused=refused))
    return left.notes


def absent(tree: Tree, act: bool, manage: bool = True, run: Run | None = None) -> Answer:
    """Put everything back that the journal has. Raises as present()."""
    with locked(tree) if act and tree.exists(DIRECTORY) else nullcontext():
        return _absent(tree, act, manage, run)


def _absent(tree: Tree, act: bool, manage: bool, run: Run | None) -> Answer:
    journal = read_journal(tree)
    if journal is None:
        if act and tree.exists(DIRECTORY):
            # A run that was killed before it had its journal has written nothing else.
            remove_journal(tree)
        return Answer((), False, (), (), ())
    runs = manage and runs_systemd(tree)
    words = loader_commands(tree, None) if KERNEL_LINE in journal.wish.layers else []
    found = with_files(tree, read(tree, journal.wish, journal), Wanted(journal.wish), journal)
    apply = apply_command_of(tree, None, journal)
    return carry_out(tree, plan_absent(found, journal, words, runs, apply), runs, act, _runner(tree, run))


def _runner(tree: Tree, run: Run | None) -> Run:
    """What runs the commands of a plan. What does not run needs no restart, and its unit may be gone."""

    def call(words: Sequence[str]) -> str:
        if words == RESTART_IRQBALANCE:
            irqbalance = read_irqbalance(tree)
            if irqbalance is None or not irqbalance.is_running:
                return ""
        return run_command(words, _PATIENCE) if run is None else run(words)

    return call
