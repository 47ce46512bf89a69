# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How systemd runs what this collection leaves on a node: as root, and without all that a program of it does not need.

What a unit adds to it is beside that unit, with its reason. Source: systemd.exec(5), systemd.resource-control(5).
"""

from __future__ import annotations

import os
from contextlib import suppress

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
