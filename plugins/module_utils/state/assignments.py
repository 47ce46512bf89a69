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

    def to_text(self) -> str:
        """One line for the shared pool and each container with CPUs of its own, to compare one state with another."""
        lines = ["default CPU set: %s" % self.default_cpu_set]
        for pod, containers in sorted(self.assignments.items()):
            lines += ["pod %s, container %s: %s" % (pod, name, cpus) for name, cpus in sorted(containers.items())]
        return "".join(line + "\n" for line in lines)

    def exclusive_cpus(self) -> CPUSet:
        """All CPUs that some container has to itself."""
        mask = 0
        for containers in self.assignments.values():
            for cpus in containers.values():
                mask |= cpus.mask
        return CPUSet.from_mask(mask)
