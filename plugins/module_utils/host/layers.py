# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The layers of a host around its reserved CPUs: each setting that says on which CPUs something runs. Pure."""

from __future__ import annotations

from typing import NamedTuple

from ..cpuset import CPUSet

SLICES, INTERRUPTS, WORKQUEUES, RPS, WATCHDOG = "slices", "interrupts", "workqueues", "rps", "watchdog"
IRQBALANCE, MANAGER, PARTITION = "irqbalance", "manager", "partition"
# Its isolated CPUs, by which it then sets some of the others itself.
TUNED = "tuned"
# Those that are written into the running kernel, in the order in which they are: first what new work starts with, then
# what moves work that is there.
LIVE_LAYERS = (INTERRUPTS, WORKQUEUES, RPS, WATCHDOG, SLICES)

# Why a setting cannot be changed.
FIXED = "fixed"  # the kernel offers it for reading only, as that of an interrupt that it manages itself
REFUSED = "refused"  # the kernel has refused to change it
UNREADABLE = "unreadable"  # what it holds cannot be read, or is no CPUs

# How a file writes CPUs.
LIST, MASK = "list", "mask"


class Setting(NamedTuple):
    """One file of the running kernel that says on which CPUs something runs.

    name: of what, for people: "36 virtio1-req.0", "system.slice". text: what the file holds, to the byte but for the
    newline. cpus: what that means; None where it is empty and empty means that there is no limit. effective: what the
    kernel makes of it, where it shows that. problem: FIXED, REFUSED or UNREADABLE; empty where it can be changed.
    """

    layer: str
    name: str
    path: str
    text: str
    cpus: CPUSet | None
    form: str = LIST
    effective: CPUSet | None = None
    problem: str = ""


def wanted_cpus(setting: Setting, reserved: CPUSet, online: CPUSet) -> CPUSet | None:
    """Which CPUs a setting is to have; None where it may stay as it is."""
    kept = reserved & online
    if setting.layer == RPS:
        # Without a mask, packets are worked on where their interrupt is.
        return kept if setting.cpus and setting.cpus - reserved else None
    if setting.cpus is not None and setting.cpus & online and setting.cpus & online <= kept:
        return None
    return kept


def text_of(setting: Setting, cpus: CPUSet) -> str:
    """The CPUs in the form of the setting's file."""
    return cpus.to_mask() if setting.form == MASK else str(cpus)
