# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The feature gates that a node's start depends on, by version of Kubernetes.

Source: pkg/features/kube_features.go and k8s.io/component-base/featuregate.
"""

from __future__ import annotations

from typing import Any, Mapping, NamedTuple

from ..policy.options import ALPHA_GATE, BETA_GATE, MANAGER_ALPHA_GATE, MANAGER_BETA_GATE

_NEVER = 1000

ALL_ALPHA = "AllAlpha"
ALL_BETA = "AllBeta"


class Gate(NamedTuple):
    """The minor version from which a gate is alpha, beta, on, generally available, locked, and gone."""

    alpha: int
    beta: int = _NEVER
    on: int = _NEVER
    general: int = _NEVER
    locked: int = _NEVER
    removed: int = _NEVER


CPU_MANAGER = "CPUManager"
CPU_OPTIONS = "CPUManagerPolicyOptions"
CPU_ALPHA_OPTIONS, CPU_BETA_OPTIONS = ALPHA_GATE, BETA_GATE
TOPOLOGY_MANAGER = "TopologyManager"
TOPOLOGY_OPTIONS = "TopologyManagerPolicyOptions"
TOPOLOGY_ALPHA_OPTIONS, TOPOLOGY_BETA_OPTIONS = MANAGER_ALPHA_GATE, MANAGER_BETA_GATE
MEMORY_MANAGER = "MemoryManager"
CFS_QUOTA_PERIOD = "CustomCPUCFSQuotaPeriod"
POD_LEVEL_MANAGERS = "PodLevelResourceManagers"
NO_EXCLUSIVE_QUOTA = "DisableCPUQuotaWithExclusiveCPUs"

# Only gates whose whole life is known for sure. Of other names nothing is said.
GATES: dict[str, Gate] = {
    CPU_MANAGER: Gate(8, 10, 10, 26, 26, 33),
    CPU_OPTIONS: Gate(22, 23, 23, 33, 33),
    CPU_ALPHA_OPTIONS: Gate(23),
    CPU_BETA_OPTIONS: Gate(23, 23, 23),
    TOPOLOGY_MANAGER: Gate(16, 18, 18, 27, 27, 29),
    TOPOLOGY_OPTIONS: Gate(26, 28, 28, 32),
    TOPOLOGY_ALPHA_OPTIONS: Gate(26),
    TOPOLOGY_BETA_OPTIONS: Gate(26, 26, 28),
    MEMORY_MANAGER: Gate(21, 22, 22, 32, 32, 36),
    CFS_QUOTA_PERIOD: Gate(12, _NEVER, 36, 36),
    POD_LEVEL_MANAGERS: Gate(36),
    NO_EXCLUSIVE_QUOTA: Gate(33, 33, 33),
    "DynamicResourceAllocation": Gate(26, 32, 34, 34, 35),
    "ExecProbeTimeout": Gate(20, 20, 20, 20, 35),
    "ImageMaximumGCAge": Gate(29, 30, 30, 35, 35),
    "InPlacePodVerticalScaling": Gate(27, 33, 33, 35, 35),
    "InPlacePodVerticalScalingExclusiveCPUs": Gate(32),
    "InPlacePodVerticalScalingExclusiveMemory": Gate(34),
    "KubeletCgroupDriverFromCRI": Gate(28, 31, 31, 34, 34),
    "KubeletCrashLoopBackOffMax": Gate(32, 35, 35),
    "KubeletEnsureSecretPulledImages": Gate(33, 35, 35),
    "KubeletFineGrainedAuthz": Gate(32, 33, 33, 36),
    "KubeletPSI": Gate(33, 34, 34, 36),
    "KubeletPodResourcesDynamicResources": Gate(27, 34, 34),
    "KubeletPodResourcesGet": Gate(27, 34, 34),
    "KubeletTracing": Gate(25, 27, 27, 34, 34),
    "NodeSwap": Gate(22, 28, 30, 34, 34),
    "PodLevelResources": Gate(32, 34, 34),
}


class Gates:
    """The feature gates of one configuration, as the kubelet 1.`minor` takes them."""

    def __init__(self, values: Mapping[str, Any], minor: int) -> None:
        self.values = values
        self.minor = minor

    @classmethod
    def of(cls, values: Mapping[str, Any], minor: int) -> Gates:
        """Those of a configuration with these values."""
        gates = values.get("featureGates")
        return cls(gates if isinstance(gates, Mapping) else {}, minor)

    def enabled(self, name: str) -> bool:
        """Whether one of GATES is on. One that is gone is on for ever."""
        gate = GATES[name]
        if self.minor >= min(gate.locked, gate.removed):
            return True
        if self.minor < gate.alpha:
            return False
        if name in self.values:
            return self.values[name] is True
        if self.minor < gate.general:
            every = ALL_BETA if self.minor >= gate.beta else ALL_ALPHA
            if every in self.values:
                return self.values[every] is True
        return self.minor >= gate.on
