# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Writes the layers of a host below a root: interrupts, workqueues, queues of network devices, the watchdog.

write_layers(root, "0-7")                       # each is for all CPUs
write_layers(root, "0-7", "0-1", interrupts=200)    # each is for the reserved ones
"""

from __future__ import annotations

from pathlib import Path
from typing import Mapping

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet

# The first number of an interrupt with a handler, and the one that only the kernel moves.
FIRST = 24
FIXED = 25


def write(root: Path, path: str, text: str | bytes) -> Path:
    """Return a file of a node, and the directories above it."""
    file = root / path.lstrip("/")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
    return file


def write_layers(root: Path, online: str, cpus: str = "", interrupts: int = 3, workqueues: int = 1) -> None:
    """Write layers that have these CPUs, by default all. Interrupt FIXED is managed by the kernel, and is for all."""
    cpus = cpus or online
    mask = CPUSet.parse(cpus).to_mask() + "\n"
    write(root, "/sys/devices/system/cpu/online", online + "\n")
    write(root, "/proc/irq/default_smp_affinity", mask)
    lines = ["".join("%11s" % ("CPU%d" % cpu) for cpu in CPUSet.parse(online))]
    for number in range(FIRST, FIRST + interrupts):
        own = online if number == FIXED else cpus
        last = max(CPUSet.parse(own))
        place = "/proc/irq/%d/" % number
        file = write(root, place + "smp_affinity_list", own + "\n")
        file.chmod(0o444 if number == FIXED else 0o644)
        write(root, place + "effective_affinity_list", "%d\n" % last)
        counts = "".join("%11d" % 7 for _cpu in CPUSet.parse(online))
        lines.append("%4d:%s PCI-MSIX-0000:00:01.0   %d-edge      eth0-%d" % (number, counts, number, number - FIRST))
    # One without a handler, and one that is no number.
    write(root, "/proc/irq/5/smp_affinity_list", online + "\n")
    lines += ["NMI: " + "".join("%11d" % 0 for _cpu in CPUSet.parse(online)) + "   Non-maskable interrupts", "ERR: 0"]
    write(root, "/proc/interrupts", "\n".join(lines) + "\n")
    write(root, "/sys/devices/virtual/workqueue/cpumask", mask)
    for number in range(workqueues):
        write(root, "/sys/devices/virtual/workqueue/queue%03d/cpumask" % number, mask)
    write(root, "/proc/sys/kernel/watchdog_cpumask", online + "\n")
    write(root, "/proc/sys/net/core/rps_default_mask", "0\n")
    write(root, "/sys/class/net/eth0/queues/rx-0/rps_cpus", mask)
    write(root, "/sys/class/net/eth0/queues/rx-1/rps_cpus", "0\n")
    write(root, "/sys/class/net/eth0/queues/tx-0/xps_cpus", mask)


def write_slices(root: Path, online: str, slices: Mapping[str, str | None]) -> None:
    """Write cgroups of v2 at the top of the hierarchy: {name: its CPUs}, None for one without the controller."""
    mount = "/sys/fs/cgroup/"
    write(root, "/sys/devices/system/cpu/online", online + "\n")
    write(root, mount + "cgroup.controllers", "cpuset cpu memory\n")
    write(root, mount + "cpuset.cpus.effective", online + "\n")
    write(root, mount + "cpuset.mems.effective", "0\n")
    for name, cpus in slices.items():
        write(root, mount + name + "/cgroup.procs", "")
        if cpus is not None:
            write(root, mount + name + "/cpuset.cpus", cpus + "\n")
            write(root, mount + name + "/cpuset.cpus.effective", (cpus or online) + "\n")
