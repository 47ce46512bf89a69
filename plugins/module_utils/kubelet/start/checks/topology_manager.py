# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether the kubelet's topology manager would start.

Source: cmd/kubelet/app/server.go and pkg/kubelet/cm/topologymanager (policy_options.go, topology_manager.go).
"""

from __future__ import annotations

from typing import Any, Mapping

from ....errors import KubeletError
from ....golang import quote
from ....policy.hints import MOST_NUMA_NODES, NONE, POLICIES, SCOPES, TooManyNodesError, TopologyManager
from ....policy.options import MANAGER_SINCE, MAX_NUMA_NODES, PREFER_CLOSEST, manager_option_gate
from ...gates.enabled import TOPOLOGY_BETA_OPTIONS, TOPOLOGY_MANAGER, TOPOLOGY_OPTIONS, Gates
from ..finding import Finding, Host, refused, refused_by
from .amount import map_text

_REMEDIES = {PREFER_CLOSEST: 'write "true" or "false"', MAX_NUMA_NODES: 'write a number of 8 or more, as in "16"'}

# Before it, the message names the gate of the topology manager, too.
_ONE_GATE_SINCE = 27

# Before it, the message about a level has capitals.
_LOWER_CASE_SINCE = 33

_WHERE = "topologyManagerPolicyOptions"


def topology_option_gates(values: Mapping[str, Any], gates: Gates, host: Host) -> list[Finding]:
    """Whether the policy's options need a gate that is off."""
    options: Mapping[str, str] | None = values.get(_WHERE)
    if options is None or gates.enabled(TOPOLOGY_OPTIONS) or not gates.enabled(TOPOLOGY_MANAGER):
        return []
    needed = quote(TOPOLOGY_OPTIONS)
    if host.minor < _ONE_GATE_SINCE:
        needed = "%s, %s" % (quote(TOPOLOGY_MANAGER), needed)
    text = "topology manager policy options %s require feature gates %s enabled" % (map_text(options), needed)
    remedy = "remove the options, or set featureGates.%s: true" % TOPOLOGY_OPTIONS
    return [refused(text, "the gate %s is off" % TOPOLOGY_OPTIONS, remedy, _WHERE)]


def topology_manager_findings(values: Mapping[str, Any], gates: Gates, host: Host) -> list[Finding]:
    """What it refuses. A policy that does not exist is refused earlier, by the validation."""
    options: Mapping[str, str] | None = values.get(_WHERE)
    policy = values.get("topologyManagerPolicy")
    if not gates.enabled(TOPOLOGY_MANAGER) or (options is not None and not gates.enabled(TOPOLOGY_OPTIONS)):
        return []
    # With the policy none the kubelet does not even look at the options.
    if policy not in POLICIES or policy == NONE:
        return []
    options = options or {}
    findings = []
    for name, text in sorted(options.items()):
        try:
            _check_level(name, gates, host.minor)
            TopologyManager(policy, SCOPES[0], (), {name: text})
        except KubeletError as error:
            finding = refused_by(error, "the option cannot be used", "%s.%s" % (_WHERE, name))
            findings.append(finding if finding.remedy else finding._replace(remedy=_REMEDIES.get(name, "remove it")))
    # Of an option that is refused it is not known what it would allow.
    return findings or _machine_findings(policy, options, host)


def _check_level(name: str, gates: Gates, minor: int) -> None:
    """Raise KubeletError for an option that this version, or its gates, does not have."""
    if name not in MANAGER_SINCE:
        return  # refused as unknown when it is read
    alpha = MANAGER_SINCE[name][0]
    if minor < alpha:
        raise KubeletError(
            "unknown Topology Manager Policy option: %s" % quote(name),
            "remove it, or upgrade to Kubernetes 1.%d" % alpha,
        )
    gate = manager_option_gate(name, minor)
    if gate is not None and not gates.enabled(gate):
        level = "Beta" if gate == TOPOLOGY_BETA_OPTIONS else "Alpha"
        what = "Topology Manager Policy %s-level Options not enabled" % level
        raise KubeletError(
            "%s, but option %s provided" % (what.lower() if minor >= _LOWER_CASE_SINCE else what, quote(name)),
            "set featureGates.%s: true" % gate,
        )


def _machine_findings(policy: str, options: Mapping[str, str], host: Host) -> list[Finding]:
    try:
        TopologyManager(policy, SCOPES[0], host.nodes(), options, host.distances)
    except KubeletError as error:
        finding = refused_by(error, "the node has %d NUMA nodes" % len(host.nodes()), "topologyManagerPolicy")
        if isinstance(error, TooManyNodesError):
            remedy = "set topologyManagerPolicy: none"
            # With more it would start, and hang as it admits pods.
            if host.minor >= MANAGER_SINCE[MAX_NUMA_NODES][0] and len(host.nodes()) <= MOST_NUMA_NODES:
                remedy += ", or %s in %s" % (MAX_NUMA_NODES, _WHERE)
            return [finding._replace(remedy=remedy)]
        return [finding._replace(remedy="remove %s" % PREFER_CLOSEST)]
    return []
