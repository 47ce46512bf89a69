# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run the real lscpu and lstopo on a tree, for tests that need these programs."""

from __future__ import annotations

import os
import subprocess


def run_lscpu(root: str, with_all: bool = False) -> str:
    """Return `lscpu -p` of the machine below `root`; with_all as texts.lscpu() has it."""
    columns = ["-a", "-p=CPU,CORE,SOCKET,NODE,CACHE,ONLINE"] if with_all else ["-p"]
    return _run(["lscpu", "--sysroot", root, *columns])


def run_lstopo(root: str, version: int = 2) -> str:
    """Return `lstopo --of xml` of the machine below `root`, in the format of hwloc 1.x or 2.x."""
    flags = ["--export-xml-flags", "1"] if version == 1 else []
    return _run(["lstopo-no-graphics", "--input", root, "--if", "fsroot", "--of", "xml", *flags])


def _run(command: list[str]) -> str:
    # Else lstopo would bind itself to find out what it may use.
    environment = dict(os.environ, HWLOC_THISSYSTEM="0", LC_ALL="C.UTF-8")
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, env=environment, text=True).stdout
