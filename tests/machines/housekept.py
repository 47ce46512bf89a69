# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A saved node with every layer of a host, none of which keeps to the reserved CPUs."""

from __future__ import annotations

from pathlib import Path

from . import cgroups, loaders
from .layered import write, write_layers

ONLINE = "0-7"
BOOT_ID = "11111111-2222-4333-8444-555555555555"
UNITS = ("init.scope", "machine.slice", "system.slice", "user.slice")
IRQBALANCE = "etc/default/irqbalance"
VARIABLES = "# Debian's own\nIRQBALANCE_ONESHOT=\n#IRQBALANCE_BANNED_CPULIST=\n"
BOOT = "/proc/sys/kernel/random/boot_id"


def write_node(root: Path, interrupts: int = 3, with_cpusets: bool = True) -> Path:
    """Write it; with_cpusets: whether the controller is enabled for the cgroups of services."""
    write_layers(root, ONLINE, interrupts=interrupts)
    write(root, "/sys/devices/system/cpu/possible", "0-15\n")
    own = cgroups.Files("" if with_cpusets else None, "" if with_cpusets else None)
    units = dict.fromkeys((*UNITS, "kubepods.slice", "foreign"), own)
    cgroups.write_cgroups(root, cgroups.V2, units, ONLINE, "0")
    write(root, "/sys/fs/cgroup/cgroup.controllers", "cpuset cpu\n")
    write(root, BOOT, BOOT_ID + "\n")
    write(root, "/proc/cmdline", "root=/dev/vda ro quiet\n")
    write(root, "/proc/sys/net/core/rps_default_mask", "ff\n")
    write(root, "/usr/sbin/irqbalance", "IRQBALANCE_BANNED_CPULIST\0")
    write(root, "/" + IRQBALANCE, VARIABLES).chmod(0o640)
    write(root, "/run/irqbalance.pid", "7\n")
    write(root, "/etc/systemd/system/.keep", "")
    (root / "var/lib").mkdir(parents=True)
    loaders.grub(root, directory={})
    return root


def boot(root: Path, boot_id: str = "another") -> None:
    """Set the kernel's values as a boot does; systemd has given its units what its files say."""
    write_layers(root, ONLINE)
    write(root, "/proc/sys/net/core/rps_default_mask", "ff\n")
    write(root, BOOT, boot_id + "\n")
