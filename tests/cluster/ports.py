# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ports for servers that start later, and again and again."""

from __future__ import annotations

import random
import socket
from contextlib import suppress
from pathlib import Path

LOOPBACK = "127.0.0.1"

_PORTS = range(8192, 65536)
_EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
# One for each port that this process has taken.
_taken: list[socket.socket] = []


def take_ports(count: int) -> list[int]:
    """Take and return ports of the loopback interface that nobody listens on, and that no other test gets while this
    process runs.

    Nor does the kernel give them to a client, which may have any port that it gives to who binds to port 0.
    """
    first, last = map(int, _EPHEMERAL.read_text(encoding="ascii").split())
    # Some systems keep none back.
    ports = [port for port in _PORTS if not first <= port <= last] or list(_PORTS)
    random.shuffle(ports)
    taken: list[int] = []
    while len(taken) < count:
        port = ports.pop()
        if _is_free(port) and _take(port):
            taken.append(port)
    return taken


def _is_free(port: int) -> bool:
    with suppress(OSError), socket.socket() as server:
        server.bind((LOOPBACK, port))
        return True
    return False


def _take(port: int) -> bool:
    # A name that one process of the machine can have, and that goes with it.
    mark = socket.socket(socket.AF_UNIX)
    try:
        mark.bind("\0kubenode.cpu_manager/tests/port/%d" % port)
    except OSError:
        mark.close()
        return False
    _taken.append(mark)
    return True
