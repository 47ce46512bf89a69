# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The CPUs that the kubelet reserves by itself, predicted, and what it leaves of their cores to pods. Pure."""

from __future__ import annotations

from math import ceil

from ..cpuset import CPUSet
from ..errors import KubeletError
from ..quantity import counted
from ..topology.kubelet_view import CPUTopology
from .options import StaticOptions

MILLI = 1000


def kubelet_reservation(
    topology: CPUTopology, millicores: int, options: StaticOptions, reserved_system_cpus: CPUSet = CPUSet()
) -> CPUSet:
    """The CPUs that the static policy reserves at start.

    `millicores` is kubeReserved.cpu + systemReserved.cpu, which a non-empty `reserved_system_cpus` replaces.
    Raises KubeletError where it would not start.
    Source: NewStaticPolicy in pkg/kubelet/cm/cpumanager/policy_static.go.
    """
    if reserved_system_cpus:
        millicores = MILLI * len(reserved_system_cpus)
    if millicores <= 0:
        raise KubeletError(
            "[cpumanager] unable to determine reserved CPU resources for static policy",
            "set reservedSystemCPUs, or a cpu in kubeReserved or systemReserved",
        )
    # In the kubelet's floating point.
    count = ceil(float(millicores) / MILLI)
    reserved = reserved_system_cpus
    if not reserved:
        # Imported here: most nodes name their reserved CPUs, and every import costs time on every node.
        from .assignment import take_mask
        from .packed import EndlessDistributionError, TakeError

        try:
            reserved = CPUSet.from_mask(take_mask(topology, topology.cpus, count, options))
        except TakeError:
            reserved = CPUSet()  # the kubelet looks at the size only, below
        except EndlessDistributionError as error:
            raise KubeletError(str(error), "name the CPUs in reservedSystemCPUs") from error
    if len(reserved) != count:
        raise KubeletError(
            "[cpumanager] unable to reserve the required amount of CPUs (size of %s did not equal %d)"
            % (reserved, count),
            "reserve fewer with reservedSystemCPUs, kubeReserved and systemReserved",
        )
    return reserved


def split_cores(reserved: CPUSet, others: CPUSet, whole_cores_only: bool, is_wanted: bool = False) -> str:
    """What is to be said of a reservation whose cores have `others`, too. whole_cores_only: with full-pcpus-only."""
    split, get, can = ("would split", "would get", "could") if is_wanted else ("splits", "get", "can")
    if not whole_cores_only:
        return "reservation %s %s cores: pods %s their other threads, CPUs %s" % (reserved, split, get, others)
    return (
        "reservation %s %s cores: no pod %s have their other threads, CPUs %s, for itself with full-pcpus-only: %s that"
        " the scheduler counts" % (reserved, split, can, others, counted(len(others), "CPU"))
    )
