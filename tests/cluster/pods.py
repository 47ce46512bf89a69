# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Pods of one test."""

from __future__ import annotations

from typing import Any

from ansible_collections.kubenode.cpu_manager.tests.support import kubernetes

from .api import Object
from .control_plane import ControlPlane
from .kubelet_node import wait_until
from .node import STOPPING_SECONDS

# Seconds that a pod has to stop, unless it says more.
_GRACE = 30


class Pods:
    """Pods in a namespace."""

    def __init__(self, control_plane: ControlPlane, namespace: str) -> None:
        self.control_plane, self.namespace = control_plane, namespace
        self.option = "--namespace=" + namespace

    def run(self, name: str, cpu: str, node: str = "") -> Object:
        """Return a Guaranteed pod, when it was admitted or refused, on a node or any."""
        self.apply("v1", "Pod", name, **_pod_spec("main", cpu, node))
        wait_until(lambda: self.get(name)["status"]["phase"] != "Pending")
        return self.get(name)

    def deploy(self, kind: str, name: str, cpu: str = "", node: str = "", stopping: int = 0, **spec: Any) -> None:
        """Make a Deployment or a DaemonSet, on one node or all, and wait until its pods run.

        Its pods take so many seconds to stop, and are Guaranteed where they get CPUs.
        """
        labels, annotations = {"app": name}, {STOPPING_SECONDS: str(stopping)}
        pod = {**_pod_spec(name, cpu, node), "terminationGracePeriodSeconds": max(_GRACE, stopping)}
        template = {"metadata": {"labels": labels, "annotations": annotations}, "spec": pod}
        self.apply("apps/v1", kind, name, selector={"matchLabels": labels}, template=template, **spec)
        if kind == "DaemonSet":
            # While the controller counts no node yet, there would be nothing to wait for.
            count = "--output=jsonpath={.status.desiredNumberScheduled}"
            wait_until(lambda: int(self.control_plane.kubectl("get", kind, name, self.option, count) or 0))
        self.control_plane.kubectl("rollout", "status", "%s/%s" % (kind, name), "--timeout=60s", self.option)

    def allow(self, name: str, **budget: int) -> None:
        """Make a PodDisruptionBudget for a Deployment, and wait until it counts."""
        version = kubernetes.api(
            "PodDisruptionBudget", kubernetes.version_of(self.control_plane.programs / "kube-apiserver")
        )
        self.apply(version, "PodDisruptionBudget", name, selector={"matchLabels": {"app": name}}, **budget)
        observed = "--output=jsonpath={.status.observedGeneration}"
        wait_until(lambda: self.control_plane.kubectl("get", "pdb", name, self.option, observed))

    def apply(self, version: str, kind: str, name: str, **spec: Any) -> None:
        """Make an object of the namespace."""
        metadata = {"name": name, "namespace": self.namespace}
        self.control_plane.apply({"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec})

    def on(self, node: str) -> dict[str, bool]:
        """Return {name: whether it is to stay} of the pods of a node."""
        pods = self.control_plane.objects("pods", self.option, "--field-selector=spec.nodeName=" + node)
        return {pod["metadata"]["name"]: "deletionTimestamp" not in pod["metadata"] for pod in pods}

    def get(self, name: str) -> Object:
        """Return a pod as it is."""
        (pod,) = self._named(name)
        return pod

    def exists(self, name: str) -> bool:
        """Return whether there is such a pod."""
        return bool(self._named(name))

    def _named(self, name: str) -> list[Object]:
        return self.control_plane.objects("pods", self.option, "--field-selector=metadata.name=" + name)

    def phase(self, name: str) -> str:
        """Return whether it runs, or failed."""
        return str(self.get(name)["status"]["phase"])

    def delete(self, name: str) -> None:
        """Remove a pod; it is gone then."""
        self.control_plane.kubectl("delete", "pod", name, self.option)


def _pod_spec(container: str, cpu: str, node: str) -> Object:
    resources = {"limits": {"cpu": cpu, "memory": "1Mi"}} if cpu else {}
    spec: Object = {"containers": [{"name": container, "image": container, "resources": resources}]}
    if node:
        spec["nodeSelector"] = {"kubernetes.io/hostname": node}
    return spec
