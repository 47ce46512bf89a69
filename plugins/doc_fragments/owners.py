# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    """Which other programs may manage CPUs."""

    DOCUMENTATION = r"""
options:
  allow_owners:
    description:
      - The programs that may manage CPUs on the node beside this module, by their ids, such as V(goresctrl).
        R(One owner for every CPU, ansible_collections.kubenode.cpu_manager.docsite.owners) lists them.
    type: list
    elements: str
    default: []
"""
