# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The policies that are not the kubelet's, for a plan of who gets which CPUs first. Pure."""

from __future__ import annotations

from ..cpuset import CPUSet
from ..errors import InputError, option
from ..kubelet.start.finding import Host
from ..policy.dynamic import DYNAMIC, DynamicPolicy
from ..policy.dynamic_rules import Rules
from ..policy.isolated import ISOLATED, IsolatedPolicy
from ..policy.options import StaticOptions
from ..policy.static import StaticPolicy
from ..topology.model import Topology


def our_policy(
    name: str, topology: Topology, machine: Host, options: StaticOptions, reserved: CPUSet, shared_minimum: int
) -> StaticPolicy:
    """The policy dynamic or isolated on this machine. Raises InputError where it cannot be kept there."""
    if name == ISOLATED:
        return IsolatedPolicy(machine.topology, options, reserved, topology.isolated, machine.minor)
    if name != DYNAMIC:
        raise InputError("there is no policy %s" % name, where=option("policy"))
    return DynamicPolicy(Rules(machine.topology, reserved, options, shared_minimum), machine.minor)
