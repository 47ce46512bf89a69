# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which CPUs the static policy takes: the kubelet's own choice, to the last CPU.

Source: pkg/kubelet/cm/cpumanager/cpu_assignment.go, the same in Kubernetes 1.33 to 1.36. Its answers
are kept even where they harm, because this predicts them, unless the switch EXACT is set to SAFE:
- "fully free" compares with averages, so on a machine with cores or sockets of unequal size a whole core
  or socket can be taken although some of its CPUs are busy;
- a kept combination of NUMA nodes can change after it was scored (see distributed.py);
- a distribution can go on for ever; here that raises EndlessDistributionError.
"""

from __future__ import annotations

from ..cpuset import CPUSet, count_bits
from ..topology.kubelet_view import CPUTopology
from .distributed import take_distributed_mask
from .options import StaticOptions
from .packed import EXACT, PACKED, SPREAD, EndlessDistributionError, TakeError, take_packed_mask


def take_packed(
    topology: CPUTopology,
    available: CPUSet,
    count: int,
    strategy: str = PACKED,
    prefer_uncore: bool = False,
) -> CPUSet:
    """Take `count` of the `available` CPUs, whole elements first. Raises TakeError."""
    return CPUSet.from_mask(take_packed_mask(topology, available.mask, count, strategy, prefer_uncore))


def take_distributed(
    topology: CPUTopology,
    available: CPUSet,
    count: int,
    group_size: int = 1,
    strategy: str = PACKED,
) -> CPUSet:
    """Take `count` of the `available` CPUs evenly over as few NUMA nodes as hold them (distribute-cpus-across-numa).

    CPUs are given in groups of `group_size`: the threads of a core with full-pcpus-only, else 1.
    Raises TakeError, and EndlessDistributionError where the kubelet would never answer.
    """
    return CPUSet.from_mask(take_distributed_mask(topology, available.mask, count, group_size, strategy))


def take(topology: CPUTopology, available: CPUSet, count: int, options: StaticOptions, exact: bool = EXACT) -> CPUSet:
    """The static policy's take with its options. Raises TakeError, and with EXACT EndlessDistributionError."""
    return CPUSet.from_mask(take_mask(topology, available.mask, count, options, exact))


def take_mask(topology: CPUTopology, available: int, count: int, options: StaticOptions, exact: bool = EXACT) -> int:
    """The same on masks."""
    strategy = SPREAD if options.distribute_cpus_across_cores else PACKED
    prefer_uncore = options.prefer_align_cpus_by_uncorecache
    if options.distribute_cpus_across_numa:
        group_size = topology.cpus_per_core if options.full_pcpus_only else 1
        try:
            return take_distributed_mask(topology, available, count, group_size, strategy, exact)
        except (EndlessDistributionError, TakeError):
            if exact or count > count_bits(available & topology.cpus):
                raise
    return take_packed_mask(topology, available, count, strategy, prefer_uncore, exact)
