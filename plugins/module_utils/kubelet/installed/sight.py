# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a kubelet of this machine can be seen, where none was: a stopped kubelet is not the same as a hidden one.

A service without CAP_SYS_PTRACE does not see the processes of others where /proc is mounted with hidepid=, as with
ProtectProc=, nor outside of its own process ids. Source: proc(5), cgroups(7).
"""

from __future__ import annotations

import os
from typing import Iterator

from ...tree import Tree
from .distributions import DISTRIBUTIONS
from .process import named_kubelets
from .trust import UNSEEN, doubt, is_in_container, service_of

# Version 2 of cgroups, and both places where systemd has its own hierarchy beside version 1.
_PLACES = ("", "/systemd", "/unified")
# What cgroups show in place of a process that has no number here.
_OUTSIDE = "0"


def why_unseen(tree: Tree) -> str:
    """Why a kubelet may run on this machine although none was found; empty where it does not."""
    return why_hidden() or _who_may_be_it(tree)


def _who_may_be_it(tree: Tree) -> str:
    for process in named_kubelets(tree):
        try:
            if not is_in_container(process.pid) and doubt(process, service_of(process.pid)) == UNSEEN:
                return "process %d is called so, is no service of a known name, and %s" % (process.pid, UNSEEN)
        except (OSError, ValueError):
            continue  # it ended meanwhile
    return ""


def why_hidden(proc: str = "/proc", cgroups: str = "/sys/fs/cgroup") -> str:
    """Why this process would not see a kubelet that runs; empty where it would. Arguments: where these are mounted."""
    if not _is_seen(proc, "1"):
        return "%s does not show the processes of others (hidepid=, ProtectProc=)" % proc
    for service, path in _services(cgroups):
        hidden = [pid for pid in _processes(path) if not _is_seen(proc, pid)]
        # Some may have ended meanwhile.
        if hidden and set(hidden) & set(_processes(path)):
            return "%s runs, and %s does not show its processes" % (service, proc)
    return ""


def _services(cgroups: str) -> Iterator[tuple[str, str]]:
    """The services of kubelets that are there, each with the path of its processes."""
    units = ["%s.service" % service for distribution in DISTRIBUTIONS for service in distribution.services]
    for place in _PLACES:
        slices = [name for name in _names(cgroups + place) if name.endswith(".slice")]
        for unit in dict.fromkeys(units):
            for name in slices:
                path = "%s%s/%s/%s/cgroup.procs" % (cgroups, place, name, unit)
                if os.path.exists(path):
                    yield unit, path


def _names(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError:
        return []


def _processes(path: str) -> list[str]:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read().split()
    except OSError:
        return []


def _is_seen(proc: str, pid: str) -> bool:
    try:
        with open("%s/%s/cmdline" % (proc, pid), "rb"):
            return pid != _OUTSIDE
    except OSError:
        return False
