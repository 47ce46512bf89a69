# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests that did not run for lack of something that can be had: they are skipped, or with STRICT they fail.

STRICT=1 stands for all kinds of lack, STRICT=tool for one of them. What a machine can never have (cgroup v1,
root's rights) is no lack: pytest.skip() is for that.

    python tests/running/lacking.py    # install the programs that tests use, as root on Debian; else name them
"""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import NoReturn

import pytest

TOOL = "tool"
KUBERNETES = "kubernetes"

# {program that tests use: the Debian package that brings it}
PACKAGES = {
    "chromium": "chromium",
    "cpio": "cpio",
    "fusermount3": "fuse3",
    "grub-mkconfig": "grub-common",
    "ip": "iproute2",
    "lscpu": "util-linux",
    "lstopo-no-graphics": "hwloc-nox",
    "mount": "mount",
    "node": "nodejs",
    "npm": "npm",
    "promtool": "prometheus",
    "ssh": "openssh-client",
    "strace": "strace",
    "stress-ng": "stress-ng",
    "systemd-analyze": "systemd",
    "unshare": "util-linux",
}


class Skipped(pytest.skip.Exception):  # type: ignore[name-defined,misc]
    """Ends a test that lacks something of a kind."""

    __module__ = "builtins"  # pytest leaves out this name before a reason, and no other

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind


def lacking(kind: str, reason: str) -> NoReturn:
    """End the test, as there is no such tool, or no Kubernetes."""
    __tracebackhide__ = True
    strict = os.environ.get("STRICT", "")
    if strict == "1" or kind in strict.split(","):
        pytest.fail("%s (STRICT=%s)" % (reason, strict), pytrace=False)
    raise Skipped(kind, reason)


def need(*programs: str) -> None:
    """End the test unless these programs are there."""
    __tracebackhide__ = True
    for program in programs:
        if shutil.which(program) is None:
            package = PACKAGES.get(program)
            lacking(TOOL, "no %s%s" % (program, "" if package in (None, program) else " (Debian package %s)" % package))


def absent() -> dict[str, str]:
    """Return {program that is not here: the Debian package that brings it}"""
    return {program: package for program, package in PACKAGES.items() if shutil.which(program) is None}


def main() -> None:
    programs = absent()
    if not programs:
        return
    packages = sorted(set(programs.values()))
    if os.geteuid() or shutil.which("apt-get") is None:
        print("Without %s some tests are skipped: install %s" % (", ".join(programs), " ".join(packages)))
        return
    apt_get = ["apt-get", "--quiet=2", "--option=DPkg::Lock::Timeout=120"]
    subprocess.run([*apt_get, "update"], check=True)
    subprocess.run([*apt_get, "install", "--yes", "--no-install-recommends", *packages], check=True)


if __name__ == "__main__":
    main()
