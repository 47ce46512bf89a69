# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""By what rules CPUs are given out on one node. Pure.

The role checks them before it installs the program, and each pass checks them again.
"""

from __future__ import annotations

from typing import NamedTuple

from ...cpuset import CPUSet
from ...errors import InputError, option
from ...kubelet.file.configuration import Configuration
from ...policy.dynamic_rules import Rules
from ...policy.isolated import ISOLATED, IsolatedPolicy
from ...topology.kubelet_view import CPUTopology
from ...topology.model import Topology
from .settings import Settings

_RESERVED = "reservedSystemCPUs"


class Machine(NamedTuple):
    """The CPUs that are online. owned: those that no container can use. minor: the kubelet's version."""

    topology: Topology
    view: CPUTopology
    owned: CPUSet
    minor: int


def reserved_cpus(settings: Settings, configuration: Configuration | None) -> CPUSet:
    """What no container gets for itself: what the settings say, else what the kubelet reserves."""
    if settings.reserved is not None:
        return settings.reserved
    text = "" if configuration is None else str(configuration.values.get(_RESERVED) or "")
    try:
        return CPUSet.parse(text)
    except InputError as error:
        raise error.within(_RESERVED) from error


def dynamic_rules(settings: Settings, reserved: CPUSet, machine: Machine) -> Rules:
    """Those of the policy dynamic. Raises InputError where they cannot be kept on this machine."""
    rules = Rules(
        machine.view,
        # No container can run on reserved CPUs of others, so they do not keep the shared pool from becoming empty.
        reserved - machine.owned,
        settings.options,
        settings.shared_minimum,
        settings.settle,
        settings.delay,
        machine.topology.numa_distances,
    ).checked("reserved_cpus")
    return rules._replace(reserved=reserved | machine.owned).checked("reserved_cpus")


def isolated_policy(settings: Settings, reserved: CPUSet, machine: Machine) -> IsolatedPolicy:
    """The policy isolated. Raises InputError where it cannot be kept on this machine."""
    isolated, reserved = machine.topology.isolated - machine.owned, reserved | machine.owned
    try:
        policy = IsolatedPolicy(machine.view, settings.options, reserved, isolated, machine.minor)
        if not policy.shared - machine.owned:
            raise InputError(
                "all CPUs that containers can use are isolated, and the shared pool would be empty",
                remedy="use the policy dynamic",
            )
    except InputError as error:
        raise error.within(option("policy")) from error
    return policy


def check_rules(settings: Settings, configuration: Configuration | None, machine: Machine) -> None:
    """Raise InputError where a pass would, because the policy cannot be kept on this machine."""
    reserved = reserved_cpus(settings, configuration)
    if settings.policy == ISOLATED:
        isolated_policy(settings, reserved, machine)
    else:
        dynamic_rules(settings, reserved, machine)
