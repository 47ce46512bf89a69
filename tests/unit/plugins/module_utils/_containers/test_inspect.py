# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_containers/inspect.py."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._containers.inspect import (
    container_ids,
    pods_of,
    read_containers,
)

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
    """What crictl inspect prints, as far as it is looked at."""
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
