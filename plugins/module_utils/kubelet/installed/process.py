# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The kubelet that runs on a node, or the program that holds one.

Any user may name a process as he likes, so on a live node only one counts that root has started, from a program of
root's: its arguments name files that are then read and written as root. Source: proc(5).
"""

from __future__ import annotations

import os
import stat
from typing import Iterator, NamedTuple, Sequence

from ...errors import NodeError
from ...tree import Tree
from .distributions import DISTRIBUTIONS

# The kubelet itself, and MicroK8s' program that holds it.
_KUBELETS = ("kubelet", "kubelite")
# k3s holds its kubelet when it is a server or an agent. RKE2 and k0s start a kubelet of its own.
_K3S = ("k3s", "k3s-server", "k3s-agent")

# With one of these it says something and ends.
_SAYS_AND_ENDS = ("--version", "--help", "-h")
# What Go reads as false.
_FALSE = ("0", "f", "F", "false", "False", "FALSE")

_ROOT = 0
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
    for process in _kubelets(tree):
        try:
            if tree.live and _is_in_container(process.pid):
                continue
            service = _service_of(process.pid) if tree.live else ""
            doubt = _doubt(process, service) if tree.live else ""
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
    return Search(kubelets[0] if kubelets else None, tuple(notes))


def trusted_program(pid: int) -> str:
    """The path of the program of a process of this machine; empty where others may have put it there, or write it.

    Others are all users but root and, unless that is root, who runs this. Raises OSError.
    """
    program = os.readlink("/proc/%d/exe" % pid)
    # Of a file that was replaced meanwhile this is the old one.
    status = os.stat("/proc/%d/exe" % pid)
    others_write = status.st_mode & stat.S_IWOTH or (status.st_mode & stat.S_IWGRP and status.st_gid != _ROOT)
    return "" if others_write or status.st_uid not in _trusted() else program


def trusted_users(pid: int) -> bool:
    """Whether a process of this machine runs as root, or as who runs this, in all regards. Raises OSError."""
    return _users(pid) <= _trusted()


# --- which processes say that they are one ----------------------------------------------------------


def _kubelets(tree: Tree) -> Iterator[Process]:
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


# --- which of them count, on a live node ------------------------------------------------------------


def _doubt(process: Process, service: str) -> str:
    """Why a process of this machine does not count; empty where it does. Raises OSError."""
    if not trusted_users(process.pid):
        users = sorted(_users(process.pid) - _trusted())
        return "it runs as user %s" % " and ".join(_user_name(user) for user in users)
    if _is_in_pod(str(process.pid)) and not _is_in_pod("self"):
        return "it is in a pod"
    if service:
        return ""  # Whoever made the service is root.
    try:
        return _program_doubt(process)
    except PermissionError:
        # Only root with all powers sees the programs of root. Anybody else does no more than what he may do anyway.
        return "its program cannot be seen" if os.geteuid() == _ROOT else ""


def _program_doubt(process: Process) -> str:
    program = trusted_program(process.pid)
    if not program:
        return "its program %r may be written by others than root" % os.readlink("/proc/%d/exe" % process.pid)
    name = os.path.basename(process.arguments[0]).partition("-")[0]
    return "" if name in os.path.basename(program) else "its program is %r" % program


def _trusted() -> frozenset[int]:
    return frozenset((_ROOT, os.geteuid()))


def _users(pid: int) -> frozenset[int]:
    """The real, effective and other users of a process: of a set-user-ID program the first is who called it."""
    return frozenset(int(user) for user in _status(str(pid), "Uid"))


def _user_name(user: int) -> str:
    # Imported here: only for a message.
    from pwd import getpwuid

    try:
        return "%d (%s)" % (user, getpwuid(user).pw_name)
    except KeyError:
        return str(user)


def _is_in_container(pid: int) -> bool:
    """Whether it is the kubelet of a node that is a container of this one, with process ids of its own."""
    # To look at its namespace takes more than root.
    return len(_status(str(pid), "NSpid")) > len(_status("self", "NSpid"))


def _status(process: str, name: str) -> list[str]:
    """The words of a line of a process's status."""
    with open("/proc/%s/status" % process, encoding="utf-8", errors="replace") as file:
        return next((line.split()[1:] for line in file if line.startswith(name + ":")), [])


def _service_of(pid: int) -> str:
    """The known service, as systemd calls its unit, that a process belongs to; empty for none."""
    units = {"%s.service" % service for known in DISTRIBUTIONS for service in known.services}
    for groups in _cgroups(str(pid)):
        for depth, group in enumerate(groups):
            # A user's own manager is a service, and has services below it.
            if group in units and all(above.endswith(".slice") for above in groups[:depth]):
                return group
    return ""


def _is_in_pod(process: str) -> bool:
    return any(group.startswith("kubepods") for groups in _cgroups(process) for group in groups)


def _cgroups(process: str) -> list[list[str]]:
    """The path of each of its cgroups, of v2 and of each hierarchy of v1. Source: cgroups(7)."""
    with open("/proc/%s/cgroup" % process, encoding="utf-8", errors="replace") as file:
        return [line.rstrip("\n").split(":", 2)[-1].strip("/").split("/") for line in file]
