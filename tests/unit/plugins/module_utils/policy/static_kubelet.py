# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A kubelet with the static policy: machines by their names, pods of a short text, and the policy with its state."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._containers.pods import (
    APP,
    INIT,
    SIDECAR,
    Container,
    Pod,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.options import StaticOptions
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.static import (
    AllocationError,
    RunningState,
    StaticPolicy,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.kubelet_view import (
    CPUTopology,
    kubelet_view,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import parse_name

# Some of StaticOptions, by name.
Options = dict[str, Any]

MINOR = 35
KINDS = {"init": INIT, "sidecar": SIDECAR, "app": APP}


def machine(name: str) -> CPUTopology:
    return kubelet_view(parse_name(name).topology())


def pod(containers: str, uid: str = "u1") -> Pod:
    """Return `init:a=2 sidecar:b=1.5 c=4`: containers with their CPUs; app containers need not say so."""
    found = []
    for text in containers.split():
        name, cpus = text.rsplit("=", 1)
        kind, _colon, name = name.rpartition(":")
        resources = {"cpu": round(float(cpus) * 1000), "memory": 1000}
        found.append(Container(name, KINDS[kind or "app"], resources, resources))
    return Pod(uid, uid, tuple(found))


class Kubelet:
    """A policy and its state."""

    def __init__(self, name: str, reserved: str = "0", state: State | None = None, **options: Any) -> None:
        self.policy = StaticPolicy(machine(name), StaticOptions(**options), CPUSet.parse(reserved), MINOR)
        self.state = RunningState(state)
        self.policy.start(self.state)

    def allocate(self, guest: Pod, container: str, affinity: int | None = None) -> str:
        """Return the CPUs that it has then."""
        self.policy.allocate(self.state, guest, container, affinity)
        return self.cpus(guest.uid, container)

    def allocate_all(self, guest: Pod) -> list[str]:
        return [self.allocate(guest, container.name) for container in guest.containers]

    def cpus(self, uid: str, container: str) -> str:
        mask = self.state.get(uid, container)
        return "shared" if mask is None else str(CPUSet.from_mask(mask))

    def pool(self) -> str:
        return str(CPUSet.from_mask(self.state.default))

    def reusable(self, uid: str = "u1") -> str:
        return str(CPUSet.from_mask(self.policy.reusable.get(uid, 0)))

    def refusal(self, guest: Pod, container: str, affinity: int | None = None) -> AllocationError:
        """Return the error, after which nothing has changed."""
        before = self.state.snapshot(), self.policy.reusable
        with pytest.raises(AllocationError) as caught:
            self.policy.allocate(self.state, guest, container, affinity)
        assert (self.state.snapshot(), self.policy.reusable) == before
        return caught.value
