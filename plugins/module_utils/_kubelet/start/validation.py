# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The kubelet's validation of its configuration; here the fields about CPUs, memory, NUMA nodes and cgroups.

All is found that it refuses, in its order; it prints several refusals as a list. reservedSystemCPUs and
reservedMemory are checked with what the machine has. Source: pkg/kubelet/apis/config/validation (validation.go,
validation_linux.go), Kubernetes 1.33 to 1.36. Of 1.29 to 1.32: validation.go of 1.30 and of a 1.32 in the making, and
where 1.33 differs, the gate, field or pull request that brought it. Not sure is whether 1.32 lets "none" stand without
cgroupsPerQOS, and takes an enforcement twice. Of older versions only what is in this file.
"""

from __future__ import annotations

from itertools import islice
from typing import Iterator, Mapping

from ..._base.errors import GoError
from ..._base.golang import quote
from ...policy.hints import POLICIES, SCOPES
from ..gates import CFS_QUOTA_PERIOD, Gates
from . import other_fields
from . import other_fields as image_fields
from .amount import Amount, duration_text
from .fields import FieldValues, gate_is_off, invalid, number_in, one_of, struct_in, text_in
from .findings import Finding, Host, harmful, refused

# What the kubelet refuses of its logging, as the first of all fields.
#
# Its source: k8s.io/component-base/logs/api/v1 (options.go, registry.go).


_WHERE = "logging"
_CONTEXT = "initialize logging: "

_TEXT, _JSON = "text", "json"
_MOST = 2**31 - 1
_ALPHA, _BETA = "LoggingAlphaOptions", "LoggingBetaOptions"


def logging_findings(fields: FieldValues, gates: Gates) -> Iterator[Finding]:
    """Yield all that it refuses, in the kubelet's order."""
    logging = fields.struct(_WHERE)
    if not logging:
        return
    log_format = text_in(logging.get("format"))
    if not log_format and "logging.format" not in fields.emptied:
        log_format = _TEXT
    if log_format not in (_TEXT, _JSON):
        text = "Invalid value: %s: Unsupported log format" % quote(log_format)
        yield _refused("format", text, "there is no such format", "write text or json")
    elif log_format == _JSON and not gates.enabled(_BETA):
        text = "Forbidden: Log format json is disabled, see LoggingBetaOptions feature"
        yield _refused("format", text, "the gate %s is off" % _BETA, "set the gate to true, or write text")
    yield from _level_finding("verbosity", logging)
    yield from _pattern_findings(logging.get("vmodule"), log_format)
    options = struct_in(logging.get("options"))
    if options and not gates.enabled(_ALPHA):
        for name in (_TEXT, _JSON):
            yield from _option_findings(name, struct_in(options.get(name)))


def _pattern_findings(patterns: object, log_format: str) -> Iterator[Finding]:
    if not isinstance(patterns, list):
        return
    if patterns and log_format not in ("", _TEXT):
        text = "Forbidden: Only supported for text log format"
        yield _refused("vmodule", text, "the format is another", "remove vmodule, or set logging.format: text")
    for position, item in enumerate(map(struct_in, patterns)):
        where = "vmodule[%d]" % position
        pattern = text_in(item.get("filePattern"))
        if not pattern:
            text = "Required value: File pattern must not be empty"
            yield _refused(where, text, "filePattern is empty", "write the name of a source file without .go")
        if "=" in pattern or "," in pattern:
            text = "Invalid value: %s: File pattern must not contain equal sign or comma" % quote(pattern)
            yield _refused(where, text, "it stands for one file only", "write an entry for each file")
        yield from _level_finding(where, item)


def _level_finding(where: str, struct: Mapping[str, object]) -> Iterator[Finding]:
    level = number_in(struct.get("verbosity"))
    if level > _MOST:
        text = "Invalid value: 0x%x: Must be <= %d" % (level, _MOST)
        yield _refused(where, text, "the number is too large", "write a smaller number; 10 is all that there is")


def _option_findings(name: str, options: Mapping[str, object]) -> Iterator[Finding]:
    given = {"splitStream": options.get("splitStream") is True, "infoBufferSize": _is_size(options)}
    for option, is_set in given.items():
        if is_set:
            text = "Forbidden: Feature %s is disabled" % _ALPHA
            where = "options.%s.%s" % (name, option)
            yield _refused(where, text, "the gate %s is off" % _ALPHA, "set the gate to true, or remove it")


def _is_size(options: Mapping[str, object]) -> bool:
    """Return whether the size of the buffer is a number other than 0."""
    size = options.get("infoBufferSize")
    try:
        return Amount.parse(size).value != 0 if isinstance(size, str) else number_in(size) != 0
    except GoError:
        return False


def _refused(name: str, text: str, cause: str, remedy: str) -> Finding:
    where = "%s.%s" % (_WHERE, name)
    return refused("%s: %s" % (where, text), cause, remedy, where)._replace(context=_CONTEXT)


_MICROSECOND, _MILLISECOND = 10**3, 10**6
_DEFAULT_PERIOD = 100 * _MILLISECOND
_LONGEST_PERIOD = 1000 * _MILLISECOND
# Before this minor version a kubelet takes what the kernel refuses for each container.
_PERIOD_OF_KERNEL_SINCE = 26

_PODS, _SYSTEM, _KUBE, _NO_ENFORCEMENT = "pods", "system-reserved", "kube-reserved", "none"
_COMPRESSIBLE = "-compressible"
_COMPRESSIBLE_SINCE = 32

_CGROUP_V1_FATAL_SINCE = 35

# From this minor version on the other fields are checked as well.
_WHOLE_SINCE = 29

# Before this minor version no enforcement at all goes without a cgroup for each class of pods, not even none.
_NONE_IS_NONE_SINCE = 32

CONTEXT = "failed to validate kubelet configuration, error: "
# A list may have very many entries that are wrong.
_MOST_FINDINGS = 100


def validation_findings(
    values: Mapping[str, object], gates: Gates, host: Host, emptied: frozenset[str] = frozenset()
) -> list[Finding]:
    """Return what the kubelet refuses of decoded values before it looks at the machine; of the reserved CPUs nothing.

    emptied: the fields that a flag gives an empty value, in whose place no default comes.
    """
    fields = FieldValues(values, host.minor, emptied)
    if host.minor < _WHOLE_SINCE:
        older = [_qos_findings, _period_findings, _topology_findings, _enforcement_findings]
        findings = [finding for check in older for finding in islice(check(fields, gates), _MOST_FINDINGS)]
        findings += _cgroup_version_findings(fields, host)
    else:
        findings = [*islice(_all_findings(fields, gates, host), _MOST_FINDINGS)]
    return [finding if finding.context else finding._replace(context=CONTEXT) for finding in findings]


def _all_findings(fields: FieldValues, gates: Gates, host: Host) -> Iterator[Finding]:
    yield from logging_findings(fields, gates)
    yield from _qos_findings(fields, gates)
    yield from other_fields.event_findings(fields)
    yield from _period_findings(fields, gates)
    yield from image_fields.image_findings(fields, gates)
    yield from other_fields.limit_findings(fields, gates)
    yield from other_fields.taint_findings(fields)
    yield from _topology_findings(fields, gates)
    yield from other_fields.shutdown_findings(fields, gates)
    yield from other_fields.swap_findings(fields, gates)
    yield from other_fields.restart_findings(fields, gates)
    yield from _enforcement_findings(fields, gates)
    yield from other_fields.hairpin_findings(fields)
    yield from image_fields.pull_findings(fields, gates)
    yield from _cgroup_version_findings(fields, host)
    yield from other_fields.metrics_findings(fields, gates)
    yield from _memory_findings(fields, gates)
    yield from other_fields.runtime_findings(fields, gates)


def _period_findings(fields: FieldValues, gates: Gates) -> Iterator[Finding]:
    where = "cpuCFSQuotaPeriod"
    period = fields.number(where)
    shown = "cpuCFSQuotaPeriod (--cpu-cfs-quota-period) {%s} " % duration_text(period)
    if not gates.enabled(CFS_QUOTA_PERIOD):
        if period != _DEFAULT_PERIOD:
            yield invalid(
                shown + "requires feature gate CustomCPUCFSQuotaPeriod",
                "the gate is off, and only 100ms is allowed without it",
                "set featureGates.CustomCPUCFSQuotaPeriod: true, or remove cpuCFSQuotaPeriod",
                where,
            )
        return
    is_old = fields.minor < _PERIOD_OF_KERNEL_SINCE
    remedy = "write 1ms to 1s; 100ms is the default"
    if not (_MICROSECOND if is_old else _MILLISECOND) <= period <= _LONGEST_PERIOD:
        text = shown + "must be between %s and 1sec, inclusive" % ("1usec" if is_old else "1ms")
        yield invalid(text, "the period is out of range", remedy, where)
    elif period < _MILLISECOND:
        cause = "the kernel takes no period below 1ms: the kubelet starts, and no container does"
        yield harmful(cause, remedy, where)


def _topology_findings(fields: FieldValues, _gates: Gates) -> Iterator[Finding]:
    policy, scope = fields.text("topologyManagerPolicy"), fields.text("topologyManagerScope")
    if policy not in POLICIES:
        yield invalid(
            "topologyManagerPolicy (--topology-manager-policy) %s must be one of: [%s]"
            % (quote(policy), " ".join(map(quote, POLICIES))),
            "there is no such policy",
            "write one of %s" % ", ".join(POLICIES),
            "topologyManagerPolicy",
        )
    if scope not in SCOPES:
        yield invalid(
            "topologyManagerScope (--topology-manager-scope) %s must be one of: %s"
            % (quote(scope), ", or ".join(map(quote, SCOPES))),
            "there is no such scope",
            "write one of %s" % ", ".join(SCOPES),
            "topologyManagerScope",
        )


# --- enforceNodeAllocatable ------------------------------------------------------------------------------------

_ENFORCE = "enforceNodeAllocatable"
_QOS = "cgroupsPerQOS"
_NO_QOS = "without a cgroup for the pods the kubelet can enforce nothing"


def _qos_findings(fields: FieldValues, _gates: Gates) -> Iterator[Finding]:
    """Yield an older kubelet looks at the list as a whole, and early."""
    if fields.minor < _NONE_IS_NONE_SINCE and fields.items(_ENFORCE) and not fields.is_true(_QOS):
        text = (
            "%s (--enforce-node-allocatable) is not supported unless cgroupsPerQOS (--cgroups-per-qos) is set to true"
        )
        yield invalid(text % _ENFORCE, _NO_QOS, "set cgroupsPerQOS: true", _QOS)


def _enforcement_findings(fields: FieldValues, _gates: Gates) -> Iterator[Finding]:
    names = [name for name in fields.items(_ENFORCE) if isinstance(name, str)]
    given = set(names)
    seen: set[str] = set()
    compressible = fields.minor >= _COMPRESSIBLE_SINCE
    for name in (_SYSTEM, _KUBE):
        if compressible and name in given and name + _COMPRESSIBLE in given:
            yield invalid(
                'both "%s" and "%s" cannot be specified together in %s (--enforce-node-allocatable)'
                % (name, name + _COMPRESSIBLE, _ENFORCE),
                "the one includes the other",
                "keep one of the two",
                _ENFORCE,
            )
    for name in names:
        if compressible and name in seen:
            yield invalid(
                "duplicated enforcements %s in %s (--enforce-node-allocatable)" % (quote(name), _ENFORCE),
                "it is there twice",
                "keep it once",
                _ENFORCE,
            )
        elif name != _NO_ENFORCEMENT:
            yield from _enforcement_faults(fields, name, compressible)
        elif len(names) > 1:
            yield invalid(
                '%s (--enforce-node-allocatable) may not contain additional enforcements when "%s" is specified'
                % (_ENFORCE, name),
                "none excludes all others",
                "keep none alone, or remove it",
                _ENFORCE,
            )
        seen.add(name)


def _enforcement_faults(fields: FieldValues, name: str, compressible: bool) -> Iterator[Finding]:
    kinds = [kind for kind in (_SYSTEM, _KUBE) if name == kind or (compressible and name == kind + _COMPRESSIBLE)]
    if not kinds and name != _PODS:
        valid = [_PODS, _SYSTEM, _KUBE, _NO_ENFORCEMENT]
        if compressible:
            valid = [_PODS, _SYSTEM, _SYSTEM + _COMPRESSIBLE, _KUBE, _KUBE + _COMPRESSIBLE, _NO_ENFORCEMENT]
        yield invalid(
            "option %s specified for %s (--enforce-node-allocatable). Valid options are %s"
            % (quote(name), _ENFORCE, one_of(valid)),
            "the kubelet 1.%d has no such enforcement" % fields.minor,
            "write one of %s" % ", ".join(valid),
            _ENFORCE,
        )
        return
    for kind in kinds:
        field = kind.replace("-r", "R") + "Cgroup"
        if not fields.text(field):
            included = '"%s" or "%s" included' % (kind, kind + _COMPRESSIBLE)
            yield invalid(
                "%s (--%s-cgroup) must be specified when %s in %s (--enforce-node-allocatable)"
                % (field, kind, included if compressible else '"%s" contained' % kind, _ENFORCE),
                "the kubelet has no cgroup to limit",
                # With a list of reserved CPUs, no such cgroup may be set.
                ("" if fields.text("reservedSystemCPUs") else "set %s, or " % field)
                + "remove %s from %s" % (name, _ENFORCE),
                field,
            )
    if fields.minor >= _NONE_IS_NONE_SINCE and not fields.is_true(_QOS):
        yield invalid(
            "cgroupsPerQOS (--cgroups-per-qos) must be set to true when %s contained in %s"
            " (--enforce-node-allocatable)" % (quote(name), _ENFORCE),
            _NO_QOS,
            "set cgroupsPerQOS: true, or enforceNodeAllocatable: [none]",
            _QOS,
        )


# --- cgroups and memory ----------------------------------------------------------------------------------------


def _cgroup_version_findings(fields: FieldValues, host: Host) -> Iterator[Finding]:
    if not host.cgroup_v1:
        return
    if fields.is_true("failCgroupV1"):
        fatal = fields.minor >= _CGROUP_V1_FATAL_SINCE
        state = "unsupported and will be removed in a future release" if fatal else "in maintenance mode"
        given = fields.given.get("failCgroupV1") is not None
        yield refused(
            "kubelet is configured to not run on a host using cgroup v1. cgroup v1 support is " + state,
            "the host has cgroup v1%s" % ("" if given else ", and from Kubernetes 1.35 on failCgroupV1 is true"),
            "boot the host with cgroup v2, or set failCgroupV1: false",
            "failCgroupV1",
        )
    if fields.given.get("singleProcessOOMKill") is False:
        yield invalid(
            "singleProcessOOMKill must not be explicitly set to false when using cgroup v1",
            "the host has cgroup v1",
            "remove it, or boot the host with cgroup v2",
            "singleProcessOOMKill",
        )


_POLICY, _NO_RESERVATION, _TIERED = "memoryReservationPolicy", "None", "TieredReservation"
_QOS_GATE = "MemoryQoS"


def _memory_findings(fields: FieldValues, gates: Gates) -> Iterator[Finding]:
    """Yield what is for cgroup v2's control of memory."""
    where = "memoryThrottlingFactor"
    factor = fields.get(where)
    if isinstance(factor, (int, float)) and not isinstance(factor, bool) and not 0 < factor <= 1:
        from .fields import float_text

        yield invalid(
            "memoryThrottlingFactor %s must be greater than 0 and less than or equal to 1.0" % float_text(factor),
            "the number is out of range",
            "write a number such as 0.9, the default",
            where,
        )
    policy = fields.text(_POLICY) or _NO_RESERVATION
    if policy == _TIERED and not gates.enabled(_QOS_GATE):
        text = 'memoryReservationPolicy "TieredReservation" requires MemoryQoS feature gate to be enabled'
        yield gate_is_off(text, _QOS_GATE, _POLICY)
    elif policy not in (_NO_RESERVATION, _TIERED):
        options = (_NO_RESERVATION, _TIERED)
        text = "option %s specified for memoryReservationPolicy. Valid options are %s"
        remedy = "write None, or TieredReservation"
        yield invalid(text % (quote(policy), one_of(options)), "there is no such policy", remedy, _POLICY)
