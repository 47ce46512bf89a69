# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which CPU quotas and shares a kubelet writes to a pod and its containers. Pure.

With the gate DisableCPUQuotaWithExclusiveCPUs, what has all its CPUs to itself is not limited.
Source: pkg/kubelet/cm (container_manager_linux.go, helpers_linux.go), GetResourceIsolationLevel in
pkg/kubelet/cm/cpumanager/cpu_manager.go of 1.36.
"""

from __future__ import annotations

from typing import Collection, NamedTuple

from .._cgroup.kubepods import BEST_EFFORT, GUARANTEED
from .._containers.pods import Pod

# Whose CPUs a container runs on: the node's shared pool, its pod's shared pool, or its own.
HOST, WHOLE_POD, CONTAINER = "host", "pod", "container"

_LEAST_SHARES, _MOST_SHARES, _SHARES_PER_CPU, _MILLI = 2, 262144, 1024, 1000
_LEAST_QUOTA_US = 1000
UNLIMITED = -1


def isolation_levels(pod: Pod, owners: Collection[str], minor: int) -> dict[str, str]:
    """Return {container: whose CPUs it runs on}. owners: the containers that have CPUs in the state."""
    counts = pod.exclusive_counts(minor)
    return {
        name: HOST if name not in owners else WHOLE_POD if pod.is_divided and not count else CONTAINER
        for name, count in counts.items()
    }


def is_pod_unlimited(pod: Pod, levels: Collection[str]) -> bool:
    """Return whether the cgroup of the pod has no quota: of one that is divided all containers have to have their
    own CPUs."""
    return all(level == CONTAINER for level in levels) if pod.is_divided else CONTAINER in levels


class PodCPU(NamedTuple):
    """What the kubelet writes to the cgroup of a pod. quota_us: None for none, UNLIMITED where it is switched off."""

    shares: int
    quota_us: int | None


def cpu_of_pod(pod: Pod, is_unlimited: bool, period_us: int, minor: int) -> PodCPU:
    """Return the shares and the quota of a pod.

    Source: ResourceConfigForPod in pkg/kubelet/cm/helpers_linux.go.
    """
    qos = pod.qos(minor)
    if qos == BEST_EFFORT:
        return PodCPU(_LEAST_SHARES, None)
    shares = pod.request("cpu", minor) * _SHARES_PER_CPU // _MILLI
    limit = pod.limit("cpu", minor)
    quota = None if limit is None and qos != GUARANTEED else max(_LEAST_QUOTA_US, (limit or 0) * period_us // _MILLI)
    return PodCPU(min(max(shares, _LEAST_SHARES), _MOST_SHARES), UNLIMITED if is_unlimited else quota)
