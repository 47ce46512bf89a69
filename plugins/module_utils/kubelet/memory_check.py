# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether the kubelet's memory manager would start.

Source: pkg/kubelet/apis/config/validation/validation_reserved_memory.go, pkg/kubelet/cm/memorymanager and
pkg/kubelet/eviction.
"""

from __future__ import annotations

import re
from struct import pack, unpack
from typing import Any, Mapping

from ..errors import InputError
from ..state.golang import GoError, quote
from .amount import BINARY, Amount
from .finding import Finding, Host, refused
from .gates import MEMORY_MANAGER, Gates

NONE, STATIC, BEST_EFFORT = "None", "Static", "BestEffort"

_BEST_EFFORT_SINCE = 32
_DEFAULT_EVICTION = "100Mi"
_MEMORY = "memory"
_WHERE = "reservedMemory"
_PERCENTAGE = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)%")


class MemoryCheck:
    """The check of one configuration; `amounts` are what systemReserved and kubeReserved say."""

    def __init__(
        self,
        values: Mapping[str, Any],
        gates: Gates,
        host: Host,
        amounts: Mapping[str, Mapping[str, Amount] | None],
    ) -> None:
        self.values = values
        self.host = host
        self.amounts = amounts
        self.on = gates.enabled(MEMORY_MANAGER)
        self.policy = values.get("memoryManagerPolicy") or NONE

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

    def findings(self) -> list[Finding]:
        """All that it refuses."""
        reserved, findings = self._limits()
        findings += self._invalid(reserved)
        if not self.on:
            return findings
        if self.policy == STATIC:
            return findings + self._static(reserved)
        if self.policy != NONE:
            text = "unknown policy: %s" % quote(self.policy)
            if self.policy == BEST_EFFORT and self.host.minor >= _BEST_EFFORT_SINCE:
                text = 'policy "BestEffort" is not available for platform "linux"'
            cause = "the memory manager has no such policy here; upper and lower case count"
            findings.append(refused(text, cause, "write None or Static", "memoryManagerPolicy"))
        return findings

    def reservation(self) -> Amount | None:
        """The memory that Node Allocatable keeps from pods; None where that is refused or not known."""
        total = Amount(0)
        for amounts in self.amounts.values():
            if amounts is None:
                return None
            total = total.plus(amounts.get(_MEMORY, Amount(0)))
        try:
            eviction = self._eviction()
        except (GoError, InputError):
            return None
        return None if eviction is None else total.plus(eviction)

    def _eviction(self) -> Amount | None:
        thresholds = self.values.get("evictionHard")
        merged = self.values.get("mergeDefaultEvictionSettings")
        if thresholds is None or (merged and "memory.available" not in thresholds):
            return Amount.parse(_DEFAULT_EVICTION)
        text = thresholds.get("memory.available")
        if text is None:
            return Amount(0)
        match = _PERCENTAGE.fullmatch(text)
        if not match:
            return Amount.parse(text)
        share = _float32(_float32(float(match.group(1))) / 100)
        # None and all of it switch the threshold off.
        if share in (0, 1):
            return Amount(0)
        return None if self.host.memory is None else Amount(int(self.host.memory * share), 0, BINARY)

    def _limits(self) -> tuple[list[tuple[int, dict[str, Amount]]], list[Finding]]:
        """reservedMemory: [(NUMA node, {resource: amount})], and what of it cannot be decoded."""
        reserved: list[tuple[int, dict[str, Amount]]] = []
        findings = []
        entries = self.values.get(_WHERE, [])
        for number, entry in enumerate(entries if isinstance(entries, list) else []):
            node = entry.get("numaNode", 0) if isinstance(entry, Mapping) else 0
            limits = entry.get("limits") if isinstance(entry, Mapping) else None
            amounts = {}
            for name, text in sorted(limits.items()) if isinstance(limits, Mapping) else ():
                try:
                    amounts[name] = Amount.parse(text if isinstance(text, str) else repr(text))
                except GoError as error:
                    where = "%s[%d].limits.%s" % (_WHERE, number, name)
                    undecodable = "failed to decode: %s" % error
                    findings.append(refused(undecodable, "it is no quantity", "write it as 1Gi or 512Mi", where))
            if isinstance(node, int):
                reserved.append((node, amounts))
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
        missing = sorted({node for node, _limits in reserved} - set(self.host.numa_nodes))
        if missing:
            text = "the reserved memory configuration references a NUMA node %d that does not exist on this machine"
            cause = "the node has the NUMA nodes %s" % ", ".join(map(str, self.host.numa_nodes))
            return [refused(text % node, cause, "take another node", _WHERE) for node in missing]
        totals: dict[str, Amount] = {}
        for _node, limits in reserved:
            for name, amount in limits.items():
                if _is_memory(name):
                    totals[name] = totals.get(name, Amount(0)).plus(amount)
        findings = []
        allocatable = self.reservation()
        for name in sorted({_MEMORY, *totals}):
            wanted = allocatable if name == _MEMORY else Amount(0)
            total = totals.get(name, Amount(0))
            if wanted is not None and wanted.exact() != total.exact():
                text = (
                    'the total amount "%s" of type "%s" is not equal to the value "%s" determined by Node Allocatable'
                    " feature" % (total, name, wanted)
                )
                cause = "reservedMemory must add up to systemReserved, kubeReserved and evictionHard together"
                remedy = "reserve %s of %s over all NUMA nodes" % (wanted, name)
                findings.append(refused(text, cause, remedy, _WHERE))
        if not findings and not totals.get(_MEMORY, Amount(0)).value:
            text = "[memorymanager] you should specify the system reserved memory"
            remedy = "set reservedMemory, and as much in systemReserved, kubeReserved or evictionHard"
            findings.append(refused(text, "the policy Static needs reserved memory", remedy, _WHERE))
        return findings


def _is_memory(resource: str) -> bool:
    return resource == _MEMORY or resource.startswith("hugepages-")


def _float32(number: float) -> float:
    rounded: float = unpack("f", pack("f", number))[0]
    return rounded
