# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_cgroup/kubepods.py: QoS classes of pods, and resources of whole pods, which decide
too.
"""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._cgroup.kubepods import (
    BEST_EFFORT,
    BURSTABLE,
    GUARANTEED,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._containers.pods import pod_from_manifest

from .._containers.manifests import MINORS, Resources, container, manifest, resources

# --- QoS classes ----------------------------------------------------------------------------------

ONE = {"cpu": 1, "memory": "1Gi"}
TWO = {"cpu": 2, "memory": "2Gi"}
NONE: Resources = {}

# requests and limits of each container, as the API server stored them; the class
CLASSES: list[tuple[list[tuple[Resources, Resources]], str]] = [
    # one container
    ([(ONE, ONE)], GUARANTEED),
    ([({"cpu": "1000m", "memory": "1024Mi"}, ONE)], GUARANTEED),  # other texts of the same
    ([({"memory": "1Gi"}, ONE)], BURSTABLE),  # a limit without a request
    ([(NONE, ONE)], BURSTABLE),
    ([(ONE, NONE)], BURSTABLE),
    ([(ONE, TWO)], BURSTABLE),
    ([({"cpu": 1}, {"cpu": 1})], BURSTABLE),  # no memory
    ([({"memory": 1}, {"memory": 1})], BURSTABLE),  # no CPU
    ([({"cpu": "1m"}, NONE)], BURSTABLE),
    ([(NONE, NONE)], BEST_EFFORT),
    ([({"cpu": 0, "memory": "0"}, {"cpu": 0})], BEST_EFFORT),  # 0 is none
    ([({"cpu": 1, "memory": 0}, {"cpu": 1, "memory": 0})], BURSTABLE),
    # other resources do not count
    ([({"ephemeral-storage": "1Gi"}, {"ephemeral-storage": "1Gi"})], BEST_EFFORT),
    ([({**ONE, "example.com/gpu": 1}, {**ONE, "example.com/gpu": 2})], GUARANTEED),
    # several
    ([(ONE, ONE), (TWO, TWO)], GUARANTEED),
    ([(ONE, ONE), (NONE, NONE)], BURSTABLE),
    ([(ONE, ONE), ({"cpu": 1}, {"cpu": 1})], BURSTABLE),
    ([(NONE, NONE), (NONE, NONE)], BEST_EFFORT),
    ([(NONE, NONE), (NONE, {"memory": 1})], BURSTABLE),
    # the sums are compared
    ([(ONE, TWO), (TWO, ONE)], GUARANTEED),
    ([(ONE, TWO), (ONE, ONE)], BURSTABLE),
    ([({"cpu": 2}, ONE), ({"memory": "2Gi"}, ONE)], GUARANTEED),
]


def pod_of(pairs: list[tuple[Resources, Resources]], field: str) -> dict[str, Any]:
    """Return the first container is one of `field`, the others are app containers."""
    all_containers = [{"name": "c%d" % number, "resources": resources(*pair)} for number, pair in enumerate(pairs)]
    if field == "containers":
        return manifest(*all_containers)
    return manifest(*(all_containers[1:] or [container("same", **pairs[0][1])]), initContainers=all_containers[:1])


@pytest.mark.parametrize(("pairs", "qos"), CLASSES)
def test_qos(pairs: list[tuple[Resources, Resources]], qos: str) -> None:
    pod = pod_from_manifest(pod_of(pairs, "containers"), as_admitted=False)
    for minor in MINORS:
        assert pod.qos(minor) == qos
        assert any(pod.exclusive_counts(minor).values()) <= (qos == GUARANTEED)


@pytest.mark.parametrize(("pairs", "qos"), [row for row in CLASSES if len(row[0]) > 1])
@pytest.mark.parametrize("policy", ["Always", None])
def test_qos_counts_init_containers(pairs: list[tuple[Resources, Resources]], qos: str, policy: str | None) -> None:
    data = pod_of(pairs, "initContainers")
    data["spec"]["initContainers"][0]["restartPolicy"] = policy
    assert pod_from_manifest(data, as_admitted=False).qos(35) == qos


@pytest.mark.parametrize(
    ("requests", "limits", "qos"),
    [
        (NONE, ONE, GUARANTEED),
        ({"cpu": 1}, ONE, GUARANTEED),
        ({"memory": "1Gi"}, ONE, GUARANTEED),
        ({"cpu": "500m"}, ONE, BURSTABLE),
        (NONE, {"cpu": 1}, BURSTABLE),
        (ONE, NONE, BURSTABLE),  # a request makes no limit
    ],
)
def test_the_api_server_fills_in_requests(requests: Resources, limits: Resources, qos: str) -> None:
    data = manifest({"name": "app", "resources": resources(requests, limits)})
    assert pod_from_manifest(data).qos(35) == qos
    stored = pod_from_manifest(data).containers[0].requests
    assert set(stored) == {*requests, *limits}


def test_the_status_decides_on_the_class() -> None:
    data = manifest(container("app", 2, 1))
    data["status"] = {"qosClass": BURSTABLE}
    pod = pod_from_manifest(data)
    assert pod.qos(35) == BURSTABLE
    assert pod.exclusive_counts(35) == {"app": 0}
    # Also the other way round.
    data = manifest({"name": "app", "resources": {"requests": {"cpu": 2}}})
    data["status"] = {"qosClass": GUARANTEED}
    assert pod_from_manifest(data).exclusive_counts(35) == {"app": 2}
    assert pod_from_manifest({**data, "status": {"qosClass": ""}}).qos(35) == BURSTABLE


# --- pod-level resources --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pod_level", "qos"),
    [
        (resources(ONE, ONE), GUARANTEED),
        (resources(NONE, ONE), GUARANTEED),  # filled in
        (resources({"cpu": "500m"}, ONE), BURSTABLE),
        (resources({"cpu": 1}, NONE), BURSTABLE),
        (resources({"hugepages-2Mi": "2Mi"}, {"hugepages-2Mi": "2Mi"}), BEST_EFFORT),
    ],
)
def test_pod_level_resources(pod_level: dict[str, Any], qos: str) -> None:
    """From 1.34 on they alone decide on the class, and the static policy leaves the pod alone."""
    pod = pod_from_manifest(manifest(container("app", 2, 1), resources=pod_level))
    assert pod.qos(33) == GUARANTEED
    assert pod.exclusive_counts(33) == {"app": 2}
    for minor in (34, 35, 36):
        assert pod.has_pod_level_resources(minor)
        assert pod.qos(minor) == qos
        assert pod.exclusive_counts(minor) == {"app": 0}


@pytest.mark.parametrize(
    "pod_level", [None, {}, resources(NONE, NONE), {"claims": []}, resources({"ephemeral-storage": 1}, NONE)]
)
def test_no_pod_level_resources(pod_level: object) -> None:
    pod = pod_from_manifest(manifest(container("app", 2, 1), resources=pod_level))
    for minor in MINORS:
        assert not pod.has_pod_level_resources(minor)
        assert pod.exclusive_counts(minor) == {"app": 2}
