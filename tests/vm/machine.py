# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One machine: it boots, goes on where another was saved, is saved itself, and runs commands over ssh."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import time
from pathlib import Path
from typing import Callable

from . import acpi, host, qemu
from .image import Image, keys
from .monitor import Monitor
from .shape import Shape

# The machines of this checkout; each has a directory there while it runs.
MACHINES = Path(__file__).resolve().parent.parent.parent / "build" / "vm"
SSH_CONFIG = MACHINES / "ssh_config"

STATE = "state"

# Seconds; the host may be busy. A machine of 128 CPUs boots in one minute on a quiet one.
PATIENCE = 900
_OFTEN = 0.05

_READY = b"READY"
_INCOMING, _SAVED = "inmigrate", "postmigrate"


class GuestError(Exception):
    """A machine did not do as it should; the message has the last lines of what it said."""


class Machine:
    """A machine in its directory, before and while it runs."""

    def __init__(self, directory: Path, shape: Shape, image: Image, arguments: list[str]) -> None:
        self.directory = directory
        self.shape = shape
        self.image = image
        self.arguments = arguments
        self.process: subprocess.Popen[bytes] | None = None

    def boot(self) -> None:
        """Start it and wait until ssh listens."""
        self._prepare(self.image.root, "raw")
        self.boot_again()

    def boot_again(self) -> None:
        """Boot the machine again, with the disk that it has."""
        console = self.directory / qemu.CONSOLE
        console.unlink(missing_ok=True)
        self._launch([])
        self._wait(lambda: console.exists() and _READY in console.read_bytes())
        self._tell_ssh()

    def restore(self, snapshot: Path) -> None:
        """Let it go on where the saved machine was."""
        self._prepare(snapshot / qemu.DISK, "qcow2")
        self._launch(["-incoming", "exec:cat " + shlex.quote(str(snapshot / STATE))])
        with self._monitor() as monitor:
            self._wait(lambda: monitor.ask("query-status")["status"] != _INCOMING)
            monitor.ask("cont")
        self._tell_ssh()

    def save(self, target: Path) -> None:
        """Write its state and its disk; it does not run any more."""
        with self._monitor() as monitor:
            monitor.ask("stop")
            monitor.ask("migrate-set-parameters", max_bandwidth=1 << 40)
            monitor.ask("migrate", uri="exec:cat > " + shlex.quote(str(target / STATE)))
            self._wait(lambda: monitor.ask("query-status")["status"] == _SAVED)
            done = monitor.ask("query-migrate")
            if done["status"] != "completed":
                raise GuestError("%s cannot be saved: %s" % (self.directory.name, done))
            monitor.ask("quit")
        assert self.process
        self.process.wait(PATIENCE)
        shutil.move(self.directory / qemu.DISK, target / qemu.DISK)

    def introduce(self) -> None:
        """Give it its name and identity, and the time: what it has of these is the snapshot's."""
        name = self.directory.name
        identity = _identity(self.directory)
        script = "date -s @%.3f; hostname %s; echo %s > /etc/hostname; echo %s > /etc/machine-id"
        self.run("{ %s; } > /dev/null" % (script % (time.time(), name, name, identity)))

    def run(self, command: str) -> None:
        """Run a command in it."""
        with open(self.directory / "ssh.log", "ab") as log:
            # The connection stays open for others, and with it what it got: no stream of the caller's.
            done = subprocess.run(
                ssh_arguments(self.directory.name, command),
                check=False,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        if done.returncode:
            raise GuestError("%s: ssh fails: %s" % (self.directory.name, _last_lines(self.directory / "ssh.log")))

    def _prepare(self, disk: Path, disk_format: str) -> None:
        shutil.rmtree(self.directory, ignore_errors=True)
        self.directory.mkdir(parents=True)
        initrd = acpi.initrd_prefix(self.shape) + self.image.initrd.read_bytes()
        (self.directory / qemu.INITRD).write_bytes(initrd)
        create = qemu.overlay_arguments(disk, disk_format, self.directory / qemu.DISK)
        subprocess.run(["qemu-img", *create], check=True)

    def _launch(self, arguments: list[str]) -> None:
        with open(self.directory / "qemu.log", "wb") as log:
            self.process = subprocess.Popen(
                [host.QEMU, *self.arguments, *arguments, *qemu.run_arguments(self.directory.name)],
                cwd=self.directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._note(0)
        self._wait(self._answers)

    def _answers(self) -> bool:
        try:
            self._monitor().__exit__()
        except OSError:
            return False
        return True

    def _monitor(self) -> Monitor:
        return Monitor(self.directory / qemu.MONITOR, PATIENCE)

    def _note(self, port: int) -> None:
        assert self.process
        image = self.image.directory.name.rpartition("-")[0]
        notes = {"shape": self.shape.name, "image": image, "pid": self.process.pid, "port": port}
        host.replace(self.directory / "machine.json", json.dumps(notes) + "\n")

    def _tell_ssh(self) -> None:
        """Write what ssh needs to know the machine by its name."""
        with self._monitor() as monitor:
            network = monitor.ask_human("info usernet")
        found = re.search(r"TCP\[HOST_FORWARD\]\s+\d+\s+127\.0\.0\.1\s+(\d+)\s", network)
        if not found:
            raise GuestError("%s: QEMU forwards no port: %s" % (self.directory.name, network))
        port = int(found[1])
        self._note(port)
        user_key, machine_key = keys()
        # The name under which the one key that all machines show is known.
        alias = "kubenode-test"
        public = machine_key.with_suffix(".pub").read_text(encoding="ascii")
        (self.directory / "known_hosts").write_text("%s %s" % (alias, public), encoding="ascii")
        options = {
            "HostName": "127.0.0.1",
            "Port": port,
            "User": "root",
            "IdentityFile": _quoted(user_key),
            "IdentitiesOnly": "yes",
            "HostKeyAlias": alias,
            "UserKnownHostsFile": _quoted(self.directory / "known_hosts"),
            "ConnectTimeout": 120,
            "LogLevel": "ERROR",
            # One connection for all: each further one would cost an emulated machine a second.
            "ControlMaster": "auto",
            "ControlPath": _quoted(connection(self.directory)),
            "ControlPersist": "10m",
        }
        lines = ["Host " + self.directory.name, *("    %s %s" % item for item in options.items())]
        (self.directory / "ssh_config").write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        host.replace(SSH_CONFIG, "Include %s\n" % _quoted(MACHINES / "*" / "ssh_config"))

    def _wait(self, condition: Callable[[], bool]) -> None:
        def is_over() -> bool:
            if condition():
                return True
            assert self.process
            if self.process.poll() is not None:
                raise GuestError("%s ended: %s" % (self.directory.name, _last_lines(self.directory / "qemu.log")))
            return False

        if not comes_true(is_over, PATIENCE):
            said = _last_lines(self.directory / qemu.CONSOLE)
            raise GuestError("%s is not ready after %d s: %s" % (self.directory.name, PATIENCE, said))


def ssh_arguments(name: str, *command: str) -> list[str]:
    """Return the command line that logs in, or runs a command there."""
    return ["ssh", "-F", str(SSH_CONFIG), name, *command]


def _identity(directory: Path) -> str:
    return hashlib.md5(str(directory).encode(), usedforsecurity=False).hexdigest()


def connection(directory: Path) -> Path:
    """Return the socket of the connection that is kept open. Not in the directory, as a socket's path must be short."""
    return host.CACHE / ("ssh-" + _identity(directory)[:16])


def pid_of(directory: Path) -> int:
    """Return the process of the machine in this directory; 0 if it does not run."""
    try:
        pid = int(json.loads((directory / "machine.json").read_text(encoding="utf-8"))["pid"])
        # Another process may have the number by now.
        return pid if os.readlink("/proc/%d/cwd" % pid) == str(directory) else 0
    except (OSError, ValueError):
        return 0


def comes_true(condition: Callable[[], bool], patience: float) -> bool:
    end = time.monotonic() + patience
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(_OFTEN)
    return True


def _last_lines(path: Path) -> str:
    try:
        return "\n".join(path.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-8:]) or "no word"
    except OSError:
        return "no word"


def _quoted(path: Path) -> str:
    return '"%s"' % path
