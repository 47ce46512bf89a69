# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Manifests that are wrong, and any that somebody could write: a pod is read, or the error says what to give."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._cgroup.kubepods import (
    BEST_EFFORT,
    BURSTABLE,
    GUARANTEED,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._containers.pods import (
    pod_from_manifest,
    pods_from_manifests,
)

from .manifests import MINORS, container, manifest

# --- bad manifests --------------------------------------------------------------------------------


def with_spec(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "web"}, "spec": spec}


def with_status(**status: Any) -> dict[str, Any]:
    return {**manifest(container("app")), "status": status}


def with_resources(data: Any) -> dict[str, Any]:
    return manifest({"name": "app", "resources": data})


BAD: list[tuple[Any, str]] = [
    # no pod
    (None, "a pod has neither a name nor a UID in its metadata"),
    ({}, "a pod has neither a name nor a UID in its metadata"),
    ({"metadata": {"name": ""}}, "a pod has neither a name nor a UID in its metadata"),
    ([], "a pod is not a mapping, but []"),
    ("web", "a pod is not a mapping, but 'web'"),
    ({"metadata": "web"}, "a pod's metadata is not a mapping, but 'web'"),
    ({"metadata": {"name": ["web"]}}, "a pod's metadata.name is not a text, but ['web']"),
    ({"metadata": {"name": True}}, "a pod's metadata.name is not a text, but True"),
    ({"metadata": {"name": "web", "uid": {}}}, "pod web: metadata.uid is not a text, but {}"),
    ({"metadata": {"name": "web", "namespace": []}}, "pod web: metadata.namespace is not a text, but []"),
    # no containers
    ({"metadata": {"name": "web"}}, "pod web: spec.containers is empty"),
    (with_spec(containers=[]), "pod web: spec.containers is empty"),
    (with_spec(containers=None), "pod web: spec.containers is empty"),
    (with_spec(initContainers=[container("app")]), "pod web: spec.containers is empty"),
    ({"metadata": {"name": "web"}, "spec": []}, "pod web: spec is not a mapping, but []"),
    (with_spec(containers=7), "pod web: spec.containers is not a list, but 7"),
    (with_spec(containers="app"), "pod web: spec.containers is not a list, but 'app'"),
    (with_spec(containers=container("app")), "pod web: spec.containers is not a list, but {'name': 'app', 'resources'"),
    (with_spec(containers=["app"]), "pod web: spec.containers[0] is not a mapping, but 'app'"),
    (with_spec(containers=[container("app"), None]), "pod web: spec.containers[1] has no name"),
    (with_spec(containers=[{"name": ""}]), "pod web: spec.containers[0] has no name"),
    (with_spec(containers=[{"name": {}}]), "pod web: spec.containers[0].name is not a text, but {}"),
    (with_spec(initContainers=[{}]), "pod web: spec.initContainers[0] has no name"),
    (manifest(container("app"), container("app")), "pod web: two containers are named app"),
    (manifest(container("app"), initContainers=[container("app")]), "pod web: two containers are named app"),
    # resources
    (with_resources([]), "pod web: container app, resources is not a mapping, but []"),
    (with_resources({"limits": 2}), "pod web: container app, resources.limits is not a mapping, but 2"),
    (with_resources({"requests": "2"}), "pod web: container app, resources.requests is not a mapping, but '2'"),
    (with_resources({"limits": {"cpu": "two"}}), "pod web: container app, resources.limits.cpu: quantity 'two': a"),
    (with_resources({"requests": {"memory": "1GB"}}), "pod web: container app, resources.requests.memory: quantity '"),
    (with_resources({"limits": {"cpu": None}}), "pod web: container app, resources.limits.cpu: None is not a quantity"),
    (with_resources({"limits": {"cpu": True}}), "pod web: container app, resources.limits.cpu: True is not a quantity"),
    (with_resources({"limits": {"cpu": float("nan")}}), "pod web: container app, resources.limits.cpu: quantity 'nan'"),
    (with_resources({"limits": {"cpu": -2}}), "pod web: container app, resources.limits.cpu: -2 is less than nothing"),
    (with_spec(containers=[container("app")], resources=7), "pod web: spec.resources is not a mapping, but 7"),
    (
        with_spec(containers=[container("app")], resources={"limits": {"cpu": "x"}}),
        "pod web: spec.resources.limits.cpu: quantity 'x': a number is missing",
    ),
    # status
    (with_status(qosClass="guaranteed"), "pod web: status.qosClass is guaranteed, which is no QoS class"),
    (with_status(qosClass=[]), "pod web: status.qosClass is not a text, but []"),
    (with_status(containerStatuses=7), "pod web: status.containerStatuses is not a list, but 7"),
    (with_status(containerStatuses=[7]), "pod web: status.containerStatuses[0] is not a mapping, but 7"),
    (
        with_status(initContainerStatuses=[{"allocatedResources": 7}]),
        "pod web: status.initContainerStatuses[0].allocatedResources is not a mapping, but 7",
    ),
    (
        with_status(containerStatuses=[{}, {"name": "app", "allocatedResources": {"cpu": "x"}}]),
        "pod web: status.containerStatuses[1].allocatedResources.cpu: quantity 'x': a number is missing",
    ),
    (
        with_status(containerStatuses=[{"name": [], "allocatedResources": {}}]),
        "pod web: status.containerStatuses[0].name is not a text, but []",
    ),
    (manifest(container("app"), overhead=[]), "pod web: spec.overhead is not a mapping, but []"),
    ({**manifest(container("app")), "status": 7}, "pod web: status is not a mapping, but 7"),
]


@pytest.mark.parametrize(("data", "message"), BAD)
def test_bad_manifests(data: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        pod_from_manifest(data)
    assert str(caught.value).startswith(message)


# --- whatever somebody writes ---------------------------------------------------------------------

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3), st.sampled_from(["2", "1500m", "1Gi"])
)
KEYS = st.sampled_from(
    ["name", "uid", "kind", "items", "replicas", "template", "resources", "requests", "limits", "cpu", "restartPolicy"]
)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(KEYS, inner, max_size=4),
        st.fixed_dictionaries({"name": st.sampled_from(["app", "web"])}, optional={"resources": inner}),
        st.fixed_dictionaries({}, optional={"requests": inner, "limits": inner, "allocatedResources": inner}),
    ),
    max_leaves=8,
)
MANIFESTS = st.one_of(
    ANYTHING,
    st.fixed_dictionaries(
        {"metadata": st.one_of(st.just({"name": "web"}), ANYTHING)},
        optional={
            "kind": SCALARS,
            "spec": st.one_of(
                ANYTHING,
                st.fixed_dictionaries(
                    {"containers": st.one_of(st.lists(ANYTHING, max_size=3), ANYTHING)},
                    optional={"initContainers": ANYTHING, "resources": ANYTHING, "template": ANYTHING},
                ),
            ),
            "status": st.one_of(
                ANYTHING,
                st.fixed_dictionaries({}, optional={"containerStatuses": ANYTHING, "qosClass": ANYTHING}),
            ),
        },
    ),
)


@given(MANIFESTS)
def test_any_manifest_is_a_pod_or_an_input_error(data: Any) -> None:
    try:
        pods = pods_from_manifests([data])
    except InputError:
        return
    for pod in pods:
        assert pod.name
        assert pod.uid
        for minor in MINORS:
            counts = pod.exclusive_counts(minor)
            assert list(counts) == [container.name for container in pod.containers]
            assert all(count >= 0 for count in counts.values())
            assert pod.qos(minor) in (GUARANTEED, BURSTABLE, BEST_EFFORT)


@given(st.integers(0, 10**6))
def test_only_whole_cpus_are_exclusive(milli: int) -> None:
    pod = pod_from_manifest(manifest(container("app", "%dm" % milli, 1)))
    assert pod.exclusive_counts(35) == {"app": 0 if milli % 1000 else milli // 1000}
