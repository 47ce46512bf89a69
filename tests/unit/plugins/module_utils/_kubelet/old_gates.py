# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The feature gates of kubelets 1.29 to 1.32 as their sources have them, one version read after the other.

Source: pkg/features (kube_features.go, of 1.32 versioned_kube_features.go) with the gates of apiserver and
apiextensions-apiserver in it, as copies of the releases 1.29 to 1.32 have them; of 1.30 and 1.31 also the file of
apiserver itself, and of 1.31 the list that a test of Kubernetes compares all gates with. The four of component-base and
those of client-go are from that list and from later entries, which say since when each is what it is; so is
NodeLogQuery, which the copies of 1.29 and 1.30 have changed. For some, the release that removed them was looked up in
the documentation of the gates, too.
"""

from __future__ import annotations

MINORS = (29, 30, 31, 32)

# Name, and what it is in each: the stage (a, b, g: generally available, d: deprecated; a capital letter where it is on
# by default), with "!" where it is locked, and "-" where there is no such gate.
_TABLE = """
    APIListChunking G! G! G! G!
    APIPriorityAndFairness G! G! - -
    APIResponseCompression B B B B
    APISelfSubjectReview G! - - -
    APIServerIdentity B B B B
    APIServerTracing B B B B
    APIServingWithRoutine - a a a
    AdmissionWebhookMatchConditions B G! G! G!
    AggregatedDiscoveryEndpoint B G! G! G!
    AllowDNSOnlyNodeCSR - - d d
    AllowInsecureKubeletCertificateSigningRequests - - d d
    AllowOverwriteTerminationGracePeriodSeconds - - - d
    AllowServiceLBStatusOnNonLB d d d d!
    AllowUnsafeMalformedObjectDeletion - - - a
    AnonymousAuthConfigurableEndpoints - - a B
    AnyVolumeDataSource B B B B
    AppArmor B B G! G!
    AppArmorFields - B G! G!
    AuthorizeNodeWithSelectors - - a B
    AuthorizeWithSelectors - - a B
    BtreeWatchCache - - - B
    CBORServingAndStorage - - - a
    CPUManager G! G! G! G!
    CPUManagerPolicyAlphaOptions a a a a
    CPUManagerPolicyBetaOptions B B B B
    CPUManagerPolicyOptions B B B B
    CRDValidationRatcheting a B B B
    CSIMigrationAzureFile G! - - -
    CSIMigrationPortworx b b B B
    CSIMigrationRBD d d - -
    CSINodeExpandSecret G! G! - -
    CSIVolumeHealth a a a a
    ClientsAllowCBOR - - - a
    ClientsPreferCBOR - - - a
    CloudControllerManagerWebhook a a a a
    CloudDualStackNodeIPs B G! G! -
    ClusterTrustBundle a a a a
    ClusterTrustBundleProjection a a a a
    ComponentFlagz - - - a
    ComponentSLIs B B B G!
    ComponentStatusz - - - a
    ConcurrentWatchObjectDecode - - b b
    ConsistentHTTPGetHandlers G G! - -
    ConsistentListFromCache a a B B
    ContainerCheckpoint a B B B
    ContextualLogging a B B B
    CoordinatedLeaderElection - - a a
    CronJobsScheduledAnnotation B B B G!
    CrossNamespaceVolumeDataSource a a a a
    CustomCPUCFSQuotaPeriod a a a a
    CustomResourceFieldSelectors - a B G!
    CustomResourceValidationExpressions G! G! - -
    DRAAdminAccess - - - a
    DRAControlPlaneController - - a -
    DRAResourceClaimDeviceStatus - - - a
    DefaultHostNetworkHostPortsInPodTemplates d d - -
    DevicePluginCDIDevices B B G! G!
    DisableAllocatorDualWrite - - a a
    DisableCloudProviders B B G! G!
    DisableKubeletCloudCredentialProviders B B G! G!
    DisableNodeKubeProxyVersion a a d d
    DynamicResourceAllocation a a a b
    EfficientWatchResumption G! G! G! G!
    ElasticIndexedJob B B G! G!
    EventedPLEG a a a a
    ExecProbeTimeout G G G G
    ExpandedDNSConfig G! - - -
    ExperimentalHostUserNamespaceDefaulting d! - - -
    ExternalServiceAccountTokenSigner - - - a
    GracefulNodeShutdown B B B B
    GracefulNodeShutdownBasedOnPodPriority B B B B
    HPAContainerMetrics B G! G! -
    HPAScaleToZero a a a a
    HonorPVReclaimPolicy a a B B
    IPTablesOwnershipCleanup G! - - -
    ImageMaximumGCAge a B B B
    ImageVolume - - a a
    InPlacePodVerticalScaling a a a a
    InPlacePodVerticalScalingAllocatedStatus - - - a
    InPlacePodVerticalScalingExclusiveCPUs - - - a
    InTreePluginAWSUnregister a a - -
    InTreePluginAzureDiskUnregister a a - -
    InTreePluginAzureFileUnregister a a - -
    InTreePluginGCEUnregister a a - -
    InTreePluginOpenStackUnregister a a - -
    InTreePluginPortworxUnregister a a a a
    InTreePluginRBDUnregister d d - -
    InTreePluginvSphereUnregister a a - -
    InformerResourceVersion - a a a
    JobBackoffLimitPerIndex B B B B
    JobManagedBy - a a B
    JobPodFailurePolicy B B G! G!
    JobPodReplacementPolicy B B B B
    JobReadyPods G! G! - -
    JobSuccessPolicy - a B B
    KMSv1 d d d d
    KMSv2 G! G! G! -
    KMSv2KDF G! G! G! -
    KubeProxyDrainingTerminatingNodes a B G! G!
    KubeletCgroupDriverFromCRI a a B B
    KubeletCrashLoopBackOffMax - - - a
    KubeletFineGrainedAuthz - - - a
    KubeletInUserNamespace a a a a
    KubeletPodResources G! - - -
    KubeletPodResourcesDynamicResources a a a a
    KubeletPodResourcesGet a a a a
    KubeletRegistrationGetOnExistsOnly - - - d
    KubeletSeparateDiskGC a a B B
    KubeletTracing B B B B
    LegacyServiceAccountTokenCleanUp B G! G! -
    LegacyServiceAccountTokenTracking G! - - -
    LoadBalancerIPMode a B B G!
    LocalStorageCapacityIsolationFSQuotaMonitoring a a b b
    LogarithmicScaleDown B B G! G!
    LoggingAlphaOptions a a a a
    LoggingBetaOptions B B B B
    MatchLabelKeysInPodAffinity a a B B
    MatchLabelKeysInPodTopologySpread B B B B
    MaxUnavailableStatefulSet a a a a
    MemoryManager B B B G!
    MemoryQoS a a a a
    MinDomainsInPodTopologySpread B G! G! -
    MinimizeIPTablesRestore G! - - -
    MultiCIDRServiceAllocator a a b b
    MutatingAdmissionPolicy - a a a
    NFTablesProxyMode a a B B
    NewVolumeManagerReconstruction B G! G! -
    NodeInclusionPolicyInPodTopologySpread B B B B
    NodeLogQuery a b b b
    NodeOutOfServiceVolumeDetach G! G! G! -
    NodeSwap b B B B
    OpenAPIEnums B B B B
    PDBUnhealthyPodEvictionPolicy B B G! G!
    PersistentVolumeLastPhaseTransitionTime B B G! G!
    PodAndContainerStatsFromCRI a a a a
    PodDeletionCost B B B B
    PodDisruptionConditions B B G! G!
    PodHostIPs B G! G! -
    PodIndexLabel B B B G!
    PodLevelResources - - - a
    PodLifecycleSleepAction a B B B
    PodLifecycleSleepActionAllowZero - - - a
    PodLogsQuerySplitStreams - - - a
    PodReadyToStartContainersCondition B B B B
    PodSchedulingReadiness B G! G! G!
    PortForwardWebsockets - a B B
    ProcMountType a a b b
    ProxyTerminatingEndpoints G! - - -
    QOSReserved a a a a
    ReadWriteOncePod G! G! - -
    RecoverVolumeExpansionFailure a a a B
    RecursiveReadOnlyMounts - a B B
    RelaxedDNSSearchValidation - - - a
    RelaxedEnvironmentVariableValidation - a a B
    ReloadKubeletServerCertificateFile - - B B
    RemainingItemCount G! G! G! G!
    RemoteRequestHeaderUID - - - a
    RemoveSelfLink G! - - -
    ResilientWatchCacheInitialization - - B B
    ResourceHealthStatus - - a a
    RetryGenerateName - a B G!
    RotateKubeletServerCertificate B B B B
    RuntimeClassInImageCriApi a a a a
    SELinuxChangePolicy - - - a
    SELinuxMount - a a a
    SELinuxMountReadWriteOncePod B B B B
    SchedulerAsyncPreemption - - - a
    SchedulerQueueingHints b b b B
    SecurityContextDeny a - - -
    SeparateCacheWatchRPC B B B B
    SeparateTaintEvictionController B B B B
    ServerSideApply G! G! G! -
    ServerSideFieldValidation G! G! G! -
    ServiceAccountNodeAudienceRestriction - - - b
    ServiceAccountTokenJTI a B B G!
    ServiceAccountTokenNodeBinding a a B B
    ServiceAccountTokenNodeBindingValidation a B B G!
    ServiceAccountTokenPodNodeInfo a B B G!
    ServiceNodePortStaticSubrange G! G! - -
    ServiceTrafficDistribution - a B B
    SidecarContainers B B B B
    SizeMemoryBackedVolumes B B B G!
    SkipReadOnlyValidationGCE D D - -
    StableLoadBalancerNodeSet B G! G! -
    StatefulSetAutoDeletePVC B B B G!
    StatefulSetStartOrdinal B B G! G!
    StorageNamespaceIndex - B B B
    StorageVersionAPI a a a a
    StorageVersionHash B B B B
    StorageVersionMigrator - a a a
    StrictCostEnforcementForVAP - b b G!
    StrictCostEnforcementForWebhooks - b b G!
    StructuredAuthenticationConfiguration a B B B
    StructuredAuthorizationConfiguration a B B G!
    SupplementalGroupsPolicy - - a a
    SystemdWatchdog - - - B
    TopologyAwareHints B B B B
    TopologyManagerPolicyAlphaOptions a a a a
    TopologyManagerPolicyBetaOptions B B B B
    TopologyManagerPolicyOptions B B B G
    TranslateStreamCloseWebsocketRequests a B B B
    UnauthenticatedHTTP2DOSMitigation B B B B
    UnknownVersionInteroperabilityProxy a a a a
    UserNamespacesPodSecurityStandards a a a a
    UserNamespacesSupport a b b b
    ValidatingAdmissionPolicy b G! G! -
    VolumeAttributesClass a a b b
    VolumeCapacityPriority a a a a
    WatchBookmark G! G! G! G!
    WatchCacheInitializationPostStartHook - - b b
    WatchFromStorageWithoutResourceVersion b b b b
    WatchList a a a B
    WatchListClient - b b b
    WinDSR a a a a
    WinOverlay B B B B
    WindowsCPUAndMemoryAffinity - - - a
    WindowsGracefulNodeShutdown - - - a
    WindowsHostNetwork A A A A
    ZeroLimitedNominalConcurrencyShares b G! G! -
"""

FOUND: dict[str, dict[int, str]] = {
    name: dict(zip(MINORS, states)) for name, *states in (line.split() for line in _TABLE.splitlines() if line)
}

# Not in the first releases of 1.30 to 1.32: their later patch releases got it with a repair.
BACKPORTED = ("OrderedNamespaceDeletion", (30, 31, 32))
