# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""On which CPUs irqbalance, which moves interrupts every few seconds, puts none.

Source: irqbalance(1) and setup_banned_cpus() in its cputree.c: IRQBALANCE_BANNED_CPUS, a mask, wins over
IRQBALANCE_BANNED_CPULIST. Older versions do not have the list, and the mask is on its way out. Without either, the CPUs
are banned that the kernel was booted to isolate. Both are variables of its environment, from wherever it has them: its
unit, the files that this names, or a command line that sets them itself.
"""

from __future__ import annotations

import posixpath
from contextlib import suppress
from typing import Mapping, NamedTuple

from ..cpuset import CPUSet
from ..errors import InputError, NodeError, RefusedError
from ..tree import Tree
from .environment import split_words
from .environment_change import with_value
from .layers import LIST, MASK
from .reading import parsed
from .service import Service, Variable, read_service, variables_in

NAME = "irqbalance"
SERVICE = NAME + ".service"
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
    """What is known of it. file: that of its variables which is to be written, and need not be there; empty where what
    is written to files does not count. source: what gives the variable that counts; where none does, the file.
    key: the variable that counts, or is to be set. banned: its CPUs; None where there are none, or where `problem` says
    why they cannot be read.
    """

    file: str
    source: str
    key: str
    banned: CPUSet | None
    is_installed: bool
    is_running: bool
    problem: str = ""

    def by_hand(self, cpus: CPUSet) -> str:
        """What to do about it where no file of variables counts."""
        value = cpus if _form(self.key) == LIST else cpus.to_mask()
        return "set %s=%s in %s, which no file of variables overrides" % (self.key, value, self.source or SERVICE)


def read_irqbalance(tree: Tree) -> Irqbalance | None:
    """What irqbalance is configured to; None where there is neither the program nor its file."""
    program = next((path for path in PROGRAMS if _is_there(tree, path)), None)
    service = irqbalance_service(tree)
    if program is None and not any(_is_there(tree, path) for path in service.files):
        return None
    names = _variables_of(tree, program)
    own = variables_of_command(service)
    # One that is empty is as one that is not there. The mask wins, wherever the list is.
    given = {name: variable for name, variable in {**service.variables, **own}.items() if variable.value}
    key = next((name for name in (BANNED_MASK, BANNED_LIST) if name in names and name in given), names[0])
    text, source = given.get(key, Variable("", ""))
    files = service.files
    file = source if source in files else files[-1] if files and key not in own else ""
    is_running = program is not None and any(_is_there(tree, path) for path in MARKS)
    banned, problem = None, ""
    try:
        banned = parsed("" if text == _NO_CPUS else text, _form(key)) if text else None
    except InputError as error:
        problem = str(error)
    return Irqbalance(file, source or file, key, banned, program is not None, is_running, problem)


def irqbalance_service(tree: Tree) -> Service:
    """What systemd gives it; where no unit says that, what is in the usual place."""
    service = read_service(tree, NAME)
    if any(service):
        return service
    usual = next((path for path in _FILES if _is_there(tree, path)), _FILES[-1])
    return Service([], variables_in(tree, usual), [usual])


def variables_of_command(service: Service) -> Mapping[str, Variable]:
    """The variables that stand before the program in its command line, as of env or of a shell's -c."""
    found: dict[str, Variable] = {}
    for word in (word for argument in service.command for word in split_words(argument)):
        if posixpath.basename(word) == NAME:
            break
        name, equals, value = word.partition("=")
        if equals and name in (BANNED_LIST, BANNED_MASK):
            found[name] = Variable(value.rstrip(";"), "ExecStart= of " + SERVICE)
    return found


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


def _is_there(tree: Tree, path: str) -> bool:
    try:
        return tree.exists(path)
    except (NodeError, RefusedError):
        return False
