# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The static policy's options, as the kubelet accepts and refuses them.

Source: pkg/kubelet/cm/cpumanager/policy_options.go of Kubernetes 1.33 to 1.36.
"""

from __future__ import annotations

from typing import Mapping, NamedTuple

from ..errors import InputError

FULL_PCPUS_ONLY = "full-pcpus-only"
DISTRIBUTE_ACROSS_NUMA = "distribute-cpus-across-numa"
ALIGN_BY_SOCKET = "align-by-socket"
DISTRIBUTE_ACROSS_CORES = "distribute-cpus-across-cores"
STRICT_RESERVATION = "strict-cpu-reservation"
PREFER_UNCORE = "prefer-align-cpus-by-uncorecache"

ALPHA_GATE = "CPUManagerPolicyAlphaOptions"
BETA_GATE = "CPUManagerPolicyBetaOptions"

# The minor version of Kubernetes from which each option is alpha, beta, generally available.
_NEVER = 1000
_SINCE = {
    FULL_PCPUS_ONLY: (22, 23, 33),
    DISTRIBUTE_ACROSS_NUMA: (23, 33, _NEVER),
    ALIGN_BY_SOCKET: (25, _NEVER, _NEVER),
    DISTRIBUTE_ACROSS_CORES: (31, _NEVER, _NEVER),
    STRICT_RESERVATION: (32, 33, 35),
    PREFER_UNCORE: (32, 34, 36),
}

# In the order in which the kubelet looks at them.
_EXCLUSIONS = (
    (FULL_PCPUS_ONLY, DISTRIBUTE_ACROSS_CORES),
    (DISTRIBUTE_ACROSS_NUMA, DISTRIBUTE_ACROSS_CORES),
    (PREFER_UNCORE, DISTRIBUTE_ACROSS_CORES),
    (PREFER_UNCORE, DISTRIBUTE_ACROSS_NUMA),
)

# What Go's strconv.ParseBool reads.
_BOOLEANS = dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True)
_BOOLEANS.update(dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False))


class StaticOptions(NamedTuple):
    """The options that are switched on."""

    full_pcpus_only: bool = False
    distribute_cpus_across_numa: bool = False
    align_by_socket: bool = False
    distribute_cpus_across_cores: bool = False
    strict_cpu_reservation: bool = False
    prefer_align_cpus_by_uncorecache: bool = False


def parse_static_options(
    options: Mapping[str, str], minor: int, alpha_enabled: bool = False, beta_enabled: bool = True
) -> StaticOptions:
    """Read cpuManagerPolicyOptions as the kubelet 1.`minor` with these feature gates does.

    Raises InputError with the kubelet's text and, where that is not enough, what to do.
    """
    values = {}
    # The kubelet goes through the map in random order and tells the first failure; here the order is by name.
    for name, text in sorted(options.items()):
        _check_available(name, minor, alpha_enabled, beta_enabled)
        if text not in _BOOLEANS:
            raise InputError(
                'bad value for option "%s": strconv.ParseBool: parsing "%s": invalid syntax; write "true" or "false"'
                % (name, text)
            )
        values[name.replace("-", "_")] = _BOOLEANS[text]
    for first, second in _EXCLUSIONS:
        if values.get(first.replace("-", "_")) and values.get(second.replace("-", "_")):
            raise InputError("static policy options %s and %s can not be used at the same time" % (first, second))
    return StaticOptions(**values)


def _check_available(name: str, minor: int, alpha_enabled: bool, beta_enabled: bool) -> None:
    alpha, beta, general = _SINCE.get(name, (_NEVER, _NEVER, _NEVER))
    if minor < alpha:
        known = sorted(option for option, since in _SINCE.items() if minor >= since[0])
        raise InputError(
            'unknown CPU Manager Policy option: "%s"; the kubelet 1.%d knows %s' % (name, minor, ", ".join(known))
        )
    level, gate, enabled = ("Beta", BETA_GATE, beta_enabled) if minor >= beta else ("Alpha", ALPHA_GATE, alpha_enabled)
    if minor < general and not enabled:
        raise InputError(
            'CPU Manager Policy %s-level Options not enabled, but option "%s" provided;'
            " set the feature gate %s in the kubelet's configuration first" % (level, name, gate)
        )
