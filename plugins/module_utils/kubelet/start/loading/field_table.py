# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The KubeletConfiguration v1beta1 as Go's types: what each field is, since which version, and its default.

Source: k8s.io/kubelet/config/v1beta1 (types.go, register.go); k8s.io/component-base/logs/api/v1 and tracing/api/v1
(types.go); k8s.io/api/core/v1 (Taint, ResourceList); pkg/kubelet/apis/config/v1beta1 (defaults.go).
"""

from __future__ import annotations

from typing import Any, Mapping, NamedTuple

STRING, BOOL, INT32, INT64, UINT32, FLOAT = "string", "bool", "int32", "int64", "uint32", "float64"
MAP, LIST, STRUCT = "map", "list", "struct"
# Types that read their JSON themselves; the second takes nanoseconds, too.
DURATION, FLUSH_DURATION, QUANTITY, TIME = "duration", "flush duration", "quantity", "time"

KUBELET_CONFIGURATION = "KubeletConfiguration"

_NEVER = 1000


class GoType(NamedTuple):
    """A type: `name` is what Go prints; `item` is what a map or a list has; `struct` names one of STRUCTS."""

    kind: str
    name: str
    item: Any = None
    struct: str = ""


class Field(NamedTuple):
    """A field of a struct. `embedded` is the struct inside of that which declares it, if there is one."""

    type: GoType
    is_pointer: bool
    since: int = 0
    until: int = _NEVER
    embedded: str = ""


# What these types are in truth.
_NAMED = {
    "v1.Duration": DURATION,
    "v1.TimeOrMetaDuration": FLUSH_DURATION,
    "v1.Time": TIME,
    "v1.TaintEffect": STRING,
    "v1.VerbosityLevel": UINT32,
    "resource.Quantity": QUANTITY,
    "resource.QuantityValue": QUANTITY,
    "v1beta1.ImagePullCredentialsVerificationPolicy": STRING,
    "v1beta1.KubeletAuthorizationMode": STRING,
    "v1beta1.MemoryReservationPolicy": STRING,
    "v1beta1.ResourceChangeDetectionStrategy": STRING,
}
_NAMED_MAPS = {"v1.ResourceList": "resource.Quantity"}
_NAMED_LISTS = {"v1.VModuleConfiguration": "v1.VModuleItem"}

# {struct: {type: fields}}; a star is a pointer.
_FIELDS: dict[str, dict[str, str]] = {
    KUBELET_CONFIGURATION: {
        "string": (
            "address apiVersion cgroupDriver cgroupRoot clusterDomain containerLogMaxSize containerRuntimeEndpoint"
            " contentType cpuManagerPolicy hairpinMode healthzBindAddress imageServiceEndpoint kind kubeReservedCgroup"
            " kubeletCgroups memoryManagerPolicy podCIDR podLogsDir providerID reservedSystemCPUs"
            " showHiddenMetricsForVersion staticPodPath staticPodURL systemCgroups systemReservedCgroup tlsCertFile"
            " tlsMinVersion tlsPrivateKeyFile topologyManagerPolicy topologyManagerScope volumePluginDir"
        ),
        "*string": "resolvConf",
        "v1beta1.ImagePullCredentialsVerificationPolicy": "imagePullCredentialsVerificationPolicy",
        "v1beta1.MemoryReservationPolicy": "memoryReservationPolicy",
        "v1beta1.ResourceChangeDetectionStrategy": "configMapAndSecretChangeDetectionStrategy",
        "bool": (
            "enableContentionProfiling kernelMemcgNotification protectKernelDefaults rotateCertificates runOnce"
            " serverTLSBootstrap"
        ),
        "*bool": (
            "cgroupsPerQOS cpuCFSQuota enableControllerAttachDetach enableDebugFlagsHandler enableDebuggingHandlers"
            " enableProfilingHandler enableServer enableSystemLogHandler enableSystemLogQuery failCgroupV1 failSwapOn"
            " localStorageCapacityIsolation makeIPTablesUtilChains mergeDefaultEvictionSettings registerNode"
            " seccompDefault serializeImagePulls singleProcessOOMKill"
        ),
        "int32": (
            "eventBurst evictionMaxPodGracePeriod kubeAPIBurst maxPods nodeLeaseDurationSeconds podsPerCore port"
            " readOnlyPort registryBurst"
        ),
        "*int32": (
            "containerLogMaxFiles containerLogMaxWorkers eventRecordQPS healthzPort imageGCHighThresholdPercent"
            " imageGCLowThresholdPercent iptablesDropBit iptablesMasqueradeBit kubeAPIQPS maxParallelImagePulls"
            " nodeStatusMaxImages oomScoreAdj registryPullQPS"
        ),
        "int64": "maxOpenFiles",
        "*int64": "podPidsLimit",
        "*float64": "memoryThrottlingFactor",
        "v1.Duration": (
            "cpuManagerReconcilePeriod evictionPressureTransitionPeriod fileCheckFrequency httpCheckFrequency"
            " imageMaximumGCAge imageMinimumGCAge nodeStatusReportFrequency nodeStatusUpdateFrequency"
            " runtimeRequestTimeout shutdownGracePeriod shutdownGracePeriodCriticalPods streamingConnectionIdleTimeout"
            " syncFrequency volumeStatsAggPeriod"
        ),
        "*v1.Duration": "containerLogMonitorInterval cpuCFSQuotaPeriod",
        "map[string]string": (
            "cpuManagerPolicyOptions evictionHard evictionMinimumReclaim evictionSoft evictionSoftGracePeriod"
            " kubeReserved qosReserved systemReserved topologyManagerPolicyOptions"
        ),
        "map[string]bool": "featureGates",
        "map[string][]string": "staticPodURLHeader",
        "[]string": (
            "allowedUnsafeSysctls clusterDNS enforceNodeAllocatable preloadedImagesVerificationAllowlist"
            " tlsCipherSuites"
        ),
        "[]int32": "tlsCurvePreferences",
        "[]v1.Taint": "registerWithTaints",
        "[]v1beta1.MemoryReservation": "reservedMemory",
        "[]v1beta1.ShutdownGracePeriodByPodPriority": "shutdownGracePeriodByPodPriority",
        "v1beta1.CrashLoopBackOffConfig": "crashLoopBackOff",
        "v1beta1.KubeletAuthentication": "authentication",
        "v1beta1.KubeletAuthorization": "authorization",
        "v1beta1.MemorySwapConfiguration": "memorySwap",
        "*v1beta1.UserNamespaces": "userNamespaces",
        "v1.LoggingConfiguration": "logging",
        "*v1.TracingConfiguration": "tracing",
    },
    "CrashLoopBackOffConfig": {"*v1.Duration": "maxContainerRestartPeriod"},
    "FormatOptions": {"v1.JSONOptions": "json", "v1.TextOptions": "text"},
    "JSONOptions": {"bool": "splitStream", "resource.QuantityValue": "infoBufferSize"},
    "KubeletAnonymousAuthentication": {"*bool": "enabled"},
    "KubeletAuthentication": {
        "v1beta1.KubeletAnonymousAuthentication": "anonymous",
        "v1beta1.KubeletWebhookAuthentication": "webhook",
        "v1beta1.KubeletX509Authentication": "x509",
    },
    "KubeletAuthorization": {
        "v1beta1.KubeletAuthorizationMode": "mode",
        "v1beta1.KubeletWebhookAuthorization": "webhook",
    },
    "KubeletWebhookAuthentication": {"*bool": "enabled", "v1.Duration": "cacheTTL"},
    "KubeletWebhookAuthorization": {"v1.Duration": "cacheAuthorizedTTL cacheUnauthorizedTTL"},
    "KubeletX509Authentication": {"string": "clientCAFile"},
    "LoggingConfiguration": {
        "string": "format",
        "v1.FormatOptions": "options",
        "v1.TimeOrMetaDuration": "flushFrequency",
        "v1.VModuleConfiguration": "vmodule",
        "v1.VerbosityLevel": "verbosity",
    },
    "MemoryReservation": {"int32": "numaNode", "v1.ResourceList": "limits"},
    "MemorySwapConfiguration": {"string": "swapBehavior"},
    "ShutdownGracePeriodByPodPriority": {"int32": "priority", "int64": "shutdownGracePeriodSeconds"},
    "Taint": {"string": "key value", "v1.TaintEffect": "effect", "*v1.Time": "timeAdded"},
    "TextOptions": {"bool": "splitStream", "resource.QuantityValue": "infoBufferSize"},
    "TracingConfiguration": {"*int32": "samplingRatePerMillion", "*string": "endpoint"},
    "UserNamespaces": {"*int64": "idsPerPod"},
    "VModuleItem": {"string": "filePattern", "v1.VerbosityLevel": "verbosity"},
}
_EMBEDDED = {"JSONOptions": "OutputRoutingOptions", "TextOptions": "OutputRoutingOptions"}

# (since, until): the minor version that has it first, and the one that no longer has it. Only those that are younger
# than the oldest version whose rules are known here.
_VERSIONS: dict[str, tuple[int, int]] = {
    "containerRuntimeEndpoint": (27, _NEVER),
    "cpuManagerPolicyOptions": (22, _NEVER),
    "failCgroupV1": (31, _NEVER),
    "memoryManagerPolicy": (21, _NEVER),
    "memoryReservationPolicy": (36, _NEVER),
    "mergeDefaultEvictionSettings": (33, _NEVER),
    "reservedMemory": (21, _NEVER),
    "singleProcessOOMKill": (32, _NEVER),
    "tlsCurvePreferences": (36, _NEVER),
    "topologyManagerPolicyOptions": (26, _NEVER),
}


def _type(name: str) -> GoType:
    if name.startswith("map[string]"):
        return GoType(MAP, name, _type(name[len("map[string]") :]))
    if name.startswith("[]"):
        return GoType(LIST, name, _type(name[2:]))
    if name in _NAMED_MAPS:
        return GoType(MAP, name, _type(_NAMED_MAPS[name]))
    if name in _NAMED_LISTS:
        return GoType(LIST, name, _type(_NAMED_LISTS[name]))
    struct = name.rpartition(".")[2]
    return GoType(STRUCT, name, None, struct) if struct in _FIELDS else GoType(_NAMED.get(name, name), name)


def _fields(struct: str) -> dict[str, Field]:
    fields: dict[str, Field] = {}
    for name, members in _FIELDS[struct].items():
        kind, is_pointer = _type(name.lstrip("*")), name.startswith("*")
        for member in members.split():
            since, until = _VERSIONS.get(member, (0, _NEVER)) if struct == KUBELET_CONFIGURATION else (0, _NEVER)
            fields[member] = Field(kind, is_pointer, since, until, _EMBEDDED.get(struct, ""))
    return fields


def fold(name: str) -> str:
    """The name without upper and lower case, as encoding/json compares: two letters beyond ASCII are among them."""
    return name.lower().replace("\u017f", "s")


STRUCTS: Mapping[str, Mapping[str, Field]] = {struct: _fields(struct) for struct in _FIELDS}
# {struct: {name without upper and lower case: name}}
FOLDED: Mapping[str, Mapping[str, str]] = {
    struct: {fold(name): name for name in fields} for struct, fields in STRUCTS.items()
}


def find_field(struct: str, key: str, minor: int, folds: bool) -> str | None:
    """The name of the field that a key stands for; None where there is none. `folds`: case does not count."""
    fields = STRUCTS[struct]
    name: str | None = key if key in fields else FOLDED[struct].get(fold(key)) if folds else None
    return name if name is not None and fields[name].since <= minor < fields[name].until else None


# What a file gets that has none, as JSON. Those that depend on a version, a gate or another field are not here.
DEFAULTS: Mapping[str, object] = {
    "address": "0.0.0.0",
    "authentication": {
        "anonymous": {"enabled": False},
        "webhook": {"cacheTTL": "2m0s", "enabled": True},
        "x509": {},
    },
    "authorization": {
        "mode": "Webhook",
        "webhook": {"cacheAuthorizedTTL": "5m0s", "cacheUnauthorizedTTL": "30s"},
    },
    "cgroupDriver": "cgroupfs",
    "cgroupsPerQOS": True,
    "configMapAndSecretChangeDetectionStrategy": "Watch",
    "containerLogMaxFiles": 5,
    "containerLogMaxSize": "10Mi",
    "containerLogMaxWorkers": 1,
    "containerLogMonitorInterval": "10s",
    "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
    "contentType": "application/vnd.kubernetes.protobuf",
    "cpuCFSQuota": True,
    "cpuCFSQuotaPeriod": "100ms",
    "cpuManagerPolicy": "none",
    "cpuManagerReconcilePeriod": "10s",
    "crashLoopBackOff": {},
    "enableControllerAttachDetach": True,
    "enableDebugFlagsHandler": True,
    "enableDebuggingHandlers": True,
    "enableProfilingHandler": True,
    "enableServer": True,
    "enableSystemLogHandler": True,
    "enforceNodeAllocatable": ["pods"],
    "eventBurst": 100,
    "eventRecordQPS": 50,
    "evictionPressureTransitionPeriod": "5m0s",
    "failSwapOn": True,
    "fileCheckFrequency": "20s",
    "hairpinMode": "promiscuous-bridge",
    "healthzBindAddress": "127.0.0.1",
    "healthzPort": 10248,
    "httpCheckFrequency": "20s",
    "imageGCHighThresholdPercent": 85,
    "imageGCLowThresholdPercent": 80,
    "imageMaximumGCAge": "0s",
    "imageMinimumGCAge": "2m0s",
    "iptablesDropBit": 15,
    "iptablesMasqueradeBit": 14,
    "kubeAPIBurst": 100,
    "kubeAPIQPS": 50,
    "localStorageCapacityIsolation": True,
    "logging": {
        "flushFrequency": "5s",
        "format": "text",
        "options": {"json": {"infoBufferSize": "0"}, "text": {"infoBufferSize": "0"}},
        "verbosity": 0,
    },
    "makeIPTablesUtilChains": True,
    "maxOpenFiles": 1000000,
    "maxPods": 110,
    "memoryManagerPolicy": "None",
    "memorySwap": {},
    "memoryThrottlingFactor": 0.9,
    "mergeDefaultEvictionSettings": False,
    "nodeLeaseDurationSeconds": 40,
    "nodeStatusMaxImages": 50,
    "nodeStatusReportFrequency": "5m0s",
    "nodeStatusUpdateFrequency": "10s",
    "oomScoreAdj": -999,
    "podLogsDir": "/var/log/pods",
    "podPidsLimit": -1,
    "port": 10250,
    "registerNode": True,
    "registryBurst": 10,
    "registryPullQPS": 5,
    "resolvConf": "/etc/resolv.conf",
    "runtimeRequestTimeout": "2m0s",
    "seccompDefault": False,
    "serializeImagePulls": True,
    "shutdownGracePeriod": "0s",
    "shutdownGracePeriodCriticalPods": "0s",
    "streamingConnectionIdleTimeout": "4h0m0s",
    "syncFrequency": "1m0s",
    "topologyManagerPolicy": "none",
    "topologyManagerScope": "container",
    "volumePluginDir": "/usr/libexec/kubernetes/kubelet-plugins/volume/exec/",
    "volumeStatsAggPeriod": "1m0s",
}

# What a kubelet without --config has instead (cmd/kubelet/app/options, applyLegacyDefaults).
DEFAULTS_WITHOUT_FILE: Mapping[str, object] = {
    "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
    "authorization": {"mode": "AlwaysAllow"},
    "readOnlyPort": 10255,
}

# From this minor version on a kubelet does not start on cgroup v1 unless it is configured to.
FAIL_CGROUP_V1_SINCE = 35

GROUP = "kubelet.config.k8s.io"

# {version: {kind: the minor version that has it first}}: all that the kubelet reads of this group.
KINDS: Mapping[str, Mapping[str, int]] = {
    "v1alpha1": {"CredentialProviderConfig": 20, "ImagePullIntent": 33, "ImagePulledRecord": 33},
    "v1beta1": {
        KUBELET_CONFIGURATION: 0,
        "SerializedNodeConfigSource": 0,
        "CredentialProviderConfig": 24,
        "ImagePullIntent": 35,
        "ImagePulledRecord": 35,
    },
    "v1": {"CredentialProviderConfig": 26},
}
