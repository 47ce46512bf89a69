# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""By what rules the policy dynamic gives CPUs out, to whom, and what it has to go by."""

from __future__ import annotations

from typing import Mapping, NamedTuple

from ..cpuset import CPUSet
from ..errors import InputError, option
from ..quantity import counted
from ..topology.kubelet_view import CPUTopology
from .dynamic_state import Key
from .options import StaticOptions

MOST_DELAY = 60


class Rules(NamedTuple):
    """By what CPUs are given out. settle, delay: seconds. distances: {NUMA node: {NUMA node: distance}}."""

    topology: CPUTopology
    reserved: CPUSet
    options: StaticOptions = StaticOptions()
    shared_minimum: int = 0
    settle: float = 30.0
    delay: float = 5.0
    distances: Mapping[int, Mapping[int, int]] = {}

    def checked(self, reserved: str = "reserved_system_cpus") -> Rules:
        """The rules themselves. Raises InputError where they cannot be kept.

        reserved: the option by which CPUs are reserved.
        """
        topology = self.topology
        unknown = self.reserved - topology.all_cpus()
        if unknown:
            raise InputError("the machine has no CPUs %s to reserve" % unknown, where=option(reserved))
        if self.shared_minimum < 0 or not self.floor:
            raise InputError(
                "the shared pool could become empty",
                option("shared_minimum"),
                "reserve CPUs with %s, or give at least 1" % option(reserved),
            )
        if self.floor > topology.num_cpus:
            raise InputError(
                "%s cannot be kept of %d" % (counted(self.floor, "CPU"), topology.num_cpus),
                option("shared_minimum"),
                "give fewer",
            )
        if not 0 <= self.delay <= MOST_DELAY:
            raise InputError("%s is not from 0 to %d seconds" % (self.delay, MOST_DELAY), "delay")
        if not 0 <= self.settle < float("inf"):
            raise InputError("%s is no time" % self.settle, "settle", "give seconds")
        return self

    @property
    def floor(self) -> int:
        """How many CPUs the shared pool keeps."""
        return len(self.reserved) + self.shared_minimum


class Wanted(NamedTuple):
    """A container on the node: how many exclusive CPUs it requests, and up to how many it may have (0: not elastic).

    cpus: 0 for one that shares the pool.
    """

    pod: str
    name: str
    cpus: int
    most: int = 0

    @property
    def key(self) -> Key:
        """By what the state knows it."""
        return self.pod, self.name


class Use(NamedTuple):
    """How many CPUs were used on average of a period: by each container in the last one, and by all in the shared pool
    in the busiest one of the last minute."""

    containers: Mapping[Key, float] = {}
    shared: float = 0.0
