# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Brings a node to what is wished, or puts everything back."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, Iterable, Sequence

from .._base.command import Run, run_command
from .._base.journal_file import DIRECTORY
from .._base.tree import Tree
from .._host.layers import read_irqbalance
from .._owners.owners import Tuned
from .at_boot import is_of_slice
from .carry_out import HousekeepingResult, carry_out, read, with_files
from .housekeeping_journal import HousekeepingWish, checksum, locked, read_journal, remove_journal, write_journal
from .housekeeping_plan import has_place, is_of_tuned, plan_absent, plan_present
from .steps import (
    DAEMON_RELOAD,
    KERNEL_LINE,
    RESTART_IRQBALANCE,
    FileStep,
    FoundHost,
    Link,
    Step,
    ValueStep,
    WantedHost,
)
from .tuned_profile import apply_command_of, left_by_tuned
from .wanted import Extras, loader_commands, runs_systemd, wanted_of

# What a housekeeping changed, as --diff shows it: each file, and all values of a layer at once. Pure.


def differences(answer: HousekeepingResult) -> list[tuple[str, str, str]]:
    """What it is of, what it held before, and what it holds now."""
    found: list[tuple[str, str, str]] = []
    layers = dict.fromkeys(step.layer for step in answer.steps if isinstance(step, ValueStep))
    for layer in layers:
        # Of a file that is written twice, only what it was and what it became.
        first: dict[str, ValueStep] = {}
        last: dict[str, ValueStep] = {}
        for step in answer.steps:
            if isinstance(step, ValueStep) and step.layer == layer:
                first.setdefault(step.path, step)
                last[step.path] = step
        found.append(
            (
                "CPUs of %s" % layer,
                "".join("%s: %s\n" % (step.name, step.before) for step in first.values()),
                "".join("%s: %s\n" % (step.name, step.after) for step in last.values()),
            )
        )
    return [*found, *_of_files(answer.steps)]


def _of_files(steps: Sequence[Step]) -> Iterable[tuple[str, str, str]]:
    for step in steps:
        if isinstance(step, FileStep):
            yield step.path, _text(step.before), _text(step.after)
        elif isinstance(step, Link):
            target = step.target + "\n"
            yield step.path, "" if step.is_made else target, target if step.is_made else ""


def _text(content: bytes | None) -> str:
    if content is None:
        return ""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return "sha256: %s\n" % checksum(content)


def needs_of(commands: Iterable[tuple[str, ...]]) -> dict[str, Any]:
    """Commands that are left to others, as the module returns them."""
    words = list(commands)
    others = [list(command) for command in words if not has_place(command)]
    return {
        "daemon_reload": DAEMON_RELOAD in words,
        "restart_irqbalance": RESTART_IRQBALANCE in words,
        "apply_tuned": [list(command) for command in words if is_of_tuned(command)],
        "slices": [command for command in others if is_of_slice(command)],
        "update_loader": [command for command in others if not is_of_slice(command)],
    }


# A new kernel command line is written into the configuration of each kernel.
_PATIENCE = 600.0


def present(
    tree: Tree, wish: HousekeepingWish, extras: Extras, act: bool, run: Run | None = None
) -> HousekeepingResult:
    """Bring a node to what is wished. Raises RefusedError or NodeError; before anything is written, where it can."""
    # A check writes nothing, so it waits for no other run.
    with locked(tree) if act else nullcontext():
        return _present(tree, wish, extras, act, run)


def _present(tree: Tree, wish: HousekeepingWish, extras: Extras, act: bool, run: Run | None) -> HousekeepingResult:
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


def _left_by_tuned(tree: Tree, tuned: Tuned, wish: HousekeepingWish, found: FoundHost) -> Sequence[str]:
    """Notes on what tuned has not brought in line. The journal remembers what nobody can move, until the next boot."""
    journal = read_journal(tree)
    is_this_boot = journal is not None and journal.boot_id == found.boot_id
    before = journal.refused if journal is not None and is_this_boot else {}
    left = left_by_tuned(tree, tuned, wish.reserved, found.online, before)
    refused = {**before, **left.refused}
    if journal is not None and is_this_boot and refused != before:
        write_journal(tree, journal._replace(refused=refused))
    return left.notes


def absent(tree: Tree, act: bool, manage: bool = True, run: Run | None = None) -> HousekeepingResult:
    """Put everything back that the journal has. Raises as present()."""
    with locked(tree) if act and tree.exists(DIRECTORY) else nullcontext():
        return _absent(tree, act, manage, run)


def _absent(tree: Tree, act: bool, manage: bool, run: Run | None) -> HousekeepingResult:
    journal = read_journal(tree)
    if journal is None:
        if act and tree.exists(DIRECTORY):
            # A run that was killed before it had its journal has written nothing else.
            remove_journal(tree)
        return HousekeepingResult((), False, (), (), ())
    runs = manage and runs_systemd(tree)
    words = loader_commands(tree, None) if KERNEL_LINE in journal.wish.layers else []
    found = with_files(tree, read(tree, journal.wish, journal), WantedHost(journal.wish), journal)
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
