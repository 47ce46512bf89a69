# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether the kubelet's topology manager would start.

Source: cmd/kubelet/app/server.go and pkg/kubelet/cm/topologymanager (policy_options.go, topology_manager.go).
"""

from __future__ import annotations

from typing import Any, Mapping

from ..._base.errors import GoError, KubeletError
from ..._base.golang import quote
from ...policy.hints import MOST_NUMA_NODES, NONE, POLICIES, SCOPES, TooManyNodesError, TopologyManager
from ...policy.options import MANAGER_SINCE, MAX_NUMA_NODES, PREFER_CLOSEST, manager_option_gate
from ..gates import MEMORY_MANAGER, TOPOLOGY_BETA_OPTIONS, TOPOLOGY_MANAGER, TOPOLOGY_OPTIONS, Gates
from .amount import Amount, map_text
from .findings import Finding, Host, refused, refused_by
from .reservations import Reservations

# Whether the kubelet's memory manager would start.
#
# Its source: pkg/kubelet/apis/config/validation/validation_reserved_memory.go, pkg/kubelet/cm/memorymanager.


NO_MEMORY_MANAGER, STATIC, BEST_EFFORT = "None", "Static", "BestEffort"

_BEST_EFFORT_SINCE = 32
_MEMORY = "memory"
_MEMORY_MANAGER = "reservedMemory"


class MemoryCheck:
    """The check of one configuration."""

    def __init__(
        self,
        values: Mapping[str, Any],
        gates: Gates,
        host: Host,
        reservations: Reservations,
        policy: str,
    ) -> None:
        self.values = values
        self.host = host
        self.reservations = reservations
        self.on = gates.enabled(MEMORY_MANAGER)
        self.policy = policy

    def policy_name(self) -> str | None:
        """Return the policy that the memory manager would start with; None for one that it does not have."""
        return self.policy if self.on and self.policy in (NO_MEMORY_MANAGER, STATIC) else None

    def reserved(self) -> dict[int, dict[str, int]]:
        """Return {NUMA node: {kind of memory: bytes}}, as far as reservedMemory can be read."""
        found: dict[int, dict[str, int]] = {}
        for node, limits in self._limits()[0]:
            amounts = {name: int(-(-amount.exact() // 1)) for name, amount in limits.items()}
            found[node] = {**found.get(node, {}), **amounts}
        return found

    def invalid(self) -> list[Finding]:
        """Return what the validation refuses, before there is a memory manager."""
        reserved, findings = self._limits()
        return findings + self._invalid(reserved)

    def findings(self) -> list[Finding]:
        """Return all that the memory manager refuses."""
        findings: list[Finding] = []
        if not self.on:
            return findings
        if self.policy == STATIC:
            return self._static(self._limits()[0])
        if self.policy != NO_MEMORY_MANAGER:
            text = 'unknown policy: "%s"' % self.policy
            if self.policy == BEST_EFFORT and self.host.minor >= _BEST_EFFORT_SINCE:
                text = 'policy "BestEffort" is not available for platform "linux"'
            cause = "the memory manager has no such policy here; upper and lower case count"
            findings.append(refused(text, cause, "write None or Static", "memoryManagerPolicy"))
        return findings

    def _limits(self) -> tuple[list[tuple[int, dict[str, Amount]]], list[Finding]]:
        """Return reservedMemory: [(NUMA node, {resource: amount})], and what of it is too long to be read."""
        reserved: list[tuple[int, dict[str, Amount]]] = []
        findings = []
        for number, entry in enumerate(self.values.get(_MEMORY_MANAGER, ())):
            amounts = {}
            for name, text in sorted(entry["limits"].items()):
                try:
                    amounts[name] = Amount.parse(text)
                except GoError as error:
                    where = "%s[%d].limits.%s" % (_MEMORY_MANAGER, number, name)
                    undecodable = "failed to decode: %s" % error
                    findings.append(refused(undecodable, "it is no quantity", "write it as 1Gi or 512Mi", where))
            reserved.append((entry["numaNode"], amounts))
        return reserved, findings

    def _invalid(self, reserved: list[tuple[int, dict[str, Amount]]]) -> list[Finding]:
        findings = []
        seen = set()
        for number, (node, limits) in enumerate(reserved):
            for name, amount in limits.items():
                where = "%s[%d].limits.%s" % (_MEMORY_MANAGER, number, name)
                if not _is_memory(name):
                    text = (
                        "invalid configuration: the limit type %s for NUMA node %d is not supported, only"
                        " [memory hugepages-<HugePageSize>] is accepted" % (quote(name), node)
                    )
                    findings.append(refused(text, "it is no memory", "remove it", where))
                if not amount.value:
                    text = "invalid configuration: reserved memory may not be zero for NUMA node %d and resource %s" % (
                        node,
                        quote(name),
                    )
                    findings.append(refused(text, "it is 0", "remove it", where))
                if (node, name) in seen:
                    text = (
                        "invalid configuration: the reserved memory has a duplicate value for NUMA node %d and"
                        " resource %s" % (node, quote(name))
                    )
                    findings.append(refused(text, "it is there twice", "add the two up in one", where))
                seen.add((node, name))
        return findings

    def _static(self, reserved: list[tuple[int, dict[str, Amount]]]) -> list[Finding]:
        missing = list(dict.fromkeys(node for node, _limits in reserved if node not in self.host.nodes()))
        if missing:
            text = "the reserved memory configuration references a NUMA node %d that does not exist on this machine"
            cause = "the node has the NUMA nodes %s" % ", ".join(map(str, self.host.nodes()))
            return [refused(text % node, cause, "take another node", _MEMORY_MANAGER) for node in missing]
        totals: dict[str, Amount] = {}
        for _node, limits in reserved:
            for name, amount in limits.items():
                if _is_memory(name):
                    totals[name] = amount.plus(totals.get(name, Amount(0)))
        findings = []
        allocatable = self.reservations.memory()
        for name in sorted({_MEMORY, *totals}):
            wanted = allocatable if name == _MEMORY else Amount(0)
            total = totals.get(name, Amount(0))
            if wanted is not None and wanted.exact() != total.exact():
                text = (
                    'the total amount "%s" of type %s is not equal to the value "%s" determined by Node Allocatable'
                    " feature" % (total, quote(name), wanted)
                )
                cause = "reservedMemory must add up to systemReserved, kubeReserved and evictionHard together"
                remedy = "reserve %s of %s over all NUMA nodes" % (wanted, name)
                if not wanted.value:
                    # An amount of 0 is refused as well.
                    remedy = "take %s out of reservedMemory" % name
                findings.append(refused(text, cause, remedy, _MEMORY_MANAGER))
        amounts = [amount for _node, limits in reserved for amount in limits.values()]
        if not findings and any(amount.in_64_bits() is None for amount in amounts):
            text = "could not covert a variable of type Quantity to int64"
            cause = "an amount in it is written with a fraction, or it is beyond 64 bits"
            findings.append(refused(text, cause, "write whole numbers, as 1536Mi instead of 1.5Gi", _MEMORY_MANAGER))
        if not findings and not totals.get(_MEMORY, Amount(0)).value:
            text = "[memorymanager] you should specify the system reserved memory"
            remedy = "set reservedMemory, and as much in systemReserved, kubeReserved or evictionHard"
            findings.append(refused(text, "the policy Static needs reserved memory", remedy, _MEMORY_MANAGER))
        return findings


def _is_memory(resource: str) -> bool:
    return resource == _MEMORY or resource.startswith("hugepages-")


_REMEDIES = {PREFER_CLOSEST: 'write "true" or "false"', MAX_NUMA_NODES: 'write a number of 8 or more, as in "16"'}

# Before it, the message names the gate of the topology manager, too.
_ONE_GATE_SINCE = 27

# Before it, the message about a level has capitals.
_LOWER_CASE_SINCE = 33

_TOPOLOGY_MANAGER = "topologyManagerPolicyOptions"


def topology_option_gates(values: Mapping[str, Any], gates: Gates, host: Host) -> list[Finding]:
    """Return whether the policy's options need a gate that is off."""
    options: Mapping[str, str] | None = values.get(_TOPOLOGY_MANAGER)
    if options is None or gates.enabled(TOPOLOGY_OPTIONS) or not gates.enabled(TOPOLOGY_MANAGER):
        return []
    needed = quote(TOPOLOGY_OPTIONS)
    if host.minor < _ONE_GATE_SINCE:
        needed = "%s, %s" % (quote(TOPOLOGY_MANAGER), needed)
    text = "topology manager policy options %s require feature gates %s enabled" % (map_text(options), needed)
    remedy = "remove the options, or set featureGates.%s: true" % TOPOLOGY_OPTIONS
    return [refused(text, "the gate %s is off" % TOPOLOGY_OPTIONS, remedy, _TOPOLOGY_MANAGER)]


def topology_manager_findings(values: Mapping[str, Any], gates: Gates, host: Host) -> list[Finding]:
    """Return what it refuses. A policy that does not exist is refused earlier, by the validation."""
    options: Mapping[str, str] | None = values.get(_TOPOLOGY_MANAGER)
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
            finding = refused_by(error, "the option cannot be used", "%s.%s" % (_TOPOLOGY_MANAGER, name))
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
                remedy += ", or %s in %s" % (MAX_NUMA_NODES, _TOPOLOGY_MANAGER)
            return [finding._replace(remedy=remedy)]
        return [finding._replace(remedy="remove %s" % PREFER_CLOSEST)]
    return []
