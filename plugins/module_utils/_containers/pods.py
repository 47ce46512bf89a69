# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Pods as far as the CPU manager looks at them: as manifests give them, and as the container runtime describes them.

The runtime's is the output of C(crictl inspect) for each container.

Sources: pkg/apis/core/v1/helper/qos and guaranteedCPUs in pkg/kubelet/cm/cpumanager/policy_static.go; the labels in
pkg/kubelet/types/labels.go, the names of cgroups in pkg/kubelet/cm/cgroup_manager_linux.go.
"""

from __future__ import annotations

import re
from collections import Counter
from types import MappingProxyType
from typing import Any, Iterable, Iterator, Mapping, NamedTuple, Sequence

from .._base.errors import InputError
from .._base.quantity import millis
from .._cgroup.kubepods import BEST_EFFORT, BURSTABLE, GUARANTEED

APP = "app"
INIT = "init"
SIDECAR = "sidecar"  # an init container that is restarted always

# What decides on the QoS class.
_QOS_RESOURCES = ("cpu", "memory")
_MILLI = 1000

_ENDED = ("Succeeded", "Failed")
_MIRROR = "kubernetes.io/config.mirror"

# Above what any node runs, so a typing error cannot ask for a billion pods.
MOST_REPLICAS = 10000
# In one pod: an API server takes an object of 1.5 MB, which has no room for as many. In all that is read at once: what
# a few characters of a workload stand for is counted, too.
MOST_CONTAINERS, MOST_CONTAINERS_IN_ALL = 10000, 100000

# From this minor version on, pod-level resources decide; up to the other one, what a running container was given.
_POD_LEVEL_SINCE = 34
_ALLOCATED_UNTIL = 34
_DIVIDED_SINCE = 36

_KINDS = {"initContainers": INIT, "containers": APP}
_NO_MORE = object()

Resources = Mapping[str, int]
_NOTHING: Resources = MappingProxyType({})


class Container(NamedTuple):
    """A container: its kind and what it asks for, in thousandths."""

    name: str
    kind: str
    requests: Resources
    limits: Resources
    # What its status says was allocated of CPU and memory; None without such a status.
    allocated: Resources | None = None

    @property
    def allocated_cpu(self) -> int | None:
        """That of CPU; a status that has none counts as 0."""
        return None if self.allocated is None else self.allocated.get("cpu", 0)

    @property
    def is_guaranteed(self) -> bool:
        """Whether it asks for CPU and memory, and for no less than its limits."""
        pairs = [(self.requests.get(name, 0), self.limits.get(name, 0)) for name in _QOS_RESOURCES]
        return all(limit and request == limit for request, limit in pairs)


class Pod(NamedTuple):
    """A pod: init containers in order, then app containers in order."""

    uid: str
    name: str
    containers: tuple[Container, ...]
    # The class that its status names, else None.
    qos_class: str | None = None
    # (requests, limits) of the pod as a whole.
    pod_level: tuple[Resources, Resources] | None = None
    # What the API server says of it; empty where the manifest does not.
    created: str = ""
    node: str = ""
    phase: str = ""
    # What its sandbox takes beside its containers.
    overhead: Resources = _NOTHING
    # Whether drivers of DRA give it something.
    claims: bool = False
    # Whether it is of a file of the node.
    is_static: bool = False
    # Whether the kubelet's gates PodLevelResources and PodLevelResourceManagers are on; None: as in its version.
    has_pod_level_gate: bool | None = None
    has_managers_gate: bool = False

    @property
    def has_ended(self) -> bool:
        """Whether nothing of it will run again, so that it keeps nothing."""
        return self.phase in _ENDED

    def request(self, resource: str, minor: int) -> int:
        """Return what the scheduler and the admission of the kubelet 1.`minor` count for it, in thousandths.

        Source: PodRequests in k8s.io/component-helpers/resource.
        """
        if self.pod_level and self._counts_as_whole(minor) and resource in self.pod_level[0]:
            return self.pod_level[0][resource] + self.overhead.get(resource, 0)
        amounts = {container.name: container.requests.get(resource, 0) for container in self.containers}
        for container in self.containers if resource == "cpu" else ():
            # A container that is being resized counts with what it has, if that is more.
            if container.kind != INIT:
                amounts[container.name] = max(amounts[container.name], container.allocated_cpu or 0)
        return self.at_once(amounts) + self.overhead.get(resource, 0)

    def limit_as_whole(self, resource: str, minor: int) -> int:
        """Return what limits all its containers together, and each without a limit of its own, in thousandths; 0 for
        nothing.

        Source: getCPULimit in pkg/kubelet/kuberuntime/kuberuntime_container_linux.go.
        """
        return self.pod_level[1].get(resource, 0) if self.pod_level and self._counts_as_whole(minor) else 0

    def limit(self, resource: str, minor: int) -> int | None:
        """Return what it may use at most, in thousandths; None where that is not limited.

        Source: PodLimits in k8s.io/component-helpers/resource.
        """
        if self.pod_level and self._counts_as_whole(minor) and resource in self.pod_level[1]:
            return self.pod_level[1][resource] + self.overhead.get(resource, 0)
        amounts = {container.name: container.limits.get(resource, 0) for container in self.containers}
        sidecars = 0
        for container in self.containers:
            amount = amounts[container.name]
            # An init container counts together with the sidecars before it.
            if not amount and (container.kind == APP or not sidecars):
                return None
            sidecars += amount if container.kind == SIDECAR else 0
        return self.at_once(amounts) + self.overhead.get(resource, 0)

    def at_once(self, amounts: Mapping[str, int]) -> int:
        """Return what it needs at once where its containers need so much each: init containers run one after the
        other."""
        sidecars = most = 0
        for container in self.containers:
            if container.kind == INIT:
                most = max(most, sidecars + amounts[container.name])
            else:
                # Sidecars run beside the init containers after them; app containers come after all of these.
                sidecars += amounts[container.name]
        return max(most, sidecars)

    def further_resources(self) -> list[str]:
        """Return what it asks for beside CPUs and memory, such as huge pages and devices, each as often as it does."""
        amounts = [container.requests for container in self.containers]
        given = (*amounts, *(self.pod_level or ()))
        return [
            name for requests in given for name, amount in requests.items() if amount and name not in _QOS_RESOURCES
        ]

    def qos(self, minor: int) -> str:
        """Return the QoS class, as the kubelet 1.`minor` sees it."""
        if self.qos_class:
            return self.qos_class
        if self.pod_level and self._counts_as_whole(minor):
            return _qos([self.pod_level])
        return _qos([(container.requests, container.limits) for container in self.containers])

    def has_pod_level_resources(self, minor: int) -> bool:
        """Return whether the static policy leaves the pod alone, because its resources are those of the whole pod."""
        # From 1.36 on whatever the gate PodLevelResources.
        is_looked_at = minor >= (_POD_LEVEL_SINCE if self._counts_as_whole(minor) else _DIVIDED_SINCE)
        return self.pod_level is not None and is_looked_at and not self.has_managers_gate

    def _counts_as_whole(self, minor: int) -> bool:
        """Return whether resources of the whole pod count at all: before 1.34 the gate is off, and the managers know
        nothing of it."""
        return minor >= _POD_LEVEL_SINCE if self.has_pod_level_gate is None else self.has_pod_level_gate

    @property
    def is_divided(self) -> bool:
        """Whether the managers look into the pod for containers that have something of their own."""
        return self.pod_level is not None and self.has_managers_gate and self.has_pod_level_gate is not False

    def count_as_whole(self, minor: int) -> int:
        """Return how many CPUs a pod that is divided is to have; 0 for one that uses the shared pool.

        Source: podGuaranteedCPUs in pkg/kubelet/cm/cpumanager/policy_static.go of 1.36.
        """
        if not self.is_divided or self.pod_level is None or self.qos(minor) != GUARANTEED:
            return 0
        return _whole(self.pod_level[0].get("cpu", 0))

    def as_allocated(self) -> Pod:
        """Return the pod as a kubelet that starts admits it: with what its containers were allocated before any resize.

        Source: UpdatePodFromAllocation in pkg/kubelet/allocation/allocation_manager.go.
        """
        containers = []
        for container in self.containers:
            requests, limits, given = container.requests, container.limits, container.allocated or {}
            # What is Guaranteed stays so.
            equal = {name: amount for name, amount in given.items() if requests.get(name) == limits.get(name)}
            containers.append(container._replace(requests={**requests, **given}, limits={**limits, **equal}))
        return self._replace(containers=tuple(containers))

    def exclusive_counts(self, minor: int) -> dict[str, int]:
        """Return {container: how many CPUs it is to have for itself}, in order; 0 for one that uses the shared pool."""
        if self.has_pod_level_resources(minor) or self.qos(minor) != GUARANTEED:
            return {container.name: 0 for container in self.containers}
        return {
            container.name: 0 if self.is_divided and not container.is_guaranteed else _exclusive_count(container, minor)
            for container in self.containers
        }


def _qos(resources: Sequence[tuple[Resources, Resources]]) -> str:
    guaranteed = nothing = True
    for name in _QOS_RESOURCES:
        requested = limited = 0
        for requests, limits in resources:
            request, limit = requests.get(name, 0), limits.get(name, 0)
            requested += request
            limited += limit
            guaranteed = guaranteed and limit > 0
        guaranteed = guaranteed and requested == limited
        nothing = nothing and not requested and not limited
    if nothing:
        return BEST_EFFORT
    return GUARANTEED if guaranteed else BURSTABLE


def _exclusive_count(container: Container, minor: int) -> int:
    milli = container.requests.get("cpu", 0)
    if container.allocated_cpu is not None and minor <= _ALLOCATED_UNTIL:
        milli = container.allocated_cpu
    return _whole(milli)


def _whole(milli: int) -> int:
    return 0 if milli % _MILLI else milli // _MILLI


# --- manifests -----------------------------------------------------------------------------------


def pod_from_manifest(manifest: Mapping[str, object], as_admitted: bool = True) -> Pod:
    """Read a Pod. Raises InputError, which names the pod and the field.

    as_admitted: fill in what the API server does, a request for each limit that has none.
    """
    metadata = _mapping(_mapping(manifest, "a pod").get("metadata"), "a pod's metadata")
    name = _text(metadata.get("name"), "a pod's metadata.name") or _text(metadata.get("uid"), "a pod's metadata.uid")
    if not name:
        raise InputError("a pod has neither a name nor a UID in its metadata")
    try:
        namespace = _text(metadata.get("namespace"), "metadata.namespace")
        name = "%s/%s" % (namespace, name) if namespace else name
        # The kubelet has another UID for a static pod than its mirror on the API server has.
        annotations = _mapping(metadata.get("annotations"), "metadata.annotations")
        uid = _text(annotations.get(_MIRROR), _MIRROR) or _text(metadata.get("uid"), "metadata.uid")
        return _pod(manifest, name, uid or name, as_admitted)
    except InputError as error:
        raise error.within("pod %s" % name) from error


def pods_from_manifests(manifests: Iterable[Mapping[str, object]]) -> list[Pod]:
    """Read Pods, Lists, and workloads with a template, of which each replica is a pod.

    Raises InputError, also for a UID that two pods have, and for more containers than MOST_CONTAINERS_IN_ALL.
    """
    pods: list[Pod] = []
    waiting = [iter(manifests)]
    count = 0
    seen: set[str] = set()
    while waiting:
        data = next(waiting[-1], _NO_MORE)
        if data is _NO_MORE:
            waiting.pop()
            continue
        manifest = _mapping(data, "a manifest")
        spec = manifest.get("spec")
        if str(manifest.get("kind", "")).endswith("List"):
            waiting.append(iter(_list(manifest.get("items"), "items")))
            continue
        has_replicas = isinstance(spec, Mapping) and isinstance(spec.get("template"), Mapping)
        for pod in _replicas(manifest, spec) if has_replicas else [pod_from_manifest(manifest)]:
            count += len(pod.containers)
            if count > MOST_CONTAINERS_IN_ALL:
                raise InputError(
                    "the manifests have more than %d containers" % MOST_CONTAINERS_IN_ALL,
                    remedy="give those of fewer pods, or fewer replicas",
                )
            if pod.uid in seen:
                raise InputError("two pods have the UID %s" % pod.uid, remedy="give each its own, or another name")
            seen.add(pod.uid)
            pods.append(pod)
    return pods


def running_pods(pods: Sequence[Pod]) -> list[Pod]:
    """Return the pods of one node that have not ended, the oldest first, as the kubelet takes them up when it starts.

    Raises InputError for a pod without a UID, and for pods of several nodes.
    """
    nodes = sorted({pod.node for pod in pods if pod.node})
    if len(nodes) > 1:
        raise InputError("the pods are of the nodes %s" % ", ".join(nodes), remedy="give those of one node")
    running = [pod for pod in pods if not pod.has_ended]
    for pod in running:
        if pod.uid == pod.name:
            raise InputError(
                "has no metadata.uid", where="pod %s" % pod.name, remedy="take the pods from the API server"
            )
    return in_order_of_start(running)


def in_order_of_start(pods: Iterable[Pod]) -> list[Pod]:
    """Return pods as a kubelet that starts admits them: those of its files first, of both the oldest first.

    Source: HandlePodAdditions in pkg/kubelet/kubelet.go, PodsByCreationTime in pkg/kubelet/util/sliceutils.
    """
    return sorted(pods, key=lambda pod: (not pod.is_static, pod.created))


def _replicas(manifest: Mapping[str, object], spec: Any) -> Iterator[Pod]:
    metadata = _mapping(manifest.get("metadata"), "a workload's metadata")
    name = _text(metadata.get("name"), "a workload's metadata.name")
    if not name:
        raise InputError("a workload has no name in its metadata")
    count = spec.get("replicas", 1)
    if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= MOST_REPLICAS:
        raise InputError(
            "spec.replicas is %r, not a count up to %d" % (count, MOST_REPLICAS),
            where="%s %s" % (manifest.get("kind"), name),
        )
    for number in range(count):
        identity = {"name": "%s-%d" % (name, number), "namespace": metadata.get("namespace")}
        yield pod_from_manifest({**spec["template"], "metadata": identity})


def _pod(manifest: Mapping[str, object], name: str, uid: str, as_admitted: bool) -> Pod:
    spec = _mapping(manifest.get("spec"), "spec")
    status = _mapping(manifest.get("status"), "status")
    allocated = _allocated(status)
    lists = {field: _list(spec.get(field), "spec." + field) for field in _KINDS}
    if sum(map(len, lists.values())) > MOST_CONTAINERS:
        raise InputError("has more than %d containers" % MOST_CONTAINERS)
    containers = tuple(
        _container(container, "spec.%s[%d]" % (field, number), kind, allocated, as_admitted)
        for field, kind in _KINDS.items()
        for number, container in enumerate(lists[field])
    )
    if not any(container.kind == APP for container in containers):
        raise InputError("spec.containers is empty")
    for container_name, times in Counter(container.name for container in containers).items():
        if times > 1:
            raise InputError("two containers are named %s" % container_name)
    qos_class = _text(status.get("qosClass"), "status.qosClass") or None
    if qos_class not in (None, GUARANTEED, BURSTABLE, BEST_EFFORT):
        raise InputError("status.qosClass is %s, which is no QoS class" % qos_class)
    pod_level = _resources(spec.get("resources"), "spec.resources", as_admitted)
    return Pod(
        uid,
        name,
        containers,
        qos_class,
        pod_level if any(map(_is_for_pods, pod_level)) else None,
        _text(_mapping(manifest.get("metadata"), "metadata").get("creationTimestamp"), "metadata.creationTimestamp"),
        _text(spec.get("nodeName"), "spec.nodeName"),
        _text(status.get("phase"), "status.phase"),
        _amounts(spec.get("overhead"), "spec.overhead"),
        bool(_list(spec.get("resourceClaims"), "spec.resourceClaims")),
        _MIRROR in _mapping(_mapping(manifest.get("metadata"), "metadata").get("annotations"), "metadata.annotations"),
    )


def _is_for_pods(resources: Resources) -> bool:
    return any(name in _QOS_RESOURCES or name.startswith("hugepages-") for name in resources)


def _container(data: Any, where: str, kind: str, allocated: Mapping[str, Resources], as_admitted: bool) -> Container:
    name = _text(_mapping(data, where).get("name"), where + ".name")
    if not name:
        raise InputError("%s has no name" % where)
    if kind == INIT and data.get("restartPolicy") == "Always":
        kind = SIDECAR
    requests, limits = _resources(data.get("resources"), "container %s, resources" % name, as_admitted)
    return Container(name, kind, requests, limits, allocated.get(name))


def _resources(data: object, where: str, as_admitted: bool) -> tuple[Resources, Resources]:
    data = _mapping(data, where)
    requests, limits = (_amounts(data.get(field), "%s.%s" % (where, field)) for field in ("requests", "limits"))
    return ({**limits, **requests} if as_admitted else requests), limits


def _amounts(data: object, where: str) -> dict[str, int]:
    return {str(name): _amount(quantity, "%s.%s" % (where, name)) for name, quantity in _mapping(data, where).items()}


def _amount(quantity: object, where: str) -> int:
    try:
        amount = millis(quantity)
    except InputError as error:
        raise error.within(where) from error
    if amount < 0:
        raise InputError("%s is less than nothing" % quantity, where=where)
    return amount


def _allocated(status: Mapping[str, object]) -> dict[str, Resources]:
    """Return {container: the CPU and memory that its status says were allocated}."""
    allocated: dict[str, Resources] = {}
    for field in ("initContainerStatuses", "containerStatuses"):
        for number, entry in enumerate(_list(status.get(field), "status." + field)):
            where = "status.%s[%d]" % (field, number)
            resources = _mapping(entry, where).get("allocatedResources")
            if resources is not None:
                where_resources = where + ".allocatedResources"
                amounts = _mapping(resources, where_resources)
                given = {name: amounts[name] for name in _QOS_RESOURCES if name in amounts}
                allocated[_text(entry.get("name"), where + ".name")] = _amounts(given, where_resources)
    return allocated


def _mapping(data: object, where: str) -> Mapping[str, object]:
    if data is None:
        return {}
    if not isinstance(data, Mapping):
        raise InputError("%s is not a mapping, but %r" % (where, data))
    return data


def _list(data: object, where: str) -> Sequence[Any]:
    if data is None:
        return ()
    if not isinstance(data, (list, tuple)):
        raise InputError("%s is not a list, but %r" % (where, data))
    return data


def _text(data: object, where: str) -> str:
    """Return a name; YAML may have read it as a number."""
    if data is None:
        return ""
    if isinstance(data, bool) or not isinstance(data, (str, int, float)):
        raise InputError("%s is not a text, but %r" % (where, data))
    return str(data)


# --- as the container runtime describes them -----------------------------------------------------------


RUNNING = "CONTAINER_RUNNING"

_UID = "io.kubernetes.pod.uid"
_POD = "io.kubernetes.pod.name"
_NAMESPACE = "io.kubernetes.pod.namespace"
_NAME = "io.kubernetes.container.name"

# kubepods-burstable-pod<uid>.slice:cri-containerd:<id>, /kubepods/burstable/pod<uid>/<id>
_QOS = re.compile(r"kubepods(?:\.slice)?[-/](?:kubepods-)?(burstable|besteffort)?")
_QOS_CLASSES = {None: GUARANTEED, "burstable": BURSTABLE, "besteffort": BEST_EFFORT}

# What the kubelet makes of one CPU.
_SHARES_PER_CPU = 1024

_WHOLE = "give the whole output of crictl inspect"


class RuntimeContainer(NamedTuple):
    """One running container."""

    id: str
    name: str
    pod_uid: str
    pod_name: str
    qos_class: str
    shares: int
    created: str


def read_containers(inspected: Iterable[object]) -> list[RuntimeContainer]:
    """Return the running containers, the oldest first. Raises InputError, which names the container and the member."""
    found = [_inspected(number, data) for number, data in enumerate(inspected)]
    return sorted((container for container in found if container is not None), key=lambda container: container.created)


def pods_of(containers: Iterable[RuntimeContainer]) -> list[Pod]:
    """Return their pods, as far as the static policy looks at them, in the order of the oldest container."""
    by_pod: dict[str, list[RuntimeContainer]] = {}
    for container in containers:
        by_pod.setdefault(container.pod_uid, []).append(container)
    return [
        Pod(uid, group[0].pod_name, tuple(_as_specified(container) for container in group), group[0].qos_class)
        for uid, group in by_pod.items()
    ]


def container_ids(containers: Iterable[RuntimeContainer]) -> dict[str, tuple[str, str]]:
    """Return {container id: (pod UID, container name)}"""
    return {container.id: (container.pod_uid, container.name) for container in containers}


def _as_specified(container: RuntimeContainer) -> Container:
    # A request of whole CPUs is a whole multiple of shares; any other need not be exact here.
    cpu = {"cpu": container.shares * _MILLI // _SHARES_PER_CPU}
    return Container(container.name, APP, cpu, cpu)


def _inspected(number: int, data: object) -> RuntimeContainer | None:
    where = "containers[%d]" % number
    status = _member(data, "status", where)
    labels = _member(status, "labels", where + ".status")
    if status.get("state") != RUNNING or _UID not in labels:
        return None
    for label in (_NAME, _POD):
        if not labels.get(label):
            raise InputError("has no %s" % label, where=where + ".status.labels", remedy=_WHOLE)
    linux = _member(_member(_member(data, "info", where), "runtimeSpec", where + ".info"), "linux", where)
    path = str(linux.get("cgroupsPath", ""))
    qos = _QOS.search(path)
    if qos is None:
        raise InputError("cgroupsPath %r is not below kubepods" % path, where=where, remedy="whose container is it?")
    shares = _member(_member(linux, "resources", where), "cpu", where).get("shares", 0)
    if isinstance(shares, bool) or not isinstance(shares, int):
        raise InputError("the CPU shares are %r, not a whole number" % shares, where=where)
    return RuntimeContainer(
        str(status.get("id", "")),
        labels[_NAME],
        labels[_UID],
        "%s/%s" % (labels.get(_NAMESPACE, "default"), labels[_POD]),
        _QOS_CLASSES[qos.group(1)],
        shares,
        str(status.get("createdAt", "")),
    )


def _member(data: object, name: str, where: str) -> Mapping[str, Any]:
    member = data.get(name) if isinstance(data, Mapping) else None
    if not isinstance(member, Mapping):
        raise InputError("has no mapping %s" % name, where=where, remedy=_WHOLE)
    return member
