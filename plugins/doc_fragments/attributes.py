# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    """What a module can be relied on for."""

    DOCUMENTATION = r"""
attributes:
  check_mode:
    description: Shows in check mode what it would do, without doing it.
  diff_mode:
    description: Shows what it changes, or would change, in diff mode.
  idempotent:
    description: Changes nothing when it runs again with the same arguments.
  platform:
    description: The systems it runs on.
    support: full
    platforms: linux
"""

    # For a module that only reads.
    INFO = r"""
attributes:
  check_mode:
    support: full
    details:
      - Reads only, and does the same in check mode.
  diff_mode:
    support: N/A
    details:
      - Changes nothing.
  idempotent:
    support: full
"""

    # For a module that changes a file.
    CHANGE = r"""
attributes:
  check_mode:
    support: full
    details:
      - Makes the same plan as otherwise and returns it.
  diff_mode:
    support: full
  idempotent:
    support: full
"""
