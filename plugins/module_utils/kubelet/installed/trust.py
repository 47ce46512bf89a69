# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which of the processes that look like a kubelet count as one, on a live node.

Any user may start a process of any name: its configuration is read, edited and backed up by root.
"""

from __future__ import annotations

import os
import re
import stat
from typing import TYPE_CHECKING, Iterable

from .distributions import DISTRIBUTIONS

if TYPE_CHECKING:
    from .process import Process

_ROOT = 0
# The cgroups of pods by both drivers, also below a --cgroup-root, which the systemd driver makes a part of each name,
# and those of containers that only a CRI runtime makes.
_OF_CONTAINER = re.compile(r"(?:cri-containerd|crio)-[0-9a-f]{64}(?:\.scope)?")
# The doubt about what may well be the kubelet.
UNSEEN = "its program cannot be seen"


def doubt(process: Process, service: str) -> str:
    """Why a process of this machine does not count; empty where it does. Raises OSError."""
    if not trusted_users(process.pid):
        users = sorted(_users(process.pid) - _trusted())
        return "it runs as user %s" % " and ".join(_user_name(user) for user in users)
    if in_pod(cgroups_of(str(process.pid))) and not in_pod(cgroups_of("self")):
        return "it is in a pod"
    if service:
        return ""  # Whoever made the service is root.
    try:
        return _program_doubt(process)
    except PermissionError:
        # Only root with all powers sees the programs of root. Anybody else does no more than what he may do anyway.
        return UNSEEN if os.geteuid() == _ROOT else ""


def _program_doubt(process: Process) -> str:
    program = trusted_program(process.pid)
    if not program:
        return "its program %r may be written by others than root" % os.readlink("/proc/%d/exe" % process.pid)
    name = os.path.basename(process.arguments[0]).partition("-")[0]
    return "" if name in os.path.basename(program) else "its program is %r" % program


def _trusted() -> frozenset[int]:
    return frozenset((_ROOT, os.geteuid()))


def _users(pid: int) -> frozenset[int]:
    """The real, effective and other users of a process: of a set-user-ID program the first is who called it."""
    return frozenset(int(user) for user in _status(str(pid), "Uid"))


def _user_name(user: int) -> str:
    # Imported here: only for a message.
    from pwd import getpwuid

    try:
        return "%d (%s)" % (user, getpwuid(user).pw_name)
    except KeyError:
        return str(user)


def is_in_container(pid: int) -> bool:
    """Whether it is the kubelet of a node that is a container of this one, with process ids of its own."""
    # To look at its namespace takes more than root.
    return len(_status(str(pid), "NSpid")) > len(_status("self", "NSpid"))


def _status(process: str, name: str) -> list[str]:
    """The words of a line of a process's status."""
    with open("/proc/%s/status" % process, encoding="utf-8", errors="replace") as file:
        return next((line.split()[1:] for line in file if line.startswith(name + ":")), [])


def service_of(pid: int) -> str:
    """The known service, as systemd calls its unit, that a process belongs to; empty for none."""
    units = {"%s.service" % service for distribution in DISTRIBUTIONS for service in distribution.services}
    for groups in cgroups_of(str(pid)):
        for depth, group in enumerate(groups):
            # A user's own manager is a service, and has services below it.
            if group in units and all(above.endswith(".slice") for above in groups[:depth]):
                return group
    return ""


def in_pod(cgroups: Iterable[Iterable[str]]) -> bool:
    """Whether cgroups, as cgroups_of() gives them, are those of a pod, whatever the kubelet's --cgroup-root."""
    return any(_is_of_pods(group) for groups in cgroups for group in groups)


def _is_of_pods(cgroup: str) -> bool:
    is_slice = cgroup.endswith(".slice") and "-kubepods-" in cgroup[1 : -len(".slice")] + "-"
    return cgroup.startswith("kubepods") or is_slice or bool(_OF_CONTAINER.fullmatch(cgroup))


def cgroups_of(process: str) -> list[list[str]]:
    """The names in the path of each of its cgroups, of v2 and of each hierarchy of v1. Source: cgroups(7)."""
    with open("/proc/%s/cgroup" % process, encoding="utf-8", errors="replace") as file:
        return [line.rstrip("\n").split(":", 2)[-1].strip("/").split("/") for line in file]


def trusted_program(pid: int) -> str:
    """The path of the program of a process of this machine; empty where others may have put it there, or write it.

    Others are all users but root and, unless that is root, who runs this. Raises OSError.
    """
    program = os.readlink("/proc/%d/exe" % pid)
    # Of a file that was replaced meanwhile this is the old one.
    status = os.stat("/proc/%d/exe" % pid)
    others_write = status.st_mode & stat.S_IWOTH or (status.st_mode & stat.S_IWGRP and status.st_gid != _ROOT)
    return "" if others_write or status.st_uid not in _trusted() else program


def trusted_users(pid: int) -> bool:
    """Whether a process of this machine runs as root, or as who runs this, in all regards. Raises OSError."""
    return _users(pid) <= _trusted()
