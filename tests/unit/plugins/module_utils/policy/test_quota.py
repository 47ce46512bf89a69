# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/policy/quota.py: which quotas and shares pods and containers get."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._containers.pods import pod_from_manifest
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.quota import (
    CONTAINER,
    HOST,
    UNLIMITED,
    WHOLE_POD,
    cpu_of_pod,
    is_pod_unlimited,
    isolation_levels,
)

MINOR, PERIOD = 36, 100000
TWO, ONE = {"cpu": "2", "memory": "1Gi"}, {"cpu": "1", "memory": "1Gi"}


def limits(whole: Any, *containers: Any, init: Any = None, owners: str = "") -> tuple[list[str], bool, int, int | None]:
    """Return whose CPUs each container runs on, whether the pod has no quota, its shares and its quota."""
    rows = [{"name": name, "resources": {"limits": own}} for name, own in zip("abc", containers)]
    spec: dict[str, Any] = {"containers": rows, "resources": {"limits": whole} if whole else None}
    if init is not None:
        spec["initContainers"] = [{"name": "i", "resources": {"limits": init}}]
    pod = pod_from_manifest({"metadata": {"name": "p"}, "spec": spec})._replace(has_managers_gate=True)
    levels = isolation_levels(pod, owners, MINOR)
    is_unlimited = is_pod_unlimited(pod, levels.values())
    return list(levels.values()), is_unlimited, *cpu_of_pod(pod, is_unlimited, PERIOD, MINOR)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        # A pod that is mixed is throttled as a whole, also the container with CPUs of its own.
        (limits({"cpu": "4", "memory": "8Gi"}, TWO, {}, owners="ab"), ([CONTAINER, WHOLE_POD], False, 4096, 400000)),
        (limits({"cpu": "4", "memory": "8Gi"}, TWO, ONE, owners="ab"), ([CONTAINER] * 2, True, 4096, UNLIMITED)),
        (limits({"cpu": "4", "memory": "8Gi"}, TWO, {}, owners="a"), ([CONTAINER, HOST], False, 4096, 400000)),
        (
            limits({"cpu": "4", "memory": "8Gi"}, TWO, init={}, owners="ai"),
            ([WHOLE_POD, CONTAINER], False, 4096, 400000),
        ),
        # Of other pods, one container with CPUs of its own is enough.
        (limits(None, TWO, {"cpu": "500m", "memory": "1Gi"}, owners="a"), ([CONTAINER, HOST], True, 2560, UNLIMITED)),
        (limits(None, {"cpu": "5m"}), ([HOST], False, 5, 1000)),
        # What is not limited in one container is not limited in the pod, but where that is limited itself.
        (limits(None, {"cpu": "1"}, {}), ([HOST, HOST], False, 1024, None)),
        (limits({"cpu": "3"}, {"cpu": "1"}, {}), ([HOST, HOST], False, 3072, 300000)),
        (limits(None, {}), ([HOST], False, 2, None)),
    ],
)
def test_quotas_and_shares(found: Any, expected: Any) -> None:
    assert found == expected
