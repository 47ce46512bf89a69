# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What this host can do for machines: the programs that must be there, and how QEMU may run them."""

from __future__ import annotations

import functools
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kubenode-cpu-manager"

QEMU = "qemu-system-x86_64"

# {program: the Debian package that brings it}
PROGRAMS = {
    QEMU: "qemu-system-x86",
    "qemu-img": "qemu-utils",
    "mmdebstrap": "mmdebstrap",
    "mkfs.ext4": "e2fsprogs",
    "lz4": "lz4",
    "zstd": "zstd",
    "ssh": "openssh-client",
}


class NoMachinesError(Exception):
    """This host can have no machines; the message says what is missing and what to do."""


def prepare() -> None:
    """Install what is missing. Raises NoMachinesError where that cannot be."""
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        raise NoMachinesError("machines are emulated on Linux on x86-64 alone, and this is %s" % platform.platform())
    packages = missing_packages()
    if not packages:
        return
    remedy = "apt-get install --no-install-recommends " + " ".join(packages)
    if os.geteuid():
        raise NoMachinesError("machines need Debian packages, and only root can install them: " + remedy)
    if shutil.which("apt-get") is None:
        raise NoMachinesError("machines need the Debian packages %s, and there is no apt-get" % ", ".join(packages))
    print("Installing %s ..." % ", ".join(packages), file=sys.stderr)
    for arguments in (["update"], ["install", "--yes", "--no-install-recommends", *packages]):
        _apt_get(arguments, remedy)
    still = missing_packages()
    if still:
        raise NoMachinesError("%s did not bring %s" % (remedy, ", ".join(still)))


def missing_packages() -> list[str]:
    """Return the Debian packages whose programs are not there."""
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    return [package for program, package in PROGRAMS.items() if shutil.which(program, path=path) is None]


def _apt_get(arguments: list[str], remedy: str) -> None:
    # Another apt may be at work for a while.
    options = ["--quiet=2", "--option=DPkg::Lock::Timeout=120", "--option=Acquire::Retries=5"]
    done = subprocess.run(
        ["apt-get", *options, *arguments],
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
    )
    if done.returncode:
        lines = done.stdout.strip().splitlines() or ["no reason was given"]
        raise NoMachinesError("machines need Debian packages: %s fails: %s" % (remedy, lines[-1]))


# --- how QEMU runs machines ---------------------------------------------------------------------------

# Seconds in which a kernel without a root has given up where KVM works; emulated, it takes longer.
_SOON = 10


def has_kvm(kernel: Path, initrd: Path) -> bool:
    """Return True if KVM boots this kernel here: that /dev/kvm is there says little. Tried once per boot of the
    host."""
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return False
    answer = CACHE / ("kvm-" + _boot_id())
    if not answer.exists():
        for old in CACHE.glob("kvm-*"):
            old.unlink(missing_ok=True)
        replace(answer, str(_boots(kernel, initrd)))
    return answer.read_text(encoding="ascii") == str(True)


def _boots(kernel: Path, initrd: Path) -> bool:
    """Return True if a kernel gets as far as to find no program to start, and resets the machine, which ends QEMU."""
    arguments = ["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-machine", "q35", "-accel", "kvm"]
    arguments += ["-bios", "qboot.rom", "-kernel", str(kernel), "-initrd", str(initrd)]
    arguments += ["-append", "panic=-1 rdinit=/none init=/none root=none"]
    try:
        done = subprocess.run([QEMU, *arguments], check=False, capture_output=True, timeout=_SOON)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


@functools.lru_cache(maxsize=None)
def tsc_khz() -> int:
    """Return the frequency of this host's time-stamp counter, which an emulated machine sees, too."""
    log = subprocess.run(["dmesg"], check=False, capture_output=True, text=True, errors="replace").stdout
    found = re.search(r"tsc: Detected ([0-9]+)\.([0-9]{3}) MHz", log)
    if found:
        return int(found[1] + found[2])
    found = re.search(
        r"^cpu MHz\s*: ([0-9]+)\.([0-9]{3})", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE
    )
    if not found:
        raise NoMachinesError("neither the kernel's log nor /proc/cpuinfo tells the CPU's frequency")
    return int(found[1] + found[2])


@functools.lru_cache(maxsize=None)
def qemu_version() -> str:
    """Return the first line of `qemu-system-x86_64 --version`."""
    return subprocess.run([QEMU, "--version"], check=True, capture_output=True, text=True).stdout.splitlines()[0]


def replace(path: Path, text: str) -> None:
    """Write a file that others may read meanwhile: they see the old text or the new one."""
    temporary = path.with_name(".%s-%d" % (path.name, os.getpid()))
    temporary.write_text(text, encoding="utf-8")
    temporary.rename(path)


def _boot_id() -> str:
    """Return another after each boot of this host."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
