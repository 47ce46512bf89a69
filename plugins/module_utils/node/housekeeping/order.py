# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The order in which a node is brought to what is wanted, or back. Pure.

It never leaves work without a CPU: first what new work starts with and what moves work that is there, then the files of
systemd, which it reads, and then the cgroups; what others read comes last, but for irqbalance. It is told before any
interrupt is written, or it may move that by the CPUs that it knew. tuned comes before what is written beside it, and
after the values of layers that it takes over, which would be put back over its own. Slices are narrowed after it and
widened before it, as it can move no process to a CPU that its slice does not have. A partition comes last, as it takes
CPUs away from all others, and ends first.
"""

from __future__ import annotations

from typing import Sequence

from ...host.layers import IRQBALANCE, MANAGER, PARTITION, SLICES, TUNED
from .back import Back
from .journal import Journal
from .partition import Change
from .steps import BOOT, DAEMON_RELOAD, RESTART_IRQBALANCE, TUNED_ADM, Command, File, Link, Step, Value

# Of which systemd has to read the files again.
_OF_SYSTEMD = (SLICES, MANAGER, PARTITION, BOOT)
# With that of tuned, the commands that have a place in this order; all others are run at the end.
_IN_PLACE = (DAEMON_RELOAD, RESTART_IRQBALANCE)


def commands_of(
    steps: Sequence[Step],
    more: Sequence[tuple[str, ...]],
    journal: Journal | None,
    apply: tuple[str, ...] = (),
    is_back: bool = False,
) -> list[tuple[str, ...]]:
    """What has to be run so that the files of these steps count, with what an interrupted run did not come to.

    apply: as Wanted has it.
    """
    layers = {step.layer for step in steps if not isinstance(step, Command)}
    pending = () if journal is None else journal.pending
    commands = [words for words in pending if not is_of_tuned(words)]
    # Its profile may be another one by now.
    if apply and (TUNED in layers or len(commands) < len(pending)):
        commands.append(apply)
    if layers.intersection(_OF_SYSTEMD):
        commands.append(DAEMON_RELOAD)
    if IRQBALANCE in layers:
        commands.append(RESTART_IRQBALANCE)
    # As ordered() has them.
    first = [DAEMON_RELOAD, RESTART_IRQBALANCE, apply] if is_back else [RESTART_IRQBALANCE, apply, DAEMON_RELOAD]
    wanted = dict.fromkeys([*commands, *more])
    return [*(words for words in first if words in wanted), *(words for words in wanted if words not in first)]


def is_of_tuned(words: Sequence[str]) -> bool:
    """Whether a command has tuned apply its profile."""
    return words[0] == TUNED_ADM


def has_place(words: tuple[str, ...]) -> bool:
    """Whether a command has a place in this order, and is not one of those that are run at the end."""
    return words in _IN_PLACE or is_of_tuned(words)


def ordered(
    back: Back,
    values: Sequence[Value],
    files: Sequence[File],
    links: Sequence[Link],
    commands: Sequence[tuple[str, ...]],
    change: Change,
    runs: bool,
    is_back: bool = False,
) -> list[Step]:
    """The steps in the order in which they are done.

    runs: whether slices are started and stopped here. is_back: whether all goes back, which ends with the interrupts.
    """
    every = [*back.files, *files]
    tune: list[Step] = [
        *(step for step in every if step.layer == TUNED),
        *(Command(words) for words in commands if is_of_tuned(words)),
    ]
    given_over = back.values if tune and not is_back else ()
    balance: list[Step] = [
        *(step for step in every if step.layer == IRQBALANCE),
        *_run(commands, RESTART_IRQBALANCE),
    ]
    return [
        *change.off,
        *(Command(words) for words in change.stop if runs),
        *back.links,
        *(() if is_back else [*balance, *given_over, *tune]),
        *back.widened,
        *(step for step in values if step.layer != SLICES),
        *(step for step in every if step.layer in _OF_SYSTEMD),
        *links,
        *_run(commands, DAEMON_RELOAD),
        *back.cgroups,
        *(step for step in values if step.layer == SLICES),
        *([*balance, *tune] if is_back else ()),
        *(step for step in every if step.layer not in (*_OF_SYSTEMD, IRQBALANCE, TUNED)),
        *(Command(words) for words in commands if not has_place(words)),
        *(() if given_over else back.values),
        *(Command(words) for words in change.start if runs),
        *change.on,
    ]


def _run(commands: Sequence[tuple[str, ...]], words: tuple[str, ...]) -> list[Command]:
    return [Command(words)] if words in commands else []
