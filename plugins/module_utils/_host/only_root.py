# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What root executes on a node: who may write it, and how systemd runs it; and which boot of the machine this is."""

from __future__ import annotations

import json
import os
import posixpath
from contextlib import suppress
from typing import Iterator, Sequence

from .._base.command import WOULD_EXECUTE, run_command
from .._base.errors import CPUManagerError, Note
from .._base.journal_file import DIRECTORY, PROMISE, SERVICES, UNITS
from .._base.tree import Tree, Writable, fault_of

# Which boot of a machine this is: what the kernel holds does not outlive it.


BOOT_ID = "/proc/sys/kernel/random/boot_id"


def boot_id_of(tree: Tree) -> str:
    """Return the id that the kernel gives each boot; empty where it is not known."""
    return tree.read_value(BOOT_ID) or ""


# Where a Python finds its own modules, called as our services call it.
_MODULES = "import json, sys; print(json.dumps(sys.path))"


def check_only_root(tree: Tree, program: str, interpreter: str, flags: str, beside: Sequence[str] = ()) -> None:
    """Raise RefusedError where others than root may write a directory of `program`, or something of its Python, or a
    directory above what is `beside` it.

    All these need not be there, and may be as they like: they are to be written anew. interpreter: on this machine,
    which says nothing of a saved node. flags: with which it is called.
    """
    faults = [fault_of(tree, program, with_file=False), *(fault_of(tree, posixpath.dirname(path)) for path in beside)]
    fault = next(filter(None, faults), None) or (_fault_of_python(interpreter, flags) if tree.live else None)
    if fault is not None:
        remedy = (
            "look at what is there, give it to root (chown root:root, chmod go-w, setfacl -b), or name a path elsewhere"
        )
        raise fault.refusal(WOULD_EXECUTE, remedy).adding("nothing was written")


def _fault_of_python(interpreter: str, flags: str) -> Writable | None:
    live = Tree("/")
    fault = fault_of(live, interpreter)
    if fault is not None:
        return fault
    places = json.loads(run_command([interpreter, *flags.split(), "-c", _MODULES]))
    found = (fault_of(live, place) for place in places if place)
    return next((fault for fault in found if fault is not None), None)


# How systemd runs what this collection leaves on a node: as root, and without all that a program of it does not need.
#
# What a unit adds to it is beside that unit, with its reason. Its source: systemd.exec(5), systemd.resource-control(5).


# What ProtectHome and PrivateTmp hide from a service.
HIDDEN = ("/home", "/root", "/run/user", "/tmp", "/var/tmp")

# How Python is called: it takes nothing from its surroundings (-I), nor from packages that others installed (-S).
PYTHON_FLAGS = "-I -S"

# A system call that is not allowed fails with an error, and does not kill: crictl, which a pass runs, goes on.
SANDBOX = """\
NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=yes
ProtectKernelModules=yes
ProtectKernelLogs=yes
ProtectClock=yes
ProtectHostname=yes
PrivateTmp=yes
PrivateDevices=yes
PrivateMounts=yes
IPAddressDeny=any
LockPersonality=yes
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources
SystemCallErrorNumber=EPERM
MemoryMax=512M
UMask=0077
"""

# What a service tells systemd: that it has begun, and that it goes on.
READY, ALIVE = "READY=1", "WATCHDOG=1"


def tell_systemd(state: str) -> None:
    """Tell systemd READY or ALIVE, where it has started this program and listens. Source: sd_notify(3).

    Where that fails, systemd starts the service anew, as it does with one that hangs.
    """
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    # Imported here: only a service that always runs is listened to.
    import socket

    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as to:
        # The kernel's own names begin with a NUL.
        to.connect("\0" + address[1:] if address.startswith("@") else address)
        to.send(state.encode("ascii"))


WRITABLE = "program-not-roots"
_EXECUTES = "executes"
# Of a command of a unit, and what may stand before it. Source: systemd.service(5).
_START, _PREFIXES = "ExecStart=", "@-:+!"


def program_notes(tree: Tree) -> list[str]:
    """Return a note on each file or directory that others than root may write, and that root executes or obeys."""
    notes: dict[str, str] = {}
    for path, what in _trusted(tree):
        with suppress(CPUManagerError):
            fault = fault_of(tree, path) if tree.exists(path, follow=False) else None
            if fault is not None:
                notes.setdefault(fault.path, Note(WRITABLE, "%s: %s, and root %s %s" % (*fault, what, path)))
    return list(notes.values())


def _trusted(tree: Tree) -> Iterator[tuple[str, str]]:
    """Yield each path that has to be root's alone, and what root does with it."""
    for unit in (*SERVICES, *UNITS):
        for path in (unit, *_inside(tree, unit + ".d")):
            yield path, _EXECUTES
            yield from ((program, _EXECUTES) for program in _executed(tree, path))
    for path in (DIRECTORY, *_inside(tree, DIRECTORY), PROMISE):
        yield path, "does what is in"


def _inside(tree: Tree, directory: str) -> Sequence[str]:
    try:
        return ["%s/%s" % (directory, name) for name in tree.names(directory)]
    except CPUManagerError:
        return ()


def _executed(tree: Tree, unit: str) -> Sequence[str]:
    """Return the interpreter of a unit, its program, and the file of its settings."""
    try:
        lines = (tree.content(unit) or b"").decode("utf-8", "replace").splitlines()
    except CPUManagerError:
        return ()
    words = [
        word.lstrip(_PREFIXES) for line in lines if line.startswith(_START) for word in line[len(_START) :].split()
    ]
    return [word for word in words if posixpath.isabs(word) and word != "/"]
