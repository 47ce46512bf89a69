# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    """Results without the names of pods."""

    DOCUMENTATION = r"""
options:
  hide_names:
    description:
      - Whether the result has hashes of 8 hexadecimal digits in place of the names of pods, namespaces and containers.
        A name has the same hash on every node. UIDs of pods, and the names of cgroups, processes and interrupts stay.
    type: bool
    default: false
"""
