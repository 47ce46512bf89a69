# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Running machines: start, restore, name, plug and end them, and keep snapshots of those that have booted."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError

from . import acpi, host, qemu
from .image import Image, locked, make
from .machine import MACHINES, PATIENCE, GuestError, Machine, comes_true, connection, pid_of, ssh_arguments
from .monitor import Monitor
from .shape import Shape, find_shape

SNAPSHOTS = host.CACHE / "snapshots"
# Of a machine that becomes one, before its maker's process id; and of what it becomes.
_MAKING = "snapshot-"
_UNFINISHED = ".new-"

_NAME = re.compile("[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


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
    guest = Machine(MACHINES / name, shape, image, arguments)
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
    if not pid_of(directory):
        raise InputError("%s does not run" % name)
    notes = json.loads((directory / "machine.json").read_text(encoding="utf-8"))
    shown = subprocess.run(ssh_arguments(name, "cat", configuration), check=False, capture_output=True, text=True)
    line = re.search(r"^\s*linux\s+\S+(.*)$", shown.stdout, re.MULTILINE)
    if line is None:
        raise GuestError("%s: %s starts no kernel: %s" % (name, configuration, shown.stderr))
    more = shlex.split(line[1])
    image, shape = make(notes["image"]), find_shape(notes["shape"])
    arguments = qemu.machine_arguments(shape, image, host.has_kvm(image.kernel, image.initrd), host.tsc_khz(), more)
    guest = Machine(directory, shape, image, arguments)
    # QEMU ends at a reboot. The connection ends before the command does.
    subprocess.run(ssh_arguments(name, "systemctl", "reboot"), check=False, capture_output=True)
    if not comes_true(lambda: not pid_of(directory), PATIENCE):
        raise GuestError("%s does not end" % name)
    subprocess.run(ssh_arguments("-O", "exit", name), check=False, capture_output=True)
    guest.boot_again()
    return more


def stop(name: str) -> None:
    """End a machine, if it runs, and remove its files."""
    directory = MACHINES / name
    pid = pid_of(directory)
    if pid:
        for signal_number, patience in ((signal.SIGTERM, 10), (signal.SIGKILL, 60)):
            with suppress(ProcessLookupError):
                os.kill(pid, signal_number)
            if comes_true(lambda: not pid_of(directory), patience):
                break
        else:
            raise GuestError("%s: process %d does not end" % (name, pid))
    for path in (directory, _unfinished(name)):
        shutil.rmtree(path, ignore_errors=True)
    connection(directory).unlink(missing_ok=True)


def running() -> list[Running]:
    """Return the machines of this checkout."""
    machines = []
    for directory in sorted(MACHINES.glob("*/")):
        pid = pid_of(directory)
        with suppress(OSError):
            notes = json.loads((directory / "machine.json").read_text(encoding="utf-8"))
            if pid:
                machines.append(Running(directory.name, notes["shape"], pid, notes["port"]))
    return machines


def left_behind() -> list[str]:
    """Return the names of all machines that have a directory, also of those that ended by themselves."""
    return sorted(directory.name for directory in MACHINES.glob("*/"))


def abandoned() -> list[str]:
    """Return the names of machines that were to become snapshots, and whose makers have ended before."""
    names = {*left_behind(), *(path.name[len(_UNFINISHED) :] for path in SNAPSHOTS.glob(_UNFINISHED + "*"))}
    return [name for name in sorted(names) if name.startswith(_MAKING) and not _lives(name[len(_MAKING) :])]


def plug(name: str) -> int:
    """Plug all CPUs that were left for later; give their count. The kernel leaves them offline."""
    with Monitor(MACHINES / name / qemu.MONITOR) as monitor:
        sockets = [slot for slot in monitor.ask("query-hotpluggable-cpus") if "qom-path" not in slot]
        for number, slot in enumerate(reversed(sockets)):
            monitor.ask("device_add", driver=slot["type"], id="plugged%d" % number, **slot["props"])
    return len(sockets)


# --- snapshots ----------------------------------------------------------------------------------------


def _snapshot(shape: Shape, image: Image, arguments: list[str]) -> tuple[str, Path]:
    """Return a booted machine that was saved, made if it is not there; and what that makes of one that starts from
    it."""
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
    guest = Machine(MACHINES / name, shape, image, arguments)
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
    """Return the snapshot that is made of the machine of this name."""
    return SNAPSHOTS / (_UNFINISHED + name)


# --- processes ------------------------------------------------------------------------------------------


def _lives(pid: str) -> bool:
    """Return whether a process runs: one that has ended, and that nobody has asked for its status, has no command
    line."""
    try:
        return bool(Path("/proc", pid, "cmdline").read_bytes())
    except OSError:
        return False
