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
        arguments = tuple(line.split("\0"))
        name = os.path.basename(arguments[0])
        if name in _KUBELETS or (name in _K3S and _is_k3s_with_kubelet(arguments)):
            return Process(pid, arguments)
    return None


def _is_k3s_with_kubelet(arguments: tuple[str, ...]) -> bool:
    if "--disable-agent" in arguments:
        return False
    return "-" in os.path.basename(arguments[0]) or arguments[1:2] in (("server",), ("agent",))
