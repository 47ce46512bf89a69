# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a housekeeping changed, as --diff shows it: each file, and all values of a layer at once. Pure."""

from __future__ import annotations

from typing import Any, Iterable, Sequence

from .journal import checksum
from .order import has_place, is_of_tuned
from .partition import is_of_slice
from .run import Answer
from .steps import DAEMON_RELOAD, RESTART_IRQBALANCE, File, Link, Step, Value


def differences(answer: Answer) -> list[tuple[str, str, str]]:
    """What it is of, what it held before, and what it holds now."""
    found: list[tuple[str, str, str]] = []
    layers = dict.fromkeys(step.layer for step in answer.steps if isinstance(step, Value))
    for layer in layers:
        # Of a file that is written twice, only what it was and what it became.
        first: dict[str, Value] = {}
        last: dict[str, Value] = {}
        for step in answer.steps:
            if isinstance(step, Value) and step.layer == layer:
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
        if isinstance(step, File):
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
