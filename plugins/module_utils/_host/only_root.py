# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What root executes on a node: who may write it, and how systemd runs it; and which boot of the machine this is."""

from __future__ import annotations

import json
import os
import posixpath
import stat
from contextlib import suppress
from typing import Iterator, NamedTuple, Sequence

from .._base.command import run_command
from .._base.errors import CPUManagerError, Note, RefusedError
from .._base.journal_file import SERVICES
from .._base.tree import Tree

# Which boot of a machine this is: what the kernel holds does not outlive it.


BOOT_ID = "/proc/sys/kernel/random/boot_id"


def boot_id_of(tree: Tree) -> str:
    """The id that the kernel gives each boot; empty where it is not known."""
    return tree.read_value(BOOT_ID) or ""


# Where a Python finds its own modules, called as our services call it.
_MODULES = "import json, sys; print(json.dumps(sys.path))"
_MOST_LINKS = 40


class Writable(NamedTuple):
    """A directory, link or file, by its path here, and why others than root may put something there."""

    path: str
    why: str


def owner_of_programs() -> tuple[int, int]:
    """To whom a program belongs that is written here: root; on a saved node, which anybody may have, who writes."""
    return (0, 0) if os.geteuid() == 0 else (os.geteuid(), os.getegid())


def check_only_root(tree: Tree, program: str, interpreter: str, flags: str) -> None:
    """Raise RefusedError where others than root may write a directory of `program`, or something of its Python.

    The program itself need not be there, and may be as it likes: it is to be written anew. interpreter: on this
    machine. flags: with which it is called.
    """
    fault = fault_of(tree, program, with_file=False) or _fault_of_python(interpreter, flags)
    if fault is not None:
        remedy = "look at what is there, give it to root (chown root:root, chmod go-w), or name a path elsewhere"
        raise others_write_error(fault, remedy).adding("nothing was written")


def others_write_error(fault: Writable, remedy: str) -> RefusedError:
    """Why root does not execute what others may write."""
    return RefusedError(
        "%s, and root would execute what they put there" % fault.why, fault.path, remedy, kind="others_write"
    )


def _fault_of_python(interpreter: str, flags: str) -> Writable | None:
    live = Tree("/")
    fault = fault_of(live, interpreter)
    if fault is not None:
        return fault
    places = json.loads(run_command([interpreter, *flags.split(), "-c", _MODULES]))
    found = (fault_of(live, place) for place in places if place)
    return next((fault for fault in found if fault is not None), None)


def fault_of(tree: Tree, path: str, with_file: bool = True) -> Writable | None:
    """The first on the way to a path of a node that others may write; None for none, and where nothing is.

    Of a saved node, who has it counts as root does. with_file: whether the file at its end is looked at, too.
    """
    trusted = {0, os.geteuid(), os.stat(tree.root).st_uid}
    groups = {0} if os.geteuid() == 0 else {0, os.getegid()}
    shared = ""
    for here in steps(tree.root, path):
        try:
            status = os.lstat(here)
        except OSError:
            # Where everybody may make a file of this name, somebody will.
            return Writable(shared, "everybody may make files there") if shared else None
        mode, is_link = status.st_mode, stat.S_ISLNK(status.st_mode)
        if not with_file and not is_link and not stat.S_ISDIR(mode):
            return None
        if status.st_uid not in trusted:
            return Writable(here, "it belongs to user %d" % status.st_uid)
        is_written = mode & stat.S_IWOTH or (mode & stat.S_IWGRP and status.st_gid not in groups)
        # In such a directory, nobody puts away what belongs to root.
        is_shared = stat.S_ISDIR(mode) and bool(mode & stat.S_ISVTX)
        if is_written and not is_link and not is_shared:
            return Writable(here, "others may write it (mode %04o, group %d)" % (stat.S_IMODE(mode), status.st_gid))
        if not is_link:
            shared = here if is_written else ""
    return None


def steps(root: str, path: str) -> Iterator[str]:
    """Every directory and link on the way from a root to a path, and what is at its end."""
    yield root
    here, links = root, 0
    left = path.split("/")[::-1]
    while left:
        name = left.pop()
        if name in ("", "."):
            continue
        if name == "..":
            here = root if here == root else os.path.dirname(here)
            continue
        here = os.path.join(here, name)
        yield here
        if os.path.islink(here) and links < _MOST_LINKS:
            links += 1
            target = os.readlink(here)
            here = root if os.path.isabs(target) else os.path.dirname(here)
            left += target.split("/")[::-1]


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
_START = "ExecStart="


def program_notes(tree: Tree) -> list[str]:
    """A note on each path that a service of ours executes, or reads before, and that others than root may write."""
    notes = {}
    for unit in SERVICES:
        for path in [unit, *_executed(tree, unit)]:
            try:
                fault = fault_of(tree, path)
            except CPUManagerError:
                continue
            if fault is not None:
                notes[path] = Note(WRITABLE, "%s: %s, and root executes %s" % (fault.path, fault.why, path))
    return list(notes.values())


def _executed(tree: Tree, unit: str) -> Sequence[str]:
    """The interpreter of a unit and its program."""
    try:
        lines = (tree.content(unit) or b"").decode("utf-8", "replace").splitlines()
    except CPUManagerError:
        return ()
    words = [word for line in lines if line.startswith(_START) for word in line[len(_START) :].split()]
    return [word for word in words if posixpath.isabs(word) and word != "/"]
