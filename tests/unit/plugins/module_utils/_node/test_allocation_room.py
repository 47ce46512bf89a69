# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_node/allocation.py. What a plan makes of it is in test_allocation.py."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._containers.pods import Pod, pod_from_manifest
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.findings import Host
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.allocation import Room, allocatable
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.kubelet_view import kubelet_view
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import parse_name

VIEW = kubelet_view(parse_name("1s4c2t").topology())
GIB = 1 << 30
EVICTION = 100 << 20


def pod(**requests: str) -> Pod:
    container = {"name": "app", "resources": {"requests": requests}}
    return pod_from_manifest({"metadata": {"name": "a"}, "spec": {"containers": [container]}})


@pytest.mark.parametrize(
    ("values", "cpu", "memory"),
    [
        ({}, 8000, 8 * GIB - EVICTION),
        ({"reservedSystemCPUs": "0,4"}, 6000, 8 * GIB - EVICTION),
        # The reserved CPUs are in place of both amounts.
        ({"reservedSystemCPUs": "0", "kubeReserved": {"cpu": "3", "memory": "1Gi"}}, 7000, 7 * GIB - EVICTION),
        ({"kubeReserved": {"cpu": "250m"}, "systemReserved": {"cpu": "1", "memory": "2Gi"}}, 6750, 6 * GIB - EVICTION),
        ({"evictionHard": {"memory.available": "50%"}}, 8000, 4 * GIB),
        ({"evictionHard": {"nodefs.available": "5%"}}, 8000, 8 * GIB),
        ({"kubeReserved": {"cpu": "9", "memory": "9Gi"}}, 0, 0),
    ],
)
def test_what_is_left_for_pods(values: dict[str, Any], cpu: int, memory: int) -> None:
    assert allocatable(values, Host(VIEW, memory=8 * GIB)) == {"cpu": cpu, "memory": 1000 * memory}
    with_pages = allocatable(values, Host(VIEW, memory=8 * GIB, huge_pages=GIB))
    is_share = values.get("evictionHard", {}).get("memory.available") == "50%"
    assert with_pages == {"cpu": cpu, "memory": 1000 * (3 * GIB if is_share else max(0, memory - GIB))}
    assert allocatable(values, Host(VIEW)) == {"cpu": cpu}


def test_pods_until_there_is_no_room() -> None:
    room = Room({"cpu": 2000, "memory": 1000 * GIB}, 36)
    room.take(pod(cpu="1500m", memory="512Mi"))
    assert room.refusal(pod(cpu="500m", memory="512Mi")) is None
    assert room.refusal(pod(cpu="501m", memory="1Gi")) == (
        "OutOfcpu",
        "Node didn't have enough resource: cpu, requested: 501, used: 1500, capacity: 2000",
    )
    # What asks for nothing fits everywhere.
    room.take(pod(cpu="4"))
    assert room.refusal(pod()) is None
    # Fractions of a byte are rounded up.
    assert room.refusal(pod(memory="536870912001m")) == (
        "OutOfmemory",
        "Node didn't have enough resource: memory, requested: 536870913, used: 536870912, capacity: 1073741824",
    )
