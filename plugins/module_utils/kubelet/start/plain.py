# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The configuration that nearly all nodes have, decoded at once: one plain file, and flags that only name places.

All that a kubelet could refuse here is left to load.py and command.py, which are compiled on a node only where they
are needed. What is decoded here is what they make of it; a test holds that.
"""

from __future__ import annotations

from typing import Any, Mapping, Sequence

from ...quantity import DurationError, nanoseconds
from ..file.configuration import API_VERSION, KIND
from ..file.document import is_json
from ..file.nodes import ReadError
from ..file.yaml import read

TEXT, SWITCH, DURATION, TEXTS, SWITCHES, LIST = "text", "switch", "duration", "texts", "switches", "list"
# Only as the zero that stands for the default.
ZERO = "zero"

# Of these any value of the right type is taken, or judged in checks/ later.
_BY_KIND: Mapping[str, str] = {
    TEXT: (
        "cgroupRoot clusterDomain containerLogMaxSize containerRuntimeEndpoint cpuManagerPolicy"
        " kubeReservedCgroup memoryManagerPolicy providerID reservedSystemCPUs resolvConf staticPodPath"
        " systemReservedCgroup topologyManagerPolicy topologyManagerScope volumePluginDir"
    ),
    SWITCH: (
        "cgroupsPerQOS cpuCFSQuota enableControllerAttachDetach enableServer failCgroupV1 failSwapOn"
        " makeIPTablesUtilChains mergeDefaultEvictionSettings protectKernelDefaults registerNode rotateCertificates"
        " seccompDefault serverTLSBootstrap singleProcessOOMKill"
    ),
    DURATION: "cpuCFSQuotaPeriod cpuManagerReconcilePeriod",
    TEXTS: "cpuManagerPolicyOptions evictionHard kubeReserved systemReserved topologyManagerPolicyOptions",
    SWITCHES: "featureGates",
    LIST: "allowedUnsafeSysctls clusterDNS enforceNodeAllocatable",
    ZERO: (
        "evictionPressureTransitionPeriod fileCheckFrequency httpCheckFrequency imageMaximumGCAge imageMinimumGCAge"
        " nodeStatusReportFrequency nodeStatusUpdateFrequency runtimeRequestTimeout shutdownGracePeriod"
        " shutdownGracePeriodCriticalPods streamingConnectionIdleTimeout syncFrequency volumeStatsAggPeriod"
    ),
}
# Numbers, and the range in which no kubelet refuses them.
_NUMBERS = {
    "eventBurst": (0, 1 << 31),
    "eventRecordQPS": (0, 1 << 31),
    "healthzPort": (1, 65536),
    "kubeAPIBurst": (0, 1 << 31),
    "kubeAPIQPS": (0, 1 << 31),
    "maxPods": (0, 1 << 31),
    "readOnlyPort": (0, 65536),
}
# Texts of which only these are known to be taken.
_CHOICES = {"cgroupDriver": ("systemd", "cgroupfs"), "healthzBindAddress": ("127.0.0.1", "0.0.0.0")}
# Structs as kubeadm writes them.
_STRUCTS: Mapping[str, object] = {
    "authentication": {
        "anonymous": {"enabled": SWITCH},
        "webhook": {"enabled": SWITCH, "cacheTTL": ZERO},
        "x509": {"clientCAFile": TEXT},
    },
    "authorization": {
        "mode": ("Webhook", "AlwaysAllow"),
        "webhook": {"cacheAuthorizedTTL": ZERO, "cacheUnauthorizedTTL": ZERO},
    },
    "crashLoopBackOff": {},
    "logging": {
        "flushFrequency": ZERO,
        "options": {"json": {"infoBufferSize": ZERO}, "text": {"infoBufferSize": ZERO}},
        "verbosity": ZERO,
    },
    "memorySwap": {},
}
_KINDS: dict[str, object] = {name: kind for kind, names in _BY_KIND.items() for name in names.split()}
_KINDS.update(_STRUCTS)
_KINDS.update(_CHOICES)

# These name files and sockets, and are not judged.
_FLAGS = frozenset(("--bootstrap-kubeconfig", "--cert-dir", "--config", "--config-dir", "--kubeconfig", "--root-dir"))
_LONGEST = 1 << 16
# From this minor version on a kubelet has all of these fields.
_ALL_SINCE = 33


class _NotPlainError(Exception):
    """It takes more to decode this."""


def are_plain(arguments: Sequence[str]) -> bool:
    """Whether flags only name places."""
    return all(map(_is_plain, arguments))


def plain_file(content: bytes) -> Mapping[str, object] | None:
    """The values of a file in plain YAML; None of any other."""
    if len(content) > _LONGEST:
        return None
    try:
        text = content.decode("ascii")
        root = None if is_json(text) else read(text)
    except (ReadError, UnicodeDecodeError):
        return None
    return None if root is None or root.duplicates or not isinstance(root.value, dict) else root.value


def plain_values(values: Mapping[str, object], minor: int) -> dict[str, Any] | None:
    """What the kubelet decodes of the values of a file; None where that takes more."""
    if minor < _ALL_SINCE or (values.get("apiVersion"), values.get("kind")) != (API_VERSION, KIND):
        return None
    try:
        return {name: _field(name, value) for name, value in values.items()}
    except _NotPlainError:
        return None


def _is_plain(argument: str) -> bool:
    name, _equals, value = argument.partition("=")
    return name in _FLAGS and bool(value) and value.isprintable()


def _field(name: str, value: object) -> object:
    if name in ("apiVersion", "kind"):
        return value
    if name in _NUMBERS:
        low, high = _NUMBERS[name]
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value < high:
            raise _NotPlainError
        return value
    return _decoded(_KINDS.get(name), value)


def _decoded(kind: object, value: object) -> object:
    if isinstance(kind, Mapping) and isinstance(value, dict):
        return {key: _decoded(kind.get(key), item) for key, item in value.items()}
    if kind == ZERO and value in ("0s", "0", 0) and not isinstance(value, (bool, float)):
        return 0
    if kind == DURATION and isinstance(value, str):
        try:
            return nanoseconds(value)
        except DurationError:
            raise _NotPlainError from None
    if not _is_right(kind, value):
        raise _NotPlainError
    return value


def _is_right(kind: object, value: object) -> bool:
    """Whether a value that is kept as it is is of this kind."""
    if kind in (TEXTS, SWITCHES):
        item = str if kind == TEXTS else bool
        return isinstance(value, dict) and all(isinstance(element, item) for element in value.values())
    if kind == LIST:
        return isinstance(value, list) and all(isinstance(element, str) for element in value)
    if kind == SWITCH:
        return isinstance(value, bool)
    return isinstance(value, str) and bool(value) and (kind == TEXT or (isinstance(kind, tuple) and value in kind))
