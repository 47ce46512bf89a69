# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The CPU manager's state: the shared pool and who has which CPUs to itself."""

from __future__ import annotations

from types import MappingProxyType
from typing import Collection, Iterator, Mapping, NamedTuple

from ..cpuset import CPUSet

# Pod UID -> container name -> its exclusive CPUs.
Assignments = Mapping[str, Mapping[str, CPUSet]]


class State(NamedTuple):
    """The default CPU set (shared pool), the exclusive assignments, and the CPUs of whole pods.

    Only a kubelet with the feature gate PodLevelResourceManagers gives CPUs to whole pods.
    """

    default_cpu_set: CPUSet
    assignments: Assignments
    pod_assignments: Mapping[str, CPUSet] = MappingProxyType({})

    def to_text(self) -> str:
        """Return one line for the shared pool and each container with exclusive CPUs, to compare one state with
        another."""
        lines = ["default CPU set: %s" % self.default_cpu_set]
        lines += ["pod %s: %s" % item for item in sorted(self.pod_assignments.items())]
        for pod, containers in sorted(self.assignments.items()):
            lines += ["pod %s, container %s: %s" % (pod, name, cpus) for name, cpus in sorted(containers.items())]
        return "".join(line + "\n" for line in lines)

    def owners(
        self, running: Mapping[str, Collection[str]] = MappingProxyType({})
    ) -> Iterator[tuple[str, str, CPUSet]]:
        """Yield (pod UID, container, CPUs) of all that have CPUs to themselves, sorted.

        Several containers that share CPUs of their pod are one, as "a, b"; the container is empty for what a whole pod
        has and none of its containers. running: {pod UID: its containers that run}; an init container that has ended
        leaves what it had to its pod.
        """
        for pod in sorted({*self.assignments, *self.pod_assignments}):
            own, left = self.assignments.get(pod, {}), self.pod_assignments.get(pod)
            sharing: dict[tuple[str, CPUSet], list[str]] = {}
            here = own if left is None else own.keys() & running.get(pod, ()) or own
            for name in sorted(here):
                sharing.setdefault((name if left is None else "", own[name]), []).append(name)
            for (_alone, cpus), names in sharing.items():
                if cpus:
                    yield pod, ", ".join(names), cpus
                left = None if left is None else left - cpus
            if left:
                yield pod, "", left

    def exclusive_cpus(self) -> CPUSet:
        """Return all CPUs that some container or pod has to itself."""
        mask = 0
        for containers in self.assignments.values():
            for cpus in containers.values():
                mask |= cpus.mask
        for cpus in self.pod_assignments.values():
            mask |= cpus.mask
        return CPUSet.from_mask(mask)


def assignments_text(assignments: Assignments) -> dict[str, dict[str, str]]:
    """Return exclusive CPUs as plain data: {pod UID: {container: CPUs}}."""
    return {
        pod: {container: str(cpus) for container, cpus in sorted(containers.items())}
        for pod, containers in sorted(assignments.items())
    }
