# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What has to be set together with a setting, or the kubelet would refuse it."""

from __future__ import annotations

from typing import Any, Iterator, Mapping

from ..policy.options import manager_option_gate, option_gate
from ..quantity import nanoseconds
from .file.configuration import Configuration
from .gates.enabled import CFS_QUOTA_PERIOD, CPU_OPTIONS, GATES, MEMORY_MANAGER, TOPOLOGY_OPTIONS, Gates

_DEFAULT_QUOTA_PERIOD = 100 * 10**6

_RESERVED_CGROUPS = {"systemReservedCgroup": "system-reserved", "kubeReservedCgroup": "kube-reserved"}


def companions(wanted: Mapping[str, object], configuration: Configuration, minor: int) -> dict[tuple[str, ...], object]:
    """What to change beside the wanted settings, as KubeletConfiguration.with_changes() takes it.

    A feature gate is switched on where it is off and a wanted option needs it.
    """
    gates = Gates.of(configuration.values, minor)
    changes: dict[tuple[str, ...], object] = {
        ("featureGates", name): True
        for name in _needed_gates(wanted, minor)
        if not gates.enabled(name) and GATES[name].alpha <= minor
    }
    if wanted.get("reserved_system_cpus"):
        changes.update(((name,), "") for name in _idle_cgroups(configuration.values))
    return changes


def _needed_gates(wanted: Mapping[str, Any], minor: int) -> Iterator[str]:
    options = wanted.get("cpu_manager_policy_options")
    if options:
        yield CPU_OPTIONS
        yield from (gate for gate in (option_gate(name, minor) for name in options) if gate is not None)
    manager_options = wanted.get("topology_manager_policy_options")
    if manager_options:
        yield TOPOLOGY_OPTIONS
        yield from (gate for gate in (manager_option_gate(name, minor) for name in manager_options) if gate)
    if wanted.get("memory_manager_policy", "None") != "None":
        yield MEMORY_MANAGER
    if nanoseconds(wanted.get("cpu_cfs_quota_period", "100ms")) != _DEFAULT_QUOTA_PERIOD:
        yield CFS_QUOTA_PERIOD


def _idle_cgroups(values: Mapping[str, Any]) -> Iterator[str]:
    """The cgroups that are named and not enforced, as on EKS: all they do is to keep CPUs from being reserved."""
    enforced = values.get("enforceNodeAllocatable") or ()
    for name, enforcement in _RESERVED_CGROUPS.items():
        if values.get(name) and not any(str(enforced_name).startswith(enforcement) for enforced_name in enforced):
            yield name
