# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An ssh server on the loopback, with keys of its own, so that hosts are reached as nodes are."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Iterator

_PROGRAM = shutil.which("sshd", path=os.defpath + ":/usr/sbin:/usr/local/sbin")
_LOOPBACK = "127.0.0.1"
_SEPARATION = Path("/run/sshd")
_SECONDS = 10.0


def has_ssh_server() -> bool:
    """Return whether this machine has the programs."""
    return bool(_PROGRAM and shutil.which("ssh"))


@contextmanager
def ssh_server(directory: Path) -> Iterator[dict[str, Any]]:
    """Yield the inventory's variables of a host that is reached through it, as the present user."""
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", directory / name], check=True)
    port = _free_port()
    options = {
        "Port": port,
        "ListenAddress": _LOOPBACK,
        "HostKey": directory / "host",
        "AuthorizedKeysFile": directory / "user.pub",
        "PidFile": "none",
        "StrictModes": "no",
        "UsePAM": "no",
        "PermitRootLogin": "yes",
        "MaxStartups": 1000,
        "Subsystem": "sftp internal-sftp",
    }
    (directory / "sshd_config").write_text("".join("%s %s\n" % option for option in options.items()), encoding="utf-8")
    ssh_options = ("StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "IdentityAgent=none")
    if os.geteuid() == 0:
        _SEPARATION.mkdir(mode=0o755, exist_ok=True)
    server = subprocess.Popen(
        [str(_PROGRAM), "-D", "-f", directory / "sshd_config", "-E", directory / "log"], stdin=subprocess.DEVNULL
    )
    try:
        _wait_for(port, directory / "log")
        yield {
            "ansible_connection": "ssh",
            "ansible_host": _LOOPBACK,
            "ansible_port": port,
            "ansible_ssh_private_key_file": str(directory / "user"),
            "ansible_ssh_common_args": " ".join("-o " + option for option in ssh_options),
        }
    finally:
        server.terminate()
        server.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_for(port: int, log: Path) -> None:
    end = time.monotonic() + _SECONDS
    while True:
        try:
            with socket.create_connection((_LOOPBACK, port), timeout=1):
                return
        except OSError as error:
            if time.monotonic() > end:
                told = log.read_text(encoding="utf-8") if log.exists() else ""
                raise AssertionError("no ssh server at %d: %s %s" % (port, error, told)) from error
            time.sleep(0.05)
