# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a node has for pods, and whether one more finds room: the kubelet counts requests, whatever its policy. Pure.

Source: pkg/kubelet/lifecycle/predicate.go, pkg/kubelet/nodestatus/setters.go.
"""

from __future__ import annotations

from typing import Any, Mapping

from ..kubelet.start.checks.reservations import MEMORY, Reservations
from ..kubelet.start.finding import Host
from ..workload.pods import Pod

_CPU = "cpu"
# In which the kubelet counts: thousandths of a CPU, and bytes.
_UNIT = {_CPU: 1, MEMORY: 1000}


def allocatable(values: Mapping[str, Any], host: Host) -> dict[str, int]:
    """What pods may ask for in all, in thousandths; no memory where that of the machine is not known."""
    reservations = Reservations(values, host)
    kept = {_CPU: reservations.amount(_CPU), MEMORY: reservations.memory()}
    capacity = {_CPU: host.topology.num_cpus, MEMORY: None if host.memory is None else host.memory - host.huge_pages}
    found = {}
    for resource, amount in kept.items():
        size = capacity[resource]
        if size is not None and amount is not None:
            found[resource] = max(0, 1000 * size - int(1000 * amount.exact()))
    return found


class Room:
    """What pods have taken of a node."""

    def __init__(self, capacity: Mapping[str, int], minor: int) -> None:
        self.minor = minor
        self.capacity = {resource: amount // _UNIT[resource] for resource, amount in capacity.items()}
        self.used = dict.fromkeys(capacity, 0)

    def refusal(self, pod: Pod) -> tuple[str, str] | None:
        """The kubelet's reason and message for a pod that finds no room; None for one that does."""
        for resource, capacity in self.capacity.items():
            asked, used = self._asked(pod, resource), self.used[resource]
            if asked and asked > capacity - used:
                message = "Node didn't have enough resource: %s, requested: %d, used: %d, capacity: %d"
                return "OutOf" + resource, message % (resource, asked, used, capacity)
        return None

    def take(self, pod: Pod) -> None:
        """The pod runs."""
        for resource in self.used:
            self.used[resource] += self._asked(pod, resource)

    def _asked(self, pod: Pod, resource: str) -> int:
        return -(-pod.request(resource, self.minor) // _UNIT[resource])
