# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a kubelet does with the API server: its Node, its Lease, and the status of its pods. No container runs.

As the real one does it: it makes its Node where there is none, and leaves a cordon as it is; it renews its Lease; it
tells of the pods that are bound to it that they run, or why they do not; and when the containers of a pod that is to go
have ended, it removes the pod.
Source: pkg/kubelet/kubelet_node_status.go, pkg/kubelet/status, pkg/kubelet/nodelease.
"""

from __future__ import annotations

import sys
import threading
import time
from datetime import datetime, timezone
from typing import Any, Mapping, NamedTuple, Sequence

from .api import API, APIError, Object

# An annotation: how many seconds the containers of a pod take to end, at most its grace period. Without it, none.
STOPPING_SECONDS = "cpu-manager.kubenode.test/stopping-seconds"

# What a static pod's twin on the API server has.
MIRROR = "kubernetes.io/config.mirror"

ADDRESS = "127.0.0.1"
_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
# Seconds: how long a lease is good, between two renewals, and between two looks at the pods.
_LEASE, _RENEWAL, _LOOK = 40, 10.0, 0.25


class Description(NamedTuple):
    """What a Node says of its machine. Amounts are by resource, as Kubernetes writes them.

    address, port: where its kubelet answers; 0 for one that does not.
    """

    name: str
    version: str
    capacity: Mapping[str, str]
    allocatable: Mapping[str, str]
    address: str = ADDRESS
    port: int = 0


class Refusal(NamedTuple):
    """Why a kubelet does not run a pod."""

    reason: str
    message: str


class PodHandler:
    """What of a kubelet decides on pods: here, that all run."""

    def admit(self, pod: Mapping[str, Any]) -> Refusal | None:  # noqa: ARG002, others look at it
        """Return why a pod is refused, None where it is not. This is asked of each pod once, and at a start first of
        those that run already."""
        return None

    def forget(self, uid: str) -> None:
        """Forget a pod; this is called for each pod that is gone."""

    def all_told(self) -> None:
        """Note that nothing is left to ask or tell; this is called each time when that is so."""


class NodeAgent:
    """The node of one kubelet. A context: there is a Node within, which is not ready until start() is called."""

    def __init__(
        self,
        api: API,
        description: Description,
        handler: PodHandler | None = None,
        static_pods: Sequence[Object] = (),
    ) -> None:
        """Make a node that runs `static_pods` by itself, and keeps their twins on the API server."""
        self.api = api
        self.description = description
        self._path = "/api/v1/nodes/" + description.name
        self._handler = handler or PodHandler()
        self._static_pods = static_pods
        self._started, self._stopping = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._work, name="node " + description.name, daemon=True)
        # What the API server was told: nothing yet, or whether the node is ready; and when the lease was renewed.
        self._told: bool | None = None
        self._renewed = -_RENEWAL
        # UIDs of pods: those that were admitted, and when the containers of those that are to go have ended.
        self._admitted: set[str] = set()
        self._ended: dict[str, float] = {}

    def __enter__(self) -> NodeAgent:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Fall silent, as a kubelet does that is stopped: the Node and its pods are left as they are."""
        self._stopping.set()
        self._thread.join()

    def start(self) -> None:
        """Be ready, and take care of pods."""
        self._started.set()

    def _work(self) -> None:
        with self.api:
            while not self._stopping.wait(_LOOK):
                try:
                    self._look()
                except (APIError, OSError) as error:  # the API server may be away
                    print("%s: %s" % (self.description.name, error), file=sys.stderr, flush=True)

    def _look(self) -> None:
        if self._told is None:
            self._register()
        ready = self._started.is_set()
        if self._told != ready:
            self._tell_ready(ready)
            self._told = ready
        if time.monotonic() - self._renewed >= _RENEWAL:
            self._renew_lease()
            self._renewed = time.monotonic()
        if ready:
            self._look_at_pods()

    # --- the node -------------------------------------------------------------------------------------

    def _register(self) -> None:
        name = self.description.name
        labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
        node = {"kind": "Node", "apiVersion": "v1", "metadata": {"name": name, "labels": labels}}
        try:
            self.api.create("/api/v1/nodes", node)
        except APIError as error:
            if error.status != 409:  # it is there already
                raise

    def _tell_ready(self, ready: bool) -> None:
        status = {
            "capacity": dict(self.description.capacity),
            "allocatable": dict(self.description.allocatable),
            "addresses": [
                {"type": "InternalIP", "address": self.description.address},
                {"type": "Hostname", "address": self.description.name},
            ],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": self.description.port}},
            "nodeInfo": {"kubeletVersion": self.description.version},
            "conditions": _conditions(ready),
        }
        self.api.patch(self._path + "/status", {"status": status})

    def _renew_lease(self) -> None:
        name = self.description.name
        spec = {"holderIdentity": name, "leaseDurationSeconds": _LEASE, "renewTime": _now(".%fZ")}
        try:
            self.api.patch("%s/%s" % (_LEASES, name), {"spec": spec})
        except APIError as error:
            if error.status != 404:
                raise
            self.api.create(_LEASES, {"metadata": {"name": name, "ownerReferences": [self._owner()]}, "spec": spec})

    def _owner(self) -> Object:
        """Return the node, as what belongs to it names it."""
        uid = self.api.get(self._path)["metadata"]["uid"]
        return {"apiVersion": "v1", "kind": "Node", "name": self.description.name, "uid": uid}

    # --- its pods -------------------------------------------------------------------------------------

    def _look_at_pods(self) -> None:
        selector = "spec.nodeName=" + self.description.name
        pods = self.api.get("/api/v1/pods", fieldSelector=selector)["items"]
        for uid in self._admitted - {pod["metadata"]["uid"] for pod in pods}:
            self._gone(uid)
        for pod in sorted(pods, key=lambda pod: str(pod["metadata"]["creationTimestamp"])):
            if "deletionTimestamp" in pod["metadata"]:
                self._end(pod)
            elif pod["status"]["phase"] in ("Pending", "Running"):
                self._run(pod)
        self._handler.all_told()
        names = {_path_of(pod) for pod in pods}
        for pod in self._static_pods:
            if _path_of(pod) not in names:
                self._mirror(pod)

    def _mirror(self, pod: Object) -> None:
        metadata = {**pod["metadata"], "ownerReferences": [{**self._owner(), "controller": True}]}
        metadata["annotations"] = {**metadata.get("annotations", {}), MIRROR: metadata.pop("uid")}
        spec = {**pod["spec"], "nodeName": self.description.name, "tolerations": [{"operator": "Exists"}]}
        path = "/api/v1/namespaces/%s/pods" % metadata["namespace"]
        self.api.create(path, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})

    def _run(self, pod: Object) -> None:
        uid = pod["metadata"]["uid"]
        if uid not in self._admitted:
            refusal = self._handler.admit(pod)
            if refusal is not None:
                self._tell(pod, {"phase": "Failed", **refusal._asdict()})
                return
            self._admitted.add(uid)
        if pod["status"]["phase"] == "Pending":
            self._tell(pod, _running(pod))

    def _end(self, pod: Object) -> None:
        metadata = pod["metadata"]
        grace = metadata.get("deletionGracePeriodSeconds", 0)
        stopping = float(metadata.get("annotations", {}).get(STOPPING_SECONDS, 0))
        ended = self._ended.setdefault(metadata["uid"], time.monotonic() + min(grace, stopping))
        if time.monotonic() >= ended:
            options = {"gracePeriodSeconds": 0, "preconditions": {"uid": metadata["uid"]}}
            self.api.delete(_path_of(pod), options)
            self._gone(metadata["uid"])

    def _gone(self, uid: str) -> None:
        self._admitted.discard(uid)
        self._ended.pop(uid, None)
        self._handler.forget(uid)

    def _tell(self, pod: Object, status: Mapping[str, Any]) -> None:
        self.api.patch(_path_of(pod) + "/status", {"status": status})


def _path_of(pod: Object) -> str:
    return "/api/v1/namespaces/%s/pods/%s" % (pod["metadata"]["namespace"], pod["metadata"]["name"])


def _conditions(ready: bool) -> list[Object]:
    """Return the conditions of a Node."""
    now = _now("Z")
    rows = [
        ("MemoryPressure", False, "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("DiskPressure", False, "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("PIDPressure", False, "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        ("Ready", True, "KubeletReady", "kubelet is posting ready status")
        if ready
        else ("Ready", False, "KubeletNotReady", "container runtime status check may not have completed yet"),
    ]
    return [
        {
            "type": kind,
            "status": str(status),
            "reason": reason,
            "message": message,
            "lastHeartbeatTime": now,
            "lastTransitionTime": now,
        }
        for kind, status, reason, message in rows
    ]


def _running(pod: Object) -> Object:
    """Return the status of a pod whose containers have all started."""
    now = _now("Z")
    containers = [
        {
            "name": container["name"],
            "image": container["image"],
            "imageID": container["image"],
            "containerID": "none://%s-%s" % (pod["metadata"]["uid"], container["name"]),
            "ready": True,
            "started": True,
            "restartCount": 0,
            "state": {"running": {"startedAt": now}},
        }
        for container in pod["spec"]["containers"]
    ]
    return {
        "phase": "Running",
        "startTime": now,
        "hostIP": ADDRESS,
        "podIP": ADDRESS,
        "podIPs": [{"ip": ADDRESS}],
        "containerStatuses": containers,
        "conditions": [
            {"type": kind, "status": "True", "lastTransitionTime": now}
            for kind in ("Initialized", "Ready", "ContainersReady")
        ],
    }


def _now(end: str) -> str:
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S" + end)
