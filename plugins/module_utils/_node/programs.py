# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The programs of this collection that services of a node run as root: how systemd runs them, and who may write
them.
"""

from __future__ import annotations

import os
import posixpath
from contextlib import suppress
from typing import Sequence

from .._base.errors import CPUManagerError, Note
from .._base.journal_file import SERVICES
from .._base.tree import Tree
from .._host.only_root import fault_of

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
