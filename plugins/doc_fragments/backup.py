# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    """Backups of the files that a module changes."""

    DOCUMENTATION = r"""
options:
  backup:
    description:
      - Keep the old file beside its place.
    type: bool
    default: true
  backup_keep:
    description:
      - How many backups of a file stay, the new one among them. After a successful change, older ones that this
        collection made are removed; no other file is.
      - V(0) keeps all of them. To make none, set O(backup=false).
    type: int
    default: 3
"""
