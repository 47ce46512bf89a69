# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/workload/pods.py."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.errors import InputError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.workload.pods import (
    APP,
    INIT,
    SIDECAR,
    Container,
    pod_from_manifest,
    pods_from_manifests,
    running_pods,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.workload.qos import (
    BEST_EFFORT,
    BURSTABLE,
    GUARANTEED,
)

MINORS = (33, 34, 35, 36)

Resources = dict[str, Any]


def container(name: str, cpu: object = None, memory: object = None, **more: Any) -> dict[str, Any]:
    """A container with these limits, and requests that the API server fills in."""
    limits = {key: value for key, value in (("cpu", cpu), ("memory", memory)) if value is not None}
    return {"name": name, "resources": {"limits": limits}, **more}


def manifest(*containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "web", "uid": "u1"}, "spec": {"containers": list(containers), **spec}}


def resources(requests: Resources, limits: Resources) -> dict[str, Any]:
    return {"requests": requests, "limits": limits}


# --- what is read -----------------------------------------------------------------------------------


def test_pod() -> None:
    pod = pod_from_manifest(
        {
            "metadata": {"name": "web", "namespace": "shop", "uid": "u1"},
            "spec": {
                "initContainers": [container("prepare", 1, "1Gi"), container("proxy", 2, restartPolicy="Always")],
                "containers": [
                    {"name": "app", "resources": resources({"cpu": "500m"}, {"cpu": 2, "example.com/gpu": 1})},
                    {"name": "log"},
                ],
            },
        }
    )
    assert (pod.uid, pod.name, pod.qos_class, pod.pod_level) == ("u1", "shop/web", None, None)
    gi = 1000 * 2**30
    assert pod.containers == (
        Container("prepare", INIT, {"cpu": 1000, "memory": gi}, {"cpu": 1000, "memory": gi}),
        Container("proxy", SIDECAR, {"cpu": 2000}, {"cpu": 2000}),
        Container("app", APP, {"cpu": 500, "example.com/gpu": 1000}, {"cpu": 2000, "example.com/gpu": 1000}),
        Container("log", APP, {}, {}),
    )


NAMES = [
    ({"name": "web"}, "web", "web"),
    ({"name": "web", "namespace": "shop"}, "shop/web", "shop/web"),
    ({"name": "web", "uid": "u1"}, "u1", "web"),
    ({"uid": "u1"}, "u1", "u1"),
    ({"name": 7, "namespace": 8, "uid": 9}, "9", "8/7"),  # YAML reads some names as numbers
]


@pytest.mark.parametrize(("metadata", "uid", "name"), NAMES)
def test_names(metadata: dict[str, Any], uid: str, name: str) -> None:
    pod = pod_from_manifest({"metadata": metadata, "spec": {"containers": [{"name": "app"}]}})
    assert (pod.uid, pod.name) == (uid, name)


@pytest.mark.parametrize(
    ("field", "policy", "kind"),
    [
        ("initContainers", None, INIT),
        ("initContainers", "Never", INIT),
        ("initContainers", "always", INIT),
        ("initContainers", "Always", SIDECAR),
        ("containers", "Always", APP),  # only init containers become sidecars
    ],
)
def test_kind(field: str, policy: str | None, kind: str) -> None:
    data = manifest(container("other"))
    data["spec"].setdefault(field, []).append(container("it", restartPolicy=policy))
    assert [container.kind for container in pod_from_manifest(data).containers if container.name == "it"] == [kind]


# What users write for CPUs, and how many of them the container has for itself.
COUNTS = [
    (2, 2),
    (2.0, 2),
    ("2", 2),
    ("2.0", 2),
    ("2000m", 2),
    ("1e0", 1),
    ("2e0", 2),
    ("0.1e1", 1),
    ("2000000u", 2),
    ("0.002k", 2),
    ("1999.9m", 2),  # rounded up to thousandths
    ("64", 64),
    # fractions use the shared pool
    ("1500m", 0),
    (1.5, 0),
    ("0.5", 0),
    ("100m", 0),
    ("1", 1),
    ("1001m", 0),
    ("999m", 0),
    ("15e-1", 0),
]


@pytest.mark.parametrize(("cpu", "count"), COUNTS)
def test_exclusive_count(cpu: object, count: int) -> None:
    pod = pod_from_manifest(manifest(container("app", cpu, "1Gi")))
    for minor in MINORS:
        assert pod.qos(minor) == GUARANTEED
        assert pod.exclusive_counts(minor) == {"app": count}


def test_whole_and_fractional_containers_of_one_pod() -> None:
    pod = pod_from_manifest(
        manifest(
            container("two", 2, 1),
            container("half", "2500m", 1),
            container("one", "1", 1),
            initContainers=[container("prepare", 4, 1), container("proxy", 3, 1, restartPolicy="Always")],
        )
    )
    # In the order in which they start.
    assert list(pod.exclusive_counts(35).items()) == [
        ("prepare", 4),
        ("proxy", 3),
        ("two", 2),
        ("half", 0),
        ("one", 1),
    ]


# --- QoS classes ------------------------------------------------------------------------------------

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
    """The first container is one of `field`, the others are app containers."""
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


# --- pod-level resources ------------------------------------------------------------------------------


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


# --- what a status says was allocated -------------------------------------------------------------------


@pytest.mark.parametrize("field", ["containerStatuses", "initContainerStatuses"])
@pytest.mark.parametrize(
    ("status", "before"),
    [
        ({"allocatedResources": {"cpu": 4}}, 4),
        ({"allocatedResources": {"cpu": "1500m"}}, 0),
        ({"allocatedResources": {"memory": 1}}, 0),  # a status without cpu
        ({"allocatedResources": {}}, 0),
        ({"allocatedResources": None}, 2),
        ({}, 2),
    ],
)
def test_allocated_resources(status: dict[str, Any], before: int, field: str) -> None:
    """1.33 and 1.34 look at them, later ones at the spec only."""
    data = manifest(container("app", 2, 1), container("other", 3, 1))
    data["status"] = {field: [{"name": "app", **status}, {"name": "unknown", "allocatedResources": {"cpu": 9}}]}
    pod = pod_from_manifest(data)
    for minor, count in ((33, before), (34, before), (35, 2), (36, 2)):
        assert pod.exclusive_counts(minor) == {"app": count, "other": 3}


def test_allocated_resources_do_not_change_the_class() -> None:
    data = manifest(container("app", 2))
    data["status"] = {"containerStatuses": [{"name": "app", "allocatedResources": {"cpu": 2, "memory": 1}}]}
    assert pod_from_manifest(data).exclusive_counts(33) == {"app": 0}


# --- Lists and workloads ----------------------------------------------------------------------------------


def workload(replicas: object = 2, name: object = "web") -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container("app", 2, 1)]}}
    metadata = {"name": name, "namespace": "shop"}
    return {"kind": "Deployment", "metadata": metadata, "spec": {"replicas": replicas, "template": template}}


def test_replicas_are_pods() -> None:
    pods = pods_from_manifests([workload(3)])
    assert [pod.name for pod in pods] == ["shop/web-0", "shop/web-1", "shop/web-2"]
    assert len({pod.uid for pod in pods}) == 3
    assert [pod.exclusive_counts(35) for pod in pods] == [{"app": 2}] * 3
    assert pods_from_manifests([workload(0)]) == []
    without = workload()
    del without["spec"]["replicas"]
    assert len(pods_from_manifests([without])) == 1


def test_lists() -> None:
    pods = pods_from_manifests(
        [{"kind": "PodList", "items": [manifest(container("app"))]}, {"kind": "List", "items": [workload()]}]
    )
    assert [pod.name for pod in pods] == ["web", "shop/web-0", "shop/web-1"]
    assert pods_from_manifests([]) == pods_from_manifests([{"kind": "List", "items": None}]) == []


def test_two_pods_with_one_uid() -> None:
    data = manifest(container("app"))
    with pytest.raises(InputError, match="two pods have the UID u1; give each its own, or another name"):
        pods_from_manifests([data, {**data, "metadata": {"name": "other", "uid": "u1"}}])


BAD_WORKLOADS: list[tuple[Any, str]] = [
    (7, "a manifest is not a mapping, but 7"),
    ({"kind": "List", "items": 7}, "items is not a list, but 7"),
    ({"kind": "List", "items": [None]}, "a pod has neither a name nor a UID in its metadata"),
    (workload("2"), "Deployment web: spec.replicas is '2', not a count up to 10000"),
    (workload(-1), "Deployment web: spec.replicas is -1, not a count up to 10000"),
    (workload(True), "Deployment web: spec.replicas is True, not a count up to 10000"),
    (workload(10**9), "Deployment web: spec.replicas is 1000000000, not a count up to 10000"),
    (workload(1, None), "a workload has no name in its metadata"),
    (workload(1, []), "a workload's metadata.name is not a text, but []"),
    ({"metadata": {"name": "job"}, "spec": {"jobTemplate": {}}}, "pod job: spec.containers is empty"),
    ({"metadata": {"name": "web"}, "spec": {"template": 7}}, "pod web: spec.containers is empty"),
]


@pytest.mark.parametrize(("data", "message"), BAD_WORKLOADS)
def test_bad_workloads(data: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        pods_from_manifests([data])
    assert str(caught.value) == message


# --- bad manifests ------------------------------------------------------------------------------------


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
    ({**manifest(container("app")), "status": 7}, "pod web: status is not a mapping, but 7"),
]


@pytest.mark.parametrize(("data", "message"), BAD)
def test_bad_manifests(data: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        pod_from_manifest(data)
    assert str(caught.value).startswith(message)


# --- whatever somebody writes ---------------------------------------------------------------------------

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


# --- the pods of a node ------------------------------------------------------------------------------


def living(name: str, created: str = "", phase: str = "Running", node: str = "") -> dict[str, Any]:
    metadata = {"name": name, "uid": "uid-" + name, "creationTimestamp": created}
    spec = {"containers": [{"name": "app"}], "nodeName": node}
    return {"metadata": metadata, "spec": spec, "status": {"phase": phase}}


def test_pods_that_run_the_oldest_first() -> None:
    pods = pods_from_manifests(
        [
            living("b", "2026-11-21T11:00:00Z"),
            living("a", "2026-11-21T12:00:00Z"),
            living("done", phase="Succeeded"),
            living("broken", phase="Failed"),
            living("c", "2026-11-21T10:00:00Z", phase="Pending"),
        ]
    )
    assert [pod.name for pod in running_pods(pods)] == ["c", "b", "a"]


def test_a_static_pod_has_the_uid_that_the_kubelet_gave_it() -> None:
    manifest = living("etcd")
    manifest["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "0f3f7f0a"}
    assert pods_from_manifests([manifest])[0].uid == "0f3f7f0a"


def test_pods_that_cannot_be_those_of_a_node() -> None:
    with pytest.raises(InputError, match="the pods are of the nodes n1, n2; give those of one node"):
        running_pods(pods_from_manifests([living("a", node="n1"), living("b", node="n2")]))
    nameless = living("a")
    del nameless["metadata"]["uid"]
    with pytest.raises(InputError, match=r"pod a: has no metadata\.uid"):
        running_pods(pods_from_manifests([nameless]))
