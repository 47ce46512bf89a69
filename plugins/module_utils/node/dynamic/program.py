# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The program of the policies dynamic and isolated: a pass in each period, and at once where a container comes."""

from __future__ import annotations

import fcntl
import os
import sys
import time
from typing import Any, Callable, Mapping, Sequence

from ...errors import CPUManagerError, InputError, RefusedError
from ...host.owner.conflicts import OTHER_OWNER
from ...policy.dynamic import DYNAMIC
from ...policy.moves import ANNOUNCE, POOL, Move
from ...tree import Tree
from ...untrusted import FIGURES_MODE, write_file
from ..cache.following import caches_follow
from ..published.directory import opened
from ..published.publish import publish_node
from ..service import ALIVE, READY, tell_systemd
from .agent import Agent
from .figures import Figures
from .release import release, unpublish
from .report import Report
from .settings import read_settings
from .watch import Watch

LOCK = "/run/kubenode/cpu-manager.lock"

# What is given beside the settings: one pass alone; or the end of it all.
ONCE, RELEASE = "once", "release"
# The settings that the last one needs.
_PLACES = ("config_path", "kubelet_root", "allow_owners")


class Program:
    """The passes of an agent, and what is told of them.

    say: takes each line for the journal. A line is told when it is new: what stays wrong is told once.
    """

    def __init__(self, agent: Agent, say: Callable[[str], None]) -> None:
        self.agent = agent
        self._say = say
        self._told: set[str] = set()
        self._figures = Figures()

    def one_pass(self) -> tuple[Report, bool]:
        """One pass, with its lines and figures; whether it went through."""
        report, lines, success = Report(), [], True
        try:
            report = self.agent.one_pass()
        except (CPUManagerError, OSError) as error:
            lines.append("error: %s" % error)
            success = False
            if isinstance(error, RefusedError) and error.kind == OTHER_OWNER:
                lines += self._yielded()
        else:
            success = caches_follow(self.agent.node(), self.agent.settings.allow_owners, lines.append)
        for move in report.moves:
            self._say(_line(move))
        lines += ["refused: " + text for text in report.refused]
        lines += ["waiting: pod %s, container %s has no CPUs of its own yet" % key for key in report.waiting]
        lines += ["note: " + note for note in report.notes]
        for line in lines:
            if line not in self._told:
                self._say(line)
        self._told = set(lines)
        self._figures.count(report.moves, len(report.refused), success)
        return report, self._write_figures(report, success) and success and not report.refused

    def _yielded(self) -> list[str]:
        """Give the node up to the owner of its CPUs, and publish what that one assigns; what went wrong."""
        lines = []
        try:
            lines += ["refused: " + text for text in release(self.agent.tree, self.agent.settings)]
        except (CPUManagerError, OSError) as error:
            lines.append("error: %s" % error)
        try:
            lines += ["note: " + note for note in publish_node(self.agent.node())]
        except (CPUManagerError, OSError) as error:
            lines.append("error: %s" % error)
        return lines

    def _write_figures(self, report: Report, success: bool) -> bool:
        path = self.agent.settings.textfile
        if not path:
            return True
        content = self._figures.text(report, success and not report.refused, time.time()).encode("utf-8")
        try:
            write_file(path, content, FIGURES_MODE)
        except CPUManagerError as error:
            self._say("error: %s" % error)
            return False
        return True

    def run(self, watch: Watch) -> None:
        """Pass after pass, without an end."""
        tell_systemd(READY)
        while True:
            report, _success = self.one_pass()
            tell_systemd(ALIVE)
            pause = self.agent.settings.period
            if report.due is not None:
                pause = min(pause, max(0.0, report.due - time.time()))
            watch.wait(pause)


def run(tree: Tree, data: Mapping[str, Any], arguments: Sequence[str]) -> int:
    """The program with the settings in `data`. 0 where all went through, 1 where not, 2 for settings that are wrong."""
    is_end = list(arguments) == [RELEASE]
    try:
        # The policy may be static by now, whose other settings are not checked.
        settings = read_settings({"policy": DYNAMIC, **{name: data.get(name) for name in _PLACES}} if is_end else data)
    except InputError as error:
        _tell("error: settings: %s" % error)
        return 2
    try:
        lock = _locked(tree)
    except (CPUManagerError, OSError) as error:
        _tell("error: %s" % error)
        return 1
    try:
        if is_end:
            refused = release(tree, settings)
            unpublish(tree)
            for text in refused:
                _tell("refused: " + text)
            return 1 if refused else 0
        program = Program(Agent(tree, settings), _tell)
        if list(arguments) == [ONCE]:
            return 0 if program.one_pass()[1] else 1
        program.run(Watch())
    except CPUManagerError as error:
        _tell("error: %s" % error)
        return 1
    finally:
        os.close(lock)
    return 0


def _locked(tree: Tree) -> int:
    """A descriptor that is locked as long as it is open. Raises RefusedError where another program has it."""
    with opened(tree):
        pass
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(tree.path(LOCK), flags, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise RefusedError(
            "another program gives CPUs out on this node", where=tree.path(LOCK), remedy="end it first"
        ) from error
    return descriptor


def _tell(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _line(move: Move) -> str:
    shown = move.to_dict()
    if move.what == POOL:
        return "pool: CPUs %s" % shown["cpus"]
    until = " until %.3f" % move.until if move.what == ANNOUNCE and move.until is not None else ""
    return "%s: pod %s, container %s: CPUs %s%s" % (move.what, shown["pod"], shown["container"], shown["cpus"], until)
