# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What pods ask for beside CPUs, and a plan does not look at, though it has a say in their admission. Pure.

Source: pkg/kubelet/cm/container_manager_linux.go: the device manager and the memory manager give the topology manager
hints as the CPU manager does, the DRA manager gives none. pkg/apis/core/v1/helper: which names are those of devices.
"""

from __future__ import annotations

from typing import Iterator, Sequence

from ..workload.pods import Pod
from ..workload.qos import GUARANTEED

_COUNTED = frozenset(("cpu", "memory"))
_HUGE_PAGES = "hugepages-"
# Whose names no device plugin may have.
_NATIVE = "kubernetes.io/"
_MEMORY = "memory (memory manager Static)"


def limit_notes(pods: Sequence[Pod], minor: int, manager: str, is_moved: bool, has_memory_manager: bool) -> list[str]:
    """From which pod on a plan is not exact, and why; empty where it is exact for all.

    manager: the topology manager's policy. is_moved: whether it decides on which NUMA nodes a pod gets its CPUs.
    has_memory_manager: whether the memory manager has the policy Static.
    """
    hints: set[str] = set()
    counted: set[str] = set()
    has_claims, first = False, ""
    for pod in pods:
        with_memory = has_memory_manager and _has_own_memory(pod, minor)
        asked = {_MEMORY} if with_memory else set()
        for name in _resources(pod):
            gives_hints = with_memory if name.startswith(_HUGE_PAGES) else "/" in name and _NATIVE not in name
            (asked if gives_hints else counted).add(name)
            first = first or pod.name
        hints |= asked
        has_claims = has_claims or bool(pod.claims)
        if asked or pod.claims:
            first = first or pod.name
    if not is_moved:
        counted, hints = counted | hints, set()
    reasons = []
    if hints:
        reasons.append(
            "the topology manager (%s) also goes by the NUMA nodes of %s, which are not known here: a pod that asks for"
            " %s, and those after it, can get other CPUs or be refused" % (manager, _list(hints), _them(hints))
        )
    if counted:
        reasons.append(
            "%s %s not counted: the kubelet refuses a pod that cannot have %s, and then those after it can get other"
            " CPUs" % (_list(counted), "is" if len(counted) == 1 else "are", _them(counted))
        )
    if has_claims:
        reasons.append(
            "resourceClaims are not looked at: their drivers choose devices, and CPUs where one manages them"
        )
    return ["not exact from pod %s on: %s" % (first, "; ".join(reasons))] if reasons else []


def _has_own_memory(pod: Pod, minor: int) -> bool:
    """Whether the Static memory manager looks at the pod. A Guaranteed one always asks for memory."""
    return pod.qos(minor) == GUARANTEED and not pod.has_pod_level_resources(minor)


def _resources(pod: Pod) -> Iterator[str]:
    """What a pod asks for beside what a plan counts."""
    amounts = [container.requests for container in pod.containers]
    for requests in (*amounts, *(pod.pod_level or ())):
        yield from (name for name, amount in requests.items() if amount and name not in _COUNTED)


def _list(names: set[str]) -> str:
    *others, last = sorted(names)
    return "%s and %s" % (", ".join(others), last) if others else last


def _them(names: set[str]) -> str:
    return "it" if len(names) == 1 else "them"
