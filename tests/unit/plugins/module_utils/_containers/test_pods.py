# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_containers/pods.py: what is read of a pod, of lists, workloads, a node's pods, and of
what the container runtime says.

What is wrong with a manifest is told in test_pods_bad_manifests.py; QoS classes are in _cgroup/test_kubepods_qos.py.
"""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._cgroup.kubepods import (
    BEST_EFFORT,
    BURSTABLE,
    GUARANTEED,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._containers.pods import (
    APP,
    INIT,
    SIDECAR,
    Container,
    Pod,
    container_ids,
    pod_from_manifest,
    pods_from_manifests,
    pods_of,
    read_containers,
    running_pods,
)

from .manifests import MINORS, container, manifest, resources

# --- what counts ------------------------------------------------------------------------------------


def asking(spec: dict[str, Any]) -> Pod:
    return pod_from_manifest({"metadata": {"name": "web"}, "spec": spec})


APPS = [container("a", 1), container("b", 2)]
SIDECAR_OF_ONE = container("proxy", 1, restartPolicy="Always")


@pytest.mark.parametrize(
    ("spec", "milli"),
    [
        ({"containers": APPS}, 3000),
        ({"containers": APPS, "initContainers": [container("i", 2), container("j", 1)]}, 3000),
        ({"containers": APPS, "initContainers": [container("i", 5)]}, 5000),
        # Sidecars run beside all that comes after them, and init containers one after the other.
        ({"containers": APPS, "initContainers": [SIDECAR_OF_ONE, container("i", 5), container("j", 4)]}, 6000),
        ({"containers": APPS, "initContainers": [container("i", 4), SIDECAR_OF_ONE]}, 4000),
        ({"containers": APPS, "overhead": {"cpu": "250m"}}, 3250),
        ({"containers": [{"name": "a"}]}, 0),
    ],
)
def test_the_request_of_a_pod(spec: dict[str, Any], milli: int) -> None:
    assert asking(spec).request("cpu", 36) == milli


def test_the_request_of_a_whole_pod() -> None:
    pod = asking({"containers": APPS, "resources": resources({"cpu": 5}, {"cpu": 5}), "overhead": {"cpu": 1}})
    # Older kubelets do not know of it.
    assert [pod.request("cpu", minor) for minor in (33, 34, 36)] == [4000, 6000, 6000]
    assert pod.request("memory", 36) == 0
    assert [pod.has_pod_level_resources(minor) for minor in (33, 34)] == [False, True]
    assert [pod.qos(minor) for minor in (33, 34)] == [BURSTABLE, BURSTABLE]
    whole = asking({"containers": [{"name": "a"}], "resources": resources(*[{"cpu": 5, "memory": "1Gi"}] * 2)})
    assert [whole.qos(minor) for minor in (33, 34)] == [BEST_EFFORT, GUARANTEED]


def test_resources_of_a_pod_that_are_none_for_pods() -> None:
    given = resources({"cpu": 1}, {"example.com/gpu": 1})
    both = asking({"containers": APPS, "resources": given}).pod_level
    assert both is not None
    assert (both[0]["cpu"], both[1]) == (1000, {"example.com/gpu": 1000})
    assert asking({"containers": APPS, "resources": resources({}, {"example.com/gpu": 1})}).pod_level is None


def test_what_a_pod_asks_for_beside_cpus_and_memory() -> None:
    apps = [
        {"name": "a", "resources": resources({}, {"cpu": 1, "memory": "1Gi", "example.com/gpu": 2})},
        {"name": "b", "resources": resources({}, {"hugepages-2Mi": "4Mi", "example.com/gpu": 0})},
    ]
    assert asking({"containers": apps}).further_resources() == ["example.com/gpu", "hugepages-2Mi"]


# --- what is read ---------------------------------------------------------------------------------


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
    assert (pod.node, pod.phase, pod.overhead) == ("", "", {})
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


# --- what a status says was allocated -------------------------------------------------------------


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


# --- Lists and workloads --------------------------------------------------------------------------


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


# --- the pods of a node ---------------------------------------------------------------------------


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


UID = "8dbda0f5-4d4c-4b9c-b4c2-5e8b0c7e7f4a"

# How containerd and CRI-O, with systemd and with cgroupfs, name the cgroup of a container.
PATHS = {
    "Guaranteed": [
        "kubepods-pod8dbda0f5_4d4c_4b9c_b4c2_5e8b0c7e7f4a.slice:cri-containerd:abc",
        "kubepods-pod8dbda0f5_4d4c_4b9c_b4c2_5e8b0c7e7f4a.slice:crio:abc",
        "/kubepods/pod8dbda0f5-4d4c-4b9c-b4c2-5e8b0c7e7f4a/abc",
        "/kubepods.slice/kubepods-pod8dbda0f5_4d4c_4b9c_b4c2_5e8b0c7e7f4a.slice/crio-abc.scope",
    ],
    "Burstable": [
        "kubepods-burstable-pod8dbda0f5_4d4c_4b9c_b4c2_5e8b0c7e7f4a.slice:cri-containerd:abc",
        "/kubepods/burstable/pod8dbda0f5-4d4c-4b9c-b4c2-5e8b0c7e7f4a/abc",
        "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod8dbda0f5.slice/crio-abc.scope",
    ],
    "BestEffort": [
        "kubepods-besteffort-pod8dbda0f5_4d4c_4b9c_b4c2_5e8b0c7e7f4a.slice:cri-containerd:abc",
        "/kubepods/besteffort/pod8dbda0f5-4d4c-4b9c-b4c2-5e8b0c7e7f4a/abc",
    ],
}


def inspected(
    name: str = "app",
    shares: Any = 2048,
    path: str = PATHS["Guaranteed"][0],
    uid: str = UID,
    created: str = "2026-11-21T10:15:00.1Z",
    state: str = "CONTAINER_RUNNING",
) -> dict[str, Any]:
    """Return what crictl inspect prints, as far as it is looked at."""
    labels = {
        "io.kubernetes.container.name": name,
        "io.kubernetes.pod.name": "db-0",
        "io.kubernetes.pod.namespace": "shop",
        "io.kubernetes.pod.uid": uid,
    }
    linux = {"cgroupsPath": path, "resources": {"cpu": {"shares": shares, "quota": 200000, "period": 100000}}}
    return {
        "status": {"id": "id-" + name, "labels": labels, "state": state, "createdAt": created},
        "info": {"pid": 4711, "runtimeSpec": {"linux": linux}},
    }


@pytest.mark.parametrize(("qos", "path"), [(qos, path) for qos, paths in PATHS.items() for path in paths])
def test_qos_class(qos: str, path: str) -> None:
    (container,) = read_containers([inspected(path=path)])
    assert container.qos_class == qos
    (pod,) = pods_of([container])
    assert (pod.uid, pod.name, pod.qos(35)) == (UID, "shop/db-0", qos)
    assert pod.exclusive_counts(35) == {"app": 2 if qos == "Guaranteed" else 0}


@pytest.mark.parametrize(("shares", "count"), [(1024, 1), (65536, 64), (1536, 0), (512, 0), (2, 0), (0, 0)])
def test_exclusive_cpus_are_whole_ones(shares: int, count: int) -> None:
    (pod,) = pods_of(read_containers([inspected(shares=shares)]))
    assert pod.exclusive_counts(35) == {"app": count}


def test_pods_and_containers_the_oldest_first() -> None:
    containers = read_containers(
        [
            inspected("c", uid="young", created="2026-11-21T12:00:00Z"),
            inspected("b", created="2026-11-21T11:00:00Z"),
            inspected("a", created="2026-11-21T10:00:00Z"),
            inspected("gone", state="CONTAINER_EXITED"),
            {"status": {"id": "x", "labels": {}, "state": "CONTAINER_RUNNING"}, "info": {}},  # no pod's
        ]
    )
    assert [(pod.uid, [container.name for container in pod.containers]) for pod in pods_of(containers)] == [
        (UID, ["a", "b"]),
        ("young", ["c"]),
    ]
    assert container_ids(containers) == {"id-a": (UID, "a"), "id-b": (UID, "b"), "id-c": ("young", "c")}


def without(data: dict[str, Any], *path: str) -> dict[str, Any]:
    inner = data
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    return data


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("text", "containers[0]: has no mapping status"),
        (without(inspected(), "status"), "containers[0]: has no mapping status"),
        (without(inspected(), "status", "labels"), "containers[0].status: has no mapping labels"),
        (
            without(inspected(), "status", "labels", "io.kubernetes.container.name"),
            "containers[0].status.labels: has no io.kubernetes.container.name",
        ),
        (without(inspected(), "info"), "containers[0]: has no mapping info"),
        (without(inspected(), "info", "runtimeSpec"), "containers[0].info: has no mapping runtimeSpec"),
        (inspected(path="/docker/abc"), "containers[0]: cgroupsPath '/docker/abc' is not below kubepods"),
        (inspected(shares="many"), "containers[0]: the CPU shares are 'many', not a whole number"),
    ],
)
def test_what_is_no_container(data: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_containers([data])
    assert str(caught.value).startswith(message)
