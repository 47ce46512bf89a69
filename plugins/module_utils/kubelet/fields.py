# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The fields of a KubeletConfiguration: what the kubelet ignores, and what it cannot decode.

The kubelet decodes its file strictly first. Where that fails for an unknown field it only logs so and ignores the
field; the spelling counts, upper and lower case too. A value of a wrong type it refuses either way.
Source: k8s.io/kubelet/config/v1beta1/types.go; pkg/kubelet/kubeletconfig/util/codec; encoding/json (decode.go).
"""

from __future__ import annotations

import json
from typing import Any, Iterator, Mapping

from ..quantity import DurationError, nanoseconds
from ..state.golang import quote
from .finding import Finding, harmful, refused

TEXT, BOOL, INT32, INT64 = "string", "bool", "int32", "int64"
DURATION = "duration"
TEXTS, SWITCHES, LIST = "map[string]string", "map[string]bool", "[]string"
# A struct, or what else is not looked into.
OTHER = "other"

_BY_KIND = {
    TEXT: (
        "address apiVersion cgroupDriver cgroupRoot clusterDomain configMapAndSecretChangeDetectionStrategy"
        " containerLogMaxSize containerRuntimeEndpoint contentType cpuManagerPolicy hairpinMode healthzBindAddress"
        " imagePullCredentialsVerificationPolicy imageServiceEndpoint kind kubeReservedCgroup kubeletCgroups"
        " memoryManagerPolicy memoryReservationPolicy podCIDR podLogsDir providerID reservedSystemCPUs resolvConf"
        " showHiddenMetricsForVersion staticPodPath staticPodURL systemCgroups systemReservedCgroup tlsCertFile"
        " tlsMinVersion tlsPrivateKeyFile topologyManagerPolicy topologyManagerScope volumePluginDir"
    ),
    BOOL: (
        "cgroupsPerQOS cpuCFSQuota enableContentionProfiling enableControllerAttachDetach enableDebugFlagsHandler"
        " enableDebuggingHandlers enableProfilingHandler enableServer enableSystemLogHandler enableSystemLogQuery"
        " failCgroupV1 failSwapOn kernelMemcgNotification localStorageCapacityIsolation makeIPTablesUtilChains"
        " mergeDefaultEvictionSettings protectKernelDefaults registerNode rotateCertificates runOnce seccompDefault"
        " serializeImagePulls serverTLSBootstrap singleProcessOOMKill"
    ),
    INT32: (
        "containerLogMaxFiles containerLogMaxWorkers eventBurst eventRecordQPS evictionMaxPodGracePeriod healthzPort"
        " imageGCHighThresholdPercent imageGCLowThresholdPercent iptablesDropBit iptablesMasqueradeBit kubeAPIBurst"
        " kubeAPIQPS maxParallelImagePulls maxPods nodeLeaseDurationSeconds nodeStatusMaxImages oomScoreAdj"
        " podsPerCore port readOnlyPort registryBurst registryPullQPS"
    ),
    INT64: "maxOpenFiles podPidsLimit",
    DURATION: (
        "containerLogMonitorInterval cpuCFSQuotaPeriod cpuManagerReconcilePeriod evictionPressureTransitionPeriod"
        " fileCheckFrequency httpCheckFrequency imageMaximumGCAge imageMinimumGCAge nodeStatusReportFrequency"
        " nodeStatusUpdateFrequency runtimeRequestTimeout shutdownGracePeriod shutdownGracePeriodCriticalPods"
        " streamingConnectionIdleTimeout syncFrequency volumeStatsAggPeriod"
    ),
    TEXTS: (
        "cpuManagerPolicyOptions evictionHard evictionMinimumReclaim evictionSoft evictionSoftGracePeriod kubeReserved"
        " qosReserved systemReserved topologyManagerPolicyOptions"
    ),
    SWITCHES: "featureGates",
    LIST: "allowedUnsafeSysctls clusterDNS enforceNodeAllocatable preloadedImagesVerificationAllowlist tlsCipherSuites",
    OTHER: (
        "authentication authorization crashLoopBackOff logging memorySwap memoryThrottlingFactor registerWithTaints"
        " reservedMemory shutdownGracePeriodByPodPriority staticPodURLHeader tlsCurvePreferences tracing userNamespaces"
    ),
}
FIELDS: dict[str, str] = {name: kind for kind, names in _BY_KIND.items() for name in names.split()}

# Those of them that are younger than the oldest version whose rules are known here.
_SINCE = {
    "containerRuntimeEndpoint": 27,
    "cpuManagerPolicyOptions": 22,
    "failCgroupV1": 31,
    "memoryManagerPolicy": 21,
    "memoryReservationPolicy": 36,
    "mergeDefaultEvictionSettings": 33,
    "reservedMemory": 21,
    "singleProcessOOMKill": 32,
    "tlsCurvePreferences": 36,
    "topologyManagerPolicyOptions": 26,
}

# The members of structs; in a list, of each item. None: not looked into.
_MEMBERS: dict[str, Any] = {
    "authentication": {
        "anonymous": {"enabled": None},
        "webhook": {"enabled": None, "cacheTTL": None},
        "x509": {"clientCAFile": None},
    },
    "authorization": {"mode": None, "webhook": {"cacheAuthorizedTTL": None, "cacheUnauthorizedTTL": None}},
    "crashLoopBackOff": {"maxContainerRestartPeriod": None},
    "memorySwap": {"swapBehavior": None},
    "reservedMemory": {"numaNode": None, "limits": None},
    "shutdownGracePeriodByPodPriority": {"priority": None, "shutdownGracePeriodSeconds": None},
    "userNamespaces": {"idsPerPod": None},
}

# How alike two names are that may be one, of 1.
_SPELLING = 0.8

_LIMITS = {INT32: 1 << 31, INT64: 1 << 63}
_ITEMS = {TEXTS: TEXT, SWITCHES: BOOL, LIST: TEXT}
_EMPTY: dict[str, Any] = {TEXTS: "", SWITCHES: False, LIST: ""}


def unknown_fields(values: Mapping[str, Any], minor: int) -> list[Finding]:
    """The fields that the kubelet 1.`minor` ignores."""
    findings = []
    known: dict[str, Any] = {name: _MEMBERS.get(name) for name in FIELDS if _SINCE.get(name, minor) <= minor}
    for path, name, siblings in _unknown(values, known, ""):
        cause = "the kubelet 1.%d knows no such field and ignores it" % minor
        meant = _nearest(name, siblings)
        if meant == name:
            remedy = "remove it, or upgrade to Kubernetes 1.%d" % _SINCE[name]
        elif meant:
            remedy = "write %s" % meant
            cause += "; upper and lower case count" if meant.lower() == name.lower() else ""
        else:
            remedy = "check how it is spelled, or remove it"
        findings.append(harmful(cause, remedy, path, "strict decoding error: unknown field %s" % quote(path)))
    return findings


def _unknown(value: Any, known: Mapping[str, Any], path: str) -> Iterator[tuple[str, str, list[str]]]:
    """(path, name, the names known there) of each member that is not known."""
    if isinstance(value, list):
        for number, item in enumerate(value):
            yield from _unknown(item, known, "%s[%d]" % (path, number))
    if not isinstance(value, Mapping):
        return
    for name, member in value.items():
        here = "%s.%s" % (path, name) if path else name
        if name not in known:
            yield here, name, list(known if path else FIELDS)
        elif known[name] is not None:
            yield from _unknown(member, known[name], here)


def _nearest(name: str, known: list[str]) -> str | None:
    # Imported here: nearly all configurations are spelled right.
    from difflib import get_close_matches

    by_lower_case = {field.lower(): field for field in known}
    found = get_close_matches(name.lower(), by_lower_case, 1, cutoff=_SPELLING)
    return by_lower_case[found[0]] if found else None


def decoded(values: Mapping[str, Any], minor: int) -> tuple[dict[str, Any], list[Finding]]:
    """The fields as the kubelet 1.`minor` decodes them, and what it cannot decode.

    In place of what it cannot decode is what was probably meant, so that all else can be checked too. A null is as
    if the field was not there.
    """
    found: dict[str, Any] = {}
    findings: list[Finding] = []
    for name, value in values.items():
        kind = FIELDS.get(name)
        if kind is None or value is None or minor < _SINCE.get(name, minor):
            continue
        if kind == OTHER:
            found[name] = value
            continue
        kept = _decoded(name, kind, value, findings)
        if kept is not None:
            found[name] = kept
    return found, findings


def _decoded(name: str, kind: str, value: Any, findings: list[Finding]) -> Any:
    if kind in (TEXTS, SWITCHES) and isinstance(value, Mapping):
        members = {
            # Go decodes a null as the empty value.
            key: _scalar(name, _ITEMS[kind], _EMPTY[kind] if item is None else item, findings, key)
            for key, item in value.items()
        }
        return {key: item for key, item in members.items() if item is not None}
    if kind == LIST and isinstance(value, list):
        items = [_scalar(name, TEXT, _EMPTY[kind] if item is None else item, findings) for item in value]
        return [item for item in items if item is not None]
    if kind in _ITEMS:
        findings.append(_wrong_type(name, kind, value))
        return None
    if kind == DURATION:
        return _duration(name, value, findings)
    return _scalar(name, kind, value, findings)


def _scalar(name: str, kind: str, value: Any, findings: list[Finding], key: str = "") -> Any:
    if kind in _LIMITS:
        right = isinstance(value, int) and not isinstance(value, bool) and -_LIMITS[kind] <= value < _LIMITS[kind]
    else:
        right = isinstance(value, str if kind == TEXT else bool)
    if right:
        return value
    findings.append(_wrong_type(name, kind, value, key))
    if kind == TEXT and isinstance(value, (bool, int, float)):
        return json.dumps(value)
    if kind == BOOL and value in ("true", "false"):
        return value == "true"
    return None


def _duration(name: str, value: Any, findings: list[Finding]) -> int | None:
    """Its nanoseconds."""
    remedy = "write it with its unit, as in 10s, 1m30s or 500ms"
    if not isinstance(value, str):
        text = "failed to decode: json: cannot unmarshal %s into Go value of type string" % _json_kind(value)
        findings.append(refused(text, "the kubelet wants a text here", remedy, name))
        return None
    try:
        return nanoseconds(value)
    except DurationError as error:
        found = quote(value)
        if error.unit is None:
            said = "invalid duration %s" % found
        else:
            unit = "unknown unit %s" % quote(error.unit) if error.unit else "missing unit"
            said = "%s in duration %s" % (unit, found)
        findings.append(refused("failed to decode: time: %s" % said, str(error), remedy, name))
        return None


def _wrong_type(name: str, kind: str, value: Any, key: str = "") -> Finding:
    text = "failed to decode: json: cannot unmarshal %s into Go struct field KubeletConfiguration.%s of type %s"
    remedy = "write true or false" if kind == BOOL else "write a %s" % kind
    if kind == TEXT and not isinstance(value, (Mapping, list)):
        remedy = 'put it in quotes, as in "%s"' % json.dumps(value)
    return refused(
        text % (_json_kind(value, kind), name, kind),
        "it is a %s, and the kubelet wants a %s" % (_json_kind(value), kind),
        remedy,
        "%s.%s" % (name, key) if key else name,
    )


def _json_kind(value: Any, kind: str = "") -> str:
    """What Go calls a JSON value; a number that does not fit it shows."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, (int, float)):
        return "number %s" % json.dumps(value) if kind in _LIMITS else "number"
    return "object" if isinstance(value, Mapping) else "array" if isinstance(value, list) else "string"
