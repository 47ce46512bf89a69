# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The kubelet that runs on a node, or the program that holds one.

Any user may name a process as he likes, so on a live node only one counts that root has started, from a program of
root's: its arguments name files that are then read and written as root. Source: proc(5).
"""

from __future__ import annotations

import os
from typing import Iterator, NamedTuple, Sequence

from ...errors import NodeError, Note
from ...tree import Tree

# The kubelet itself, and MicroK8s' program that holds it.
_KUBELETS = ("kubelet", "kubelite")
# k3s holds its kubelet when it is a server or an agent. RKE2 and k0s start a kubelet of its own.
_K3S = ("k3s", "k3s-server", "k3s-agent")

# With one of these it says something and ends.
_SAYS_AND_ENDS = ("--version", "--help", "-h")
# What Go reads as false.
_FALSE = ("0", "f", "F", "false", "False", "FALSE")

# A user may start any number of processes.
_MOST_NOTES = 3


class Process(NamedTuple):
    """A running kubelet: its process id and its command line.

    Bytes of the command line that are no text are in it as os.fsdecode() gives them, so that a path opens.
    """

    pid: int
    arguments: tuple[str, ...]


class Search(NamedTuple):
    """The kubelet that runs on a node, None where none does, and what is strange about those that look like one."""

    kubelet: Process | None
    notes: tuple[str, ...] = ()


def find_kubelet(tree: Tree) -> Process | None:
    """The kubelet that runs on this node; None where none does, as in a saved machine."""
    return search_kubelet(tree).kubelet


def search_kubelet(tree: Tree) -> Search:
    """The kubelet that runs on this node. Of a saved node, whatever was saved counts."""
    doubts: list[str] = []
    of_service: list[Process] = []
    others: list[Process] = []
    for process in named_kubelets(tree):
        service = doubt = ""
        if tree.live:
            # Imported here: most nodes that are looked at, saved ones and those without a kubelet, do not need it.
            from . import trust

            try:
                if trust.is_in_container(process.pid):
                    continue
                service = trust.service_of(process.pid)
                doubt = trust.doubt(process, service)
            except (OSError, ValueError):
                continue  # it ended meanwhile
        if doubt:
            name = os.path.basename(process.arguments[0])
            doubts.append("process %d is called %s and does not count as one: %s" % (process.pid, name, doubt))
        else:
            (of_service if service else others).append(process)
    kubelets = of_service + others
    notes = doubts[:_MOST_NOTES]
    if len(doubts) > _MOST_NOTES:
        notes.append("%d more processes are called so and do not count" % (len(doubts) - _MOST_NOTES))
    if len(kubelets) > 1:
        notes.append(
            "%d kubelets run (processes %s); what is said here is of process %d%s"
            % (
                len(kubelets),
                ", ".join(str(process.pid) for process in sorted(kubelets)),
                kubelets[0].pid,
                ", which is a service" if of_service else "",
            )
        )
    return Search(kubelets[0] if kubelets else None, tuple(Note("kubelet-ambiguous", text) for text in notes))


def named_kubelets(tree: Tree) -> Iterator[Process]:
    """The processes that say by their command line that they are a kubelet, by process id."""
    for pid in tree.numbered("/proc", ""):
        path = "/proc/%d/cmdline" % pid
        try:
            # Of most processes this short look is enough.
            line = tree.read_value(path)
            if line is None or not ("kubel" in line or "k3s" in line):
                continue
            arguments = _arguments_of(os.fsdecode(tree.read_bytes(path)).strip("\0\n "))
        except NodeError:
            continue  # it ended meanwhile
        if _is_kubelet(arguments):
            yield Process(pid, arguments)


def _arguments_of(line: str) -> tuple[str, ...]:
    # What k3s was started with may be secret: it writes "k3s server" over it, as one word.
    if "\0" not in line and os.path.basename(line).startswith("k3s "):
        return tuple(line.split())
    return tuple(line.split("\0"))


def _is_kubelet(arguments: Sequence[str]) -> bool:
    name = os.path.basename(arguments[0])
    flags = list(arguments[1 : arguments.index("--") if "--" in arguments else None])
    if any(_is_on(flags, flag) for flag in _SAYS_AND_ENDS):
        return False
    if name in _K3S:
        is_kubelet = "-" in name or arguments[1:2] in (("server",), ("agent",))
        return is_kubelet and not _is_on(flags, "--disable-agent")
    return name in _KUBELETS


def _is_on(flags: Sequence[str], name: str) -> bool:
    given = [flag.partition("=")[2] for flag in flags if flag.partition("=")[0] == name]
    return bool(given) and given[-1] not in _FALSE
