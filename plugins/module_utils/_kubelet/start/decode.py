# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How Go makes a KubeletConfiguration of JSON values, and what it says of those that do not fit.

Go goes on behind a value of a wrong type and reports the first one in the end. A type that reads its JSON itself, as
a duration does, ends the decoding at once when it fails. In a --config file upper and lower case count in names; in
what drop-ins are merged into they do not, and of several spellings the later one is decoded into the earlier one.
Source: encoding/json (decode.go); sigs.k8s.io/json; k8s.io/apimachinery (Duration, Quantity, Time).
"""

from __future__ import annotations

import re
from typing import Any, Callable, Iterable, Mapping, NamedTuple

from ..._base.errors import GoError
from ..._base.golang import Number, Object, quote
from ..._base.quantity import MAX_DURATION
from ..configuration import COMMON_DEFAULTS
from .amount import quantity_fault, quote_octets, read_duration

# JSON values as Go meets them, and what it says of texts that are no time.
#
# Its source: encoding/json (encode.go), time (format.go).


# --- JSON values ---------------------------------------------------------------------------------------


def is_object(value: object) -> bool:
    """Return whether it is a JSON object: a dict, or an Object of a JSON text."""
    return isinstance(value, (dict, Object))


def pairs(value: Any) -> Iterable[tuple[str, Any]]:
    """Return the members of an object in the order in which Go meets them: YAML becomes JSON with sorted keys."""
    return value if isinstance(value, Object) else sorted(value.items())


def kind_of(value: object) -> str:
    """Return what Go calls a JSON value."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, (int, float, Number)):
        return "number"
    return "object" if is_object(value) else "array" if isinstance(value, list) else "string"


def number_text(number: object) -> str:
    """Return a number as JSON has it: as it is written there, or as Go writes it."""
    if not isinstance(number, float):
        return str(number)
    text = repr(number)
    if number and not 1e-6 <= abs(number) < 1e21:
        return text.replace("e-0", "e-")
    if "e" not in text:
        return text[:-2] if text.endswith(".0") else text
    from decimal import Decimal

    return format(Decimal(text), "f")


# --- times ---------------------------------------------------------------------------------------------------

# What Go takes off from around a text, as far as it is left in JSON as it is.
SPACES = " \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"

_TIME = re.compile(
    r"[0-9]{4}-([0-9]{2})-([0-9]{2})[Tt]([0-9]{1,2}):([0-9]{2}):([0-9]{2})(?:[.,][0-9]+)?(?:[Zz]|[-+][0-9]{2}:[0-9]{2})",
    re.ASCII,
)


def time_fault(text: str) -> str:
    """Return what time.Parse says of a text that is no time, up to the part that it stumbles over; empty for a time."""
    match = _TIME.fullmatch(text)
    if not match:
        return 'parsing time %s as "2006-01-02T15:04:05Z07:00": cannot parse ' % quote_octets(text)
    names = ("month", "day", "hour", "minute", "second")
    limits = ((1, 12), (1, 31), (0, 23), (0, 59), (0, 59))
    for name, number, (first, last) in zip(names, match.groups(), limits):
        if not first <= int(number) <= last:
            return "parsing time %s: %s out of range" % (quote_octets(text), name)
    return ""


# The KubeletConfiguration v1beta1 as Go's types: what each field is, since which version, and its default.
#
# Its source: k8s.io/kubelet/config/v1beta1 (types.go, register.go), k8s.io/component-base/logs/api/v1
# and tracing/api/v1 (types.go), k8s.io/api/core/v1 (Taint, ResourceList);
# pkg/kubelet/apis/config/v1beta1 (defaults.go).


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

# (since, until): the minor version that has it first, and the one that no longer has it; of a struct inside with the
# struct's name. Complete from 1.29 on. Its source for 1.29 to 1.32: the validation and the defaults of 1.30, and the
# pull requests and gates that brought a field.
_VERSIONS: dict[str, tuple[int, int]] = {
    "FormatOptions.text": (31, _NEVER),
    "containerLogMaxWorkers": (30, _NEVER),
    "containerLogMonitorInterval": (30, _NEVER),
    "containerRuntimeEndpoint": (27, _NEVER),
    "cpuManagerPolicyOptions": (22, _NEVER),
    "crashLoopBackOff": (32, _NEVER),
    "failCgroupV1": (31, _NEVER),
    "imageMaximumGCAge": (29, _NEVER),
    "imagePullCredentialsVerificationPolicy": (33, _NEVER),
    "memoryManagerPolicy": (21, _NEVER),
    "memoryReservationPolicy": (36, _NEVER),
    "mergeDefaultEvictionSettings": (33, _NEVER),
    "podLogsDir": (30, _NEVER),
    "preloadedImagesVerificationAllowlist": (33, _NEVER),
    "reservedMemory": (21, _NEVER),
    "singleProcessOOMKill": (32, _NEVER),
    "tlsCurvePreferences": (36, _NEVER),
    "topologyManagerPolicyOptions": (26, _NEVER),
    "userNamespaces": (33, _NEVER),
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
            path = member if struct == KUBELET_CONFIGURATION else "%s.%s" % (struct, member)
            since, until = _VERSIONS.get(path, (0, _NEVER))
            fields[member] = Field(kind, is_pointer, since, until, _EMBEDDED.get(struct, ""))
    return fields


def fold(name: str) -> str:
    """Return the name without upper and lower case, as encoding/json compares: two letters beyond ASCII are among
    them."""
    return name.lower().replace("\u017f", "s")


STRUCTS: Mapping[str, Mapping[str, Field]] = {struct: _fields(struct) for struct in _FIELDS}
# {struct: {name without upper and lower case: name}}
FOLDED: Mapping[str, Mapping[str, str]] = {
    struct: {fold(name): name for name in fields} for struct, fields in STRUCTS.items()
}


def find_field(struct: str, key: str, minor: int, folds: bool) -> str | None:
    """Return the name of the field that a key stands for; None where there is none. `folds`: case does not count."""
    fields = STRUCTS[struct]
    name: str | None = key if key in fields else FOLDED[struct].get(fold(key)) if folds else None
    return name if name is not None and fields[name].since <= minor < fields[name].until else None


# What a file gets that has none, as JSON. Those that depend on a version, a gate or another field are not here.
DEFAULTS: Mapping[str, object] = {
    **COMMON_DEFAULTS,
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
    "cgroupsPerQOS": True,
    "configMapAndSecretChangeDetectionStrategy": "Watch",
    "containerLogMaxFiles": 5,
    "containerLogMaxSize": "10Mi",
    "containerLogMaxWorkers": 1,
    "containerLogMonitorInterval": "10s",
    "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
    "contentType": "application/vnd.kubernetes.protobuf",
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
# Before this minor version it counts the files of logs only when it makes their manager.
LOG_FILES_CHECKED_SINCE = 33

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


# The first Go version that names embedded structs in errors came with this minor version of Kubernetes.
_EMBEDDED_SINCE = 33

_RANGES = {INT32: (-(1 << 31), 1 << 31), INT64: (-(1 << 63), 1 << 63), UINT32: (0, 1 << 32)}
_INTEGER = re.compile(r"-?[0-9]{1,20}")

_WRITE_DURATION = "write it with its unit, as in 10s, 1m30s or 500ms"
_WRITE_QUANTITY = "write CPUs as 2 or 500m, memory as 1Gi"


class DecodeError(Exception):
    """Go does not decode this. `text` is what it says, `where` the path of the field; the rest is for people."""

    def __init__(self, text: str, where: str, cause: str, remedy: str) -> None:
        super().__init__(text)
        self.text = text
        self.where = where
        self.cause = cause
        self.remedy = remedy


def decode_file(tree: object, minor: int) -> dict[str, Any]:
    """Return the fields of a --config file. Raises DecodeError.

    A duration becomes its nanoseconds; what is absent, or null where Go has a pointer, a map or a list, is left out.
    """
    return _Decoder(minor, False).decode(tree)


def decode_merged(tree: object, minor: int) -> dict[str, Any]:
    """Return the fields of what drop-ins were merged into. Raises DecodeError."""
    return _Decoder(minor, True).decode(tree)


class _Decoder:
    """Decodes one configuration.

    `stack` is where it is in Go's words, `place` the same for people; `saved` is the first value of a wrong type.
    """

    def __init__(self, minor: int, folds: bool) -> None:
        self.minor = minor
        self.folds = folds
        self.struct = ""
        self.stack: list[str] = []
        self.place: list[str] = []
        self.key = ""
        self.saved: DecodeError | None = None

    def decode(self, tree: object) -> dict[str, object]:
        values = self._members(KUBELET_CONFIGURATION, tree, {})
        if self.saved:
            raise self.saved
        return values

    def _members(self, struct: str, value: object, current: Mapping[str, object]) -> dict[str, object]:
        members = dict(current)
        outer, depth = self.struct, len(self.stack)
        for key, item in pairs(value):
            name = find_field(struct, key, self.minor, self.folds)
            if name is None:
                continue
            field = STRUCTS[struct][name]
            if field.embedded and self.folds and self.minor >= _EMBEDDED_SINCE:
                self.stack.append(field.embedded)
            self.stack.append(name)
            self.place.append(name)
            self.struct, self.key = struct, ""
            decoded = self._field(field, item, members.get(name))
            if decoded is None:
                members.pop(name, None)
            else:
                members[name] = decoded
            del self.stack[depth:]
            self.place.pop()
        self.struct = outer
        return members

    def _field(self, field: Field, value: object, current: object) -> object:
        if value is None and field.is_pointer:
            return None
        return self._value(field.type, value, current)

    def _value(self, kind: GoType, value: object, current: object) -> Any:
        return _DECODERS[kind.kind](self, kind, value, current)

    # Each of these gives the value that Go has then, which is the current one where a value does not fit.

    def _string(self, kind: GoType, value: object, current: object) -> object:
        if value is None or (isinstance(value, str) and not isinstance(value, Number)):
            return current if value is None else value
        return self._save(kind, value, current)

    def _bool(self, kind: GoType, value: object, current: object) -> object:
        if value is None or isinstance(value, bool):
            return current if value is None else value
        return self._save(kind, value, current)

    def _integer(self, kind: GoType, value: object, current: object) -> object:
        if value is None:
            return current
        if kind_of(value) == "number":
            text = number_text(value)
            first, end = _RANGES[kind.kind]
            if _INTEGER.fullmatch(text) and first <= int(text) < end and (kind.kind != UINT32 or text[0] != "-"):
                return int(text)
            return self._save(kind, value, current, " " + text)
        return self._save(kind, value, current)

    def _float(self, kind: GoType, value: Any, current: Any) -> object:
        # A null comes to pointers only.
        if kind_of(value) == "number":
            number = float(value)
            if abs(number) != float("inf"):
                return number
            return self._save(kind, value, current, " " + number_text(value))
        return self._save(kind, value, current)

    def _duration(self, _kind: GoType, value: Any, _current: Any) -> object:
        if kind_of(value) != "string" and value is not None:
            raise self._mismatch("string", value, _WRITE_DURATION)
        return self._parsed_duration(value or "")

    def _flush_duration(self, _kind: GoType, value: Any, current: Any) -> object:
        """Return a text, or a number of nanoseconds."""
        if value is None or kind_of(value) == "string":
            return current if value is None else self._parsed_duration(value)
        text = number_text(value)
        if kind_of(value) == "number" and _INTEGER.fullmatch(text) and -MAX_DURATION <= int(text) < MAX_DURATION:
            return int(text)
        said = "json: cannot unmarshal %s into Go value of type time.Duration"
        if kind_of(value) == "number":
            said = "invalid duration %s: %s" % (quote(text), said % ("number " + text))
        elif isinstance(value, bool):
            said = "invalid duration %s: %s" % (quote(str(value).lower()), said % "bool")
        else:
            said %= kind_of(value)
        raise self._error(said, "it is no duration", _WRITE_DURATION)

    def _parsed_duration(self, text: str) -> int:
        try:
            return read_duration(text)
        except GoError as error:
            cause = "it is no duration" if text else "there is no duration"
            raise self._error(str(error), cause, _WRITE_DURATION) from error

    def _quantity(self, _kind: GoType, value: object, _current: object) -> object:
        if value is None:
            return "0"
        is_bare = kind_of(value) in ("string", "number")
        text = (value if isinstance(value, str) else number_text(value)).strip(SPACES) if is_bare else ""
        fault = quantity_fault(text)
        if fault:
            raise self._error(fault, "it is no quantity", _WRITE_QUANTITY)
        return text if any(digit in text for digit in "0123456789") else "0"

    def _time(self, _kind: GoType, value: Any, _current: Any) -> Any:
        if kind_of(value) != "string":
            raise self._mismatch("string", value, "write it as 2026-01-31T12:00:00Z")
        fault = time_fault(value)
        if fault:
            raise self._error(fault, "it is no time", "write it as 2026-01-31T12:00:00Z")
        return value

    def _map(self, kind: GoType, value: Any, current: Any) -> object:
        if value is None:
            return None
        if not is_object(value):
            return self._save(kind, value, current)
        members = dict(current or {})
        for key, item in pairs(value):
            self.key = key
            members[key] = self._value(kind.item, item, _zero(kind.item)) or _zero(kind.item)
        self.key = ""
        return members

    def _list(self, kind: GoType, value: Any, current: Any) -> Any:
        if value is None:
            return None
        if is_object(value) or not isinstance(value, list):
            return self._save(kind, value, current)
        items = []
        here = self.place[-1]
        for number, item in enumerate(value):
            if not self.key:
                self.place[-1] = "%s[%d]" % (here, number)
            # Go decodes into the item that is there.
            before = current[number] if current and number < len(current) else _zero(kind.item)
            decoded = self._value(kind.item, item, before)
            items.append({**_zero(kind.item), **decoded} if kind.item.kind == STRUCT else decoded)
        self.place[-1] = here
        return items

    def _struct(self, kind: GoType, value: Any, current: Any) -> object:
        if value is None:
            return current
        if not is_object(value):
            return self._save(kind, value, current)
        return self._members(kind.struct, value, current or {})

    # --- errors ---

    def _save(self, kind: GoType, value: object, current: object, number: str = "") -> Any:
        if self.saved is None:
            self.saved = self._mismatch(kind.name, value, _remedy(kind, value), number)
        return current

    def _mismatch(self, wanted: str, value: object, remedy: str, number: str = "") -> DecodeError:
        found = kind_of(value)
        text = "json: cannot unmarshal %s%s into Go struct field %s.%s of type %s"
        text %= (found, number, self.struct, ".".join(self.stack), wanted)
        cause = "it is %s%s, and the kubelet wants %s" % (_a(found), number, _a(wanted))
        return self._error(text, cause, remedy)

    def _error(self, text: str, cause: str, remedy: str) -> DecodeError:
        return DecodeError(text, ".".join([*self.place, *([self.key] if self.key else [])]), cause, remedy)


def _remedy(kind: GoType, value: object) -> str:
    if kind.kind == BOOL:
        return "write true or false"
    if kind.kind == STRING and kind_of(value) in ("bool", "number"):
        text = str(value).lower() if isinstance(value, bool) else number_text(value)
        return 'put it in quotes, as in "%s"' % text
    if kind.kind in (MAP, STRUCT):
        return "write a mapping"
    return "write a list" if kind.kind == LIST else "write %s" % _a(kind.name)


def _a(name: str) -> str:
    return "an " + name if name[0] in "aio" else "a " + name


_ZEROS: dict[str, Any] = {STRING: "", BOOL: False, INT32: 0, INT64: 0, UINT32: 0, FLOAT: 0.0, QUANTITY: "0"}


def _zero(kind: GoType) -> Any:
    """Return what Go has where nothing is decoded into an item."""
    if kind.kind == STRUCT:
        fields = STRUCTS[kind.struct].items()
        return {name: _zero(field.type) for name, field in fields if not field.is_pointer}
    return {} if kind.kind == MAP else [] if kind.kind == LIST else _ZEROS[kind.kind]


_DECODERS: dict[str, Callable[[_Decoder, GoType, Any, Any], Any]] = {
    STRING: _Decoder._string,
    BOOL: _Decoder._bool,
    INT32: _Decoder._integer,
    INT64: _Decoder._integer,
    UINT32: _Decoder._integer,
    FLOAT: _Decoder._float,
    DURATION: _Decoder._duration,
    FLUSH_DURATION: _Decoder._flush_duration,
    QUANTITY: _Decoder._quantity,
    TIME: _Decoder._time,
    MAP: _Decoder._map,
    LIST: _Decoder._list,
    STRUCT: _Decoder._struct,
}
