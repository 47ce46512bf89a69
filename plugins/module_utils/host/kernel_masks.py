# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""On which CPUs the kernel does work of its own: workqueues, received packets, the watchdog.

Source: Linux's Documentation/core-api/workqueue.rst, Documentation/networking/scaling.rst,
Documentation/admin-guide/sysctl/kernel.rst and net.rst.
"""

from __future__ import annotations

from ..cpuset import CPUSet
from ..errors import NodeError, RefusedError
from ..tree import Tree
from .layers import MASK, RPS, WATCHDOG, WORKQUEUES, Setting
from .reading import read_setting

_WORKQUEUES = "/sys/devices/virtual/workqueue"
_DEVICES = "/sys/class/net"


def read_workqueues(tree: Tree) -> list[Setting]:
    """The CPUs of all workqueues that are bound to none, and then those of each that has its own, by their names."""
    path = _WORKQUEUES + "/cpumask"
    every = read_setting(tree, WORKQUEUES, "all unbound workqueues", path, MASK)
    found = []
    if every is not None:
        # From Linux 6.8 on, the file shows what is left without CPUs that are isolated; undone is what was wanted.
        wanted = read_setting(tree, WORKQUEUES, every.name, path + "_requested", MASK)
        if wanted is not None and wanted.cpus is not None:
            every = every._replace(text=wanted.text, cpus=wanted.cpus, effective=every.cpus)
        found.append(every)
    limit = None if every is None else every.effective or every.cpus
    for name in _names(tree, _WORKQUEUES):
        setting = read_setting(tree, WORKQUEUES, name, "%s/%s/cpumask" % (_WORKQUEUES, name), MASK)
        if setting is not None:
            found.append(setting._replace(effective=_within(setting.cpus, limit)))
    return found


def _within(cpus: CPUSet | None, limit: CPUSet | None) -> CPUSet | None:
    """What the kernel makes of a workqueue's CPUs: those that all may have, or all of these where none is left."""
    if cpus is None or limit is None:
        return cpus
    return cpus & limit or limit


def read_rps(tree: Tree) -> list[Setting]:
    """The CPUs that work on packets that others received: of queues that are new, then of each queue of each device.

    Without any, which is what the kernel begins with, a packet stays on the CPU of its interrupt.
    """
    found = [read_setting(tree, RPS, "new queues", "/proc/sys/net/core/rps_default_mask", MASK)]
    for device in _names(tree, _DEVICES):
        queues = "%s/%s/queues" % (_DEVICES, device)
        found += [
            read_setting(tree, RPS, "%s %s" % (device, queue), "%s/%s/rps_cpus" % (queues, queue), MASK)
            for queue in _names(tree, queues)
            if queue.startswith("rx-")
        ]
    return [setting for setting in found if setting is not None]


def read_watchdog(tree: Tree) -> list[Setting]:
    """The CPUs on which the kernel looks for lockups."""
    setting = read_setting(tree, WATCHDOG, "watchdog", "/proc/sys/kernel/watchdog_cpumask")
    return [] if setting is None else [setting]


def _names(tree: Tree, path: str) -> list[str]:
    try:
        return tree.names(path)
    except (NodeError, RefusedError):
        return []
