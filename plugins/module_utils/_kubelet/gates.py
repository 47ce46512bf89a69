# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The feature gates by version of Kubernetes: which there are, which are on, and which depend on others.

Source: pkg/features/kube_features.go and k8s.io/component-base/featuregate (feature_gate.go).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Iterator, Mapping, NamedTuple

from ..policy.options import ALPHA_GATE, BETA_GATE, MANAGER_BETA_GATE

# How the life of a feature gate is written down, and those of the gates that this project depends on; all others are in
# the table below. Its source: pkg/features/kube_features.go.


ALPHA, BETA = "a", "b"

NEVER = 1000


class Phase(NamedTuple):
    """What a gate is from a minor version on."""

    since: int
    stage: str
    default: bool
    locked: bool


class GateLife(NamedTuple):
    """The phases of a gate, oldest first, and the minor versions that have it registered: [since, removed)."""

    phases: tuple[Phase, ...]
    since: int
    removed: int

    def phase(self, minor: int) -> Phase | None:
        """Return the phase that counts in 1.`minor`; None before the first. Of a gate that is gone it is the last."""
        return next((phase for phase in reversed(self.phases) if phase.since <= minor), None)


def read_life(text: str) -> GateLife:
    """Return the life that an entry of LIVES describes."""
    phases = []
    since, removed = None, NEVER
    for word in text.split():
        if word[0] == "+":
            since = int(word[1:])
        elif word[0] == "-":
            removed = int(word[1:])
        else:
            phases.append(Phase(int(word[1:].rstrip("!")), word[0].lower(), word[0].isupper(), word[-1] == "!"))
    return GateLife(tuple(phases), phases[0].since if since is None else since, removed)


# A word is a phase: the stage (a, b, g: generally available, d: deprecated; a capital letter: on by default), the
# minor version that it begins with, and `!` where the default is locked. `+34`: registered since 1.34, whatever it is
# said to have been before; `-37`: 1.37 has it no longer.
OWN_LIVES: Mapping[str, str] = {
    "CPUManager": "a8 B10 G26! -33",
    "CPUManagerPolicyAlphaOptions": "a23",
    "CPUManagerPolicyBetaOptions": "B23",
    "CPUManagerPolicyOptions": "a22 B23 G33!",
    "CustomCPUCFSQuotaPeriod": "a12 G36",
    "DisableCPUQuotaWithExclusiveCPUs": "B33 D36 D37!",
    "DynamicResourceAllocation": "a26 b32 G34 G35!",
    "InPlacePodVerticalScaling": "a27 B33 G35!",
    "MemoryManager": "a21 B22 G32! -36",
    "NodeSwap": "a22 b28 B30 G34!",
    "PodLevelResourceManagers": "a36 b37",
    "TopologyManager": "a16 B18 G27! -29",
    "TopologyManagerPolicyAlphaOptions": "a26",
    "TopologyManagerPolicyBetaOptions": "b26 B28",
    "TopologyManagerPolicyOptions": "a26 B28 G32 G36!",
}


# The feature gates that a kubelet has registered, by version of Kubernetes.
#
# Complete for 1.29 to 1.36; of 1.37 what its source had shortly before the release. GateLife says how a life is
# written. Its source: pkg/features (kube_features.go, of 1.32 versioned_kube_features.go),
# client-go/features/known_features.go, and the gates of component-base (logs, metrics, zpages), apiserver,
# apiextensions-apiserver and controller-manager, which a kubelet registers too. What was removed before 1.33 is from
# the sources of 1.29 to 1.32, and the release that removed it also from the documentation of the gates.
# OrderedNamespaceDeletion came to 1.30 to 1.32 with patch releases: their first ones do not have it.


FIRST_MINOR, LAST_MINOR = 29, 36
# Until this minor version the gates of the table are those of the kubelet; a newer kubelet may have others.
LAST_KNOWN_MINOR = 37

# Entries of the form of OWN_LIVES; each first letter begins on a line of its own.
_LIVES = """
APIListChunking a8 B9 G29! -33, APIPriorityAndFairness a18 B20 G29! -31, APIResponseCompression a8 B16,
APISelfSubjectReview a26 B27 G28! -30, APIServerIdentity a20 B26, APIServerTracing a22 B27 G34! -37,
APIServerWebhookAuthenticationToken a37, APIServingWithRoutine a30, AdmissionWebhookMatchConditions a27 B28 G30! -33,
AggregatedDiscoveryEndpoint a26 B27 G30! -33, AggregatedDiscoveryRemoveBetaType +33 g0 D33 D35!,
AllowDNSOnlyNodeCSR +31 G0 d31, AllowInsecureKubeletCertificateSigningRequests +31 G0 d31,
AllowOverwriteTerminationGracePeriodSeconds +32 G0 d32 d35!, AllowParsingUserUIDFromCertAuth B33,
AllowServiceExternalIPs +36 G0, AllowServiceLBStatusOnNonLB G0 d29 d32! -35, AllowUnsafeMalformedObjectDeletion a32 B37,
AnonymousAuthConfigurableEndpoints a31 B32 G34! -37, AnyVolumeDataSource a18 B24 G33! -37, AppArmor B4 G31! -33,
AppArmorFields B30 G31! -33, AtomicFIFO B36, AtomicWriteVolumeUserFields a37,
AuthorizeNodeWithSelectors a31 B32 G34! -37, AuthorizePodWebsocketUpgradeCreatePermission B35,
AuthorizeWithSelectors a31 B32 G34! -37,
BtreeWatchCache B32 G33! -37,
CBORServingAndStorage a32, CRDObservedGenerationTracking b35 B36, CRDValidationRatcheting a28 B30 G33!,
CRIListStreaming a36, CSIMigrationAzureFile a15 b21 B24 G26! -30, CSIMigrationPortworx a23 b25 B31 G33! -36,
CSIMigrationRBD a23 d28 -31, CSINodeExpandSecret a25 B27 G29! -31, CSIServiceAccountTokenSecrets B35 G36!,
CSIVolumeHealth a21, ChangeContainerStatusOnKubeletRestart +35 G0 d35, ClearingNominatedNodeNameAfterBinding a34 B35,
ClientsAllowCARotation B36, ClientsAllowCBOR a32, ClientsAllowTLSCacheGC B36, ClientsPreferCBOR a32,
CloudControllerManagerWatchBasedRoutesReconciliation a35, CloudControllerManagerWebhook a27,
CloudDualStackNodeIPs a27 B29 G30! -32, ClusterTrustBundle a27 b33 G37, ClusterTrustBundleProjection a29 b33 G37,
ComponentFlagz a32 B36, ComponentSLIs a26 B27 G32! -35, ComponentStatusz a32 B36, CompositePodGroup a37,
ConcurrentWatchObjectDecode b31 B37, ConsistentHTTPGetHandlers G25 G30! -31, ConsistentListFromCache a28 B31 G34! -37,
ConsistentListFromCacheSkipTimeoutFallback a37, ConstrainedImpersonation a35 B36, ContainerCheckpoint a25 B30,
ContainerRestartRules a34 B35, ContainerStopSignals a33, ContextualLogging a24 B30,
ControllerManagerReleaseLeaderElectionLockOnExit a36, CoordinatedLeaderElection a31 b33,
CronJobsScheduledAnnotation B28 G32! -35, CrossNamespaceVolumeDataSource a26, CustomResourceFieldSelectors a30 B31 G32!,
CustomResourceValidationExpressions a23 B25 G29! -31,
DRAAdminAccess a32 B34 G36!, DRAConsumableCapacity a34 B36, DRAControlPlaneController a31 -32, DRADerivedAttributes a37,
DRADeviceBindingConditions a34 B36, DRADeviceCompatibilityGroups a37, DRADeviceTaintRules a35 b36 G37,
DRADeviceTaints a33 B36 G37, DRAExtendedResource a34 B36 G37!, DRAFractionalCapacityRange B37,
DRAListTypeAttributes a36, DRANodeAllocatableResources a36, DRAOptionalNodeOperations a37,
DRAPartitionableDevices a33 B36, DRAPartitionableDevicesType a37, DRAPrioritizedList a33 B34 G36 G37!,
DRAResourceClaimDeviceStatus a32 B33 G37!, DRAResourceClaimGranularStatusAuthorization B36, DRAResourcePoolStatus a36,
DRASchedulerFilterTimeout B34, DRAWorkloadResourceClaims a36 b37, DeclarativeValidation B33 G36!,
DeclarativeValidationBeta B36, DeclarativeValidationTakeover b33 d36 d37!,
DefaultHostNetworkHostPortsInPodTemplates d28 -31, DefaultPodSysctls a37,
DeploymentReplicaSetTerminatingReplicas a33 B35, DetectCacheInconsistency B34, DevicePluginCDIDevices a28 B29 G31! -34,
DisableAllocatorDualWrite a31 b33 G34 G35!, DisableCloudProviders a22 B29 G31! -33,
DisableKubeletCloudCredentialProviders a23 B29 G31! -33, DisableNodeKubeProxyVersion a29 d31 D33 D36!,
EfficientWatchResumption a20 B21 G24! -33, ElasticIndexedJob B27 G31! -34, EmptyDirVolumeMode a37, EnvFiles a34 B35,
EtcdRangeStream B37, EventedPLEG a26, EvictionRequestAPI a37, ExcludeAdmissionWebhookVirtualResources B37,
ExecProbeTimeout G20 G35!, ExpandedDNSConfig a22 B26 G28! -30, ExperimentalHostUserNamespaceDefaulting a5 d28! -30,
ExtendWebSocketsToKubelet B36, ExternalServiceAccountTokenSigner a32 B34 G36!,
GRPCContainerProbeTLS a37, GangScheduling a35 -37, GenericWorkload a35 b37, GitRepoVolumeDriver +33 G0 d33 d36!,
GracefulNodeShutdown a20 B21, GracefulNodeShutdownBasedOnPodPriority a23 B24,
H2CContainerProbe a37, HPAConfigurableTolerance a33 B35 G37!, HPAContainerMetrics a20 B27 G30! -32, HPAGeneration B37,
HPAOptimizedSelectorStore B37, HPAScaleToZero a16 B37, HonorPVReclaimPolicy a23 B31 G33! -36,
HostnameOverride a34 B35 G37!, HugepageAwareEviction B37,
IPTablesOwnershipCleanup a25 B27 G28! -30, ImageMaximumGCAge a29 B30 G35!, ImageVolume a31 b33 B35 G36!,
ImageVolumeWithDigest a35, InOrderInformers B33 G36!, InOrderInformersBatchProcess B35,
InPlacePodLevelResourcesVerticalScaling a35 B36, InPlacePodVerticalScalingAllocatedStatus a32 d33 -36,
InPlacePodVerticalScalingExclusiveCPUs a32, InPlacePodVerticalScalingExclusiveMemory a34,
InPlacePodVerticalScalingInitContainers B36 G37!, InPlacePodVerticalScalingMemoryBackedVolumes a37,
InPlacePodVerticalScalingSchedulerPreemption a37, InTreePluginAWSUnregister a21 -31,
InTreePluginAzureDiskUnregister a21 -31, InTreePluginAzureFileUnregister a21 -31, InTreePluginGCEUnregister a21 -31,
InTreePluginOpenStackUnregister a21 -31, InTreePluginPortworxUnregister a23 -36, InTreePluginRBDUnregister a23 d28 -31,
InTreePluginvSphereUnregister a21 -31, InformerResourceVersion a30 G35, InterPodAffinityHostnameFastPath a37,
JobBackoffLimitPerIndex a28 B29 G33! -37, JobManagedBy a30 B32 G35!, JobPodFailurePolicy a25 B26 G31! -33,
JobPodReplacementPolicy a28 B29 G34! -37, JobReadyPods a23 B24 G29! -31, JobSuccessPolicy a30 B31 G33! -37,
KMSv1 G0 D28 d29, KMSv2 a25 B27 G29! -32, KMSv2KDF b28 G29! -32, KubeProxyDrainingTerminatingNodes a28 B30 G31! -33,
KubeProxyIPVS +37 G0 D37, KubeProxyNFTablesLocalhostNodePorts a37, KubeletAllocatedPodsEndpoint a37,
KubeletCgroupDriverFromCRI a28 B31 G34!, KubeletCrashLoopBackOffMax a32 B35, KubeletEnsureSecretPulledImages a33 B35,
KubeletFineGrainedAuthz a32 B33 G36!, KubeletInUserNamespace a22 B37, KubeletPSI a33 B34 G36!,
KubeletPodResources a13 B15 G28! -30, KubeletPodResourcesDynamicResources a27 B34 G36!,
KubeletPodResourcesGet a27 B34 G36!, KubeletPodResourcesListUseActivePods +34 g0 D34,
KubeletRegistrationGetOnExistsOnly +32 G0 d32, KubeletSeparateDiskGC a29 B31,
KubeletServiceAccountTokenForCredentialProviders a33 B34, KubeletTracing a25 B27 G34!,
LegacyServiceAccountTokenCleanUp a28 B29 G30! -32, LegacyServiceAccountTokenTracking a26 B27 G28! -30,
LegacySidecarContainers +33 G0 d33 -34, ListFromCacheSnapshot a33 B34, LoadBalancerIPMode a29 B30 G32! -35,
LocalStorageCapacityIsolationFSQuotaMonitoring a15 b31, LogarithmicScaleDown a21 B22 G31! -37, LoggingAlphaOptions a24,
LoggingBetaOptions B24,
ManifestBasedAdmissionControlConfig a36 B37, MatchLabelKeysInPodAffinity a29 B31 G33!,
MatchLabelKeysInPodTopologySpread a25 B27, MatchLabelKeysInPodTopologySpreadSelectorMerge B34,
MaxUnavailableStatefulSet a24 b35 B37, MemoryQoS a22 B37, MinDomainsInPodTopologySpread a24 b25 B27 G30! -32,
MinimizeIPTablesRestore a26 B27 G28! -30, MultiCIDRServiceAllocator a27 b31 G33 G34!,
MutableCSINodeAllocatableCount a33 b34 B35 G36!, MutablePVNodeAffinity a35, MutablePodResourcesForSuspendedJobs a35 B36,
MutableSchedulingDirectivesForSuspendedJobs a35 B36, MutatingAdmissionPolicy a30 b34 G36,
NFTablesNetlink B37, NFTablesProxyMode a29 B31 G33!, NativeHistograms a36 B37,
NewVolumeManagerReconstruction B27 G30! -32, NodeControllerLeaseCircuitBreaker B37, NodeDeclaredFeatures a35 B36 G37!,
NodeInclusionPolicyInPodTopologySpread a25 B26 G33!, NodeLifecycleConditions a37, NodeLogQuery a27 b30 G36!,
NodeOutOfServiceVolumeDetach a24 B26 G28! -32, NominatedNodeNameForExpectation a34 B35,
OpenAPIEnums a23 B24, OpportunisticBatching B35, OrderedNamespaceDeletion b30 B33 G34! -37,
PDBUnhealthyPodEvictionPolicy a26 B27 G31! -33, PLEGOnDemandRelist B36 G37!,
PersistentVolumeClaimUnusedSinceTime a36 B37, PersistentVolumeLastPhaseTransitionTime a28 B29 G31! -33,
PodAndContainerStatsFromCRI a23 b37, PodCertificateRequest a34 b35 G37, PodDeletionCost a21 B22,
PodDisruptionConditions a25 B26 G31! -34, PodGroupPreemptionPolicy a37, PodHostIPs a28 B29 G30! -32,
PodIndexLabel B28 G32! -35, PodLevelResources a32 B34, PodLevelResourcesFixDefaulting B37,
PodLevelResourcesFixKubeletQOSClass B37, PodLifecycleSleepAction a29 B30 G34! -37,
PodLifecycleSleepActionAllowZero a32 B33 G34! -37, PodLogsQuerySplitStreams a32,
PodObservedGenerationTracking a33 B34 G35!, PodReadyToStartContainersCondition a28 B29 G37!,
PodSchedulingReadiness a26 B27 G30!, PodTopologyLabelsAdmission a33 B35, PodsAPI a36 B37, PortForwardWebsockets a30 B31,
PreferSameTrafficDistribution a33 B34 G35!, PreventStaticPodAPIReferences B34 -37, ProcMountType a12 b31 B33 G36!,
ProxyTerminatingEndpoints a22 B26 G28! -30,
QOSReserved a11,
ReadWriteOncePod a22 B27 G29! -31, RecoverVolumeExpansionFailure a23 B32 G34!, RecursiveReadOnlyMounts a30 B31 G33!,
ReduceDefaultCrashLoopBackOffDecay a33, RelaxedDNSSearchValidation a32 B33 G34! -37,
RelaxedEnvironmentVariableValidation a30 B32 G34!, RelaxedServiceNameValidation a34 B36 G37!,
ReloadKubeletClientCAFile B36, ReloadKubeletServerCertificateFile B31, RemainingItemCount a15 B16 G29! -33,
RemoteRequestHeaderUID a32 B33, RemoveSelfLink a16 B20 G24! -30, ResilientWatchCacheInitialization B31 G34! -37,
ResourceHealthStatus a31 B36, ResourceHealthStatusMessage B36, RestartAllContainersOnContainerExits a35 B36,
RetryGenerateName a30 B31 G32! -37, RotateKubeletServerCertificate a7 B12, RuntimeClassInImageCriApi a29,
SELinuxChangePolicy a32 B33 G36!, SELinuxMount a30 b33 G37, SELinuxMountReadWriteOncePod a25 b27 B28 G36!,
SchedulerAsyncAPICalls b34, SchedulerAsyncPreemption a32 B33, SchedulerPopFromBackoffQ B33,
SchedulerPreQueueingHints a37, SchedulerQueueingHints b28 B32 G34! -37, SecurityContextDeny a27 -30,
SeparateCacheWatchRPC B28 d33 d36!, SeparateTaintEvictionController B29 G34!, ServerSideApply a14 B16 G22! -32,
ServerSideFieldValidation a23 B25 G27! -32, ServiceAccountNodeAudienceRestriction b32 B33,
ServiceAccountTokenJTI a29 B30 G32!, ServiceAccountTokenNodeBinding a29 B31 G33!,
ServiceAccountTokenNodeBindingValidation a29 B30 G32!, ServiceAccountTokenPodNodeInfo a29 B30 G32!,
ServiceCIDRStatusFieldWiping +36 g0 D36, ServiceNodePortStaticSubrange a27 B28 G29! -31,
ServiceTrafficDistribution a30 B31 G33! -36, ShardedListAndWatch a36, SidecarContainers a28 B29 G33! -37,
SizeBasedListCostEstimate B34, SizeMemoryBackedVolumes a20 B22 G32! -35, SkipReadOnlyValidationGCE a28 D29 -31,
StableLoadBalancerNodeSet B27 G30! -32, StaleControllerConsistencyDaemonSet B36, StaleControllerConsistencyHPA B37,
StaleControllerConsistencyJob B36, StaleControllerConsistencyReplicaSet B36, StaleControllerConsistencyStatefulSet B36,
StatefulSetAutoDeletePVC a23 B27 G32! -35, StatefulSetRecreateStrategy a37,
StatefulSetSemanticRevisionComparison +34 B0, StatefulSetStartOrdinal a26 B27 G31! -34, StorageCapacityScoring a33 B37,
StorageNamespaceIndex B30 D33, StorageVersionAPI a20, StorageVersionHash a14 B15, StorageVersionMigrator a30 b35 G37,
StreamingCollectionEncodingToJSON B33 G34! -37, StreamingCollectionEncodingToProtobuf B33 G34! -37,
StrictCostEnforcementForVAP b30 G32! -35, StrictCostEnforcementForWebhooks b30 G32! -35, StrictIPCIDRValidation a33 B36,
StructuredAuthenticationConfiguration a29 B30 G34! -37, StructuredAuthenticationConfigurationEgressSelector B34,
StructuredAuthenticationConfigurationJWKSMetrics B35, StructuredAuthorizationConfiguration a29 B30 G32! -36,
SupplementalGroupsPolicy a31 B33 G35!, SystemdWatchdog B32 G35!,
TaintTolerationComparisonOperators a35, TokenRequestServiceAccountUIDValidation B34,
TopologyAwareHints a21 b23 B24 G33! -36, TopologyAwareWorkloadScheduling a36,
TranslateStreamCloseWebsocketRequests a29 B30,
UnauthenticatedHTTP2DOSMitigation b25 B29, UnknownVersionInteroperabilityProxy a28 B36, UnlockWhileProcessingFIFO B36,
UserNamespacesHostNetworkSupport a35, UserNamespacesPodSecurityStandards a29 -35,
UserNamespacesSupport a25 b30 B33 G36!,
ValidatingAdmissionPolicy a26 b28 G30! -32, VolumeAttributesClass a29 b31 G34 G36!, VolumeBindMountOptions a37,
VolumeCapacityPriority a21 -33, VolumeLimitScaling a35 B37,
WatchBookmark a15 B16 G17! -33, WatchCacheInitializationPostStartHook b31 B36 G37!, WatchCacheStallResume a37,
WatchFromStorageWithoutResourceVersion b27 d33! -36, WatchList a27 B32 b33 B34, WatchListClient b30 B35,
WatchListCompression B37, WebhookRoundTripLoadBalancing B37, WinDSR a14 B33 G34!, WinOverlay a14 B20 G34!,
WindowsCPUAndMemoryAffinity a32, WindowsGracefulNodeShutdown a32 B34, WindowsHostNetwork A26 d33,
WorkloadAwarePreemption a36 -37, WorkloadWithJob a36,
ZeroLimitedNominalConcurrencyShares b29 G30! -32,
"""

LIVES: Mapping[str, str] = {
    **OWN_LIVES,
    **dict(entry.strip().split(" ", 1) for entry in _LIVES.strip().rstrip(",").split(",")),
}


@lru_cache(maxsize=None)
def life_of(name: str) -> GateLife | None:
    """Return the life of a gate; None for one that the table does not have."""
    text = LIVES.get(name)
    return None if text is None else read_life(text)


def is_registered(name: str, minor: int) -> bool:
    """Return whether the kubelet 1.`minor` has this gate, as far as the table goes."""
    life = life_of(name) if name in LIVES else None
    return life is not None and life.since <= minor < life.removed


# Which feature gates of a kubelet depend on which others, by version of Kubernetes.
#
# Its source: defaultKubernetesFeatureGateDependencies in pkg/features/kube_features.go.


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
    """Return {gate: the gates that it depends on} in 1.`minor`, in the order of the names."""
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


ALL_ALPHA = "AllAlpha"
ALL_BETA = "AllBeta"

CPU_MANAGER = "CPUManager"
CPU_OPTIONS = "CPUManagerPolicyOptions"
CPU_ALPHA_OPTIONS, CPU_BETA_OPTIONS = ALPHA_GATE, BETA_GATE
TOPOLOGY_MANAGER = "TopologyManager"
TOPOLOGY_OPTIONS = "TopologyManagerPolicyOptions"
TOPOLOGY_BETA_OPTIONS = MANAGER_BETA_GATE
MEMORY_MANAGER = "MemoryManager"
CFS_QUOTA_PERIOD = "CustomCPUCFSQuotaPeriod"
POD_LEVEL_RESOURCES = "PodLevelResources"
POD_LEVEL_MANAGERS = "PodLevelResourceManagers"
NO_EXCLUSIVE_QUOTA = "DisableCPUQuotaWithExclusiveCPUs"


class Gate(NamedTuple):
    """A gate, and the minor version from which it is there, on by default, locked, and gone."""

    life: GateLife
    alpha: int
    on: int
    locked: int
    removed: int

    @classmethod
    def of(cls, life: GateLife) -> Gate:
        """Return what its phases say. The first version counts as alpha."""
        phases = life.phases
        return cls(
            life,
            life.since,
            next((phase.since for phase in phases if phase.default), NEVER),
            next((phase.since for phase in phases if phase.locked), NEVER),
            life.removed,
        )


@lru_cache(maxsize=None)
def _gate(name: str) -> Gate | None:
    if name in OWN_LIVES:
        return Gate.of(read_life(OWN_LIVES[name]))
    life = life_of(name)
    return None if life is None else Gate.of(life)


class _AllGates(Mapping[str, Gate]):
    """All gates by their names, each read when it is first needed."""

    def __getitem__(self, name: str) -> Gate:
        gate = _gate(name)
        if gate is None:
            raise KeyError(name)
        return gate

    def __iter__(self) -> Iterator[str]:

        return iter(LIVES)

    def __len__(self) -> int:
        return sum(1 for _name in self)


# The whole life of each gate that a kubelet from 1.29 on has had, and of a few older ones.
GATES = _AllGates()


class Gates:
    """The feature gates of one configuration, as the kubelet 1.`minor` takes them."""

    def __init__(self, values: Mapping[str, object], minor: int) -> None:
        self.values = values
        self.minor = minor

    @classmethod
    def of(cls, values: Mapping[str, object], minor: int) -> Gates:
        """Return those of a configuration with these values."""
        gates = values.get("featureGates")
        return cls(gates if isinstance(gates, Mapping) else {}, minor)

    def enabled(self, name: str) -> bool:
        """Return whether one of GATES is on. One that is locked or gone is as it was in the end."""
        life = GATES[name].life
        phase = life.phase(self.minor)
        if phase is None:
            return False
        if phase.locked or self.minor >= life.removed:
            return phase.default
        if name in self.values:
            return self.values[name] is True
        every = ALL_ALPHA if phase.stage == ALPHA else ALL_BETA if phase.stage == BETA else None
        if every is not None and every in self.values:
            return self.values[every] is True
        return phase.default
