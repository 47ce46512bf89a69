# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The CPU manager's state: the shared pool and who has which CPUs to itself."""

from __future__ import annotations

from typing import Mapping, NamedTuple

from ..cpuset import CPUSet

# Pod UID -> container name -> its exclusive CPUs.
Assignments = Mapping[str, Mapping[str, CPUSet]]


class State(NamedTuple):
    """The default CPU set (shared pool) and the exclusive assignments."""

    default_cpu_set: CPUSet
    assignments: Assignments

    def exclusive_cpus(self) -> CPUSet:
        """All CPUs that some container has to itself."""
        mask = 0
        for containers in self.assignments.values():
            for cpus in containers.values():
                mask |= cpus.mask
        return CPUSet.from_mask(mask)
