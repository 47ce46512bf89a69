# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Pods as Kubernetes manifests give them, as far as the CPU manager looks at them.

Source: pkg/apis/core/v1/helper/qos and guaranteedCPUs in pkg/kubelet/cm/cpumanager/policy_static.go.
"""

from __future__ import annotations

from typing import Any, Iterable, Mapping, NamedTuple

from ..errors import InputError
from ..quantity import millis

GUARANTEED = "Guaranteed"
BURSTABLE = "Burstable"
BEST_EFFORT = "BestEffort"

APP = "app"
INIT = "init"
SIDECAR = "sidecar"  # an init container that is restarted always

# What decides on the QoS class.
_QOS_RESOURCES = ("cpu", "memory")
_MILLI = 1000

# From this minor version on, pod-level resources decide; up to the other one, what a running container was given.
_POD_LEVEL_SINCE = 34
_ALLOCATED_UNTIL = 34

Resources = Mapping[str, int]


class Container(NamedTuple):
    """A container: its kind and what it asks for, in thousandths."""

    name: str
    kind: str
    requests: Resources
    limits: Resources
    # What its status says was allocated; None without such a status.
    allocated_cpu: int | None = None


class Pod(NamedTuple):
    """A pod: init containers in order, then app containers in order."""

    uid: str
    name: str
    containers: tuple[Container, ...]
    # The class that its status names, else None.
    qos_class: str | None = None
    # (requests, limits) of the pod as a whole.
    pod_level: tuple[Resources, Resources] | None = None

    def qos(self, minor: int) -> str:
        """The QoS class, as the kubelet 1.`minor` sees it."""
        if self.qos_class:
            return self.qos_class
        if self.pod_level and minor >= _POD_LEVEL_SINCE:
            return _qos([self.pod_level])
        return _qos([(container.requests, container.limits) for container in self.containers])

    def has_pod_level_resources(self, minor: int) -> bool:
        """Whether the static policy leaves the pod alone, because its resources are those of the whole pod."""
        return self.pod_level is not None and minor >= _POD_LEVEL_SINCE

    def exclusive_counts(self, minor: int) -> dict[str, int]:
        """{container: how many CPUs it is to have for itself}, in order; 0 for one that uses the shared pool."""
        if self.qos(minor) != GUARANTEED:
            return {container.name: 0 for container in self.containers}
        return {container.name: _exclusive_count(container, minor) for container in self.containers}


def _qos(resources: Iterable[tuple[Resources, Resources]]) -> str:
    requested: dict[str, int] = {}
    limited: dict[str, int] = {}
    all_limited = True
    for requests, limits in resources:
        for amounts, total in ((requests, requested), (limits, limited)):
            for name in _QOS_RESOURCES:
                if amounts.get(name, 0) > 0:
                    total[name] = total.get(name, 0) + amounts[name]
        all_limited = all_limited and all(limits.get(name, 0) > 0 for name in _QOS_RESOURCES)
    if not requested and not limited:
        return BEST_EFFORT
    return GUARANTEED if all_limited and requested == limited else BURSTABLE


def _exclusive_count(container: Container, minor: int) -> int:
    milli = container.requests.get("cpu", 0)
    if container.allocated_cpu is not None and minor <= _ALLOCATED_UNTIL:
        milli = container.allocated_cpu
    return 0 if milli % _MILLI else milli // _MILLI


# --- manifests -----------------------------------------------------------------------------------


def pod_from_manifest(manifest: Mapping[str, Any], as_admitted: bool = True) -> Pod:
    """Read a Pod. Raises InputError, which names the pod and the field.

    as_admitted: fill in what the API server does, a request for each limit that has none.
    """
    metadata = _mapping(manifest.get("metadata"), "metadata")
    spec = _mapping(manifest.get("spec"), "spec")
    status = _mapping(manifest.get("status"), "status")
    name = str(metadata.get("name") or metadata.get("uid") or "")
    if not name:
        raise InputError("a pod has neither a name nor a UID in its metadata")
    if metadata.get("namespace"):
        name = "%s/%s" % (metadata["namespace"], name)
    try:
        statuses = _statuses(status)
        containers = [
            _container(one, kind, statuses, as_admitted)
            for field, kind in (("initContainers", INIT), ("containers", APP))
            for one in spec.get(field) or ()
        ]
        if not containers:
            raise InputError("spec.containers is empty")
        pod_level = spec.get("resources")
        return Pod(
            str(metadata.get("uid") or name),
            name,
            tuple(containers),
            status.get("qosClass"),
            _resources(pod_level, "spec.resources", as_admitted) if pod_level else None,
        )
    except InputError as error:
        raise InputError("pod %s: %s" % (name, error)) from error


def pods_from_manifests(manifests: Iterable[Mapping[str, Any]]) -> list[Pod]:
    """Read Pods, Lists, and workloads with a template, of which each replica is a pod.

    Raises InputError, also for a UID that two pods have.
    """
    pods: list[Pod] = []
    for manifest in manifests:
        _mapping(manifest, "a manifest")
        if str(manifest.get("kind", "")).endswith("List"):
            pods += pods_from_manifests(manifest.get("items") or ())
        elif isinstance(_mapping(manifest.get("spec"), "spec").get("template"), Mapping):
            pods += _replicas(manifest)
        else:
            pods.append(pod_from_manifest(manifest))
    seen: set[str] = set()
    for pod in pods:
        if pod.uid in seen:
            raise InputError("two pods have the UID %s; give each its own, or another name" % pod.uid)
        seen.add(pod.uid)
    return pods


def _replicas(manifest: Mapping[str, Any]) -> list[Pod]:
    metadata = _mapping(manifest.get("metadata"), "metadata")
    count = manifest["spec"].get("replicas", 1)
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        raise InputError(
            "%s %s: spec.replicas is %r, not a count" % (manifest.get("kind"), metadata.get("name"), count)
        )
    return [
        pod_from_manifest(
            {
                **manifest["spec"]["template"],
                "metadata": {"name": "%s-%d" % (metadata.get("name"), number), "namespace": metadata.get("namespace")},
            }
        )
        for number in range(count)
    ]


def _container(data: Mapping[str, Any], kind: str, allocated: Mapping[str, int | None], as_admitted: bool) -> Container:
    name = _mapping(data, "a container").get("name")
    if not name:
        raise InputError("a container has no name")
    if kind == INIT and data.get("restartPolicy") == "Always":
        kind = SIDECAR
    requests, limits = _resources(data.get("resources"), "resources of container %s" % name, as_admitted)
    return Container(str(name), kind, requests, limits, allocated.get(str(name)))


def _resources(data: Any, where: str, as_admitted: bool) -> tuple[Resources, Resources]:
    data = _mapping(data, where)
    amounts: list[dict[str, int]] = []
    for field in ("requests", "limits"):
        amounts.append({})
        for resource, quantity in _mapping(data.get(field), "%s, %s" % (where, field)).items():
            try:
                amounts[-1][str(resource)] = millis(quantity)
            except InputError as error:
                raise InputError("%s, %s, %s: %s" % (where, field, resource, error)) from error
    requests, limits = amounts
    return ({**limits, **requests} if as_admitted else requests), limits


def _statuses(status: Mapping[str, Any]) -> dict[str, int | None]:
    allocated: dict[str, int | None] = {}
    for field in ("initContainerStatuses", "containerStatuses"):
        for one in status.get(field) or ():
            resources = one.get("allocatedResources")
            if resources is not None:
                # A status that has no cpu counts as none.
                allocated[str(one.get("name"))] = millis(resources.get("cpu", 0))
    return allocated


def _mapping(data: Any, where: str) -> Mapping[str, Any]:
    if data is None:
        return {}
    if not isinstance(data, Mapping):
        raise InputError("%s is not a mapping, but %r" % (where, data))
    return data
