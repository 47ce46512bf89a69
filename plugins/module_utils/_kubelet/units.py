# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which service of systemd starts a kubelet, and with which words, whether that runs or not.

Source: systemd.service(5).
"""

from __future__ import annotations

import posixpath
import re
from typing import NamedTuple, Sequence

from .._base.tree import Tree
from .._host.services import split_words, unit_command
from .._host.systemd import services_with

KUBELET = "kubelet"
# Programs that start the program that their own words name, the last three those of OpenShift.
_STARTERS = frozenset(("chrt", "env", "ionice", "nice", "numactl", "prlimit", "setpriv", "stdbuf", "taskset")) | {
    "hyperkube",
    "kubensenter",
    "kubenswrapper",
}
_SHELLS = frozenset(("ash", "bash", "dash", "sh"))
# What a shell makes something else of.
_OF_SHELL = re.compile(r"[;&|<>()`$*?\[\]{}~#\\\n]")
# What is between the words of a script.
_BETWEEN_WORDS = re.compile(r"[\s;&|()\"']")


class KubeletUnit(NamedTuple):
    """A service that starts a kubelet.

    words: the kubelet's command line; empty where it cannot be read, and then `starter` says what starts it.
    """

    service: str
    words: tuple[str, ...]
    starter: str = ""


def find_unit(tree: Tree) -> KubeletUnit | None:
    """Return the service that starts a kubelet, one of the kubelet's own name first; None for none.

    Templates do not count, nor services that start a container, unless they have the kubelet's own name.
    """
    unread = None
    for service in sorted(services_with(tree, KUBELET), key=lambda name: (name != KUBELET, name)):
        command = unit_command(tree, service)
        words = kubelet_words(command)
        if words:
            return KubeletUnit(service, tuple(words))
        if unread is None and _starts_in_shell(command):
            unread = KubeletUnit(service, (), "a shell")
        elif unread is None and service == KUBELET and command:
            unread = KubeletUnit(service, (), "another program (%s)" % posixpath.basename(command[0]))
    return unread


def kubelet_words(command: Sequence[str]) -> list[str]:
    """Return the command line of the kubelet that a command starts; empty where that is none, or cannot be read."""
    if not command:
        return []
    name = posixpath.basename(command[0])
    if name == KUBELET:
        return list(command)
    if name in _STARTERS:
        return next((list(command[at:]) for at, word in enumerate(command) if posixpath.basename(word) == KUBELET), [])
    script = _script(command)
    if not script or _OF_SHELL.search(script):
        return []
    words = split_words(script)
    return kubelet_words(words[1:] if words[:1] == ["exec"] else words)


def _starts_in_shell(command: Sequence[str]) -> bool:
    return any(posixpath.basename(word) == KUBELET for word in _BETWEEN_WORDS.split(_script(command)))


def _script(command: Sequence[str]) -> str:
    """Return what a shell is given to run; empty where the command is no shell, or runs a file."""
    if not command or posixpath.basename(command[0]) not in _SHELLS:
        return ""
    flags = [at for at, word in enumerate(command) if re.fullmatch("-[a-z]*c", word)]
    return command[flags[0] + 1] if flags and flags[0] + 1 < len(command) else ""
