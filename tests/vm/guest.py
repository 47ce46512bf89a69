# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Running machines: start, restore, name, plug and end them."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Callable, NamedTuple

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.errors import InputError

from . import acpi, host, qemu
from .image import Image, keys, locked, make
from .monitor import Monitor
from .shape import Shape, find_shape

# The machines of this checkout; each has a directory there while it runs.
MACHINES = Path(__file__).resolve().parent.parent.parent / "build" / "vm"
SSH_CONFIG = MACHINES / "ssh_config"

SNAPSHOTS = host.CACHE / "snapshots"
STATE = "state"
# Of a machine that becomes one, before its maker's process id; and of what it becomes.
_MAKING = "snapshot-"
_UNFINISHED = ".new-"

# Seconds; the host may be busy. A machine of 128 CPUs boots in one minute on a quiet one.
_PATIENCE = 900
_OFTEN = 0.05

_NAME = re.compile("[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_READY = b"READY"
_RUNNING, _INCOMING, _SAVED = "running", "inmigrate", "postmigrate"


class GuestError(Exception):
    """A machine did not do as it should; the message has the last lines of what it said."""


class Running(NamedTuple):
    """A machine that runs."""

    name: str
    shape: str
    pid: int
    port: int


def start(name: str, shape: Shape, image_name: str = "base", from_snapshot: bool = True) -> str:
    """Start a machine, wait for ssh and say how it was started. Raises InputError if one of this name runs, GuestError
    if it fails.

    from_snapshot: restore a saved machine, which is made first if there is none. With KVM, none is needed.
    """
    if not _NAME.fullmatch(name):
        raise InputError("%s: a machine's name is a host's name: small letters, digits and dashes" % name)
    if name in {machine.name for machine in running()}:
        raise InputError("%s is running: python tests/vm down %s" % (name, name))
    host.prepare()
    image = make(image_name)
    with_kvm = host.has_kvm(image.kernel, image.initrd)
    arguments = qemu.machine_arguments(shape, image, with_kvm, host.tsc_khz())
    how, snapshot = "booted", None
    if from_snapshot and not with_kvm:
        how, snapshot = _snapshot(shape, image, arguments)
    guest = _Guest(MACHINES / name, shape, image, arguments)
    try:
        if snapshot:
            guest.restore(snapshot)
        else:
            guest.boot()
        guest.introduce()
    except BaseException:
        stop(name)
        raise
    return how


def reboot(name: str, configuration: str) -> list[str]:
    """Boot a machine again as GRUB would, with what that gives the first kernel of this file; give these arguments.

    Raises GuestError where the file has no kernel, or the machine fails. Its disk stays what it is.
    """
    directory = MACHINES / name
    if not _pid(directory):
        raise InputError("%s does not run" % name)
    notes = json.loads((directory / "machine.json").read_text(encoding="utf-8"))
    shown = subprocess.run(ssh_arguments(name, "cat", configuration), check=False, capture_output=True, text=True)
    line = re.search(r"^\s*linux\s+\S+(.*)$", shown.stdout, re.MULTILINE)
    if line is None:
        raise GuestError("%s: %s starts no kernel: %s" % (name, configuration, shown.stderr))
    more = shlex.split(line[1])
    image, shape = make(notes["image"]), find_shape(notes["shape"])
    arguments = qemu.machine_arguments(shape, image, host.has_kvm(image.kernel, image.initrd), host.tsc_khz(), more)
    guest = _Guest(directory, shape, image, arguments)
    # QEMU ends at a reboot. The connection ends before the command does.
    subprocess.run(ssh_arguments(name, "systemctl", "reboot"), check=False, capture_output=True)
    if not _comes_true(lambda: not _pid(directory), _PATIENCE):
        raise GuestError("%s does not end" % name)
    subprocess.run(ssh_arguments("-O", "exit", name), check=False, capture_output=True)
    guest.boot_again()
    return more


def stop(name: str) -> None:
    """End a machine, if it runs, and remove its files."""
    directory = MACHINES / name
    pid = _pid(directory)
    if pid:
        for signal_number, patience in ((signal.SIGTERM, 10), (signal.SIGKILL, 60)):
            with suppress(ProcessLookupError):
                os.kill(pid, signal_number)
            if _comes_true(lambda: not _pid(directory), patience):
                break
        else:
            raise GuestError("%s: process %d does not end" % (name, pid))
    for path in (directory, _unfinished(name)):
        shutil.rmtree(path, ignore_errors=True)
    _connection(directory).unlink(missing_ok=True)


def running() -> list[Running]:
    """The machines of this checkout."""
    machines = []
    for directory in sorted(MACHINES.glob("*/")):
        pid = _pid(directory)
        with suppress(OSError):
            notes = json.loads((directory / "machine.json").read_text(encoding="utf-8"))
            if pid:
                machines.append(Running(directory.name, notes["shape"], pid, notes["port"]))
    return machines


def left_behind() -> list[str]:
    """The names of all machines that have a directory, also of those that ended by themselves."""
    return sorted(directory.name for directory in MACHINES.glob("*/"))


def abandoned() -> list[str]:
    """The names of machines that were to become snapshots, and whose makers have ended before."""
    names = {*left_behind(), *(path.name[len(_UNFINISHED) :] for path in SNAPSHOTS.glob(_UNFINISHED + "*"))}
    return [name for name in sorted(names) if name.startswith(_MAKING) and not _lives(name[len(_MAKING) :])]


def plug(name: str) -> int:
    """Plug all CPUs that were left for later; give their count. The kernel leaves them offline."""
    with Monitor(MACHINES / name / qemu.MONITOR) as monitor:
        sockets = [slot for slot in monitor.ask("query-hotpluggable-cpus") if "qom-path" not in slot]
        for number, slot in enumerate(reversed(sockets)):
            monitor.ask("device_add", driver=slot["type"], id="plugged%d" % number, **slot["props"])
    return len(sockets)


def ssh_arguments(name: str, *command: str) -> list[str]:
    """The command line that logs in, or runs a command there."""
    return ["ssh", "-F", str(SSH_CONFIG), name, *command]


# --- one machine --------------------------------------------------------------------------------------


class _Guest:
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
        """The same with the disk that it has."""
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
        self.process.wait(_PATIENCE)
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
        return Monitor(self.directory / qemu.MONITOR, _PATIENCE)

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
            "ControlPath": _quoted(_connection(self.directory)),
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

        if not _comes_true(is_over, _PATIENCE):
            said = _last_lines(self.directory / qemu.CONSOLE)
            raise GuestError("%s is not ready after %d s: %s" % (self.directory.name, _PATIENCE, said))


# --- snapshots ----------------------------------------------------------------------------------------


def _snapshot(shape: Shape, image: Image, arguments: list[str]) -> tuple[str, Path]:
    """A booted machine that was saved, made if it is not there; and what that makes of one that starts from it."""
    content = json.dumps([arguments, acpi.initrd_prefix(shape).hex(), image.digest, host.qemu_version()])
    kind = "%s-%s" % (shape.name, image.directory.name.rpartition("-")[0])
    snapshot = SNAPSHOTS / ("%s-%s" % (kind, hashlib.sha256(content.encode()).hexdigest()[:16]))
    with locked(snapshot.name):
        if snapshot.exists():
            return "restored", snapshot
        for old in SNAPSHOTS.glob(kind + "-" + "?" * 16):
            shutil.rmtree(old, ignore_errors=True)
        _take(snapshot, shape, image, arguments)
        return "saved and restored", snapshot


def _take(snapshot: Path, shape: Shape, image: Image, arguments: list[str]) -> None:
    for name in abandoned():
        stop(name)
    name = "%s%d" % (_MAKING, os.getpid())
    guest = _Guest(MACHINES / name, shape, image, arguments)
    temporary = _unfinished(name)
    temporary.mkdir(parents=True)
    try:
        guest.boot()
        # What Ansible's first task would read from the disk is then in memory.
        guest.run("python3 -c 'import json, platform, shutil, subprocess, tempfile, zipfile'; sync")
        guest.save(temporary)
        temporary.rename(snapshot)
    finally:
        stop(name)


def _unfinished(name: str) -> Path:
    """The snapshot that is made of the machine of this name."""
    return SNAPSHOTS / (_UNFINISHED + name)


# --- helpers ------------------------------------------------------------------------------------------


def _lives(pid: str) -> bool:
    """Whether a process runs: one that has ended, and that nobody has asked for its status, has no command line."""
    try:
        return bool(Path("/proc", pid, "cmdline").read_bytes())
    except OSError:
        return False


def _identity(directory: Path) -> str:
    return hashlib.md5(str(directory).encode(), usedforsecurity=False).hexdigest()


def _connection(directory: Path) -> Path:
    """The socket of the connection that is kept open. Not in the directory, as a socket's path must be short."""
    return host.CACHE / ("ssh-" + _identity(directory)[:16])


def _pid(directory: Path) -> int:
    """The process of the machine in this directory; 0 if it does not run."""
    try:
        pid = int(json.loads((directory / "machine.json").read_text(encoding="utf-8"))["pid"])
        # Another process may have the number by now.
        return pid if os.readlink("/proc/%d/cwd" % pid) == str(directory) else 0
    except (OSError, ValueError):
        return 0


def _comes_true(condition: Callable[[], bool], patience: float) -> bool:
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
