# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The kubelet's validation of its configuration, as far as CPUs, NUMA nodes and cgroups go.

Source: pkg/kubelet/apis/config/validation (validation.go, validation_linux.go).
"""

from __future__ import annotations

from typing import Any, Mapping

from ..policy.hints import NONE, POLICIES, SCOPES
from ..state.golang import quote
from .amount import duration_text
from .finding import Finding, Host, refused
from .gates import CFS_QUOTA_PERIOD, Gates

_MILLISECOND = 10**6
_DEFAULT_PERIOD = 100 * _MILLISECOND
_LONGEST_PERIOD = 1000 * _MILLISECOND

_PODS, _SYSTEM, _KUBE, _NO_ENFORCEMENT = "pods", "system-reserved", "kube-reserved", "none"
_COMPRESSIBLE = "-compressible"
_COMPRESSIBLE_SINCE = 32

_CGROUP_V1_FATAL_SINCE = 35


def validation_findings(values: Mapping[str, Any], gates: Gates, host: Host) -> list[Finding]:
    """What the kubelet refuses of decoded values before it looks at the machine; of the reserved CPUs nothing."""
    return _Validation(values, gates, host).findings


class _Validation:
    """One validation: each method adds what it finds."""

    def __init__(self, values: Mapping[str, Any], gates: Gates, host: Host) -> None:
        self.values = values
        self.gates = gates
        self.host = host
        self.minor = host.minor
        self.findings: list[Finding] = []
        self._validate_quota_period()
        self._validate_topology_manager()
        self._validate_enforcements()
        self._validate_cgroup_version()

    def _text(self, name: str, default: str) -> str:
        """A text, whose empty value means the default."""
        return self.values.get(name) or default

    def _refuse(self, text: str, cause: str, remedy: str, where: str) -> None:
        self.findings.append(refused(text, cause, remedy, where))

    def _invalid(self, text: str, cause: str, remedy: str, where: str) -> None:
        self._refuse("invalid configuration: " + text, cause, remedy, where)

    def _validate_quota_period(self) -> None:
        where = "cpuCFSQuotaPeriod"
        period = self.values.get(where, _DEFAULT_PERIOD)
        shown = "cpuCFSQuotaPeriod (--cpu-cfs-quota-period) {%s} " % duration_text(period)
        if not self.gates.enabled(CFS_QUOTA_PERIOD):
            if period != _DEFAULT_PERIOD:
                self._invalid(
                    shown + "requires feature gate CustomCPUCFSQuotaPeriod",
                    "the gate is off, and only 100ms is allowed without it",
                    "set featureGates.CustomCPUCFSQuotaPeriod: true, or remove cpuCFSQuotaPeriod",
                    where,
                )
        elif not _MILLISECOND <= period <= _LONGEST_PERIOD:
            self._invalid(
                shown + "must be between 1ms and 1sec, inclusive",
                "the period is out of range",
                "write 1ms to 1s; 100ms is the default",
                where,
            )

    def _validate_topology_manager(self) -> None:
        policy, scope = self._text("topologyManagerPolicy", NONE), self._text("topologyManagerScope", SCOPES[0])
        if policy not in POLICIES:
            self._invalid(
                "topologyManagerPolicy (--topology-manager-policy) %s must be one of: [%s]"
                % (quote(policy), " ".join(map(quote, POLICIES))),
                "there is no such policy",
                "write one of %s" % ", ".join(POLICIES),
                "topologyManagerPolicy",
            )
        if scope not in SCOPES:
            self._invalid(
                "topologyManagerScope (--topology-manager-scope) %s must be one of: %s"
                % (quote(scope), ", or ".join(map(quote, SCOPES))),
                "there is no such scope",
                "write one of %s" % ", ".join(SCOPES),
                "topologyManagerScope",
            )

    def _validate_enforcements(self) -> None:
        where = "enforceNodeAllocatable"
        enforcements = self.values.get(where, [_PODS])
        compressible = self.minor >= _COMPRESSIBLE_SINCE
        for name in (_SYSTEM, _KUBE):
            if compressible and name in enforcements and name + _COMPRESSIBLE in enforcements:
                self._invalid(
                    'both "%s" and "%s" cannot be specified together in %s (--enforce-node-allocatable)'
                    % (name, name + _COMPRESSIBLE, where),
                    "the one includes the other",
                    "keep one of the two",
                    where,
                )
        for position, name in enumerate(enforcements):
            if compressible and name in enforcements[:position]:
                self._invalid(
                    "duplicated enforcements %s in %s (--enforce-node-allocatable)" % (quote(name), where),
                    "it is there twice",
                    "keep it once",
                    where,
                )
            elif name == _NO_ENFORCEMENT:
                if len(enforcements) > 1:
                    self._invalid(
                        '%s (--enforce-node-allocatable) may not contain additional enforcements when "%s" is specified'
                        % (where, name),
                        "none excludes all others",
                        "keep none alone, or remove it",
                        where,
                    )
            else:
                self._validate_enforcement(name, compressible)

    def _validate_enforcement(self, name: str, compressible: bool) -> None:
        where = "enforceNodeAllocatable"
        kinds = [kind for kind in (_SYSTEM, _KUBE) if name == kind or (compressible and name == kind + _COMPRESSIBLE)]
        if not kinds and name != _PODS:
            known = [_PODS, _SYSTEM, _KUBE, _NO_ENFORCEMENT]
            if compressible:
                known = [_PODS, _SYSTEM, _SYSTEM + _COMPRESSIBLE, _KUBE, _KUBE + _COMPRESSIBLE, _NO_ENFORCEMENT]
            self._invalid(
                "option %s specified for %s (--enforce-node-allocatable). Valid options are %s or %s"
                % (quote(name), where, ", ".join(map(quote, known[:-1])), quote(known[-1])),
                "the kubelet 1.%d knows no such enforcement" % self.minor,
                "write one of %s" % ", ".join(known),
                where,
            )
            return
        for kind in kinds:
            field = kind.replace("-r", "R") + "Cgroup"
            if not self.values.get(field):
                included = '"%s" or "%s" included' % (kind, kind + _COMPRESSIBLE)
                self._invalid(
                    "%s (--%s-cgroup) must be specified when %s in %s (--enforce-node-allocatable)"
                    % (field, kind, included if compressible else '"%s" contained' % kind, where),
                    "the kubelet does not know which cgroup to limit",
                    "set %s, or remove %s from %s" % (field, name, where),
                    field,
                )
        if not self.values.get("cgroupsPerQOS", True):
            self._invalid(
                "cgroupsPerQOS (--cgroups-per-qos) must be set to true when %s contained in %s"
                " (--enforce-node-allocatable)" % (quote(name), where),
                "without a cgroup for the pods the kubelet can enforce nothing",
                "set cgroupsPerQOS: true, or enforceNodeAllocatable: [none]",
                "cgroupsPerQOS",
            )

    def _validate_cgroup_version(self) -> None:
        if not self.host.cgroup_v1:
            return
        fatal = self.minor >= _CGROUP_V1_FATAL_SINCE
        if self.values.get("failCgroupV1", fatal):
            state = "unsupported and will be removed in a future release" if fatal else "in maintenance mode"
            self._refuse(
                "kubelet is configured to not run on a host using cgroup v1. cgroup v1 support is " + state,
                "the host has cgroup v1%s"
                % ("" if "failCgroupV1" in self.values else ", and from Kubernetes 1.35 on failCgroupV1 is true"),
                "boot the host with cgroup v2, or set failCgroupV1: false",
                "failCgroupV1",
            )
        if self.values.get("singleProcessOOMKill") is False:
            self._invalid(
                "singleProcessOOMKill must not be explicitly set to false when using cgroup v1",
                "the host has cgroup v1",
                "remove it, or boot the host with cgroup v2",
                "singleProcessOOMKill",
            )
