# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/plugin_utils/pods_action.py: a node gets of pods what the verdict needs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._containers.inspect import read_containers
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._containers.pods import pods_from_manifests
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.pods_action import _OPTIONS, needed

SECRET = "hunter2"
CONTAINER: dict[str, Any] = {
    "name": "main",
    "image": SECRET,
    "args": [SECRET],
    "command": ["sh", "-c", SECRET],
    "env": [{"name": "TOKEN", "value": SECRET}],
    "livenessProbe": {"httpGet": {"httpHeaders": [{"name": "a", "value": SECRET}]}},
    "resources": {"requests": {"cpu": "2", "memory": "1Gi"}, "limits": {"cpu": 2, "memory": "1Gi"}, "claims": [SECRET]},
}
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "web",
        "namespace": "shop",
        "uid": "u-1",
        "creationTimestamp": "2026-11-21T10:15:00Z",
        "labels": {"a": SECRET},
        "annotations": {"kubernetes.io/config.mirror": "m-1", "kubectl.kubernetes.io/last-applied": SECRET},
        "managedFields": [{"x": SECRET}],
    },
    "spec": {
        "nodeName": "worker-1",
        "initContainers": [{**CONTAINER, "name": "first", "restartPolicy": "Always"}],
        "containers": [CONTAINER],
        "volumes": [{"name": "v", "csi": {"nodePublishSecretRef": {"name": SECRET}}}],
        "imagePullSecrets": [{"name": SECRET}],
        "resources": {"limits": {"cpu": "4"}},
    },
    "status": {
        "phase": "Running",
        "qosClass": "Guaranteed",
        "message": SECRET,
        "containerStatuses": [{"name": "main", "allocatedResources": {"cpu": "2"}, "state": {"waiting": SECRET}}],
    },
}
WORKLOAD = {
    "kind": "Deployment",
    "metadata": {"name": "web", "annotations": {"a": SECRET}},
    "spec": {"replicas": 2, "template": {"metadata": {"labels": {"a": SECRET}}, "spec": POD["spec"]}},
}
INSPECTED = {
    "status": {
        "id": "c1",
        "state": "CONTAINER_RUNNING",
        "createdAt": "2026-11-21T10:15:00Z",
        "labels": {
            "io.kubernetes.container.name": "main",
            "io.kubernetes.pod.name": "web",
            "io.kubernetes.pod.namespace": "shop",
            "io.kubernetes.pod.uid": "u-1",
        },
        "annotations": {"a": SECRET},
    },
    "info": {
        "config": {"envs": [{"key": "TOKEN", "value": SECRET}]},
        "runtimeSpec": {
            "process": {"env": [SECRET], "args": [SECRET]},
            "linux": {"cgroupsPath": "kubepods-podu1.slice:cri-containerd:c1", "resources": {"cpu": {"shares": 2048}}},
        },
    },
}


@pytest.mark.parametrize(
    "pods",
    [[POD], [WORKLOAD], [{"kind": "List", "items": [POD, {"kind": "PodList", "items": [WORKLOAD]}]}]],
    ids=["pod", "workload", "lists"],
)
def test_the_pods_are_the_same_and_without_secrets(pods: list[dict[str, Any]]) -> None:
    sent = needed(pods, _OPTIONS["pods"])
    assert SECRET not in json.dumps(sent)
    assert pods_from_manifests(sent) == pods_from_manifests(pods)


def test_the_containers_are_the_same_and_without_secrets() -> None:
    sent = needed([INSPECTED], _OPTIONS["containers"])
    assert SECRET not in json.dumps(sent)
    assert read_containers(sent) == read_containers([INSPECTED])


@pytest.mark.parametrize(
    "pod",
    [
        {**POD, "spec": SECRET},
        {**POD, "spec": [SECRET]},
        {**POD, "metadata": {"name": {"x": 1}}},
        {**POD, "spec": {"containers": {"main": CONTAINER}}},
        {**POD, "spec": {"containers": [SECRET]}},
        {"kind": "List", "items": SECRET},
    ],
)
def test_a_wrong_type_is_refused_all_the_same(pod: dict[str, Any]) -> None:
    sent = needed([pod], _OPTIONS["pods"])
    assert SECRET not in json.dumps(sent)
    with pytest.raises(InputError) as before:
        pods_from_manifests([pod])
    with pytest.raises(InputError) as after:
        pods_from_manifests(sent)
    assert str(after.value).partition(", but")[0] == str(before.value).partition(", but")[0]
