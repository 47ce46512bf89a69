# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which boot of a machine this is: what the kernel holds does not outlive it."""

from __future__ import annotations

from ..tree import Tree

BOOT_ID = "/proc/sys/kernel/random/boot_id"


def boot_id_of(tree: Tree) -> str:
    """The id that the kernel gives each boot; empty where it is not known."""
    return tree.read_value(BOOT_ID) or ""
