# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from .reservation import RESERVATION


# Annotated, as ansible-test's yamllint takes what is plainly assigned there for a literal.
class ModuleDocFragment:
    """Which CPUs are reserved for the host."""

    DOCUMENTATION: str = (
        r"""
options:
  reserved_system_cpus:
    description:
      - The CPUs that are reserved for the host, such as V(0-1,24-25).
      - By default, or with an empty text, those that the kubelet is configured to reserve.
      - A text. A number such as V(3) is refused, because it can mean CPU 3 or three CPUs.
    type: raw
"""
        + RESERVATION
    )
