# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""QEMU's monitor: QMP over a unix socket."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import Any


class MonitorError(Exception):
    """QEMU refuses a command, or does not answer."""


class Monitor:
    """A connection to a machine's monitor; use it in `with`."""

    def __init__(self, path: Path, timeout: float = 60) -> None:
        """Raise OSError if nobody listens there."""
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(timeout)
        try:
            _connect(self._socket, path)
            self._lines = self._socket.makefile("rb")
            self._lines.readline()  # the greeting
            self.ask("qmp_capabilities")
        except BaseException:
            self._socket.close()
            raise

    def __enter__(self) -> Monitor:
        return self

    def __exit__(self, *_error: object) -> None:
        self._lines.close()
        self._socket.close()

    def ask(self, command: str, **arguments: Any) -> Any:
        """Return QEMU's answer to a command."""
        message = {"execute": command, "arguments": {name.replace("_", "-"): arguments[name] for name in arguments}}
        self._socket.sendall(json.dumps(message).encode() + b"\n")
        for line in self._lines:
            answer = json.loads(line)
            if "error" in answer:
                raise MonitorError("%s: %s" % (command, answer["error"]["desc"]))
            if "return" in answer:
                return answer["return"]
        raise MonitorError("%s: the machine ended" % command)

    def ask_human(self, line: str) -> str:
        """Return the answer to a command of the monitor for people, for what QMP does not tell."""
        answer: str = self.ask("human-monitor-command", command_line=line)
        return answer


def _connect(client: socket.socket, path: Path) -> None:
    """Connect to a socket through its directory: its path may have 107 letters, and a checkout may be deeper down."""
    directory = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        client.connect("/proc/self/fd/%d/%s" % (directory, path.name))
    finally:
        os.close(directory)
