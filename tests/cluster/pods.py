# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Guaranteed pods of one test."""

from __future__ import annotations

from .api import Object
from .control_plane import ControlPlane
from .kubelet_node import wait_until


class Pods:
    """Pods in a namespace."""

    def __init__(self, control_plane: ControlPlane, namespace: str) -> None:
        self.control_plane, self.namespace = control_plane, namespace

    def run(self, name: str, cpu: str, node: str = "") -> Object:
        """A Guaranteed pod, when it was admitted or refused, on a node or any."""
        resources = {"limits": {"cpu": cpu, "memory": "1Mi"}}
        spec: Object = {"containers": [{"name": "main", "image": "main", "resources": resources}]}
        if node:
            spec["nodeSelector"] = {"kubernetes.io/hostname": node}
        metadata = {"name": name, "namespace": self.namespace}
        self.control_plane.apply({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
        wait_until(lambda: self.get(name)["status"]["phase"] != "Pending")
        return self.get(name)

    def get(self, name: str) -> Object:
        """A pod as it is."""
        (pod,) = self._named(name)
        return pod

    def exists(self, name: str) -> bool:
        """Whether there is such a pod."""
        return bool(self._named(name))

    def _named(self, name: str) -> list[Object]:
        options = ("--namespace=" + self.namespace, "--field-selector=metadata.name=" + name)
        return self.control_plane.objects("pods", *options)

    def phase(self, name: str) -> str:
        """Whether it runs, or failed."""
        return str(self.get(name)["status"]["phase"])

    def delete(self, name: str) -> None:
        """Remove a pod; it is gone then."""
        self.control_plane.kubectl("delete", "pod", name, "--namespace=" + self.namespace)
