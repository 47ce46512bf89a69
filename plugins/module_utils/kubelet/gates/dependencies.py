# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which feature gates of a kubelet depend on which others, by version of Kubernetes.

Source: defaultKubernetesFeatureGateDependencies in pkg/features/kube_features.go.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Mapping

from .table import LAST_KNOWN_MINOR, is_registered

# Since this minor version a gate that is on needs the gates that it depends on.
DEPENDENCIES_SINCE = 35

# gate -> the gates that it depends on; `X:36` since 1.36 only. One that a version does not have counts for nothing.
_DEPENDENCIES: Mapping[str, str] = {
    "AuthorizeNodeWithSelectors": "AuthorizeWithSelectors",
    "ClusterTrustBundleProjection": "ClusterTrustBundle",
    "CompositePodGroup": "GenericWorkload TopologyAwareWorkloadScheduling",
    "DRAAdminAccess": "DynamicResourceAllocation",
    "DRAConsumableCapacity": "DynamicResourceAllocation",
    "DRADerivedAttributes": "DynamicResourceAllocation",
    "DRADeviceBindingConditions": "DynamicResourceAllocation DRAResourceClaimDeviceStatus",
    "DRADeviceCompatibilityGroups": "DynamicResourceAllocation DRAPartitionableDevices",
    "DRADeviceTaintRules": "DRADeviceTaints",
    "DRADeviceTaints": "DynamicResourceAllocation",
    "DRAExtendedResource": "DynamicResourceAllocation",
    "DRAFractionalCapacityRange": "DRAConsumableCapacity",
    "DRAListTypeAttributes": "DynamicResourceAllocation",
    "DRANodeAllocatableResources": "DynamicResourceAllocation",
    "DRAOptionalNodeOperations": "DynamicResourceAllocation NodeDeclaredFeatures",
    "DRAPartitionableDevices": "DynamicResourceAllocation",
    "DRAPartitionableDevicesType": "DynamicResourceAllocation DRAPartitionableDevices DRAResourcePoolStatus",
    "DRAPrioritizedList": "DynamicResourceAllocation",
    "DRAResourceClaimGranularStatusAuthorization": "DynamicResourceAllocation DRAResourceClaimDeviceStatus",
    "DRAResourcePoolStatus": "DynamicResourceAllocation",
    "DRASchedulerFilterTimeout": "DynamicResourceAllocation",
    "DRAWorkloadResourceClaims": "DynamicResourceAllocation GenericWorkload",
    "DeclarativeValidationBeta": "DeclarativeValidation",
    "DeclarativeValidationTakeover": "DeclarativeValidation",
    "DisableAllocatorDualWrite": "MultiCIDRServiceAllocator",
    "EventedPLEG": "PLEGOnDemandRelist:37",
    "ExtendWebSocketsToKubelet": "NodeDeclaredFeatures",
    "GangScheduling": "GenericWorkload",
    "GracefulNodeShutdownBasedOnPodPriority": "GracefulNodeShutdown",
    "H2CContainerProbe": "NodeDeclaredFeatures",
    "ImageVolumeWithDigest": "ImageVolume",
    "InPlacePodLevelResourcesVerticalScaling": "InPlacePodVerticalScaling PodLevelResources NodeDeclaredFeatures",
    "InPlacePodVerticalScalingAllocatedStatus": "InPlacePodVerticalScaling",
    "InPlacePodVerticalScalingExclusiveCPUs": "InPlacePodVerticalScaling",
    "InPlacePodVerticalScalingExclusiveMemory": "InPlacePodVerticalScaling MemoryManager",
    "InPlacePodVerticalScalingInitContainers": "InPlacePodVerticalScaling NodeDeclaredFeatures",
    "InPlacePodVerticalScalingMemoryBackedVolumes": "InPlacePodVerticalScaling NodeDeclaredFeatures",
    "InPlacePodVerticalScalingSchedulerPreemption": "InPlacePodVerticalScaling",
    "KubeletAllocatedPodsEndpoint": "InPlacePodVerticalScaling",
    "MatchLabelKeysInPodTopologySpreadSelectorMerge": "MatchLabelKeysInPodTopologySpread",
    "NodeControllerLeaseCircuitBreaker": "AtomicFIFO",
    "PodCertificateRequest": "AuthorizeNodeWithSelectors",
    "PodGroupPreemptionPolicy": "GenericWorkload",
    "PodLevelResourceManagers": "PodLevelResources",
    "PodLevelResourcesFixDefaulting": "PodLevelResources",
    "PodLevelResourcesFixKubeletQOSClass": "PodLevelResources",
    "PodLifecycleSleepActionAllowZero": "PodLifecycleSleepAction",
    "ProcMountType": "UserNamespacesSupport",
    "ResourceHealthStatus": "DynamicResourceAllocation",
    "ResourceHealthStatusMessage": "ResourceHealthStatus",
    "RestartAllContainersOnContainerExits": "ContainerRestartRules NodeDeclaredFeatures",
    "ServiceAccountTokenNodeBinding": "ServiceAccountTokenNodeBindingValidation",
    "StaleControllerConsistencyDaemonSet": "AtomicFIFO",
    "StaleControllerConsistencyHPA": "AtomicFIFO",
    "StaleControllerConsistencyJob": "AtomicFIFO",
    "StaleControllerConsistencyReplicaSet": "AtomicFIFO",
    "StaleControllerConsistencyStatefulSet": "AtomicFIFO",
    "StorageVersionAPI": "APIServerIdentity",
    "StructuredAuthenticationConfigurationEgressSelector": "StructuredAuthenticationConfiguration",
    "StructuredAuthenticationConfigurationJWKSMetrics": "StructuredAuthenticationConfiguration",
    "TopologyAwareWorkloadScheduling": "GenericWorkload",
    "UnknownVersionInteroperabilityProxy": "APIServerIdentity",
    "UserNamespacesHostNetworkSupport": "UserNamespacesSupport NodeDeclaredFeatures:36",
    "WindowsCPUAndMemoryAffinity": "MemoryManager",
    "WindowsGracefulNodeShutdown": "GracefulNodeShutdown",
    "WorkloadAwarePreemption": "GangScheduling",
    "WorkloadWithJob": "GenericWorkload",
}


@lru_cache(maxsize=None)
def dependencies(minor: int) -> Mapping[str, tuple[str, ...]]:
    """{gate: the gates that it depends on} in 1.`minor`, in the order of the names."""
    if not DEPENDENCIES_SINCE <= minor <= LAST_KNOWN_MINOR:
        return {}
    found = {}
    for name, text in _DEPENDENCIES.items():
        if is_registered(name, minor):
            words = [word.partition(":") for word in text.split()]
            found[name] = tuple(
                gate for gate, _colon, since in words if int(since or 0) <= minor and is_registered(gate, minor)
            )
    return found
