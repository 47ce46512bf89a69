# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The kubelet's validation of the fields beside CPUs, memory, NUMA nodes, cgroups, images and logging.

One function for each stretch of ValidateKubeletConfiguration, in its order.
Source: pkg/kubelet/apis/config/validation (validation.go, validation_others.go), Kubernetes 1.33 to 1.36, and
validation.go of 1.30; k8s.io/component-base/tracing/api/v1 (types.go), pkg/util/taints.
"""

from __future__ import annotations

from typing import Any, Iterator, Mapping

from ..._base.errors import GoError
from ..._base.golang import quote
from ..._base.startup import Pattern
from ..gates import Gates
from .amount import duration_text
from .decode import LOG_FILES_CHECKED_SINCE
from .fields import (
    NO_END,
    FieldValues,
    NumberRange,
    at_least_zero,
    between,
    gate_is_off,
    invalid,
    number_in,
    one_of,
    range_findings,
    struct_in,
    text_in,
)
from .findings import Finding, refused

# The names and values of labels and taints, and what Kubernetes says of those that are none.
#
# Its source: k8s.io/apimachinery/pkg/api/validate/content (kube.go, dns.go, errors.go), and
# well_known_labels.go of k8s.io/kubelet/pkg/apis, pkg/util/taints, ValidateKubeletFlags of cmd/kubelet/app/options.


_MAX_NAME = 63
_MAX_PREFIX = 253
_NAME_FORM = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_FORM = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_PREFIX_FORM = r"%s(\.%s)*" % (_LABEL_FORM, _LABEL_FORM)

# Forms that match the same in linear time.
_NAME = Pattern("[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")
_PREFIX_LABEL = Pattern("[a-z0-9](?:[-a-z0-9]*[a-z0-9])?")

_CHARACTERS = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric"
_NAME_FAULT = "%s character (e.g. 'MyName' or 'my.name' or '123-abc', regex used for validation is '%s')" % (
    _CHARACTERS,
    _NAME_FORM,
)
_VALUE_FAULT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and"
    " end with an alphanumeric character (e.g. 'MyValue' or 'my_value' or '12345',"
    " regex used for validation is '(%s)?')"
) % _NAME_FORM
_PREFIX_FAULT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and"
    " end with an alphanumeric character (e.g. 'example.com', regex used for validation is '%s')"
) % _PREFIX_FORM

# Kubernetes 1.35 calls what was a qualified name a label key.
_LABEL_KEY = 35

_OF_KUBERNETES = ("kubernetes.io", "k8s.io")
_NAMESPACES = ("kubelet.kubernetes.io", "node.kubernetes.io")
_ALLOWED = (
    "beta.kubernetes.io/arch",
    "beta.kubernetes.io/instance-type",
    "beta.kubernetes.io/os",
    "failure-domain.beta.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "kubernetes.io/arch",
    "kubernetes.io/hostname",
    "kubernetes.io/os",
    "node.kubernetes.io/instance-type",
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
)

_TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def name_faults(key: str, minor: int) -> list[str]:
    """Return what is wrong with the key of a label or taint."""
    parts = key.split("/")
    if len(parts) > 2:
        what = "a valid label key" if minor >= _LABEL_KEY else "a qualified name"
        optional = " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return ["%s %s%s" % (what, _NAME_FAULT, optional)]
    faults = ["prefix part %s" % fault for fault in _prefix_faults(parts[0])] if len(parts) == 2 else []
    name = parts[-1]
    if not name:
        faults.append("name part must be non-empty")
    elif _size(name) > _MAX_NAME:
        faults.append("name part must be no more than %d bytes" % _MAX_NAME)
    if not _NAME.fullmatch(name):
        faults.append("name part %s" % _NAME_FAULT)
    return faults


def _prefix_faults(prefix: str) -> list[str]:
    if not prefix:
        return ["must be non-empty"]
    faults = ["must be no more than %d bytes" % _MAX_PREFIX] if _size(prefix) > _MAX_PREFIX else []
    if not all(_PREFIX_LABEL.fullmatch(label) for label in prefix.split(".")):
        faults.append(_PREFIX_FAULT)
    return faults


def value_faults(value: str) -> list[str]:
    """Return what is wrong with the value of a label or taint."""
    faults = ["must be no more than %d bytes" % _MAX_NAME] if _size(value) > _MAX_NAME else []
    if value and not _NAME.fullmatch(value):
        faults.append(_VALUE_FAULT)
    return faults


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def labels_fault(labels: Mapping[str, str], minor: int) -> str:
    """Return what the kubelet says of the labels for its node, "" where nothing is wrong with them."""
    unknown = sorted(key for key in labels if _is_of_kubernetes(key) and not _is_allowed(key))
    if unknown:
        return (
            "unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels: [%s]\n"
            "--node-labels in the 'kubernetes.io' namespace must begin with an allowed prefix (%s)"
            " or be in the specifically allowed set (%s)"
        ) % (" ".join(unknown), ", ".join(_NAMESPACES), ", ".join(_ALLOWED))
    faults: dict[str, list[str]] = {}
    for key, value in labels.items():
        for text, found in ((key, name_faults(key, minor)), (value, value_faults(value))):
            if found:
                faults.setdefault(text, []).extend(found)
    # Go's order of them is random: only a single one is certain.
    first = next(("'%s' - %s" % (text, ", ".join(found)) for text, found in faults.items()), "")
    return "invalid node labels: %s" % (first if len(faults) == 1 else "'") if faults else ""


def _namespace(key: str) -> str:
    namespace, slash, _name = key.partition("/")
    return namespace if slash else ""


def _is_of_kubernetes(key: str) -> bool:
    return _is_within(_namespace(key), _OF_KUBERNETES)


def _is_allowed(key: str) -> bool:
    return key in _ALLOWED or _is_within(_namespace(key), _NAMESPACES)


def _is_within(namespace: str, domains: tuple[str, ...]) -> bool:
    return any(namespace == domain or namespace.endswith("." + domain) for domain in domains)


def read_taints(text: str, minor: int) -> list[dict[str, str]]:
    """Read taints as `key=value:effect` with commas between them; one that ends in "-" is checked only. Raises
    GoError."""
    taints: dict[tuple[str, str], dict[str, str]] = {}
    for spec in text.split(",") if text else ():
        removed = spec.endswith("-")
        taint = _read_taint(spec[:-1] if removed else spec, minor)
        if removed:
            continue
        if not taint["effect"]:
            raise GoError("invalid taint spec: %s" % spec)
        mark = (taint["effect"], taint["key"])
        if mark in taints:
            shown = " ".join((taint["key"], taint["value"], taint["effect"]))
            raise GoError("duplicated taints with the same key and effect: {%s <nil>}" % shown)
        taints[mark] = taint
    return list(taints.values())


def _read_taint(spec: str, minor: int) -> dict[str, str]:
    parts = spec.split(":")
    if len(parts) > 2:
        raise GoError("invalid taint spec: %s" % spec)
    key, value, effect = parts[0], "", ""
    if len(parts) == 2:
        effect = parts[1]
        if effect not in _TAINT_EFFECTS:
            raise GoError("invalid taint effect: %s, unsupported taint effect" % effect)
        pair = key.split("=")
        if len(pair) > 2:
            raise GoError("invalid taint spec: %s" % spec)
        key, value = pair[0], pair[1] if len(pair) == 2 else ""
    for faults in (value_faults(value), name_faults(key, minor)):
        if faults:
            raise GoError("invalid taint spec: %s, %s" % (spec, "; ".join(faults)))
    return {"key": key, "value": value, "effect": effect}


# The kubelet's validation of the fields about images: their removal, and how they are pulled.
#
# Its source: pkg/kubelet/apis/config/validation (validation.go), Kubernetes 1.33 to 1.36,
# pkg/kubelet/images/pullmanager.


# --- removal -------------------------------------------------------------------------------------------------

_IMAGE_THRESHOLDS = (
    between("imageGCHighThresholdPercent", "image-gc-high-threshold", 0, 100),
    between("imageGCLowThresholdPercent", "image-gc-low-threshold", 0, 100),
)
_MAXIMUM_AGE, _MINIMUM_AGE = "imageMaximumGCAge", "imageMinimumGCAge"
_MINIMUM_AGE_CHECKED_SINCE = 36


def image_findings(fields: FieldValues, gates: Gates) -> Iterator[Finding]:
    """Yield the findings on the fields from imageGCHighThresholdPercent to imageMaximumGCAge."""
    yield from range_findings(fields, _IMAGE_THRESHOLDS)
    high, low = (fields.number(threshold.field) for threshold in _IMAGE_THRESHOLDS)
    if low >= high:
        yield invalid(
            "imageGCLowThresholdPercent (--image-gc-low-threshold) %d must be less than"
            " imageGCHighThresholdPercent (--image-gc-high-threshold) %d" % (low, high),
            "images are removed from the high threshold down to the low one; the defaults are 85 and 80",
            "lower the one, or raise the other",
            "imageGCLowThresholdPercent",
        )
    longest, shortest = fields.number(_MAXIMUM_AGE), fields.number(_MINIMUM_AGE)
    if longest and not gates.enabled("ImageMaximumGCAge"):
        text = "ImageMaximumGCAge feature gate is required for Kubelet configuration option imageMaximumGCAge"
        yield gate_is_off(text, "ImageMaximumGCAge", _MAXIMUM_AGE)
    if shortest < 0 and fields.minor >= _MINIMUM_AGE_CHECKED_SINCE:
        yield _negative_age(_MINIMUM_AGE, shortest)
    if longest < 0:
        yield _negative_age(_MAXIMUM_AGE, longest)
    if 0 < longest <= shortest:
        yield invalid(
            "imageMaximumGCAge %s must be greater than imageMinimumGCAge %s"
            % (duration_text(longest), duration_text(shortest)),
            "an image would be too old before it may be removed; imageMinimumGCAge is 2m by default",
            "raise imageMaximumGCAge, or lower imageMinimumGCAge",
            _MAXIMUM_AGE,
        )


def _negative_age(where: str, age: int) -> Finding:
    text = "%s %s must not be negative" % (where, duration_text(age))
    return invalid(text, "an age is not negative", "write a duration such as 24h", where)


# --- pulling -------------------------------------------------------------------------------------------------

_PULLS = "maxParallelImagePulls"


def parallel_findings(fields: FieldValues) -> Iterator[Finding]:
    """Yield the findings on maxParallelImagePulls."""
    pulls = fields.number(_PULLS, 1)
    if pulls < 1:
        text = "maxParallelImagePulls %d must be a positive number" % pulls
        yield invalid(text, "no image could be pulled", "write 1 or more, or remove it for no limit", _PULLS)
    elif pulls > 1 and fields.is_true("serializeImagePulls"):
        yield invalid(
            "maxParallelImagePulls cannot be larger than 1 unless SerializeImagePulls (--serialize-image-pulls) is"
            " set to false",
            "images are pulled one after the other",
            "set serializeImagePulls: false, or remove maxParallelImagePulls",
            _PULLS,
        )


_POLICY, _ALLOWLIST = "imagePullCredentialsVerificationPolicy", "preloadedImagesVerificationAllowlist"
_ALLOWLIST_POLICY = "NeverVerifyAllowlistedImages"
_POLICIES = ("NeverVerify", "NeverVerifyPreloadedImages", _ALLOWLIST_POLICY, "AlwaysVerify")
_PULL_GATE = "KubeletEnsureSecretPulledImages"


def pull_findings(fields: FieldValues, gates: Gates) -> Iterator[Finding]:
    """Yield whether images that are there already need the pod's own pull secret."""
    # The default depends on the gate.
    policy, allowlist = text_in(fields.given.get(_POLICY)), fields.items(_ALLOWLIST)
    if gates.enabled(_PULL_GATE):
        yield from _policy_findings(policy or _POLICIES[1], allowlist)
        return
    for where, is_set in ((_POLICY, bool(policy)), (_ALLOWLIST, bool(allowlist))):
        if is_set:
            text = "`%s` must not be set if %s feature gate is not enabled" % (where, _PULL_GATE)
            yield gate_is_off(text, _PULL_GATE, where)


def _policy_findings(policy: str, allowlist: list[Any]) -> Iterator[Finding]:
    if policy not in _POLICIES:
        text = "option %s specified for %s. Valid options are %s" % (quote(policy), _POLICY, one_of(_POLICIES))
        yield invalid(text, "there is no such policy", "write one of %s" % ", ".join(_POLICIES), _POLICY)
    if not allowlist:
        return
    if policy != _ALLOWLIST_POLICY:
        # The kubelet's spelling.
        text = "can't set `%s` if `imagePullCredentialsVertificationPolicy` is not %s"
        yield invalid(
            text % (_ALLOWLIST, quote(_ALLOWLIST_POLICY)),
            "the list is of use for this policy only",
            "set %s: %s, or remove the list" % (_POLICY, _ALLOWLIST_POLICY),
            _ALLOWLIST,
        )
        return
    from .fields import image_pattern_fault

    fault = next(filter(None, (image_pattern_fault(text_in(pattern)) for pattern in allowlist)), "")
    if fault:
        text = "invalid image pattern in `%s`: %s" % (_ALLOWLIST, fault)
        yield invalid(text, "it names no image", "write registry/image or registry/*, without a tag", _ALLOWLIST)


_SECOND = 10**9
_MILLISECOND = 10**6

# --- numbers -------------------------------------------------------------------------------------------------

_EVENTS = (
    at_least_zero("eventBurst", "event-burst"),
    at_least_zero("eventRecordQPS", "event-qps"),
    between("healthzPort", "healthz-port", 1, 65535, allows_zero=True),
)
_LIMITS = (
    between("iptablesDropBit", "iptables-drop-bit", 0, 31),
    between("iptablesMasqueradeBit", "iptables-masquerade-bit", 0, 31),
    at_least_zero("kubeAPIBurst", "kube-api-burst"),
    at_least_zero("kubeAPIQPS", "kube-api-qps"),
    NumberRange("nodeStatusMaxImages", "node-status-max-images", -1, NO_END, "must be -1 or greater"),
    at_least_zero("maxOpenFiles", "max-open-files"),
    at_least_zero("maxPods", "max-pods"),
    between("oomScoreAdj", "oom-score-adj", -1000, 1000),
    at_least_zero("podsPerCore", "pods-per-core"),
    between("port", "port", 1, 65535),
    between("readOnlyPort", "read-only-port", 0, 65535),
    at_least_zero("registryBurst", "registry-burst"),
    at_least_zero("registryPullQPS", "registry-qps"),
)


# --- the first fields ----------------------------------------------------------------------------------------


def event_findings(fields: FieldValues) -> Iterator[Finding]:
    """Yield the findings on the fields from nodeLeaseDurationSeconds to healthzPort."""
    where = "nodeLeaseDurationSeconds"
    if fields.number(where) <= 0:
        text = "nodeLeaseDurationSeconds must be greater than 0"
        yield invalid(text, "a lease has to last", "write 40, the default", where)
    where = "systemCgroups"
    if fields.text(where) and not fields.text("cgroupRoot"):
        yield invalid(
            "systemCgroups (--system-cgroups) was specified and cgroupRoot (--cgroup-root) was not specified",
            "the kubelet moves processes to a cgroup only below a root that is given",
            "set cgroupRoot: /, or remove systemCgroups",
            where,
        )
    yield from range_findings(fields, _EVENTS)


# --- limits -------------------------------------------------------------------------------------------------

_RUN_ONCE_REFUSED_SINCE = 33


def limit_findings(fields: FieldValues, gates: Gates) -> Iterator[Finding]:
    """Yield the findings on the fields from iptablesDropBit to runOnce."""
    yield from range_findings(fields, _LIMITS)
    yield from parallel_findings(fields)
    gate, where = "RotateKubeletServerCertificate", "serverTLSBootstrap"
    if fields.is_true(where) and not gates.enabled(gate):
        yield gate_is_off("serverTLSBootstrap true requires feature gate " + gate, gate, where)
    if fields.is_true("runOnce") and fields.minor >= _RUN_ONCE_REFUSED_SINCE:
        yield invalid(
            "runOnce (--runOnce) true, Runonce mode has been deprecated and should not be set",
            "Kubernetes 1.33 and later have no such mode",
            "remove runOnce",
            "runOnce",
        )


# --- taints --------------------------------------------------------------------------------------------------

_TAINTS = "registerWithTaints"
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def taint_findings(fields: FieldValues) -> Iterator[Finding]:
    """Yield the taints that a node registers with."""
    for position, taint in enumerate(map(struct_in, fields.items(_TAINTS))):
        where = "%s[%d]" % (_TAINTS, position)
        key, value, effect = (text_in(taint.get(name)) for name in ("key", "value", "effect"))
        has_time = taint.get("timeAdded") is not None
        fault = _taint_fault(key, value, effect, fields.minor)
        if fault:
            # How Go prints a time depends on the machine.
            shown = "{%s %s %s %s" % (key, value, effect, "" if has_time else "<nil>}")
            yield refused("invalid taint: " + shown, fault, "correct it, or remove the taint", where)
        if has_time:
            text = "taint.TimeAdded is not nil"
            yield invalid(text, "the time is not for a configuration to set", "remove timeAdded", where)


def _taint_fault(key: str, value: str, effect: str, minor: int) -> str:
    faults = [*name_faults(key, minor), *(value_faults(value) if value else ())]
    if effect and effect not in _EFFECTS:
        faults.append("the effect is none of %s" % ", ".join(_EFFECTS))
    return faults[0] if faults else ""


# --- shutdown, swap, restarts --------------------------------------------------------------------------------

_GRACE, _CRITICAL, _BY_PRIORITY = (
    "shutdownGracePeriod",
    "shutdownGracePeriodCriticalPods",
    "shutdownGracePeriodByPodPriority",
)


def shutdown_findings(fields: FieldValues, gates: Gates) -> Iterator[Finding]:
    """Yield the grace periods of a node's shutdown."""
    period, critical = fields.number(_GRACE), fields.number(_CRITICAL)
    by_priority = fields.items(_BY_PRIORITY)
    if not (period or critical or by_priority):
        return
    if gates.enabled("GracefulNodeShutdown"):
        if period < critical:
            yield invalid(
                "shutdownGracePeriodCriticalPods {%s} must be <= shutdownGracePeriod {%s}"
                % (duration_text(critical), duration_text(period)),
                "the time for critical pods is a part of the whole",
                "raise shutdownGracePeriod, or lower shutdownGracePeriodCriticalPods",
                _CRITICAL,
            )
        for where, value in ((_GRACE, period), (_CRITICAL, critical)):
            if value < 0 or 0 < value < _SECOND:
                text = "%s {%s} must be either zero or otherwise >= 1 sec" % (where, duration_text(value))
                yield invalid(text, "it is negative, or below a second", "write 0s, or 1s and more", where)
    elif period > 0 or critical > 0:
        text = "specifying shutdownGracePeriod or shutdownGracePeriodCriticalPods requires feature gate "
        where = _GRACE if period > 0 else _CRITICAL
        yield gate_is_off(text + "GracefulNodeShutdown", "GracefulNodeShutdown", where)
    if not by_priority:
        return
    gate = "GracefulNodeShutdownBasedOnPodPriority"
    if not gates.enabled(gate):
        text = "Specifying shutdownGracePeriodByPodPriority requires feature gate " + gate
        yield gate_is_off(text, gate, _BY_PRIORITY)
    elif period > 0 or critical > 0:
        text = "Cannot specify both shutdownGracePeriodByPodPriority and shutdownGracePeriod at the same time"
        yield invalid(text, "the one excludes the other", "remove one of the two", _BY_PRIORITY)


_SWAP = "memorySwap.swapBehavior"
_NO_BEHAVIOR = "there is no such behavior"
# Before this minor version swap can be used without a limit.
_LIMITED_SINCE = 30


def swap_findings(fields: FieldValues, gates: Gates) -> Iterator[Finding]:
    """Yield the findings on memorySwap."""
    behavior = text_in(fields.struct("memorySwap").get("swapBehavior"))
    if behavior and not gates.enabled("NodeSwap"):
        text = "memorySwap.swapBehavior cannot be set when NodeSwap feature flag is disabled"
        yield gate_is_off(text, "NodeSwap", _SWAP)
    elif fields.minor >= _LIMITED_SINCE and behavior not in ("", "LimitedSwap", "NoSwap"):
        text = 'memorySwap.swapBehavior %s must be one of: "", "LimitedSwap" or "NoSwap"' % quote(behavior)
        yield invalid(text, _NO_BEHAVIOR, "write LimitedSwap or NoSwap", _SWAP)
    elif fields.minor < _LIMITED_SINCE and behavior not in ("", "LimitedSwap", "UnlimitedSwap"):
        text = 'memorySwap.swapBehavior %s must be one of: "", "LimitedSwap", or "UnlimitedSwap"' % quote(behavior)
        yield invalid(text, _NO_BEHAVIOR, "write LimitedSwap or UnlimitedSwap", _SWAP)


_RESTARTS = "crashLoopBackOff.maxContainerRestartPeriod"
_LONGEST_RESTARTS = 300_000


def restart_findings(fields: FieldValues, gates: Gates) -> Iterator[Finding]:
    """Yield the findings on crashLoopBackOff."""
    period = fields.struct("crashLoopBackOff").get("maxContainerRestartPeriod")
    if not isinstance(period, int) or isinstance(period, bool):
        return
    gate = "KubeletCrashLoopBackOffMax"
    if not gates.enabled(gate):
        text = "FeatureGate %s not enabled, CrashLoopBackOff.MaxContainerRestartPeriod must not be set" % gate
        yield gate_is_off(text, gate, _RESTARTS)
    elif not 1000 <= _cut(period, _MILLISECOND) <= _LONGEST_RESTARTS:
        from .fields import float_text

        # As Go divides.
        seconds = float(_cut(period, _SECOND)) + (period - _SECOND * _cut(period, _SECOND)) / 1e9
        yield invalid(
            "CrashLoopBackOff.MaxContainerRestartPeriod (got: %s seconds) must be set between 1s and 300s"
            % float_text(seconds),
            "the duration is out of range",
            "write 1s to 300s",
            _RESTARTS,
        )


def _cut(number: int, unit: int) -> int:
    """Return the whole units in a number, toward zero."""
    return -(-number // unit) if number < 0 else number // unit


# --- the network and images, by name ---------------------------------------------------------------------------

_HAIRPIN_MODES = ("none", "hairpin-veth", "promiscuous-bridge")


def hairpin_findings(fields: FieldValues) -> Iterator[Finding]:
    """Yield the finding on hairpinMode, if there is one."""
    where = "hairpinMode"
    mode = fields.text(where)
    if mode not in _HAIRPIN_MODES:
        text = "option %s specified for hairpinMode (--hairpin-mode). Valid options are %s"
        yield invalid(text % (quote(mode), one_of(_HAIRPIN_MODES)), "there is no such mode", "remove it", where)


# --- metrics and tracing ---------------------------------------------------------------------------------------

_ENDPOINT_SCHEMES = ("dns", "unix", "unix-abstract")
_SAMPLES = 1_000_000


def metrics_findings(fields: FieldValues, gates: Gates) -> Iterator[Finding]:
    """Yield the findings on showHiddenMetricsForVersion and tracing."""
    where = "showHiddenMetricsForVersion"
    before = "1.%d" % (fields.minor - 1)
    if fields.text(where) not in ("", before):
        yield refused(
            "--show-hidden-metrics-for-version must be omitted or have the value '%s'. Only the previous minor"
            " version is allowed" % before,
            "the kubelet is of another version",
            'remove it, or write "%s"' % before,
            where,
        )
    tracing = fields.given.get("tracing")
    if not isinstance(tracing, Mapping):
        return
    if not gates.enabled("KubeletTracing"):
        text = "tracing should not be configured if KubeletTracing feature flag is disabled."
        yield gate_is_off(text, "KubeletTracing", "tracing")
        return
    rate = number_in(tracing.get("samplingRatePerMillion"))
    if not 0 <= rate <= _SAMPLES:
        fault = "sampling rate must be positive" if rate < 0 else "sampling rate per million must be less than or equal"
        text = "tracing.samplingRatePerMillion: Invalid value: %d: %s%s" % (rate, fault, " to one million" * (rate > 0))
        remedy = "write 0 to %d" % _SAMPLES
        yield refused(text, "the number is out of range", remedy, "tracing.samplingRatePerMillion")
    endpoint = tracing.get("endpoint")
    if isinstance(endpoint, str):
        yield from _endpoint_finding(endpoint)


def _endpoint_finding(endpoint: str) -> Iterator[Finding]:
    from .fields import url_scheme

    scheme, fault = url_scheme(endpoint if "//" in endpoint else "dns://" + endpoint)
    if not fault and scheme not in _ENDPOINT_SCHEMES:
        fault = (
            "unsupported scheme: %s.  Options are none, dns, unix, or unix-abstract.  See"
            " https://github.com/grpc/grpc/blob/master/doc/naming.md" % scheme
        )
    if fault:
        where = "tracing.endpoint"
        text = "%s: Invalid value: %s: %s" % (where, quote(endpoint), fault)
        yield refused(text, "it is no address of a gRPC server", "write host:port, without http://", where)


# --- the runtime and its logs ----------------------------------------------------------------------------------

_SHORTEST_INTERVAL = 3 * _SECOND
_QUERY_NAMED_SINCE = 35
_LOGS = "podLogsDir"


def runtime_findings(fields: FieldValues, gates: Gates) -> Iterator[Finding]:
    """Yield the findings on the fields from containerRuntimeEndpoint to podLogsDir, the last of all."""
    where = "containerRuntimeEndpoint"
    if not fields.text(where):
        text = "the containerRuntimeEndpoint was not specified or empty"
        yield invalid(text, "an empty flag takes the default away", "name the runtime's socket", where)
    where = "enableSystemLogQuery"
    if fields.is_true(where):
        if not gates.enabled("NodeLogQuery"):
            named = where if fields.minor >= _QUERY_NAMED_SINCE else "enableSystemLogHandler"
            yield gate_is_off("NodeLogQuery feature gate is required for " + named, "NodeLogQuery", where)
        if not fields.is_true("enableSystemLogHandler"):
            text = "enableSystemLogHandler is required for enableSystemLogQuery"
            yield invalid(text, "the handler is off", "set enableSystemLogHandler: true", where)
    where = "containerLogMaxWorkers"
    if fields.number(where) < 1:
        text = "containerLogMaxWorkers must be greater than or equal to 1"
        yield invalid(text, "no logs would be rotated", "write 1, the default, or more", where)
    where = "containerLogMonitorInterval"
    if fields.number(where) < _SHORTEST_INTERVAL:
        text = "containerLogMonitorInterval must be a positive time duration greater than or equal to 3s"
        yield invalid(text, "the duration is too short", "write 3s or more; 10s is the default", where)
    where = "containerLogMaxFiles"
    if fields.number(where) <= 1 and fields.minor >= LOG_FILES_CHECKED_SINCE:
        text = "containerLogMaxFiles must be greater than 1"
        yield invalid(text, "one file is written, and another is kept", "write 2 or more; 5 is the default", where)
    fault = _log_path_fault(fields.text(_LOGS))
    if fault:
        yield invalid(fault, "this path cannot be used", "write an absolute path, such as /var/log/pods", _LOGS)


def _log_path_fault(path: str) -> str:
    if not path:
        return "podLogsDir was not specified"
    if not path.startswith("/"):
        return "pod logs path %s must be absolute path" % quote(path)
    if path != _clean(path):
        return "pod logs path %s must be normalized" % quote(path)
    # The kubelet's spelling.
    return "" if path.isascii() else "pod logs path %s mut contains ASCII characters only" % quote(path)


def _clean(path: str) -> str:
    from posixpath import normpath

    # Python keeps two slashes at the beginning.
    return "/" + normpath(path).lstrip("/")
