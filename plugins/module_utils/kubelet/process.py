# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The kubelet that runs on a node, or the program that holds one."""

from __future__ import annotations

import os
from typing import NamedTuple

from ..errors import NodeError
from ..tree import Tree

# The kubelet itself, and MicroK8s' program that holds it.
_KUBELETS = ("kubelet", "kubelite")
# k3s holds its kubelet when it is a server or an agent. RKE2 and k0s start a kubelet of its own.
_K3S = ("k3s", "k3s-server", "k3s-agent")


class Process(NamedTuple):
    """A running kubelet: its process id and its command line."""

    pid: int
    arguments: tuple[str, ...]


def find_kubelet(tree: Tree) -> Process | None:
    """The kubelet that runs on this node; None where none does, as in a saved machine."""
    for pid in tree.numbered("/proc", ""):
        try:
            line = tree.read_value("/proc/%d/cmdline" % pid)
        except NodeError:
            continue  # it ended meanwhile
        if line is None or not ("kubel" in line or "k3s" in line):
            continue
        arguments = _arguments_of(line)
        name = os.path.basename(arguments[0])
        is_kubelet = name in _KUBELETS or (name in _K3S and _is_k3s_with_kubelet(arguments))
        if is_kubelet and not (tree.live and _is_in_container(pid)):
            return Process(pid, arguments)
    return None


def _arguments_of(line: str) -> tuple[str, ...]:
    # What k3s was started with may be secret: it writes "k3s server" over it, as one word.
    if "\0" not in line and os.path.basename(line).startswith("k3s "):
        return tuple(line.split())
    return tuple(line.split("\0"))


def _is_in_container(pid: int) -> bool:
    """Whether it is the kubelet of a node that is a container of this one, with process ids of its own."""
    return _pid_namespaces(str(pid)) > _pid_namespaces("self")


def _pid_namespaces(process: str) -> int:
    """In how many of them, one in the other, a process has an id. To look at its namespace takes more than root."""
    try:
        with open("/proc/%s/status" % process, encoding="utf-8", errors="replace") as file:
            return next((len(line.split()) - 1 for line in file if line.startswith("NSpid:")), 1)
    except OSError:
        return 1


def _is_k3s_with_kubelet(arguments: tuple[str, ...]) -> bool:
    if "--disable-agent" in arguments:
        return False
    return "-" in os.path.basename(arguments[0]) or arguments[1:2] in (("server",), ("agent",))
