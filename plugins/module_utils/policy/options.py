# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The static policy's options, as the kubelet accepts and refuses them; of the topology manager's, their gates.

Source: pkg/kubelet/cm/cpumanager/policy_options.go and pkg/kubelet/cm/topologymanager/policy_options.go of
Kubernetes 1.22 to 1.36; those of 1.33 to 1.36 were compared with kubelets.
"""

from __future__ import annotations

from typing import Mapping, NamedTuple

from .._base.errors import KubeletError
from ..topology.kubelet_view import CPUTopology

FULL_PCPUS_ONLY = "full-pcpus-only"
DISTRIBUTE_ACROSS_NUMA = "distribute-cpus-across-numa"
ALIGN_BY_SOCKET = "align-by-socket"
DISTRIBUTE_ACROSS_CORES = "distribute-cpus-across-cores"
STRICT_RESERVATION = "strict-cpu-reservation"
PREFER_UNCORE = "prefer-align-cpus-by-uncorecache"

ALPHA_GATE = "CPUManagerPolicyAlphaOptions"
BETA_GATE = "CPUManagerPolicyBetaOptions"

# Of the topology manager.
PREFER_CLOSEST = "prefer-closest-numa-nodes"
MAX_NUMA_NODES = "max-allowable-numa-nodes"

MANAGER_ALPHA_GATE = "TopologyManagerPolicyAlphaOptions"
MANAGER_BETA_GATE = "TopologyManagerPolicyBetaOptions"

# The minor version of Kubernetes from which each option is alpha, beta, generally available.
_NEVER = 1000
OPTION_SINCE = {
    FULL_PCPUS_ONLY: (22, 23, 33),
    DISTRIBUTE_ACROSS_NUMA: (23, 33, _NEVER),
    ALIGN_BY_SOCKET: (25, _NEVER, _NEVER),
    DISTRIBUTE_ACROSS_CORES: (31, _NEVER, _NEVER),
    STRICT_RESERVATION: (32, 33, 35),
    PREFER_UNCORE: (32, 34, 36),
}
MANAGER_SINCE = {PREFER_CLOSEST: (26, 28, 32), MAX_NUMA_NODES: (31, 31, 35)}

# In the order in which the kubelet looks at them.
_EXCLUSIONS = (
    (FULL_PCPUS_ONLY, DISTRIBUTE_ACROSS_CORES),
    (DISTRIBUTE_ACROSS_NUMA, DISTRIBUTE_ACROSS_CORES),
    (PREFER_UNCORE, DISTRIBUTE_ACROSS_CORES),
    (PREFER_UNCORE, DISTRIBUTE_ACROSS_NUMA),
)

# What Go's strconv.ParseBool reads.
BOOLEANS = dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True)
BOOLEANS.update(dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False))


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

    Raises KubeletError.
    """
    values = {}
    # The kubelet goes through the map in random order and reports the first failure; here the order is by name.
    for name, text in sorted(options.items()):
        _check_available(name, minor, alpha_enabled, beta_enabled)
        if text not in BOOLEANS:
            raise bad_boolean(name, text)
        values[name.replace("-", "_")] = BOOLEANS[text]
    for first, second in _EXCLUSIONS:
        if values.get(first.replace("-", "_")) and values.get(second.replace("-", "_")):
            raise KubeletError(
                "static policy options %s and %s can not be used at the same time" % (first, second),
                "drop one of the two",
            )
    return StaticOptions(**values)


def _check_available(name: str, minor: int, alpha_enabled: bool, beta_enabled: bool) -> None:
    alpha, beta, general = OPTION_SINCE.get(name, (_NEVER, _NEVER, _NEVER))
    if minor < alpha:
        available = sorted(option for option, since in OPTION_SINCE.items() if minor >= since[0])
        raise KubeletError(
            'unknown CPU Manager Policy option: "%s"' % name, "the kubelet 1.%d has %s" % (minor, ", ".join(available))
        )
    level, gate, enabled = ("Beta", BETA_GATE, beta_enabled) if minor >= beta else ("Alpha", ALPHA_GATE, alpha_enabled)
    if minor < general and not enabled:
        raise KubeletError(
            'CPU Manager Policy %s-level Options not enabled, but option "%s" provided' % (level, name),
            "set the feature gate %s in the kubelet's configuration first" % gate,
        )


def option_gate(name: str, minor: int) -> str | None:
    """Return the feature gate that an option needs in Kubernetes 1.`minor`; None for none, or no such option."""
    return _gate(OPTION_SINCE.get(name), minor, ALPHA_GATE, BETA_GATE)


def manager_option_gate(name: str, minor: int) -> str | None:
    """Return the feature gate that an option of the topology manager needs in 1.`minor`; None for none, or no such
    option."""
    return _gate(MANAGER_SINCE.get(name), minor, MANAGER_ALPHA_GATE, MANAGER_BETA_GATE)


def _gate(since: tuple[int, int, int] | None, minor: int, alpha_gate: str, beta_gate: str) -> str | None:
    alpha, beta, general = since or (_NEVER, _NEVER, _NEVER)
    if not alpha <= minor < general:
        return None
    return beta_gate if minor >= beta else alpha_gate


def check_machine(options: StaticOptions, topology: CPUTopology, topology_manager_policy: str) -> None:
    """Raise KubeletError where the options do not go with the machine or the topology manager's policy."""
    if not options.align_by_socket:
        return
    if topology_manager_policy == "single-numa-node":
        raise KubeletError(
            "Topolgy manager single-numa-node policy is incompatible with CPUManager align-by-socket policy option",
            "drop one of the two",
        )
    if topology.num_sockets > topology.num_numa_nodes:
        raise KubeletError(
            "Align by socket is not compatible with hardware where number of sockets are more than number of NUMA",
            "drop align-by-socket: the node has more sockets (%d) than NUMA nodes (%d)"
            % (topology.num_sockets, topology.num_numa_nodes),
        )


def bad_boolean(name: str, text: str) -> KubeletError:
    """Return what is said of an option's value that is no boolean."""
    return KubeletError(
        'bad value for option "%s": strconv.ParseBool: parsing "%s": invalid syntax' % (name, text),
        'write "true" or "false"',
    )


def texts_of_options(options: Mapping[str, object]) -> dict[str, str]:
    """Return policy options as the kubelet wants them, as texts: a YAML true is as good as "true"."""
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in options.items()}
