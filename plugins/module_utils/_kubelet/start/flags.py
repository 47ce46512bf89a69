# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All flags of a kubelet on Linux: what each takes, which field of the KubeletConfiguration it sets, when it existed.

Source: cmd/kubelet/app/options (options.go, globalflags_linux.go); pkg/kubelet/config/flags.go;
k8s.io/component-base/logs/api/v1/options.go; k8s.io/component-base/version/verflag. For 1.29 to 1.32: the first two as
they were in 1.30, with what was added and removed from there to 1.33. When a flag was removed is from the pull request
that did it.
"""

from __future__ import annotations

from typing import NamedTuple

STRING, BOOL, INT32, INT64, DURATION = "string", "bool", "int32", "int64", "duration"
# Texts with commas between them, read as one line of CSV; each time that the flag is given adds to the list.
STRINGS = "stringSlice"
IP = "ip"
# key=value with commas between them; one key=value each time; key<value; key=value where a key may stand alone.
PAIRS, PAIR, THRESHOLDS, LABELS = "mapStringString", "mapStringString (one)", "mapStringString (<)", "configurationMap"
GATES = "mapStringBool"
# key:value, where a key may have several values.
HEADERS = "colonSeparatedMultimapStringString"
MEMORY, TAINTS = "reserved-memory", "[]v1.Taint"
LEVEL, PATTERNS = "Level", "pattern=N,..."
QUANTITY = "quantity"
VERSION = "version"
# Flags of Go's own package, whose errors have other words.
GO_BOOL, GO_INT, GO_DURATION = "bool of Go", "int of Go", "duration of Go"

# A flag of these takes its value behind "=" only.
SWITCHES = frozenset((BOOL, GO_BOOL, VERSION))

HELP, VERSION_FLAG = "help", "version"
CONFIG, CONFIG_DIR = "config", "config-dir"
FEATURE_GATES, NODE_LABELS, CLOUD_PROVIDER = "feature-gates", "node-labels", "cloud-provider"
LOCK_FILE, EXIT_ON_LOCK = "lock-file", "exit-on-lock-contention"

_ALWAYS = 1000


class Flag(NamedTuple):
    """A flag: `path` is the field that it sets, () where it sets none; it exists in 1.`since` up to before 1.`until`.

    `is_global` are flags of libraries: when the kubelet reads its flags once more, over the file, they have no effect
    and all take a value.
    """

    name: str
    kind: str
    path: tuple[str, ...] = ()
    shorthand: str = ""
    is_global: bool = False
    since: int = 0
    until: int = _ALWAYS


# Flag and field.
_FIELDS = {
    STRING: """
        authorization-mode authorization.mode
        cgroup-driver cgroupDriver
        cgroup-root cgroupRoot
        client-ca-file authentication.x509.clientCAFile
        cluster-domain clusterDomain
        container-log-max-size containerLogMaxSize
        container-runtime-endpoint containerRuntimeEndpoint
        cpu-manager-policy cpuManagerPolicy
        hairpin-mode hairpinMode
        image-service-endpoint imageServiceEndpoint
        kube-api-content-type contentType
        kube-reserved-cgroup kubeReservedCgroup
        kubelet-cgroups kubeletCgroups
        logging-format logging.format
        manifest-url staticPodURL
        memory-manager-policy memoryManagerPolicy
        pod-cidr podCIDR
        pod-manifest-path staticPodPath
        provider-id providerID
        reserved-cpus reservedSystemCPUs
        resolv-conf resolvConf
        system-cgroups systemCgroups
        system-reserved-cgroup systemReservedCgroup
        tls-cert-file tlsCertFile
        tls-min-version tlsMinVersion
        tls-private-key-file tlsPrivateKeyFile
        topology-manager-policy topologyManagerPolicy
        topology-manager-scope topologyManagerScope
        volume-plugin-dir volumePluginDir
    """,
    BOOL: """
        anonymous-auth authentication.anonymous.enabled
        authentication-token-webhook authentication.webhook.enabled
        cgroups-per-qos cgroupsPerQOS
        contention-profiling enableContentionProfiling
        cpu-cfs-quota cpuCFSQuota
        enable-controller-attach-detach enableControllerAttachDetach
        enable-debugging-handlers enableDebuggingHandlers
        enable-server enableServer
        fail-cgroupv1 failCgroupV1
        fail-swap-on failSwapOn
        kernel-memcg-notification kernelMemcgNotification
        local-storage-capacity-isolation localStorageCapacityIsolation
        log-json-split-stream logging.options.json.splitStream
        log-text-split-stream logging.options.text.splitStream
        make-iptables-util-chains makeIPTablesUtilChains
        protect-kernel-defaults protectKernelDefaults
        register-node registerNode
        rotate-certificates rotateCertificates
        rotate-server-certificates serverTLSBootstrap
        runonce runOnce
        serialize-image-pulls serializeImagePulls
    """,
    INT32: """
        container-log-max-files containerLogMaxFiles
        event-burst eventBurst
        event-qps eventRecordQPS
        eviction-max-pod-grace-period evictionMaxPodGracePeriod
        healthz-port healthzPort
        image-gc-high-threshold imageGCHighThresholdPercent
        image-gc-low-threshold imageGCLowThresholdPercent
        iptables-drop-bit iptablesDropBit
        iptables-masquerade-bit iptablesMasqueradeBit
        kube-api-burst kubeAPIBurst
        kube-api-qps kubeAPIQPS
        max-pods maxPods
        node-status-max-images nodeStatusMaxImages
        oom-score-adj oomScoreAdj
        pods-per-core podsPerCore
        port port
        read-only-port readOnlyPort
        registry-burst registryBurst
        registry-qps registryPullQPS
    """,
    INT64: "max-open-files maxOpenFiles pod-max-pids podPidsLimit",
    DURATION: """
        authentication-token-webhook-cache-ttl authentication.webhook.cacheTTL
        authorization-webhook-cache-authorized-ttl authorization.webhook.cacheAuthorizedTTL
        authorization-webhook-cache-unauthorized-ttl authorization.webhook.cacheUnauthorizedTTL
        cpu-cfs-quota-period cpuCFSQuotaPeriod
        cpu-manager-reconcile-period cpuManagerReconcilePeriod
        eviction-pressure-transition-period evictionPressureTransitionPeriod
        file-check-frequency fileCheckFrequency
        http-check-frequency httpCheckFrequency
        log-flush-frequency logging.flushFrequency
        minimum-image-ttl-duration imageMinimumGCAge
        node-status-update-frequency nodeStatusUpdateFrequency
        runtime-request-timeout runtimeRequestTimeout
        streaming-connection-idle-timeout streamingConnectionIdleTimeout
        sync-frequency syncFrequency
        volume-stats-agg-period volumeStatsAggPeriod
    """,
    STRINGS: """
        allowed-unsafe-sysctls allowedUnsafeSysctls
        cluster-dns clusterDNS
        enforce-node-allocatable enforceNodeAllocatable
        tls-cipher-suites tlsCipherSuites
    """,
    IP: "address address healthz-bind-address healthzBindAddress",
    PAIRS: """
        eviction-minimum-reclaim evictionMinimumReclaim
        eviction-soft-grace-period evictionSoftGracePeriod
        kube-reserved kubeReserved
        qos-reserved qosReserved
        system-reserved systemReserved
        topology-manager-policy-options topologyManagerPolicyOptions
    """,
    PAIR: "cpu-manager-policy-options cpuManagerPolicyOptions",
    THRESHOLDS: "eviction-hard evictionHard eviction-soft evictionSoft",
    GATES: "feature-gates featureGates",
    HEADERS: "manifest-url-header staticPodURLHeader",
    MEMORY: "reserved-memory reservedMemory",
    TAINTS: "register-with-taints registerWithTaints",
    LEVEL: "v logging.verbosity",
    PATTERNS: "vmodule logging.vmodule",
    QUANTITY: """
        log-json-info-buffer-size logging.options.json.infoBufferSize
        log-text-info-buffer-size logging.options.text.infoBufferSize
    """,
}

# Those that set no field.
_OWN = {
    STRING: (
        "bootstrap-kubeconfig cert-dir cloud-config cloud-provider config config-dir experimental-mounter-path"
        " hostname-override image-credential-provider-bin-dir image-credential-provider-config kubeconfig lock-file"
        " node-ip pod-infra-container-image root-dir runtime-cgroups"
        # Of older kubelets.
        " azure-container-registry-config cni-bin-dir cni-cache-dir cni-conf-dir container-runtime docker-endpoint"
        " dynamic-config-dir"
        " master-service-namespace network-plugin non-masquerade-cidr"
    ),
    BOOL: (
        "allow-privileged exit-on-lock-contention experimental-allocatable-ignore-eviction help"
        " keep-terminated-pod-volumes register-schedulable seccomp-default"
    ),
    INT32: "maximum-dead-containers maximum-dead-containers-per-container network-plugin-mtu",
    DURATION: "image-pull-progress-deadline minimum-container-ttl-duration",
    LABELS: NODE_LABELS,
}

# Those of libraries: cAdvisor's, and --version.
_GLOBAL = {
    STRING: (
        "boot-id-file container-hints containerd containerd-namespace event-storage-age-limit event-storage-event-limit"
        " machine-id-file storage-driver-db storage-driver-host storage-driver-password storage-driver-table"
        " storage-driver-user"
        # Of klog, in older kubelets.
        " log-backtrace-at log-dir log-file log-file-max-size stderrthreshold"
    ),
    GO_BOOL: (
        "add-dir-header alsologtostderr enable-load-reader log-cadvisor-usage logtostderr one-output skip-headers"
        " skip-log-headers storage-driver-secure"
    ),
    GO_INT: "application-metrics-count-limit",
    GO_DURATION: "global-housekeeping-interval housekeeping-interval storage-driver-buffer-duration",
    VERSION: VERSION_FLAG,
}

_SHORTHANDS = {"help": "h", "v": "v"}

_SINCE = {"config-dir": 28, "fail-cgroupv1": 31, "log-text-info-buffer-size": 31, "log-text-split-stream": 31}

# The first minor version without them.
_UNTIL = {
    **{
        name: 37
        for names in _GLOBAL.values()
        for name in names.split()
        if name not in ("housekeeping-interval", VERSION_FLAG)
    },
    **{
        name: minor
        for minor, names in (
            (15, "allow-privileged"),
            (24, "cni-bin-dir cni-cache-dir cni-conf-dir docker-endpoint dynamic-config-dir"),
            (24, "image-pull-progress-deadline network-plugin network-plugin-mtu non-masquerade-cidr"),
            (26, "add-dir-header alsologtostderr log-backtrace-at log-dir log-file log-file-max-size logtostderr"),
            (26, "one-output skip-headers skip-log-headers stderrthreshold"),
            (27, "container-runtime master-service-namespace"),
            (30, "azure-container-registry-config"),
            (31, "iptables-drop-bit iptables-masquerade-bit keep-terminated-pod-volumes"),
            (34, "cloud-config register-schedulable"),
            (35, "pod-infra-container-image"),
        )
        for name in names.split()
    },
}

# From this minor version on a kubelet has no flags but these. Of older ones some may be missing here.
COMPLETE_SINCE = 29


def _flags() -> dict[str, Flag]:
    found = {}
    for kind, text in _FIELDS.items():
        words = text.split()
        for name, field in zip(words[::2], words[1::2]):
            found[name] = Flag(name, kind, tuple(field.split(".")))
    for table, is_global in ((_OWN, False), (_GLOBAL, True)):
        for kind, text in table.items():
            found.update((name, Flag(name, kind, is_global=is_global)) for name in text.split())
    return {
        name: flag._replace(
            shorthand=_SHORTHANDS.get(name, ""), since=_SINCE.get(name, 0), until=_UNTIL.get(name, _ALWAYS)
        )
        for name, flag in found.items()
    }


FLAGS = _flags()
_BY_SHORTHAND = {flag.shorthand: flag for flag in FLAGS.values() if flag.shorthand}


def flag_of(name: str, minor: int) -> Flag | None:
    """The flag of this name that the kubelet 1.`minor` has; an underscore is a dash."""
    flag = FLAGS.get(name.replace("_", "-"))
    return flag if flag and flag.since <= minor < flag.until else None


def flag_of_letter(letter: str) -> Flag | None:
    """The flag of this one letter."""
    return _BY_SHORTHAND.get(letter)


def removed_in(name: str, minor: int) -> int | None:
    """The minor version that removed this flag; None where it is not known, or the kubelet 1.`minor` still has it."""
    flag = FLAGS.get(name.replace("_", "-"))
    return flag.until if flag and flag.until <= minor else None
