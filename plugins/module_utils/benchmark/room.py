# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which CPUs the workloads of a benchmark have: those that the CPU manager of this node would give. Pure."""

from __future__ import annotations

from typing import NamedTuple, Sequence

from ..cpuset import CPUSet
from ..errors import InputError, option
from ..policy.assignment import take
from ..policy.options import StaticOptions
from ..policy.packed import SAFE, TakeError
from ..quantity import counted_are
from ..topology.kubelet_view import kubelet_view
from ..topology.model import Topology


class Room(NamedTuple):
    """The CPUs of a node, for containers that come to it now."""

    topology: Topology
    options: StaticOptions
    reserved: CPUSet
    # What no container has for itself: all of it is the shared pool, and what is not reserved can be given away.
    free: CPUSet
    # Whether the kubelet limits what containers use, and also those with exclusive CPUs (before 1.33).
    quota: bool = True
    quota_on_exclusive: bool = False

    @property
    def allocatable(self) -> CPUSet:
        """What can be given to containers for themselves."""
        return self.free - self.reserved

    @property
    def pool(self) -> CPUSet:
        """Where containers without exclusive CPUs run, while there is no other."""
        return self.free - self.reserved if self.options.strict_cpu_reservation else self.free

    def whole_cores(self, count: int) -> int:
        """So many CPUs, made up to whole cores."""
        threads = self.topology.threads_per_core
        return -(-count // threads) * threads

    def give(self, counts: Sequence[int], whole_cores: bool = False) -> tuple[list[CPUSet], CPUSet]:
        """Exclusive CPUs for containers that come one after the other, and the shared pool that is left.

        Raises InputError where there are not enough.
        """
        view = kubelet_view(self.topology)
        options = self.options._replace(full_pcpus_only=whole_cores or self.options.full_pcpus_only)
        available = self.allocatable
        if options.full_pcpus_only:
            available = CPUSet(cpu for core in self.topology.cores if core.cpus <= available for cpu in core.cpus)
        given: list[CPUSet] = []
        for count in counts:
            taken = CPUSet(cpu for cpus in given for cpu in cpus)
            try:
                given.append(take(view, available - taken, count, options, SAFE))
            except TakeError as error:
                raise InputError(
                    "%s wanted for containers of their own, and there are %s (online %s, reserved %s)"
                    % (
                        counted_are(sum(counts), "CPU"),
                        "CPUs %s" % available if available else "none",
                        self.topology.online,
                        self.reserved,
                    ),
                    where=option("cpus"),
                    remedy="want fewer",
                ) from error
        pool = self.pool - CPUSet(cpu for cpus in given for cpu in cpus)
        if not pool:
            raise InputError(
                "no CPU is left for the shared pool once %d are given away, of %s"
                % (sum(counts), self.topology.online),
                where=option("cpus"),
                remedy="want fewer",
            )
        return given, pool
