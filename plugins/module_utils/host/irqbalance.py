# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""On which CPUs irqbalance, which moves interrupts every few seconds, puts none.

Source: irqbalance(1) and setup_banned_cpus() in its cputree.c: IRQBALANCE_BANNED_CPUS, a mask, wins over
IRQBALANCE_BANNED_CPULIST. Older versions do not have the list, and the mask is on its way out. Without either, the CPUs
are banned that the kernel was booted to isolate.
"""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

from ..cpuset import CPUSet
from ..errors import InputError, NodeError, RefusedError
from ..tree import Tree
from .environment import value_of, with_value
from .layers import LIST, MASK
from .reading import parsed
from .units import unit_settings

SERVICE = "irqbalance.service"
BANNED_LIST, BANNED_MASK = "IRQBALANCE_BANNED_CPULIST", "IRQBALANCE_BANNED_CPUS"
# A list that bans none, as others write it, too: an empty one is as none in most versions.
_NO_CPUS = "-"
PROGRAMS = ("/usr/sbin/irqbalance", "/sbin/irqbalance", "/usr/bin/irqbalance")
# Of Red Hat and SUSE, and of Debian.
_FILES = ("/etc/sysconfig/irqbalance", "/etc/default/irqbalance")
# What is there while it runs: the cgroup of its service, in each version of cgroups, or its socket.
MARKS = (
    *("/sys/fs/cgroup%s/system.slice/%s" % (place, SERVICE) for place in ("", "/systemd", "/unified")),
    "/run/irqbalance",
    "/run/irqbalance.pid",
)


class Irqbalance(NamedTuple):
    """What is known of it. file: that of its variables, which need not be there. key: the variable that counts, or is
    to be set. banned: its CPUs; None where there are none, or where `problem` says why they cannot be read.
    """

    file: str
    key: str
    banned: CPUSet | None
    is_installed: bool
    is_running: bool
    problem: str = ""


def read_irqbalance(tree: Tree) -> Irqbalance | None:
    """What irqbalance is configured to; None where there is neither the program nor its file."""
    program = next((path for path in PROGRAMS if _is_there(tree, path)), None)
    files = variable_files(tree)
    if program is None and not any(_is_there(tree, path) for path in files):
        return None
    names = _variables_of(tree, program)
    key, file, text = names[0], files[-1], ""
    for path in files:
        for name in names:
            value = value_of(_text(tree, path), name)
            # One that is empty is as one that is not there. The mask wins, also over a list in a later file.
            if value and not (text and name == BANNED_LIST and key == BANNED_MASK):
                key, file, text = name, path, value
    is_running = program is not None and any(_is_there(tree, path) for path in MARKS)
    try:
        banned = parsed("" if text == _NO_CPUS else text, _form(key)) if text else None
    except InputError as error:
        return Irqbalance(file, key, None, program is not None, is_running, str(error))
    return Irqbalance(file, key, banned, program is not None, is_running)


def banned_text(content: bytes, banned: CPUSet, key: str) -> bytes:
    """The file of its variables with these CPUs banned, all else as it is. Raises RefusedError for one that is broken.

    key: BANNED_LIST or BANNED_MASK.
    """
    value = str(banned) or _NO_CPUS if _form(key) == LIST else banned.to_mask()
    # Each byte is one sign, so all others stay what they are.
    return with_value(content.decode("latin-1"), key, value).encode("latin-1")


def _form(key: str) -> str:
    return MASK if key == BANNED_MASK else LIST


def _variables_of(tree: Tree, program: str | None) -> tuple[str, ...]:
    """The variables that the program reads, the one to set first; both where that is not known."""
    content = b""
    if program is not None:
        with suppress(NodeError, RefusedError):
            content = tree.read_bytes(program)
    both = (BANNED_LIST, BANNED_MASK)
    return tuple(name for name in both if name.encode("ascii") in content) or both


def variable_files(tree: Tree) -> list[str]:
    """Where its service has variables from, the last one counts; where no unit says so, the usual place."""
    named = [value.lstrip("-") for _path, value in unit_settings(tree, SERVICE, "EnvironmentFile")]
    found = [path for path in named if path.startswith("/") and "%" not in path]
    usual = [path for path in _FILES if _is_there(tree, path)] or [_FILES[-1]]
    return found or usual[:1]


def _text(tree: Tree, path: str) -> str:
    try:
        return (tree.content(path) or b"").decode("latin-1")
    except (NodeError, RefusedError):
        return ""


def _is_there(tree: Tree, path: str) -> bool:
    try:
        return tree.exists(path)
    except (NodeError, RefusedError):
        return False
