# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What of a kubelet's configuration decides about the CPU manager's state."""

from __future__ import annotations

from typing import NamedTuple

from ..cpuset import CPUSet
from ..versions import NEWEST_MINOR

NONE = "none"
STATIC = "static"


class CPUManagerConfig(NamedTuple):
    """What of the kubelet's configuration and machine decides whether it accepts a state."""

    policy_name: str
    all_cpus: CPUSet
    reserved: CPUSet = CPUSet()
    strict_reservation: bool = False
    minor: int = NEWEST_MINOR
    # The feature gate PodLevelResourceManagers.
    pod_level: bool = False
