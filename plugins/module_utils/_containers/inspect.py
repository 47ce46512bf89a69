# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Pods as the container runtime describes them: the output of C(crictl inspect) for each container.

Source: the labels in pkg/kubelet/types/labels.go, the names of cgroups in pkg/kubelet/cm/cgroup_manager_linux.go.
"""

from __future__ import annotations

import re
from typing import Any, Iterable, Mapping, NamedTuple

from .._base.errors import InputError
from .._cgroup.kubepods import BEST_EFFORT, BURSTABLE, GUARANTEED
from .pods import APP, Container, Pod

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
_MILLI = 1000

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
    """The running containers, the oldest first. Raises InputError, which names the container and the member."""
    found = [_container(number, data) for number, data in enumerate(inspected)]
    return sorted((container for container in found if container is not None), key=lambda container: container.created)


def pods_of(containers: Iterable[RuntimeContainer]) -> list[Pod]:
    """Their pods, as far as the static policy looks at them, in the order of the oldest container."""
    by_pod: dict[str, list[RuntimeContainer]] = {}
    for container in containers:
        by_pod.setdefault(container.pod_uid, []).append(container)
    return [
        Pod(uid, group[0].pod_name, tuple(_as_specified(container) for container in group), group[0].qos_class)
        for uid, group in by_pod.items()
    ]


def container_ids(containers: Iterable[RuntimeContainer]) -> dict[str, tuple[str, str]]:
    """{container id: (pod UID, container name)}"""
    return {container.id: (container.pod_uid, container.name) for container in containers}


def _as_specified(container: RuntimeContainer) -> Container:
    # A request of whole CPUs is a whole multiple of shares; any other need not be exact here.
    cpu = {"cpu": container.shares * _MILLI // _SHARES_PER_CPU}
    return Container(container.name, APP, cpu, cpu)


def _container(number: int, data: object) -> RuntimeContainer | None:
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
