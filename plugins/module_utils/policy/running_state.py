# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The CPU manager's state while it runs: masks that change."""

from __future__ import annotations

from ..cpuset import CPUSet
from ..state.assignments import State


class RunningState:
    """`default` is the mask of the shared pool, `assignments` {pod UID: {container: mask}}; only methods change them.

    `stored`: a method that changes the state was called. The kubelet then writes its file, even if nothing differs.
    """

    def __init__(self, state: State | None = None) -> None:
        self.default = 0
        self.stored = False
        self.assignments: dict[str, dict[str, int]] = {}
        if state is not None:
            self.default = state.default_cpu_set.mask
            for pod, containers in state.assignments.items():
                self.assignments[pod] = {container: cpus.mask for container, cpus in containers.items()}

    def set_default(self, mask: int) -> None:
        """Set the shared pool."""
        self.default = mask
        self.stored = True

    def get(self, pod_uid: str, container: str) -> int | None:
        """The mask that a container has for itself; None when it has none."""
        containers = self.assignments.get(pod_uid)
        return None if containers is None else containers.get(container)

    def set(self, pod_uid: str, container: str, mask: int) -> None:
        """Give a container a mask for itself; the shared pool is the caller's."""
        self.assignments.setdefault(pod_uid, {})[container] = mask
        self.stored = True

    def delete(self, pod_uid: str, container: str) -> None:
        """Forget a container, and a pod without one."""
        containers = self.assignments[pod_uid]
        del containers[container]
        if not containers:
            del self.assignments[pod_uid]
        self.stored = True

    def snapshot(self) -> State:
        """The state as a value."""
        assignments = {
            pod: {container: CPUSet.from_mask(mask) for container, mask in containers.items()}
            for pod, containers in self.assignments.items()
        }
        return State(CPUSet.from_mask(self.default), assignments)
