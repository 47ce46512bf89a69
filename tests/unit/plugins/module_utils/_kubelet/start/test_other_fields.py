# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.gates import Gates
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start import other_fields
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.fields import FieldValues
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.findings import Finding

SECOND = 10**9
INVALID = "invalid configuration: "
PRIORITIES = [{"priority": 0, "shutdownGracePeriodSeconds": 10}]


def findings(values: dict[str, Any], minor: int, gates: dict[str, bool], emptied: frozenset[str]) -> list[Finding]:
    fields, there = FieldValues(values, minor, emptied), Gates(gates, minor)
    return [
        *other_fields.event_findings(fields),
        *other_fields.limit_findings(fields, there),
        *other_fields.taint_findings(fields),
        *other_fields.shutdown_findings(fields, there),
        *other_fields.swap_findings(fields, there),
        *other_fields.restart_findings(fields, there),
        *other_fields.hairpin_findings(fields),
        *other_fields.metrics_findings(fields, there),
        *other_fields.runtime_findings(fields, there),
    ]


def texts(
    values: dict[str, Any],
    minor: int = 36,
    gates: dict[str, bool] | None = None,
    emptied: frozenset[str] = frozenset(),
) -> list[str]:
    found = findings(values, minor, gates or {}, emptied)
    assert all(finding.fatal and finding.cause and finding.remedy for finding in found)
    assert all(finding.where.partition(".")[0].partition("[")[0] in values for finding in found)
    return [finding.text for finding in found]


FINE: list[tuple[dict[str, Any], int, dict[str, bool]]] = [
    ({}, 33, {}),
    ({}, 36, {}),
    ({"nodeLeaseDurationSeconds": 0, "port": 0, "maxPods": 0, "podLogsDir": "", "hairpinMode": ""}, 36, {}),
    ({"systemCgroups": "/system", "cgroupRoot": "/"}, 36, {}),
    ({"healthzPort": 0, "readOnlyPort": 0, "port": 65535}, 36, {}),
    ({"oomScoreAdj": -1000, "iptablesDropBit": 31, "nodeStatusMaxImages": -1}, 36, {}),
    ({"serverTLSBootstrap": True}, 36, {}),
    ({"runOnce": False}, 36, {}),
    ({"registerWithTaints": [{"key": "a", "effect": "NoSchedule"}]}, 36, {}),
    ({"registerWithTaints": [{"key": "a.b/c", "value": "d", "effect": "NoExecute"}]}, 36, {}),
    ({"registerWithTaints": [{"key": "a"}]}, 36, {}),
    ({"shutdownGracePeriod": 30 * SECOND, "shutdownGracePeriodCriticalPods": 10 * SECOND}, 36, {}),
    ({"shutdownGracePeriodByPodPriority": PRIORITIES}, 36, {}),
    ({"shutdownGracePeriod": 0}, 33, {"GracefulNodeShutdown": False}),
    ({"memorySwap": {"swapBehavior": "NoSwap"}}, 36, {}),
    ({"memorySwap": {"swapBehavior": ""}}, 33, {"NodeSwap": False}),
    ({"memorySwap": {"swapBehavior": "UnlimitedSwap"}}, 29, {"NodeSwap": True}),
    ({"runOnce": True}, 32, {}),
    ({"containerLogMaxFiles": 1}, 32, {}),
    ({"memorySwap": {}}, 36, {}),
    ({"crashLoopBackOff": {}}, 33, {}),
    ({"crashLoopBackOff": {"maxContainerRestartPeriod": SECOND}}, 36, {}),
    ({"crashLoopBackOff": {"maxContainerRestartPeriod": "1s"}}, 36, {}),  # refused where it is decoded
    ({"showHiddenMetricsForVersion": "1.35"}, 36, {}),
    ({"tracing": {}}, 36, {}),
    ({"tracing": None}, 36, {}),
    ({"tracing": {"samplingRatePerMillion": 1000000, "endpoint": "localhost:4317"}}, 36, {}),
    ({"tracing": {"endpoint": "unix:///run/otel.sock"}}, 36, {}),
    ({"enableSystemLogQuery": True}, 36, {}),
    ({"containerLogMonitorInterval": 3 * SECOND, "containerLogMaxFiles": 2}, 36, {}),
    ({"podLogsDir": "/"}, 36, {}),
]


@pytest.mark.parametrize(("values", "minor", "gates"), FINE)
def test_fine(values: dict[str, Any], minor: int, gates: dict[str, bool]) -> None:
    assert texts(values, minor, gates) == []


NEGATIVE = "must not be a negative number"
RANGES: list[tuple[str, int, str]] = [
    ("eventBurst", -1, "(--event-burst) -1 " + NEGATIVE),
    ("eventRecordQPS", -1, "(--event-qps) -1 " + NEGATIVE),
    ("healthzPort", 65536, "(--healthz-port) 65536 must be between 1 and 65535, inclusive"),
    ("healthzPort", -1, "(--healthz-port) -1 must be between 1 and 65535, inclusive"),
    ("iptablesDropBit", 32, "(--iptables-drop-bit) 32 must be between 0 and 31, inclusive"),
    ("iptablesMasqueradeBit", -1, "(--iptables-masquerade-bit) -1 must be between 0 and 31, inclusive"),
    ("kubeAPIBurst", -1, "(--kube-api-burst) -1 " + NEGATIVE),
    ("kubeAPIQPS", -2, "(--kube-api-qps) -2 " + NEGATIVE),
    ("nodeStatusMaxImages", -2, "(--node-status-max-images) -2 must be -1 or greater"),
    ("maxOpenFiles", -1, "(--max-open-files) -1 " + NEGATIVE),
    ("maxPods", -1, "(--max-pods) -1 " + NEGATIVE),
    ("oomScoreAdj", 1001, "(--oom-score-adj) 1001 must be between -1000 and 1000, inclusive"),
    ("oomScoreAdj", -1001, "(--oom-score-adj) -1001 must be between -1000 and 1000, inclusive"),
    ("podsPerCore", -1, "(--pods-per-core) -1 " + NEGATIVE),
    ("port", 65536, "(--port) 65536 must be between 1 and 65535, inclusive"),
    ("readOnlyPort", -1, "(--read-only-port) -1 must be between 0 and 65535, inclusive"),
    ("registryBurst", -1, "(--registry-burst) -1 " + NEGATIVE),
    ("registryPullQPS", -1, "(--registry-qps) -1 " + NEGATIVE),
]


@pytest.mark.parametrize(("field", "number", "text"), RANGES)
def test_ranges(field: str, number: int, text: str) -> None:
    assert texts({field: number}) == ["%s%s %s" % (INVALID, field, text)]


REFUSED: list[tuple[dict[str, Any], int, dict[str, bool], str]] = [
    ({"nodeLeaseDurationSeconds": -1}, 36, {}, "nodeLeaseDurationSeconds must be greater than 0"),
    (
        {"systemCgroups": "/system"},
        36,
        {},
        "systemCgroups (--system-cgroups) was specified and cgroupRoot (--cgroup-root) was not specified",
    ),
    (
        {"serverTLSBootstrap": True},
        36,
        {"RotateKubeletServerCertificate": False},
        "serverTLSBootstrap true requires feature gate RotateKubeletServerCertificate",
    ),
    (
        {"runOnce": True},
        33,
        {},
        "runOnce (--runOnce) true, Runonce mode has been deprecated and should not be set",
    ),
    (
        {"shutdownGracePeriodCriticalPods": 10 * SECOND},
        36,
        {},
        "shutdownGracePeriodCriticalPods {10s} must be <= shutdownGracePeriod {0s}",
    ),
    (
        {"shutdownGracePeriod": SECOND // 2},
        36,
        {},
        "shutdownGracePeriod {500ms} must be either zero or otherwise >= 1 sec",
    ),
    (
        {"shutdownGracePeriodCriticalPods": -SECOND},
        36,
        {},
        "shutdownGracePeriodCriticalPods {-1s} must be either zero or otherwise >= 1 sec",
    ),
    (
        {"shutdownGracePeriod": SECOND},
        33,
        {"GracefulNodeShutdown": False},
        (
            "specifying shutdownGracePeriod or shutdownGracePeriodCriticalPods requires feature gate"
            " GracefulNodeShutdown"
        ),
    ),
    (
        {"shutdownGracePeriodCriticalPods": SECOND},
        33,
        {"GracefulNodeShutdown": False},
        (
            "specifying shutdownGracePeriod or shutdownGracePeriodCriticalPods requires feature gate"
            " GracefulNodeShutdown"
        ),
    ),
    (
        {"shutdownGracePeriodByPodPriority": PRIORITIES, "shutdownGracePeriod": SECOND},
        36,
        {},
        "Cannot specify both shutdownGracePeriodByPodPriority and shutdownGracePeriod at the same time",
    ),
    (
        {"shutdownGracePeriodByPodPriority": PRIORITIES},
        36,
        {"GracefulNodeShutdownBasedOnPodPriority": False},
        "Specifying shutdownGracePeriodByPodPriority requires feature gate GracefulNodeShutdownBasedOnPodPriority",
    ),
    (
        {"memorySwap": {"swapBehavior": "UnlimitedSwap"}},
        36,
        {},
        'memorySwap.swapBehavior "UnlimitedSwap" must be one of: "", "LimitedSwap" or "NoSwap"',
    ),
    (
        {"memorySwap": {"swapBehavior": "UnlimitedSwap"}},
        30,
        {},
        'memorySwap.swapBehavior "UnlimitedSwap" must be one of: "", "LimitedSwap" or "NoSwap"',
    ),
    (
        {"memorySwap": {"swapBehavior": "NoSwap"}},
        29,
        {"NodeSwap": True},
        'memorySwap.swapBehavior "NoSwap" must be one of: "", "LimitedSwap", or "UnlimitedSwap"',
    ),
    (
        {"memorySwap": {"swapBehavior": "LimitedSwap"}},
        29,
        {},
        "memorySwap.swapBehavior cannot be set when NodeSwap feature flag is disabled",
    ),
    (
        {"memorySwap": {"swapBehavior": "NoSwap"}},
        33,
        {"NodeSwap": False},
        "memorySwap.swapBehavior cannot be set when NodeSwap feature flag is disabled",
    ),
    (
        {"crashLoopBackOff": {"maxContainerRestartPeriod": 600 * SECOND}},
        36,
        {},
        "CrashLoopBackOff.MaxContainerRestartPeriod (got: 600 seconds) must be set between 1s and 300s",
    ),
    (
        {"crashLoopBackOff": {"maxContainerRestartPeriod": -SECOND // 2}},
        36,
        {},
        "CrashLoopBackOff.MaxContainerRestartPeriod (got: -0.5 seconds) must be set between 1s and 300s",
    ),
    (
        {"crashLoopBackOff": {"maxContainerRestartPeriod": SECOND}},
        33,
        {},
        (
            "FeatureGate KubeletCrashLoopBackOffMax not enabled, CrashLoopBackOff.MaxContainerRestartPeriod must not be"
            " set"
        ),
    ),
    (
        {"hairpinMode": "foo"},
        36,
        {},
        (
            'option "foo" specified for hairpinMode (--hairpin-mode). Valid options are "none", "hairpin-veth" or'
            ' "promiscuous-bridge"'
        ),
    ),
    (
        {"tracing": {}},
        33,
        {"KubeletTracing": False},
        "tracing should not be configured if KubeletTracing feature flag is disabled.",
    ),
    (
        {"enableSystemLogQuery": True},
        34,
        {"NodeLogQuery": False},
        "NodeLogQuery feature gate is required for enableSystemLogHandler",
    ),
    (
        {"enableSystemLogQuery": True},
        35,
        {"NodeLogQuery": False},
        "NodeLogQuery feature gate is required for enableSystemLogQuery",
    ),
    (
        {"enableSystemLogQuery": True, "enableSystemLogHandler": False},
        36,
        {},
        "enableSystemLogHandler is required for enableSystemLogQuery",
    ),
    ({"containerLogMaxWorkers": 0}, 36, {}, "containerLogMaxWorkers must be greater than or equal to 1"),
    (
        {"containerLogMonitorInterval": 3 * SECOND - 1},
        36,
        {},
        "containerLogMonitorInterval must be a positive time duration greater than or equal to 3s",
    ),
    ({"containerLogMaxFiles": 1}, 36, {}, "containerLogMaxFiles must be greater than 1"),
    ({"podLogsDir": "logs"}, 36, {}, 'pod logs path "logs" must be absolute path'),
    ({"podLogsDir": "/var/log/pods/"}, 36, {}, 'pod logs path "/var/log/pods/" must be normalized'),
    ({"podLogsDir": "//var"}, 36, {}, 'pod logs path "//var" must be normalized'),
    ({"podLogsDir": "/a/../b"}, 36, {}, 'pod logs path "/a/../b" must be normalized'),
    ({"podLogsDir": "/ä"}, 36, {}, 'pod logs path "/ä" mut contains ASCII characters only'),
]


@pytest.mark.parametrize(("values", "minor", "gates", "text"), REFUSED)
def test_refused(values: dict[str, Any], minor: int, gates: dict[str, bool], text: str) -> None:
    assert texts(values, minor, gates) == [INVALID + text]


RATE, ENDPOINT = "tracing.samplingRatePerMillion: Invalid value: ", "tracing.endpoint: Invalid value: "
WITHOUT_PREFIX: list[tuple[dict[str, Any], str]] = [
    (
        {"registerWithTaints": [{"key": "a b", "value": "", "effect": "NoSchedule"}]},
        "invalid taint: {a b  NoSchedule <nil>}",
    ),
    ({"registerWithTaints": [{"key": "a", "value": "-", "effect": "x"}]}, "invalid taint: {a - x <nil>}"),
    ({"registerWithTaints": [{"key": "a", "effect": "x"}]}, "invalid taint: {a  x <nil>}"),
    (
        {"showHiddenMetricsForVersion": "1.36"},
        (
            "--show-hidden-metrics-for-version must be omitted or have the value '1.35'. Only the previous minor"
            " version is allowed"
        ),
    ),
    ({"tracing": {"samplingRatePerMillion": -1}}, RATE + "-1: sampling rate must be positive"),
    (
        {"tracing": {"samplingRatePerMillion": 1000001}},
        RATE + "1000001: sampling rate per million must be less than or equal to one million",
    ),
    (
        {"tracing": {"endpoint": "http://localhost:4317"}},
        ENDPOINT + '"http://localhost:4317": unsupported scheme: http.  Options are none, dns, unix, or unix-abstract.'
        "  See https://github.com/grpc/grpc/blob/master/doc/naming.md",
    ),
    (
        {"tracing": {"endpoint": "host:port"}},
        ENDPOINT + '"host:port": parse "dns://host:port": invalid port ":port" after host',
    ),
]


@pytest.mark.parametrize(("values", "text"), WITHOUT_PREFIX)
def test_refused_without_prefix(values: dict[str, Any], text: str) -> None:
    assert texts(values) == [text]


def test_the_time_of_a_taint() -> None:
    taint = {"key": "a", "effect": "NoSchedule", "timeAdded": "2020-01-01T00:00:00Z"}
    added = INVALID + "taint.TimeAdded is not nil"
    assert texts({"registerWithTaints": [taint]}) == [added]
    # How a time is printed depends on the machine.
    assert texts({"registerWithTaints": [{**taint, "effect": "x"}]}) == ["invalid taint: {a  x ", added]


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"nodeLeaseDurationSeconds": 0}, "nodeLeaseDurationSeconds must be greater than 0"),
        ({"port": 0}, "port (--port) 0 must be between 1 and 65535, inclusive"),
        (
            {"hairpinMode": ""},
            (
                'option "" specified for hairpinMode (--hairpin-mode). Valid options are "none", "hairpin-veth" or'
                ' "promiscuous-bridge"'
            ),
        ),
        ({"containerRuntimeEndpoint": ""}, "the containerRuntimeEndpoint was not specified or empty"),
        ({"podLogsDir": ""}, "podLogsDir was not specified"),
    ],
)
def test_what_a_flag_empties(values: dict[str, Any], text: str) -> None:
    assert texts(values, emptied=frozenset(values)) == [INVALID + text]
    assert texts(values) == []
