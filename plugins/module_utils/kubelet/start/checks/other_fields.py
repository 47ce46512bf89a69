# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The kubelet's validation of the fields beside CPUs, memory, NUMA nodes, cgroups, images and logging.

One function for each stretch of ValidateKubeletConfiguration, in its order.
Source: pkg/kubelet/apis/config/validation (validation.go, validation_others.go), Kubernetes 1.33 to 1.36;
k8s.io/component-base/tracing/api/v1 (types.go), pkg/util/taints.
"""

from __future__ import annotations

from typing import Iterator, Mapping

from ....golang import quote
from ...gates.enabled import Gates
from ..finding import Finding, refused
from .amount import duration_text
from .field_values import FieldValues, number_in, struct_in, text_in
from .image_fields import parallel_findings
from .invalid import NO_END, Range, at_least_zero, between, gate_is_off, invalid, one_of, range_findings

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
    Range("nodeStatusMaxImages", "node-status-max-images", -1, NO_END, "must be -1 or greater"),
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
    """From nodeLeaseDurationSeconds to healthzPort."""
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
    """From iptablesDropBit to runOnce."""
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
    """The taints that a node registers with."""
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
    # Imported here: few nodes have taints.
    from .labels import name_faults, value_faults

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
    """The grace periods of a node's shutdown."""
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
_SWAP_BEHAVIORS = ("", "LimitedSwap", "NoSwap")


def swap_findings(fields: FieldValues, gates: Gates) -> Iterator[Finding]:
    """memorySwap."""
    behavior = text_in(fields.struct("memorySwap").get("swapBehavior"))
    if behavior and not gates.enabled("NodeSwap"):
        text = "memorySwap.swapBehavior cannot be set when NodeSwap feature flag is disabled"
        yield gate_is_off(text, "NodeSwap", _SWAP)
    elif behavior not in _SWAP_BEHAVIORS:
        text = 'memorySwap.swapBehavior %s must be one of: "", "LimitedSwap" or "NoSwap"' % quote(behavior)
        yield invalid(text, "there is no such behavior", "write LimitedSwap or NoSwap", _SWAP)


_RESTARTS = "crashLoopBackOff.maxContainerRestartPeriod"
_LONGEST_RESTARTS = 300_000


def restart_findings(fields: FieldValues, gates: Gates) -> Iterator[Finding]:
    """crashLoopBackOff."""
    period = fields.struct("crashLoopBackOff").get("maxContainerRestartPeriod")
    if not isinstance(period, int) or isinstance(period, bool):
        return
    gate = "KubeletCrashLoopBackOffMax"
    if not gates.enabled(gate):
        text = "FeatureGate %s not enabled, CrashLoopBackOff.MaxContainerRestartPeriod must not be set" % gate
        yield gate_is_off(text, gate, _RESTARTS)
    elif not 1000 <= _cut(period, _MILLISECOND) <= _LONGEST_RESTARTS:
        from .field_syntax import float_text

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
    """The whole units in a number, toward zero."""
    return -(-number // unit) if number < 0 else number // unit


# --- the network and images, by name ---------------------------------------------------------------------------

_HAIRPIN_MODES = ("none", "hairpin-veth", "promiscuous-bridge")


def hairpin_findings(fields: FieldValues) -> Iterator[Finding]:
    """hairpinMode."""
    where = "hairpinMode"
    mode = fields.text(where)
    if mode not in _HAIRPIN_MODES:
        text = "option %s specified for hairpinMode (--hairpin-mode). Valid options are %s"
        yield invalid(text % (quote(mode), one_of(_HAIRPIN_MODES)), "there is no such mode", "remove it", where)


# --- metrics and tracing ---------------------------------------------------------------------------------------

_ENDPOINT_SCHEMES = ("dns", "unix", "unix-abstract")
_SAMPLES = 1_000_000


def metrics_findings(fields: FieldValues, gates: Gates) -> Iterator[Finding]:
    """showHiddenMetricsForVersion and tracing."""
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
    from .field_syntax import url_scheme

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
    """From containerRuntimeEndpoint to podLogsDir, the last of all."""
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
    if fields.number(where) <= 1:
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
