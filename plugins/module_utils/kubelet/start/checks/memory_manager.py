# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether the kubelet's memory manager would start.

Source: pkg/kubelet/apis/config/validation/validation_reserved_memory.go, pkg/kubelet/cm/memorymanager.
"""

from __future__ import annotations

from typing import Any, Mapping

from ....errors import GoError
from ....golang import quote
from ...gates.enabled import MEMORY_MANAGER, Gates
from ..finding import Finding, Host, refused
from .amount import Amount
from .reservations import Reservations

NONE, STATIC, BEST_EFFORT = "None", "Static", "BestEffort"

_BEST_EFFORT_SINCE = 32
_MEMORY = "memory"
_WHERE = "reservedMemory"


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
        """The policy that the memory manager would start with; None for one that it does not have."""
        return self.policy if self.on and self.policy in (NONE, STATIC) else None

    def reserved(self) -> dict[int, dict[str, int]]:
        """{NUMA node: {kind of memory: bytes}}, as far as reservedMemory can be read."""
        found: dict[int, dict[str, int]] = {}
        for node, limits in self._limits()[0]:
            amounts = {name: int(-(-amount.exact() // 1)) for name, amount in limits.items()}
            found[node] = {**found.get(node, {}), **amounts}
        return found

    def invalid(self) -> list[Finding]:
        """What the validation refuses, before there is a memory manager."""
        reserved, findings = self._limits()
        return findings + self._invalid(reserved)

    def findings(self) -> list[Finding]:
        """All that the memory manager refuses."""
        findings: list[Finding] = []
        if not self.on:
            return findings
        if self.policy == STATIC:
            return self._static(self._limits()[0])
        if self.policy != NONE:
            text = 'unknown policy: "%s"' % self.policy
            if self.policy == BEST_EFFORT and self.host.minor >= _BEST_EFFORT_SINCE:
                text = 'policy "BestEffort" is not available for platform "linux"'
            cause = "the memory manager has no such policy here; upper and lower case count"
            findings.append(refused(text, cause, "write None or Static", "memoryManagerPolicy"))
        return findings

    def _limits(self) -> tuple[list[tuple[int, dict[str, Amount]]], list[Finding]]:
        """reservedMemory: [(NUMA node, {resource: amount})], and what of it is too long to be read."""
        reserved: list[tuple[int, dict[str, Amount]]] = []
        findings = []
        for number, entry in enumerate(self.values.get(_WHERE, ())):
            amounts = {}
            for name, text in sorted(entry["limits"].items()):
                try:
                    amounts[name] = Amount.parse(text)
                except GoError as error:
                    where = "%s[%d].limits.%s" % (_WHERE, number, name)
                    undecodable = "failed to decode: %s" % error
                    findings.append(refused(undecodable, "it is no quantity", "write it as 1Gi or 512Mi", where))
            reserved.append((entry["numaNode"], amounts))
        return reserved, findings

    def _invalid(self, reserved: list[tuple[int, dict[str, Amount]]]) -> list[Finding]:
        findings = []
        seen = set()
        for number, (node, limits) in enumerate(reserved):
            for name, amount in limits.items():
                where = "%s[%d].limits.%s" % (_WHERE, number, name)
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
            return [refused(text % node, cause, "take another node", _WHERE) for node in missing]
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
                findings.append(refused(text, cause, remedy, _WHERE))
        amounts = [amount for _node, limits in reserved for amount in limits.values()]
        if not findings and any(amount.in_64_bits() is None for amount in amounts):
            text = "could not covert a variable of type Quantity to int64"
            cause = "an amount in it is written with a fraction, or it is beyond 64 bits"
            findings.append(refused(text, cause, "write whole numbers, as 1536Mi instead of 1.5Gi", _WHERE))
        if not findings and not totals.get(_MEMORY, Amount(0)).value:
            text = "[memorymanager] you should specify the system reserved memory"
            remedy = "set reservedMemory, and as much in systemReserved, kubeReserved or evictionHard"
            findings.append(refused(text, "the policy Static needs reserved memory", remedy, _WHERE))
        return findings


def _is_memory(resource: str) -> bool:
    return resource == _MEMORY or resource.startswith("hugepages-")
